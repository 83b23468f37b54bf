//! Recovers a coordinator from its journal: the snapshot, later entries, and unfinished work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_engine::{Engine, EngineSettings, EngineSnapshot, JobId, PolicyChoice, ReadPolicy};
use napreduce_history::{HistoryLimits, OpenHistory};
use napreduce_local::coordinator::{CoordinatorState, Entry, StateSnapshot};
#[cfg(feature = "simulated")]
use napreduce_local::world::{Fact, note};
use napreduce_local::world::{Situation, reached};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;

use super::configuration::CoordinatorConfiguration;
use super::{ClusterCoordinator, ClusterInput, Stores, pin};
use crate::blobs::{BlobError, BlobStore};
use crate::journal::{Header, JOURNAL_VERSION, Journal, JournalError, Recovered};

/// Version of the snapshot.
const SNAPSHOT_VERSION: u32 = 6;

/// A coordinator's complete state as plain data.
#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot {
    version: u32,
    engine: EngineSnapshot,
    state: StateSnapshot,
}

/// An error of recovering a coordinator.
#[derive(Debug, Error)]
pub(crate) enum RecoveryError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Blobs(#[from] BlobError),
    #[error("cannot create the scheduler: {what}")]
    Scheduler { what: String },
    #[error("cannot draw a random number: {0}")]
    Random(std::io::Error),
    #[error("cannot read the history in {path}: {source}")]
    History {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "cannot restore the snapshot in {path}: {what}; restore the file, or move the directory away to \
         start without its jobs"
    )]
    Snapshot { path: PathBuf, what: String },
    #[error(
        "cannot replay entry {number} of the journal in {path}: {what}; use the program that wrote it"
    )]
    Entry {
        path: PathBuf,
        number: usize,
        what: String,
    },
}

/// The policy that continues from a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The snapshot's policy, with its state.
    AsBefore,
    /// Another policy, which starts from the visible state.
    Another,
}

impl Snapshot {
    /// Creates a snapshot for the journal's compaction.
    pub(super) fn new(state: &CoordinatorState) -> Snapshot {
        Snapshot {
            version: SNAPSHOT_VERSION,
            engine: state.engine().snapshot(),
            state: state.snapshot(),
        }
    }

    pub(super) fn restore(
        self,
        epoch_micros: u64,
        rules: (EngineSettings, &dyn PolicyChoice),
        policy: Policy,
    ) -> Result<CoordinatorState, String> {
        let (settings, scheduler) = rules;
        if self.version != SNAPSHOT_VERSION {
            return Err(format!(
                "it has version {}, but this program reads {SNAPSHOT_VERSION}",
                self.version
            ));
        }
        let engine = match policy {
            Policy::AsBefore => self.engine,
            Policy::Another => self.engine.for_another_policy(),
        };
        let engine = Engine::restore(engine, scheduler.build()?, settings)
            .map_err(|error| error.to_string())?;
        let name = scheduler.name().to_owned();
        Ok(CoordinatorState::restore(
            engine,
            name,
            epoch_micros,
            self.state,
        ))
    }
}

/// Returns the state after everything in the journal.
pub(super) fn replay(
    directory: &Path,
    recovered: Recovered,
    header: &Header,
    read_policy: ReadPolicy,
    prepare: impl FnOnce(CoordinatorState) -> CoordinatorState,
) -> Result<CoordinatorState, RecoveryError> {
    let Header {
        epoch_micros,
        ref rules,
        ..
    } = *header;
    let unusable = |what| RecoveryError::Scheduler { what };
    let settings = rules.settings;
    let scheduler = read_policy(&rules.scheduler).map_err(unusable)?;
    let state = match recovered.snapshot {
        Some(snapshot) => {
            let rules = (settings, &*scheduler);
            reached(Situation::RecoveredFromSnapshot);
            snapshot
                .decode::<Snapshot>()?
                .restore(epoch_micros, rules, Policy::AsBefore)
                .map_err(|what| RecoveryError::Snapshot {
                    path: directory.to_owned(),
                    what,
                })?
        }
        None => {
            let engine = Engine::new(scheduler.build().map_err(unusable)?, settings);
            CoordinatorState::new(engine, scheduler.name().to_owned(), epoch_micros)
        }
    };
    let mut state = prepare(state);
    #[cfg(feature = "simulated")]
    note(&Fact::ReplayBegins);
    for (number, text) in (1..).zip(&recovered.entries) {
        let entry: Entry = serde_json::from_slice(text).map_err(|error| RecoveryError::Entry {
            path: directory.to_owned(),
            number,
            what: error.to_string(),
        })?;
        state.apply(entry);
    }
    #[cfg(feature = "simulated")]
    note(&Fact::ReplayEnds);
    // The notices were logged when the events happened.
    state.take_notices();
    Ok(state)
}

impl ClusterCoordinator {
    /// Recovers the coordinator of a cluster from its directory.
    pub(super) fn recover(
        configuration: &CoordinatorConfiguration,
        blobs: &Arc<BlobStore>,
        open_history: OpenHistory,
        inputs: UnboundedSender<ClusterInput>,
    ) -> Result<ClusterCoordinator, RecoveryError> {
        let directory = configuration.directory.coordinator_directory();
        let world = &configuration.world;
        let identity = world.random.number().map_err(RecoveryError::Random)?;
        let rules = configuration.rules();
        let scheduler = &*configuration.scheduler;
        let read_policy = configuration.read_policy;
        let unusable = |what| RecoveryError::Scheduler { what };
        // Check the rules before using them.
        scheduler.build().map_err(unusable)?;
        let version = JOURNAL_VERSION;
        let epoch_micros = world.clock.unix_micros();
        let fresh = Header {
            version,
            journal: identity,
            epoch_micros,
            follows: None,
            rules: rules.clone(),
        };
        let disk = Arc::clone(configuration.directory.disk());
        let (mut journal, mut recovered) =
            Journal::open(disk, &directory, fresh, configuration.fsync)?;
        let history_directory = directory.join("history");
        let limits = HistoryLimits {
            jobs_max: configuration.history_max,
            bytes_max: configuration.history_bytes_max,
        };
        let (history, remembered) =
            open_history(&history_directory, limits).map_err(|source| RecoveryError::History {
                path: history_directory,
                source,
            })?;
        let begun = recovered.begun;
        let mut remarks = std::mem::take(&mut recovered.remarks);
        remarks.extend(remembered);
        let mut state = replay(
            &directory,
            recovered,
            journal.header(),
            read_policy,
            |state| state,
        )?;
        let mut before = journal.header().rules.clone();
        // An earlier version may have written fewer values.
        before.scheduler = read_policy(&before.scheduler).map_err(unusable)?.to_json();
        if before != rules {
            // The journal was decided by the old rules; what follows uses the new ones.
            let same = before.scheduler == rules.scheduler;
            let policy = if same {
                Policy::AsBefore
            } else {
                Policy::Another
            };
            let epoch = journal.header().epoch_micros;
            let by = (rules.settings, scheduler);
            state = Snapshot::new(&state)
                .restore(epoch, by, policy)
                .map_err(|what| RecoveryError::Snapshot {
                    path: directory.clone(),
                    what,
                })?;
            journal.compact(&Snapshot::new(&state), rules)?;
        }
        if let Some(last) = history.last() {
            state.number_above(last);
        }
        if begun {
            remarks.extend(forgotten(&directory, history.last(), blobs));
        }
        for remark in remarks {
            state.notice(remark);
        }
        state.note_recovered();
        let stores = Stores {
            journal,
            history,
            blobs: Arc::clone(blobs),
        };
        let mut coordinator = ClusterCoordinator::new(state, configuration.clone(), stores, inputs);
        coordinator.take_up_jobs(blobs);
        Ok(coordinator)
    }

    /// Resumes the jobs' claims, and ends jobs whose end was decided.
    fn take_up_jobs(&mut self, blobs: &Arc<BlobStore>) {
        #[cfg(feature = "simulated")]
        super::simulation::note_recovered(self.local.state());
        self.local.state_mut().list_ended();
        let jobs: Vec<JobId> = self.local.state().jobs().keys().copied().collect();
        for job in jobs {
            let Some(known) = self.local.state().jobs().get(&job) else {
                continue;
            };
            let pinned = pin(&known.accepted, blobs);
            let is_over = known.outcome.is_some();
            if !is_over {
                self.local.resume_claim(job, 0);
            }
            self.local.pin(job, pinned);
            self.local.log(&format!("{job} continues"));
        }
    }
}

/// Describes the journal that a directory has lost, if there was one.
fn forgotten(directory: &Path, last: Option<JobId>, blobs: &BlobStore) -> Option<String> {
    let ended = last.map(|job| format!("a history up to {job}, after which jobs are numbered"));
    let left =
        ended.or_else(|| (!blobs.is_empty()).then(|| "programs of earlier jobs".to_owned()))?;
    Some(format!(
        "warning: the journal in {} is missing, but there is {left}: unfinished jobs are lost; to recover \
         them, stop the coordinator and restore journal-* and snapshot-* from a copy",
        directory.display()
    ))
}
