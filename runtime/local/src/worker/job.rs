//! A job on a worker: its description, the location of its files, and whether its attempts can be started.
//!
//! There are two layouts: an embedded job has all files below the output directory; a job of a cluster has
//! all but part files in the worker's own directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use napreduce_engine::{AttemptId, MapOutput, Start, TaskKind, WorkerId};
use napreduce_protocol::{
    InputSplit, JobDescription, LaunchWork, MapInput, MapTask, MemoryFile, OutputEntry, Peer,
    Place, ReduceTask, ReduceWork, TaskDescription, Work,
};

use super::consolidation::{Consolidating, Consolidation};
use super::environment::{Environment, Prepared};
use super::moves::Move;
use super::segment_memory::{MemorySegment, SegmentMemory};
use super::settings::Membership;
use crate::output::JobPaths;
use crate::outputs::OutputTable;
use crate::process::Variable;

/// Reserve 1/8 more than the expected map output.
const OUTPUT_SPARE_SHARE: u128 = 8;

/// A job that was defined and not yet forgotten.
pub(super) struct KnownJob {
    /// Paths derived from the job's output, the same for every worker.
    shared: JobPaths,
    /// An embedded job is ready from the start: its claim has prepared everything.
    pub(super) readiness: Readiness,
    pub(super) description: Arc<JobDescription>,
    /// Only in a cluster.
    membership: Option<Membership>,
    /// Empty directories of ended attempts, renamed for reuse. Creating and removing a directory costs as
    /// much as starting a process, and far more on ext4, which searches past every inode freed in the last
    /// minutes.
    pub(super) idle_scratch: Vec<PathBuf>,
    outputs: OutputTable,
    /// Workers that serve map outputs.
    peers: BTreeMap<WorkerId, Peer>,
    /// Map outputs in memory, released with the job.
    in_memory: Vec<MemorySegment>,
    /// The sizes of the map with the highest ratio of output to input.
    highest_ratio: Option<MapSizes>,
    /// Only in a cluster, whose workers keep map outputs until the job is forgotten.
    pub(super) consolidation: Consolidation,
}

impl KnownJob {
    pub(super) fn new(description: JobDescription, membership: Option<Membership>) -> KnownJob {
        let shared = JobPaths::new(
            &description.output,
            description.job,
            description.claim,
            &description.part_extension,
        );
        let readiness = match membership {
            Some(_) => Readiness::Unprepared,
            None => Readiness::Ready(None),
        };
        KnownJob {
            shared,
            readiness,
            description: Arc::new(description),
            membership,
            idle_scratch: Vec::new(),
            outputs: OutputTable::default(),
            peers: BTreeMap::new(),
            in_memory: Vec::new(),
            highest_ratio: None,
            consolidation: Consolidation::default(),
        }
    }
}

/// The bytes that a map has written and read.
#[derive(Debug, Clone, Copy)]
struct MapSizes {
    written: u64,
    /// At least 1.
    read: u64,
}

impl MapSizes {
    /// Returns whether the map has written more in relation to what it has read.
    fn has_higher_ratio_than(self, other: MapSizes) -> bool {
        u128::from(self.written) * u128::from(other.read)
            > u128::from(other.written) * u128::from(self.read)
    }
}

/// An attempt to be started.
#[derive(Debug)]
pub(super) struct Launching {
    pub(super) attempt: AttemptId,
    pub(super) from: Start,
    pub(super) work: LaunchWork,
    /// Empty for a map.
    pub(super) inputs: Vec<MapOutput>,
}

/// Whether attempts of a job can be started.
pub(super) enum Readiness {
    /// Not prepared yet, or the preparation failed.
    Unprepared,
    /// These attempts start once the preparation is complete.
    Preparing { waiting: Vec<Launching> },
    /// `None` for an embedded job, which needs no preparation.
    Ready(Option<Prepared>),
}

impl Readiness {
    /// Returns whether attempts can be started. A job whose files were changed by others must be prepared
    /// again.
    pub(super) fn is_ready(&self, environment: &dyn Environment) -> bool {
        let Readiness::Ready(prepared) = self else {
            return false;
        };
        let is_intact = match prepared {
            Some(prepared) => (prepared.is_intact)(),
            None => true,
        };
        if !is_intact {
            tracing::warn!(
                target: "worker",
                worker = %environment.name(),
                "the program or a side file of a job was changed on this host; fetching it again"
            );
        }
        is_intact
    }
}

impl KnownJob {
    /// Appends to the log of the job's map outputs.
    pub(super) fn on_outputs(&mut self, entries: Vec<OutputEntry>, peers: Vec<Peer>) {
        for entry in entries {
            self.outputs.apply(entry);
        }
        for peer in peers {
            self.peers.insert(peer.worker, peer);
        }
    }

    /// Returns the known output of each map; empty for a map attempt.
    pub(super) fn inputs(&self, attempt: AttemptId) -> Vec<MapOutput> {
        match attempt.task.kind {
            TaskKind::Map => Vec::new(),
            TaskKind::Reduce => self.outputs.all(),
        }
    }

    /// Returns the known outputs of these maps.
    pub(super) fn outputs_of(&self, maps: &[u32]) -> Vec<MapOutput> {
        maps.iter()
            .filter_map(|map| self.outputs.get(*map))
            .collect()
    }

    /// Returns where this worker's attempts find map outputs.
    pub(super) fn places(&self, outputs: Vec<MapOutput>) -> Vec<MapInput> {
        let at_shared_path = |output: &MapOutput| MapInput {
            attempt: output.attempt,
            place: Place::Local(self.shared.segment(output.attempt)),
        };
        let Some(membership) = &self.membership else {
            return outputs.iter().map(at_shared_path).collect();
        };
        let (moved, held): (Vec<_>, Vec<_>) = outputs
            .into_iter()
            .partition(|output| output.worker == WorkerId::STORAGE);
        let mut inputs = membership
            .environment
            .places(membership.worker, held, &self.peers);
        inputs.extend(moved.iter().map(at_shared_path));
        inputs
    }

    /// Returns the copy that lets a map's output outlive this worker.
    pub(super) fn moving(&self, attempt: AttemptId) -> Option<Move> {
        let environment = self.environment()?;
        Some(Move {
            attempt,
            from: environment.segment(attempt),
            to: self.shared.segment(attempt),
            durable: self.description.durable,
        })
    }

    /// Returns the scratch directory of an attempt.
    pub(super) fn scratch(&self, attempt: AttemptId) -> PathBuf {
        match self.environment() {
            Some(environment) => environment.scratch(attempt),
            None => self.shared.attempt(attempt),
        }
    }

    /// Reuses the directory of an ended attempt, if any. Otherwise the task process creates one.
    pub(super) fn pass_on_scratch(&mut self, attempt: AttemptId) {
        if let Some(idle) = self.idle_scratch.pop() {
            // A directory that cannot be renamed is removed at the end of the job.
            let _ = fs::rename(idle, self.scratch(attempt));
        }
    }

    /// Handles the start of an attempt; returns the consolidation to begin for later reduces.
    pub(super) fn on_launched(&mut self, attempt: AttemptId) -> Option<Consolidating> {
        match attempt.task.kind {
            TaskKind::Map => None,
            TaskKind::Reduce => self.consolidation.on_reduce(attempt.task.job),
        }
    }

    /// Reserves memory for an attempt's expected output plus a margin. The expectation is unknown until a map
    /// of the job is done.
    pub(super) fn memory_for(
        &self,
        work: &LaunchWork,
        memory: &Arc<SegmentMemory>,
    ) -> Option<MemorySegment> {
        let LaunchWork::Map { split } = work else {
            return None;
        };
        let MapSizes { written, read } = self.highest_ratio?;
        let description = &self.description;
        if description.reduces == 0 || description.durable {
            return None;
        }
        let bytes = u128::from(split.length()) * u128::from(written) / u128::from(read);
        memory.take(u64::try_from(bytes + bytes / OUTPUT_SPARE_SHARE).ok()?)
    }

    /// Handles the sealed output of a map that read `read` bytes, possibly in its reserved memory.
    fn on_sealed(&mut self, attempt: AttemptId, read: u64, memory: Option<MemorySegment>) {
        let segment = self.output(attempt);
        if let Some(memory) = memory {
            self.in_memory.extend(memory.keep(&segment));
        }
        // The reader of a missing segment detects it.
        let Ok(found) = fs::metadata(&segment) else {
            return;
        };
        let sizes = MapSizes {
            written: found.len(),
            read: read.max(1),
        };
        let is_highest = match self.highest_ratio {
            Some(highest) => sizes.has_higher_ratio_than(highest),
            None => true,
        };
        if is_highest {
            self.highest_ratio = Some(sizes);
        }
    }

    /// Handles a finished attempt; returns the consolidation to begin now.
    pub(super) fn on_done(
        &mut self,
        attempt: AttemptId,
        input_bytes: u64,
        memory: Option<MemorySegment>,
    ) -> Option<Consolidating> {
        if attempt.task.kind == TaskKind::Reduce {
            return None;
        }
        if self.description.reduces > 0 {
            self.on_sealed(attempt, input_bytes, memory);
        }
        let environment = self.environment()?;
        let segment = environment.segment(attempt);
        self.consolidation
            .on_sealed(attempt.task.job, segment, self.description.reduces)
    }

    /// Returns where an attempt writes its result: a part on shared storage, or a segment where it is served.
    fn output(&self, attempt: AttemptId) -> PathBuf {
        if self.commits(attempt) {
            let directory = if self.shared.are_in_store() {
                // The task uploads it from this host.
                self.scratch(attempt)
            } else {
                self.shared.attempt(attempt)
            };
            return directory.join(self.shared.part_name(attempt.task));
        }
        match self.environment() {
            Some(environment) => environment.segment(attempt),
            None => self.shared.segment(attempt),
        }
    }

    /// Returns whether an attempt writes a part of the job's output.
    fn commits(&self, attempt: AttemptId) -> bool {
        self.description.reduces == 0 || attempt.task.kind == TaskKind::Reduce
    }

    fn environment(&self) -> Option<&dyn Environment> {
        match &self.membership {
            Some(membership) => Some(&*membership.environment),
            None => None,
        }
    }

    /// Returns where an attempt saves a checkpoint: shared storage, or this host and the output's store.
    fn checkpoint(&self, attempt: AttemptId) -> PathBuf {
        match self.environment() {
            Some(environment) if self.shared.are_in_store() => environment
                .checkpoints(attempt.task.job)
                .join(attempt.to_string()),
            _ => self.shared.checkpoint(attempt),
        }
    }

    pub(super) fn describe(
        &self,
        launching: Launching,
        memory_file: Option<MemoryFile>,
    ) -> TaskDescription {
        let Launching {
            attempt,
            from,
            work,
            inputs,
        } = launching;
        let JobDescription {
            definition,
            parameters,
            reduces,
            cuts,
            compress,
            task_memory,
            durable,
            ..
        } = &*self.description;
        let scratch = self.scratch(attempt);
        let output = self.output(attempt);
        let checkpoint = self.checkpoint(attempt);
        let restore = match from {
            Start::Fresh => None,
            Start::Checkpoint(saved) => Some(self.checkpoint(saved)),
        };
        let work = match work {
            LaunchWork::Map { split } => Work::Map(MapTask {
                split,
                partitions: *reduces,
                cuts: cuts.clone(),
                compress: *compress,
                output,
                memory_file,
                scratch,
                checkpoint,
                restore,
                durable: *durable,
            }),
            LaunchWork::Reduce { maps } => Work::Reduce(ReduceWork {
                task: ReduceTask {
                    partition: attempt.task.index,
                    // Filled in by the task process.
                    inputs: Vec::new(),
                    consolidated: self.consolidation.files().to_vec(),
                    inputs_are_partial: false,
                    compress: *compress,
                    output,
                    scratch,
                    checkpoint,
                    restore,
                    durable: *durable,
                },
                maps,
                inputs: self.places(inputs),
                network: self
                    .environment()
                    .map(|environment| environment.data_network(self.description.job)),
            }),
        };
        let promote_to = if self.commits(attempt) {
            Some(self.shared.promoted(attempt))
        } else {
            None
        };
        let is_in_cluster = self.membership.is_some();
        let stored_checkpoints = if is_in_cluster {
            self.shared.stored_checkpoints()
        } else {
            None
        };
        TaskDescription {
            attempt,
            definition: definition.clone(),
            parameters: parameters.clone(),
            memory: *task_memory,
            work,
            promote_to,
            stored_checkpoints,
            // Embedded runs do not survive a power loss anyway.
            sync_part: *durable || is_in_cluster,
        }
    }

    /// Returns the environment variables of an attempt's process.
    pub(super) fn variables(&self, attempt: AttemptId, work: &LaunchWork) -> Vec<Variable> {
        // With several files no single one can be named.
        let input = match work {
            LaunchWork::Map {
                split: InputSplit { parts, .. },
            } => match &parts[..] {
                [part] => Some(part.path.clone().into_os_string()),
                _ => None,
            },
            LaunchWork::Reduce { .. } => None,
        };
        let mut variables = vec![
            (
                "NAPREDUCE_JOB_ID",
                Some(OsString::from(attempt.task.job.to_string())),
            ),
            (
                "NAPREDUCE_TASK_ID",
                Some(OsString::from(attempt.task.to_string())),
            ),
            (
                "NAPREDUCE_ATTEMPT_ID",
                Some(OsString::from(attempt.to_string())),
            ),
            ("NAPREDUCE_INPUT_FILE", input),
        ];
        if let Readiness::Ready(Some(prepared)) = &self.readiness {
            variables.push((
                "NAPREDUCE_FILES_DIR",
                Some(prepared.files.clone().into_os_string()),
            ));
        }
        variables
    }
}
