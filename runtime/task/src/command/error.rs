//! Errors of commands, with the command's name and the blame.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use napreduce_engine::FaultPlace;
use napreduce_protocol::{TaskError, is_limit};
use thiserror::Error;

use crate::signals::signal_name;

/// Maximum length of a command in a message.
const SHOWN_MAX: usize = 200;

/// An error of a command: not started, no communication, or failure.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The shell could not be started.
    #[error("the {role} `{}` could not be started: {error}", shown(.command))]
    NotStarted {
        role: &'static str,
        command: String,
        error: io::Error,
    },
    /// The command failed.
    #[error("the {role} `{}` {}", shown(.command), in_words(.status))]
    Failed {
        role: &'static str,
        command: String,
        status: ExitStatus,
    },
    /// The command succeeded without reading all of its input, after a signal that it handles.
    #[error(
        "the {role} `{}` ended before it had read all of its input, after SIGTSTP, which it handles; its output may be \
         incomplete. A shell's `read` ends early when a trap runs: have another program do the reading",
        shown(.command)
    )]
    Disturbed { role: &'static str, command: String },
    /// The system does not permit communication with it.
    #[error("cannot {doing} the {role} `{}`: {error}", shown(.command))]
    Pipe {
        doing: &'static str,
        role: &'static str,
        command: String,
        error: io::Error,
    },
}

impl From<CommandError> for TaskError {
    fn from(error: CommandError) -> TaskError {
        match error {
            // The shell's status for a missing or non-executable program: retries on this host do not help.
            CommandError::Failed { ref status, .. } if matches!(status.code(), Some(126 | 127)) => {
                TaskError::fatal(error.to_string()).at(FaultPlace::ProgramFile)
            }
            // An error of the job's code.
            CommandError::Failed { .. } => TaskError::task(error.to_string()),
            // A retry does not shorten an argument list; other errors may not occur elsewhere or later.
            CommandError::NotStarted {
                error: ref cause, ..
            } if cause.kind() == io::ErrorKind::ArgumentListTooLong => {
                TaskError::fatal(error.to_string())
            }
            CommandError::NotStarted {
                error: ref cause, ..
            }
            | CommandError::Pipe {
                error: ref cause, ..
            } => {
                let place = if is_limit(cause) {
                    FaultPlace::LocalLimit
                } else {
                    FaultPlace::Host
                };
                TaskError::retryable(error.to_string()).at(place)
            }
            CommandError::Disturbed { .. } => TaskError::retryable(error.to_string()),
        }
    }
}

/// Returns the beginning of a command on one line.
fn shown(command: &str) -> String {
    let line: String = command
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

fn in_words(status: &ExitStatus) -> String {
    const LOG: &str = "see the standard error of its attempt";
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("was killed by signal {signal} ({name}); {LOG}"),
            None => format!("was killed by signal {signal}; {LOG}"),
        },
        (None, Some(127)) => {
            format!(
                "exited with status 127 (command not found); is it installed on every worker? {LOG}"
            )
        }
        (None, Some(126)) => {
            format!("exited with status 126 (not executable); {LOG}")
        }
        (None, Some(code)) => format!("exited with status {code}; {LOG}"),
        (None, None) => format!("ended: {status}; {LOG}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(command: &str, raw: i32) -> String {
        let role = "mapper";
        let command = command.to_owned();
        CommandError::Failed {
            role,
            command,
            status: ExitStatus::from_raw(raw),
        }
        .to_string()
    }

    #[test]
    fn command_failure_names_command_and_status() {
        for (raw, says) in [
            (3 << 8, "the mapper `grep x` exited with status 3; see the"),
            (127 << 8, "status 127 (command not found)"),
            (126 << 8, "status 126 (not executable)"),
            (9, "was killed by signal 9 (SIGKILL); see"),
            (40, "was killed by signal 40; see"),
        ] {
            let text = failed("grep x", raw);
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn long_command_is_shown_in_part_on_one_line() {
        assert!(failed("awk '\n{ print }\n'", 256).contains("`awk ' { print } '`"));
        let text = failed(&"ä".repeat(10_000), 256);
        assert!(
            text.len() < 1_000 && text.contains("ä...` exited"),
            "{text}"
        );
    }

    #[test]
    fn command_error_class_follows_its_cause() {
        use napreduce_engine::FailureClass;
        let class = |error: CommandError| TaskError::from(error).class;
        let role = "mapper";
        let command = String::from("x");
        let error = || io::Error::from(io::ErrorKind::ArgumentListTooLong);
        let not_started = CommandError::NotStarted {
            role,
            command: command.clone(),
            error: error(),
        };
        assert_eq!(class(not_started), FailureClass::Fatal);
        let pipe = CommandError::Pipe {
            doing: "write to",
            role,
            command: command.clone(),
            error: error(),
        };
        assert_eq!(class(pipe), FailureClass::Retryable);
        let disturbed = CommandError::Disturbed {
            role,
            command: command.clone(),
        };
        assert_eq!(class(disturbed), FailureClass::Retryable);
        let failed = |raw| CommandError::Failed {
            role,
            command: command.clone(),
            status: ExitStatus::from_raw(raw),
        };
        assert_eq!(class(failed(1 << 8)), FailureClass::Task);
        // A missing or non-executable program: retries on this host do not help.
        for status in [126, 127] {
            let error = TaskError::from(failed(status << 8));
            assert_eq!(
                (error.class, error.place),
                (FailureClass::Fatal, FaultPlace::ProgramFile)
            );
        }
    }
}
