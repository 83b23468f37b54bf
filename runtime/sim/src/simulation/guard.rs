//! The guard on runs that never end.
//!
//! Owns how long a finite workload may take in virtual time, and how often slots may be taken before there is
//! progress. Does not own why a run goes on for ever: the message says what holds the slots.

use napreduce_engine::{Record, Span, TaskKind, Time};

use super::Simulation;
use super::attempts::Phase;
use crate::job::SimulatedJob;
use crate::run::SimulationError;
use crate::settings::SimulationSettings;

/// A run may take so many times as long as all work would on one slot: under a policy that gives slots,
/// however often it takes them, it takes a fraction of that.
const TIMES: u64 = 100;
/// And so much longer in any case, for every job that comes.
const AT_LEAST: Span = Span::from_secs(3600);
/// So often attempts may end or stop without progress, and so often for each slot.
const TAKEN_MAX: u64 = 200_000;
const TAKEN_PER_SLOT_MAX: u64 = 20;
/// So many instants without anything but timers and machines that come and go, and so many for each machine,
/// mean that nothing will ever happen again.
const IDLE_MAX: u64 = 200_000;
const IDLE_PER_MACHINE_MAX: u64 = 100;
/// So many reports of progress in a row are too many for one run.
const TICKS_MAX: u64 = 2_000_000;

/// What a run is held to.
#[derive(Debug)]
pub(super) struct Guard {
    /// Up to when slot time can be counted.
    last: Time,
    taken_max: u64,
    /// When it must have ended.
    horizon: Time,
    /// How often an attempt ended or stopped since there was progress.
    taken: u64,
    /// How many tasks are done, less those whose output was lost, and the most there ever were: only more than
    /// that is progress.
    done: u64,
    most_done: u64,
    /// Instants in a row without anything but timers, and of these those in which something was at work.
    idle: u64,
    ticks: u64,
}

/// What happened at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happened {
    /// Nothing but timers, and machines that came and went.
    Nothing,
    /// Attempts at work said how far they are.
    Progress,
    Something,
}

impl Guard {
    pub fn new(settings: &SimulationSettings) -> Guard {
        let (maps, reduces) = settings.slots_in_all();
        let taken_max = TAKEN_MAX.max(TAKEN_PER_SLOT_MAX.saturating_mul(maps.saturating_add(reduces)));
        let (last, horizon) = (settings.last_time(), Time(0));
        Guard { last, taken_max, horizon, taken: 0, done: 0, most_done: 0, idle: 0, ticks: 0 }
    }

    /// Whether time can go on to this one.
    pub fn check_time(&self, at: Time) -> Result<(), SimulationError> {
        if at > self.last { Err(SimulationError::TooLong { at, last: self.last }) } else { Ok(()) }
    }

    /// A record of the engine tells of work that was done, or given up.
    pub fn note(&mut self, record: &Record) {
        match record {
            Record::TaskDone(_) => {
                self.done += 1;
                if self.done > self.most_done {
                    (self.most_done, self.taken) = (self.done, 0);
                }
            }
            Record::OutputLost(_) => self.done = self.done.saturating_sub(1),
            Record::JobEnded(..) => self.taken = 0,
            Record::Suspended(_) | Record::Checkpointed(_) | Record::AttemptEnded(..) => self.taken += 1,
            _ => {}
        }
    }

    pub fn note_instant(&mut self, happened: Happened) {
        match happened {
            Happened::Nothing => self.idle += 1,
            Happened::Progress => self.ticks += 1,
            Happened::Something => (self.idle, self.ticks) = (0, 0),
        }
    }
}

impl Simulation {
    /// A job comes, and the run may take longer.
    pub(super) fn allow_for(&mut self, job: &SimulatedJob) {
        let overheads = &self.settings.overheads;
        let costs =
            [overheads.suspend, overheads.resume, overheads.checkpoint_write, overheads.checkpoint_read];
        let moved = costs.iter().fold(Span(0), |sum, cost| sum + cost.of(job.memory));
        let input = overheads.remote_input.max(overheads.rack_input);
        let each = overheads.launch + overheads.master + input + overheads.heartbeat + overheads.kill + moved;
        let tasks = (job.maps.len() + job.reduces.len()) as u64;
        let work = job.work(TaskKind::Map) + job.work(TaskKind::Reduce);
        let alone = work + Span(tasks.saturating_mul(each.0));
        let more = Span(alone.0.saturating_mul(TIMES)) + AT_LEAST;
        self.guard.horizon = self.guard.horizon.max(self.now) + more;
    }

    /// Whether nothing has happened for so long that nothing ever will.
    pub(super) fn is_idle(&self) -> bool {
        self.guard.idle > IDLE_MAX + IDLE_PER_MACHINE_MAX * u64::from(self.settings.machines)
    }

    /// Whether there is an end in sight. Machines that are lost may hold a workload up for any time, and
    /// whoever said when the run is to be cut off knows how long it may take: the horizon is for the others.
    pub(super) fn look_for_end(&self) -> Result<(), SimulationError> {
        let cut = self.settings.until.is_some() || self.settings.failures.machine_mean.is_some();
        let taken_max = self.guard.taken_max;
        let why = if self.guard.taken > taken_max {
            let lost = match self.settings.failures.machine_mean {
                Some(mean) => format!(" (a machine is lost after {} on average)", mean.to_text()),
                None => String::new(),
            };
            format!(
                "attempts ended or stopped {taken_max} times since more tasks were done than before{lost}"
            )
        } else if self.guard.ticks > TICKS_MAX {
            format!(
                "progress was reported {TICKS_MAX} times while nothing else happened; report it less often"
            )
        } else if self.now > self.guard.horizon && self.unfinished() > 0 && !cut {
            format!("all work would have been done {TIMES} times by then, on a single slot")
        } else if self.is_idle() {
            return Err(self.stalled());
        } else {
            return Ok(());
        };
        let (jobs, first, slots) = (self.unfinished(), self.first_job(), self.slots_in_words());
        Err(SimulationError::Endless { at: self.now, why, jobs, first, slots })
    }

    pub(super) fn stalled(&self) -> SimulationError {
        let (jobs, first, slots) = (self.unfinished(), self.first_job(), self.slots_in_words());
        SimulationError::Stalled { at: self.now, jobs, first, slots }
    }

    /// How many jobs have come and not ended.
    fn unfinished(&self) -> usize {
        let running = self.jobs.iter().filter(|job| !job.is_master()).count();
        running + self.masters.waiting_since().count() + self.job_tasks.since().count()
    }

    fn first_job(&self) -> Option<napreduce_engine::JobId> {
        let view = self.engine.view();
        view.jobs().find(|job| !job.is_master()).or_else(|| view.jobs().next()).map(|job| job.id())
    }

    /// Who holds the slots, and what waits for them.
    fn slots_in_words(&self) -> String {
        let view = self.engine.view();
        let (mut masters, mut working, mut waiting, mut others) = (0_u64, 0_u64, 0_u64, 0_u64);
        let places = self.workers.iter().flat_map(|worker| &worker.attempts);
        for attempt in places.map(|place| self.attempts.at(*place)).filter(|one| one.holds_slot) {
            match attempt.phase {
                _ if view.job(attempt.id.task.job).is_some_and(|job| job.is_master()) => masters += 1,
                Phase::Working => working += 1,
                Phase::Fetching => waiting += 1,
                _ => others += 1,
            }
        }
        let shared = view.shares_slots();
        let slots = |kind| u64::from(view.slots(kind));
        let all = slots(TaskKind::Map) + if shared { 0 } else { slots(TaskKind::Reduce) };
        let held = [
            (masters, "masters"),
            (working, "tasks at work"),
            (waiting, "reduces that wait for maps"),
            (others, "tasks that start or stop"),
        ];
        let held: Vec<String> = held
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} by {what}"))
            .collect();
        let held =
            if held.is_empty() { "none is held".to_owned() } else { format!("held {}", held.join(", ")) };
        let wanted = |kind| view.jobs().map(|job| u64::from(job.eligible_count(kind))).sum::<u64>();
        let suspended: u64 =
            view.jobs().flat_map(|job| TaskKind::ALL.map(|kind| u64::from(job.suspended(kind)))).sum();
        let what = if shared { "containers" } else { "slots" };
        format!(
            "of {all} {what} {held}; {} maps and {} reduces wait for one, and {suspended} suspended tasks",
            wanted(TaskKind::Map),
            wanted(TaskKind::Reduce)
        )
    }
}
