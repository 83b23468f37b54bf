//! Task errors: class, place and message. System errors are attributed by their number and by the path's
//! storage: the worker's own disk, or storage shared by all workers.

use std::sync::OnceLock;
use std::{fmt, io};

use napreduce_engine::{AttemptId, DiskNeed, FailureClass, FaultPlace, Report};
use serde::{Deserialize, Serialize};

use crate::task_failure::FailedRecord;

/// The message of an error that every retry of this attempt would meet, if there was one.
static PERMANENT: OnceLock<&str> = OnceLock::new();

/// Why a task failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TaskError {
    /// Whether retries may succeed, and whether they count.
    pub class: FailureClass,
    /// Which component failed.
    pub place: FaultPlace,
    /// The event, its object and a remedy.
    pub message: String,
    /// Map attempts with unreadable output; their tasks are rerun.
    pub lost_inputs: Vec<AttemptId>,
    /// The record or group that the attempt was working on, if it is known.
    pub record: Option<Box<FailedRecord>>,
    /// Set if the worker's disk was full; its worker fills in the numbers.
    pub disk_need: Option<DiskNeed>,
    /// Whether the message already names its record, so that readers need not add it. Only meaningful within
    /// this process.
    #[serde(skip)]
    pub is_located: bool,
}

/// The kind of a system error, independent of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IoCause {
    /// No space or quota left.
    Full,
    /// The device no longer reads or writes.
    Broken,
    /// The host has run out of files, maps, processes or memory.
    Limit,
    /// Anything else.
    Other,
}

impl TaskError {
    fn new(class: FailureClass, place: FaultPlace, message: impl Into<String>) -> TaskError {
        TaskError {
            class,
            place,
            message: message.into(),
            lost_inputs: Vec::new(),
            record: None,
            disk_need: None,
            is_located: false,
        }
    }

    /// An error of the task itself: counts towards its attempts.
    pub fn task(message: impl Into<String>) -> TaskError {
        TaskError::new(FailureClass::Task, FaultPlace::UserCode, message)
    }

    /// An error outside the task: it is retried.
    pub fn retryable(message: impl Into<String>) -> TaskError {
        TaskError::new(FailureClass::Retryable, FaultPlace::Host, message)
    }

    /// A permanent error: the job fails.
    pub fn fatal(message: impl Into<String>) -> TaskError {
        TaskError::new(FailureClass::Fatal, FaultPlace::UserCode, message)
    }

    /// Changes the place.
    #[must_use]
    pub fn at(self, place: FaultPlace) -> TaskError {
        TaskError { place, ..self }
    }

    /// Adds the record that the attempt was working on.
    #[must_use]
    pub fn with_record(self, record: FailedRecord) -> TaskError {
        TaskError {
            record: Some(Box::new(record)),
            ..self
        }
    }

    /// Marks the message as naming its record.
    #[must_use]
    pub fn located(self) -> TaskError {
        TaskError {
            is_located: true,
            ..self
        }
    }

    /// Map outputs are unreadable: their tasks are rerun, then this one.
    pub fn lost_inputs(message: impl Into<String>, lost_inputs: Vec<AttemptId>) -> TaskError {
        TaskError {
            lost_inputs,
            ..TaskError::new(FailureClass::Retryable, FaultPlace::Peer, message)
        }
    }

    /// `cannot {doing}: {error}`, for a path on shared storage; see [`TaskError::shared`].
    pub fn io(doing: impl fmt::Display, error: &io::Error) -> TaskError {
        TaskError::shared(format!("cannot {doing}: {error}"), error)
    }

    /// A system error on shared storage: output, input or a checkpoint. Fatal if the storage is full, since a
    /// retry would fill it again; else retried.
    pub fn shared(message: impl Into<String>, error: &io::Error) -> TaskError {
        let (class, place) = match io_cause(error) {
            IoCause::Full => (FailureClass::Fatal, FaultPlace::SharedStorage),
            IoCause::Limit => (FailureClass::Retryable, FaultPlace::LocalLimit),
            IoCause::Broken | IoCause::Other => {
                (FailureClass::Retryable, FaultPlace::SharedStorage)
            }
        };
        TaskError::new(class, place, message)
    }

    /// A system error on the worker's own disk: a run, a segment or scratch. Retried on another worker.
    pub fn local(message: impl Into<String>, error: &io::Error) -> TaskError {
        let passes_elsewhere = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
        );
        let cause = io_cause(error);
        let (class, place) = match cause {
            IoCause::Limit => (FailureClass::Retryable, FaultPlace::LocalLimit),
            IoCause::Full | IoCause::Broken => (FailureClass::Retryable, FaultPlace::LocalDisk),
            IoCause::Other if passes_elsewhere => (FailureClass::Retryable, FaultPlace::LocalDisk),
            IoCause::Other => (FailureClass::Task, FaultPlace::LocalDisk),
        };
        let disk_need = (cause == IoCause::Full).then(DiskNeed::default);
        TaskError {
            disk_need,
            ..TaskError::new(class, place, message)
        }
    }

    /// Makes the error fatal if user code failed with one that every retry meets.
    pub fn fatal_if_permanent(self) -> TaskError {
        match PERMANENT.get() {
            Some(words) if self.class == FailureClass::Task && self.message.contains(words) => {
                TaskError {
                    class: FailureClass::Fatal,
                    ..self
                }
            }
            _ => self,
        }
    }
}

/// Records the message of an error that user code would receive at every retry; if its attempt fails with it,
/// the job fails.
pub fn mark_permanent(words: &'static str) {
    // Only one such error exists so far.
    let _ = PERMANENT.set(words);
}

/// Whether a file is permanently gone: it is missing, or its disk cannot read it.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EIO)
}

/// Whether a host limit is exhausted: files, maps, processes or memory.
pub fn is_limit(error: &io::Error) -> bool {
    io_cause(error) == IoCause::Limit
}

fn io_cause(error: &io::Error) -> IoCause {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN) => return IoCause::Limit,
        Some(libc::EIO | libc::EROFS) => return IoCause::Broken,
        _ => {}
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoCause::Full,
        io::ErrorKind::OutOfMemory => IoCause::Limit,
        io::ErrorKind::ReadOnlyFilesystem => IoCause::Broken,
        _ => IoCause::Other,
    }
}

/// A worker's report of the failed attempt.
impl From<TaskError> for Report {
    fn from(error: TaskError) -> Report {
        let TaskError {
            class,
            place,
            message,
            lost_inputs,
            disk_need,
            ..
        } = error;
        Report::Failed {
            class,
            place,
            reason: message,
            lost_outputs: lost_inputs,
            disk_need,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_error_class_depends_on_storage() {
        use FailureClass::{Fatal, Retryable, Task};
        use FaultPlace::{LocalDisk, LocalLimit, SharedStorage};
        for (number, local, shared) in [
            (libc::ENOSPC, (Retryable, LocalDisk), (Fatal, SharedStorage)),
            (libc::EDQUOT, (Retryable, LocalDisk), (Fatal, SharedStorage)),
            (
                libc::EIO,
                (Retryable, LocalDisk),
                (Retryable, SharedStorage),
            ),
            (
                libc::EROFS,
                (Retryable, LocalDisk),
                (Retryable, SharedStorage),
            ),
            (libc::ESTALE, (Task, LocalDisk), (Retryable, SharedStorage)),
            (
                libc::EMFILE,
                (Retryable, LocalLimit),
                (Retryable, LocalLimit),
            ),
            (
                libc::ENFILE,
                (Retryable, LocalLimit),
                (Retryable, LocalLimit),
            ),
            (
                libc::ENOMEM,
                (Retryable, LocalLimit),
                (Retryable, LocalLimit),
            ),
            (
                libc::EAGAIN,
                (Retryable, LocalLimit),
                (Retryable, LocalLimit),
            ),
            (
                libc::EACCES,
                (Retryable, LocalDisk),
                (Retryable, SharedStorage),
            ),
        ] {
            let error = io::Error::from_raw_os_error(number);
            let found = |error: TaskError| (error.class, error.place);
            assert_eq!(found(TaskError::local("x", &error)), local, "{error}");
            assert_eq!(found(TaskError::shared("x", &error)), shared, "{error}");
        }
    }
}
