//! Masters: with containers, each job has a master that holds one container from before its first task until
//! its end. For the engine a master is a job with one map, whose attempt ends with the managed job; policies
//! assign it a container like any map.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{JobId, Report, Span, Time};

use super::Simulation;
use super::attempts::Phase;
use super::jobs::Management;
use crate::job::SimulatedJob;
use crate::run::SimulationError;

/// A job and its arrival time.
type Arrival = (SimulatedJob, Time);

/// A job whose master cannot start yet.
#[derive(Debug)]
struct WaitingJob {
    job: Arrival,
    limits: Limits,
}

/// The limits that count a master: its queue, and the policy's queues with a maximum.
#[derive(Debug, Clone)]
struct Limits {
    queue: Arc<str>,
    maxima: Vec<(String, u64)>,
}

/// The masters that run, start or wait.
#[derive(Debug, Default)]
pub(super) struct Masters {
    /// Jobs without room for their master, by queue; in the order of the policy, then of arrival.
    held_back: BTreeMap<Arc<str>, BTreeMap<(i128, u64), WaitingJob>>,
    /// Jobs whose master is starting, by the master's number.
    starting: BTreeMap<u32, Arrival>,
    /// The limits that count each active master.
    active: BTreeMap<JobId, Limits>,
    of_queue: BTreeMap<Arc<str>, u64>,
    of_policy: BTreeMap<String, u64>,
    /// When the last ordered master has started.
    free_at: Time,
    arrivals: u64,
}

impl Masters {
    pub fn is_empty(&self) -> bool {
        self.held_back.is_empty() && self.starting.is_empty()
    }

    /// Returns the arrival times of jobs without a running master.
    pub fn waiting_since(&self) -> impl Iterator<Item = Time> + '_ {
        let held_back = self
            .held_back
            .values()
            .flat_map(BTreeMap::values)
            .map(|held| &held.job);
        held_back
            .chain(self.starting.values())
            .map(|(_, came)| *came)
    }

    /// Removes and returns the first waiting job with room for its master: within the limit per queue, and
    /// with a container left for tasks in each queue of the policy.
    fn take_next(&mut self, of_queue_max: u64) -> Option<WaitingJob> {
        let count = |name: &String| self.of_policy.get(name).copied().unwrap_or_default();
        let has_room = |limits: &Limits| {
            self.of_queue
                .get(&limits.queue)
                .is_none_or(|active| *active < of_queue_max)
                && limits
                    .maxima
                    .iter()
                    .all(|(name, most)| count(name) + 1 < *most)
        };
        let heads = self
            .held_back
            .values()
            .filter_map(BTreeMap::first_key_value);
        let candidates = heads.filter(|(_, held)| has_room(&held.limits));
        let (key, held) = candidates.min_by_key(|(key, _)| **key)?;
        let key = *key;
        let queue = held.limits.queue.clone();
        let waiting = self.held_back.get_mut(&queue)?;
        let next = waiting.remove(&key);
        if waiting.is_empty() {
            self.held_back.remove(&queue);
        }
        next
    }

    fn count(&mut self, master: JobId, limits: Limits) {
        *self.of_queue.entry(limits.queue.clone()).or_default() += 1;
        for (name, _) in &limits.maxima {
            *self.of_policy.entry(name.clone()).or_default() += 1;
        }
        self.active.insert(master, limits);
    }

    fn uncount(&mut self, master: JobId) {
        let Some(limits) = self.active.remove(&master) else {
            return;
        };
        if let Some(active) = self.of_queue.get_mut(&limits.queue) {
            *active -= 1;
        }
        for (name, _) in &limits.maxima {
            if let Some(active) = self.of_policy.get_mut(name) {
                *active -= 1;
            }
        }
    }
}

impl Simulation {
    /// Queues a job for its master.
    pub(super) fn await_master(
        &mut self,
        plan: SimulatedJob,
        came: Time,
    ) -> Result<(), SimulationError> {
        let spec = self.spec_of(&plan, came);
        let (containers, _) = self.settings.total_slots();
        let maxima = self
            .engine
            .maxima(&spec, u32::try_from(containers).unwrap_or(u32::MAX));
        if let Some((queue, most)) = maxima.iter().find(|(_, most)| *most < 2) {
            let job = plan.name.clone();
            let queue = queue.clone();
            let most = *most;
            return Err(SimulationError::NoRoom { job, queue, most });
        }
        self.masters.arrivals += 1;
        let key = (self.engine.rank(&spec), self.masters.arrivals);
        let limits = Limits {
            queue: plan.queue.clone(),
            maxima,
        };
        let held = WaitingJob {
            job: (plan, came),
            limits,
        };
        self.masters
            .held_back
            .entry(held.limits.queue.clone())
            .or_default()
            .insert(key, held);
        self.start_masters();
        Ok(())
    }

    /// Starts as many masters as the limits allow; one container is left for tasks.
    fn start_masters(&mut self) {
        let most = self.settings.masters_max.map_or(u64::MAX, u64::from);
        let (containers, _) = self.settings.total_slots();
        while (self.masters.active.len() as u64) + 1 < containers {
            let Some(WaitingJob {
                job: (plan, came),
                limits,
            }) = self.masters.take_next(most)
            else {
                return;
            };
            let mut master = SimulatedJob::new(format!("{} (master)", plan.name), plan.submit);
            master.user = plan.user.clone();
            master.queue = plan.queue.clone();
            master.priority = plan.priority;
            master.deadline = plan.deadline;
            let master = master.with_maps(1, Span(0));
            let id = self.submit(master, came, Some(Management::Master { of: None }));
            self.masters.count(id, limits);
            self.masters.starting.insert(id.0, (plan, came));
        }
    }

    /// Returns the start time of a master, or `None` for other attempts. Masters start one after another.
    pub(super) fn start_of_master(&mut self, place: u32) -> Option<Span> {
        let job = self.attempts.at(place).id.task.job;
        if !self.jobs.at_mut(job).is_master() {
            return None;
        }
        let ends = self.clock.now().max(self.masters.free_at) + self.settings.overheads.master;
        self.masters.free_at = ends;
        Some(ends.since(self.clock.now()))
    }

    /// Submits the job of a master that has started. A master restarted after the loss of its machine
    /// continues, or ends if its job has.
    pub(super) fn master_started(&mut self, place: u32) {
        let id = self.attempts.at(place).id.task.job;
        let Some(Management::Master { of }) = self.jobs.at_mut(id).management else {
            return;
        };
        match (self.masters.starting.remove(&id.0), of) {
            (Some((plan, came)), _) => {
                let job = self.submit(plan, came, Some(Management::Managed { by: id }));
                self.jobs.at_mut(id).management = Some(Management::Master { of: Some(job) });
            }
            (None, Some(job)) if self.jobs.get_mut(job).is_some() => {}
            (None, _) => self.master_ends(place),
        }
    }

    /// Ends the master of a job that has ended.
    pub(super) fn managed_ended(&mut self, master: JobId) {
        self.masters.uncount(master);
        let managing = self.workers.places().find(|place| {
            let attempt = self.attempts.at(*place);
            attempt.id.task.job == master && attempt.phase == Phase::Managing
        });
        if let Some(place) = managing {
            self.master_ends(place);
        }
        self.start_masters();
    }

    fn master_ends(&mut self, place: u32) {
        self.charge_slot_time(place);
        self.set_phase(place, Phase::Ended);
        self.attempts.at_mut(place).commit_requested = true;
        self.send_report(place, Report::CommitRequested);
    }
}
