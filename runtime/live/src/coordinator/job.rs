//! A job as the coordinator keeps it beside the engine.
//!
//! Owns its output claim, the counters and parts of the attempts whose result counts, and its progress for people. Does
//! not own the state of its tasks (the engine).

use std::collections::BTreeMap;
use std::time::Instant;

use napreduce_core::{
    AttemptId, ClusterView, JobId, JobSpec, MapSpec, Report, Start, TaskId, TaskKind, TaskState,
};
use tokio::sync::{oneshot, watch};

use crate::body::PartOutput;
use crate::counters::{Counter, CounterValues};
use crate::output::{CommitTry, CommittedPart, Manifest, OutputClaim, commit_job};
use crate::plan::JobPlan;
use crate::progress::{JobProgress, PhaseProgress};
use crate::protocol::{JobDescription, LaunchWork, ReduceInputs};
use crate::report::{JobError, JobReport, PartReport};

/// Reduces start when all maps are done: before that they would only hold memory, for segments of this machine are
/// mapped when they are wanted.
const SLOWSTART_PERMILLE: u32 = 1000;

/// Where the submitter hears of its job.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) progress: watch::Sender<JobProgress>,
    pub(crate) end: oneshot::Sender<Result<JobReport, JobError>>,
}

/// A job from submission to its end.
pub(super) struct LiveJob {
    id: JobId,
    plan: JobPlan,
    claim: OutputClaim,
    listener: Listener,
    began: Instant,
    /// Of the attempts as they come and go.
    counters: CounterValues,
    /// Of the attempt that did each task; one that does a lost task again takes the place of the first.
    results: BTreeMap<TaskId, TaskCounts>,
}

struct TaskCounts {
    attempt: AttemptId,
    counters: CounterValues,
    part: Option<PartOutput>,
}

impl LiveJob {
    pub(super) fn new(id: JobId, plan: JobPlan, claim: OutputClaim, listener: Listener) -> LiveJob {
        let (counters, results) = (CounterValues::default(), BTreeMap::new());
        LiveJob { id, plan, claim, listener, began: Instant::now(), counters, results }
    }

    /// What the engine is to know of it.
    pub(super) fn spec(&self) -> JobSpec {
        let maps = self.plan.splits.iter();
        JobSpec {
            name: self.plan.name.clone(),
            user: std::env::var("USER").unwrap_or_default(),
            queue: String::from("default"),
            priority: 0,
            deadline: None,
            maps: maps.map(|split| MapSpec { bytes: split.length, preferred: Vec::new() }).collect(),
            reduces: self.plan.reduces,
            attempts_max: self.plan.attempts_max,
            slowstart_permille: SLOWSTART_PERMILLE,
        }
    }

    /// What the workers are to know of it.
    pub(super) fn description(&self) -> JobDescription {
        let plan = &self.plan;
        JobDescription {
            job: self.id,
            definition: plan.definition.clone(),
            parameters: plan.parameters.clone(),
            reduces: plan.reduces,
            cuts: plan.cuts.clone(),
            compress: plan.compress,
            task_memory: plan.task_memory,
            output: plan.output.clone(),
            part_extension: plan.part_extension.clone(),
            task_timeout_millis: u64::try_from(plan.task_timeout.as_millis()).unwrap_or(u64::MAX),
            program: None,
            files: Vec::new(),
        }
    }

    /// What a launched attempt is to do; counts the launch.
    pub(super) fn launch(&mut self, attempt: AttemptId, inputs: ReduceInputs) -> Option<LaunchWork> {
        self.count(attempt, Counter::LaunchedMaps, Counter::LaunchedReduces);
        match attempt.task.kind {
            TaskKind::Map => {
                let split = self.plan.splits.get(usize::try_from(attempt.task.index).ok()?)?.clone();
                Some(LaunchWork::Map { split })
            }
            TaskKind::Reduce => Some(LaunchWork::Reduce { maps: self.maps(), inputs }),
        }
    }

    /// Counts what was reported of an attempt.
    pub(super) fn on_report(&mut self, attempt: AttemptId, report: &Report) {
        match report {
            Report::Failed { .. } => self.count(attempt, Counter::FailedMaps, Counter::FailedReduces),
            Report::Killed => self.count(attempt, Counter::KilledMaps, Counter::KilledReduces),
            _ => {}
        }
    }

    fn maps(&self) -> u32 {
        u32::try_from(self.plan.splits.len()).unwrap_or(u32::MAX)
    }

    fn count(&mut self, attempt: AttemptId, map: Counter, reduce: Counter) {
        let counter = match attempt.task.kind {
            TaskKind::Map => map,
            TaskKind::Reduce => reduce,
        };
        self.counters.add(counter.name(), 1);
    }

    /// Keeps what an attempt that did its task counted and wrote.
    pub(super) fn on_finished(
        &mut self,
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
    ) {
        self.results.insert(attempt.task, TaskCounts { attempt, counters, part });
    }

    /// Tells the submitter how far the job is.
    pub(super) fn publish(&self, view: &ClusterView<'_>) {
        let (map, reduce) = (self.phase(view, TaskKind::Map), self.phase(view, TaskKind::Reduce));
        self.listener.progress.send_replace(JobProgress { map, reduce });
    }

    fn phase(&self, view: &ClusterView<'_>, kind: TaskKind) -> PhaseProgress {
        let Some(job) = view.job(self.id) else { return PhaseProgress::default() };
        let (mut bytes_done, mut known_bytes, mut known_tasks) = (0_u64, 0_u64, 0_u64);
        for attempt in job.attempts().filter(|attempt| attempt.task.kind == kind) {
            let Some(attempt) = view.attempt(attempt) else { continue };
            bytes_done += attempt.bytes_done();
            known_bytes += attempt.bytes_total();
            known_tasks += u64::from(attempt.bytes_total() > 0);
        }
        for index in 0..job.tasks_total(kind) {
            let task = TaskId { job: self.id, kind, index };
            if job.task_state(task) == Some(TaskState::Done) {
                let bytes = self.task_bytes(task);
                bytes_done += bytes;
                known_bytes += bytes;
                known_tasks += 1;
            }
        }
        let tasks = job.tasks_total(kind);
        let bytes_total = match kind {
            TaskKind::Map => self.plan.splits.iter().map(|split| split.length).sum(),
            // Reduces that have not begun are taken to be like those that have.
            TaskKind::Reduce => known_bytes.saturating_mul(u64::from(tasks)) / known_tasks.max(1),
        };
        let from_checkpoint = |task: &TaskId| matches!(job.start_of(*task), Start::Checkpoint(_));
        PhaseProgress {
            tasks,
            done: job.tasks_done(kind),
            running: job.holding(kind),
            suspended: job.suspended(kind),
            checkpointed: u32::try_from(job.eligible(kind).filter(from_checkpoint).count())
                .unwrap_or(u32::MAX),
            bytes_done,
            bytes_total,
        }
    }

    /// What there is to say when the engine has forgotten the job, every task being done.
    fn all_done(&self) -> JobProgress {
        let phase = |kind: TaskKind, tasks: usize| {
            let job = self.id;
            let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
            let bytes = (0..tasks).map(|index| self.task_bytes(TaskId { job, kind, index })).sum();
            PhaseProgress {
                tasks,
                done: tasks,
                bytes_done: bytes,
                bytes_total: bytes,
                ..PhaseProgress::default()
            }
        };
        JobProgress {
            map: phase(TaskKind::Map, self.plan.splits.len()),
            reduce: phase(TaskKind::Reduce, usize::try_from(self.plan.reduces).unwrap_or(usize::MAX)),
        }
    }

    /// Bytes of input of a task that is done.
    fn task_bytes(&self, task: TaskId) -> u64 {
        match task.kind {
            TaskKind::Map => {
                let split = usize::try_from(task.index).ok().and_then(|index| self.plan.splits.get(index));
                split.map_or(0, |split| split.length)
            }
            TaskKind::Reduce => {
                let result = self.results.get(&task);
                result.map_or(0, |result| result.counters.of(Counter::ReduceShuffleBytes))
            }
        }
    }

    /// Commits the job, blocking, and tells the submitter.
    pub(super) fn succeed(self) {
        self.listener.progress.send_replace(self.all_done());
        let mut counters = self.counters;
        for result in self.results.values() {
            counters.merge(&result.counters);
        }
        let parts = self.results.iter().filter_map(|(task, result)| {
            let PartOutput { records, bytes, digest } = result.part?;
            let name = self.claim.paths().part_name(*task);
            let report = PartReport { name, records, bytes, digest };
            Some(CommittedPart { attempt: result.attempt, report })
        });
        let (job, name) = (self.id, self.plan.name);
        let manifest = Manifest { job, name: name.clone(), counters, parts: parts.collect() };
        let committed = commit_job(&self.claim, &manifest, CommitTry::First);
        let report = match committed {
            Ok(()) => Ok(JobReport {
                job,
                name,
                counters: manifest.counters,
                wall: self.began.elapsed(),
                parts: manifest.parts.into_iter().map(|part| part.report).collect(),
                output: self.plan.output,
            }),
            // The first error says more than a second one about the same directory.
            Err(error) => {
                let _ = self.claim.discard();
                Err(error)
            }
        };
        // A submitter that is gone does not want to know.
        let _ = self.listener.end.send(report);
    }

    /// Removes what the job wrote, blocking, and tells the submitter why it failed.
    pub(super) fn fail(self, reason: String) {
        let error = match self.claim.discard() {
            Ok(()) => JobError::Failed { job: self.id, reason },
            Err(error) => JobError::Failed { job: self.id, reason: format!("{reason}; also: {error}") },
        };
        let _ = self.listener.end.send(Err(error));
    }
}
