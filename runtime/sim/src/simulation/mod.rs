//! The simulation loop: virtual time, and virtual workers around the engine. All events of one instant that
//! do not cause each other are passed to the engine in one batch, in the order of the specification. The
//! effects are applied, and what they cause at the same instant forms the next round.
//!
//! ```text
//!   workload -> submissions --+
//!   clock    -> phases end ---+--> batch --> Engine --> effects --> orders --> virtual workers --> clock
//!            -> heartbeats ---+
//! ```
//!
//! Each part of the state has a file of its own: `clock`, `submissions`, `batch`, `attempts`, `workers`, `jobs`,
//! `masters`, `job_tasks` and so on. A step that needs several parts is a method of [`Simulation`], in the file
//! of its subject: `orders` go to a worker, `phases` and `preemption` are what an attempt does, `reports` and
//! `heartbeats` come back.

mod attempts;
mod bandwidth;
mod batch;
mod chains;
mod checkpoints;
mod clock;
mod failures;
mod guard;
mod heartbeats;
mod job_tasks;
mod jobs;
mod log;
mod masters;
mod orders;
mod pace;
mod paging;
mod phases;
mod preemption;
mod progress;
mod recorder;
mod reports;
mod submissions;
mod task_set;
mod workers;

use std::io::Write;

use napreduce_engine::{
    ClusterView, Engine, EngineSettings, Event, JobId, Scheduler, TaskKind, Time, TimeLeft,
};

use self::attempts::Attempts;
use self::batch::{Batch, Group};
use self::chains::ChainLengths;
use self::clock::{Clock, TimedEvent};
use self::guard::{Activity, Guard};
use self::job_tasks::JobTasks;
use self::jobs::Jobs;
use self::log::Log;
use self::masters::Masters;
use self::progress::ProgressMarks;
use self::recorder::Recorder;
pub use self::recorder::Recording;
use self::submissions::Submissions;
use self::workers::Workers;
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
    submissions: Submissions,
    clock: Clock,
    batch: Batch,
    attempts: Attempts,
    jobs: Jobs,
    masters: Masters,
    job_tasks: JobTasks,
    workers: Workers,
    progress_marks: ProgressMarks,
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
            submissions: Submissions::new(workload),
            clock: Clock::default(),
            batch: Batch::default(),
            attempts: Attempts::default(),
            jobs: Jobs::default(),
            masters: Masters::default(),
            job_tasks: JobTasks::default(),
            workers: Workers::new(settings.machines),
            progress_marks: ProgressMarks::new(&settings.marks),
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
        self.clock.now()
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
        let Some(submission) = self.submissions.next() else {
            return self.clock.next();
        };
        let Some(event) = self.clock.next() else {
            return Some(submission);
        };
        Some(submission.min(event))
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
        if self.has_ended() {
            return Ok(false);
        }
        let Some(next) = self.next_instant() else {
            return Err(self.stalled());
        };
        if let Some(until) = self.settings.until
            && next > until
        {
            self.clock.advance_to(until);
            self.run.slot_time.advance(self.clock.now());
            return Ok(false);
        }
        self.guard.check_time(next)?;
        self.clock.advance_to(next);
        self.run.slot_time.advance(self.clock.now());
        let before = self.run.events;
        let activity = self.run_instant()?;
        self.guard.record_instant(activity);
        self.run.busiest_instant = self.run.busiest_instant.max(self.run.events - before);
        self.check_progress()?;
        Ok(true)
    }

    /// Whether every job has ended.
    fn has_ended(&mut self) -> bool {
        self.jobs.running == 0
            && self.masters.is_empty()
            && self.job_tasks.is_empty()
            && self.submissions.next().is_none()
            && !self.may_trigger()
    }

    /// Whether the policy may still submit a job by a trigger: it has a wakeup scheduled, and is not idle for
    /// too long.
    fn may_trigger(&self) -> bool {
        self.submissions.await_triggers() && self.clock.will_wake() && !self.is_idle()
    }

    /// Processes all events of this instant.
    fn run_instant(&mut self) -> Result<Activity, SimulationError> {
        let mut activity = Activity::Idle;
        for _ in 0..ROUNDS_MAX {
            let mut due = self.clock.take_due();
            for event in due.drain(..) {
                activity = activity.max(Activity::of(event));
                self.handle(event)?;
            }
            self.clock.recycle(due);
            while let Some(job) = self.submissions.take_due(self.clock.now())? {
                activity = Activity::Other;
                self.arrive_job(job)?;
            }
            for worker in self.clock.take_heartbeats() {
                self.heartbeat(worker);
            }
            if self.batch.is_empty() {
                return Ok(activity);
            }
            self.flush_batch()?;
        }
        Err(SimulationError::Thrashing {
            at: self.clock.now(),
            rounds: ROUNDS_MAX,
        })
    }

    /// Handles an event that is due.
    fn handle(&mut self, event: TimedEvent) -> Result<(), SimulationError> {
        match event {
            TimedEvent::PhaseEnds { place, stamp } => self.phase_ends(place, stamp),
            TimedEvent::MarkReached { place, stamp } => self.mark_reached(place, stamp),
            TimedEvent::OrderArrives(order) => self.arrive(order),
            TimedEvent::WorkerLost { worker } => {
                // Attempts that end at this instant end before the loss.
                self.flush_batch()?;
                self.lose(worker);
            }
            TimedEvent::MachineReturns { machine } => self.join(machine),
            TimedEvent::WakeUp => {
                if self.clock.take_wake_up() {
                    self.batch.push(Group::Timer, 0, None, Event::Woken);
                }
            }
            TimedEvent::JobTaskEnds { number } => self.job_task_ends(number)?,
            TimedEvent::ProgressReport { place, generation } => {
                self.periodic_report(place, generation);
            }
            TimedEvent::Heartbeat { worker } => self.clock.heartbeat_now(worker),
        }
        Ok(())
    }

    /// Ends the run: checks the accounting and returns the result.
    fn finish(mut self) -> Result<Run, SimulationError> {
        if let Some(log) = &mut self.log {
            log.flush()?;
        }
        self.count_unfinished_work();
        self.check_held_slots();
        let now = self.clock.now();
        let without_master = self.masters.arrival_times();
        let in_job_task = self.job_tasks.arrival_times();
        let mut came: Vec<Time> = without_master.chain(in_job_task).collect();
        for job in self.jobs.without_masters() {
            came.push(job.result.submitted);
            self.run.unfinished_names.push(job.plan.name.clone());
        }
        self.run.unfinished = came.len();
        let sojourns = came.iter().map(|came| u128::from(now.since(*came).0));
        self.run.slot_time.check(sojourns.sum())?;
        let untriggered = self.submissions.untriggered();
        self.run.never_submitted.extend(untriggered);
        self.run.ended = now;
        let view = self.engine.view();
        self.run.tally = view.tally();
        self.run.judged = view.judged().clone();
        Ok(self.run)
    }

    /// Counts the work of attempts and checkpoints of jobs that have not ended.
    fn count_unfinished_work(&mut self) {
        let places: Vec<u32> = self.workers.places().collect();
        for place in places {
            self.charge_slot_time(place);
            self.run.slot_time.unfinished += self.attempts.at(place).executed();
        }
        for job in self.jobs.without_masters() {
            self.run.slot_time.unfinished += job.work_in_checkpoints();
        }
    }

    /// Panics if the engine and the workers disagree on the slots that are held.
    fn check_held_slots(&self) {
        for kind in TaskKind::ALL {
            let held = self.run.slot_time.held(kind);
            let used = u64::from(self.engine.view().used(kind));
            assert_eq!(
                held, used,
                "the engine and the workers disagree on held {kind} slots"
            );
        }
    }

    /// Checks every invariant of the engine; slow, for tests.
    ///
    /// # Errors
    /// Names the violated invariant.
    pub fn check(&self) -> Result<(), String> {
        self.engine.check()
    }
}
