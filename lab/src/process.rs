//! Runs other programs: start, wait for the exact end, measure, and end early on Ctrl-C. Every program of an experiment
//! is started by [`run`] or [`spawn`], so that none outlives an interrupted experiment.
//!
//! It does not use the process library of task processes, because a measurement includes every descendant, also after
//! its parent has ended.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use datagen::Watch;
use napreduce_local::process::is_ignored;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, waitpid,
};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{InterruptError, cannot};

/// Between two samples of memory.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes of a failed program's standard error in our error.
const LAST_WORDS_MAX: usize = 2_000;

/// A program to run, complete with arguments.
#[derive(Clone, Debug)]
pub struct CommandLine {
    program: PathBuf,
    /// Its argument 0, if that is not the path.
    called: Option<String>,
    arguments: Vec<OsString>,
    environment: Vec<(String, String)>,
    time_max: Option<Duration>,
}

impl CommandLine {
    pub fn new(program: impl Into<PathBuf>) -> CommandLine {
        let program = program.into();
        CommandLine {
            program,
            called: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            time_max: None,
        }
    }

    /// Ends the program if it takes longer.
    pub fn within(mut self, time_max: Duration) -> CommandLine {
        self.time_max = Some(time_max);
        self
    }

    /// Starts the program under another name.
    pub fn called(mut self, name: &str) -> CommandLine {
        self.called = Some(name.to_owned());
        self
    }

    /// Has another program start it.
    pub fn started_by(mut self, program: impl Into<PathBuf>, arguments: &[&str]) -> CommandLine {
        let inner = std::mem::replace(&mut self.program, program.into());
        let before = arguments
            .iter()
            .map(OsString::from)
            .chain([inner.into_os_string()]);
        self.arguments.splice(0..0, before);
        self
    }

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
        let variables = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = std::iter::once(self.program.as_os_str())
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .map(|word| quoted(&word.to_string_lossy()));
        let name = self
            .called
            .as_ref()
            .map(|name| format!("exec -a {}", quoted(name)));
        let typed = variables
            .chain(name)
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ");
        // A subshell becomes the program.
        if self.called.is_some() {
            format!("({typed})")
        } else {
            typed
        }
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

/// Whether memory is sampled while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    Off,
    /// The program and all its descendants, every 20 ms.
    Tree,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Usage {
    /// From just before the start to just after the exit.
    pub wall_seconds: f64,
    /// Of the program and its descendants, to 10 ms; without sampling, only of reaped descendants.
    pub user_seconds: f64,
    pub system_seconds: f64,
    /// Absent without sampling, or if the kernel does not list children.
    pub memory: Option<MemoryPeak>,
}

/// Runs `command` to its end with `folder` as its working folder; its output is written to `folder/NAME.out`
/// and `folder/NAME.err`. An exit status other than 0 is an error with the end of its standard error.
pub fn run(
    command: &CommandLine,
    folder: &Path,
    sampling: Sampling,
    interrupt: &Interrupt,
) -> Result<Usage> {
    interrupt.check()?;
    let name = command.name();
    let before = children_time();
    let adoption = (sampling == Sampling::Tree).then(Adoption::begin);
    let start = Instant::now();
    let mut child = spawn(command, &name, folder)?;
    let mut sampler = TreeSampler::new(Pid::from_child(&child));
    let status = watch(
        &mut child,
        &mut sampler,
        (&name, command.time_max),
        sampling,
        interrupt,
    )?;
    let wall = start.elapsed();
    if let Some(adoption) = adoption {
        adoption.end(sampler.seen());
    }
    let after = children_time();
    if !status.success() {
        let last_words = last_words(&folder.join(format!("{name}.err")));
        bail!("{name} failed ({status}){last_words}");
    }
    Ok(Usage {
        wall_seconds: wall.as_secs_f64(),
        user_seconds: (after.user - before.user).max(0.0),
        system_seconds: (after.system - before.system).max(0.0),
        memory: sampler.peak(),
    })
}

/// Starts `command` in its own process group with `folder` as its working folder; its output is written to
/// `folder/NAME.out` and `folder/NAME.err`. The caller must end it.
pub fn spawn(command: &CommandLine, name: &str, folder: &Path) -> Result<Child> {
    let mut process = Command::new(&command.program);
    // The user's settings of napreduce do not apply to an experiment.
    for (variable, _) in std::env::vars_os().filter(|(variable, _)| is_setting(variable)) {
        process.env_remove(variable);
    }
    process
        .args(&command.arguments)
        .envs(
            command
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log(&folder.join(format!("{name}.out")))?)
        .stderr(log(&folder.join(format!("{name}.err")))?)
        .process_group(0);
    if let Some(name) = &command.called {
        process.arg0(name);
    }
    process.spawn().map_err(cannot("start", &command.program))
}

fn is_setting(variable: &OsStr) -> bool {
    variable.as_encoded_bytes().starts_with(b"NAPREDUCE_")
}

/// Runs `command` as [`run`] does and returns its standard output.
pub fn run_and_read(command: &CommandLine, folder: &Path, interrupt: &Interrupt) -> Result<String> {
    run(command, folder, Sampling::Off, interrupt)?;
    let path = folder.join(format!("{}.out", command.name()));
    fs::read_to_string(&path).map_err(cannot("read", &path))
}

fn log(path: &Path) -> Result<File> {
    File::create(path).map_err(cannot("write", path))
}

/// The end of a program's standard error, as the end of a message.
pub fn last_words(errors: &Path) -> String {
    let text = fs::read(errors).unwrap_or_default();
    let end = &text[text.len().saturating_sub(LAST_WORDS_MAX)..];
    let end = String::from_utf8_lossy(end);
    if end.trim().is_empty() {
        String::new()
    } else {
        format!(":\n{}", end.trim_end())
    }
}

/// Waits for the child on its pidfd, so that its end is noticed before the next sample.
fn watch(
    child: &mut Child,
    sampler: &mut TreeSampler,
    (name, time_max): (&str, Option<Duration>),
    sampling: Sampling,
    interrupt: &Interrupt,
) -> Result<ExitStatus> {
    let failed = |error: io::Error| anyhow!("cannot watch {name}: {error}");
    let id = Pid::from_child(child);
    let begun = Instant::now();
    let mut until_it_ends = || -> Result<()> {
        let every = Timespec {
            tv_sec: 0,
            tv_nsec: SAMPLE_EVERY.subsec_nanos().into(),
        };
        let descriptor =
            pidfd_open(id, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
        loop {
            let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
            match poll(&mut descriptors, Some(&every)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(failed(error.into())),
            }
            interrupt.check()?;
            if let Some(time_max) = time_max.filter(|time_max| begun.elapsed() > *time_max) {
                bail!("{name} did not end within {time_max:?}");
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

/// Ends a program and its descendants: by SIGTERM, then by SIGKILL. Errors mean that it has ended.
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

/// A flag that signals set. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// The signal that arrived, 0 for none.
    signal: Arc<AtomicUsize>,
    /// The same flag for generators and validators.
    watch: Watch,
}

impl Interrupt {
    pub fn never() -> Interrupt {
        Interrupt::default()
    }

    /// A flag that SIGINT, SIGTERM and SIGHUP set instead of ending the process. Under `nohup` SIGHUP stays
    /// ignored.
    pub fn listen() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let hangup = if is_ignored(SIGHUP)? {
            None
        } else {
            Some(SIGHUP)
        };
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let number = usize::try_from(signal).map_err(io::Error::other)?;
            flag::register_usize(signal, Arc::clone(&interrupt.signal), number)?;
            flag::register(signal, interrupt.watch.stop_flag())?;
        }
        Ok(interrupt)
    }

    /// An error once a signal arrived.
    pub fn check(&self) -> Result<(), InterruptError> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(InterruptError {
                signal: u8::try_from(signal).unwrap_or(u8::MAX),
            }),
        }
    }

    /// A watch that ends calls of datagen on the same signals.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }
}

/// How long to wait for orphans.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// While it exists, orphaned descendants become children of this process.
#[derive(Debug)]
pub struct Adoption(());

impl Adoption {
    pub fn begin() -> Adoption {
        // If the kernel refuses, the time of orphans is not counted.
        let _ = set_child_subreaper(Some(getpid()));
        Adoption(())
    }

    /// Waits for those descendants that became children of this process.
    pub fn end(self, descendants: Vec<Pid>) {
        let began = Instant::now();
        for process in descendants {
            // Fails for a process that is not a child of this one.
            let is_running = || matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(None));
            if is_running() && ends_within(process, WAIT_MAX.saturating_sub(began.elapsed())) {
                is_running();
            }
        }
    }
}

fn ends_within(process: Pid, time: Duration) -> bool {
    let Ok(descriptor) = pidfd_open(process, PidfdFlags::empty()) else {
        return false;
    };
    let time = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time)).is_ok_and(|ended| ended > 0)
}

impl Drop for Adoption {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}

/// Peaks of anonymous memory in a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryPeak {
    /// Peak of all processes together.
    pub tree_bytes: u64,
    /// Of any one process below the first: for a job, of a task process.
    pub descendant_bytes: u64,
    pub samples: u64,
}

/// Samples a process and its descendants.
#[derive(Debug)]
pub struct TreeSampler {
    root: Pid,
    peak: MemoryPeak,
    page_bytes: u64,
    /// All descendants so far.
    seen: BTreeSet<i32>,
}

impl TreeSampler {
    pub fn new(root: Pid) -> TreeSampler {
        TreeSampler {
            root,
            peak: MemoryPeak::default(),
            page_bytes: page_size() as u64,
            seen: BTreeSet::new(),
        }
    }

    /// Takes one sample. A process that ends meanwhile counts as empty.
    pub fn sample(&mut self) {
        let mut tree_bytes = 0;
        let members = self.members();
        self.seen.extend(
            members[1..]
                .iter()
                .map(|member| member.as_raw_nonzero().get()),
        );
        for process in members {
            let bytes = anonymous_pages(process).unwrap_or(0) * self.page_bytes;
            tree_bytes += bytes;
            if process != self.root {
                self.peak.descendant_bytes = self.peak.descendant_bytes.max(bytes);
            }
        }
        self.peak.tree_bytes = self.peak.tree_bytes.max(tree_bytes);
        self.peak.samples += 1;
    }

    /// All descendants so far, even if their parent has ended.
    pub fn seen(&self) -> Vec<Pid> {
        self.seen
            .iter()
            .filter_map(|number| Pid::from_raw(*number))
            .collect()
    }

    /// `None` before the first sample.
    pub fn peak(&self) -> Option<MemoryPeak> {
        (self.peak.tree_bytes > 0).then_some(self.peak)
    }

    /// The process and its living descendants, parents before children.
    pub fn members(&self) -> Vec<Pid> {
        let mut members = vec![self.root];
        let mut next = 0;
        while let Some(&process) = members.get(next) {
            next += 1;
            children(process, &mut members);
        }
        members
    }
}

/// Appends the children of every thread of `process`.
fn children(process: Pid, into: &mut Vec<Pid>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())) else {
        return;
    };
    for thread in threads.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else {
            continue;
        };
        into.extend(
            list.split_whitespace()
                .filter_map(|id| Pid::from_raw(id.parse().ok()?)),
        );
    }
}

/// Resident pages that belong to no file: `resident - shared` of statm.
fn anonymous_pages(process: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/statm", process.as_raw_nonzero())).ok()?;
    let mut fields = text.split_whitespace().skip(1).map(str::parse::<u64>);
    let resident = fields.next()?.ok()?;
    let shared = fields.next()?.ok()?;
    Some(resident.saturating_sub(shared))
}

/// Processor seconds of children that were waited for, and of their descendants.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChildrenTime {
    pub user: f64,
    pub system: f64,
}

pub fn children_time() -> ChildrenTime {
    let read = || parse_children_time(&fs::read_to_string("/proc/self/stat").ok()?);
    read().unwrap_or_default()
}

fn parse_children_time(stat: &str) -> Option<ChildrenTime> {
    // The second field, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(13).map(str::parse::<u64>);
    let per_second = clock_ticks_per_second() as f64;
    let mut seconds = || Some(ticks.next()?.ok()? as f64 / per_second);
    Some(ChildrenTime {
        user: seconds()?,
        system: seconds()?,
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn command_is_shown_for_a_shell() {
        let command = CommandLine::new("/bin/sort")
            .env("LC_ALL", "C")
            .flag("-o", "it's here")
            .arg("")
            .arg("--parallel=2");
        assert_eq!(
            command.typed(),
            r"LC_ALL=C /bin/sort -o 'it'\''s here' '' --parallel=2"
        );
        let command = CommandLine::new("bin/nap-lab")
            .called("nap-lab-bare-sort")
            .env("A", "1")
            .arg("in");
        assert_eq!(
            command.typed(),
            "(A=1 exec -a nap-lab-bare-sort bin/nap-lab in)"
        );
    }

    #[test]
    fn failure_has_status_and_standard_error() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("/bin/sh")
            .arg("-c")
            .arg("echo gone wrong >&2; exit 3");
        let error = run(&command, folder.path(), Sampling::Off, &Interrupt::never())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("sh failed") && error.contains("3") && error.contains("gone wrong"),
            "{error}"
        );
    }

    #[test]
    fn timeout_ends_the_program_and_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let script = "sleep 1000 & echo $! > sleeper; wait";
        let command = CommandLine::new("/bin/sh")
            .arg("-c")
            .arg(script)
            .within(Duration::from_millis(300));
        let error = run(&command, folder.path(), Sampling::Off, &Interrupt::never())
            .unwrap_err()
            .to_string();
        assert_eq!(error, "sh did not end within 300ms");
        let sleeper = fs::read_to_string(folder.path().join("sleeper")).unwrap();
        let status = format!("/proc/{}/stat", sleeper.trim());
        // It is a zombie until its adopter reaps it.
        let is_gone = || fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_gone() {
            assert!(Instant::now() < deadline, "{sleeper} is there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn processor_time_of_orphans_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        // It works for a while when the shell that started it has ended.
        let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
        let command = CommandLine::new("/bin/sh")
            .arg("-c")
            .arg(format!("({busy}) & sleep 0.2"));
        let took = |sampling| {
            let usage = run(&command, folder.path(), sampling, &Interrupt::never()).unwrap();
            (usage.wall_seconds, usage.user_seconds)
        };
        let (wall, processor) = took(Sampling::Tree);
        assert!(
            processor > 0.25 && wall < processor + 0.2,
            "{processor} s of processor in {wall} s"
        );
    }

    #[test]
    fn missing_program_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("/nowhere/at-all");
        let error = run(&command, folder.path(), Sampling::Off, &Interrupt::never())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot start /nowhere/at-all"), "{error}");
    }

    #[test]
    fn settings_of_napreduce_are_not_inherited() {
        assert!(is_setting(OsStr::new("NAPREDUCE_CLUSTER")) && !is_setting(OsStr::new("PATH")));
    }

    #[test]
    fn standard_output_is_returned() {
        let folder = tempfile::tempdir().unwrap();
        let command = CommandLine::new("/bin/echo").arg("hello");
        assert_eq!(
            run_and_read(&command, folder.path(), &Interrupt::never()).unwrap(),
            "hello\n"
        );
    }

    #[test]
    fn children_time_follows_a_name_with_brackets() {
        let stat = "1 (a ) b) S 2 3 4 5 6 7 8 9 10 11 12 13 200 100 16 17 18";
        let time = parse_children_time(stat).unwrap();
        let per_second = clock_ticks_per_second() as f64;
        assert_eq!(
            (time.user, time.system),
            (200.0 / per_second, 100.0 / per_second)
        );
    }

    #[test]
    fn grandchildren_belong_to_the_tree() {
        // The inner shell prints a line, then waits for the end of a pipe.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "/bin/sh -c 'echo ready; read line'; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = io::BufReader::new(child.stdout.take().unwrap());
        io::BufRead::read_line(&mut output, &mut line).unwrap();
        let mut sampler = TreeSampler::new(Pid::from_child(&child));
        sampler.sample();
        let members = sampler.members();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((line.as_str(), members.len()), ("ready\n", 2));
        let peak = sampler.peak().unwrap();
        assert!(
            peak.tree_bytes > peak.descendant_bytes && peak.descendant_bytes > 0,
            "{peak:?}"
        );
    }
}
