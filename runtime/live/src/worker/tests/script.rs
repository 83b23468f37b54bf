//! The vocabulary: a cluster of one worker, a line to it, moments in its tasks.
//!
//! Owns the waiting, always on an event and with a deadline. What the coordinator says is said by the test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_core::{AttemptId, FailureClass, JobId, MapOutput, Report, TaskId, TaskKind, WorkerId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::blobs::Digest;
use crate::body::Split;
use crate::cluster_directory::ClusterDirectory;
use crate::protocol::{
    Blob, CHUNK_BYTES, FromCoordinator, FromWorker, Hello, JobDescription, LaunchWork, Payload, ReduceInputs,
    SideFile, ToCoordinator, ToWorker, WorkerOrder, WorkerReport,
};
use crate::transport::{Connection, Listener, Role};

/// Far beyond what anything here takes, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);
pub const JOB: JobId = JobId(1);
pub const JOURNAL: u64 = 77;

/// Waits for something that must come.
pub async fn soon<T>(what: &str, something: impl Future<Output = T>) -> T {
    timeout(DEADLINE, something).await.unwrap_or_else(|_| panic!("{what} did not come"))
}

/// Waits for something that nobody tells.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let look = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(what, look).await;
}

pub fn map(number: u32) -> AttemptId {
    AttemptId { task: TaskId { job: JOB, kind: TaskKind::Map, index: 0 }, number }
}

pub fn reduce(number: u32) -> AttemptId {
    AttemptId { task: TaskId { job: JOB, kind: TaskKind::Reduce, index: 0 }, number }
}

/// A cluster directory whose coordinator is the test.
pub struct Script {
    directory: TempDir,
    workers: UnboundedReceiver<Connection>,
    blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
    accepting: JoinHandle<()>,
    moments: UnixListener,
}

impl Script {
    pub async fn new() -> Script {
        let directory = tempfile::tempdir().unwrap();
        let cluster = ClusterDirectory::resolve(Some(directory.path().join("cluster"))).unwrap();
        cluster.create().unwrap();
        let moments = UnixListener::bind(directory.path().join("moments")).unwrap();
        fs::write(directory.path().join("in.txt"), "a b a").unwrap();
        fs::create_dir_all(directory.path().join("out/_temporary/job_0001/committed")).unwrap();
        let (blobs, (_, workers)) = (Arc::default(), unbounded_channel());
        let mut script = Script { directory, workers, blobs, accepting: tokio::spawn(async {}), moments };
        script.listen().await;
        script
    }

    /// Begins to listen, at another address than before.
    pub async fn listen(&mut self) {
        let cluster = self.cluster();
        let listener = Listener::bind("127.0.0.1:0", cluster.secret().unwrap(), |_| {}).await.unwrap();
        cluster.publish_coordinator(listener.address()).unwrap();
        let (arrived, workers) = unbounded_channel();
        self.workers = workers;
        self.accepting = tokio::spawn(accept(listener, arrived, Arc::clone(&self.blobs)));
    }

    /// Nobody answers any more.
    pub fn stop_listening(&mut self) {
        self.accepting.abort();
    }

    pub fn cluster(&self) -> ClusterDirectory {
        ClusterDirectory::resolve(Some(self.path("cluster"))).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A path in the directory of the worker.
    pub fn own(&self, name: &str) -> PathBuf {
        self.path("cluster/workers/one").join(name)
    }

    pub fn log(&self, attempt: AttemptId, stream: &str) -> String {
        fs::read_to_string(self.own(&format!("logs/{JOB}/{attempt}/{stream}"))).unwrap()
    }

    /// Starts the worker `one`.
    pub fn start(&self, options: &[&str]) -> Daemon {
        self.start_as("one", options)
    }

    pub fn start_as(&self, name: &str, options: &[&str]) -> Daemon {
        let cluster = format!("cluster={}", self.path("cluster").display());
        let name = format!("name={name}");
        self.start_with(&[&[cluster.as_str(), name.as_str()], options].concat())
    }

    pub fn start_with(&self, options: &[&str]) -> Daemon {
        let log = self.path(&format!("daemon-{}.log", fs::read_dir(self.path("")).unwrap().count()));
        let child = Command::new(fixture())
            .arg("worker")
            .args(options)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let watched = Process::watch(Pid::from_child(&child));
        Daemon { child, watched, log }
    }

    /// The worker connects.
    pub async fn hello(&mut self) -> Line {
        let mut connection = soon("a worker", self.workers.recv()).await.unwrap();
        match soon("hello", connection.receive()).await.unwrap().unwrap() {
            FromWorker::Hello(hello) => Line { hello: *hello, connection, ordered: 0, silent: false },
            other => panic!("{other:?} before hello"),
        }
    }

    /// The worker connects, as new, and is welcome.
    pub async fn join(&mut self) -> Line {
        let mut line = self.hello().await;
        assert_eq!((line.hello.before, line.hello.received), (None, 0));
        line.welcome(1, 0).await;
        line
    }

    /// Makes something known that workers fetch.
    pub fn keep(&self, bytes: Vec<u8>) -> Blob {
        let (digest, length) = Digest::of(&bytes[..]).unwrap();
        self.blobs.lock().unwrap().insert(digest, bytes);
        Blob { digest, bytes: length }
    }

    /// What is sent instead of a blob.
    pub fn falsify(&self, blob: Blob, bytes: Vec<u8>) {
        self.blobs.lock().unwrap().insert(blob.digest, bytes);
    }

    /// A job of the fixture program with these rules.
    pub fn job(&self, rules: &str) -> JobDescription {
        let mut program = Vec::new();
        File::open(fixture()).unwrap().read_to_end(&mut program).unwrap();
        JobDescription {
            job: JOB,
            definition: "fixture".into(),
            parameters: rules.replace("SOCKET", &self.path("moments").display().to_string()).into_bytes(),
            reduces: 1,
            cuts: Vec::new(),
            compress: false,
            task_memory: 64 << 20,
            output: self.path("out"),
            part_extension: String::new(),
            task_timeout_millis: 600_000,
            program: Some(self.keep(program)),
            files: Vec::new(),
        }
    }

    pub fn side_file(&self, name: &str, text: &str) -> SideFile {
        SideFile { name: name.into(), blob: self.keep(text.as_bytes().to_vec()) }
    }

    /// A map over the input.
    pub fn map_work(&self) -> LaunchWork {
        LaunchWork::Map { split: Split::whole(&self.path("in.txt"), 5) }
    }

    /// Waits for the next task to come to a pause.
    pub async fn moment(&self) -> Moment {
        let (stream, _) = soon("a pause", self.moments.accept()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        soon("who pauses", stream.read_line(&mut line)).await.unwrap();
        let (attempt, process) = line.trim().split_once(' ').unwrap();
        let process = Process::watch(Pid::from_raw(process.parse().unwrap()).unwrap());
        Moment { attempt: attempt.to_owned(), process, stream: stream.into_inner() }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Built with the tests, beside them.
fn fixture() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("live-fixture");
    assert!(path.exists(), "no {}; it is built with the tests of the whole package", path.display());
    path
}

async fn accept(
    mut listener: Listener,
    arrived: UnboundedSender<Connection>,
    blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
) {
    loop {
        let arrival = listener.accept().await;
        match arrival.role {
            Role::Worker => drop(arrived.send(arrival.connection)),
            Role::Client => drop(tokio::spawn(serve_blob(arrival.connection, Arc::clone(&blobs)))),
            Role::Data => panic!("a data connection to the coordinator"),
        }
    }
}

async fn serve_blob(mut connection: Connection, blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>) {
    let Ok(Some(ToCoordinator::FetchBlob { digest })) = connection.receive().await else { return };
    let bytes = blobs.lock().unwrap().get(&digest).cloned();
    let Some(bytes) = bytes else {
        let reason = format!("no blob {digest}");
        let _ = connection.send(&FromCoordinator::Refused { status: 1, reason }).await;
        return;
    };
    let _ = connection.send(&FromCoordinator::Blob { bytes: bytes.len() as u64 }).await;
    for chunk in bytes.chunks(CHUNK_BYTES) {
        // A worker that was killed hangs up.
        let _ = connection.send(&FromCoordinator::Chunk { bytes: Payload(chunk.to_vec()) }).await;
    }
}

/// A connection to the worker.
pub struct Line {
    pub hello: Hello,
    connection: Connection,
    ordered: u64,
    /// Whether heartbeats are left unanswered.
    pub silent: bool,
}

impl Line {
    pub async fn send(&mut self, message: ToWorker) {
        self.connection.send(&message).await.unwrap();
    }

    /// Lets it in under a number, with reports up to `received` kept.
    pub async fn welcome(&mut self, worker: u32, received: u64) {
        self.ordered = self.hello.received;
        let worker = WorkerId(worker);
        let (heartbeat_millis, silence_millis) = (20, 1_000);
        let welcome =
            ToWorker::Welcome { worker, journal: JOURNAL, received, heartbeat_millis, silence_millis };
        self.send(welcome).await;
    }

    /// Sends the next order.
    pub async fn order(&mut self, order: WorkerOrder) {
        self.ordered += 1;
        self.send(ToWorker::Ordered { number: self.ordered, order }).await;
    }

    pub async fn define(&mut self, job: JobDescription) {
        self.order(WorkerOrder::Define(Box::new(job))).await;
    }

    pub async fn launch(&mut self, attempt: AttemptId, work: LaunchWork) {
        self.order(WorkerOrder::Launch { attempt, work }).await;
    }

    /// A reduce over the output of `maps`, which this worker, number 1, holds.
    pub async fn launch_reduce(&mut self, attempt: AttemptId, maps: &[AttemptId]) {
        let outputs = maps.iter().map(|map| MapOutput { attempt: *map, worker: WorkerId(1) }).collect();
        let inputs = ReduceInputs { outputs, peers: Vec::new() };
        self.launch(attempt, LaunchWork::Reduce { maps: 1, inputs }).await;
    }

    /// One more map output for a reduce, which this worker, number 1, holds.
    pub async fn more_inputs(&mut self, attempt: AttemptId, map: AttemptId) {
        let outputs = vec![MapOutput { attempt: map, worker: WorkerId(1) }];
        let inputs = ReduceInputs { outputs, peers: Vec::new() };
        self.order(WorkerOrder::MoreInputs { attempt, inputs }).await;
    }

    /// The next message; `None` when the worker has hung up. Heartbeats are answered.
    pub async fn next(&mut self) -> Option<FromWorker> {
        let message = soon("a message", self.connection.receive()).await.ok().flatten()?;
        if matches!(message, FromWorker::Heartbeat { .. }) && !self.silent {
            // It may hang up at the same time.
            let _ = self.connection.send(&ToWorker::Received { through: 0 }).await;
        }
        Some(message)
    }

    /// The next report.
    pub async fn report(&mut self) -> (u64, WorkerReport) {
        loop {
            match self.next().await.expect("the worker hung up") {
                FromWorker::Reported { number, report } => return (number, report),
                FromWorker::Received { .. } | FromWorker::Heartbeat { .. } => {}
                FromWorker::Hello(_) => panic!("a second hello"),
            }
        }
    }

    /// No report comes for so long.
    pub async fn hear_nothing_for(&mut self, time: Duration) {
        if let Ok(report) = timeout(time, self.report()).await {
            panic!("{report:?} although nothing was to happen");
        }
    }

    /// The next report is that this happened.
    pub async fn assert_happened(&mut self, expected: u64, attempt: AttemptId, report: Report) {
        let happened = WorkerReport::Happened { attempt, report };
        assert_eq!(self.report().await, (expected, happened));
    }

    /// The next report is that an attempt is done.
    pub async fn assert_finished(&mut self, expected: u64, attempt: AttemptId) {
        match self.report().await {
            (number, WorkerReport::Finished { attempt: found, .. }) => {
                assert_eq!((number, found), (expected, attempt));
            }
            other => panic!("{other:?} instead of the end of {attempt}"),
        }
    }

    /// The next report that is a failure; its class and reason.
    pub async fn failure(&mut self) -> (FailureClass, String) {
        loop {
            match self.report().await.1 {
                WorkerReport::Happened { report: Report::Failed { class, reason, .. }, .. } => {
                    return (class, reason);
                }
                WorkerReport::Happened { report: Report::Started, .. } => {}
                other => panic!("{other:?} instead of a failure"),
            }
        }
    }

    /// Waits until the worker has said that it received orders up to this number.
    pub async fn assert_received(&mut self, expected: u64) {
        loop {
            match self.next().await.expect("the worker hung up") {
                FromWorker::Received { through } if through == expected => return,
                FromWorker::Received { .. } | FromWorker::Heartbeat { .. } => {}
                other => panic!("{other:?} instead of an acknowledgement"),
            }
        }
    }

    /// Waits until the worker hangs up.
    pub async fn assert_closed(mut self) {
        while self.next().await.is_some() {}
    }
}

/// A daemon that was started.
pub struct Daemon {
    child: Child,
    watched: Process,
    log: PathBuf,
}

impl Daemon {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it says on standard error so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for its end.
    pub async fn end(&mut self) -> ExitStatus {
        self.watched.assert_gone().await;
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    /// A test that failed leaves no daemon behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process whose end is awaited.
pub struct Process {
    id: Pid,
    watched: OwnedFd,
}

impl Process {
    fn watch(id: Pid) -> Process {
        Process { id, watched: pidfd_open(id, PidfdFlags::empty()).unwrap() }
    }

    /// For a process that is paused, and so not yet reaped.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.id, signal).unwrap();
    }

    pub async fn assert_gone(&self) {
        let watched = self.watched.try_clone().unwrap();
        let ended = spawn_blocking(move || is_readable(&watched, DEADLINE)).await.unwrap();
        assert!(ended, "process {:?} did not end", self.id);
    }

    /// Without waiting.
    pub fn is_gone(&self) -> bool {
        is_readable(&self.watched, Duration::ZERO)
    }
}

fn is_readable(watched: &OwnedFd, within: Duration) -> bool {
    let within = Timespec { tv_sec: within.as_secs().try_into().unwrap(), tv_nsec: 0 };
    poll(&mut [PollFd::new(watched, PollFlags::IN)], Some(&within)).unwrap() == 1
}

/// A task that has come to a pause.
pub struct Moment {
    pub attempt: String,
    pub process: Process,
    stream: UnixStream,
}

impl Moment {
    /// Lets the task go on.
    pub async fn go_on(mut self) -> Process {
        self.stream.write_all(b"!").await.unwrap();
        self.process
    }
}

/// Writes what stands in the way of nothing; a marker that must be gone later.
pub fn mark(path: &Path) {
    File::create(path).unwrap().write_all(b"here").unwrap();
}
