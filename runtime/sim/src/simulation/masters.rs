//! Masters: each job has one, which holds a container from before the job's first task to its end.
//!
//! Owns who waits for a master, and the life of each. To the engine a master is a job of one map, whose
//! attempt ends when the job that it manages has: policies give it a container as they give one to any map.
//! Does not own containers, which are the engine's.

use std::collections::BTreeMap;
use std::sync::Arc;

use napreduce_core::{Report, Span, Time};

use super::Simulation;
use super::attempts::Phase;
use super::jobs::Management;
use crate::job::SimulatedJob;
use crate::run::SimulationError;

/// A job, and when it came.
type Came = (SimulatedJob, Time);

/// What is known of masters that have not started, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Masters {
    /// Jobs for which there is no room yet, by queue: more important ones first, then as they came.
    held_back: BTreeMap<Arc<str>, BTreeMap<(i64, u64), Came>>,
    /// Jobs whose master has not started, by its number.
    starting: BTreeMap<u32, Came>,
    /// How many of each queue there are.
    there: BTreeMap<Arc<str>, u32>,
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
        let held_back = self.held_back.values().flat_map(BTreeMap::values);
        held_back.chain(self.starting.values()).map(|(_, came)| *came)
    }

    /// The first job of a queue that is held back.
    fn take_next(&mut self, queue: &str) -> Option<(SimulatedJob, Time)> {
        let waiting = self.held_back.get_mut(queue)?;
        let (_, next) = waiting.pop_first()?;
        if waiting.is_empty() {
            self.held_back.remove(queue);
        }
        Some(next)
    }
}

impl Simulation {
    /// A job waits for its master.
    pub(super) fn await_master(&mut self, plan: SimulatedJob, came: Time) {
        let queue = plan.queue.clone();
        self.masters.came += 1;
        let place = (-i64::from(plan.priority), self.masters.came);
        self.masters.held_back.entry(queue.clone()).or_default().insert(place, (plan, came));
        self.fill_up(&queue);
    }

    /// Has masters of a queue started, as many as there may be.
    fn fill_up(&mut self, queue: &Arc<str>) {
        let most = self.settings.masters_max.unwrap_or(u32::MAX);
        while self.masters.there.get(queue).is_none_or(|there| *there < most) {
            let Some((plan, came)) = self.masters.take_next(queue) else { return };
            *self.masters.there.entry(queue.clone()).or_default() += 1;
            let mut master = SimulatedJob::new(format!("{} (master)", plan.name), plan.submit);
            (master.user, master.queue) = (plan.user.clone(), plan.queue.clone());
            (master.priority, master.deadline) = (plan.priority, plan.deadline);
            let master = master.with_maps(1, Span(0));
            let id = self.submit(master, came, Some(Management::Master { of: None }));
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
    pub(super) fn managed_ended(&mut self, master: napreduce_core::JobId) {
        let Some(job) = self.jobs.get_mut(master) else { return };
        let queue = job.plan.queue.clone();
        if let Some(there) = self.masters.there.get_mut(&queue) {
            *there -= 1;
        }
        let managing = self.workers.iter().flat_map(|worker| &worker.attempts).copied().find(|place| {
            let attempt = self.attempts.at(*place);
            attempt.id.task.job == master && attempt.phase == Phase::Managing
        });
        if let Some(place) = managing {
            self.master_ends(place);
        }
        self.fill_up(&queue);
    }

    fn master_ends(&mut self, place: u32) {
        self.bring_up_to_date(place);
        self.rest(place, Phase::Ended);
        self.attempts.at_mut(place).asked = true;
        self.tell(place, Report::CommitRequested);
    }

    /// Whether an attempt is a master, which nobody may take a container from.
    pub(super) fn refuse_master(&mut self, place: u32) -> Result<(), SimulationError> {
        let job = self.attempts.at(place).id.task.job;
        let job = self.jobs.at_mut(job);
        if job.is_master() {
            return Err(SimulationError::MasterTaken { master: job.plan.name.to_string() });
        }
        Ok(())
    }
}
