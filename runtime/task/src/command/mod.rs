//! A foreign command inside a task: any program that reads lines and writes lines, started by a shell.
//!
//! Owns the conversation with it, both ways at once, and what a suspend means to it. Does not own what the
//! bytes mean (the framework), nor how a process is started and signalled (`process`).
//!
//! A command is in the process group of its task, so that whatever stops, continues or kills the
//! task does the same to the command. Nothing of it can be saved: a task with a command is
//! suspended, killed or waited for.

mod command_line;
mod error;
mod pipes;
mod reporter;
mod running;

pub use command_line::{CommandLine, FAILED_PART};
pub use error::CommandError;
pub use running::{RunningCommand, TakeOutput};

#[cfg(test)]
mod tests;
