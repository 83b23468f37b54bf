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

impl RecoveryError {
    fn scheduler(what: String) -> RecoveryError {
        RecoveryError::Scheduler { what }
    }

    fn snapshot(directory: &Path) -> impl FnOnce(String) -> RecoveryError + use<> {
        let path = directory.to_owned();
        move |what| RecoveryError::Snapshot { path, what }
    }
}

/// The rules of the engine that is restored from a snapshot.
pub(super) struct RestoreRules<'a> {
    pub(super) settings: EngineSettings,
    pub(super) scheduler: &'a dyn PolicyChoice,
    pub(super) policy: Policy,
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
        rules: RestoreRules<'_>,
    ) -> Result<CoordinatorState, String> {
        let RestoreRules {
            settings,
            scheduler,
            policy,
        } = rules;
        if self.version != SNAPSHOT_VERSION {
            return Err(format!(
                "it has version {}, but this program reads {SNAPSHOT_VERSION}",
                self.version
            ));
        }
        let snapshot = match policy {
            Policy::AsBefore => self.engine,
            Policy::Another => self.engine.for_another_policy(),
        };
        let engine = Engine::restore(snapshot, scheduler.build()?, settings)
            .map_err(|error| error.to_string())?;
        Ok(CoordinatorState::restore(
            engine,
            scheduler.name().to_owned(),
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
    let epoch_micros = header.epoch_micros;
    let settings = header.rules.settings;
    let scheduler = read_policy(&header.rules.scheduler).map_err(RecoveryError::scheduler)?;
    let state = match recovered.snapshot {
        Some(snapshot) => {
            let rules = RestoreRules {
                settings,
                scheduler: &*scheduler,
                policy: Policy::AsBefore,
            };
            let snapshot: Snapshot = snapshot.decode()?;
            snapshot
                .restore(epoch_micros, rules)
                .map_err(RecoveryError::snapshot(directory))?
        }
        None => {
            let policy = scheduler.build().map_err(RecoveryError::scheduler)?;
            let engine = Engine::new(policy, settings);
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
        // Check the policy before using it.
        configuration
            .scheduler
            .build()
            .map_err(RecoveryError::scheduler)?;
        let fresh = Header {
            version: JOURNAL_VERSION,
            journal: identity,
            epoch_micros: world.clock.unix_micros(),
            follows: None,
            rules: configuration.rules(),
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
        let is_new_journal = recovered.begun;
        if recovered.snapshot.is_some() {
            reached(Situation::RecoveredFromSnapshot);
        }
        let mut remarks = std::mem::take(&mut recovered.remarks);
        remarks.extend(remembered);
        let mut state = replay(
            &directory,
            recovered,
            journal.header(),
            configuration.read_policy,
            |state| state,
        )?;
        state = adopt_rules(state, &mut journal, configuration, &directory)?;
        if let Some(last) = history.last() {
            state.number_above(last);
        }
        if is_new_journal {
            remarks.extend(describe_lost_journal(&directory, history.last(), blobs));
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
        coordinator.continue_jobs(blobs);
        Ok(coordinator)
    }

    /// Resumes the jobs' claims, and ends jobs whose end was decided.
    fn continue_jobs(&mut self, blobs: &Arc<BlobStore>) {
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

/// Returns the state under the configured rules. The journal was decided by the rules in its header; if they differ,
/// later entries follow the configured rules.
fn adopt_rules(
    state: CoordinatorState,
    journal: &mut Journal,
    configuration: &CoordinatorConfiguration,
    directory: &Path,
) -> Result<CoordinatorState, RecoveryError> {
    let configured = configuration.rules();
    let mut journaled = journal.header().rules.clone();
    // An earlier version may have written fewer values.
    journaled.scheduler = (configuration.read_policy)(&journaled.scheduler)
        .map_err(RecoveryError::scheduler)?
        .to_json();
    if journaled == configured {
        return Ok(state);
    }
    let policy = if journaled.scheduler == configured.scheduler {
        Policy::AsBefore
    } else {
        Policy::Another
    };
    let rules = RestoreRules {
        settings: configured.settings,
        scheduler: &*configuration.scheduler,
        policy,
    };
    let restored = Snapshot::new(&state)
        .restore(journal.header().epoch_micros, rules)
        .map_err(RecoveryError::snapshot(directory))?;
    journal.compact(&Snapshot::new(&restored), configured)?;
    Ok(restored)
}

/// Describes the journal that a directory has lost, if there was one.
fn describe_lost_journal(
    directory: &Path,
    last_ended: Option<JobId>,
    blobs: &BlobStore,
) -> Option<String> {
    let left = match last_ended {
        Some(job) => format!("a history up to {job}, after which jobs are numbered"),
        None if blobs.is_empty() => return None,
        None => "programs of earlier jobs".to_owned(),
    };
    Some(format!(
        "warning: the journal in {} is missing, but there is {left}: unfinished jobs are lost; to recover \
         them, stop the coordinator and restore journal-* and snapshot-* from a copy",
        directory.display()
    ))
}
