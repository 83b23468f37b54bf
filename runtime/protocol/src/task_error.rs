//! Why a task could not go on.
//!
//! Owns whose fault it was, where it belongs and what it says. A refusal of the system is put to a place by
//! its number and by which side of the worker the path is on: its own disk, or storage that every worker
//! sees. Does not own what follows from it (the engine).

use std::sync::OnceLock;
use std::{fmt, io};

use napreduce_engine::{AttemptId, FailureClass, FaultPlace, Report};
use serde::{Deserialize, Serialize};

/// Words of an error that every further try of this process's attempt would meet as well, if there was one.
static HOPELESS: OnceLock<&str> = OnceLock::new();

/// Why a task could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct TaskError {
    /// Whose fault it was.
    pub class: FailureClass,
    /// Where it belongs.
    pub place: FaultPlace,
    /// What happened, to what, and what to do.
    pub message: String,
    /// Map attempts whose output could not be read; their tasks are run again.
    pub lost_inputs: Vec<AttemptId>,
    /// Whether it says itself which record it is about, so that whoever reads the records adds nothing. That
    /// is of no use in other processes.
    #[serde(skip)]
    pub is_located: bool,
}

/// What a refusal of the system is about, whatever the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IoCause {
    /// No space, or no quota.
    Full,
    /// The device does not read or write any more.
    Broken,
    /// Files, maps, processes or memory of the host are used up.
    Limit,
    /// Anything else.
    Other,
}

impl TaskError {
    fn of(class: FailureClass, place: FaultPlace, message: impl Into<String>) -> TaskError {
        TaskError { class, place, message: message.into(), lost_inputs: Vec::new(), is_located: false }
    }

    /// The task's own fault: counts towards its attempts.
    pub fn task(message: impl Into<String>) -> TaskError {
        TaskError::of(FailureClass::Task, FaultPlace::UserCode, message)
    }

    /// Something outside the task: it is tried again.
    pub fn retryable(message: impl Into<String>) -> TaskError {
        TaskError::of(FailureClass::Retryable, FaultPlace::Host, message)
    }

    /// No further try can help: the job fails now.
    pub fn fatal(message: impl Into<String>) -> TaskError {
        TaskError::of(FailureClass::Fatal, FaultPlace::UserCode, message)
    }

    /// The same, in another place.
    #[must_use]
    pub fn at(self, place: FaultPlace) -> TaskError {
        TaskError { place, ..self }
    }

    /// The same, which says itself which record it is about.
    #[must_use]
    pub fn located(self) -> TaskError {
        TaskError { is_located: true, ..self }
    }

    /// Map outputs could not be read: their tasks are run again, then this one.
    pub fn lost_inputs(message: impl Into<String>, lost_inputs: Vec<AttemptId>) -> TaskError {
        TaskError { lost_inputs, ..TaskError::of(FailureClass::Retryable, FaultPlace::Peer, message) }
    }

    /// `cannot {doing}: {error}`, of a path on storage that every worker sees; see [`TaskError::shared`].
    pub fn io(doing: impl fmt::Display, error: &io::Error) -> TaskError {
        TaskError::shared(format!("cannot {doing}: {error}"), error)
    }

    /// The system refused something with a path on storage that every worker sees: the output, the input, a
    /// checkpoint. Fatal when it is full, as another try would fill it again; else it is tried again.
    pub fn shared(message: impl Into<String>, error: &io::Error) -> TaskError {
        let (class, place) = match refusal(error) {
            IoCause::Full => (FailureClass::Fatal, FaultPlace::SharedStorage),
            IoCause::Limit => (FailureClass::Retryable, FaultPlace::LocalLimit),
            IoCause::Broken | IoCause::Other => (FailureClass::Retryable, FaultPlace::SharedStorage),
        };
        TaskError::of(class, place, message)
    }

    /// The system refused something with a path on the worker's own disk: a run, a segment, scratch. It is
    /// tried elsewhere.
    pub fn local(message: impl Into<String>, error: &io::Error) -> TaskError {
        let passes_elsewhere =
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
        let (class, place) = match refusal(error) {
            IoCause::Limit => (FailureClass::Retryable, FaultPlace::LocalLimit),
            IoCause::Full | IoCause::Broken => (FailureClass::Retryable, FaultPlace::LocalDisk),
            IoCause::Other if passes_elsewhere => (FailureClass::Retryable, FaultPlace::LocalDisk),
            IoCause::Other => (FailureClass::Task, FaultPlace::LocalDisk),
        };
        TaskError::of(class, place, message)
    }

    /// No further try helps user code that failed with an error that every try meets.
    pub fn unless_hopeless(self) -> TaskError {
        match HOPELESS.get() {
            Some(words) if self.class == FailureClass::Task && self.message.contains(words) => {
                TaskError { class: FailureClass::Fatal, ..self }
            }
            _ => self,
        }
    }
}

/// Says that user code was given an error with these words, which it would be given at every try: should its
/// attempt fail with them, the job does.
pub fn no_try_helps(words: &'static str) {
    // There is one such error so far.
    let _ = HOPELESS.set(words);
}

/// Whether a file that cannot be opened is gone for everybody: it is not there, or its disk does not read it.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EIO)
}

/// Whether a limit of the host is used up: files, maps, processes or memory.
pub fn is_limit(error: &io::Error) -> bool {
    refusal(error) == IoCause::Limit
}

fn refusal(error: &io::Error) -> IoCause {
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

/// What a worker says of an attempt that failed so.
impl From<TaskError> for Report {
    fn from(error: TaskError) -> Report {
        let TaskError { class, place, message, lost_inputs, .. } = error;
        Report::Failed { class, place, reason: message, lost_outputs: lost_inputs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_system_belongs_to_the_side_its_path_is_on() {
        use FailureClass::{Fatal, Retryable, Task};
        use FaultPlace::{LocalDisk, LocalLimit, SharedStorage};
        for (number, local, shared) in [
            (libc::ENOSPC, (Retryable, LocalDisk), (Fatal, SharedStorage)),
            (libc::EDQUOT, (Retryable, LocalDisk), (Fatal, SharedStorage)),
            (libc::EIO, (Retryable, LocalDisk), (Retryable, SharedStorage)),
            (libc::EROFS, (Retryable, LocalDisk), (Retryable, SharedStorage)),
            (libc::ESTALE, (Task, LocalDisk), (Retryable, SharedStorage)),
            (libc::EMFILE, (Retryable, LocalLimit), (Retryable, LocalLimit)),
            (libc::ENFILE, (Retryable, LocalLimit), (Retryable, LocalLimit)),
            (libc::ENOMEM, (Retryable, LocalLimit), (Retryable, LocalLimit)),
            (libc::EAGAIN, (Retryable, LocalLimit), (Retryable, LocalLimit)),
            (libc::EACCES, (Retryable, LocalDisk), (Retryable, SharedStorage)),
        ] {
            let error = io::Error::from_raw_os_error(number);
            let found = |error: TaskError| (error.class, error.place);
            assert_eq!(found(TaskError::local("x", &error)), local, "{error}");
            assert_eq!(found(TaskError::shared("x", &error)), shared, "{error}");
        }
    }
}
