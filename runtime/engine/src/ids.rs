//! Identifiers of jobs, tasks, attempts and workers, and their printed form for logs, errors and interfaces:
//! `job_0007`, `job_0007_m_0003`, `job_0007_r_0001.2`, `worker_0001`. The runtime numbers jobs and workers;
//! the engine numbers attempts.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A job; numbers start at 1 and are never reused by one coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u32);

/// A worker; numbers start at 1 and are never reused by one coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// Not a worker: outputs with this number are stored next to the output of their job, where every worker
    /// can read them.
    pub const STORAGE: WorkerId = WorkerId(0);
}

listed! {
    /// The two kinds of tasks and of slots.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum TaskKind {
        /// Reads a split and emits records.
        Map = "map",
        /// Merges one partition and writes one part of the output.
        Reduce = "reduce",
    }
}

/// One unit of a job: a map over split `index`, or a reduce over partition `index`; indices start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskId {
    pub job: JobId,
    pub kind: TaskKind,
    /// The split or the partition, from 0.
    pub index: u32,
}

/// One try at a task; `number` starts at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    pub task: TaskId,
    /// Starts at 1.
    pub number: u32,
}

impl AttemptId {
    /// Returns the smallest and the largest attempt of one kind of one job, as bounds of a range.
    pub(crate) fn range_of(job: JobId, kind: TaskKind) -> (AttemptId, AttemptId) {
        let at = |index, number| AttemptId {
            task: TaskId { job, kind, index },
            number,
        };
        (at(0, 0), at(u32::MAX, u32::MAX))
    }
}

impl TaskId {
    /// Packs job, kind and index into one integer: indices compare ids more than they do anything else.
    fn in_order(self) -> u128 {
        u128::from(self.job.0) << 64 | (self.kind as u128) << 32 | u128::from(self.index)
    }
}

impl Ord for TaskId {
    fn cmp(&self, other: &TaskId) -> Ordering {
        self.in_order().cmp(&other.in_order())
    }
}

impl PartialOrd for TaskId {
    fn partial_cmp(&self, other: &TaskId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AttemptId {
    fn cmp(&self, other: &AttemptId) -> Ordering {
        let in_order = |id: &AttemptId| id.task.in_order() << 32 | u128::from(id.number);
        in_order(self).cmp(&in_order(other))
    }
}

impl PartialOrd for AttemptId {
    fn partial_cmp(&self, other: &AttemptId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job_{:04}", self.0)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker_{:04}", self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.kind {
            TaskKind::Map => 'm',
            TaskKind::Reduce => 'r',
        };
        write!(f, "{}_{}_{:04}", self.job, letter, self.index)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.number)
    }
}

/// An invalid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {meant} {text:?}; write it as {example}")]
pub struct IdError {
    text: String,
    meant: &'static str,
    example: &'static str,
}

fn number(digits: &str) -> Option<u32> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

fn numbered(text: &str, prefix: &str) -> Option<u32> {
    number(text.strip_prefix(prefix)?).filter(|number| *number > 0)
}

fn task(text: &str) -> Option<TaskId> {
    let mut words = text.strip_prefix("job_")?.splitn(3, '_');
    let job = words.next()?;
    let letter = words.next()?;
    let index = words.next()?;
    let kind = match letter {
        "m" => TaskKind::Map,
        "r" => TaskKind::Reduce,
        _ => return None,
    };
    let job = JobId(number(job).filter(|number| *number > 0)?);
    Some(TaskId {
        job,
        kind,
        index: number(index)?,
    })
}

fn attempt(text: &str) -> Option<AttemptId> {
    let (of, tried) = text.split_once('.')?;
    Some(AttemptId {
        task: task(of)?,
        number: number(tried).filter(|number| *number > 0)?,
    })
}

macro_rules! read_as_printed {
    ($($id:ty, $meant:literal, $example:literal, $read:expr;)*) => {$(
        /// Parses the printed form.
        impl FromStr for $id {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$id, IdError> {
                let read: fn(&str) -> Option<$id> = $read;
                read(text).ok_or_else(|| IdError { text: text.to_owned(), meant: $meant, example: $example })
            }
        }
    )*};
}

read_as_printed! {
    JobId, "job", "job_0007", |text| numbered(text, "job_").map(JobId);
    WorkerId, "worker", "worker_0001", |text| numbered(text, "worker_").map(WorkerId);
    TaskId, "task", "job_0007_m_0003", task;
    AttemptId, "attempt", "job_0007_m_0003.1", attempt;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: FromStr<Err = IdError> + fmt::Display>(text: &str) {
        assert_eq!(
            text.parse::<T>().map(|id| id.to_string()),
            Ok(text.to_owned())
        );
    }

    #[test]
    fn printed_ids_parse() {
        round::<JobId>("job_0007");
        round::<JobId>("job_123456");
        round::<WorkerId>("worker_0001");
        round::<TaskId>("job_0007_m_0003");
        round::<TaskId>("job_0007_r_0000");
        round::<AttemptId>("job_0007_r_0001.2");
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in [
            "",
            "7",
            "job_",
            "job_0",
            "job_-1",
            "job_+1",
            "job_99999999999",
            "Job_1",
            "job_1 ",
            "job_1_m_1",
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text:?}");
        }
        for text in [
            "job_1",
            "job_1_x_1",
            "job_1_m_",
            "job_0_m_1",
            "job_1_m_1_1",
            "job_1_m_1.1",
            "job_1_m_-1",
        ] {
            assert!(text.parse::<TaskId>().is_err(), "{text:?}");
        }
        for text in ["job_1_m_1", "job_1_m_1.0", "job_1_m_1.", "job_1_m_1.1.1"] {
            assert!(text.parse::<AttemptId>().is_err(), "{text:?}");
        }
        let error = "job_x"
            .parse::<JobId>()
            .expect_err("it is none")
            .to_string();
        assert_eq!(error, "invalid job \"job_x\"; write it as job_0007");
    }
}
