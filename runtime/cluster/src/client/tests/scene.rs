//! A coordinator with real connections and a real blob store, whose loop is scripted by a test.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::coordinator::Following;
use napreduce_local::world::World;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::{CounterValues, JobEnd, JobPlan, JobProgress, JobReport, lock};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{oneshot, watch};

use crate::blobs::BlobStore;
use crate::client::{ClusterClient, ClusterPlace, Patience, SubmitOptions};
use crate::cluster_directory::ClusterDirectory;
use crate::coordinator::{ClientDesk, ClientLimits, LoopRequest};
use crate::transport::Listener;

/// Long enough for a slow machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);
const BLOB_BYTES: u64 = 1 << 20;

pub(super) struct Scene {
    pub(super) folder: TempDir,
    pub(super) limits: ClientLimits,
}

/// A running coordinator; dropping it has the effect of a kill.
pub(super) struct Coordinator {
    pub(super) address: SocketAddr,
    /// Log lines about disconnected clients.
    pub(super) warnings: Receiver<String>,
    _running: Background,
}

/// Async tasks on their own thread; they end when this is dropped.
pub(super) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs `start`; its first result and its tasks live as long as the returned value.
    pub(super) fn start<K, T>(
        start: impl AsyncFnOnce() -> (K, T) + Send + 'static,
    ) -> (Background, T)
    where
        T: Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let (sender, started) = channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let (_kept, about) = start().await;
                sender.send(about).expect("the test waits");
                // Dropped means stopped.
                let _ = stopped.await;
            });
        });
        let about = started.recv_timeout(DEADLINE).expect("it starts");
        (
            Background {
                stop: Some(stop),
                thread: Some(thread),
            },
            about,
        )
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()),
            "the background has panicked"
        );
    }
}

impl Scene {
    pub(super) fn new() -> Scene {
        let scene = Scene {
            folder: tempfile::tempdir().expect("a temporary folder"),
            limits: ClientLimits::default(),
        };
        scene.directory().create().expect("a cluster directory");
        scene
    }

    pub(super) fn directory(&self) -> ClusterDirectory {
        ClusterDirectory::resolve(Some(self.folder.path().join("cluster")))
            .expect("an absolute path")
    }

    pub(super) fn place(&self) -> ClusterPlace {
        ClusterPlace::Directory(self.directory())
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.directory().coordinator_directory().join("blobs")
    }

    /// Starts a coordinator whose loop is `script`.
    pub(super) fn coordinator(
        &self,
        mut script: impl FnMut(LoopRequest) + Send + 'static,
    ) -> Coordinator {
        let secret = self.directory().secret().expect("a secret");
        let blobs = BlobStore::open(Arc::new(RealDisk), self.blobs(), BLOB_BYTES).expect("a store");
        let limits = self.limits.clone();
        let (warned, warnings) = channel();
        let (running, address) = Background::start(async move || {
            let (requests, mut arriving) = unbounded_channel();
            let disconnected = warned.clone();
            let warn = move |line: &str| tell(&disconnected, line);
            let desk =
                ClientDesk::new(World::real(), requests, blobs, secret.clone(), limits, warn);
            let world = World::real();
            let listener = Listener::bind(&world, "127.0.0.1:0", secret, move |line| {
                tell(&warned, line)
            });
            let mut listener = listener.await.expect("a port");
            let address = listener.address();
            tokio::spawn(async move {
                loop {
                    let arrival = listener.accept().await;
                    tokio::spawn(desk.clone().serve(arrival.connection, arrival.peer));
                }
            });
            tokio::spawn(async move {
                while let Some(request) = arriving.recv().await {
                    script(request);
                }
            });
            ((), address)
        });
        self.directory()
            .publish_coordinator(address, &World::real())
            .expect("a published address");
        Coordinator {
            address,
            warnings,
            _running: running,
        }
    }

    pub(super) fn client(&self) -> ClusterClient {
        ClusterClient::connect(self.place(), patience()).expect("a connection")
    }

    /// A file that looks like a program for this processor.
    pub(super) fn program(&self, content: &[u8]) -> PathBuf {
        let mut bytes = fs::read("/proc/self/exe").expect("this program");
        bytes.truncate(64);
        bytes.extend(content);
        let path = self.folder.path().join("program");
        fs::write(&path, bytes).expect("a written file");
        path
    }

    pub(super) fn options(&self) -> SubmitOptions {
        SubmitOptions {
            program: Some(self.program(b"test")),
            ..SubmitOptions::default()
        }
    }
}

fn tell(to: &Sender<String>, line: &str) {
    // Fails if the test has ended.
    let _ = to.send(line.to_owned());
}

pub(super) fn patience() -> Patience {
    Patience {
        first: DEADLINE,
        later: DEADLINE,
        absent: DEADLINE,
        answer: DEADLINE,
        tell: false,
        ..Patience::default()
    }
}

pub(super) fn plan() -> JobPlan {
    JobPlan::new("test", "/nowhere/out")
}

/// The two ends by which a job is followed.
pub(super) struct Job {
    pub(super) progress: watch::Sender<JobProgress>,
    pub(super) end: watch::Sender<Option<JobEnd>>,
}

impl Job {
    pub(super) fn new() -> Arc<Job> {
        let progress = watch::Sender::new(JobProgress::default());
        let end = watch::Sender::new(None);
        Arc::new(Job { progress, end })
    }

    pub(super) fn following(&self) -> Following {
        Following {
            progress: self.progress.subscribe(),
            end: self.end.subscribe(),
        }
    }
}

pub(super) fn report() -> JobReport {
    JobReport {
        job: JobId(7),
        name: "test".to_owned(),
        counters: CounterValues::default(),
        wall: Duration::from_millis(5),
        parts: Vec::new(),
        output: "/nowhere/out".into(),
    }
}

/// Signals are handled for one followed job of a process at a time.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static FOLLOWING: Mutex<()> = Mutex::new(());
    lock(&FOLLOWING)
}
