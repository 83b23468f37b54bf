//! Starts a command from a task process so that both die together: a shim, which is this program executed
//! again, requests SIGKILL for the death of its parent and becomes the command's shell.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use napreduce_protocol::printing::print_error;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::marker::parent_of_task_process;

/// First argument of the shim; then come the process number of its parent, and the command.
const MARKER: &str = "--napreduce-command";

/// What shells answer for a command that cannot be run.
const CANNOT_RUN: i32 = 127;

/// Where a command starts.
#[derive(Debug, Default)]
pub struct CommandPlace {
    /// Its current directory; `None` for that of its task.
    pub directory: Option<PathBuf>,
    /// Variables that it finds beside those of its task, or instead of them.
    pub environment: Vec<(&'static str, OsString)>,
}

/// Starts `sh -c command` with pipes for its input, its output and its errors, in the process group
/// of this process.
///
/// The kernel kills it when the calling thread ends. That is so in a task process only: any other program
/// need not have a `main` that makes it a shim, and nobody suspends or kills it.
pub fn start_command(command: &str, place: &CommandPlace) -> io::Result<Child> {
    let mut starting = match parent_of_task_process() {
        Some(_) => {
            let mut shim = Command::new("/proc/self/exe");
            // The program is found by this name; it says nothing about what the shim does.
            shim.arg0(std::env::args_os().next().unwrap_or_default());
            shim.arg(MARKER).arg(std::process::id().to_string()).arg(command);
            shim
        }
        None => shell(command.into()),
    };
    if let Some(directory) = &place.directory {
        starting.current_dir(directory);
    }
    let variables = place.environment.iter().map(|(name, value)| (name, value));
    starting.envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn shell(command: OsString) -> Command {
    let mut shell = Command::new("sh");
    // After `--`, a command that begins with a dash is a command all the same.
    shell.arg("-c").arg("--").arg(command);
    shell
}

/// The parent's number and the command, when this process was started as a shim.
fn asked() -> Option<(OsString, OsString)> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == MARKER)
        .then(|| (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default()))
}

/// Whether this process was started as a shim; then [`become_command`] is to be called before anything else.
pub fn command_requested() -> bool {
    asked().is_some()
}

/// Becomes the shell of the command, or ends.
pub fn become_command() -> ! {
    let (parent, command) = asked().unwrap_or_default();
    match die_with(&parent) {
        Ok(()) => {
            let error = shell(command).exec();
            print_error(format_args!(
                "cannot run sh: {error}; commands of a job need a POSIX shell on every worker"
            ));
        }
        Err(error) => print_error(format_args!("cannot start the command: {error}")),
    }
    std::process::exit(CANNOT_RUN)
}

/// The kernel kills this process, whatever it executes, when the thread that started it ends, unless
/// that has happened.
fn die_with(parent: &OsString) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = parent.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    if parent.is_some() && getppid() == parent {
        Ok(())
    } else {
        Err(io::Error::other("the task process is gone"))
    }
}
