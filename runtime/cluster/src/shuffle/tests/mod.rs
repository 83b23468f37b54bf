//! Tests of the shuffle over loopback: real segments, servers and fetches, with proxies and lying servers.

mod broken;
mod damage;
mod equality;
mod gathering;
mod liars;
mod limits;
mod logs;
mod pausing;
mod proxy;
mod requests;
mod restoring;
mod speed;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use logs::{LogPiece, read_log};
use napreduce_data::{BlockCompression, Collector, CollectorSettings, Partitioning, Segment};
use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_local::world::World;
use napreduce_protocol::{
    Counter, DataNetwork, FetchLimits, FromDataServer, LogStream, MapInput, Place, ReduceTask,
    Secret, TaskError, ToDataServer,
};
use napreduce_task::{FetchInputs, FetchedInputs, InputEvent, TaskContext};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::*;
use crate::shuffle::data_connection::DataConnection;
use crate::transport::{
    Listener, Role, TransportError, blocking, blocking::BlockingConnection, job_token,
};

/// Long enough that only a hang exceeds it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const PARTITIONS: u32 = 3;

pub(super) fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

pub(super) fn map(index: u32) -> AttemptId {
    attempt(TaskKind::Map, index, 1)
}

pub(super) fn attempt(kind: TaskKind, index: u32, number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(1),
            kind,
            index,
        },
        number,
    }
}

/// Network settings with limits that fit a test.
pub(super) fn network(encrypt: bool) -> DataNetwork {
    let limits = FetchLimits {
        tries_max: 4,
        spent_max: PATIENCE,
        silence_max: PATIENCE,
        back_off: Duration::from_millis(1),
    };
    DataNetwork {
        token: job_token(&secret(), JobId(1)),
        encrypt,
        limits,
    }
}

/// The files of one worker.
pub(super) struct Shelf {
    folder: TempDir,
}

impl Shelf {
    pub(super) fn new() -> Shelf {
        Shelf {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn path(&self, attempt: AttemptId) -> PathBuf {
        self.folder.path().join(format!("{attempt}.segment"))
    }

    /// Seals the output of a map: `records` of about 100 bytes.
    pub(super) fn seal(&self, attempt: AttemptId, records: u32, compression: BlockCompression) {
        let path = self.path(attempt);
        let settings = CollectorSettings {
            compression,
            partitioning: Partitioning::Hash {
                partitions: PARTITIONS,
                grouping: None,
            },
            ..CollectorSettings::new(32 << 20, self.folder.path(), path, attempt.to_string())
        };
        let mut collector: Collector<()> = Collector::plain(settings).unwrap();
        for number in 0..records {
            // Incompressible numbers that differ from map to map.
            let noise = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                ^ u64::from(attempt.task.index);
            let value = format!("{noise:020}").repeat(4);
            collector.emit_bytes(&noise.to_be_bytes(), value.as_bytes());
        }
        collector.finish().unwrap();
    }

    pub(super) fn log(&self, attempt: AttemptId, stream: LogStream) -> PathBuf {
        self.folder.path().join(format!("{attempt}.{stream:?}"))
    }
}

impl ServedFiles for Shelf {
    fn segment(&self, attempt: AttemptId) -> Option<PathBuf> {
        (attempt.task.job == JobId(1)).then(|| self.path(attempt))
    }

    fn read_log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        most: u64,
    ) -> io::Result<(u64, Vec<u8>)> {
        LogExtent {
            path: self.log(attempt, stream),
            offset: 0,
            bytes: None,
        }
        .read(offset, most)
    }
}

/// A data server on its own thread.
pub(super) struct Served {
    pub(super) shelf: Arc<Shelf>,
    pub(super) address: String,
    pub(super) lines: Arc<Mutex<Vec<String>>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(super) fn start() -> Served {
        Served::start_with(DataServerSettings {
            idle_max: PATIENCE,
            ..DataServerSettings::default()
        })
    }

    pub(super) fn start_with(settings: DataServerSettings) -> Served {
        let shelf = Arc::new(Shelf::new());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let files = Arc::clone(&shelf);
        let log = Arc::clone(&lines);
        let (started, address) = channel();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            on_runtime(async move {
                let listener = Listener::bind(&World::real(), "127.0.0.1:0", secret(), |_| {})
                    .await
                    .unwrap();
                let server = DataServer::start(
                    World::real().tasks,
                    listener,
                    files,
                    settings,
                    move |line| {
                        log.lock().unwrap().push(line.to_owned());
                    },
                );
                started.send(server.address().to_string()).unwrap();
                let _ = ended.await;
            });
        });
        let address = address.recv().unwrap();
        Served {
            shelf,
            address,
            lines,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// Seals a segment for each of `maps` maps.
    pub(super) fn with_maps(self, maps: u32, records: u32) -> Served {
        (0..maps).for_each(|index| self.shelf.seal(map(index), records, BlockCompression::None));
        self
    }

    /// All outputs of the server, as inputs of a reduce.
    pub(super) fn inputs(&self, maps: u32) -> Vec<MapInput> {
        (0..maps)
            .map(|index| remote(map(index), &self.address))
            .collect()
    }

    /// Stops the server with all its connections.
    pub(super) fn die(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// A client after its first message.
    pub(super) fn client(&self, encrypt: bool) -> DataConnection {
        let mut connection = self.stranger();
        connection.send(&ToDataServer::Open { encrypt }).unwrap();
        let Some(FromDataServer::Opened { encrypted }) = connection.receive().unwrap() else {
            panic!("the server does not open");
        };
        DataConnection::new(connection, encrypted).unwrap()
    }

    /// A client with the secret, before its first message.
    pub(super) fn stranger(&self) -> BlockingConnection {
        blocking::connect(&self.address, Role::Data, &secret(), PATIENCE, PATIENCE).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.die();
    }
}

pub(super) fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

pub(super) fn remote(attempt: AttemptId, address: &str) -> MapInput {
    MapInput {
        attempt,
        place: Place::Remote(address.to_owned()),
    }
}

pub(super) fn local(attempt: AttemptId, path: PathBuf) -> MapInput {
    MapInput {
        attempt,
        place: Place::Local(path),
    }
}

/// The inputs and directories of a reduce attempt.
pub(super) struct Reduce {
    pub(super) scratch: TempDir,
    pub(super) context: Arc<TaskContext>,
    pub(super) network: Option<DataNetwork>,
    pub(super) partition: u32,
    pub(super) maps: u32,
    /// The directory of all checkpoints, and the one to start from.
    pub(super) checkpoints: PathBuf,
    pub(super) restore: Option<AttemptId>,
    pub(super) arrived: Sender<InputEvent>,
    arrivals: Receiver<InputEvent>,
    /// Reported losses.
    pub(super) lost: Vec<(Vec<AttemptId>, String)>,
}

impl Reduce {
    pub(super) fn new(maps: u32) -> Reduce {
        let (arrived, arrivals) = channel();
        let scratch = tempfile::tempdir().unwrap();
        Reduce {
            checkpoints: scratch.path().join("checkpoints"),
            restore: None,
            scratch,
            context: Arc::new(TaskContext::new(attempt(TaskKind::Reduce, 0, 1), 64 << 20)),
            network: Some(network(false)),
            partition: 0,
            maps,
            arrived,
            arrivals,
            lost: Vec::new(),
        }
    }

    pub(super) fn encrypted(mut self, encrypt: bool) -> Reduce {
        self.network = Some(network(encrypt));
        self
    }

    pub(super) fn silence_max(mut self, silence_max: Duration) -> Reduce {
        let limits = FetchLimits {
            silence_max,
            ..network(false).limits
        };
        self.network = self
            .network
            .map(|network| DataNetwork { limits, ..network });
        self
    }

    pub(super) fn partition(mut self, partition: u32) -> Reduce {
        self.partition = partition;
        self
    }

    /// Fetches; lost outputs are replaced by those that `replace` returns.
    pub(super) fn gather_with(
        &mut self,
        named: Vec<MapInput>,
        replace: impl FnMut(&[AttemptId]) -> Vec<MapInput>,
    ) -> Result<Vec<(AttemptId, PathBuf)>, TaskError> {
        self.gather_task(named, replace)
            .map(|gathered| complete(gathered).inputs)
    }

    /// As `gather_with`, with the whole result.
    pub(super) fn gather_task(
        &mut self,
        named: Vec<MapInput>,
        mut replace: impl FnMut(&[AttemptId]) -> Vec<MapInput>,
    ) -> Result<FetchedInputs, TaskError> {
        let task = self.task();
        let wanted = FetchInputs {
            maps: self.maps,
            task: &task,
            network: self.network.as_ref(),
            start_fetch: Some(start_fetch),
            context: &self.context,
            arrivals: (&self.arrived, &self.arrivals),
        };
        let lost = &mut self.lost;
        let arrived = &self.arrived;
        wanted.fetch(named, |attempts, _, reason| {
            arrived.send(InputEvent::Named(replace(&attempts))).unwrap();
            lost.push((attempts, reason));
            Ok(())
        })
    }

    pub(super) fn gather(&mut self, named: Vec<MapInput>) -> Vec<(AttemptId, PathBuf)> {
        self.gather_with(named, |lost| panic!("{lost:?} should not be lost"))
            .unwrap()
    }

    pub(super) fn task(&self) -> ReduceTask {
        let folder = self.scratch.path();
        ReduceTask {
            partition: self.partition,
            inputs: Vec::new(),
            consolidated: Vec::new(),
            inputs_are_partial: false,
            compress: false,
            output: folder.join("part"),
            scratch: folder.to_owned(),
            checkpoint: self.checkpoints.join(self.context.attempt().to_string()),
            restore: self
                .restore
                .map(|attempt| self.checkpoints.join(attempt.to_string())),
            durable: false,
        }
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        self.context.counters().get(counter)
    }
}

pub(super) fn complete(gathered: FetchedInputs) -> ReduceTask {
    match gathered {
        FetchedInputs::Complete(task) => *task,
        FetchedInputs::Checkpointed(saved) => panic!("{saved:?} was not asked for"),
    }
}

/// Every record of one partition of a segment.
pub(super) fn records(path: &Path, partition: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = Segment::open(path).unwrap().cursor(partition).unwrap();
    let mut records = Vec::new();
    while cursor.advance().unwrap() {
        records.push((cursor.key().to_vec(), cursor.value().to_vec()));
    }
    records
}

/// Checks that the fetched inputs equal those of the shelf, in order.
pub(super) fn check_equal(gathered: &[(AttemptId, PathBuf)], shelf: &Shelf, partition: u32) {
    let order: BTreeMap<u32, AttemptId> = gathered
        .iter()
        .map(|(id, _)| (id.task.index, *id))
        .collect();
    assert!(
        order.into_values().eq(gathered.iter().map(|(id, _)| *id)),
        "not in the order of the map tasks"
    );
    let mut count = 0;
    for (attempt, path) in gathered {
        let fetched = records(path, partition);
        let sealed = records(&shelf.path(*attempt), partition);
        assert!(fetched == sealed, "partition {partition} of {attempt}");
        count += sealed.len();
    }
    assert!(count > 0, "nothing was compared");
}
