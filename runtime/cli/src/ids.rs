//! Names of jobs, tasks, attempts and workers on command lines: `job_0007`, `7`, `last`, `all`, `3-7`, the name of
//! one job, `job_0007_m_0003.1` and so on.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use napreduce_cluster::ClusterClient;
use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{JobPhase, JobSummary, WorkerSummary, check_name};

use crate::failure::{Failures, usage};

/// Maximum jobs of `all`.
pub const JOBS_MAX: u32 = 100_000;

/// Maximum jobs of one name that an error lists.
const SAME_NAME_MAX: usize = 10;

/// A selection of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSelector {
    One(JobId),
    /// Inclusive.
    Range(JobId, JobId),
    Last,
    All,
    /// The only unfinished job of this name; if there is none, the only ended one.
    Named(String),
}

/// A job that a selector may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownJob {
    pub job: JobId,
    pub name: String,
    pub phase: JobPhase,
}

impl From<&JobSummary> for KnownJob {
    fn from(summary: &JobSummary) -> KnownJob {
        KnownJob {
            job: summary.job,
            name: summary.name.clone(),
            phase: summary.phase,
        }
    }
}

/// A task, or one attempt of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskSelector {
    pub task: TaskId,
    pub attempt: Option<u32>,
}

fn job(text: &str) -> Option<JobId> {
    let digits = text.strip_prefix("job_").unwrap_or(text);
    number(digits).filter(|number| *number > 0).map(JobId)
}

fn number(digits: &str) -> Option<u32> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

impl FromStr for JobSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<JobSelector, String> {
        match text {
            "last" => return Ok(JobSelector::Last),
            "all" => return Ok(JobSelector::All),
            _ => {}
        }
        if let Some(job) = job(text) {
            return Ok(JobSelector::One(job));
        }
        if let Some((from, to)) = text.split_once('-')
            && let (Some(from), Some(to)) = (job(from), job(to))
        {
            if from > to {
                return Err(format!(
                    "invalid range {text:?}: the first job must come first"
                ));
            }
            return Ok(JobSelector::Range(from, to));
        }
        if is_no_name(text) {
            return Err(format!(
                "invalid job {text:?}: expected job_0007, 7, 3-7, last, all or the name of a job"
            ));
        }
        Ok(JobSelector::Named(text.to_owned()))
    }
}

/// Returns whether a text cannot be meant as the name of a job: it is empty, unprintable, a wrong number, or a
/// task.
fn is_no_name(text: &str) -> bool {
    let digits = text.strip_prefix("job_").unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
        || check_name("job", text, "--name").is_err()
        || within(JobId(1), text).is_some()
        || text.parse::<TaskSelector>().is_ok()
}

impl JobSelector {
    /// Returns the selected jobs among `existing`, in order. A single job need not exist; the coordinator rejects
    /// it.
    pub fn among(&self, existing: &[KnownJob]) -> Result<Vec<JobId>> {
        let mut jobs: Vec<JobId> = existing.iter().map(|known| known.job).collect();
        jobs.sort();
        match self {
            JobSelector::One(job) => Ok(vec![*job]),
            JobSelector::Range(from, to) => {
                jobs.retain(|job| (from..=to).contains(&job));
                if jobs.is_empty() {
                    Err(usage(anyhow!(
                        "no job from {from} to {to}; see: nap job list"
                    )))
                } else {
                    Ok(jobs)
                }
            }
            JobSelector::Last => match jobs.last() {
                Some(last) => Ok(vec![*last]),
                None => Err(usage(anyhow!(
                    "no job yet; submit one with: PROGRAM INPUT --output DIR --cluster ..."
                ))),
            },
            JobSelector::All => Ok(jobs),
            JobSelector::Named(name) => Ok(vec![job_named(name, existing)?]),
        }
    }

    /// Returns the jobs among `existing` that any of the selectors matches, in order and each once.
    pub fn select(
        selectors: &[JobSelector],
        existing: &[KnownJob],
        failures: &mut Failures,
    ) -> Result<Vec<JobId>> {
        let mut selected = Vec::new();
        for selector in selectors {
            selected.extend(
                failures
                    .check(selector.among(existing))?
                    .unwrap_or_default(),
            );
        }
        selected.sort();
        selected.dedup();
        Ok(selected)
    }

    /// Returns the one selected job among `existing`. Fails for several; `what` is the command in the error.
    pub fn one_among(&self, existing: &[KnownJob], what: &str) -> Result<JobId> {
        let jobs = self.among(existing)?;
        let [job] = jobs[..] else {
            return Err(usage(anyhow!("{what} takes one job, not {}", jobs.len())));
        };
        Ok(job)
    }

    /// Whether the selection depends on the existing jobs.
    pub fn needs_listing(&self) -> bool {
        !matches!(self, JobSelector::One(_))
    }

    /// Whether the selection depends on the names of the existing jobs.
    pub fn needs_names(&self) -> bool {
        matches!(self, JobSelector::Named(_))
    }
}

/// Returns the only unfinished job of a name, or the only ended one if none is unfinished.
fn job_named(name: &str, existing: &[KnownJob]) -> Result<JobId> {
    let of_name: Vec<&KnownJob> = existing.iter().filter(|known| known.name == name).collect();
    let unfinished: Vec<&KnownJob> = of_name
        .iter()
        .copied()
        .filter(|known| !known.phase.has_ended())
        .collect();
    let mut candidates = if unfinished.is_empty() {
        of_name
    } else {
        unfinished
    };
    candidates.sort_by_key(|known| std::cmp::Reverse(known.job));
    match candidates[..] {
        [] => Err(usage(anyhow!(
            "no job has the ID or name {name:?}; see: nap job list"
        ))),
        [only] => Ok(only.job),
        _ => {
            let shown = candidates.iter().take(SAME_NAME_MAX);
            let mut shown: Vec<String> = shown
                .map(|known| format!("{} ({})", known.job, known.phase.in_words()))
                .collect();
            if candidates.len() > SAME_NAME_MAX {
                shown.push(format!("and {} more", candidates.len() - SAME_NAME_MAX));
            }
            let count = candidates.len();
            Err(usage(anyhow!(
                "{count} jobs have the name {name:?}: {}; give the ID of one",
                shown.join(", ")
            )))
        }
    }
}

/// Returns the selected jobs of the cluster.
pub fn select(
    selectors: &[JobSelector],
    client: &mut ClusterClient,
    failures: &mut Failures,
) -> Result<Vec<JobId>> {
    JobSelector::select(selectors, &existing(selectors, client)?, failures)
}

/// Returns the one selected job; `what` is the command in the error for several.
pub fn select_one(selector: &JobSelector, what: &str, client: &mut ClusterClient) -> Result<JobId> {
    selector.one_among(&existing(std::slice::from_ref(selector), client)?, what)
}

/// Lists the jobs of the cluster if a selector depends on them.
pub fn existing(selectors: &[JobSelector], client: &mut ClusterClient) -> Result<Vec<KnownJob>> {
    if selectors.iter().any(JobSelector::needs_listing) {
        Ok(client
            .ask(ListJobs { limit: JOBS_MAX })?
            .iter()
            .map(KnownJob::from)
            .collect())
    } else {
        Ok(Vec::new())
    }
}

impl FromStr for TaskSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskSelector, String> {
        let wrong = || {
            format!(
                "invalid task {text:?}: expected job_0007_m_0003, job_0007_m_0003.1 for one attempt, or last_m_0003 or NAME_m_0003 for a task of the last job or of the job of a name"
            )
        };
        let read = || {
            let rest = text.strip_prefix("job_").unwrap_or(text);
            let (job_number, rest) = rest.split_once('_')?;
            within(job(job_number)?, rest)
        };
        read().ok_or_else(wrong)
    }
}

/// Parses `m_0003` or `m_0003.1` of a job.
fn within(job: JobId, text: &str) -> Option<TaskSelector> {
    let (kind, rest) = text.split_once('_')?;
    let kind = match kind {
        "m" => TaskKind::Map,
        "r" => TaskKind::Reduce,
        _ => return None,
    };
    let (index, attempt) = match rest.split_once('.') {
        Some((index, attempt)) => (index, Some(number(attempt).filter(|number| *number > 0)?)),
        None => (rest, None),
    };
    Some(TaskSelector {
        task: TaskId {
            job,
            kind,
            index: number(index)?,
        },
        attempt,
    })
}

impl TaskSelector {
    /// Parses a task or attempt of a known job: `m_0003.1`, or the whole name.
    pub fn of_job(job: JobId, text: &str) -> Result<TaskSelector, String> {
        match within(job, text) {
            Some(selector) => Ok(selector),
            None => match text.parse::<TaskSelector>()? {
                selector if selector.task.job == job => Ok(selector),
                other => Err(format!("{} is not a task of {job}", other.task)),
            },
        }
    }

    /// Returns the selected attempt, or the last one of the task.
    pub fn attempt_among(
        &self,
        attempts: impl IntoIterator<Item = AttemptId>,
    ) -> Option<AttemptId> {
        let of_task = attempts
            .into_iter()
            .filter(|attempt| attempt.task == self.task);
        of_task
            .filter(|attempt| self.attempt.is_none_or(|number| number == attempt.number))
            .max()
    }
}

/// A task or attempt on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskName {
    Whole(TaskSelector),
    /// `m_0003` of the job submitted last, or of the job of a name.
    OfJob(JobSelector, String),
}

impl FromStr for TaskName {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskName, String> {
        let whole = text.parse::<TaskSelector>();
        if let Ok(selector) = whole {
            return Ok(TaskName::Whole(selector));
        }
        // A name may contain `_m_` itself.
        let begin = text.rfind("_m_").max(text.rfind("_r_"));
        if let Some(begin) = begin {
            let rest = &text[begin + 1..];
            let job = text[..begin].parse();
            // Any job will do to check the syntax.
            let is_task = within(JobId(1), rest).is_some();
            if let Ok(job @ (JobSelector::Last | JobSelector::Named(_))) = job
                && is_task
            {
                return Ok(TaskName::OfJob(job, rest.to_owned()));
            }
        }
        whole.map(TaskName::Whole)
    }
}

/// Returns the named tasks.
pub fn find_tasks(names: &[TaskName], client: &mut ClusterClient) -> Result<Vec<TaskSelector>> {
    let mut found = Vec::new();
    for name in names {
        match name {
            TaskName::Whole(selector) => found.push(*selector),
            TaskName::OfJob(job, rest) => {
                let job = select_one(job, "a task", client)?;
                found.push(TaskSelector::of_job(job, rest).map_err(anyhow::Error::msg)?);
            }
        }
    }
    Ok(found)
}

/// Finds a worker by number (`worker_0001`, `1`) or name.
pub fn find_worker(text: &str, workers: &[WorkerSummary]) -> Result<WorkerId> {
    let named: Vec<_> = workers
        .iter()
        .filter(|worker| worker.name == text)
        .collect();
    // A restarted worker keeps its name and gets a new number.
    if let Some(latest) = named.iter().map(|worker| worker.worker).max() {
        return Ok(latest);
    }
    let number = number(text.strip_prefix("worker_").unwrap_or(text)).map(WorkerId);
    match number.filter(|number| workers.iter().any(|worker| worker.worker == *number)) {
        Some(worker) => Ok(worker),
        None => Err(usage(anyhow!("no worker {text}; see: nap worker list"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::status;

    #[test]
    fn job_selector_reads_numbers_ranges_words_and_names() {
        let one = |number| Ok(JobSelector::One(JobId(number)));
        assert_eq!("job_0007".parse(), one(7));
        assert_eq!("7".parse(), one(7));
        assert_eq!("3-7".parse(), Ok(JobSelector::Range(JobId(3), JobId(7))));
        assert_eq!(
            "job_0003-job_0007".parse(),
            Ok(JobSelector::Range(JobId(3), JobId(7)))
        );
        assert_eq!(
            ("last".parse(), "all".parse()),
            (Ok(JobSelector::Last), Ok(JobSelector::All))
        );
        for name in [
            "wordcount",
            "hourly billing",
            "2026-09-21",
            "7.1",
            "job",
            "größe",
            "last-week",
            "3-",
        ] {
            assert_eq!(name.parse(), Ok(JobSelector::Named(name.to_owned())));
        }
        for text in [
            "",
            "job_",
            "0",
            "job_0007_m_0001",
            "7_m_1.2",
            "m_0003",
            "99999999999",
            "a\tb",
            "a\u{202e}b",
        ] {
            let error = text.parse::<JobSelector>().expect_err(text);
            assert!(
                error.contains("expected job_0007, 7, 3-7, last, all or the name of a job"),
                "{error}"
            );
        }
        let reversed = Err("invalid range \"7-3\": the first job must come first".to_owned());
        assert_eq!("7-3".parse::<JobSelector>(), reversed);
    }

    fn known(number: u32, name: &str, phase: JobPhase) -> KnownJob {
        KnownJob {
            job: JobId(number),
            name: name.to_owned(),
            phase,
        }
    }

    #[test]
    fn selectors_choose_among_existing_jobs() {
        let existing = [9, 4, 5].map(|number| known(number, "index", JobPhase::Running));
        let select = |texts: &[&str]| {
            let selectors: Vec<JobSelector> = texts
                .iter()
                .map(|text| text.parse().expect("a selector"))
                .collect();
            let mut failures = Failures::default();
            let selected =
                JobSelector::select(&selectors, &existing, &mut failures).expect("it has jobs");
            failures
                .finish()
                .map(|()| selected)
                .map_err(|error| status(&error))
        };
        assert_eq!(select(&["last"]), Ok(vec![JobId(9)]));
        assert_eq!(select(&["all"]), Ok(vec![JobId(4), JobId(5), JobId(9)]));
        assert_eq!(
            select(&["5-100", "4", "5"]),
            Ok(vec![JobId(4), JobId(5), JobId(9)])
        );
        assert_eq!(select(&["77"]), Ok(vec![JobId(77)]));
        assert_eq!(select(&["1-3", "4"]), Err(2));
        assert_eq!(select(&["nothing", "4"]), Err(2));
        let range = JobSelector::Range(JobId(1), JobId(3));
        let error = range.among(&existing).expect_err("none").to_string();
        assert_eq!(error, "no job from job_0001 to job_0003; see: nap job list");
        let error = JobSelector::Last.among(&[]).expect_err("none").to_string();
        assert!(error.starts_with("no job yet"), "{error}");
    }

    #[test]
    fn name_selects_the_only_unfinished_job_or_else_the_only_ended_one() {
        let existing = [
            known(1, "index", JobPhase::Succeeded),
            known(2, "index", JobPhase::Running),
            known(3, "billing", JobPhase::Failed),
            known(4, "report", JobPhase::Waiting),
            known(5, "report", JobPhase::Held),
            known(6, "report", JobPhase::Killed),
            known(7, "7.1", JobPhase::Succeeded),
            known(8, "7.1", JobPhase::Failed),
        ];
        let among = |name: &str| {
            let selector: JobSelector = name.parse().expect("a name");
            selector
                .among(&existing)
                .map_err(|error| (status(&error), error.to_string()))
        };
        assert_eq!(among("index"), Ok(vec![JobId(2)]));
        assert_eq!(among("billing"), Ok(vec![JobId(3)]));
        let several = "2 jobs have the name \"report\": job_0005 (held), job_0004 (waiting); give the ID of one";
        assert_eq!(among("report"), Err((2, several.to_owned())));
        let ended = "2 jobs have the name \"7.1\": job_0008 (failed), job_0007 (succeeded); give the ID of one";
        assert_eq!(among("7.1"), Err((2, ended.to_owned())));
        let absent = "no job has the ID or name \"Index\"; see: nap job list";
        assert_eq!(among("Index"), Err((2, absent.to_owned())));
    }

    #[test]
    fn error_for_a_name_lists_ten_jobs() {
        let existing: Vec<KnownJob> = (1..=12)
            .map(|number| known(number, "index", JobPhase::Running))
            .collect();
        let selector = JobSelector::Named("index".to_owned());
        let error = selector
            .among(&existing)
            .expect_err("there are several")
            .to_string();
        assert!(
            error.starts_with("12 jobs have the name \"index\": job_0012 (running), "),
            "{error}"
        );
        assert!(
            error.ends_with("job_0003 (running), and 2 more; give the ID of one"),
            "{error}"
        );
    }

    #[test]
    fn task_selector_reads_printed_names() {
        let task = TaskId {
            job: JobId(7),
            kind: TaskKind::Reduce,
            index: 3,
        };
        let parsed = |text: &str| text.parse::<TaskSelector>();
        assert_eq!(
            parsed(&task.to_string()),
            Ok(TaskSelector {
                task,
                attempt: None
            })
        );
        assert_eq!(
            parsed("job_0007_r_0003.2"),
            Ok(TaskSelector {
                task,
                attempt: Some(2)
            })
        );
        assert_eq!(
            parsed("7_r_3.2"),
            Ok(TaskSelector {
                task,
                attempt: Some(2)
            })
        );
        for text in [
            "",
            "job_0007",
            "job_0007_x_0001",
            "job_0007_m_",
            "job_0007_m_0001.",
            "job_0007_m_0001.0",
        ] {
            assert!(
                parsed(text)
                    .expect_err(text)
                    .contains("expected job_0007_m_0003")
            );
        }
        assert_eq!(
            TaskSelector::of_job(JobId(7), "r_0003.2"),
            Ok(TaskSelector {
                task,
                attempt: Some(2)
            })
        );
        assert_eq!(
            TaskSelector::of_job(JobId(7), "job_0007_r_3"),
            Ok(TaskSelector {
                task,
                attempt: None
            })
        );
        assert_eq!(
            "7_r_3".parse(),
            Ok(TaskName::Whole(TaskSelector {
                task,
                attempt: None
            }))
        );
        let of_job = |job: &str, task: &str| {
            Ok(TaskName::OfJob(
                job.parse().expect("a job"),
                task.to_owned(),
            ))
        };
        assert_eq!("last_r_3.1".parse(), of_job("last", "r_3.1"));
        assert_eq!(
            "hourly_m_billing_m_0003".parse(),
            of_job("hourly_m_billing", "m_0003")
        );
        for text in [
            "last_x_3",
            "last",
            "all_m_3",
            "3-7_m_3",
            "_m_3",
            "index_m_",
            "index_m_3.0",
        ] {
            assert!(text.parse::<TaskName>().is_err(), "{text}");
        }
        let other = TaskSelector::of_job(JobId(8), "job_0007_r_0003");
        assert_eq!(
            other,
            Err("job_0007_r_0003 is not a task of job_0008".to_owned())
        );
        let attempts = [1, 3, 2].map(|number| AttemptId { task, number });
        let selector = TaskSelector {
            task,
            attempt: None,
        };
        assert_eq!(
            selector.attempt_among(attempts),
            Some(AttemptId { task, number: 3 })
        );
        assert_eq!(
            TaskSelector {
                task,
                attempt: Some(4)
            }
            .attempt_among(attempts),
            None
        );
    }
}
