//! A job in the coordinator outside the engine: its submission, and the counters, parts and history of its
//! attempts. It is plain data, so that a snapshot can contain it.

mod figures;
mod progress;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use napreduce_engine::{
    AttemptId, Engine, JobChange, JobId, JobOutcome, Record, Report, TaskId, TaskKind, Time,
};
use napreduce_history::{JobHistory, KeptLog, PreemptionBook};
use napreduce_protocol::{
    AttemptSummary, Counter, CounterValues, FailedRecord, HistoryLine, JobDescription, JobEnd,
    JobPhase, JobSummary, LaunchWork, PartOutput, TaskFailure, whole_millis,
};
use serde::{Deserialize, Serialize};

use self::progress::Sums;
use super::entry::Accepted;
use crate::outputs::OutputLog;

/// Maximum number of attempts with logs per job.
const LOGS_MAX: usize = 20;

/// A job from submission until it is in history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveJob {
    /// Shared with snapshots being written: it is immutable and lists every split.
    pub accepted: Arc<Accepted>,
    /// Changes by an operator since the submission.
    #[serde(default)]
    pub change: JobChange,
    /// In microseconds since 1970.
    pub(super) submitted_micros: u64,
    /// The outcome, once the engine has forgotten the job; its output is then committed or removed.
    pub outcome: Option<JobOutcome>,
    /// Whether the commit of its output has begun.
    pub(super) commit_begun: bool,
    /// Counts of launched and ended attempts.
    counters: CounterValues,
    /// Results of the attempt that completed each task, shared with snapshots like all large data. A repeated
    /// task replaces its earlier result.
    #[serde(with = "pairs")]
    results: BTreeMap<TaskId, Arc<TaskResult>>,
    /// Results of attempts that report their end in this batch.
    #[serde(skip)]
    brought: BTreeMap<AttemptId, TaskResult>,
    /// Attempts reported killed in this batch.
    #[serde(skip)]
    killed: BTreeSet<AttemptId>,
    /// When attempts that report their start or end in this batch started and ended, by their workers' clocks, in
    /// microseconds since 1970.
    #[serde(skip)]
    starts: BTreeMap<AttemptId, u64>,
    #[serde(skip)]
    ends: BTreeMap<AttemptId, u64>,
    /// Records of attempts that report their failure in this batch.
    #[serde(skip)]
    records: BTreeMap<AttemptId, FailedRecord>,
    /// The last failure of each task that is not done. The one that fails the job is in the same batch as that
    /// decision.
    #[serde(skip)]
    failing: BTreeMap<TaskId, TaskFailure>,
    /// The failure that failed the job, if it was one of a task.
    #[serde(default)]
    failure: Option<Box<TaskFailure>>,
    /// Computed at the first progress request and updated from then on.
    #[serde(skip)]
    sums: Cell<Option<Sums>>,
    pub attempts: Vec<Arc<AttemptSummary>>,
    pub(super) events: Vec<HistoryLine>,
    /// Output printed by failed attempts.
    #[serde(default)]
    pub logs: Vec<KeptLog>,
    #[serde(default)]
    pub book: PreemptionBook,
    #[serde(default)]
    pub(super) outputs: OutputLog,
}

impl LiveJob {
    pub(super) fn new(accepted: Accepted, submitted_micros: u64) -> LiveJob {
        LiveJob {
            accepted: Arc::new(accepted),
            change: JobChange::default(),
            submitted_micros,
            outcome: None,
            commit_begun: false,
            counters: CounterValues::default(),
            results: BTreeMap::new(),
            brought: BTreeMap::new(),
            killed: BTreeSet::new(),
            starts: BTreeMap::new(),
            ends: BTreeMap::new(),
            records: BTreeMap::new(),
            failing: BTreeMap::new(),
            failure: None,
            sums: Cell::default(),
            attempts: Vec::new(),
            events: Vec::new(),
            logs: Vec::new(),
            book: PreemptionBook::default(),
            outputs: OutputLog::default(),
        }
    }
}

/// The results of the attempt that completed a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TaskResult {
    pub(super) attempt: AttemptId,
    counters: CounterValues,
    pub(super) part: Option<PartOutput>,
}

impl LiveJob {
    /// Returns the job with its changes, as it would be submitted now.
    pub fn definition(&self) -> Accepted {
        self.accepted.with_change(&self.change)
    }

    pub fn id(&self) -> JobId {
        self.accepted.job
    }

    /// Returns the description for workers.
    pub(super) fn description(&self) -> JobDescription {
        let plan = &self.accepted.plan;
        JobDescription {
            job: self.id(),
            definition: plan.definition.clone(),
            parameters: plan.parameters.clone(),
            reduces: plan.reduces,
            cuts: plan.cuts.clone(),
            compress: plan.compress,
            task_memory: plan.task_memory,
            output: plan.output.clone(),
            claim: self.accepted.claim.token,
            part_extension: plan.part_extension.clone(),
            task_timeout_millis: whole_millis(plan.task_timeout),
            durable: plan.durable,
            program: self.accepted.program,
            files: self.accepted.files.clone(),
        }
    }

    /// Returns the work of a launched attempt and counts the launch.
    pub(super) fn launch(&mut self, attempt: AttemptId) -> Option<LaunchWork> {
        self.count(attempt, Counter::LaunchedMaps, Counter::LaunchedReduces);
        let splits = &self.accepted.plan.splits;
        match attempt.task.kind {
            TaskKind::Map => {
                let split = splits
                    .get(usize::try_from(attempt.task.index).ok()?)?
                    .clone();
                Some(LaunchWork::Map { split })
            }
            TaskKind::Reduce => {
                let maps = u32::try_from(splits.len()).unwrap_or(u32::MAX);
                Some(LaunchWork::Reduce { maps })
            }
        }
    }

    /// Counts a report of an attempt.
    pub(super) fn on_report(&mut self, at_micros: u64, attempt: AttemptId, report: &Report) {
        match report {
            Report::Started => {
                let started = self.starts.remove(&attempt).unwrap_or(at_micros);
                self.history().on_started(started.min(at_micros), attempt);
            }
            Report::Failed { place, reason, .. } => {
                self.count(attempt, Counter::FailedMaps, Counter::FailedReduces);
                let record = self.records.remove(&attempt);
                self.failing.insert(
                    attempt.task,
                    TaskFailure::new(attempt, *place, reason, record),
                );
            }
            Report::Killed => {
                self.killed.insert(attempt);
                self.count(attempt, Counter::KilledMaps, Counter::KilledReduces);
            }
            _ => {}
        }
    }

    /// Takes the time at which an attempt started by its worker's clock.
    pub(super) fn on_started_at(&mut self, attempt: AttemptId, at_micros: u64) {
        self.starts.insert(attempt, at_micros);
    }

    /// Takes the time at which an attempt ended by its worker's clock.
    pub(super) fn on_ended_at(&mut self, attempt: AttemptId, at_micros: u64) {
        self.ends.insert(attempt, at_micros);
    }

    /// Drops the times of a report that was stale.
    pub(super) fn forget_moments(&mut self, attempt: AttemptId) {
        self.starts.remove(&attempt);
        self.ends.remove(&attempt);
    }

    /// Takes the record of an attempt that reports its failure.
    pub(super) fn on_failed_record(&mut self, attempt: AttemptId, record: FailedRecord) {
        self.records.insert(attempt, record);
    }

    /// Drops a record whose report was stale.
    pub(super) fn forget_failed_record(&mut self, attempt: AttemptId) {
        self.records.remove(&attempt);
    }

    /// Returns the end of a job that did not succeed.
    pub(super) fn end_without_report(&self, outcome: JobOutcome) -> Option<JobEnd> {
        let mut end = JobEnd::without_report(self.id(), outcome);
        if let Some(JobEnd::Failed { failure, .. }) = &mut end {
            failure.clone_from(&self.failure);
        }
        end
    }

    fn count(&mut self, attempt: AttemptId, map: Counter, reduce: Counter) {
        let counter = match attempt.task.kind {
            TaskKind::Map => map,
            TaskKind::Reduce => reduce,
        };
        self.counters.add(counter.in_words(), 1);
    }

    /// Takes the counters and outputs of an attempt that reports its task done. They are kept if the engine
    /// confirms that this attempt completed the task, since only one of two attempts counts.
    pub(super) fn on_finished(
        &mut self,
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
    ) {
        self.brought.insert(
            attempt,
            TaskResult {
                attempt,
                counters,
                part,
            },
        );
    }

    /// Drops a result that was stored already or is superfluous, since another attempt was faster.
    pub(super) fn forget_finished(&mut self, attempt: AttemptId) {
        self.brought.remove(&attempt);
    }

    /// Returns whether the output of another attempt would be kept.
    pub fn has_room_for_logs(&self) -> bool {
        self.logs.len() < LOGS_MAX
    }

    /// Keeps the printed output of an attempt.
    pub(super) fn on_printed(&mut self, attempt: AttemptId, stderr: String) {
        if self.has_room_for_logs() {
            self.logs.push(KeptLog {
                attempt,
                stderr: stderr.into(),
            });
        }
    }

    /// Applies a record of the engine.
    pub(super) fn on_record(&mut self, at_micros: u64, record: &Record, worker_name: &str) {
        let mut moved = None;
        match record {
            Record::TaskDone(attempt) => {
                if let Some(result) = self.brought.remove(attempt) {
                    let figures = figures::figures(&self.accepted.plan, *attempt, &result.counters);
                    moved = Some((*attempt, figures));
                    self.results.insert(attempt.task, Arc::new(result));
                }
                self.failing.remove(&attempt.task);
                self.count_done(attempt.task, 1);
            }
            Record::JobDecided(_, JobOutcome::Failed { reason }) => {
                // The reason begins with the task.
                let is_reason = |task: &TaskId| reason.starts_with(&format!("{task} "));
                let failing = std::mem::take(&mut self.failing);
                let failure = failing.into_iter().find(|(task, _)| is_reason(task));
                self.failure = failure.map(|(_, failure)| Box::new(failure));
            }
            Record::OutputLost(task) => self.count_done(*task, -1),
            Record::JobChanged { change, .. } => {
                self.change.priority = change.priority.or(self.change.priority);
                self.change.queue = change.queue.clone().or(self.change.queue.take());
            }
            _ => {}
        }
        match (record, &self.accepted.rerun_of) {
            (Record::JobAccepted(_), Some(of)) => {
                let text = format!("submitted as a rerun of {}: {}", of.job, of.reason);
                self.history().add_event(at_micros / 1_000, text);
            }
            _ => self.history().on_record(at_micros, record, worker_name),
        }
        if let Some((attempt, figures)) = moved {
            self.history().on_figures(attempt, figures);
        }
    }

    /// Returns the job's history over time.
    pub(super) fn history(&mut self) -> JobHistory<'_> {
        let LiveJob {
            attempts,
            events,
            book,
            killed,
            ends,
            ..
        } = self;
        JobHistory {
            attempts,
            events,
            book,
            killed,
            ends,
        }
    }

    /// Returns the counters of the attempts whose result counts, and of the job as a whole.
    pub(super) fn counters(&self) -> CounterValues {
        let mut counters = self.counters.clone();
        for result in self.results.values() {
            counters.merge(&result.counters);
        }
        counters.merge(&self.book.counters());
        counters
    }

    /// Returns the attempts that wrote a part, in task order.
    pub(super) fn parts(&self) -> impl Iterator<Item = (AttemptId, &PartOutput)> {
        self.results
            .values()
            .filter_map(|result| Some((result.attempt, result.part.as_ref()?)))
    }

    /// Returns the job's line in a listing.
    pub fn summary(&self, engine: &Engine, now: Time) -> JobSummary {
        let view = engine.view();
        let plan = &self.accepted.plan;
        let known = view.job(self.id());
        let outcome = known
            .and_then(|job| job.outcome())
            .or(self.outcome.as_ref());
        let phase = known.map_or(JobPhase::Stopping, |job| view.standing(job).into());
        JobSummary {
            job: self.id(),
            name: plan.name.clone(),
            user: self.accepted.user.clone(),
            queue: self.change.queue.as_ref().unwrap_or(&plan.queue).clone(),
            priority: self.change.priority.unwrap_or(plan.priority),
            phase,
            reason: outcome.and_then(JobOutcome::reason).map(str::to_owned),
            submitted_millis: self.submitted_micros / 1_000,
            ended_millis: None,
            progress: self.progress(engine, now),
            output: plan.output.clone(),
            unrecorded: None,
        }
    }
}

/// Serializes a map as pairs, since tasks cannot be keys of a JSON object.
mod pairs {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use napreduce_engine::TaskId;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::TaskResult;

    pub(super) fn serialize<S: Serializer>(
        results: &BTreeMap<TaskId, Arc<TaskResult>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(results)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<TaskId, Arc<TaskResult>>, D::Error> {
        Ok(Vec::<(TaskId, Arc<TaskResult>)>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}
