//! The search of jobs, tasks, workers, users and queues by part of an ID or a name.

use std::collections::BTreeMap;
use std::ops::Range;

use napreduce_engine::{TaskId, TaskKind};
use napreduce_protocol::{JobSummary, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// IDs print the index of a task with at least this many digits, and at most ten.
const INDEX_DIGITS: u32 = 4;
const INDEX_DIGITS_MAX: u32 = 10;

/// The objects that a text matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchAnswer {
    /// The best match first: equal, then beginning with the text, then containing it.
    pub items: Vec<FoundAnswer>,
    /// Number of matches.
    pub total: usize,
    /// Recordings that cannot be read.
    pub remarks: Vec<String>,
}

/// An object that matches a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundAnswer {
    /// `task`, `job`, `worker`, `queue` or `user`.
    pub kind: &'static str,
    /// An ID, or the name of a queue or user.
    pub name: String,
    /// A job's name, user, queue and state; a worker's name and state; a number of jobs.
    pub about: String,
    /// The recording that has it; `null` if the server shows a single cluster or history.
    pub recording: Option<String>,
}

/// The objects of a cluster or history.
#[derive(Debug)]
pub struct Searched<'all> {
    /// Its name, if the server shows several.
    pub recording: Option<&'all str>,
    pub jobs: &'all [JobSummary],
    pub workers: &'all [WorkerSummary],
    /// Names of queues, besides those of the jobs.
    pub queues: Vec<&'all str>,
}

/// Whether a text equals a name, begins it, or is contained in it; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Equal,
    Begins,
    Contains,
}

impl SearchAnswer {
    /// Finds at most `limit` objects in these clusters or histories, of equal matches those of the first one first; an empty
    /// text finds nothing.
    pub fn of(text: &str, all: &[Searched<'_>], limit: usize) -> SearchAnswer {
        let text = text.trim().to_lowercase();
        let mut matches = Matches {
            found: Vec::new(),
            total: 0,
            limit,
        };
        if !text.is_empty() {
            for searched in all {
                matches.search(&text, searched);
            }
        }
        // Stable: within a rank the recordings follow each other, in each of them tasks, then jobs as they are listed.
        matches.found.sort_by_key(|(best, ..)| *best);
        let items = matches.found.iter().take(limit);
        let items = items
            .map(|(_, recording, found)| found.answer(*recording))
            .collect();
        SearchAnswer {
            items,
            total: matches.total,
            remarks: Vec::new(),
        }
    }
}

/// The matches so far. Of tasks, which may be many, only those are collected that may be shown.
struct Matches<'all> {
    found: Vec<(Match, Option<&'all str>, Found<'all>)>,
    total: usize,
    limit: usize,
}

impl<'all> Matches<'all> {
    fn search(&mut self, text: &str, searched: &'all Searched<'all>) {
        let recording = searched.recording;
        if let Some(tasks) = TaskText::parse(text) {
            for job in searched.jobs {
                self.add_tasks(&tasks, job, recording);
            }
        }
        for job in searched.jobs {
            let best = best_of(
                text,
                &[&job.job.to_string(), &job.job.0.to_string(), &job.name],
            );
            self.add(best, recording, Found::Job(job));
        }
        for worker in searched.workers {
            let best = best_of(
                text,
                &[&worker.worker.to_string(), &worker.name, &worker.host],
            );
            self.add(best, recording, Found::Worker(worker));
        }
        for (queue, jobs) in counted(searched.queues.iter().copied(), searched.jobs, |job| {
            &job.queue
        }) {
            self.add(
                best_of(text, &[queue]),
                recording,
                Found::Queue(queue, jobs),
            );
        }
        for (user, jobs) in counted(std::iter::empty(), searched.jobs, |job| &job.user) {
            self.add(best_of(text, &[user]), recording, Found::User(user, jobs));
        }
    }

    fn add(&mut self, best: Option<Match>, recording: Option<&'all str>, found: Found<'all>) {
        if let Some(best) = best {
            self.total += 1;
            self.found.push((best, recording, found));
        }
    }

    fn add_tasks(
        &mut self,
        text: &TaskText<'_>,
        job: &'all JobSummary,
        recording: Option<&'all str>,
    ) {
        let Some(of_job) = text.best_of_job(job) else {
            return;
        };
        let tasks = match text.kind {
            TaskKind::Map => job.progress.map.tasks,
            TaskKind::Reduce => job.progress.reduce.tasks,
        };
        let task = |index| {
            Found::Task(
                TaskId {
                    job: job.job,
                    kind: text.kind,
                    index,
                },
                job,
            )
        };
        if text.index < u64::from(tasks) {
            let best = if of_job == Match::Equal {
                Match::Equal
            } else {
                Match::Begins
            };
            self.add(Some(best), recording, task(text.index as u32));
        }
        let others = text.longer(tasks);
        self.total += others.iter().map(ExactSizeIterator::len).sum::<usize>();
        let shown = others.into_iter().flatten().take(self.limit);
        self.found
            .extend(shown.map(|index| (Match::Contains, recording, task(index))));
    }
}

enum Found<'all> {
    Task(TaskId, &'all JobSummary),
    Job(&'all JobSummary),
    Worker(&'all WorkerSummary),
    Queue(&'all str, u32),
    User(&'all str, u32),
}

impl Found<'_> {
    fn answer(&self, recording: Option<&str>) -> FoundAnswer {
        let of = |kind, name: String, about: String| FoundAnswer {
            kind,
            name,
            about,
            recording: recording.map(str::to_owned),
        };
        let jobs = |jobs: u32| {
            if jobs == 1 {
                "1 job".to_owned()
            } else {
                format!("{jobs} jobs")
            }
        };
        match self {
            Found::Task(task, job) => of(
                "task",
                task.to_string(),
                format!("{} of {} {}", task.kind, task.job, job.name),
            ),
            Found::Job(job) => {
                let JobSummary {
                    name,
                    user,
                    queue,
                    phase,
                    ..
                } = job;
                of(
                    "job",
                    job.job.to_string(),
                    format!("{name}, {user}, {queue}, {}", phase.in_words()),
                )
            }
            Found::Worker(worker) => of(
                "worker",
                worker.worker.to_string(),
                format!("{}, {}", worker.name, worker.state),
            ),
            Found::Queue(queue, count) => of("queue", (*queue).to_owned(), jobs(*count)),
            Found::User(user, count) => of("user", (*user).to_owned(), jobs(*count)),
        }
    }
}

/// A lowercase text that names tasks or an attempt of one: `m_2077`, `07_r_3`, `wordcount m_12`, `job_0007_m_0003.2`.
struct TaskText<'text> {
    /// Part of the ID or name of the job; empty for any job.
    job: &'text str,
    kind: TaskKind,
    /// The first digits of the index, and the number that they are.
    digits: &'text str,
    index: u64,
    /// Whether an attempt follows, so that all digits are there.
    is_whole: bool,
}

impl TaskText<'_> {
    fn parse(text: &str) -> Option<TaskText<'_>> {
        let (head, number) = text.rsplit_once('_')?;
        let (job, kind) = match (head.strip_suffix('m'), head.strip_suffix('r')) {
            (Some(job), _) => (job, TaskKind::Map),
            (_, Some(job)) => (job, TaskKind::Reduce),
            _ => return None,
        };
        // The name `program_12` contains no task.
        if job.ends_with(char::is_alphanumeric) {
            return None;
        }
        let (digits, attempt) = number
            .split_once('.')
            .map_or((number, None), |(index, attempt)| (index, Some(attempt)));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(digits) || !attempt.is_none_or(is_number) {
            return None;
        }
        let job = job.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        let index = digits.parse().ok()?;
        Some(TaskText {
            job,
            kind,
            digits,
            index,
            is_whole: attempt.is_some(),
        })
    }

    fn best_of_job(&self, job: &JobSummary) -> Option<Match> {
        if self.job.is_empty() {
            return Some(Match::Begins);
        }
        best_of(
            self.job,
            &[&job.job.to_string(), &job.job.0.to_string(), &job.name],
        )
    }

    /// Returns the indices below `tasks` that begin with the digits and have more of them.
    fn longer(&self, tasks: u32) -> Vec<Range<u32>> {
        if self.is_whole {
            return Vec::new();
        }
        let known = self.digits.len() as u32;
        let mut longer = Vec::new();
        for width in INDEX_DIGITS.max(known + 1)..=INDEX_DIGITS_MAX {
            let scale = 10_u64.pow(width.saturating_sub(known).min(INDEX_DIGITS_MAX));
            let first = self.index.saturating_mul(scale);
            // An index of more than four digits has no leading zeros.
            if width > INDEX_DIGITS && first < 10_u64.pow(width - 1) {
                continue;
            }
            let end = first.saturating_add(scale).min(u64::from(tasks));
            let begin = if first == self.index {
                first + 1
            } else {
                first
            };
            if begin < end {
                longer.push(begin as u32..end as u32);
            }
        }
        longer
    }
}

/// The best match of a lowercase text in the names of an object.
fn best_of(text: &str, names: &[&str]) -> Option<Match> {
    let of = |name: &&str| {
        let name = name.to_lowercase();
        match name.find(text)? {
            0 if name.len() == text.len() => Some(Match::Equal),
            0 => Some(Match::Begins),
            _ => Some(Match::Contains),
        }
    };
    names.iter().filter_map(of).min()
}

/// Names with their numbers of jobs.
fn counted<'all>(
    names: impl Iterator<Item = &'all str>,
    jobs: &'all [JobSummary],
    name: fn(&JobSummary) -> &String,
) -> BTreeMap<&'all str, u32> {
    let mut counts: BTreeMap<&str, u32> = names.map(|name| (name, 0)).collect();
    for job in jobs {
        *counts.entry(name(job)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{JobPhase, JobProgress, PhaseProgress, WorkerPhase};

    use super::super::samples::{job, summary, worker};
    use super::*;

    fn answer(text: &str, limit: usize) -> SearchAnswer {
        let nightly = JobSummary {
            name: "nightly index".to_owned(),
            queue: "etl".to_owned(),
            ..summary()
        };
        let other = JobSummary {
            user: "nils".to_owned(),
            ..job(17, JobPhase::Running, 1, 0)
        };
        let jobs = [nightly, other];
        let workers = [worker(2, WorkerPhase::Up, 0)];
        let queues = vec!["idle", "etl"];
        let searched = Searched {
            recording: None,
            jobs: &jobs,
            workers: &workers,
            queues,
        };
        SearchAnswer::of(text, &[searched], limit)
    }

    fn found(text: &str, limit: usize) -> (Vec<(&'static str, String)>, usize) {
        let answer = answer(text, limit);
        (
            answer
                .items
                .into_iter()
                .map(|item| (item.kind, item.name))
                .collect(),
            answer.total,
        )
    }

    fn one(kind: &'static str, name: &str) -> (Vec<(&'static str, String)>, usize) {
        (vec![(kind, name.to_owned())], 1)
    }

    /// A job with 12,000 maps and 3 reduces.
    fn large(number: u32, name: &str) -> JobSummary {
        let of = |tasks| PhaseProgress {
            tasks,
            ..PhaseProgress::default()
        };
        let progress = JobProgress {
            map: of(12_000),
            reduce: of(3),
            ..JobProgress::default()
        };
        JobSummary {
            name: name.to_owned(),
            progress,
            ..job(number, JobPhase::Running, 1, 0)
        }
    }

    fn tasks(text: &str, jobs: &[JobSummary], limit: usize) -> (Vec<String>, usize) {
        let searched = Searched {
            recording: None,
            jobs,
            workers: &[],
            queues: Vec::new(),
        };
        let answer = SearchAnswer::of(text, &[searched], limit);
        (
            answer.items.into_iter().map(|item| item.name).collect(),
            answer.total,
        )
    }

    #[test]
    fn search_finds_each_kind_of_object() {
        assert_eq!(found("Nightly", 9), one("job", "job_0007"));
        assert_eq!(found("job_0017", 9), one("job", "job_0017"));
        assert_eq!(
            found("job_0007_m_0002.1", 9),
            one("task", "job_0007_m_0002")
        );
        assert_eq!(found("idle", 9), one("queue", "idle"));
        assert_eq!(found("nils", 9), one("user", "nils"));
        assert_eq!(found("W2", 9), one("worker", "worker_0002"));
        assert_eq!(
            found("job_0007_m_9999", 9),
            (Vec::new(), 0),
            "the job has no such task"
        );
        assert_eq!(found("  ", 9), (Vec::new(), 0));
        assert_eq!(
            answer("job_0007_m_0002", 9).items[0].about,
            "map of job_0007 nightly index"
        );
    }

    #[test]
    fn best_match_comes_first() {
        let of = |kind, name: &str| (kind, name.to_owned());
        // The number of a job, then one that only contains it.
        assert_eq!(
            found("7", 9),
            (vec![of("job", "job_0007"), of("job", "job_0017")], 2)
        );
        assert_eq!(found("ni", 1), (vec![of("job", "job_0007")], 2));
    }

    #[test]
    fn search_finds_tasks_by_part_of_their_id() {
        let jobs = [large(8, "tera sort"), large(7, "program_12")];
        let first = |text: &str| tasks(text, &jobs, 2);
        let both = |index: &str| vec![format!("job_0008_{index}"), format!("job_0007_{index}")];
        assert_eq!(first("m_2077"), (both("m_2077"), 2));
        assert_eq!(first("M_2077.1"), (both("m_2077"), 2));
        // The index itself first, then those that begin with the digits: 1000 to 1199, 10000 to 11999.
        assert_eq!(first("m_11"), (both("m_0011"), 2 * (1 + 100 + 1_000)));
        assert_eq!(first("m_0"), (both("m_0000"), 2 * 1_000));
        assert_eq!(first("m_00"), (both("m_0000"), 2 * 100));
        assert_eq!(first("m_1199"), (both("m_1199"), 2 * 11));
        assert_eq!(first("r_2"), (both("r_0002"), 2));
        assert_eq!(first("r_3"), (Vec::new(), 0));
        // With part of the ID or name of the job.
        assert_eq!(first("7_m_0003"), (vec!["job_0007_m_0003".to_owned()], 1));
        assert_eq!(
            first("job_0008_m_0003.12"),
            (vec!["job_0008_m_0003".to_owned()], 1)
        );
        assert_eq!(first("tera r_1"), (vec!["job_0008_r_0001".to_owned()], 1));
        assert_eq!(
            first("program_12"),
            (vec!["job_0007".to_owned()], 1),
            "no map with the index 12"
        );
        for text in ["m_x", "m_1.x", "m_99999999999999999999", "m_12000"] {
            assert_eq!(first(text), (Vec::new(), 0), "{text}");
        }
    }

    #[test]
    fn search_covers_all_recordings() {
        let jobs = [large(8, "tera sort")];
        let of = |recording| Searched {
            recording: Some(recording),
            jobs: &jobs,
            workers: &[],
            queues: Vec::new(),
        };
        let all = [of("kill"), of("suspend")];
        let answer = SearchAnswer::of("tera", &all, 9);
        let found: Vec<_> = answer
            .items
            .iter()
            .map(|item| item.recording.as_deref())
            .collect();
        assert_eq!(
            (found, answer.total),
            (vec![Some("kill"), Some("suspend")], 2)
        );
        let tasks = SearchAnswer::of("m_0003", &all, 1);
        assert_eq!(
            (tasks.items[0].recording.as_deref(), tasks.total),
            (Some("kill"), 2)
        );
    }
}
