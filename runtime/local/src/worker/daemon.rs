//! The worker's loop: carries out orders and sends reports. A cluster and an embedded run use the same loop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{AttemptId, DiskNeed, FaultPlace, JobId, Order, Report, Start};
use napreduce_protocol::{
    AttemptProgress, JobDescription, LaunchWork, MapInput, TaskError, ToWorker, WorkerNews,
    WorkerReport,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use super::admission::Admission;
use super::attempt::{AttemptEnd, AttemptEvent, AttemptOrder, Leftovers, Supervision};
use super::consolidation::{Consolidated, Consolidating};
use super::environment::{DiskChange, WatchDisk};
use super::hang::Limits;
use super::job::{KnownJob, Launching, Readiness};
use super::launch::{AttemptLaunch, prepare_launch};
use super::moves::Moves;
use super::preparations::{EndedPreparation, Preparations};
use super::segment_memory::MemorySegment;
use super::settings::WorkerSettings;
use super::ticks::ticks;
use crate::clock::now;
use crate::spans;
use crate::world::{Situation, reached};

/// Interval of disk checks.
const DISK_INTERVAL: Duration = Duration::from_secs(1);

/// An attempt whose process may still exist.
struct RunningAttempt {
    orders: UnboundedSender<AttemptOrder>,
    progress: ByteProgress,
    /// The progress reported last.
    reported: ByteProgress,
}

/// How much of its input an attempt has consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ByteProgress {
    done: u64,
    total: u64,
}

pub struct Worker {
    admission: Arc<Admission>,
    /// Only in a cluster, where another worker may have the disk space that this one lacks.
    disk: Option<WatchDisk>,
    settings: WorkerSettings,
    jobs: BTreeMap<JobId, KnownJob>,
    attempts: BTreeMap<AttemptId, RunningAttempt>,
    preparations: Preparations,
    /// Writes of consolidated small map outputs.
    consolidations: JoinSet<Consolidated>,
    moves: Moves,
    /// Removals of the files of forgotten jobs.
    removals: JoinSet<()>,
    news: UnboundedSender<WorkerNews>,
    events: UnboundedSender<(AttemptId, AttemptEvent)>,
}

impl Worker {
    fn new(
        settings: WorkerSettings,
        news: UnboundedSender<WorkerNews>,
        events: UnboundedSender<(AttemptId, AttemptEvent)>,
    ) -> Worker {
        Worker {
            admission: Arc::new(Admission::new(
                settings.suspend,
                Arc::clone(&settings.processes),
            )),
            disk: settings
                .environment()
                .map(|environment| environment.watch_disk()),
            moves: Moves::new(settings.world.tasks.clone()),
            settings,
            jobs: BTreeMap::new(),
            attempts: BTreeMap::new(),
            preparations: Preparations::default(),
            consolidations: JoinSet::default(),
            removals: JoinSet::default(),
            news,
            events,
        }
    }

    /// Runs until `orders` is closed, then until every attempt is killed and reaped and all file work is
    /// finished.
    pub async fn run(
        settings: WorkerSettings,
        mut orders: UnboundedReceiver<ToWorker>,
        news: UnboundedSender<WorkerNews>,
    ) {
        let (events, mut arriving) = unbounded_channel();
        let mut worker = Worker::new(settings, news, events);
        let mut heartbeat = ticks(worker.settings.heartbeat);
        let mut disk_checks = ticks(DISK_INTERVAL);
        let mut accepts_orders = true;
        while accepts_orders || !worker.attempts.is_empty() {
            worker.settings.note_running(worker.attempts.len());
            tokio::select! {
                order = orders.recv(), if accepts_orders => match order {
                    Some(order) => worker.follow(order),
                    None => {
                        accepts_orders = false;
                        worker.kill_all();
                    }
                },
                // `worker` holds a sender, so the channel stays open.
                Some((attempt, event)) = arriving.recv() => worker.on_attempt_event(attempt, event),
                Some(ended) = worker.preparations.next() => worker.on_prepared(ended),
                Some(_) = worker.removals.join_next() => {}
                Some(Ok(done)) = worker.consolidations.join_next() => worker.on_consolidated(done),
                Some(attempt) = worker.moves.next() => worker.report(attempt, Report::OutputMoved),
                _ = heartbeat.tick(), if !worker.attempts.is_empty() => worker.beat(),
                _ = disk_checks.tick(), if worker.disk.is_some() => worker.check_disk(),
            }
        }
        worker.preparations.end().await;
        worker.moves.end().await;
        while let Some(done) = worker.consolidations.join_next().await {
            // A panic has been printed.
            if let Ok(done) = done {
                worker.on_consolidated(done);
            }
        }
        while worker.removals.join_next().await.is_some() {}
    }

    /// Sends news. If the coordinator has ended, it has also closed the orders, which ends this worker.
    fn send(&self, news: WorkerNews) {
        let _ = self.news.send(news);
    }

    fn report(&self, attempt: AttemptId, report: Report) {
        self.send_report(now(), WorkerReport::Happened { attempt, report });
    }

    fn fail(&self, attempt: AttemptId, error: TaskError) {
        self.send_report(now(), WorkerReport::Failed { attempt, error });
    }

    /// Sends a report of what happened at this time.
    fn send_report(&self, at: Instant, report: WorkerReport) {
        self.send(WorkerNews::Report {
            at: at.into_std(),
            report,
        });
    }

    fn follow(&mut self, message: ToWorker) {
        match message {
            ToWorker::Define { description, .. } => self.define(*description),
            ToWorker::Forget { job, .. } => self.forget(job),
            ToWorker::Outputs {
                job,
                entries,
                peers,
                ..
            } => {
                if let Some(known) = self.jobs.get_mut(&job) {
                    known.on_outputs(entries, peers);
                }
            }
            ToWorker::Ordered { order, work, .. } => self.follow_order(order, work),
            ToWorker::Named { attempts, maps, .. } => {
                for attempt in attempts {
                    self.add_inputs(attempt, &maps);
                }
            }
            // The owner of the other end handles `Leave` and closes this channel; the rest belongs to a
            // connection.
            ToWorker::Leave { .. }
            | ToWorker::Welcome { .. }
            | ToWorker::Refused { .. }
            | ToWorker::Received { .. } => {}
        }
    }

    fn follow_order(&mut self, order: Order, work: Option<LaunchWork>) {
        match order {
            Order::Launch { attempt, from, .. } => match work {
                Some(work) => self.launch(attempt, from, work),
                None => self.fail(
                    attempt,
                    TaskError::fatal("protocol error: launch order without work"),
                ),
            },
            Order::Kill { attempt } => self.kill(attempt),
            Order::Suspend { attempt } => self.suspend(attempt),
            Order::MoveOutput { attempt } => {
                if let Some(job) = self.jobs.get(&attempt.task.job)
                    && let Some(output) = job.moving(attempt)
                {
                    self.moves.add(output);
                }
            }
            // The attempt's supervisor interprets the order.
            order => self.send_order(order.attempt(), order, Vec::new()),
        }
    }

    fn define(&mut self, description: JobDescription) {
        let job = description.job;
        let known = KnownJob::new(description, self.settings.membership.clone());
        self.jobs.insert(job, known);
    }

    fn forget(&mut self, job: JobId) {
        if let Some(known) = self.jobs.remove(&job)
            && known.consolidation.is_under_way()
        {
            // It must finish before the directory is removed.
            return;
        }
        self.remove_files(job);
    }

    fn remove_files(&mut self, job: JobId) {
        if let Some(environment) = self.settings.environment() {
            let environment = Arc::clone(environment);
            let tasks = &self.settings.world.tasks;
            tasks.blocking_in(&mut self.removals, move || environment.forget(job));
        }
    }

    fn on_consolidated(&mut self, done: Consolidated) {
        let job = done.job;
        match self.jobs.get_mut(&job) {
            Some(known) => {
                let next = known.consolidation.on_consolidated(done);
                self.consolidate(next);
            }
            None => self.remove_files(job),
        }
    }

    fn consolidate(&mut self, next: Option<Consolidating>) {
        if let Some(next) = next {
            let tasks = &self.settings.world.tasks;
            tasks.blocking_in(&mut self.consolidations, || next.run());
        }
    }

    /// Forwards an order to an attempt. If the attempt has ended, its report crossed the order and is the
    /// answer.
    fn send_order(&self, attempt: AttemptId, order: Order, inputs: Vec<MapInput>) {
        if let Some(running) = self.attempts.get(&attempt) {
            let _ = running.orders.send(AttemptOrder { order, inputs });
        }
    }

    /// Kills an attempt. An attempt that waits for its job to be prepared has no process.
    fn kill(&mut self, attempt: AttemptId) {
        if let Some(waiting) = self.waiting(attempt.task.job)
            && let Some(at) = waiting.iter().position(|other| other.attempt == attempt)
        {
            waiting.remove(at);
            reached(Situation::KilledWithoutProcess);
            return self.report(attempt, Report::Killed);
        }
        self.send_order(attempt, Order::Kill { attempt }, Vec::new());
    }

    fn kill_all(&mut self) {
        for attempt in self.attempts.keys() {
            self.send_order(*attempt, Order::Kill { attempt: *attempt }, Vec::new());
        }
        self.preparations.cancel();
        self.jobs.clear();
    }

    fn add_inputs(&mut self, attempt: AttemptId, maps: &[u32]) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else {
            return;
        };
        let inputs = job.outputs_of(maps);
        if let Readiness::Preparing { waiting } = &mut job.readiness
            && let Some(launching) = waiting.iter_mut().find(|other| other.attempt == attempt)
        {
            return launching.inputs.extend(inputs);
        }
        let named = job.places(inputs);
        self.send_order(
            attempt,
            Order::MoreInputs {
                attempt,
                inputs: Vec::new(),
            },
            named,
        );
    }

    fn waiting(&mut self, job: JobId) -> Option<&mut Vec<Launching>> {
        match &mut self.jobs.get_mut(&job)?.readiness {
            Readiness::Preparing { waiting } => Some(waiting),
            _ => None,
        }
    }

    /// Suspends an attempt. An attempt that waits for its job to be prepared has no process.
    fn suspend(&mut self, attempt: AttemptId) {
        if let Some(waiting) = self.waiting(attempt.task.job)
            && waiting.iter().any(|other| other.attempt == attempt)
        {
            let reason = "its process is not started yet".to_owned();
            return self.report(attempt, Report::SuspendRefused { reason });
        }
        self.send_order(attempt, Order::Suspend { attempt }, Vec::new());
    }

    fn launch(&mut self, attempt: AttemptId, from: Start, work: LaunchWork) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else {
            let error = TaskError::fatal(format!(
                "the worker has no description of {}",
                attempt.task.job
            ));
            return self.fail(attempt, error);
        };
        let launching = Launching {
            attempt,
            from,
            inputs: job.inputs(attempt),
            work,
        };
        if let Readiness::Preparing { waiting } = &mut job.readiness {
            return waiting.push(launching);
        }
        if let Some(environment) = self.settings.environment()
            && !job.readiness.is_ready(&**environment)
        {
            job.readiness = Readiness::Preparing {
                waiting: vec![launching],
            };
            let environment = Arc::clone(environment);
            let description = Arc::clone(&job.description);
            let id = description.job;
            let tasks = &self.settings.world.tasks;
            self.preparations
                .begin(tasks, id, environment.prepare(description));
            return;
        }
        self.start(launching);
    }

    fn on_prepared(&mut self, ended: EndedPreparation) {
        let Some(job) = self.jobs.get_mut(&ended.job) else {
            return;
        };
        let (readiness, error) = match ended.result {
            Ok(prepared) => (Readiness::Ready(Some(prepared)), None),
            Err(error) => (Readiness::Unprepared, Some(error)),
        };
        let Readiness::Preparing { waiting } = std::mem::replace(&mut job.readiness, readiness)
        else {
            return;
        };
        for launching in waiting {
            match &error {
                None => self.start(launching),
                Some(error) => self.fail(launching.attempt, error.clone()),
            }
        }
    }

    /// Starts an attempt of a prepared job.
    fn start(&mut self, launching: Launching) {
        let attempt = launching.attempt;
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else {
            return;
        };
        job.pass_on_scratch(attempt);
        let prepared = prepare_launch(job, attempt, &launching.work, &self.settings);
        let AttemptLaunch { launch, logs } = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return self.fail(attempt, error),
        };
        let limits = Limits {
            silence: self.settings.task_silence_max,
            standstill: match job.description.task_timeout_millis {
                0 => None,
                millis => Some(Duration::from_millis(millis)),
            },
        };
        let (orders, orders_of_attempt) = unbounded_channel();
        let memory = job.memory_for(&launching.work, &self.settings.segment_memory);
        let environment = self.settings.environment();
        let bounds = environment
            .map(|environment| environment.isolation())
            .and_then(|isolation| isolation.bounds(job.description.task_memory));
        let supervision = Supervision {
            tasks: self.settings.world.tasks.clone(),
            bounds,
            description: job.describe(launching, memory.as_ref().map(MemorySegment::place)),
            memory,
            launch,
            limits,
            logs,
            host: environment.map(|environment| environment.host().to_owned()),
            processes: Arc::clone(&self.settings.processes),
            marks: Vec::new(),
            admission: Arc::clone(&self.admission),
            orders: orders_of_attempt,
            news: self.news.clone(),
            events: self.events.clone(),
        };
        let next = job.on_launched(attempt);
        self.attempts.insert(
            attempt,
            RunningAttempt {
                orders,
                progress: ByteProgress::default(),
                reported: ByteProgress::default(),
            },
        );
        self.consolidate(next);
        let supervised = supervision.run().instrument(spans::of_attempt(attempt));
        self.settings.world.tasks.spawn(supervised);
    }

    fn on_attempt_event(&mut self, attempt: AttemptId, event: AttemptEvent) {
        match event {
            AttemptEvent::Progressed {
                bytes_done,
                bytes_total,
            } => {
                if let Some(running) = self.attempts.get_mut(&attempt) {
                    running.progress = ByteProgress {
                        done: bytes_done,
                        total: bytes_total,
                    };
                }
            }
            AttemptEvent::Ended { end, at, left } => self.on_ended(attempt, end, at, left),
        }
    }

    fn on_ended(&mut self, attempt: AttemptId, end: AttemptEnd, at: Instant, left: Leftovers) {
        let progress = match self.attempts.remove(&attempt) {
            Some(running) => running.progress,
            None => ByteProgress::default(),
        };
        let mut job = self.jobs.get_mut(&attempt.task.job);
        if let Some(job) = &mut job {
            job.idle_scratch.extend(left.idle_scratch);
        }
        match end {
            AttemptEnd::Done {
                counters,
                part,
                output_digest,
            } => {
                let next = job.and_then(|job| job.on_done(attempt, left.input_bytes, left.memory));
                self.consolidate(next);
                let report = WorkerReport::Finished {
                    attempt,
                    counters,
                    part,
                    output_digest,
                };
                self.send_report(at, report);
            }
            AttemptEnd::Failed(error) => {
                if error.place == FaultPlace::LocalDisk {
                    // Report the shortage before the failure, so that no new attempt arrives in between.
                    self.check_disk();
                }
                if let Some(stderr) = left.stderr {
                    self.send_report(at, WorkerReport::Printed { attempt, stderr });
                }
                let disk_need = error.disk_need.map(|_| self.disk_need(progress));
                let error = TaskError { disk_need, ..error };
                self.send_report(at, WorkerReport::Failed { attempt, error });
            }
            AttemptEnd::Killed => {
                self.send_report(
                    at,
                    WorkerReport::Happened {
                        attempt,
                        report: Report::Killed,
                    },
                );
            }
            AttemptEnd::Checkpointed => {
                self.send_report(
                    at,
                    WorkerReport::Happened {
                        attempt,
                        report: Report::Checkpointed,
                    },
                );
            }
        }
    }

    /// Estimates the disk space that an attempt needs which found the disk full after this progress. Its files
    /// are removed by now.
    fn disk_need(&self, progress: ByteProgress) -> DiskNeed {
        let Some(environment) = self.settings.environment() else {
            return DiskNeed::default();
        };
        let available_bytes = environment.free_disk_bytes();
        let mut needed_bytes = 0;
        if progress.done > 0 && progress.done < progress.total {
            let estimate = u128::from(available_bytes) * u128::from(progress.total)
                / u128::from(progress.done);
            needed_bytes = u64::try_from(estimate).unwrap_or(u64::MAX);
        }
        DiskNeed {
            needed_bytes,
            available_bytes,
        }
    }

    /// Reports a change of the disk shortage.
    fn check_disk(&mut self) {
        let Some(watch) = &mut self.disk else {
            return;
        };
        if let Some(DiskChange { lacks }) = watch() {
            self.send_report(now(), WorkerReport::Short { lacks });
        }
    }

    /// Reports the progress of attempts that advanced since the last report, and the memory state.
    fn beat(&mut self) {
        self.admission.sample();
        let mut progress = Vec::new();
        for (attempt, running) in &mut self.attempts {
            if running.progress != running.reported {
                running.reported = running.progress;
                progress.push(AttemptProgress {
                    attempt: *attempt,
                    bytes_done: running.progress.done,
                    bytes_total: running.progress.total,
                });
            }
        }
        self.send(WorkerNews::Progress(progress));
        let environment = self
            .settings
            .environment()
            .map(|environment| &**environment);
        if let Some(memory) = self.admission.news(environment) {
            self.send(WorkerNews::Memory(memory));
        }
    }
}
