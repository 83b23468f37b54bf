//! The functions of these tests: a job of the fixture program, pauses in its tasks, and its outcome. Every
//! wait is for an event and has a deadline.
#![allow(clippy::unwrap_used)] // A test helper fails the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid,
};
use tempfile::TempDir;

/// Far longer than any step takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A job that is not yet started, in its own directory.
pub struct Scenario {
    directory: TempDir,
    moments: UnixListener,
    output: PathBuf,
    options: Vec<String>,
    rules: Vec<String>,
}

impl Scenario {
    /// Creates a job over input files with these contents, one map each.
    pub fn new(inputs: &[&str]) -> Scenario {
        let directory = tempfile::tempdir().unwrap();
        let moments = UnixListener::bind(directory.path().join("moments")).unwrap();
        let output = directory.path().join("out");
        let scenario = Scenario {
            directory,
            moments,
            output,
            options: Vec::new(),
            rules: Vec::new(),
        };
        fs::create_dir(scenario.path("in")).unwrap();
        for (number, text) in inputs.iter().enumerate() {
            fs::write(scenario.path(&format!("in/{number}.txt")), text).unwrap();
        }
        scenario
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn output(&self) -> PathBuf {
        self.output.clone()
    }

    /// Returns the work directory of a running job, whose name has a random suffix.
    pub fn work(&self) -> PathBuf {
        let temporary = self.output.join("_temporary");
        let work = names(&temporary)
            .into_iter()
            .find(|name| name.starts_with("job_0001-"));
        temporary.join(work.expect("a claim"))
    }

    /// Changes the name of the output.
    pub fn at(mut self, name: &str) -> Scenario {
        self.output = self.path(name);
        self
    }

    /// Adds an option of the fixture's command line, `name=value`.
    pub fn with(mut self, option: &str) -> Scenario {
        self.options.push(option.to_owned());
        self
    }

    /// Adds a fault, such as `m_0000.1 work panic bad row`: attempt, point, action, message.
    pub fn rule(mut self, rule: &str) -> Scenario {
        self.rules.push(rule.to_owned());
        self
    }

    /// Pauses the attempt at this point until the test gets it from [`Running::moment`].
    pub fn pause(self, attempt: &str, point: &str) -> Scenario {
        let socket = self.path("moments");
        self.rule(&format!("{attempt} {point} pause {}", socket.display()))
    }

    pub fn start(&self) -> Running<'_> {
        self.start_as("first", None)
    }

    /// Starts the job; its standard error can be read line by line.
    pub fn start_heard(&self) -> (Running<'_>, Heard) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (
            self.start_as("first", Some(theirs)),
            Heard(BufReader::new(ours)),
        )
    }

    fn start_as(&self, name: &'static str, stderr: Option<UnixStream>) -> Running<'_> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_local-fixture"));
        command
            .args([self.path("in"), self.output.clone()])
            .arg(format!("rules={}", self.rules.join(";")))
            .args(&self.options);
        self.spawn(command, name, stderr)
    }

    /// Runs the program of `fixture/host.rs` over the inputs, in the directory of this scenario.
    pub fn run_host(&self) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_local-fixture"));
        command.arg("host").arg(self.directory.path());
        self.spawn(command, "first", None).end()
    }

    fn spawn(
        &self,
        mut command: Command,
        name: &'static str,
        stderr: Option<UnixStream>,
    ) -> Running<'_> {
        let file = |what: &str| fs::File::create(self.path(&format!("{name}.{what}"))).unwrap();
        let child = command
            // Printing a backtrace takes longer than the rest of a test.
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(stderr.map_or(Stdio::from(file("stderr")), |stream| {
                Stdio::from(OwnedFd::from(stream))
            }))
            .spawn()
            .unwrap();
        Running {
            scenario: self,
            name,
            child: Some(child),
        }
    }

    /// Runs the job a second time while the first run is active.
    pub fn run_another(&self) -> Ended {
        self.start_as("second", None).end()
    }

    /// Runs the job to its end.
    pub fn run(&self) -> Ended {
        self.start().end()
    }

    /// Returns the words and counts of the output.
    pub fn counts(&self) -> String {
        fs::read_to_string(self.output().join("part-r-00000")).unwrap()
    }

    /// Returns the names in the output directory, sorted; empty if it does not exist.
    pub fn output_names(&self) -> Vec<String> {
        names(&self.output())
    }
}

/// Returns the names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Standard error of a job program, line by line.
pub struct Heard(BufReader<UnixStream>);

impl Heard {
    /// Waits for the next line.
    pub fn line(&mut self) -> String {
        self.0.get_ref().set_read_timeout(Some(DEADLINE)).unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line in time");
        line
    }
}

/// A started job.
pub struct Running<'a> {
    scenario: &'a Scenario,
    name: &'static str,
    child: Option<Child>,
}

impl Running<'_> {
    fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    /// Waits until the next task pauses.
    pub fn moment(&self) -> Moment {
        wait_readable(&self.scenario.moments, "no task came to a pause");
        let (stream, _) = self.scenario.moments.accept().unwrap();
        wait_readable(&stream, "a task said nothing");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        let (_attempt, process) = line.trim().split_once(' ').unwrap();
        let process = Pid::from_raw(process.parse().unwrap()).unwrap();
        let watched = pidfd_open(process, PidfdFlags::empty()).unwrap();
        Moment {
            process,
            watched,
            stream,
        }
    }

    /// Sends a signal to the job program.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child()), signal).unwrap();
    }

    /// Waits until the job program has stopped itself.
    pub fn wait_until_stopped(&self) {
        let child = WaitId::Pid(Pid::from_child(self.child()));
        let stopped = waitid(
            child,
            WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        );
        assert!(
            stopped.unwrap().unwrap().stopped(),
            "the job program ended before it stopped"
        );
    }

    /// Waits until the job program ends.
    pub fn end(mut self) -> Ended {
        let watched = pidfd_open(Pid::from_child(self.child()), PidfdFlags::empty()).unwrap();
        wait_readable(&watched, "the job did not end");
        let status = self.child.take().unwrap().wait().unwrap();
        let read = |what: &str| {
            fs::read_to_string(self.scenario.path(&format!("{}.{what}", self.name))).unwrap()
        };
        Ended {
            status,
            stdout: read("stdout"),
            stderr: read("stderr"),
        }
    }
}

impl Drop for Running<'_> {
    /// Kills the job if the test has failed.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A paused task.
pub struct Moment {
    process: Pid,
    watched: OwnedFd,
    stream: UnixStream,
}

impl Moment {
    /// Continues the task.
    pub fn go_on(mut self) {
        self.stream.write_all(b"!").unwrap();
    }

    /// Kills the process, which is paused and therefore not reaped.
    pub fn kill(&self) {
        kill_process(self.process, Signal::KILL).unwrap();
    }

    /// Waits until the process has ended.
    pub fn assert_gone(&self) {
        wait_readable(&self.watched, "a process is still there");
    }

    /// Returns a handle to wait for the process after it was continued.
    pub fn watch(&self) -> Watched {
        Watched(self.watched.try_clone().unwrap())
    }
}

/// A process to wait for.
pub struct Watched(OwnedFd);

impl Watched {
    /// Waits until the process has ended.
    pub fn assert_gone(&self) {
        wait_readable(&self.0, "a process is still there");
    }
}

/// A job program that has ended.
pub struct Ended {
    status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn assert_success(&self) -> &Ended {
        assert!(self.status.success(), "{}: {}", self.status, self.stderr);
        self
    }

    /// Asserts the exit status and that the error contains each text.
    pub fn assert_failure(&self, status: i32, texts: &[&str]) -> &Ended {
        assert_eq!(
            self.status.code(),
            Some(status),
            "{}: {}",
            self.status,
            self.stderr
        );
        for text in texts {
            assert!(self.stderr.contains(text), "no {text:?} in {}", self.stderr);
        }
        self
    }

    pub fn status_code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn assert_killed_by(&self, signal: Signal) {
        assert_eq!(
            self.status.signal(),
            Some(signal.as_raw()),
            "{}: {}",
            self.status,
            self.stderr
        );
    }

    /// Returns the fixture's report about its job, the last one if it ran several.
    pub fn outcome(&self) -> serde_json::Value {
        serde_json::from_str(self.stdout.lines().last().unwrap()).unwrap()
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.outcome()["counters"][name].as_u64().unwrap_or(0)
    }
}

fn wait_readable(what: impl AsFd, otherwise: &str) {
    let deadline = Timespec {
        tv_sec: DEADLINE.as_secs().try_into().unwrap(),
        tv_nsec: 0,
    };
    let mut watched = [PollFd::from_borrowed_fd(what.as_fd(), PollFlags::IN)];
    assert_eq!(
        poll(&mut watched, Some(&deadline)).unwrap(),
        1,
        "{otherwise}"
    );
}
