//! The coordinator's loop: requests and reports in, orders out.
//!
//! Owns the translation between messages and the engine's vocabulary. Does not own what lies behind a worker's channel.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::time::{Duration, Instant};

use napreduce_core::{
    AttemptId, Effect, Engine, EngineSettings, Event, FailureClass, Fifo, JobId, JobOutcome, Order, Report,
    Slots, Start, Time, WorkerId,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::sleep_until;

use super::job::{Listener, LiveJob};
use crate::output::OutputClaim;
use crate::plan::JobPlan;
use crate::protocol::{AttemptProgress, ReduceInputs, WorkerNews, WorkerOrder, WorkerReport};

/// What submitters ask for.
#[derive(Debug)]
pub(crate) enum Request {
    Submit { job: JobId, plan: Box<JobPlan>, listener: Listener },
    Kill { job: JobId, reason: String },
}

pub(crate) struct Coordinator {
    engine: Engine,
    origin: Instant,
    workers: BTreeMap<WorkerId, UnboundedSender<WorkerOrder>>,
    jobs: BTreeMap<JobId, LiveJob>,
    wake_at: Option<Time>,
}

impl Coordinator {
    /// A coordinator of one worker inside this process.
    pub(crate) fn embedded(
        worker: WorkerId,
        slots: Slots,
        orders: UnboundedSender<WorkerOrder>,
    ) -> Coordinator {
        let workers = BTreeMap::from([(worker, orders)]);
        let mut coordinator = Coordinator {
            engine: Engine::new(Box::new(Fifo::default()), EngineSettings::default()),
            origin: Instant::now(),
            workers,
            jobs: BTreeMap::new(),
            wake_at: None,
        };
        coordinator.handle(Event::WorkerJoined { worker, slots });
        coordinator
    }

    /// Runs until `requests` is closed and every job has ended.
    pub(crate) async fn run(
        mut self,
        mut requests: UnboundedReceiver<Request>,
        mut arriving: UnboundedReceiver<(WorkerId, WorkerNews)>,
    ) {
        let mut open = true;
        while open || !self.jobs.is_empty() {
            let wake_at = self.wake_at.map(|at| self.origin + Duration::from_micros(at.0));
            tokio::select! {
                request = requests.recv(), if open => match request {
                    Some(request) => self.on_request(request),
                    None => open = false,
                },
                Some((worker, news)) = arriving.recv() => self.on_news(worker, news),
                () = sleep_until_some(wake_at) => {
                    self.wake_at = None;
                    self.handle(Event::Woken);
                }
            }
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn on_request(&mut self, request: Request) {
        match request {
            Request::Submit { job, plan, listener } => self.submit(job, *plan, listener),
            Request::Kill { job, reason } => self.handle(Event::JobKillRequested { job, reason }),
        }
    }

    fn submit(&mut self, job: JobId, plan: JobPlan, listener: Listener) {
        let claim = OutputClaim::take(&plan.output, job, &plan.part_extension, plan.overwrite);
        let live = match claim {
            Ok(claim) => LiveJob::new(job, plan, claim, listener),
            Err(error) => {
                // A submitter that is gone does not want to know.
                let _ = listener.end.send(Err(error));
                return;
            }
        };
        for worker in self.workers.keys() {
            self.send(*worker, WorkerOrder::Define(Box::new(live.description())));
        }
        let spec = live.spec();
        self.jobs.insert(job, live);
        self.handle(Event::JobSubmitted { job, spec });
    }

    fn on_news(&mut self, worker: WorkerId, news: WorkerNews) {
        match news {
            WorkerNews::Report(WorkerReport::Happened { attempt, report }) => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_report(attempt, &report);
                }
                self.handle(Event::Reported { worker, attempt, report });
            }
            WorkerNews::Report(WorkerReport::Finished { attempt, counters, part }) => {
                if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
                    job.on_finished(attempt, counters, part);
                }
                self.handle(Event::Reported { worker, attempt, report: Report::Done });
            }
            // The worker of an embedded job ends with it.
            WorkerNews::Report(WorkerReport::Draining { .. }) => {}
            WorkerNews::Progress(progress) => self.on_progress(worker, &progress),
        }
    }

    fn on_progress(&mut self, worker: WorkerId, progress: &[AttemptProgress]) {
        for &AttemptProgress { attempt, bytes_done, bytes_total } in progress {
            let report = Report::Progressed { bytes_done, bytes_total };
            self.handle(Event::Reported { worker, attempt, report });
        }
        for job in self.jobs.values() {
            job.publish(&self.engine.view());
        }
    }

    /// Hands an event to the engine and carries out what comes of it; what fails at once is one more event.
    fn handle(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = self.now();
            for effect in self.engine.handle(now, event) {
                events.extend(self.carry_out(effect));
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            // An embedded coordinator has no journal: its jobs end with it.
            Effect::Record(_) => {}
            // Nobody can ask an embedded worker to leave.
            Effect::WorkerMayLeave { .. } => {}
            Effect::Warn { message } => eprintln!("warning: {message}"),
            Effect::WakeAt(at) => self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at))),
            Effect::JobEnded { job, outcome } => self.end(job, outcome),
            Effect::Send { worker, order } => match self.translate(&order) {
                Ok(message) => self.send(worker, message),
                Err(refusal) => return Some(refusal.into_event(worker)),
            },
        }
        None
    }

    fn send(&self, worker: WorkerId, message: WorkerOrder) {
        if let Some(channel) = self.workers.get(&worker) {
            // An embedded worker ends after its coordinator only.
            let _ = channel.send(message);
        }
    }

    /// The message that carries an order.
    fn translate(&mut self, order: &Order) -> Result<WorkerOrder, Refusal> {
        match order {
            Order::Launch { attempt, from: Start::Fresh, inputs } => {
                let job = self.jobs.get_mut(&attempt.task.job);
                let inputs = ReduceInputs { outputs: inputs.clone(), peers: Vec::new() };
                let work = job.and_then(|job| job.launch(*attempt, inputs));
                work.map(|work| WorkerOrder::Launch { attempt: *attempt, work }).ok_or(Refusal {
                    attempt: *attempt,
                    order: "launch an attempt of a task that is unknown",
                })
            }
            Order::Kill { attempt } => Ok(WorkerOrder::Kill { attempt: *attempt }),
            Order::Commit { attempt } => Ok(WorkerOrder::Commit { attempt: *attempt }),
            Order::Launch { attempt, from: Start::Checkpoint(_), .. } => {
                Err(Refusal { attempt: *attempt, order: "restore a checkpoint" })
            }
            Order::MoreInputs { attempt, .. } => {
                Err(Refusal { attempt: *attempt, order: "feed a reduce that began before its inputs" })
            }
            Order::Suspend { attempt } => Err(Refusal { attempt: *attempt, order: "suspend" }),
            Order::Resume { attempt } => Err(Refusal { attempt: *attempt, order: "resume" }),
            Order::Checkpoint { attempt } => Err(Refusal { attempt: *attempt, order: "checkpoint" }),
        }
    }

    /// Commits or discards beside the loop, since it may take a while: by then no process of the job is left.
    fn end(&mut self, id: JobId, outcome: JobOutcome) {
        for worker in self.workers.keys() {
            self.send(*worker, WorkerOrder::Forget { job: id });
        }
        let Some(job) = self.jobs.remove(&id) else { return };
        tokio::task::spawn_blocking(move || match outcome {
            JobOutcome::Succeeded => job.succeed(),
            JobOutcome::Failed { reason } | JobOutcome::Killed { reason } => job.fail(reason),
        });
    }
}

/// An order of the engine that this runtime cannot carry out. FIFO gives none of them, so a job never meets one.
struct Refusal {
    attempt: AttemptId,
    order: &'static str,
}

impl Refusal {
    fn into_event(self, worker: WorkerId) -> Event {
        let reason = format!("the embedded runtime cannot {}", self.order);
        let report = Report::Failed { class: FailureClass::Fatal, reason, lost_outputs: Vec::new() };
        Event::Reported { worker, attempt: self.attempt, report }
    }
}

/// Waits until then; for ever when there is no then.
async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => pending().await,
    }
}
