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

/// First argument of the shim, followed by the process id of its parent and the command.
const MARKER: &str = "--napreduce-command";

/// The exit status of shells for a command that cannot be run.
const CANNOT_RUN: i32 = 127;

/// The directory and environment of a command.
#[derive(Debug, Default)]
pub struct CommandPlace {
    /// Its current directory; `None` for that of its task.
    pub directory: Option<PathBuf>,
    /// Additional environment variables, which override those of the task.
    pub environment: Vec<(&'static str, OsString)>,
}

/// Starts `sh -c command` with pipes for standard input, output and error, in the process group of this
/// process.
///
/// In a task process the kernel kills it when the calling thread ends. Other programs start the shell
/// directly: their `main` may not support the shim, and they are not suspended or killed by a worker.
pub fn start_command(command: &str, place: &CommandPlace) -> io::Result<Child> {
    let mut starting = match parent_of_task_process() {
        Some(_) => {
            let mut shim = Command::new("/proc/self/exe");
            // Programs may look for their files by this name.
            shim.arg0(std::env::args_os().next().unwrap_or_default());
            shim.arg(MARKER)
                .arg(std::process::id().to_string())
                .arg(command);
            shim
        }
        None => shell(command.into()),
    };
    if let Some(directory) = &place.directory {
        starting.current_dir(directory);
    }
    let variables = place.environment.iter().map(|(name, value)| (name, value));
    starting
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn shell(command: OsString) -> Command {
    let mut shell = Command::new("sh");
    // `--` permits commands that begin with a dash.
    shell.arg("-c").arg("--").arg(command);
    shell
}

/// Returns the process id of the parent and the command if this process was started as a shim.
fn asked() -> Option<(OsString, OsString)> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == MARKER).then(|| {
        (
            arguments.next().unwrap_or_default(),
            arguments.next().unwrap_or_default(),
        )
    })
}

/// Returns whether this process was started as a shim; [`become_command`] must then be called before anything
/// else.
pub fn command_requested() -> bool {
    asked().is_some()
}

/// Executes the shell of the command, or exits.
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

/// Requests SIGKILL for the end of the thread that started this process, also after `exec`; fails if it has
/// ended.
fn die_with(parent: &OsString) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = parent
        .to_str()
        .and_then(|text| text.parse().ok())
        .and_then(Pid::from_raw);
    if parent.is_some() && getppid() == parent {
        Ok(())
    } else {
        Err(io::Error::other("the task process has ended"))
    }
}
