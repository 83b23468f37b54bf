//! External commands in a task: programs that read and write lines, started by a shell.
//!
//! A command is in the process group of its task, so that whatever stops, continues or kills the
//! task does the same to the command. Nothing of it can be saved: a task with a command is
//! suspended, killed or waited for.

mod command_line;
mod command_process;
mod error;
mod family;
mod pipes;
mod reporter;
mod running;

pub use command_line::{CommandLine, FAILED_PART};
pub use command_process::CommandPlace;
pub(crate) use command_process::{become_command, command_requested};
pub use error::CommandError;
pub use running::{RunningCommand, TakeOutput};

#[cfg(test)]
mod tests;
