//! Owns running other programs: start, wait to the exact end, measure, and end early on Ctrl-C.
//! Every program the lab runs, generator and validator included, goes through [`run`], so that none outlives
//! an interrupted experiment. What is run and what it means belongs to the experiments.

mod interrupt;
mod orphans;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub use interrupt::{Interrupt, InterruptError};
use orphans::Adoption;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use serde::Serialize;
pub use tree::MemoryPeak;
use tree::TreeSampler;

/// How often memory is looked at while a measured program runs.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// How long a program may take to clean up after the polite signal before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How much of a failed program's last words an error repeats, in bytes.
const LAST_WORDS_MAX: usize = 2_000;

/// A program to run, complete with arguments.
#[derive(Clone, Debug)]
pub struct CommandLine {
    program: PathBuf,
    /// What it finds as its own name, when that is not the path's.
    called: Option<String>,
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
    /// It is ended after that long.
    time_max: Option<Duration>,
}

impl CommandLine {
    /// A program without arguments yet.
    pub fn new(program: impl Into<PathBuf>) -> CommandLine {
        let program = program.into();
        CommandLine { program, called: None, arguments: Vec::new(), environment: Vec::new(), time_max: None }
    }

    /// Has it ended when it takes longer.
    pub fn within(mut self, time_max: Duration) -> CommandLine {
        self.time_max = Some(time_max);
        self
    }

    /// Has the program find another name as its own.
    pub fn called(mut self, name: &str) -> CommandLine {
        self.called = Some(name.to_owned());
        self
    }

    /// Puts another program before it, which starts it.
    pub fn started_by(mut self, program: impl Into<PathBuf>, arguments: &[&str]) -> CommandLine {
        let inner = std::mem::replace(&mut self.program, program.into());
        let before = arguments.iter().map(OsString::from).chain([inner.into_os_string()]);
        self.arguments.splice(0..0, before);
        self
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> CommandLine {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a flag and its value.
    pub fn flag(self, name: &str, value: impl Into<OsString>) -> CommandLine {
        self.arg(name).arg(value)
    }

    /// Sets an environment variable of the program.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> CommandLine {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// The command as a person would type it into a shell.
    pub fn typed(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = std::iter::once(self.program.as_os_str())
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .map(|word| quoted(&word.to_string_lossy()));
        let name = self.called.as_ref().map(|name| format!("exec -a {}", quoted(name)));
        let typed = variables.chain(name).chain(words).collect::<Vec<_>>().join(" ");
        // In a shell of its own, which becomes the program.
        if self.called.is_some() { format!("({typed})") } else { typed }
    }

    fn name(&self) -> String {
        if let Some(name) = &self.called {
            return name.clone();
        }
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether memory is sampled while a program runs. Sampling costs a few system calls every 20 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Nothing is looked at while the program runs.
    Off,
    /// The program and all its descendants, every 20 ms.
    Tree,
}

/// What one run of a program took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    /// From just before the start to just after the exit.
    pub wall_seconds: f64,
    /// Processor time in user mode of the program and its descendants, to 10 ms; without sampling, of those
    /// that somebody waited for.
    pub user_seconds: f64,
    /// The same in kernel mode.
    pub system_seconds: f64,
    /// Largest amounts of anonymous memory seen; absent without sampling or where the kernel does not list
    /// children.
    pub memory: Option<MemoryPeak>,
}

/// A program did not do what it was run for.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot start {program}: {source}")]
    Start { program: PathBuf, source: io::Error },
    /// It ended, but not well.
    #[error("{name} failed ({status}){last_words}")]
    Failed {
        /// The program's file name.
        name: String,
        status: ExitStatus,
        /// The end of what it wrote to its standard error.
        last_words: String,
    },
    /// It took longer than it may.
    #[error("{name} had not ended by itself after {time_max:?}")]
    TooLong {
        /// The program's file name.
        name: String,
        time_max: Duration,
    },
    /// Waiting for it failed.
    #[error("cannot watch {name}: {source}")]
    Watch {
        /// The program's file name.
        name: String,
        source: io::Error,
    },
    /// A log file could not be written.
    #[error("cannot write {path}: {source}")]
    Log { path: PathBuf, source: io::Error },
    /// A signal asked the experiment to end.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
}

/// Runs `command` to its end with `folder` as its working folder; what it prints goes to `folder/NAME.out`
/// and `folder/NAME.err`. An exit status other than 0 is an error with the last words of the program.
pub fn run(
    command: &CommandLine,
    folder: &Path,
    sampling: Sampling,
    interrupt: &Interrupt,
) -> Result<Usage, ProcessError> {
    interrupt.check()?;
    let name = command.name();
    let before = tree::children_time();
    let adoption = (sampling == Sampling::Tree).then(Adoption::begin);
    let start = Instant::now();
    let mut child = spawn(command, &name, folder)?;
    let mut sampler = TreeSampler::new(Pid::from_child(&child));
    let status = watch(&mut child, &mut sampler, (&name, command.time_max), sampling, interrupt)?;
    let wall = start.elapsed();
    if let Some(adoption) = adoption {
        adoption.end(sampler.seen());
    }
    let after = tree::children_time();
    if !status.success() {
        let last_words = last_words(&folder.join(format!("{name}.err")));
        return Err(ProcessError::Failed { name, status, last_words });
    }
    Ok(Usage {
        wall_seconds: wall.as_secs_f64(),
        user_seconds: (after.user - before.user).max(0.0),
        system_seconds: (after.system - before.system).max(0.0),
        memory: sampler.peak(),
    })
}

/// Starts `command` in a process group of its own with `folder` as its working folder; what it prints goes to
/// `folder/NAME.out` and `folder/NAME.err`. Whoever calls this sees to its end.
pub fn spawn(command: &CommandLine, name: &str, folder: &Path) -> Result<Child, ProcessError> {
    let mut process = Command::new(&command.program);
    // Settings of whoever runs the experiment are none of the experiment's.
    for (variable, _) in std::env::vars_os().filter(|(variable, _)| is_setting(variable)) {
        process.env_remove(variable);
    }
    process
        .args(&command.arguments)
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log(&folder.join(format!("{name}.out")))?)
        .stderr(log(&folder.join(format!("{name}.err")))?)
        .process_group(0);
    if let Some(name) = &command.called {
        process.arg0(name);
    }
    process.spawn().map_err(|source| ProcessError::Start { program: command.program.clone(), source })
}

fn is_setting(variable: &OsStr) -> bool {
    variable.as_encoded_bytes().starts_with(b"NAPREDUCE_")
}

/// Runs `command` as [`run`] does and returns what it printed on its standard output.
pub fn run_and_read(
    command: &CommandLine,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<String, ProcessError> {
    run(command, folder, Sampling::Off, interrupt)?;
    let path = folder.join(format!("{}.out", command.name()));
    fs::read_to_string(&path).map_err(|source| ProcessError::Log { path, source })
}

fn log(path: &Path) -> Result<File, ProcessError> {
    File::create(path).map_err(|source| ProcessError::Log { path: path.to_owned(), source })
}

/// The end of what a program wrote to its standard error, as the end of a message.
pub fn last_words(errors: &Path) -> String {
    let text = fs::read(errors).unwrap_or_default();
    let end = &text[text.len().saturating_sub(LAST_WORDS_MAX)..];
    let end = String::from_utf8_lossy(end);
    if end.trim().is_empty() { String::new() } else { format!(":\n{}", end.trim_end()) }
}

/// Waits for the child on a descriptor of the process, so that its end is seen at once and not at the next
/// sample.
fn watch(
    child: &mut Child,
    sampler: &mut TreeSampler,
    (name, time_max): (&str, Option<Duration>),
    sampling: Sampling,
    interrupt: &Interrupt,
) -> Result<ExitStatus, ProcessError> {
    let failed = |source: io::Error| ProcessError::Watch { name: name.to_owned(), source };
    let id = Pid::from_child(child);
    let begun = Instant::now();
    let mut until_it_ends = || -> Result<(), ProcessError> {
        let every = Timespec { tv_sec: 0, tv_nsec: SAMPLE_EVERY.subsec_nanos().into() };
        let descriptor = pidfd_open(id, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
        loop {
            let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
            match poll(&mut descriptors, Some(&every)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(failed(error.into())),
            }
            interrupt.check()?;
            if let Some(time_max) = time_max.filter(|time_max| begun.elapsed() > *time_max) {
                return Err(ProcessError::TooLong { name: name.to_owned(), time_max });
            }
            if sampling == Sampling::Tree {
                sampler.sample();
            }
        }
    };
    if let Err(error) = until_it_ends() {
        end(child, id, sampler);
        return Err(error);
    }
    child.wait().map_err(failed)
}

/// Ends a program and what it started: politely first, then by force. Errors mean that it is gone already.
fn end(child: &mut Child, id: Pid, sampler: &TreeSampler) {
    let _ = kill_process_group(id, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(SAMPLE_EVERY);
    }
    for descendant in sampler.members() {
        let _ = kill_process(descendant, Signal::KILL);
    }
    let _ = kill_process_group(id, Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let command = CommandLine::new("/bin/sort")
            .env("LC_ALL", "C")
            .flag("-o", "it's here")
            .arg("")
            .arg("--parallel=2");
        assert_eq!(command.typed(), r"LC_ALL=C /bin/sort -o 'it'\''s here' '' --parallel=2");
        let command = CommandLine::new("bin/nap-lab").called("nap-lab-bare-sort").env("A", "1").arg("in");
        assert_eq!(command.typed(), "(A=1 exec -a nap-lab-bare-sort bin/nap-lab in)");
    }

    #[test]
    fn a_failure_names_the_program_its_status_and_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("/bin/sh").arg("-c").arg("echo gone wrong >&2; exit 3");
        let error = run(&command, folder.path(), Sampling::Off, &Interrupt::never()).unwrap_err().to_string();
        assert!(
            error.contains("sh failed") && error.contains("3") && error.contains("gone wrong"),
            "{error}"
        );
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let script = "sleep 1000 & echo $! > sleeper; wait";
        let command = CommandLine::new("/bin/sh").arg("-c").arg(script).within(Duration::from_millis(300));
        let error = run(&command, folder.path(), Sampling::Off, &Interrupt::never()).unwrap_err().to_string();
        assert_eq!(error, "sh had not ended by itself after 300ms");
        let sleeper = fs::read_to_string(folder.path().join("sleeper")).unwrap();
        let status = format!("/proc/{}/stat", sleeper.trim());
        // Whoever adopts it sees it as a zombie for a moment.
        let is_gone = || fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_gone() {
            assert!(Instant::now() < deadline, "{sleeper} is there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn processor_time_of_a_process_that_outlives_its_parent_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        // It works for a while when the shell that started it has ended.
        let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
        let command = CommandLine::new("/bin/sh").arg("-c").arg(format!("({busy}) & sleep 0.2"));
        let took = |sampling| {
            let usage = run(&command, folder.path(), sampling, &Interrupt::never()).unwrap();
            (usage.wall_seconds, usage.user_seconds)
        };
        let (wall, processor) = took(Sampling::Tree);
        assert!(processor > 0.25 && wall < processor + 0.2, "{processor} s of processor in {wall} s");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("/nowhere/at-all");
        let error = run(&command, folder.path(), Sampling::Off, &Interrupt::never()).unwrap_err().to_string();
        assert!(error.starts_with("cannot start /nowhere/at-all"), "{error}");
    }

    #[test]
    fn settings_of_napreduce_are_not_passed_on() {
        assert!(is_setting(OsStr::new("NAPREDUCE_CLUSTER")) && !is_setting(OsStr::new("PATH")));
    }

    #[test]
    fn what_a_program_prints_is_returned() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("/bin/echo").arg("hello");
        assert_eq!(run_and_read(&command, folder.path(), &Interrupt::never()).unwrap(), "hello\n");
    }
}
