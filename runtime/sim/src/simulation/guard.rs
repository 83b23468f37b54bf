//! The guard against runs that never end: limits virtual time and preemptions without progress. Its errors
//! summarize who holds the slots.

use napreduce_engine::{ClusterView, Job, JobId, Record, Span, TaskKind, Time};

use super::Simulation;
use super::attempts::Phase;
use super::clock::TimedEvent;
use crate::job::SimulatedJob;
use crate::run::SimulationError;
use crate::settings::{Overheads, SimulationSettings};

/// Limit on the virtual time of a run, as a multiple of the total work on one slot. Any policy that assigns
/// slots stays far below, however often it preempts.
const WORK_FACTOR_MAX: u64 = 100;
/// Additional time per job.
const EXTRA_PER_JOB: Span = Span::from_secs(3600);
/// Limits on attempt ends and suspends without progress: absolute and per slot.
const EVICTIONS_MAX: u64 = 200_000;
const EVICTIONS_PER_SLOT_MAX: u64 = 20;
/// Limits on consecutive instants with timers, progress reports and machine changes only while nothing works: absolute
/// and per machine.
const IDLE_MAX: u64 = 200_000;
const IDLE_PER_MACHINE_MAX: u64 = 100;

/// The limits and counters of a run.
#[derive(Debug)]
pub(super) struct Guard {
    /// The last time at which slot time does not overflow.
    last: Time,
    /// The time by which the run must end.
    horizon: Time,
    /// Attempt ends and suspends since the last progress, and their limit.
    evictions: u64,
    evictions_max: u64,
    /// Completed tasks minus lost outputs, and the maximum so far; only a new maximum is progress.
    done: u64,
    most_done: u64,
    /// Instants with timers, progress reports and machine changes only, since the last other instant, and
    /// their limit.
    idle: u64,
    idle_max: u64,
}

/// The kind of activity at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    /// Timers, progress reports and machine changes only.
    Idle,
    Other,
}

impl Activity {
    /// Returns the kind of activity that an event counts as.
    pub fn of(event: TimedEvent) -> Activity {
        match event {
            TimedEvent::WakeUp
            | TimedEvent::Heartbeat { .. }
            | TimedEvent::ProgressReport { .. }
            | TimedEvent::WorkerLost { .. }
            | TimedEvent::MachineReturns { .. } => Activity::Idle,
            _ => Activity::Other,
        }
    }
}

impl Guard {
    pub fn new(settings: &SimulationSettings) -> Guard {
        let evictions_of_slots = EVICTIONS_PER_SLOT_MAX.saturating_mul(settings.all_slots());
        let idle_of_machines = IDLE_PER_MACHINE_MAX * u64::from(settings.machines);
        Guard {
            last: settings.last_time(),
            horizon: Time(0),
            evictions: 0,
            evictions_max: EVICTIONS_MAX.max(evictions_of_slots),
            done: 0,
            most_done: 0,
            idle: 0,
            idle_max: IDLE_MAX + idle_of_machines,
        }
    }

    /// Checks that slot time does not overflow at `at`.
    pub fn check_time(&self, at: Time) -> Result<(), SimulationError> {
        if at > self.last {
            return Err(SimulationError::TooLong {
                at,
                last: self.last,
            });
        }
        Ok(())
    }

    /// Extends the time limit for a new job.
    pub fn allow_for(&mut self, job: &SimulatedJob, now: Time, overheads: &Overheads) {
        let moves = overheads.suspend.of(job.memory)
            + overheads.resume.of(job.memory)
            + overheads.checkpoint_write.of(job.memory)
            + overheads.checkpoint_read.of(job.memory);
        let input = overheads.remote_input.max(overheads.rack_input);
        let each = overheads.launch
            + overheads.master
            + input
            + overheads.heartbeat
            + overheads.kill
            + moves;
        let tasks = (job.maps.len() + job.reduces.len()) as u64;
        let work = job.work(TaskKind::Map) + job.work(TaskKind::Reduce);
        let alone = work + Span(tasks.saturating_mul(each.0));
        let more = Span(alone.0.saturating_mul(WORK_FACTOR_MAX)) + EXTRA_PER_JOB;
        self.horizon = self.horizon.max(now) + more;
    }

    /// Counts a record of the engine as progress or eviction.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::TaskDone(_) => {
                self.done += 1;
                if self.done > self.most_done {
                    self.most_done = self.done;
                    self.evictions = 0;
                }
            }
            Record::OutputLost(_) => self.done = self.done.saturating_sub(1),
            Record::JobEnded(..) => self.evictions = 0,
            Record::Suspended(_) | Record::Checkpointed(_) | Record::AttemptEnded(..) => {
                self.evictions += 1
            }
            _ => {}
        }
    }

    /// Counts an instant as idle or not.
    pub fn record_instant(&mut self, activity: Activity) {
        match activity {
            Activity::Idle => self.idle += 1,
            Activity::Other => self.idle = 0,
        }
    }

    fn has_too_many_evictions(&self) -> bool {
        self.evictions > self.evictions_max
    }

    fn has_too_many_idle_instants(&self) -> bool {
        self.idle > self.idle_max
    }
}

/// Returns the first job that has not ended: one that is not a master, if there is one.
fn first_job(view: &ClusterView<'_>) -> Option<JobId> {
    let first = view.jobs().find(|job| !job.is_master());
    let first = first.or_else(|| view.jobs().next())?;
    Some(first.id())
}

/// Returns a kind of tasks for which there are no slots, and a job that waits for them.
fn kind_without_slots(view: &ClusterView<'_>) -> Option<(TaskKind, JobId)> {
    if view.shares_slots() {
        return None;
    }
    for kind in TaskKind::ALL {
        if view.slots(kind) > 0 {
            continue;
        }
        let waits = |job: &&Job| !job.is_master() && job.tasks_done(kind) < job.tasks_total(kind);
        if let Some(job) = view.jobs().find(waits) {
            return Some((kind, job.id()));
        }
    }
    None
}

/// The number of held slots, by what their attempts do.
#[derive(Debug, Default)]
struct SlotHolders {
    masters: u64,
    working: u64,
    fetching: u64,
    others: u64,
}

impl SlotHolders {
    /// Describes the holders, such as "held 2 by masters, 1 by running tasks".
    fn describe(&self) -> String {
        let holders = [
            (self.masters, "masters"),
            (self.working, "running tasks"),
            (self.fetching, "reduces waiting for maps"),
            (self.others, "tasks starting or stopping"),
        ];
        let mut parts: Vec<String> = Vec::new();
        for (count, holder) in holders {
            if count > 0 {
                parts.push(format!("{count} by {holder}"));
            }
        }
        if parts.is_empty() {
            return "0 are held".to_owned();
        }
        format!("held {}", parts.join(", "))
    }
}

/// Describes the holders of slots and the demand.
fn describe_slots(view: &ClusterView<'_>, holders: &SlotHolders) -> String {
    let map_slots = u64::from(view.slots(TaskKind::Map));
    let reduce_slots = u64::from(view.slots(TaskKind::Reduce));
    let held = holders.describe();
    let held = if view.shares_slots() {
        format!("of {map_slots} containers {held}")
    } else {
        format!("of {} slots {held}", map_slots + reduce_slots)
    };
    let maps = waiting_tasks(view, TaskKind::Map);
    let reduces = waiting_tasks(view, TaskKind::Reduce);
    let suspended = suspended_tasks(view);
    let mut text =
        format!("{held}; waiting: {maps} maps, {reduces} reduces and {suspended} suspended tasks");
    for kind in TaskKind::ALL {
        if view.slots(kind) == 0 && waiting_tasks(view, kind) > 0 {
            text += &format!("; there are no {kind} slots at all (--{kind}-slots)");
        }
    }
    text
}

/// Returns the number of tasks of a kind that could start.
fn waiting_tasks(view: &ClusterView<'_>, kind: TaskKind) -> u64 {
    view.jobs()
        .map(|job| u64::from(job.eligible_count(kind)))
        .sum()
}

/// Returns the number of suspended tasks.
fn suspended_tasks(view: &ClusterView<'_>) -> u64 {
    let mut suspended = 0;
    for job in view.jobs() {
        for kind in TaskKind::ALL {
            suspended += u64::from(job.suspended(kind));
        }
    }
    suspended
}

impl Simulation {
    /// Whether the run has been idle for too long, and no attempt works, which would end.
    pub(super) fn is_idle(&self) -> bool {
        self.guard.has_too_many_idle_instants() && !self.has_working_attempt()
    }

    fn has_working_attempt(&self) -> bool {
        self.workers
            .of_machines()
            .flat_map(|worker| &worker.attempts)
            .any(|place| self.attempts.at(*place).phase == Phase::Working)
    }

    /// Fails if the run makes no progress.
    pub(super) fn check_progress(&self) -> Result<(), SimulationError> {
        if self.guard.has_too_many_evictions() {
            let evictions_max = self.guard.evictions_max;
            let mut why = format!(
                "{evictions_max} attempts ended or were suspended without an additional task done"
            );
            if let Some(mean) = self.settings.failures.machine_mean {
                let mean = mean.to_text();
                why += &format!(" (a machine is lost after {mean} on average)");
            }
            return Err(self.endless(why));
        }
        if self.is_too_late() {
            let why = format!("this is {WORK_FACTOR_MAX} times the total work on a single slot");
            return Err(self.endless(why));
        }
        if self.is_idle() {
            return Err(self.stalled());
        }
        Ok(())
    }

    /// Whether the run should have ended. The time limit does not apply to runs with machine losses, which
    /// may delay a workload indefinitely, nor to runs with a stop time.
    fn is_too_late(&self) -> bool {
        self.clock.now() > self.guard.horizon
            && self.settings.until.is_none()
            && self.settings.failures.machine_mean.is_none()
            && self.unfinished() > 0
    }

    fn endless(&self, why: String) -> SimulationError {
        let view = self.engine.view();
        SimulationError::Endless {
            at: self.clock.now(),
            why,
            jobs: self.unfinished(),
            first: first_job(&view),
            slots: describe_slots(&view, &self.slot_holders()),
        }
    }

    /// Returns the error that no event makes progress.
    pub(super) fn stalled(&self) -> SimulationError {
        let view = self.engine.view();
        let at = self.clock.now();
        if let Some((kind, job)) = kind_without_slots(&view) {
            return SimulationError::NoSlots { at, job, kind };
        }
        SimulationError::Stalled {
            at,
            jobs: self.unfinished(),
            first: first_job(&view),
            slots: describe_slots(&view, &self.slot_holders()),
        }
    }

    /// Returns the number of submitted jobs that have not ended.
    fn unfinished(&self) -> usize {
        let running = self.jobs.without_masters().count();
        let without_master = self.masters.arrival_times().count();
        let in_job_task = self.job_tasks.arrival_times().count();
        running + without_master + in_job_task
    }

    /// Counts the attempts that hold slots.
    fn slot_holders(&self) -> SlotHolders {
        let view = self.engine.view();
        let mut holders = SlotHolders::default();
        for place in self.workers.places() {
            let attempt = self.attempts.at(place);
            if !attempt.holds_slot {
                continue;
            }
            let job = view.job(attempt.id.task.job);
            if job.is_some_and(Job::is_master) {
                holders.masters += 1;
                continue;
            }
            match attempt.phase {
                Phase::Working => holders.working += 1,
                Phase::Fetching => holders.fetching += 1,
                _ => holders.others += 1,
            }
        }
        holders
    }
}
