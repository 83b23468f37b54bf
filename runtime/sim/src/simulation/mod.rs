//! The simulation loop: virtual time, and virtual workers around the engine. All events of one instant that
//! do not cause each other are passed to the engine in one batch, in the order of the specification. The
//! effects are applied, and what they cause at the same instant forms the next round.
//!
//! ```text
//!   workload -> submissions --+
//!   queue    -> phases end ---+--> batch --> Engine --> effects --> orders --> virtual workers --> queue
//!            -> heartbeats ---+
//! ```

mod attempts;
mod bandwidth;
mod chains;
mod checkpoints;
mod failures;
mod guard;
mod job_tasks;
mod jobs;
mod log;
mod masters;
mod orders;
mod pace;
mod paging;
mod progress;
mod queue;
mod recorder;
mod reports;
mod work;
mod workers;

use std::collections::BTreeMap;
use std::io::Write;
use std::iter::Peekable;
use std::sync::Arc;

use napreduce_engine::{
    AttemptId, ClusterView, Engine, EngineSettings, JobId, Scheduler, TaskKind, Time, TimeLeft,
};

use self::attempts::Attempts;
use self::chains::ChainLengths;
use self::guard::{Activity, Guard};
use self::job_tasks::JobTasks;
use self::jobs::Jobs;
use self::log::Log;
use self::masters::Masters;
use self::progress::Marks;
use self::queue::{Due, Queue};
use self::recorder::Recorder;
pub use self::recorder::Recording;
use self::reports::Batch;
use self::workers::VirtualWorker;
use crate::job::SimulatedJob;
use crate::run::{Run, SimulationError};
use crate::settings::SimulationSettings;
use crate::workload::Workload;

/// Rounds at one instant after which the policy counts as livelocked: it reassigns the same slots again and
/// again.
const ROUNDS_MAX: u32 = 50_000;

/// A run of a workload under a policy, in virtual time.
///
/// ```
/// use napreduce_engine::{Fifo, Slots, Span, Time};
/// use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};
///
/// let first = SimulatedJob::new("first", Time(0)).with_maps(3, Span::from_secs(10));
/// let second = SimulatedJob::new("second", Time(5)).with_maps(1, Span::from_secs(1));
/// let settings = SimulationSettings::new(1, Slots { map: 2, reduce: 1 });
/// let run = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![first, second])).run()?;
/// let ends: Vec<Time> = run.jobs.iter().map(|job| job.ended).collect();
/// assert_eq!(ends, [Time(11_000_000), Time(20_000_000)]);
/// # Ok::<(), napreduce_sim::SimulationError>(())
/// ```
pub struct Simulation {
    engine: Engine,
    arrivals: Peekable<Box<dyn Iterator<Item = SimulatedJob>>>,
    triggered: BTreeMap<Arc<str>, SimulatedJob>,
    now: Time,
    last_submit: Time,
    queue: Queue,
    /// Events due at this instant; empty between instants.
    due: Vec<Due>,
    /// Workers with a heartbeat at this instant.
    beats: Vec<u32>,
    batch: Batch,
    attempts: Attempts,
    jobs: Jobs,
    masters: Masters,
    job_tasks: JobTasks,
    workers: Vec<VirtualWorker>,
    /// The current or last worker on each machine.
    on_machine: Vec<u32>,
    marks: Marks,
    /// Attempts that reported completion in this batch, and their work.
    finishing: BTreeMap<AttemptId, u64>,
    /// The next wake-up of the engine.
    armed: Option<Time>,
    chain_lengths: ChainLengths,
    guard: Guard,
    log: Option<Log>,
    recorder: Option<Recorder>,
    run: Run,
    settings: SimulationSettings,
}

impl Simulation {
    /// Creates a simulation at time 0.
    pub fn new(
        scheduler: Box<dyn Scheduler>,
        settings: SimulationSettings,
        workload: Workload,
    ) -> Simulation {
        Simulation {
            engine: Engine::new(
                scheduler,
                EngineSettings {
                    strict: true,
                    name_outputs: false,
                    ..settings.engine
                },
            ),
            arrivals: workload.timed.peekable(),
            triggered: workload.triggered,
            now: Time::default(),
            last_submit: Time::default(),
            queue: Queue::default(),
            due: Vec::new(),
            beats: Vec::new(),
            batch: Batch::default(),
            attempts: Attempts::default(),
            jobs: Jobs::default(),
            masters: Masters::default(),
            job_tasks: JobTasks::default(),
            workers: Vec::new(),
            on_machine: vec![0; settings.machines as usize],
            marks: Marks::new(&settings.marks),
            finishing: BTreeMap::new(),
            armed: None,
            chain_lengths: ChainLengths::default(),
            guard: Guard::new(&settings),
            log: None,
            recorder: None,
            run: Run::default(),
            settings,
        }
    }
}

impl Simulation {
    /// Adds a log of every event and its effects.
    #[must_use]
    pub fn with_log(mut self, to: Box<dyn Write>) -> Simulation {
        self.log = Some(Log::new(to));
        self
    }

    /// Adds a recording of the history of every job, as a cluster writes it.
    #[must_use]
    pub fn with_recording(mut self, recording: Recording) -> Simulation {
        self.recorder = Some(Recorder::new(recording));
        self
    }

    /// Runs until every job has ended.
    ///
    /// # Errors
    /// Fails if the workload cannot end under this policy or is out of order, or if the log cannot be
    /// written.
    pub fn run(mut self) -> Result<Run, SimulationError> {
        while self.step()? {}
        self.finish()
    }

    /// Returns the time of the last instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the view of the policy.
    pub fn view(&self) -> ClusterView<'_> {
        self.engine.view()
    }

    /// Estimates when a job will be done, as a cluster shows it at this time.
    pub fn time_left(&self, job: JobId, at: Time) -> Option<TimeLeft> {
        self.engine.time_left(job, at)
    }

    /// Returns the time of the next instant, if there is any.
    pub fn next_instant(&mut self) -> Option<Time> {
        let arrival = self.arrivals.peek().map(|job| job.submit);
        [arrival, self.queue.next()].into_iter().flatten().min()
    }

    /// Returns the results so far.
    pub fn so_far(&self) -> &Run {
        &self.run
    }

    /// Advances to the next instant with events and processes it. Returns false when every job has ended.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn step(&mut self) -> Result<bool, SimulationError> {
        if self.workers.is_empty() {
            for machine in 0..self.settings.machines {
                self.join(machine);
            }
            self.flush_batch()?;
        }
        if self.jobs.running == 0
            && self.masters.is_empty()
            && self.job_tasks.is_empty()
            && self.arrivals.peek().is_none()
            && !self.may_trigger()
        {
            return Ok(false);
        }
        let Some(next) = self.next_instant() else {
            return Err(self.stalled());
        };
        if self.settings.until.is_some_and(|until| next > until) {
            self.now = self.settings.until.unwrap_or(self.now);
            self.run.slot_time.advance(self.now);
            return Ok(false);
        }
        self.guard.check_time(next)?;
        self.now = next.max(self.now);
        self.run.slot_time.advance(self.now);
        let before = self.run.events;
        let activity = self.run_instant()?;
        self.guard.record_instant(activity);
        self.run.busiest_instant = self.run.busiest_instant.max(self.run.events - before);
        self.check_progress()?;
        Ok(true)
    }

    /// Whether the policy may still submit a job by a trigger: it has a wakeup scheduled, and is not idle for
    /// too long.
    fn may_trigger(&self) -> bool {
        !self.triggered.is_empty() && self.armed.is_some() && !self.is_idle()
    }

    /// Processes all events of this instant.
    fn run_instant(&mut self) -> Result<Activity, SimulationError> {
        let mut activity = Activity::Idle;
        for _ in 0..ROUNDS_MAX {
            let mut due = std::mem::take(&mut self.due);
            while let Some(event) = self.queue.pop_due(self.now) {
                due.push(event);
            }
            if due.len() > 1 {
                due.sort_by_key(|event| rank(*event));
            }
            for event in due.drain(..) {
                activity = activity.max(activity_of(event));
                self.handle_due(event)?;
            }
            self.due = due;
            while self
                .arrivals
                .peek()
                .is_some_and(|job| job.submit <= self.now)
            {
                activity = Activity::Other;
                let Some(job) = self.arrivals.next() else {
                    break;
                };
                if job.submit < self.last_submit {
                    return Err(SimulationError::OutOfOrder {
                        at: job.submit,
                        after: self.last_submit,
                    });
                }
                self.last_submit = job.submit;
                self.arrive_job(job)?;
            }
            let mut beats = std::mem::take(&mut self.beats);
            beats.sort_unstable();
            for worker in beats {
                self.heartbeat(worker);
            }
            if self.batch.is_empty() {
                return Ok(activity);
            }
            self.flush_batch()?;
        }
        Err(SimulationError::Thrashing {
            at: self.now,
            rounds: ROUNDS_MAX,
        })
    }

    fn handle_due(&mut self, due: Due) -> Result<(), SimulationError> {
        match due {
            Due::PhaseEnds { attempt, stamp } => self.phase_ends(attempt, stamp),
            Due::Mark { attempt, stamp } if self.attempts.at(attempt).stamp == stamp => {
                self.report_progress(attempt);
            }
            Due::Mark { .. } => {}
            Due::Arrives {
                attempt,
                generation,
                order,
            } => self.arrive(attempt, generation, order),
            Due::Lost { worker } => {
                // Attempts that end at this instant end before the loss.
                self.flush_batch()?;
                self.lose(worker);
            }
            Due::Returns { machine } => self.join(machine),
            Due::Wake if self.armed == Some(self.now) => {
                self.armed = None;
                self.batch.push(
                    reports::Group::Timer,
                    0,
                    None,
                    napreduce_engine::Event::Woken,
                );
            }
            Due::Wake => {}
            Due::JobTaskEnds { number } => self.job_task_ends(number)?,
            Due::Report {
                attempt,
                generation,
            } => self.periodic_report(attempt, generation),
            Due::Heartbeat { worker } => self.beats.push(worker),
        }
        Ok(())
    }

    /// Ends the run: checks the accounting and returns the result.
    fn finish(mut self) -> Result<Run, SimulationError> {
        if let Some(log) = &mut self.log {
            log.flush()?;
        }
        let now = self.now;
        let live: Vec<u32> = self
            .workers
            .iter()
            .flat_map(|worker| worker.attempts.clone())
            .collect();
        for place in live {
            self.charge_slot_time(place);
            self.run.slot_time.unfinished += self.attempts.at(place).executed();
        }
        let mut sojourns = 0;
        let waiting: Vec<Time> = self
            .masters
            .waiting_since()
            .chain(self.job_tasks.since())
            .collect();
        for submitted in &waiting {
            sojourns += u128::from(now.since(*submitted).0);
        }
        for job in self.jobs.iter().filter(|job| !job.is_master()) {
            sojourns += u128::from(now.since(job.result.submitted).0);
            self.run.slot_time.unfinished += job
                .checkpoints
                .values()
                .map(|checkpoint| checkpoint.done)
                .sum::<u64>();
        }
        for kind in TaskKind::ALL {
            let held = self.run.slot_time.held(kind);
            let used = u64::from(self.engine.view().used(kind));
            assert_eq!(
                held, used,
                "the engine and the workers disagree on held {kind} slots"
            );
        }
        self.run.slot_time.check(sojourns)?;
        let unfinished = self.jobs.iter().filter(|job| !job.is_master());
        self.run.unfinished_names = unfinished.map(|job| job.plan.name.clone()).collect();
        self.run.unfinished = self.run.unfinished_names.len() + waiting.len();
        self.run
            .never_submitted
            .extend(self.triggered.keys().map(|name| name.to_string()));
        self.run.ended = now;
        self.run.tally = self.engine.view().tally();
        self.run.judged = self.engine.view().judged().clone();
        Ok(self.run)
    }

    /// Checks every invariant of the engine; slow, for tests.
    ///
    /// # Errors
    /// Names the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.engine.check()
    }
}

/// Returns the kind of activity that an event counts as.
fn activity_of(due: Due) -> Activity {
    match due {
        Due::Wake
        | Due::Heartbeat { .. }
        | Due::Report { .. }
        | Due::Lost { .. }
        | Due::Returns { .. } => Activity::Idle,
        _ => Activity::Other,
    }
}

/// The order of simultaneous events.
fn rank(due: Due) -> u8 {
    match due {
        Due::Mark { .. }
        | Due::PhaseEnds { .. }
        | Due::Arrives { .. }
        | Due::JobTaskEnds { .. } => 0,
        Due::Lost { .. } => 1,
        Due::Returns { .. } => 2,
        Due::Wake => 3,
        Due::Report { .. } => 4,
        Due::Heartbeat { .. } => 5,
    }
}
