//! A script for a shell, and the commands in it that errors name.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// The file in the script's directory that contains `PART:STATUS` of the failed command.
pub const FAILED_PART: &str = ".napreduce-failed";

/// A script for `sh -c`, of one command or several.
#[derive(Debug, Clone)]
pub struct CommandLine {
    pub(super) script: String,
    /// The commands in it with their roles. Errors of the whole script name the first.
    parts: Vec<(&'static str, String)>,
}

impl CommandLine {
    /// Creates a script of one command; `role` is its purpose in messages.
    pub fn new(role: &'static str, command: impl Into<String>) -> CommandLine {
        let command = command.into();
        CommandLine {
            script: command.clone(),
            parts: vec![(role, command)],
        }
    }

    /// Creates a script of several commands, which writes [`FAILED_PART`] when one of them fails.
    #[must_use]
    pub fn within(mut self, script: String, others: Vec<(&'static str, String)>) -> CommandLine {
        self.parts.extend(others);
        CommandLine { script, ..self }
    }

    /// Returns the role of the first command, and that command.
    pub fn first(&self) -> (&'static str, &str) {
        self.parts
            .first()
            .map_or(("command", ""), |(role, command)| (role, command))
    }

    /// Returns the failed command and its status, after the script ended with `status` in `directory`.
    pub(super) fn failed(
        &self,
        directory: Option<&Path>,
        status: ExitStatus,
    ) -> (&'static str, &str, ExitStatus) {
        let left = || {
            let text = fs::read_to_string(directory?.join(FAILED_PART)).ok()?;
            let (part, status) = text.trim_end().split_once(':')?;
            let (role, command) = self.parts.get(part.parse::<usize>().ok()?)?;
            Some((
                *role,
                command.as_str(),
                ExitStatus::from_raw(status.parse::<i32>().ok()? << 8),
            ))
        };
        let several = self.parts.len() > 1;
        let (role, command) = self.first();
        several
            .then(left)
            .flatten()
            .unwrap_or((role, command, status))
    }
}
