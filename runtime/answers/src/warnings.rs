//! Warnings about workers and disks, with remedies.

use std::path::Path;

use napreduce_protocol::{ByteSize, JobSummary, SuspendedMemory, WorkerPhase, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// With less free memory a worker cannot run another task.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// With less free disk space a coordinator soon fails jobs.
const DISK_BYTES_MIN: u64 = 1 << 30;

/// A problem that needs attention.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarningAnswer {
    /// `worker-lost`, `worker-excluded`, `worker-failing`, `worker-remark`, `swap-in-use`, `memory-short`, `disk-short`
    /// or `history-incomplete`.
    pub code: &'static str,
    pub text: String,
    /// How to fix it.
    pub remedy: String,
    /// Set for warnings about workers, like the fields below.
    pub worker: Option<String>,
    pub name: Option<String>,
    /// As in the list of workers.
    pub state: Option<String>,
    /// Why it was lost, or how it left.
    pub reason: Option<String>,
}

impl WarningAnswer {
    /// All codes.
    pub const CODES: [&'static str; 8] = [
        "worker-lost",
        "worker-excluded",
        "worker-failing",
        "worker-remark",
        "swap-in-use",
        "memory-short",
        "disk-short",
        "history-incomplete",
    ];

    /// Returns the warnings about workers, in their order.
    pub fn of_workers(workers: &[WorkerSummary]) -> Vec<WarningAnswer> {
        let there = workers
            .iter()
            .filter(|worker| !is_replaced(worker, workers));
        there
            .flat_map(|worker| state_of(worker).into_iter().chain(memory_of(worker)))
            .collect()
    }

    /// Returns the warning about ended jobs that are missing from the history, if there are any.
    pub fn of_history(jobs: &[JobSummary]) -> Option<WarningAnswer> {
        let missing: Vec<&JobSummary> =
            jobs.iter().filter(|job| job.unrecorded.is_some()).collect();
        let newest = missing.iter().max_by_key(|job| job.job)?;
        let oldest = missing.iter().min_by_key(|job| job.job)?;
        let which = match missing.len() {
            1 => format!("{} has ended, but is", newest.job),
            count => format!(
                "{count} jobs ({} to {}) have ended, but are",
                oldest.job, newest.job
            ),
        };
        let why = newest.unrecorded.as_deref().unwrap_or_default();
        Some(WarningAnswer {
            code: "history-incomplete",
            text: format!("{which} missing from the history: {why}"),
            remedy: "make room there for later jobs: the details of these are lost, their outputs are not"
                .to_owned(),
            ..WarningAnswer::default()
        })
    }

    /// Checks the free space of a directory's disk; `None` if that is unknown.
    pub fn of_disk(directory: &Path) -> Option<WarningAnswer> {
        let disk = rustix::fs::statvfs(directory).ok()?;
        let of_blocks = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        disk_is_short(
            directory,
            of_blocks(disk.f_bavail),
            of_blocks(disk.f_blocks),
        )
    }
}

fn disk_is_short(directory: &Path, free: u64, whole: u64) -> Option<WarningAnswer> {
    (free < DISK_BYTES_MIN.min(whole / 20)).then(|| WarningAnswer {
        code: "disk-short",
        text: format!(
            "the disk of {} has {} left of {}",
            directory.display(),
            ByteSize::new(free).rounded(),
            ByteSize::new(whole).rounded()
        ),
        remedy: "free disk space: jobs fail when the coordinator cannot write".to_owned(),
        ..WarningAnswer::default()
    })
}

/// Whether a lost worker was replaced by one of the same name and host.
fn is_replaced(worker: &WorkerSummary, workers: &[WorkerSummary]) -> bool {
    let is_newer = |other: &WorkerSummary| {
        other.worker > worker.worker && other.name == worker.name && other.host == worker.host
    };
    worker.state == WorkerPhase::Lost && workers.iter().any(is_newer)
}

/// Warns about the state of a worker.
fn state_of(worker: &WorkerSummary) -> Option<WarningAnswer> {
    let (code, remedy) = match worker.state {
        WorkerPhase::Lost => (
            "worker-lost",
            "restart it on that machine: nap worker".to_owned(),
        ),
        WorkerPhase::Excluded => ("worker-excluded", remedy_of(worker)),
        WorkerPhase::Left => return None,
        _ if worker.failing.is_some() => ("worker-failing", remedy_of(worker)),
        _ if !worker.remarks.is_empty() => ("worker-remark", "see: nap worker list".to_owned()),
        _ => return None,
    };
    let why = worker.reason.as_deref().map(|reason| format!(": {reason}"));
    let why =
        why.or_else(|| (worker.state == WorkerPhase::Lost).then(|| ": unknown reason".to_owned()));
    Some(about(
        worker,
        code,
        remedy,
        format!("is {}{}", worker.state_in_words(), why.unwrap_or_default()),
    ))
}

/// Returns what to do about a worker that is excluded or on which attempts fail.
fn remedy_of(worker: &WorkerSummary) -> String {
    match worker.failing {
        Some(attempt) => {
            let job = attempt.task.job;
            format!(
                "see why they failed: nap job logs {job} --failed; take it out: nap worker drain {}",
                worker.worker
            )
        }
        None => format!(
            "it is used again when it reports the end of the shortage; take it out: nap worker drain {}",
            worker.worker
        ),
    }
}

/// Warns about the memory of suspended attempts.
fn memory_of(worker: &WorkerSummary) -> Option<WarningAnswer> {
    let suspended = &worker.memory.suspended;
    let swapped: u64 = suspended.iter().map(|held| held.swapped_bytes).sum();
    if swapped > 0 {
        let text = format!(
            "has {} of suspended attempts in swap",
            ByteSize::new(swapped).rounded()
        );
        let remedy = format!(
            "they resume more slowly; free memory by checkpointing: {}",
            checkpoint_of(suspended)
        );
        return Some(about(worker, "swap-in-use", remedy, text));
    }
    let free = worker.memory.free_bytes;
    // 0 is unknown.
    if suspended.is_empty() || free == 0 || free >= FREE_BYTES_MIN {
        return None;
    }
    let resident: u64 = suspended.iter().map(|held| held.resident_bytes).sum();
    let text = format!(
        "has {} of memory left and keeps {} suspended",
        ByteSize::new(free).rounded(),
        ByteSize::new(resident).rounded()
    );
    let remedy = format!("free memory by checkpointing: {}", checkpoint_of(suspended));
    Some(about(worker, "memory-short", remedy, text))
}

/// Returns the command that frees the most memory.
fn checkpoint_of(suspended: &[SuspendedMemory]) -> String {
    let largest = suspended
        .iter()
        .max_by_key(|held| held.resident_bytes + held.swapped_bytes);
    let attempt = largest.map_or_else(|| "ATTEMPT".to_owned(), |held| held.attempt.to_string());
    format!("nap task checkpoint {attempt}")
}

fn about(
    worker: &WorkerSummary,
    code: &'static str,
    remedy: String,
    text: String,
) -> WarningAnswer {
    WarningAnswer {
        code,
        text: format!("{} ({}) {text}", worker.worker, worker.name),
        remedy,
        worker: Some(worker.worker.to_string()),
        name: Some(worker.name.clone()),
        state: Some(worker.state_in_words()),
        reason: worker.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, worker};
    use super::*;
    use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
    use napreduce_protocol::JobPhase;

    fn warnings_of(workers: &[WorkerSummary]) -> Vec<(&'static str, String)> {
        let warnings = WarningAnswer::of_workers(workers);
        assert!(
            warnings
                .iter()
                .all(|one| WarningAnswer::CODES.contains(&one.code) && !one.remedy.is_empty())
        );
        warnings
            .into_iter()
            .map(|warning| (warning.code, warning.text))
            .collect()
    }

    #[test]
    fn each_worker_state_has_its_warning() {
        let mut remarked = worker(3, WorkerPhase::Up, 0);
        remarked.remarks = vec!["not readable from w4".to_owned()];
        let mut excluded = worker(2, WorkerPhase::Excluded, 0);
        excluded.remarks = vec!["many attempts failed there".to_owned()];
        let mut lost = worker(1, WorkerPhase::Lost, 0);
        lost.reason = None;
        let quiet = [
            WorkerPhase::Up,
            WorkerPhase::Draining,
            WorkerPhase::Leaving,
            WorkerPhase::Left,
        ]
        .map(|state| worker(9, state, 0));
        assert_eq!(
            warnings_of(&[lost, excluded, remarked]),
            [
                (
                    "worker-lost",
                    "worker_0001 (w1) is lost: unknown reason".to_owned()
                ),
                (
                    "worker-excluded",
                    "worker_0002 (w2) is excluded, many attempts failed there".to_owned()
                ),
                (
                    "worker-remark",
                    "worker_0003 (w3) is up, not readable from w4".to_owned()
                ),
            ]
        );
        assert_eq!(warnings_of(&quiet), []);
    }

    #[test]
    fn lost_worker_warns_until_its_successor_joins() {
        let lost = worker(1, WorkerPhase::Lost, 0);
        let mut next = worker(5, WorkerPhase::Up, 0);
        assert_eq!(
            warnings_of(&[lost.clone(), next.clone()]).len(),
            1,
            "another worker"
        );
        next.name = lost.name.clone();
        assert_eq!(warnings_of(&[lost.clone(), next.clone()]), []);
        let mut elsewhere = next.clone();
        elsewhere.host = "elsewhere".to_owned();
        assert_eq!(
            warnings_of(&[lost.clone(), elsewhere]).len(),
            1,
            "the same name on another host"
        );
        // The successor is lost, too: one warning, about the newest.
        next.state = WorkerPhase::Lost;
        let warnings = warnings_of(&[lost, next]);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].1.starts_with("worker_0005"), "{warnings:?}");
    }

    #[test]
    fn short_memory_warns_only_with_suspended_attempts() {
        let mut up = worker(1, WorkerPhase::Up, 0);
        up.memory.free_bytes = 80 << 20;
        assert_eq!(warnings_of(std::slice::from_ref(&up)), []);
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 0,
        };
        let mut held = SuspendedMemory {
            attempt: AttemptId { task, number: 1 },
            resident_bytes: 900 << 20,
            swapped_bytes: 0,
        };
        up.memory.suspended = vec![held];
        let text =
            "worker_0001 (w1) has 80.0 MiB of memory left and keeps 900 MiB suspended".to_owned();
        assert_eq!(
            warnings_of(std::slice::from_ref(&up)),
            [("memory-short", text)]
        );
        up.memory.free_bytes = 0;
        assert_eq!(
            warnings_of(std::slice::from_ref(&up)),
            [],
            "unknown memory is not short"
        );
        held.swapped_bytes = 300 << 20;
        up.memory.suspended.push(held);
        let text = "worker_0001 (w1) has 300 MiB of suspended attempts in swap".to_owned();
        assert_eq!(warnings_of(&[up]), [("swap-in-use", text)]);
    }

    #[test]
    fn ended_jobs_that_the_history_lacks_are_named() {
        let of = |unrecorded: &[(u32, Option<&str>)]| {
            let summary = |(number, why): &(u32, Option<&str>)| JobSummary {
                unrecorded: why.map(str::to_owned),
                ..job(*number, JobPhase::Succeeded, 0, 0)
            };
            let jobs: Vec<JobSummary> = unrecorded.iter().map(summary).collect();
            WarningAnswer::of_history(&jobs).map(|warning| warning.text)
        };
        assert_eq!(of(&[(7, None), (8, None)]), None);
        assert_eq!(
            of(&[(9, None), (7, Some("the disk is full"))]).as_deref(),
            Some("job_0007 has ended, but is missing from the history: the disk is full")
        );
        assert_eq!(
            of(&[
                (9, Some("the disk is full")),
                (8, None),
                (7, Some("no quota"))
            ])
            .as_deref(),
            Some(
                "2 jobs (job_0007 to job_0009) have ended, but are missing from the history: the disk is full"
            )
        );
    }

    #[test]
    fn disk_warns_when_little_is_left() {
        let directory = Path::new("/cluster");
        let is_short =
            |free, whole| disk_is_short(directory, free, whole).map(|warning| warning.text);
        assert_eq!(
            is_short(300 << 20, 100 << 30).as_deref(),
            Some("the disk of /cluster has 300 MiB left of 100 GiB")
        );
        assert_eq!(is_short(2 << 30, 100 << 30), None);
        assert_eq!(is_short(300 << 20, 2 << 30), None, "much of a small disk");
        assert_eq!(WarningAnswer::of_disk(Path::new("/nowhere/at/all")), None);
    }
}
