//! The search of jobs, tasks, workers, users and queues by part of an ID or a name.

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_protocol::{JobSummary, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// The objects that a text matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchAnswer {
    /// The best match first: equal, then beginning with the text, then containing it.
    pub items: Vec<FoundAnswer>,
    /// Number of matches.
    pub total: usize,
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
}

/// The objects of a cluster or history.
#[derive(Debug)]
pub struct Searched<'all> {
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
    /// Finds at most `limit` objects; an empty text finds nothing.
    pub fn of(text: &str, searched: &Searched<'_>, limit: usize) -> SearchAnswer {
        let text = text.trim().to_lowercase();
        if text.is_empty() {
            return SearchAnswer { items: Vec::new(), total: 0 };
        }
        let mut found: Vec<(Match, Found<'_>)> = Vec::new();
        found.extend(task_of(&text, searched.jobs).map(|task| (Match::Equal, Found::Task(task))));
        for job in searched.jobs {
            let best = best_of(&text, &[&job.job.to_string(), &job.job.0.to_string(), &job.name]);
            found.extend(best.map(|best| (best, Found::Job(job))));
        }
        for worker in searched.workers {
            let best = best_of(&text, &[&worker.worker.to_string(), &worker.name, &worker.host]);
            found.extend(best.map(|best| (best, Found::Worker(worker))));
        }
        for (queue, jobs) in counted(searched.queues.iter().copied(), searched.jobs, |job| &job.queue) {
            found.extend(best_of(&text, &[queue]).map(|best| (best, Found::Queue(queue, jobs))));
        }
        for (user, jobs) in counted(std::iter::empty(), searched.jobs, |job| &job.user) {
            found.extend(best_of(&text, &[user]).map(|best| (best, Found::User(user, jobs))));
        }
        // Stable: within a rank tasks come first, then jobs as they are listed.
        found.sort_by_key(|(best, _)| *best);
        let total = found.len();
        SearchAnswer { items: found.iter().take(limit).map(|(_, found)| found.answer()).collect(), total }
    }
}

enum Found<'all> {
    Task(TaskId),
    Job(&'all JobSummary),
    Worker(&'all WorkerSummary),
    Queue(&'all str, u32),
    User(&'all str, u32),
}

impl Found<'_> {
    fn answer(&self) -> FoundAnswer {
        let of = |kind, name: String, about: String| FoundAnswer { kind, name, about };
        let jobs = |jobs: u32| if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
        match self {
            Found::Task(task) => of("task", task.to_string(), format!("{} of {}", task.kind, task.job)),
            Found::Job(job) => {
                let JobSummary { name, user, queue, phase, .. } = job;
                of("job", job.job.to_string(), format!("{name}, {user}, {queue}, {}", phase.in_words()))
            }
            Found::Worker(worker) => {
                of("worker", worker.worker.to_string(), format!("{}, {}", worker.name, worker.state))
            }
            Found::Queue(queue, count) => of("queue", (*queue).to_owned(), jobs(*count)),
            Found::User(user, count) => of("user", (*user).to_owned(), jobs(*count)),
        }
    }
}

/// The task that a text names, by its own ID or that of an attempt, if its job has it.
fn task_of(text: &str, jobs: &[JobSummary]) -> Option<TaskId> {
    let task = text.parse::<TaskId>().ok().or_else(|| Some(text.parse::<AttemptId>().ok()?.task))?;
    let job = jobs.iter().find(|job| job.job == task.job)?;
    let tasks = match task.kind {
        TaskKind::Map => job.progress.map.tasks,
        TaskKind::Reduce => job.progress.reduce.tasks,
    };
    (task.index < tasks).then_some(task)
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
    use napreduce_protocol::{JobPhase, WorkerPhase};

    use super::super::samples::{job, summary, worker};
    use super::*;

    fn found(text: &str, limit: usize) -> (Vec<(&'static str, String)>, usize) {
        let nightly = JobSummary { name: "nightly index".to_owned(), queue: "etl".to_owned(), ..summary() };
        let other = JobSummary { user: "nils".to_owned(), ..job(17, JobPhase::Running, 1, 0) };
        let jobs = [nightly, other];
        let workers = [worker(2, WorkerPhase::Up, 0)];
        let searched = Searched { jobs: &jobs, workers: &workers, queues: vec!["idle", "etl"] };
        let answer = SearchAnswer::of(text, &searched, limit);
        (answer.items.into_iter().map(|item| (item.kind, item.name)).collect(), answer.total)
    }

    fn one(kind: &'static str, name: &str) -> (Vec<(&'static str, String)>, usize) {
        (vec![(kind, name.to_owned())], 1)
    }

    #[test]
    fn search_finds_each_kind_of_object() {
        assert_eq!(found("Nightly", 9), one("job", "job_0007"));
        assert_eq!(found("job_0017", 9), one("job", "job_0017"));
        assert_eq!(found("job_0007_m_0002.1", 9), one("task", "job_0007_m_0002"));
        assert_eq!(found("idle", 9), one("queue", "idle"));
        assert_eq!(found("nils", 9), one("user", "nils"));
        assert_eq!(found("W2", 9), one("worker", "worker_0002"));
        assert_eq!(found("job_0007_m_9999", 9), (Vec::new(), 0), "the job has no such task");
        assert_eq!(found("  ", 9), (Vec::new(), 0));
    }

    #[test]
    fn best_match_comes_first() {
        let of = |kind, name: &str| (kind, name.to_owned());
        // The number of a job, then one that only contains it.
        assert_eq!(found("7", 9), (vec![of("job", "job_0007"), of("job", "job_0017")], 2));
        assert_eq!(found("ni", 1), (vec![of("job", "job_0007")], 2));
    }
}
