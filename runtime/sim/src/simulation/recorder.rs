//! Records job histories in the format of a cluster, with times relative to the start of the run. Masters are
//! not recorded, since a cluster has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{
    AttemptId, ClusterView, Effect, JobId, JobOutcome, Order, Record, Report, TaskKind, Time,
    WorkerId,
};
use napreduce_history::{EndedJob, JobHistory, PreemptionBook, RecordedCluster};
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, Counter, CounterValues, HistoryLine, JobDetail, JobEnd,
    JobPhase, JobPlan, JobProgress, JobReport, JobSettings, JobSummary, PhaseProgress, Preempted,
    PreemptionAccount,
};

use super::Simulation;
use super::jobs::RunningJob;
use super::workers::{VirtualWorker, Workers};
use crate::job::SimulatedJob;
use crate::run::SimulationError;

/// The options of a recording.
pub struct Recording {
    /// The cluster of every job; its scheduler name identifies the preempting policy.
    pub cluster: RecordedCluster,
    /// Stores a job that has ended.
    pub keep: Box<dyn FnMut(EndedJob) -> io::Result<()>>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

/// Records the histories of a run's jobs.
#[derive(Debug)]
pub(super) struct Recorder {
    recording: Recording,
    /// The jobs that have not ended.
    jobs: BTreeMap<JobId, RecordedJob>,
}

/// The recording of a job.
#[derive(Debug, Default)]
struct RecordedJob {
    attempts: Vec<Arc<AttemptSummary>>,
    events: Vec<HistoryLine>,
    book: PreemptionBook,
    killed: BTreeSet<AttemptId>,
    /// Empty: a simulated report takes no time.
    ends: BTreeMap<AttemptId, u64>,
    counters: CounterValues,
}

impl RecordedJob {
    fn history(&mut self) -> JobHistory<'_> {
        let RecordedJob {
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

    /// Increments one of two counters, by the kind of a task.
    fn count(&mut self, kind: TaskKind, map: Counter, reduce: Counter) {
        let counter = if kind == TaskKind::Map { map } else { reduce };
        self.counters.add(counter.in_words(), 1);
    }
}

impl Recorder {
    pub fn new(recording: Recording) -> Recorder {
        Recorder {
            recording,
            jobs: BTreeMap::new(),
        }
    }

    /// Records a report of an attempt and the account of its worker.
    pub fn on_report(
        &mut self,
        now: Time,
        attempt: AttemptId,
        report: &Report,
        account: Option<Box<PreemptionAccount>>,
    ) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else {
            return;
        };
        if let Some(account) = account {
            job.history().on_account(now.0, attempt, &account);
        }
        match report {
            Report::Started => job.history().on_started(now.0, attempt),
            Report::Killed => {
                job.killed.insert(attempt);
                job.count(
                    attempt.task.kind,
                    Counter::KilledMaps,
                    Counter::KilledReduces,
                );
            }
            Report::Failed { .. } => {
                job.count(
                    attempt.task.kind,
                    Counter::FailedMaps,
                    Counter::FailedReduces,
                );
            }
            _ => {}
        }
    }

    /// Starts the history of a job.
    fn begin(&mut self, now: Time, job: JobId) {
        self.jobs.insert(job, RecordedJob::default());
        self.on_record(now, &Record::JobAccepted(job), None);
    }

    /// Records an order to a worker.
    fn on_order(&mut self, now: Time, worker: WorkerId, order: &Order) {
        if let Some(job) = self.jobs.get_mut(&order.attempt().task.job) {
            job.history().on_order(now.0, worker, order);
        }
    }

    /// Records what happened in the engine, with the worker that it concerns.
    fn on_record(&mut self, now: Time, record: &Record, worker: Option<&VirtualWorker>) {
        let Some(job) = record.job() else {
            return;
        };
        let Some(recorded) = self.jobs.get_mut(&job) else {
            return;
        };
        if let Record::AttemptLaunched { attempt, .. } = record {
            recorded.count(
                attempt.task.kind,
                Counter::LaunchedMaps,
                Counter::LaunchedReduces,
            );
        }
        let Some(worker) = worker else {
            recorded.history().on_record(now.0, record, "");
            return;
        };
        recorded
            .history()
            .on_record(now.0, record, &worker.machine_name());
        let scheduler = &self.recording.cluster.scheduler;
        recorded
            .history()
            .on_request(now.0, record, worker.id, scheduler);
    }

    /// Completes and stores the history of a job.
    pub fn job_ended(
        &mut self,
        now: Time,
        job: &RunningJob,
        outcome: &JobOutcome,
    ) -> Result<(), SimulationError> {
        let Some(recorded) = self.jobs.remove(&job.result.job) else {
            return Ok(());
        };
        let ended = ended_job(now, job, outcome, recorded, self.recording.cluster.clone());
        (self.recording.keep)(ended).map_err(SimulationError::Recording)
    }
}

/// Returns the worker that a record concerns, if it launches or preempts an attempt.
fn worker_of(record: &Record, view: &ClusterView<'_>) -> Option<WorkerId> {
    match record {
        Record::AttemptLaunched { worker, .. } => Some(*worker),
        Record::PreemptRequested { attempt, .. } | Record::Converted { attempt, .. } => {
            let attempt = view.attempt(*attempt)?;
            Some(attempt.worker())
        }
        _ => None,
    }
}

impl Simulation {
    /// Records an effect of the engine.
    pub(super) fn record_effect(&mut self, effect: &Effect) {
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let now = self.clock.now();
        match effect {
            Effect::Record(Record::JobAccepted(job)) if !self.jobs.at(*job).is_master() => {
                recorder.begin(now, *job);
            }
            Effect::Record(record) => {
                let worker = worker_of(record, &self.engine.view());
                let worker = worker.map(|worker| self.workers.at(Workers::position_of(worker)));
                recorder.on_record(now, record, worker);
            }
            Effect::Send { worker, order } => recorder.on_order(now, *worker, order),
            _ => {}
        }
    }

    /// Returns the worker's account of a preemption that this report completes, if the run is recorded.
    pub(super) fn account_of(&self, place: u32, report: &Report) -> Option<Box<PreemptionAccount>> {
        self.recorder.as_ref()?;
        let attempt = self.attempts.at(place);
        let what = match report {
            Report::Suspended => Preempted::Suspended,
            Report::Resumed => Preempted::Resumed,
            Report::Checkpointed => Preempted::Checkpointed,
            Report::Killed => Preempted::Killed,
            Report::Started if attempt.restores.is_some() => Preempted::Restored,
            _ => return None,
        };
        let swapped = attempt.swapped;
        let memory = self.jobs.at(attempt.id.task.job).plan.memory;
        let mut swapped_out = 0;
        let mut swapped_in = 0;
        let mut checkpoint_bytes = 0;
        match what {
            Preempted::Suspended => swapped_out = swapped,
            Preempted::Resumed => swapped_in = swapped,
            Preempted::Checkpointed => checkpoint_bytes = self.checkpoint_bytes(place),
            _ => {}
        }
        Some(Box::new(PreemptionAccount {
            what,
            micros: self.clock.now().since(attempt.phase_began).0,
            active_millis: attempt.executed() / 1_000,
            // Computed from the suspend and resume events.
            suspended_millis: 0,
            resident_bytes: memory.saturating_sub(swapped),
            swapped_bytes: swapped,
            swapped_out_bytes: swapped_out,
            swapped_in_bytes: swapped_in,
            checkpoint_bytes,
            notes: Vec::new(),
        }))
    }
}

/// Builds the history of a job, without program and output.
fn ended_job(
    now: Time,
    job: &RunningJob,
    outcome: &JobOutcome,
    recorded: RecordedJob,
    cluster: RecordedCluster,
) -> EndedJob {
    let plan = &job.plan;
    let result = &job.result;
    let summary = JobSummary {
        job: result.job,
        name: plan.name.to_string(),
        user: plan.user.to_string(),
        queue: plan.queue.to_string(),
        priority: plan.priority,
        phase: JobPhase::ended(outcome),
        reason: outcome.reason().map(str::to_owned),
        submitted_millis: result.submitted.0 / 1_000,
        ended_millis: Some(now.0 / 1_000),
        progress: JobProgress {
            map: phase_progress(job, TaskKind::Map),
            reduce: phase_progress(job, TaskKind::Reduce),
            left: None,
        },
        output: PathBuf::new(),
        unrecorded: None,
    };
    let mut counters = recorded.counters;
    counters.merge(&recorded.book.counters());
    let PreemptionBook {
        preemptions,
        resumes,
        restores,
        ..
    } = recorded.book;
    let end = JobEnd::without_report(result.job, outcome.clone()).unwrap_or_else(|| {
        JobEnd::Succeeded(JobReport {
            job: result.job,
            name: summary.name.clone(),
            counters: counters.clone(),
            wall: Duration::from_micros(now.since(result.submitted).0),
            parts: Vec::new(),
            output: PathBuf::new(),
        })
    });
    let mut attempts = Vec::with_capacity(recorded.attempts.len());
    for attempt in recorded.attempts {
        let mut attempt = Arc::unwrap_or_clone(attempt);
        attempt.figures = figures(job, &attempt);
        attempts.push(attempt);
    }
    EndedJob {
        token: u128::from(result.job.0),
        end,
        detail: JobDetail {
            counters,
            attempts,
            events: recorded.events,
            preemptions,
            resumes,
            restores,
            settings: Some(settings(plan)),
            ..JobDetail::new(summary)
        },
        cluster: Some(cluster),
        logs: Vec::new(),
    }
}

/// Returns the number of tasks of a kind, and how many are done.
fn phase_progress(job: &RunningJob, kind: TaskKind) -> PhaseProgress {
    PhaseProgress {
        tasks: job.plan.tasks(kind) as u32,
        done: job.tasks_done(kind),
        ..PhaseProgress::default()
    }
}

/// Returns the settings of a simulated job.
fn settings(plan: &SimulatedJob) -> JobSettings {
    JobSettings {
        definition: "simulated".to_owned(),
        reduces: plan.reduces.len() as u32,
        attempts_max: plan.attempts_max,
        task_memory: plan.memory,
        slowstart_permille: plan.slowstart_permille,
        deadline: plan.deadline.map(|span| Duration::from_micros(span.0)),
        checkpoint_maps: !plan.unsaved.contains(&TaskKind::Map),
        checkpoint_reduces: !plan.unsaved.contains(&TaskKind::Reduce),
        ..JobSettings::from_plan(&JobPlan::new("", ""))
    }
}

/// Returns the bytes moved by an attempt, if it succeeded.
fn figures(job: &RunningJob, attempt: &AttemptSummary) -> Option<AttemptFigures> {
    if !attempt.has_succeeded() {
        return None;
    }
    let mut figures = AttemptFigures::default();
    let index = attempt.attempt.task.index as usize;
    match attempt.attempt.task.kind {
        TaskKind::Map => {
            let map = &job.plan.maps[index];
            figures.input_bytes = map.bytes;
            figures.output_bytes = map.output_bytes;
        }
        TaskKind::Reduce => figures.input_bytes = job.plan.reduces[index].bytes,
    }
    Some(figures)
}
