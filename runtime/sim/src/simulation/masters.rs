//! Masters: with containers, each job has a master that holds one container from before its first task until
//! its end. For the engine a master is a job with one map, whose attempt ends with the managed job; policies
//! assign it a container like any map.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{JobId, Span, Time};

use super::Simulation;
use super::attempts::Phase;
use super::jobs::{Management, spec_of};
use crate::job::SimulatedJob;
use crate::run::SimulationError;

/// A job and its arrival time.
#[derive(Debug)]
struct ArrivedJob {
    job: SimulatedJob,
    came: Time,
}

/// A job whose master cannot start yet.
#[derive(Debug)]
struct WaitingJob {
    arrived: ArrivedJob,
    limits: Limits,
}

/// The limits that count a master: its queue, and the policy's queues with a maximum.
#[derive(Debug, Clone)]
struct Limits {
    queue: Arc<str>,
    /// Names and maxima.
    policy_queues: Vec<(String, u64)>,
}

/// The place of a waiting job in its queue: by the rank that the policy gives it, then by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingRank {
    of_policy: i128,
    arrival: u64,
}

/// The masters that run, start or wait.
#[derive(Debug, Default)]
pub(super) struct Masters {
    /// Jobs without room for their master, by queue.
    waiting: BTreeMap<Arc<str>, BTreeMap<WaitingRank, WaitingJob>>,
    /// Jobs whose master is starting, by the job number of the master.
    starting: BTreeMap<JobId, ArrivedJob>,
    /// The limits that count each active master.
    active: BTreeMap<JobId, Limits>,
    /// Number of active masters by queue, and by queue of the policy.
    of_queue: BTreeMap<Arc<str>, u64>,
    of_policy_queue: BTreeMap<String, u64>,
    /// When the last ordered master has started.
    last_start: Time,
    /// Number of jobs that needed a master so far.
    arrivals: u64,
}

impl Masters {
    /// Whether no job is without a running master.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.starting.is_empty()
    }

    /// Returns the arrival times of jobs without a running master.
    pub fn arrival_times(&self) -> impl Iterator<Item = Time> + '_ {
        let waiting = self.waiting.values().flat_map(BTreeMap::values);
        let waiting = waiting.map(|waiting| waiting.arrived.came);
        let starting = self.starting.values().map(|starting| starting.came);
        waiting.chain(starting)
    }

    /// Adds a job that needs a master.
    fn add_waiting(&mut self, job: WaitingJob, rank_of_policy: i128) {
        self.arrivals += 1;
        let rank = WaitingRank {
            of_policy: rank_of_policy,
            arrival: self.arrivals,
        };
        let queue = job.limits.queue.clone();
        self.waiting.entry(queue).or_default().insert(rank, job);
    }

    /// Removes and returns the first waiting job with room for its master.
    fn take_next(&mut self, of_queue_max: u64) -> Option<WaitingJob> {
        let mut first: Option<(WaitingRank, &Arc<str>)> = None;
        for (queue, jobs) in &self.waiting {
            let Some((rank, job)) = jobs.first_key_value() else {
                continue;
            };
            let is_first = first.is_none_or(|(before, _)| *rank < before);
            if is_first && self.has_room(&job.limits, of_queue_max) {
                first = Some((*rank, queue));
            }
        }
        let (rank, queue) = first?;
        let queue = queue.clone();
        let jobs = self.waiting.get_mut(&queue)?;
        let next = jobs.remove(&rank);
        if jobs.is_empty() {
            self.waiting.remove(&queue);
        }
        next
    }

    /// Whether a master stays within the maximum of its queue, and leaves a container for tasks in each queue
    /// of the policy.
    fn has_room(&self, limits: &Limits, of_queue_max: u64) -> bool {
        let active = self.of_queue.get(&limits.queue);
        if active.is_some_and(|active| *active >= of_queue_max) {
            return false;
        }
        limits.policy_queues.iter().all(|(name, most)| {
            let active = self.of_policy_queue.get(name).copied().unwrap_or_default();
            active + 1 < *most
        })
    }

    /// Counts a master that starts, and keeps the job that it will manage.
    fn start(&mut self, master: JobId, job: ArrivedJob, limits: Limits) {
        *self.of_queue.entry(limits.queue.clone()).or_default() += 1;
        for (name, _) in &limits.policy_queues {
            *self.of_policy_queue.entry(name.clone()).or_default() += 1;
        }
        self.active.insert(master, limits);
        self.starting.insert(master, job);
    }

    /// Returns how long a master starts that is ordered now. Masters start one after another.
    fn start_time(&mut self, now: Time, lasts: Span) -> Span {
        self.last_start = now.max(self.last_start) + lasts;
        self.last_start.since(now)
    }

    /// Removes a master from the active ones.
    fn end(&mut self, master: JobId) {
        let Some(limits) = self.active.remove(&master) else {
            return;
        };
        if let Some(active) = self.of_queue.get_mut(&limits.queue) {
            *active -= 1;
        }
        for (name, _) in &limits.policy_queues {
            if let Some(active) = self.of_policy_queue.get_mut(name) {
                *active -= 1;
            }
        }
    }
}

/// Returns the master of a job, as a job of its own.
fn master_of(job: &SimulatedJob) -> SimulatedJob {
    let mut master = SimulatedJob::new(format!("{} (master)", job.name), job.submit);
    master.user = job.user.clone();
    master.queue = job.queue.clone();
    master.priority = job.priority;
    master.deadline = job.deadline;
    master.with_maps(1, Span(0))
}

impl Simulation {
    /// Queues a job for its master.
    pub(super) fn await_master(
        &mut self,
        job: SimulatedJob,
        came: Time,
    ) -> Result<(), SimulationError> {
        let spec = spec_of(&job, came, &self.workers);
        let containers = u32::try_from(self.settings.containers()).unwrap_or(u32::MAX);
        let policy_queues = self.engine.maxima(&spec, containers);
        for (queue, most) in &policy_queues {
            if *most < 2 {
                return Err(SimulationError::NoRoom {
                    job: job.name.clone(),
                    queue: queue.clone(),
                    most: *most,
                });
            }
        }
        let rank_of_policy = self.engine.rank(&spec);
        let limits = Limits {
            queue: job.queue.clone(),
            policy_queues,
        };
        let arrived = ArrivedJob { job, came };
        let waiting = WaitingJob { arrived, limits };
        self.masters.add_waiting(waiting, rank_of_policy);
        self.start_masters();
        Ok(())
    }

    /// Starts as many masters as the limits allow; one container is left for tasks.
    fn start_masters(&mut self) {
        let of_queue_max = self.settings.masters_max.map_or(u64::MAX, u64::from);
        let containers = self.settings.containers();
        while (self.masters.active.len() as u64) + 1 < containers {
            let Some(next) = self.masters.take_next(of_queue_max) else {
                return;
            };
            let arrived = next.arrived;
            let management = Management::Master { of: None };
            let id = self.submit(master_of(&arrived.job), arrived.came, Some(management));
            self.masters.start(id, arrived, next.limits);
        }
    }

    /// Returns the start time of a master, or `None` for other attempts.
    pub(super) fn start_of_master(&mut self, place: u32) -> Option<Span> {
        let job = self.attempts.at(place).id.task.job;
        if !self.jobs.at(job).is_master() {
            return None;
        }
        let lasts = self.settings.overheads.master;
        Some(self.masters.start_time(self.clock.now(), lasts))
    }

    /// Submits the job of a master that has started. A master restarted after the loss of its machine
    /// continues, or ends if its job has. Does nothing for other attempts.
    pub(super) fn master_started(&mut self, place: u32) {
        let id = self.attempts.at(place).id.task.job;
        let Some(Management::Master { of }) = self.jobs.at(id).management else {
            return;
        };
        if let Some(starting) = self.masters.starting.remove(&id) {
            let management = Management::Managed { by: id };
            let job = self.submit(starting.job, starting.came, Some(management));
            self.jobs.at_mut(id).management = Some(Management::Master { of: Some(job) });
            return;
        }
        let job_runs = of.is_some_and(|job| self.jobs.get(job).is_some());
        if !job_runs {
            self.end_master(place);
        }
    }

    /// Ends the master of a job that has ended.
    pub(super) fn managed_ended(&mut self, master: JobId) {
        self.masters.end(master);
        let managing = self.workers.places().find(|place| {
            let attempt = self.attempts.at(*place);
            attempt.id.task.job == master && attempt.phase == Phase::Managing
        });
        if let Some(place) = managing {
            self.end_master(place);
        }
        self.start_masters();
    }

    /// Ends the attempt of a master.
    fn end_master(&mut self, place: u32) {
        self.charge_slot_time(place);
        self.request_commit(place);
    }
}
