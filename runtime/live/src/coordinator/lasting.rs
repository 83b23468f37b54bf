//! What a coordinator of a cluster has and an embedded one does not: a journal, a history, programs of its jobs.
//!
//! Without the feature `cluster` `embedded_only` takes the place of this module.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_history::{EndedJob, HistoryStore, RecordedCluster};
use napreduce_protocol::{FromWorker, Hello, ToWorker};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::chains::ChainWatch;
use super::configuration::CoordinatorConfiguration;
use super::daemon::Coordinator;
use super::definitions::Definitions;
use super::entry::Accepted;
use super::job::LiveJob;
use super::last_heard::{LastHeard, Waiting};
use super::link::Caller;
use super::samples::Samples;
use crate::blobs::{BlobStore, PinnedBlob};
use crate::chain::Removal;
use crate::journal::Journal;
pub(crate) use crate::journal::JournalError;

/// What a job keeps in the store of programs and side files.
pub(super) type Pins = Vec<PinnedBlob>;

/// What arrives at a coordinator of a cluster alone.
#[derive(Debug)]
pub(crate) enum ClusterInput {
    /// A worker said hello on a new connection.
    Connected {
        connection: u64,
        hello: Box<Hello>,
        messages: UnboundedSender<ToWorker>,
        heard: LastHeard,
    },
    Said {
        connection: u64,
        message: FromWorker,
        waiting: Waiting,
    },
    Disconnected {
        connection: u64,
    },
    /// A snapshot is written, or not.
    Compacted(Result<(), JournalError>),
    /// What a chain of jobs left was removed, or not.
    ChainRemoved {
        chain: u128,
        removed: Result<Removal, String>,
    },
}

pub(super) struct Lasting {
    pub(super) configuration: CoordinatorConfiguration,
    pub(super) journal: Journal,
    /// Tasks beside the loop read and write it.
    pub(super) history: Arc<dyn HistoryStore>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) blobs: Arc<BlobStore>,
    /// Blobs of jobs that have not ended, which the store must keep.
    pub(super) pinned: BTreeMap<JobId, Pins>,
    pub(super) chains: ChainWatch,
    pub(super) samples: Samples,
    /// A snapshot that is being written.
    pub(super) compacting: Option<JoinHandle<()>>,
}

impl Lasting {
    pub(super) fn new(
        configuration: CoordinatorConfiguration,
        journal: Journal,
        history: Arc<dyn HistoryStore>,
        blobs: Arc<BlobStore>,
    ) -> Lasting {
        Lasting {
            definitions: Arc::new(Definitions::of(configuration.directory.path())),
            configuration,
            journal,
            history,
            blobs,
            pinned: BTreeMap::new(),
            chains: ChainWatch::default(),
            samples: Samples::default(),
            compacting: None,
        }
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.configuration.directory.path().to_owned()
    }

    pub(super) fn pin(&mut self, job: JobId, pins: Pins) {
        self.pinned.insert(job, pins);
    }

    pub(super) fn unpin(&mut self, job: JobId) {
        self.pinned.remove(&job);
    }

    /// Pins what a job needs, beside the loop.
    pub(super) fn pinning(&self) -> impl FnOnce(&Accepted) -> Pins + Send + use<> {
        let blobs = Arc::clone(&self.blobs);
        move |accepted| accepted.pin(&blobs)
    }

    /// Keeps entries; what is about to be changed on the disk must not outlive them if `sync` is set.
    pub(super) fn write(&mut self, entries: &[Vec<u8>], sync: bool) -> Result<(), JournalError> {
        self.journal.append(entries)?;
        if sync { self.journal.sync() } else { Ok(()) }
    }
}

impl Accepted {
    /// Keeps its blobs in the store as long as the result lives. What is missing is missed by the worker that
    /// asks for it, which says so. Blocking.
    pub(super) fn pin(&self, blobs: &Arc<BlobStore>) -> Pins {
        let all = self.program.into_iter().chain(self.files.iter().map(|file| file.blob));
        all.filter_map(|blob| blobs.pin(blob.digest).ok().flatten()).collect()
    }
}

impl Coordinator {
    pub(super) fn take_cluster_input(&mut self, input: ClusterInput) {
        if !matches!(input, ClusterInput::Said { .. }) {
            self.decide();
        }
        match input {
            ClusterInput::Connected { connection, hello, messages, heard } => {
                self.on_hello(*hello, Caller { connection, messages, heard });
            }
            ClusterInput::Said { connection, message, waiting } => {
                drop(waiting);
                self.on_message(connection, message);
            }
            ClusterInput::Disconnected { connection } => self.on_disconnected(connection),
            ClusterInput::ChainRemoved { chain, removed } => self.on_chain_removed(chain, removed),
            ClusterInput::Compacted(written) => self.on_compacted(written),
        }
    }

    /// What is due from time to time; `paused` is the time since the last look.
    pub(super) fn look_after_cluster(&mut self, paused: Duration) {
        self.look_after_workers(paused);
        self.look_after_chains();
        self.sample();
    }

    /// What keeps a job that has ended.
    pub(super) fn keeper(&self) -> Option<Keeper> {
        let lasting = self.lasting.as_ref()?;
        Some(Keeper {
            history: Arc::clone(&lasting.history),
            definitions: Arc::clone(&lasting.definitions),
            cluster: Box::new(self.recorded_cluster()?),
        })
    }
}

/// Keeps an ended job and its definition, beside the loop.
pub(super) struct Keeper {
    history: Arc<dyn HistoryStore>,
    definitions: Arc<Definitions>,
    cluster: Box<dyn FnOnce() -> RecordedCluster + Send>,
}

impl Keeper {
    /// Blocking. An error says why it is not in the history.
    pub(super) fn keep(
        self,
        job: &LiveJob,
        ended: &mut EndedJob,
        remarks: &mut Vec<String>,
    ) -> Result<(), String> {
        if let Err(error) = self.definitions.keep(&job.accepted, &job.change) {
            remarks.push(format!("{} cannot be run again by its number: {error}", job.id()));
        }
        ended.cluster = Some((self.cluster)());
        let untidy = self.history.add(ended).map_err(|error| format!("cannot write {error}"))?;
        remarks.extend(untidy);
        Ok(())
    }
}
