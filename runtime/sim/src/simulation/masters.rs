//! Masters: each job has one, which holds a container from before the job's first task to its end.
//!
//! Owns who waits for a master, and the life of each. To the engine a master is a job of one map, whose
//! attempt ends when the job that it manages has: policies give it a container as they give one to any map.
//! Does not own containers, which are the engine's.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_engine::{JobId, Report, Span, Time};

use super::Simulation;
use super::attempts::Phase;
use super::jobs::Management;
use crate::job::SimulatedJob;
use crate::run::SimulationError;

/// A job, and when it came.
type Came = (SimulatedJob, Time);

/// A job whose master is held back.
#[derive(Debug)]
struct HeldBack {
    job: Came,
    place: Place,
}

/// Where masters of a job are counted: by the queue that it names, and by those of the policy that have a
/// maximum.
#[derive(Debug, Clone)]
struct Place {
    queue: Arc<str>,
    maxima: Vec<(String, u64)>,
}

/// What is known of masters that have not started, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Masters {
    /// Jobs for which there is no room yet, by queue: in the order of the policy, then as they came.
    held_back: BTreeMap<Arc<str>, BTreeMap<(i128, u64), HeldBack>>,
    /// Jobs whose master has not started, by its number.
    starting: BTreeMap<u32, Came>,
    /// Where each master that is there is counted.
    there: BTreeMap<JobId, Place>,
    of_queue: BTreeMap<Arc<str>, u64>,
    of_policy: BTreeMap<String, u64>,
    /// When the last one that was ordered to start has.
    free_at: Time,
    came: u64,
}

impl Masters {
    pub fn none_waits(&self) -> bool {
        self.held_back.is_empty() && self.starting.is_empty()
    }

    /// When the jobs came that no master manages yet.
    pub fn waiting_since(&self) -> impl Iterator<Item = Time> + '_ {
        let held_back = self.held_back.values().flat_map(BTreeMap::values).map(|held| &held.job);
        held_back.chain(self.starting.values()).map(|(_, came)| *came)
    }

    /// The first job that is held back and has room for its master: beside so many of its queue, and with a
    /// container left for tasks in each queue of the policy.
    fn take_next(&mut self, of_queue_max: u64) -> Option<HeldBack> {
        let count = |name: &String| self.of_policy.get(name).copied().unwrap_or_default();
        let has_room = |place: &Place| {
            self.of_queue.get(&place.queue).is_none_or(|there| *there < of_queue_max)
                && place.maxima.iter().all(|(name, most)| count(name) + 1 < *most)
        };
        let heads = self.held_back.values().filter_map(BTreeMap::first_key_value);
        let able = heads.filter(|(_, held)| has_room(&held.place));
        let (key, held) = able.min_by_key(|(key, _)| **key)?;
        let (key, queue) = (*key, held.place.queue.clone());
        let waiting = self.held_back.get_mut(&queue)?;
        let next = waiting.remove(&key);
        if waiting.is_empty() {
            self.held_back.remove(&queue);
        }
        next
    }

    fn count(&mut self, master: JobId, place: Place) {
        *self.of_queue.entry(place.queue.clone()).or_default() += 1;
        for (name, _) in &place.maxima {
            *self.of_policy.entry(name.clone()).or_default() += 1;
        }
        self.there.insert(master, place);
    }

    fn uncount(&mut self, master: JobId) {
        let Some(place) = self.there.remove(&master) else { return };
        let of_queue = self.of_queue.get_mut(&place.queue);
        let of_policy = place.maxima.iter().map(|(name, _)| name);
        of_queue.into_iter().for_each(|there| *there -= 1);
        for name in of_policy {
            if let Some(there) = self.of_policy.get_mut(name) {
                *there -= 1;
            }
        }
    }
}

impl Simulation {
    /// A job waits for its master.
    pub(super) fn await_master(&mut self, plan: SimulatedJob, came: Time) -> Result<(), SimulationError> {
        let spec = self.spec_of(&plan, came);
        let (containers, _) = self.settings.slots_in_all();
        let maxima = self.engine.maxima(&spec, u32::try_from(containers).unwrap_or(u32::MAX));
        if let Some((queue, most)) = maxima.iter().find(|(_, most)| *most < 2) {
            let (job, queue, most) = (plan.name.clone(), queue.clone(), *most);
            return Err(SimulationError::NoRoom { job, queue, most });
        }
        self.masters.came += 1;
        let key = (self.engine.rank(&spec), self.masters.came);
        let place = Place { queue: plan.queue.clone(), maxima };
        let held = HeldBack { job: (plan, came), place };
        self.masters.held_back.entry(held.place.queue.clone()).or_default().insert(key, held);
        self.fill_up();
        Ok(())
    }

    /// Has masters started, as many as there may be: a container is left for tasks.
    fn fill_up(&mut self) {
        let most = self.settings.masters_max.map_or(u64::MAX, u64::from);
        let (containers, _) = self.settings.slots_in_all();
        while (self.masters.there.len() as u64) + 1 < containers {
            let Some(HeldBack { job: (plan, came), place }) = self.masters.take_next(most) else { return };
            let mut master = SimulatedJob::new(format!("{} (master)", plan.name), plan.submit);
            (master.user, master.queue) = (plan.user.clone(), plan.queue.clone());
            (master.priority, master.deadline) = (plan.priority, plan.deadline);
            let master = master.with_maps(1, Span(0));
            let id = self.submit(master, came, Some(Management::Master { of: None }));
            self.masters.count(id, place);
            self.masters.starting.insert(id.0, (plan, came));
        }
    }

    /// How long the start of a master takes, if this is one: those that were ordered before it start
    /// before it.
    pub(super) fn start_of_master(&mut self, place: u32) -> Option<Span> {
        let job = self.attempts.at(place).id.task.job;
        if !self.jobs.at_mut(job).is_master() {
            return None;
        }
        let ends = self.now.max(self.masters.free_at) + self.settings.overheads.master;
        self.masters.free_at = ends;
        Some(ends.since(self.now))
    }

    /// A master has started: its job is submitted. One that was started again, since its machine was lost,
    /// goes on, or is no longer needed.
    pub(super) fn master_started(&mut self, place: u32) {
        let id = self.attempts.at(place).id.task.job;
        let Some(Management::Master { of }) = self.jobs.at_mut(id).management else { return };
        match (self.masters.starting.remove(&id.0), of) {
            (Some((plan, came)), _) => {
                let job = self.submit(plan, came, Some(Management::Managed { by: id }));
                self.jobs.at_mut(id).management = Some(Management::Master { of: Some(job) });
            }
            (None, Some(job)) if self.jobs.get_mut(job).is_some() => {}
            (None, _) => self.master_ends(place),
        }
    }

    /// The job of a master has ended, and so does the master.
    pub(super) fn managed_ended(&mut self, master: JobId) {
        self.masters.uncount(master);
        let managing = self.workers.iter().flat_map(|worker| &worker.attempts).copied().find(|place| {
            let attempt = self.attempts.at(*place);
            attempt.id.task.job == master && attempt.phase == Phase::Managing
        });
        if let Some(place) = managing {
            self.master_ends(place);
        }
        self.fill_up();
    }

    fn master_ends(&mut self, place: u32) {
        self.bring_up_to_date(place);
        self.rest(place, Phase::Ended);
        self.attempts.at_mut(place).asked = true;
        self.tell(place, Report::CommitRequested);
    }
}
