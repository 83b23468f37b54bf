//! The functions of these tests: a cluster of one worker, its jobs, and pauses in their tasks. Every wait is
//! for an event and has a deadline. The messages to the worker are in `line`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future::Future;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_cluster::ClusterDirectory;
use napreduce_cluster::transport::{Connection, Listener, Role};
use napreduce_engine::{AttemptId, JobId, Report, TaskId, TaskKind};
use napreduce_local::world::World;
use napreduce_protocol::requests::FetchBlob;
use napreduce_protocol::{
    Blob, CHUNK_BYTES, ClaimToken, Digest, FromCoordinator, JobDescription, LaunchWork, Payload,
    SideFile, Split, ToCoordinator, WorkerReport,
};
use rustix::process::Pid;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::line::Line;
use super::processes::{Daemon, Moment, Process};

/// Far longer than any step takes, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);
pub const JOB: JobId = JobId(1);
pub const JOURNAL: u64 = 77;
/// A program that is both the worker daemon and the program of its jobs.
const FIXTURE: &str = env!("CARGO_BIN_EXE_worker-fixture");

/// Waits for a future, with the deadline.
pub async fn soon<T>(what: &str, something: impl Future<Output = T>) -> T {
    timeout(DEADLINE, something)
        .await
        .unwrap_or_else(|_| panic!("{what} did not come"))
}

/// Waits for a condition that sends no event, by polling.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let look = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(what, look).await;
}

pub fn map(number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JOB,
            kind: TaskKind::Map,
            index: 0,
        },
        number,
    }
}

pub fn reduce(number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JOB,
            kind: TaskKind::Reduce,
            index: 0,
        },
        number,
    }
}

pub fn happened(attempt: AttemptId, report: Report) -> WorkerReport {
    WorkerReport::Happened { attempt, report }
}

/// The report of a worker that must leave, with the time it has to save its work.
pub fn leaving(grace_millis: u64, why: &str) -> WorkerReport {
    WorkerReport::Leaving {
        grace_millis,
        why: why.to_owned(),
    }
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
        fs::create_dir_all(
            directory
                .path()
                .join("out/_temporary/job_0001-0000000000000007/committed"),
        )
        .unwrap();
        let blobs = Arc::default();
        let (_, workers) = unbounded_channel();
        let mut script = Script {
            directory,
            workers,
            blobs,
            accepting: tokio::spawn(async {}),
            moments,
        };
        script.listen().await;
        script
    }

    /// Listens at a new address.
    pub async fn listen(&mut self) {
        let cluster = self.cluster();
        let listener = Listener::bind(
            &World::real(),
            "127.0.0.1:0",
            cluster.secret().unwrap(),
            |_| {},
        )
        .await
        .unwrap();
        cluster
            .publish_coordinator(listener.address(), &World::real())
            .unwrap();
        let (arrived, workers) = unbounded_channel();
        self.workers = workers;
        self.accepting = tokio::spawn(accept(listener, arrived, Arc::clone(&self.blobs)));
    }

    /// Closes the address, so that connections are refused.
    pub fn stop_listening(&mut self) {
        self.accepting.abort();
    }

    pub fn cluster(&self) -> ClusterDirectory {
        ClusterDirectory::resolve(Some(self.path("cluster"))).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns a path in the directory of the worker.
    pub fn own(&self, name: &str) -> PathBuf {
        self.path("cluster/workers/one").join(name)
    }

    /// Returns the log of an ended attempt.
    pub fn log(&self, attempt: AttemptId, stream: &str) -> String {
        let path = self.own(&format!("logs/{}/attempts.log", attempt.task.job));
        let text = fs::read_to_string(path).unwrap_or_default();
        let after = text
            .split_once(&format!("==> {attempt} {stream} <==\n"))
            .map_or("", |(_, after)| after);
        let own = after.split_once("\n==> ").map(|(own, _)| own);
        own.or(after.strip_suffix('\n'))
            .unwrap_or_default()
            .to_owned()
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
        let log = self.path(&format!(
            "daemon-{}.log",
            fs::read_dir(self.path("")).unwrap().count()
        ));
        let child = Command::new(FIXTURE)
            .args(options)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Daemon::new(child, log)
    }

    /// Waits until the worker connects.
    pub async fn hello(&mut self) -> Line {
        Line::greet(soon("a worker", self.workers.recv()).await.unwrap()).await
    }

    /// Waits until the worker connects as a new one, and accepts it.
    pub async fn join(&mut self) -> Line {
        let mut line = self.hello().await;
        assert_eq!((line.hello.before, line.hello.received), (None, 0));
        line.welcome(1, 0).await;
        line
    }

    /// Stores bytes that workers can fetch.
    pub fn keep(&self, bytes: Vec<u8>) -> Blob {
        let digest = Digest(Sha256::digest(&bytes).into());
        let length = bytes.len() as u64;
        self.blobs.lock().unwrap().insert(digest, bytes);
        Blob {
            digest,
            bytes: length,
        }
    }

    /// Serves other bytes in place of a blob.
    pub fn falsify(&self, blob: Blob, bytes: Vec<u8>) {
        self.blobs.lock().unwrap().insert(blob.digest, bytes);
    }

    /// A job of the fixture program with these rules.
    pub fn job(&self, rules: &str) -> JobDescription {
        let mut program = Vec::new();
        File::open(FIXTURE)
            .unwrap()
            .read_to_end(&mut program)
            .unwrap();
        JobDescription {
            job: JOB,
            definition: "fixture".into(),
            parameters: rules
                .replace("SOCKET", &self.path("moments").display().to_string())
                .into_bytes(),
            reduces: 1,
            cuts: Vec::new(),
            compress: false,
            task_memory: 64 << 20,
            output: self.path("out"),
            claim: ClaimToken::from(7),
            part_extension: String::new(),
            task_timeout_millis: 600_000,
            durable: false,
            program: Some(self.keep(program)),
            files: Vec::new(),
        }
    }

    pub fn side_file(&self, name: &str, text: &str) -> SideFile {
        SideFile {
            name: name.into(),
            blob: self.keep(text.as_bytes().to_vec()),
        }
    }

    /// The work of a map over the input.
    pub fn map_work(&self) -> LaunchWork {
        LaunchWork::Map {
            split: Split::whole(&self.path("in.txt"), 5).into(),
        }
    }

    /// Waits until the next task pauses.
    pub async fn moment(&self) -> Moment {
        let (stream, _) = soon("a pause", self.moments.accept()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        soon("who pauses", stream.read_line(&mut line))
            .await
            .unwrap();
        let (attempt, process) = line.trim().split_once(' ').unwrap();
        let process = Process::watch(Pid::from_raw(process.parse().unwrap()).unwrap());
        Moment {
            attempt: attempt.to_owned(),
            process,
            stream,
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    mut listener: Listener,
    arrived: UnboundedSender<Connection>,
    blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
) {
    loop {
        let arrival = listener.accept().await;
        match arrival.role {
            Role::Worker => {
                let _ = arrived.send(arrival.connection);
            }
            Role::Client => drop(tokio::spawn(serve_blob(
                arrival.connection,
                Arc::clone(&blobs),
            ))),
            Role::Data | Role::Task(_) => panic!("a data connection to the coordinator"),
        }
    }
}

async fn serve_blob(mut connection: Connection, blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>) {
    let Ok(Some(ToCoordinator::FetchBlob(FetchBlob { digest }))) = connection.receive().await
    else {
        return;
    };
    let bytes = blobs.lock().unwrap().get(&digest).cloned();
    let Some(bytes) = bytes else {
        let reason = format!("no blob {digest}");
        let _ = connection
            .send(&FromCoordinator::Refused { status: 1, reason })
            .await;
        return;
    };
    let _ = connection
        .send(&FromCoordinator::Blob(bytes.len() as u64))
        .await;
    for chunk in bytes.chunks(CHUNK_BYTES) {
        // Fails if the worker was killed.
        let _ = connection
            .send(&FromCoordinator::Chunk(Payload(chunk.to_vec())))
            .await;
    }
}

/// Writes a marker file; a later check requires that it was removed.
pub fn mark(path: &Path) {
    File::create(path).unwrap().write_all(b"here").unwrap();
}
