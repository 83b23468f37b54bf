//! Names of jobs, tasks, attempts and workers on command lines: `job_0007`, `7`, `last`, `all`, `3-7`,
//! `job_0007_m_0003.1` and so on.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use napreduce_cluster::ClusterClient;
use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use napreduce_protocol::WorkerSummary;
use napreduce_protocol::requests::ListJobs;

use crate::failure::{Failures, usage};

/// Maximum jobs of `all`.
pub const JOBS_MAX: u32 = 100_000;

/// A selection of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSelector {
    One(JobId),
    /// Inclusive.
    Range(JobId, JobId),
    Last,
    All,
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
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

impl FromStr for JobSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<JobSelector, String> {
        let wrong = || format!("invalid job {text:?}: expected job_0007, 7, 3-7, last or all");
        match text {
            "last" => return Ok(JobSelector::Last),
            "all" => return Ok(JobSelector::All),
            _ => {}
        }
        match text.split_once('-') {
            None => job(text).map(JobSelector::One).ok_or_else(wrong),
            Some((from, to)) => match (job(from), job(to)) {
                (Some(from), Some(to)) if from <= to => Ok(JobSelector::Range(from, to)),
                (Some(_), Some(_)) => Err(format!("invalid range {text:?}: the first job must come first")),
                _ => Err(wrong()),
            },
        }
    }
}

impl JobSelector {
    /// Returns the selected jobs among `existing`, in order. A single job need not exist; the coordinator rejects
    /// it.
    pub fn among(self, existing: &[JobId]) -> Result<Vec<JobId>> {
        let mut existing = existing.to_vec();
        existing.sort();
        match self {
            JobSelector::One(job) => Ok(vec![job]),
            JobSelector::Range(from, to) => {
                existing.retain(|job| (from..=to).contains(job));
                if existing.is_empty() {
                    Err(usage(anyhow!("no job from {from} to {to}; see: nap job list")))
                } else {
                    Ok(existing)
                }
            }
            JobSelector::Last => match existing.last() {
                Some(last) => Ok(vec![*last]),
                None => Err(usage(anyhow!(
                    "no job yet; submit one with: PROGRAM INPUT --output DIR --cluster ..."
                ))),
            },
            JobSelector::All => Ok(existing),
        }
    }

    /// Returns the jobs among `existing` that any of the selectors matches, in order and each once.
    pub fn select(
        selectors: &[JobSelector],
        existing: &[JobId],
        failures: &mut Failures,
    ) -> Result<Vec<JobId>> {
        let mut selected = Vec::new();
        for selector in selectors {
            selected.extend(failures.check(selector.among(existing))?.unwrap_or_default());
        }
        selected.sort();
        selected.dedup();
        Ok(selected)
    }

    /// Returns the one selected job among `existing`. Fails for several; `what` is the command in the error.
    pub fn one_among(self, existing: &[JobId], what: &str) -> Result<JobId> {
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
pub fn select_one(selector: JobSelector, what: &str, client: &mut ClusterClient) -> Result<JobId> {
    selector.one_among(&existing(&[selector], client)?, what)
}

/// Lists the jobs of the cluster if a selector depends on them.
fn existing(selectors: &[JobSelector], client: &mut ClusterClient) -> Result<Vec<JobId>> {
    if selectors.iter().any(JobSelector::needs_listing) {
        Ok(client.ask(ListJobs { limit: JOBS_MAX })?.iter().map(|job| job.job).collect())
    } else {
        Ok(Vec::new())
    }
}

impl FromStr for TaskSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskSelector, String> {
        let wrong = || {
            format!(
                "invalid task {text:?}: expected job_0007_m_0003, job_0007_m_0003.1 for one attempt, or last_m_0003 for the last job"
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
    Some(TaskSelector { task: TaskId { job, kind, index: number(index)? }, attempt })
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
    pub fn attempt_among(&self, attempts: impl IntoIterator<Item = AttemptId>) -> Option<AttemptId> {
        let of_task = attempts.into_iter().filter(|attempt| attempt.task == self.task);
        of_task.filter(|attempt| self.attempt.is_none_or(|number| number == attempt.number)).max()
    }
}

/// A task or attempt on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskName {
    Whole(TaskSelector),
    /// `m_0003` of the job submitted last.
    OfLast(String),
}

impl FromStr for TaskName {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskName, String> {
        match text.strip_prefix("last_") {
            // Any job will do to check the syntax.
            Some(rest) if within(JobId(1), rest).is_some() => Ok(TaskName::OfLast(rest.to_owned())),
            _ => text.parse().map(TaskName::Whole),
        }
    }
}

/// Returns the named tasks.
pub fn find_tasks(names: &[TaskName], client: &mut ClusterClient) -> Result<Vec<TaskSelector>> {
    let mut found = Vec::new();
    for name in names {
        match name {
            TaskName::Whole(selector) => found.push(*selector),
            TaskName::OfLast(rest) => {
                let job = select_one(JobSelector::Last, "a task of the last job", client)?;
                found.push(TaskSelector::of_job(job, rest).map_err(anyhow::Error::msg)?);
            }
        }
    }
    Ok(found)
}

/// Finds a worker by number (`worker_0001`, `1`) or name.
pub fn find_worker(text: &str, workers: &[WorkerSummary]) -> Result<WorkerId> {
    let named: Vec<_> = workers.iter().filter(|worker| worker.name == text).collect();
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
    fn job_selector_reads_numbers_ranges_and_words() {
        let one = |number| Ok(JobSelector::One(JobId(number)));
        assert_eq!("job_0007".parse(), one(7));
        assert_eq!("7".parse(), one(7));
        assert_eq!("3-7".parse(), Ok(JobSelector::Range(JobId(3), JobId(7))));
        assert_eq!("job_0003-job_0007".parse(), Ok(JobSelector::Range(JobId(3), JobId(7))));
        assert_eq!(("last".parse(), "all".parse()), (Ok(JobSelector::Last), Ok(JobSelector::All)));
        for text in ["", "job_", "0", "-7", "3-", "job", "7.1", "+7", "job_0007_m_0001", "99999999999"] {
            let error = text.parse::<JobSelector>().expect_err(text);
            assert!(error.contains("expected job_0007, 7, 3-7, last or all"), "{error}");
        }
        let reversed = Err("invalid range \"7-3\": the first job must come first".to_owned());
        assert_eq!("7-3".parse::<JobSelector>(), reversed);
    }

    #[test]
    fn selectors_choose_among_existing_jobs() {
        let existing = [JobId(9), JobId(4), JobId(5)];
        let select = |texts: &[&str]| {
            let selectors: Vec<JobSelector> =
                texts.iter().map(|text| text.parse().expect("a selector")).collect();
            let mut failures = Failures::default();
            let selected = JobSelector::select(&selectors, &existing, &mut failures).expect("it has jobs");
            failures.finish().map(|()| selected).map_err(|error| status(&error))
        };
        assert_eq!(select(&["last"]), Ok(vec![JobId(9)]));
        assert_eq!(select(&["all"]), Ok(vec![JobId(4), JobId(5), JobId(9)]));
        assert_eq!(select(&["5-100", "4", "5"]), Ok(vec![JobId(4), JobId(5), JobId(9)]));
        assert_eq!(select(&["77"]), Ok(vec![JobId(77)]));
        assert_eq!(select(&["1-3", "4"]), Err(2));
        let range = JobSelector::Range(JobId(1), JobId(3));
        let error = range.among(&existing).expect_err("none").to_string();
        assert_eq!(error, "no job from job_0001 to job_0003; see: nap job list");
        let error = JobSelector::Last.among(&[]).expect_err("none").to_string();
        assert!(error.starts_with("no job yet"), "{error}");
    }

    #[test]
    fn task_selector_reads_printed_names() {
        let task = TaskId { job: JobId(7), kind: TaskKind::Reduce, index: 3 };
        let parsed = |text: &str| text.parse::<TaskSelector>();
        assert_eq!(parsed(&task.to_string()), Ok(TaskSelector { task, attempt: None }));
        assert_eq!(parsed("job_0007_r_0003.2"), Ok(TaskSelector { task, attempt: Some(2) }));
        assert_eq!(parsed("7_r_3.2"), Ok(TaskSelector { task, attempt: Some(2) }));
        for text in
            ["", "job_0007", "job_0007_x_0001", "job_0007_m_", "job_0007_m_0001.", "job_0007_m_0001.0"]
        {
            assert!(parsed(text).expect_err(text).contains("expected job_0007_m_0003"));
        }
        assert_eq!(TaskSelector::of_job(JobId(7), "r_0003.2"), Ok(TaskSelector { task, attempt: Some(2) }));
        assert_eq!(TaskSelector::of_job(JobId(7), "job_0007_r_3"), Ok(TaskSelector { task, attempt: None }));
        assert_eq!("7_r_3".parse(), Ok(TaskName::Whole(TaskSelector { task, attempt: None })));
        assert_eq!("last_r_3.1".parse(), Ok(TaskName::OfLast("r_3.1".to_owned())));
        assert!("last_x_3".parse::<TaskName>().is_err() && "last".parse::<TaskName>().is_err());
        let other = TaskSelector::of_job(JobId(8), "job_0007_r_0003");
        assert_eq!(other, Err("job_0007_r_0003 is not a task of job_0008".to_owned()));
        let attempts = [1, 3, 2].map(|number| AttemptId { task, number });
        let selector = TaskSelector { task, attempt: None };
        assert_eq!(selector.attempt_among(attempts), Some(AttemptId { task, number: 3 }));
        assert_eq!(TaskSelector { task, attempt: Some(4) }.attempt_among(attempts), None);
    }
}
