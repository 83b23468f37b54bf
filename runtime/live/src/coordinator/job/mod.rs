//! A job as the coordinator keeps it beside the engine: what it was given, and what its attempts brought.
//!
//! Owns counters, parts and history of the attempts, as plain data that a snapshot holds. Does not own the state of
//! its tasks (the engine) nor its output directory (`ending`).

mod moved;
mod progress;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use napreduce_core::{
    AttemptId, ClusterView, JobId, JobOutcome, JobState, Record, Report, TaskId, TaskKind, WorkerId,
};
use napreduce_protocol::{
    AttemptSummary, Counter, CounterValues, HistoryLine, JobDescription, JobPhase, JobSummary, LaunchWork,
    PartOutput, Preempted, PreemptionAccount, PreemptionEnd,
};
use serde::{Deserialize, Serialize};

use self::progress::Sums;
use super::entry::Accepted;
use super::output_log::OutputLog;
use super::preemptions::PreemptionBook;

/// A job from submission until it is in history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LiveJob {
    /// Shared with the snapshots that are being written: it never changes, and names every split.
    pub(super) accepted: Arc<Accepted>,
    /// In microseconds since 1970.
    pub(super) submitted_micros: u64,
    /// How it ended, when the engine has forgotten it: its output is then committed or removed.
    pub(super) outcome: Option<JobOutcome>,
    /// Whether its output is being put into place.
    pub(super) commit_begun: bool,
    /// Of the attempts as they come and go.
    counters: CounterValues,
    /// Of the attempt that did each task, shared with snapshots like all there may be many of; one that does a lost task again takes the place of the first.
    #[serde(with = "pairs")]
    results: BTreeMap<TaskId, Arc<TaskResult>>,
    /// What the attempts brought that report their end in this batch.
    #[serde(skip)]
    brought: BTreeMap<AttemptId, TaskResult>,
    /// The attempts that are reported killed in this batch.
    #[serde(skip)]
    killed: BTreeSet<AttemptId>,
    /// Known once somebody has asked how far the job is, and kept up from then on.
    #[serde(skip)]
    sums: Cell<Option<Sums>>,
    pub(super) attempts: Vec<Arc<AttemptSummary>>,
    pub(super) events: Vec<HistoryLine>,
    #[serde(default)]
    pub(super) book: PreemptionBook,
    #[serde(default)]
    pub(super) outputs: OutputLog,
}

/// What the attempt that did a task brought.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TaskResult {
    pub(super) attempt: AttemptId,
    counters: CounterValues,
    pub(super) part: Option<PartOutput>,
}

impl LiveJob {
    pub(super) fn new(accepted: Accepted, submitted_micros: u64) -> LiveJob {
        LiveJob {
            accepted: Arc::new(accepted),
            submitted_micros,
            outcome: None,
            commit_begun: false,
            counters: CounterValues::default(),
            results: BTreeMap::new(),
            brought: BTreeMap::new(),
            killed: BTreeSet::new(),
            sums: Cell::default(),
            attempts: Vec::new(),
            events: Vec::new(),
            book: PreemptionBook::default(),
            outputs: OutputLog::default(),
        }
    }

    pub(super) fn id(&self) -> JobId {
        self.accepted.job
    }

    /// What the workers are to know of it.
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
            task_timeout_millis: u64::try_from(plan.task_timeout.as_millis()).unwrap_or(u64::MAX),
            durable: plan.durable,
            program: self.accepted.program,
            files: self.accepted.files.clone(),
        }
    }

    /// What a launched attempt is to do; counts the launch.
    pub(super) fn launch(&mut self, attempt: AttemptId) -> Option<LaunchWork> {
        self.count(attempt, Counter::LaunchedMaps, Counter::LaunchedReduces);
        let splits = &self.accepted.plan.splits;
        match attempt.task.kind {
            TaskKind::Map => {
                let split = splits.get(usize::try_from(attempt.task.index).ok()?)?.clone();
                Some(LaunchWork::Map { split })
            }
            TaskKind::Reduce => {
                let maps = u32::try_from(splits.len()).unwrap_or(u32::MAX);
                Some(LaunchWork::Reduce { maps })
            }
        }
    }

    /// Counts what was reported of an attempt.
    pub(super) fn on_report(&mut self, attempt: AttemptId, report: &Report) {
        match report {
            Report::Failed { .. } => self.count(attempt, Counter::FailedMaps, Counter::FailedReduces),
            Report::Killed => {
                self.killed.insert(attempt);
                self.count(attempt, Counter::KilledMaps, Counter::KilledReduces);
            }
            _ => {}
        }
    }

    fn count(&mut self, attempt: AttemptId, map: Counter, reduce: Counter) {
        let counter = match attempt.task.kind {
            TaskKind::Map => map,
            TaskKind::Reduce => reduce,
        };
        self.counters.add(counter.name(), 1);
    }

    /// Takes what an attempt that says it did its task counted and wrote. It is kept if the engine answers that the task
    /// is done by it: of two attempts only one is.
    pub(super) fn on_finished(
        &mut self,
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
    ) {
        self.brought.insert(attempt, TaskResult { attempt, counters, part });
    }

    /// What it brought was kept, or is not wanted: another attempt was faster.
    pub(super) fn forget_finished(&mut self, attempt: AttemptId) {
        self.brought.remove(&attempt);
    }

    /// Keeps what the engine says has happened.
    pub(super) fn on_record(&mut self, at_micros: u64, record: &Record, worker_name: &str) {
        let at_millis = at_micros / 1_000;
        match record {
            Record::AttemptLaunched { attempt, worker, duplicate_of } => {
                if let Some(slow) = duplicate_of {
                    self.say(at_millis, format!("{attempt} races {slow}, which is slow"));
                }
                self.on_launched(at_millis, *attempt, *worker, worker_name);
            }
            Record::TaskDone(attempt) => {
                if let Some(result) = self.brought.remove(attempt) {
                    self.results.insert(attempt.task, Arc::new(result));
                }
                self.count_done(attempt.task, 1);
                self.book.ended(at_micros, *attempt, PreemptionEnd::Finished);
                self.on_attempt_end(at_millis, *attempt, "done");
            }
            Record::AttemptEnded(attempt, why) => {
                let killed = self.killed.remove(attempt);
                let end = if killed { PreemptionEnd::Killed } else { PreemptionEnd::Ended };
                self.book.ended(at_micros, *attempt, end);
                self.on_attempt_end(at_millis, *attempt, why);
            }
            Record::Checkpointed(attempt) => {
                self.book.ended(at_micros, *attempt, PreemptionEnd::Checkpointed);
                self.on_attempt_end(at_millis, *attempt, "checkpointed");
            }
            Record::CommitGranted(_)
            | Record::WorkerDraining(_)
            | Record::WorkerLeft(_)
            | Record::WorkerExcluded { .. }
            | Record::WorkerShort { .. } => {}
            Record::PreemptRequested { .. }
            | Record::SuspendRefused { .. }
            | Record::Converted { .. }
            | Record::AttemptHeld { .. }
            | Record::AttemptReleased { .. }
            | Record::JobHeld { .. }
            | Record::JobReleased { .. }
            | Record::Suspended(_)
            | Record::Resumed(_) => self.on_preemption(at_micros, record),
            Record::JobAccepted(_) => self.say(at_millis, "submitted".to_owned()),
            Record::OutputLost(task) => {
                self.count_done(*task, -1);
                self.say(at_millis, format!("the output of {task} is lost; it runs again"))
            }
            Record::TaskIsolated { task, reason } => {
                self.say(at_millis, format!("{task} runs alone from now on: {reason}"));
            }
            Record::JobDecided(_, outcome) => {
                self.book.decided();
                self.say(at_millis, format!("it will have {}", in_words(outcome)))
            }
            Record::JobEnded(_, outcome) => self.say(at_millis, format!("it has {}", in_words(outcome))),
        }
    }

    /// Keeps what is said of a preemption; who asked for it is in the book.
    fn on_preemption(&mut self, at_micros: u64, record: &Record) {
        let text = match record {
            Record::PreemptRequested { attempt, primitive, beneficiary, reason, .. } => {
                let whom = beneficiary.map_or_else(String::new, |job| format!(" for {job}"));
                format!("{attempt} is to give its slot{whom} by {primitive}: {reason}")
            }
            Record::SuspendRefused { attempt, reason, .. } => {
                self.book.withdrawn(*attempt, reason);
                format!("{attempt} cannot be suspended and goes on: {reason}")
            }
            Record::Converted { attempt, primitive, reason, .. } => {
                format!("{attempt} is given up where it is, by {primitive}: {reason}")
            }
            Record::AttemptHeld { attempt, reason } => format!("{attempt} is held by an operator: {reason}"),
            Record::AttemptReleased { attempt, reason } => {
                format!("{attempt} is wanted back by an operator: {reason}")
            }
            Record::JobHeld { reason, .. } => format!("suspended: {reason}"),
            Record::JobReleased { reason, .. } => format!("resumed: {reason}"),
            Record::Suspended(attempt) => {
                self.book.suspended(at_micros, *attempt);
                format!("{attempt} is suspended")
            }
            Record::Resumed(attempt) => {
                self.book.resumed(at_micros, *attempt);
                format!("{attempt} runs again")
            }
            _ => return,
        };
        self.say(at_micros / 1_000, text);
    }

    /// What a worker accounts for, and what it could not do.
    pub(super) fn on_account(&mut self, at_micros: u64, attempt: AttemptId, account: &PreemptionAccount) {
        self.book.accounted(at_micros, attempt, account);
        let at_millis = at_micros / 1_000;
        match &account.what {
            Preempted::Restored => self.say(at_millis, format!("{attempt} goes on from its checkpoint")),
            Preempted::RestoreRefused(why) => {
                self.say(at_millis, format!("{attempt} starts from scratch: {why}"));
            }
            _ => {}
        }
        for note in &account.notes {
            self.say(at_millis, format!("{attempt}: {note}"));
        }
    }

    fn on_launched(&mut self, at_millis: u64, attempt: AttemptId, worker: WorkerId, worker_name: &str) {
        self.attempts.push(Arc::new(AttemptSummary {
            attempt,
            worker,
            worker_name: worker_name.to_owned(),
            launched_millis: at_millis,
            ended_millis: None,
            end: None,
        }));
    }

    fn on_attempt_end(&mut self, at_millis: u64, attempt: AttemptId, end: &str) {
        // The newest are the likeliest to end.
        if let Some(known) = self.attempts.iter_mut().rev().find(|known| known.attempt == attempt) {
            let known = Arc::make_mut(known);
            known.ended_millis = Some(at_millis);
            known.end = Some(end.to_owned());
        }
    }

    fn say(&mut self, at_millis: u64, text: String) {
        self.events.push(HistoryLine { at_millis, text });
    }

    /// Counters of the attempts whose result counts, and of the job as a whole.
    pub(super) fn counters(&self) -> CounterValues {
        let mut counters = self.counters.clone();
        for result in self.results.values() {
            counters.merge(&result.counters);
        }
        counters.merge(&self.book.counters());
        counters
    }

    /// The attempts that wrote a part, in the order of their tasks.
    pub(super) fn parts(&self) -> impl Iterator<Item = (AttemptId, &PartOutput)> {
        self.results.values().filter_map(|result| Some((result.attempt, result.part.as_ref()?)))
    }

    /// A line of a listing.
    pub(super) fn summary(&self, view: &ClusterView<'_>) -> JobSummary {
        let plan = &self.accepted.plan;
        let known = view.job(self.id());
        let outcome = known.and_then(|job| job.outcome()).or(self.outcome.as_ref());
        let phase = match known.filter(|job| job.state() == JobState::Active) {
            Some(job) if view.is_suspended(job) => JobPhase::Suspended,
            Some(_) => JobPhase::Active,
            None => JobPhase::Stopping,
        };
        JobSummary {
            job: self.id(),
            name: plan.name.clone(),
            user: self.accepted.user.clone(),
            queue: plan.queue.clone(),
            priority: plan.priority,
            phase,
            reason: outcome.and_then(reason_of),
            submitted_millis: self.submitted_micros / 1_000,
            ended_millis: None,
            progress: self.progress(view),
            output: plan.output.clone(),
        }
    }
}

/// Why it did not succeed.
pub(super) fn reason_of(outcome: &JobOutcome) -> Option<String> {
    match outcome {
        JobOutcome::Succeeded => None,
        JobOutcome::Failed { reason } | JobOutcome::Killed { reason } => Some(reason.clone()),
    }
}

fn in_words(outcome: &JobOutcome) -> String {
    match outcome {
        JobOutcome::Succeeded => "succeeded".to_owned(),
        JobOutcome::Failed { reason } => format!("failed: {reason}"),
        JobOutcome::Killed { reason } => format!("been killed: {reason}"),
    }
}

/// Tasks cannot be keys of a JSON object.
mod pairs {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use napreduce_core::TaskId;
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
        Ok(Vec::<(TaskId, Arc<TaskResult>)>::deserialize(deserializer)?.into_iter().collect())
    }
}
