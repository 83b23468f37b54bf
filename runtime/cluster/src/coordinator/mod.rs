//! The coordinator of a cluster: the local one with a journal, a history, job programs and remote workers.
//!
//! ```text
//! connections -- inputs, requests --> this loop -- entries --> journal
//!                                         |                       | written
//!                                         v                       v
//!                                   local coordinator (engine, jobs, links) -- flush --> connections
//! ```

mod chains;
mod clients;
mod commands;
mod compaction;
mod configuration;
mod definitions;
mod explanations;
mod history;
mod jobs;
mod journal_check;
mod journal_repair;
mod outcomes;
mod queues;
mod recovery;
mod refusal;
mod replay;
mod requests;
mod samples;
mod server;
#[cfg(feature = "simulated")]
mod simulation;
mod submissions;
#[cfg(test)]
mod tests;
mod worker_connection;
mod worker_conversations;
mod workers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use napreduce_engine::{Event, WorkerId};
use napreduce_history::HistoryStore;
use napreduce_local::chain::Removal;
use napreduce_local::clock::now;
use napreduce_local::coordinator::{
    Accepted, BATCH, Caller, ClusterServices, Coordinator, CoordinatorState, Input, KeepEnded,
    LastHeard, Pins, Waiting, sleep_until_some, ticks,
};
use napreduce_protocol::{FromWorker, Hello, ToWorker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::chains::ChainWatch;
use self::definitions::Definitions;
use self::history::recorded_cluster;
use self::samples::Samples;
use crate::blobs::{BlobStore, PinnedBlob};
use crate::journal::{Journal, JournalError};

#[cfg(test)]
pub(crate) use clients::{ClientDesk, ClientLimits};
pub use configuration::CoordinatorConfiguration;
pub use journal_check::{
    JournalCheck, JournalContent, JournalFileCheck, JournalLoss, LostJob, check_journal,
};
pub use journal_repair::{RepairError, repair_journal};
#[cfg(test)]
pub(crate) use refusal::Refusal;
pub use replay::{ReplayError, replay_journal};
#[cfg(test)]
pub(crate) use requests::LogHolder;
pub(crate) use requests::LoopRequest;
pub use server::{CoordinatorError, coordinator_daemon, run_coordinator};

/// An event for the coordinator of a cluster.
#[derive(Debug)]
enum ClusterInput {
    /// For the local coordinator.
    Local(Input),
    /// A worker sent hello on a new connection.
    Connected {
        connection: u64,
        hello: Box<Hello>,
        messages: UnboundedSender<ToWorker>,
        heard: LastHeard,
    },
    Message {
        connection: u64,
        message: FromWorker,
        waiting: Waiting,
    },
    Disconnected {
        connection: u64,
    },
    /// The result of writing a snapshot.
    Compacted(Result<(), JournalError>),
    /// The result of removing a chain's directory.
    ChainRemoved {
        chain: u128,
        removed: Result<Removal, String>,
    },
    /// Stop once received events are journaled; jobs continue under the next coordinator.
    Stop,
}

/// The places where a coordinator keeps data.
struct Stores {
    journal: Journal,
    history: Arc<dyn HistoryStore>,
    blobs: Arc<BlobStore>,
}

struct ClusterCoordinator {
    local: Coordinator,
    configuration: CoordinatorConfiguration,
    journal: Journal,
    /// Used by tasks outside the loop.
    history: Arc<dyn HistoryStore>,
    definitions: Arc<Definitions>,
    chains: ChainWatch,
    samples: Samples,
    /// A snapshot being written.
    compacting: Option<JoinHandle<()>>,
    connections: BTreeMap<u64, WorkerId>,
    inputs: UnboundedSender<ClusterInput>,
    ticked: Instant,
    stopping: bool,
    /// Number of written batches.
    #[cfg(feature = "simulated")]
    concluded: u64,
}

impl ClusterCoordinator {
    fn new(
        state: CoordinatorState,
        configuration: CoordinatorConfiguration,
        stores: Stores,
        inputs: UnboundedSender<ClusterInput>,
    ) -> ClusterCoordinator {
        let Stores {
            journal,
            history,
            blobs,
        } = stores;
        let definitions = Arc::new(Definitions::new(&configuration.directory));
        let services = JobServices {
            configuration: configuration.clone(),
            history: Arc::clone(&history),
            definitions: Arc::clone(&definitions),
            blobs,
        };
        let own = inputs.clone();
        // Fails after this coordinator has stopped; the next one repeats the work.
        let send_back = move |input| {
            let _ = own.send(ClusterInput::Local(input));
        };
        ClusterCoordinator {
            local: Coordinator::new(
                configuration.world.clone(),
                state,
                Some(Box::new(services)),
                Arc::new(send_back),
            ),
            configuration,
            journal,
            history,
            definitions,
            chains: ChainWatch::default(),
            samples: Samples::default(),
            compacting: None,
            connections: BTreeMap::new(),
            inputs,
            ticked: now(),
            stopping: false,
            #[cfg(feature = "simulated")]
            concluded: 0,
        }
    }

    /// Runs until stopped.
    async fn run(
        mut self,
        mut requests: UnboundedReceiver<LoopRequest>,
        mut inputs: UnboundedReceiver<ClusterInput>,
    ) -> Result<(), JournalError> {
        let mut tick = ticks();
        let mut batch = Vec::new();
        let mut has_clients = true;
        self.local.begin_to_listen();
        self.ticked = now();
        self.conclude()?;
        while !self.stopping {
            tokio::select! {
                _ = inputs.recv_many(&mut batch, BATCH) => {
                    for input in batch.drain(..) {
                        self.take(input);
                    }
                    self.local.decide();
                }
                request = requests.recv(), if has_clients => match request {
                    Some(request) => self.answer(request),
                    None => has_clients = false,
                },
                () = sleep_until_some(self.local.wake_at()) => self.local.enter(Event::Woken),
                _ = tick.tick() => self.on_tick(),
            }
            self.conclude()?;
        }
        #[cfg(feature = "simulated")]
        self.check_replay();
        self.samples.end().await;
        self.compact_at_the_end().await
    }

    /// Records every later event and its effects.
    #[cfg(test)]
    fn record(&mut self, recording: Option<napreduce_local::coordinator::Recording>) {
        self.local.state_mut().record(recording);
    }

    fn take(&mut self, input: ClusterInput) {
        // Reports of workers are collected into one entry; any other input begins a new one.
        if !matches!(input, ClusterInput::Local(_) | ClusterInput::Message { .. }) {
            self.local.decide();
        }
        match input {
            ClusterInput::Local(input) => self.local.take(input),
            ClusterInput::Connected {
                connection,
                hello,
                messages,
                heard,
            } => {
                let caller = Caller {
                    connection,
                    messages,
                    heard,
                };
                self.on_hello(*hello, caller);
            }
            ClusterInput::Message {
                connection,
                message,
                waiting,
            } => {
                drop(waiting);
                self.on_message(connection, message);
            }
            ClusterInput::Disconnected { connection } => self.on_disconnected(connection),
            ClusterInput::ChainRemoved { chain, removed } => self.on_chain_removed(chain, removed),
            ClusterInput::Compacted(written) => self.on_compacted(written),
            ClusterInput::Stop => self.stopping = true,
        }
    }

    /// Writes the journal, then releases the effects.
    fn conclude(&mut self) -> Result<(), JournalError> {
        let journal = &mut self.journal;
        self.local.conclude(|entries, must_sync| {
            journal.append(entries)?;
            if must_sync {
                journal.sync()?;
            }
            Ok(())
        })?;
        #[cfg(feature = "simulated")]
        self.check_snapshot();
        self.compact_if_due()
    }

    fn on_tick(&mut self) {
        let paused = self.ticked.elapsed();
        self.ticked = now();
        self.check_liveness(paused);
        self.remove_unused_chains();
        self.sample();
        self.local.on_tick();
    }
}

/// The parts of a cluster that the local coordinator calls for its jobs.
struct JobServices {
    configuration: CoordinatorConfiguration,
    history: Arc<dyn HistoryStore>,
    definitions: Arc<Definitions>,
    blobs: Arc<BlobStore>,
}

impl ClusterServices for JobServices {
    fn directory(&self) -> PathBuf {
        self.configuration.directory.path().to_owned()
    }

    fn pinning(&self) -> Box<dyn FnOnce(&Accepted) -> Pins + Send> {
        let blobs = Arc::clone(&self.blobs);
        Box::new(move |accepted| pin(accepted, &blobs))
    }

    fn keeps_failed_logs(&self) -> bool {
        self.configuration.failed_logs
    }

    fn keeping(&self, state: &CoordinatorState) -> KeepEnded {
        let history = Arc::clone(&self.history);
        let definitions = Arc::clone(&self.definitions);
        let cluster = recorded_cluster(state, &self.configuration);
        Box::new(move |job, ended, remarks| {
            if let Err(error) = definitions.keep(&job.accepted, &job.change) {
                remarks.push(format!(
                    "nap job rerun will not work for {}: {error}",
                    job.id()
                ));
            }
            ended.cluster = Some(cluster());
            let failed_cleanups = history
                .add(ended)
                .map_err(|error| format!("cannot write {error}"))?;
            remarks.extend(failed_cleanups);
            Ok(())
        })
    }
}

/// Pins a job's blobs while the result lives. A missing blob is reported by the worker that requests it.
/// Blocking.
fn pin(accepted: &Accepted, blobs: &Arc<BlobStore>) -> Pins {
    let mut needed = Vec::from_iter(accepted.program);
    needed.extend(accepted.files.iter().map(|file| file.blob));
    let mut pinned: Vec<PinnedBlob> = Vec::new();
    for blob in needed {
        if let Ok(Some(pin)) = blobs.pin(blob.digest) {
            pinned.push(pin);
        }
    }
    Box::new(pinned)
}
