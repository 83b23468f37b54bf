//! The guard against runs that never end: limits virtual time and preemptions without progress. Its errors
//! summarize who holds the slots.

use napreduce_engine::{Job, Record, Span, TaskKind, Time};

use super::Simulation;
use super::attempts::Phase;
use crate::job::SimulatedJob;
use crate::run::SimulationError;
use crate::settings::SimulationSettings;

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
    evictions_max: u64,
    /// The time by which the run must end.
    horizon: Time,
    /// Attempt ends and suspends since the last progress.
    evictions: u64,
    /// Completed tasks minus lost outputs, and the maximum so far; only a new maximum is progress.
    done: u64,
    most_done: u64,
    /// Instants with timers, progress reports and machine changes only, since the last other instant.
    idle: u64,
}

/// The kind of activity at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    /// Timers, progress reports and machine changes only.
    Idle,
    Other,
}

impl Guard {
    pub fn new(settings: &SimulationSettings) -> Guard {
        let (maps, reduces) = settings.total_slots();
        let evictions_max =
            EVICTIONS_MAX.max(EVICTIONS_PER_SLOT_MAX.saturating_mul(maps.saturating_add(reduces)));
        let last = settings.last_time();
        let horizon = Time(0);
        Guard {
            last,
            evictions_max,
            horizon,
            evictions: 0,
            done: 0,
            most_done: 0,
            idle: 0,
        }
    }

    /// Checks that slot time does not overflow at `at`.
    pub fn check_time(&self, at: Time) -> Result<(), SimulationError> {
        if at > self.last {
            Err(SimulationError::TooLong {
                at,
                last: self.last,
            })
        } else {
            Ok(())
        }
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

    pub fn record_instant(&mut self, activity: Activity) {
        match activity {
            Activity::Idle => self.idle += 1,
            Activity::Other => self.idle = 0,
        }
    }
}

impl Simulation {
    /// Extends the time limit for a new job.
    pub(super) fn allow_for(&mut self, job: &SimulatedJob) {
        let overheads = &self.settings.overheads;
        let costs = [
            overheads.suspend,
            overheads.resume,
            overheads.checkpoint_write,
            overheads.checkpoint_read,
        ];
        let moved = costs
            .iter()
            .fold(Span(0), |sum, cost| sum + cost.of(job.memory));
        let input = overheads.remote_input.max(overheads.rack_input);
        let each = overheads.launch
            + overheads.master
            + input
            + overheads.heartbeat
            + overheads.kill
            + moved;
        let tasks = (job.maps.len() + job.reduces.len()) as u64;
        let work = job.work(TaskKind::Map) + job.work(TaskKind::Reduce);
        let alone = work + Span(tasks.saturating_mul(each.0));
        let more = Span(alone.0.saturating_mul(WORK_FACTOR_MAX)) + EXTRA_PER_JOB;
        self.guard.horizon = self.guard.horizon.max(self.clock.now()) + more;
    }

    /// Whether the run has been idle for too long, and no attempt works, which would end.
    pub(super) fn is_idle(&self) -> bool {
        let limit = IDLE_MAX + IDLE_PER_MACHINE_MAX * u64::from(self.settings.machines);
        self.guard.idle > limit && !self.has_working_attempt()
    }

    fn has_working_attempt(&self) -> bool {
        let mut places = self
            .workers
            .of_machines()
            .flat_map(|worker| &worker.attempts);
        places.any(|place| self.attempts.at(*place).phase == Phase::Working)
    }

    /// Fails if the run makes no progress. The time limit does not apply to runs with machine losses, which
    /// may delay a workload indefinitely, nor to runs with a stop time.
    pub(super) fn check_progress(&self) -> Result<(), SimulationError> {
        let cut = self.settings.until.is_some() || self.settings.failures.machine_mean.is_some();
        let evictions_max = self.guard.evictions_max;
        let why = if self.guard.evictions > evictions_max {
            let lost = match self.settings.failures.machine_mean {
                Some(mean) => format!(" (a machine is lost after {} on average)", mean.to_text()),
                None => String::new(),
            };
            format!(
                "{evictions_max} attempts ended or were suspended without an additional task done{lost}"
            )
        } else if self.clock.now() > self.guard.horizon && self.unfinished() > 0 && !cut {
            format!("this is {WORK_FACTOR_MAX} times the total work on a single slot")
        } else if self.is_idle() {
            return Err(self.stalled());
        } else {
            return Ok(());
        };
        let jobs = self.unfinished();
        let first = self.first_job();
        let slots = self.slot_summary();
        Err(SimulationError::Endless {
            at: self.clock.now(),
            why,
            jobs,
            first,
            slots,
        })
    }

    pub(super) fn stalled(&self) -> SimulationError {
        let view = self.engine.view();
        for kind in TaskKind::ALL {
            let waits =
                |job: &&Job| !job.is_master() && job.tasks_done(kind) < job.tasks_total(kind);
            if !view.shares_slots()
                && view.slots(kind) == 0
                && let Some(job) = view.jobs().find(waits)
            {
                return SimulationError::NoSlots {
                    at: self.clock.now(),
                    job: job.id(),
                    kind,
                };
            }
        }
        let jobs = self.unfinished();
        let first = self.first_job();
        let slots = self.slot_summary();
        SimulationError::Stalled {
            at: self.clock.now(),
            jobs,
            first,
            slots,
        }
    }

    /// Returns the number of submitted jobs that have not ended.
    fn unfinished(&self) -> usize {
        let running = self.jobs.iter().filter(|job| !job.is_master()).count();
        running + self.masters.waiting_since().count() + self.job_tasks.since().count()
    }

    fn first_job(&self) -> Option<napreduce_engine::JobId> {
        let view = self.engine.view();
        view.jobs()
            .find(|job| !job.is_master())
            .or_else(|| view.jobs().next())
            .map(|job| job.id())
    }

    /// Describes the holders of slots and the demand.
    fn slot_summary(&self) -> String {
        let view = self.engine.view();
        let mut masters = 0_u64;
        let mut working = 0_u64;
        let mut waiting = 0_u64;
        let mut others = 0_u64;
        let places = self.workers.places();
        for attempt in places
            .map(|place| self.attempts.at(place))
            .filter(|one| one.holds_slot)
        {
            match attempt.phase {
                _ if view
                    .job(attempt.id.task.job)
                    .is_some_and(|job| job.is_master()) =>
                {
                    masters += 1
                }
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
            (working, "running tasks"),
            (waiting, "reduces waiting for maps"),
            (others, "tasks starting or stopping"),
        ];
        let held: Vec<String> = held
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} by {what}"))
            .collect();
        let held = if held.is_empty() {
            "0 are held".to_owned()
        } else {
            format!("held {}", held.join(", "))
        };
        let wanted = |kind| {
            view.jobs()
                .map(|job| u64::from(job.eligible_count(kind)))
                .sum::<u64>()
        };
        let suspended: u64 = view
            .jobs()
            .flat_map(|job| TaskKind::ALL.map(|kind| u64::from(job.suspended(kind))))
            .sum();
        let what = if shared { "containers" } else { "slots" };
        let mut text = format!(
            "of {all} {what} {held}; waiting: {} maps, {} reduces and {suspended} suspended tasks",
            wanted(TaskKind::Map),
            wanted(TaskKind::Reduce)
        );
        for kind in TaskKind::ALL {
            if slots(kind) == 0 && wanted(kind) > 0 {
                text += &format!("; there are no {kind} slots at all (--{kind}-slots)");
            }
        }
        text
    }
}
