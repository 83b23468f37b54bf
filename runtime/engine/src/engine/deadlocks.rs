//! Deadlocks with shared slots: reduces may hold all slots while the maps that they wait for have none, after
//! a map failed, was preempted, or lost its output. As in Hadoop, a reduce is then preempted for a map of its own
//! job. If nothing runs, attempts that are suspended behind masters restart on other workers.

use crate::cluster::{Attempt, Cluster};
use crate::engine::Engine;
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::preemption::{PreemptRequest, Primitive, Requester};
use crate::states::{AttemptState, JobState};

impl Engine {
    /// Frees slots for jobs that would wait forever for each other or for themselves.
    pub(super) fn resolve_deadlocks(&mut self) {
        if !self.rules.cluster.shares_slots {
            return;
        }
        self.notify_policy();
        let jobs: Vec<JobId> = self
            .rules
            .cluster
            .demand
            .deadlocked()
            .iter()
            .copied()
            .collect();
        for job in jobs {
            if let Some(attempt) = self.rules.cluster.reduce_in_the_way(job) {
                let settings = &self.rules.settings.preemption;
                self.rules.cluster.remove_request(attempt, settings);
                let reason = format!("the maps of {job} that it waits for have no slot");
                let kill = Primitive::Kill;
                let engine = Requester::Engine;
                let request =
                    PreemptRequest::new(attempt, kill, engine, reason, self.rules.cluster.now);
                self.rules.open_request(PreemptRequest {
                    beneficiary: Some(job),
                    ..request
                });
            }
        }
        if let Some(attempt) = self.rules.cluster.suspended_forever() {
            let reason = "masters hold every slot of its worker, and nothing else runs";
            self.rules.give_up(
                attempt,
                Primitive::Kill,
                Requester::Engine,
                reason.to_owned(),
            );
        }
    }
}

impl Cluster {
    /// Lists a changed job if its reduces wait for maps, none of which has a slot.
    pub(super) fn note_deadlock(&mut self, id: JobId) {
        if !self.shares_slots {
            return;
        }
        let deadlocked = self.jobs.get(&id).is_some_and(|job| job.waits_for_itself());
        self.demand.set_deadlocked(id, deadlocked);
    }

    /// Returns the youngest reduce of a job whose slot a map of the job could use; `None` if one is being
    /// preempted or another slot is available.
    fn reduce_in_the_way(&self, id: JobId) -> Option<AttemptId> {
        let cluster = self;
        let job = cluster.jobs.get(&id)?;
        let is_useful = |worker: WorkerId| job.wants_on(TaskKind::Map, worker);
        let has_slot = |worker: WorkerId| cluster.workers[&worker].has_slot_for(id, TaskKind::Map);
        let mut free = cluster
            .slots
            .free(TaskKind::Map)
            .iter()
            .map(|(_, worker)| worker);
        if free.any(|worker| is_useful(worker) && has_slot(worker)) {
            return None;
        }
        let (first, last) = AttemptId::range_of(id, TaskKind::Reduce);
        let reduces = || job.live.range(first..=last).map(|id| &cluster.attempts[id]);
        let is_leaving = |one: &Attempt| {
            let stops = !matches!(
                one.state,
                AttemptState::Launching | AttemptState::Running | AttemptState::Resuming
            );
            // A request that lets the reduce finish is never satisfied: it waits for maps.
            let is_preempted = cluster
                .requests
                .get(&one.id)
                .is_some_and(|request| request.primitive != Primitive::Wait);
            one.holds_slot && (stops || is_preempted)
        };
        if reduces().any(is_leaving) {
            return None;
        }
        let candidates = reduces().filter(|one| one.holds_slot && is_useful(one.worker));
        candidates
            .max_by_key(|one| (!cluster.requests.contains(&one.id), one.launched, one.id))
            .map(|one| one.id)
    }

    /// Returns a suspended attempt without a slot on its worker, if no running attempt could free one.
    fn suspended_forever(&self) -> Option<AttemptId> {
        let cluster = self;
        let nothing_suspended = TaskKind::ALL
            .iter()
            .all(|kind| cluster.suspended.is_empty(*kind));
        if nothing_suspended || cluster.attempts.values().any(|one| self.can_progress(one)) {
            return None;
        }
        let could_launch = |kind: &TaskKind| {
            cluster.demand.launchable(*kind) > 0 && cluster.slots.total_free(*kind) > 0
        };
        if TaskKind::ALL.iter().any(could_launch) {
            return None;
        }
        let waits = |one: &&Attempt| {
            one.state == AttemptState::Suspended
                && !one.is_held()
                && cluster.job(one.id.task.job).state == JobState::Active
                && !self.has_slot_to_resume(one.id)
        };
        cluster
            .attempts
            .values()
            .filter(waits)
            .map(|one| one.id)
            .min_by_key(|id| (id.task.kind, *id))
    }

    /// Returns whether an attempt can change its state without an order; false for masters, suspended attempts, and
    /// reduces that wait for maps.
    fn can_progress(&self, one: &Attempt) -> bool {
        match one.state {
            AttemptState::Suspended => false,
            AttemptState::Running => {
                let job = self.job(one.id.task.job);
                !one.is_master && !job.waits_for_maps(one.id.task.kind)
            }
            _ => true,
        }
    }
}
