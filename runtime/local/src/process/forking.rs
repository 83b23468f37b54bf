//! The thread that starts task processes: builds their command lines and runs the fork servers.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use napreduce_task::{
    FORK_MARKER, MARKER, PRESTART_NUMBER_DIGITS, PRESTART_VARIABLE, WORKER_VARIABLE,
};
use rustix::process::Pid;
use tokio::sync::oneshot;

use super::child::{Own, Started};
use super::control_groups::ControlGroups;
use super::fork_server::ForkServer;
use super::launch::{Executable, Launch, TaskOutput};
use super::orphans::sweep;
use super::prestart::{KEPT_FOR, Model, Prestarts};

/// The environment variable that identifies the processes of an attempt.
const ATTEMPT_VARIABLE: &str = "NAPREDUCE_ATTEMPT_ID";

/// Retries for a busy program file: a process being started may briefly hold the descriptor through which the
/// file was written.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

pub(super) enum Request {
    Start(Box<Launch>, oneshot::Sender<io::Result<AnswerToStart>>),
    /// Announces that processes of this model will be needed.
    Prestart(Box<Model>),
    /// Kills processes with these marks.
    Sweep(Vec<String>),
}

/// A process, and for a prestarted one its intended use.
pub(super) struct AnswerToStart {
    pub(super) started: Started,
    pub(super) unused: Option<Box<Launch>>,
}

pub(super) struct Forking {
    own: Own,
    adopts: bool,
    /// Control groups for prestarted processes.
    groups: Option<Arc<ControlGroups>>,
    prestarts: Arc<Prestarts>,
    servers: Vec<(Model, ForkServer)>,
    /// Number of prestarted processes.
    count: u64,
    /// The directory of the worker.
    directory: Option<PathBuf>,
}

impl Forking {
    pub(super) fn new(
        adopts: bool,
        groups: Option<Arc<ControlGroups>>,
        prestarts: Arc<Prestarts>,
        directory: Option<PathBuf>,
    ) -> Forking {
        Forking {
            own: Own::default(),
            adopts,
            groups,
            prestarts,
            servers: Vec::new(),
            count: 0,
            directory,
        }
    }

    pub(super) fn run(mut self, inbox: &mpsc::Receiver<Request>) {
        loop {
            let request = match inbox.try_recv() {
                Ok(request) => Ok(request),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {
                    // One group at a time, so that a request waits for no more than one blocking write.
                    if self.put_into_group() {
                        continue;
                    }
                    if self.prestarts.is_empty() {
                        inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
                    } else {
                        inbox.recv_timeout(KEPT_FOR)
                    }
                }
            };
            match request {
                // If the requester no longer waits, the process is dropped and thereby killed.
                Ok(Request::Start(launch, reply)) => {
                    let _ = reply.send(self.start(launch));
                }
                Ok(Request::Prestart(model)) => self.prestart(&model),
                Ok(Request::Sweep(marks)) => sweep(&self.own.numbers(), &marks),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.end(self.prestarts.retire(Instant::now()));
            self.servers
                .retain(|(model, _)| self.prestarts.are_wanted(model));
        }
    }

    /// Starts a process. A process that was being prestarted when the request arrived is ready by now.
    fn start(&mut self, launch: Box<Launch>) -> io::Result<AnswerToStart> {
        let model = Model::for_launch(&launch);
        let mut ready = self.prestarts.take(&model);
        if ready.is_none() {
            // A start in the usual way meets the same error and reports it.
            ready = self.fork(&model).and_then(Result::ok);
        }
        if let Some(started) = ready {
            return Ok(AnswerToStart {
                started,
                unused: Some(launch),
            });
        }
        let started = start(self.marked(*launch), MARKER, &self.own)?;
        Ok(AnswerToStart {
            started,
            unused: None,
        })
    }

    /// Adds the directory of the worker to the environment.
    fn marked(&self, mut launch: Launch) -> Launch {
        if let Some(directory) = &self.directory {
            launch
                .variables
                .push((WORKER_VARIABLE, Some(directory.clone().into_os_string())));
        }
        launch
    }

    fn prestart(&mut self, model: &Model) {
        let serves = self.servers.iter().any(|(known, _)| known == model);
        if !serves && self.prestarts.lacking(model) > 0 {
            let launch = model.launch(&self.name(0));
            match start(self.marked(launch), FORK_MARKER, &self.own)
                .and_then(ForkServer::await_ready)
            {
                Ok(server) => self.servers.push((model.clone(), server)),
                // An attempt started in the usual way meets the same error and reports it.
                Err(_) => return self.put(model, None),
            }
        }
        for _ in 0..self.prestarts.lacking(model) {
            let started = self.fork(model).and_then(Result::ok);
            self.put(model, started);
        }
    }

    /// Moves a waiting process into a control group; returns false if none is left.
    fn put_into_group(&self) -> bool {
        let Some(groups) = &self.groups else {
            return false;
        };
        let Some((model, mut started)) = self.prestarts.take_to_enter() else {
            return false;
        };
        started.enter(groups);
        self.put(&model, Some(started));
        true
    }

    fn put(&self, model: &Model, started: Option<Started>) {
        self.end(self.prestarts.put(model.clone(), started));
    }

    /// Forks a process that waits for an attempt. `None` if there is no fork server for its program.
    fn fork(&mut self, model: &Model) -> Option<io::Result<Started>> {
        let (_, server) = self.servers.iter().find(|(known, _)| known == model)?;
        self.count += 1;
        let marks = vec![format!("{PRESTART_VARIABLE}={}", self.name(self.count))];
        let forked = || {
            let (control, theirs) = channel()?;
            let (stdout, stderr) = streams(model.output()?, model.is_silent)?;
            let child = server.fork(self.count, [theirs, stdout, stderr])?;
            Started::begin(child, control, marks, &self.own)
        };
        Some(forked())
    }

    /// Returns the mark of a prestarted process and its children.
    fn name(&self, number: u64) -> String {
        format!("{}.{number:0PRESTART_NUMBER_DIGITS$}", std::process::id())
    }

    fn end(&self, unwanted: Vec<Started>) {
        let marks: Vec<String> = unwanted
            .iter()
            .flat_map(|one| &one.marks)
            .cloned()
            .collect();
        drop(unwanted);
        if self.adopts && !marks.is_empty() {
            sweep(&self.own.numbers(), &marks);
        }
    }
}

/// Returns the identifying variables of a process in the form of an environment.
pub(super) fn marks_of(launch: &Launch) -> Vec<String> {
    let marking = launch
        .variables
        .iter()
        .filter(|(name, _)| [ATTEMPT_VARIABLE, PRESTART_VARIABLE].contains(name));
    marking
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?.to_str()?)))
        .collect()
}

/// Returns both ends of a control channel; the second is for the task process.
fn channel() -> io::Result<(StdUnixStream, OwnedFd)> {
    let (control, theirs) = StdUnixStream::pair()?;
    control.set_nonblocking(true)?;
    Ok((control, theirs.into()))
}

/// Returns standard output and standard error; without files, the job's standard error.
fn streams(output: Option<TaskOutput>, is_silent: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let printed = match output {
        Some(TaskOutput { stdout, stderr }) => return Ok((stdout.into(), stderr.into())),
        None if is_silent => OwnedFd::from(File::options().write(true).open("/dev/null")?),
        None => io::stderr().as_fd().try_clone_to_owned()?,
    };
    Ok((printed.try_clone()?, printed))
}

/// Starts a process with the control channel as standard input. Without `pre_exec` the standard library uses
/// posix_spawn, whose cost does not grow with the memory of this process.
fn start(launch: Launch, marker: &str, own: &Own) -> io::Result<Started> {
    let marks = marks_of(&launch);
    let (control, theirs) = channel()?;
    let mut command = match launch.program {
        Some(Executable { path, name }) => {
            let mut command = Command::new(path);
            command.arg0(name);
            command
        }
        None => {
            let mut command = Command::new("/proc/self/exe");
            if let Some(name) = std::env::args_os().next() {
                command.arg0(name);
            }
            command
        }
    };
    let (stdout, stderr) = streams(launch.output, launch.is_silent)?;
    command
        .arg(marker)
        .arg(std::process::id().to_string())
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .process_group(0);
    if let Some(directory) = launch.directory {
        command.current_dir(directory);
    }
    if let Some(environment) = launch.environment {
        command.env_clear().envs(environment);
    }
    for (name, value) in launch.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Started::begin(execute(&mut command)?, control, marks, own)
}

fn execute(command: &mut Command) -> io::Result<Pid> {
    let mut tries = 1;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            other => return other.map(|child| Pid::from_child(&child)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use napreduce_protocol::{FromTask, PROTOCOL_VERSION, write_message};
    use rustix::process::{WaitId, WaitIdOptions, getpgid, waitid};

    use super::*;

    /// Exit status of this test program for an unknown argument, once it has reached `main`.
    const REFUSAL: i32 = 101;

    fn server(own: &Own) -> ForkServer {
        napreduce_task::serve_forks_before_main();
        let launch = Model::for_launch(&Launch::default())
            .launch(&format!("1.{:0PRESTART_NUMBER_DIGITS$}", 0));
        let started = start(launch, FORK_MARKER, own).expect("started");
        ForkServer::await_ready(started).expect("it forks")
    }

    #[test]
    fn fork_reaches_main_as_child_in_own_group() {
        let own = Own::default();
        let server = server(&own);
        for number in 1..=3 {
            let (control, theirs) = channel().expect("a channel");
            let mut printed = tempfile::tempfile().expect("a file");
            let [stdout, stderr] =
                [(); 2].map(|()| printed.try_clone().expect("a descriptor").into());
            let child = server
                .fork(number, [theirs, stdout, stderr])
                .expect("forked");
            let started = Started::begin(child, control, Vec::new(), &own).expect("a child");
            assert_eq!(getpgid(Some(child)), Ok(child));
            let seen = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = waitid(WaitId::Pid(child), seen)
                .expect("a child")
                .expect("it has ended");
            assert_eq!(ended.exit_status(), Some(REFUSAL));
            let mut text = String::new();
            printed.rewind().expect("a file");
            printed.read_to_string(&mut text).expect("text");
            assert!(text.contains("napreduce-idle-process"), "{text}");
            drop(started);
        }
        drop(server);
        assert!(own.numbers().is_empty(), "all are reaped");
    }

    #[test]
    fn program_without_fork_server_is_detected() {
        let own = Own::default();
        let program = Executable {
            path: "/bin/echo".into(),
            name: "echo".into(),
        };
        let launch = Launch {
            program: Some(program),
            is_silent: true,
            ..Launch::default()
        };
        let started = start(launch, FORK_MARKER, &own).expect("started");
        assert!(ForkServer::await_ready(started).is_err());
        assert!(own.numbers().is_empty(), "it is reaped");
    }

    #[test]
    fn hello_of_a_program_that_cannot_fork_is_detected_at_once() {
        let own = Own::default();
        let (control, theirs) = channel().expect("a channel");
        let program = Executable {
            path: "/bin/echo".into(),
            name: "echo".into(),
        };
        let launch = Launch {
            program: Some(program),
            is_silent: true,
            ..Launch::default()
        };
        let mut started = start(launch, FORK_MARKER, &own).expect("started");
        started.control = control;
        let hello = FromTask::Hello {
            version: PROTOCOL_VERSION,
        };
        let theirs = StdUnixStream::from(theirs);
        write_message(&theirs, &hello).expect("sent");
        let error = ForkServer::await_ready(started).expect_err("it is not a fork server");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
    }
}
