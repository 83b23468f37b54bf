//! External commands in a task: programs that read and write lines, started by a shell.
//!
//! A command runs in the process group of its task, so it is stopped, continued and killed with the task. Its
//! state cannot be saved: a task with a command can be suspended or killed, but not checkpointed.

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
