//! The simulation: virtual time, and virtual workers around the Engine.
//!
//! Owns time, and the order in which things happen: all that is due at one instant and not caused by each
//! other is handed to the engine together, in the order of the specification; what the engine wants done
//! follows, and what that causes at the same instant is the next round of it. Does not own any rule about
//! jobs, tasks or slots.
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
mod held_slots;
mod job_tasks;
mod jobs;
mod log;
mod marks;
mod masters;
mod orders;
mod paging;
mod queue;
mod recorder;
mod reports;
mod telling;
mod work;
mod workers;

use std::collections::BTreeMap;
use std::io::Write;
use std::iter::Peekable;
use std::sync::Arc;

use napreduce_engine::{AttemptId, ClusterView, Engine, EngineSettings, Scheduler, TaskKind, Time, fields};

use self::attempts::{Attempts, Phase};
use self::chains::ChainLengths;
use self::guard::{Guard, Happened};
use self::job_tasks::JobTasks;
use self::jobs::Jobs;
use self::log::Log;
use self::marks::Marks;
use self::masters::Masters;
use self::queue::{Due, Queue};
use self::recorder::Recorder;
pub use self::recorder::Recording;
use self::reports::Batch;
use self::workers::VirtualWorker;
use crate::job::SimulatedJob;
use crate::run::{Run, SimulationError};
use crate::settings::SimulationSettings;
use crate::workload::Workload;

/// So many rounds of one instant mean that it will never end: the policy takes and gives the same slots again
/// and again.
const ROUNDS_MAX: u32 = 50_000;

fields! {
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
        engine: Engine =
            Engine::new(scheduler, EngineSettings { strict: true, name_outputs: false, ..settings.engine }),
        coming: Peekable<Box<dyn Iterator<Item = SimulatedJob>>> = workload.timed.peekable(),
        triggered: BTreeMap<Arc<str>, SimulatedJob> = workload.triggered,
        now: Time,
        last_submit: Time,
        queue: Queue,
        /// What is due at this instant; empty in between.
        due: Vec<Due>,
        /// Workers that speak at this instant.
        beats: Vec<u32>,
        batch: Batch,
        attempts: Attempts,
        jobs: Jobs,
        masters: Masters,
        job_tasks: JobTasks,
        workers: Vec<VirtualWorker>,
        /// The worker on each machine, or the last one there.
        on_machine: Vec<u32> = vec![0; settings.machines as usize],
        marks: Marks = Marks::new(&settings.marks),
        /// Attempts that said in this batch that they are done, and the work they did.
        finishing: BTreeMap<AttemptId, u64>,
        /// When the engine wants to be woken.
        armed: Option<Time>,
        chain_lengths: ChainLengths,
        guard: Guard = Guard::new(&settings),
        log: Option<Log>,
        recorder: Option<Recorder>,
        run: Run,
        settings: SimulationSettings = settings,
    }

    /// A simulation at time 0, before anything happened.
    pub fn new(scheduler: Box<dyn Scheduler>, settings: SimulationSettings, workload: Workload);
}

impl Simulation {
    /// The same with a log of every event and what it led to.
    #[must_use]
    pub fn with_log(mut self, to: Box<dyn Write>) -> Simulation {
        self.log = Some(Log::new(to));
        self
    }

    /// The same with the history of every job that ends, as a cluster would keep it.
    #[must_use]
    pub fn with_recording(mut self, recording: Recording) -> Simulation {
        self.recorder = Some(Recorder::new(recording));
        self
    }

    /// Runs until every job has ended.
    ///
    /// # Errors
    /// When the workload can never end under this policy, or is out of order, or the log cannot be written.
    pub fn run(mut self) -> Result<Run, SimulationError> {
        while self.step()? {}
        self.finish()
    }

    /// The time of the last instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the policy sees.
    pub fn view(&self) -> ClusterView<'_> {
        self.engine.view()
    }

    /// What happened so far: jobs that have ended, events, and books.
    pub fn so_far(&self) -> &Run {
        &self.run
    }

    /// Goes on to the next instant at which something happens, and does all that happens then. False when
    /// every job has ended.
    ///
    /// # Errors
    /// As `run`.
    pub fn step(&mut self) -> Result<bool, SimulationError> {
        if self.workers.is_empty() {
            (0..self.settings.machines).for_each(|machine| self.join(machine));
            if let Some(period) = self.settings.progress_period {
                self.queue.push(Time(0) + period, Due::Tick);
            }
            self.hand_in()?;
        }
        if self.jobs.running == 0
            && self.masters.none_waits()
            && self.job_tasks.is_empty()
            && self.coming.peek().is_none()
            && !self.may_trigger()
        {
            return Ok(false);
        }
        let arrival = self.coming.peek().map(|job| job.submit);
        let Some(next) = [arrival, self.queue.next()].into_iter().flatten().min() else {
            return Err(self.stalled());
        };
        if self.settings.until.is_some_and(|until| next > until) {
            self.now = self.settings.until.unwrap_or(self.now);
            self.run.books.advance(self.now);
            return Ok(false);
        }
        self.guard.check_time(next)?;
        self.now = next.max(self.now);
        self.run.books.advance(self.now);
        let before = self.run.events;
        let happened = self.happen()?;
        self.guard.note_instant(happened);
        self.run.busiest_instant = self.run.busiest_instant.max(self.run.events - before);
        self.look_for_end()?;
        Ok(true)
    }

    /// Whether the policy may yet submit a job that waits for a trigger: it wants to be woken, and was not in
    /// vain for too long.
    fn may_trigger(&self) -> bool {
        !self.triggered.is_empty() && self.armed.is_some() && !self.is_idle()
    }

    /// Does all that happens at this instant.
    fn happen(&mut self) -> Result<Happened, SimulationError> {
        let mut happened = Happened::Nothing;
        for _ in 0..ROUNDS_MAX {
            let mut due = std::mem::take(&mut self.due);
            while let Some(one) = self.queue.pop_due(self.now) {
                due.push(one);
            }
            if due.len() > 1 {
                due.sort_by_key(|one| rank(*one));
            }
            for one in due.drain(..) {
                happened = happened.max(self.kind_of(one));
                self.one_happens(one)?;
            }
            self.due = due;
            while self.coming.peek().is_some_and(|job| job.submit <= self.now) {
                happened = Happened::Something;
                let Some(job) = self.coming.next() else { break };
                if job.submit < self.last_submit {
                    return Err(SimulationError::OutOfOrder { at: job.submit, after: self.last_submit });
                }
                self.last_submit = job.submit;
                self.arrive_job(job)?;
            }
            let mut beats = std::mem::take(&mut self.beats);
            beats.sort_unstable();
            beats.into_iter().for_each(|worker| self.heartbeat(worker));
            if self.batch.is_empty() {
                return Ok(happened);
            }
            self.hand_in()?;
        }
        Err(SimulationError::Thrashing { at: self.now, rounds: ROUNDS_MAX })
    }

    /// What it means for the guard that this happens.
    fn kind_of(&self, due: Due) -> Happened {
        match due {
            Due::Wake | Due::Heartbeat { .. } | Due::Lost { .. } | Due::Returns { .. } => Happened::Nothing,
            Due::Tick => {
                let workers = self.on_machine.iter().map(|worker| &self.workers[*worker as usize]);
                let mut places = workers.flat_map(|worker| &worker.attempts);
                let works = places.any(|place| self.attempts.at(*place).phase == Phase::Working);
                if works { Happened::Progress } else { Happened::Nothing }
            }
            _ => Happened::Something,
        }
    }

    fn one_happens(&mut self, due: Due) -> Result<(), SimulationError> {
        match due {
            Due::PhaseEnds { attempt, stamp } => self.phase_ends(attempt, stamp),
            Due::Mark { attempt, stamp } if self.attempts.at(attempt).stamp == stamp => {
                self.tell_progress(attempt);
            }
            Due::Mark { .. } => {}
            Due::Arrives { attempt, life, order } => self.arrive(attempt, life, order),
            Due::Lost { worker } => {
                // What ended at this instant has ended.
                self.hand_in()?;
                self.lose(worker);
            }
            Due::Returns { machine } => self.join(machine),
            Due::Wake if self.armed == Some(self.now) => {
                self.armed = None;
                self.batch.push(reports::Group::Timer, 0, None, napreduce_engine::Event::Woken);
            }
            Due::Wake => {}
            Due::JobTaskEnds { number } => self.job_task_ends(number)?,
            Due::Tick => self.tick(),
            Due::Heartbeat { worker } => self.beats.push(worker),
        }
        Ok(())
    }

    /// Ends the run: checks the books and says what came of it.
    fn finish(mut self) -> Result<Run, SimulationError> {
        if let Some(log) = &mut self.log {
            log.flush()?;
        }
        let now = self.now;
        let live: Vec<u32> = self.workers.iter().flat_map(|worker| worker.attempts.clone()).collect();
        for place in live {
            self.bring_up_to_date(place);
            self.run.books.unfinished += self.attempts.at(place).executed();
        }
        let mut sojourns = 0;
        let waiting: Vec<Time> = self.masters.waiting_since().chain(self.job_tasks.since()).collect();
        for submitted in &waiting {
            sojourns += u128::from(now.since(*submitted).0);
        }
        for job in self.jobs.iter().filter(|job| !job.is_master()) {
            sojourns += u128::from(now.since(job.result.submitted).0);
            self.run.books.unfinished += job.checkpoints.values().map(|kept| kept.done).sum::<u64>();
        }
        for kind in TaskKind::ALL {
            let (held, used) = (self.run.books.held(kind), u64::from(self.engine.view().used(kind)));
            assert_eq!(held, used, "the engine has given out other {kind} slots than are held");
        }
        self.run.books.check(sojourns)?;
        let unfinished = self.jobs.iter().filter(|job| !job.is_master());
        self.run.unfinished_names = unfinished.map(|job| job.plan.name.clone()).collect();
        self.run.unfinished = self.run.unfinished_names.len() + waiting.len();
        self.run.never_submitted.extend(self.triggered.keys().map(|name| name.to_string()));
        self.run.ended = now;
        self.run.tally = self.engine.view().tally();
        self.run.judged = self.engine.view().judged().clone();
        Ok(self.run)
    }

    /// Checks every invariant of the engine; slow, for tests.
    ///
    /// # Errors
    /// Names what does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.engine.check()
    }
}

/// The order in which things happen that happen at one instant.
fn rank(due: Due) -> u8 {
    match due {
        Due::Mark { .. } | Due::PhaseEnds { .. } | Due::Arrives { .. } | Due::JobTaskEnds { .. } => 0,
        Due::Lost { .. } => 1,
        Due::Returns { .. } => 2,
        Due::Wake => 3,
        Due::Tick => 4,
        Due::Heartbeat { .. } => 5,
    }
}
