//! The workers as operators see them: the list, and drains.

use napreduce_engine::{AttemptState, Blame, Event, TaskKind, Worker, WorkerId, WorkerState};
use napreduce_local::coordinator::{Extra, Link};
use napreduce_protocol::requests::{DrainWorker, ListWorkers, UndrainWorker};
use napreduce_protocol::{SuspendedMemory, WorkerPhase, WorkerSummary, whole_millis};

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::{Handle, check_reason};

impl Handle for ListWorkers {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<Vec<WorkerSummary>, Refusal> {
        Ok(coordinator.list_workers())
    }
}

impl Handle for DrainWorker {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<(), Refusal> {
        let DrainWorker {
            worker,
            hand_back,
            reason,
        } = self;
        check_reason(&reason)?;
        if !coordinator.is_there(worker) {
            return Err(Refusal::NoSuchWorker(worker));
        }
        let event = Event::WorkerDrainRequested {
            worker,
            hand_back,
            grace: None,
        };
        coordinator
            .local
            .enter_with(Some(event), vec![Extra::DrainAsked { worker, reason }]);
        Ok(())
    }
}

impl Handle for UndrainWorker {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<(), Refusal> {
        let UndrainWorker { worker, reason } = self;
        check_reason(&reason)?;
        if !coordinator.is_there(worker) {
            return Err(Refusal::NoSuchWorker(worker));
        }
        let engine = coordinator.local.state().engine();
        engine
            .can_undrain(worker)
            .map_err(|why| Refusal::Worker { worker, why })?;
        let event = Event::WorkerUndrainRequested { worker };
        coordinator
            .local
            .enter_with(Some(event), vec![Extra::UndrainAsked { worker, reason }]);
        Ok(())
    }
}

impl ClusterCoordinator {
    pub(super) fn list_workers(&self) -> Vec<WorkerSummary> {
        let state = self.local.state();
        let mut workers: Vec<WorkerSummary> = state
            .links()
            .keys()
            .filter_map(|id| self.worker_summary(*id))
            .collect();
        let now_millis = self.configuration.world.clock.unix_micros() / 1_000;
        for gone in state.gone().summaries(now_millis) {
            // A worker that may leave is listed by its link until it has left.
            if !state.links().contains_key(&gone.worker) {
                workers.push(gone);
            }
        }
        workers.sort_by_key(|worker| worker.worker);
        workers
    }

    fn worker_summary(&self, id: WorkerId) -> Option<WorkerSummary> {
        let state = self.local.state();
        let link = state.links().get(&id)?;
        let worker = state.view().worker(id)?;
        let phase = worker_phase(link, worker);
        let mut blame = None;
        if matches!(phase, WorkerPhase::Up | WorkerPhase::Excluded) {
            blame = match worker.exclusion() {
                Some(exclusion) => Some(&exclusion.blame),
                None => worker.blame(),
            };
        }
        let mut remarks = Vec::new();
        remarks.extend(phase_remark(link, worker, phase));
        remarks.extend(blame.map(Blame::in_words));
        let unread: Vec<_> = state.view().unread_from(id).collect();
        if !unread.is_empty() {
            remarks.push(format!("not readable from {}", unread.join(", ")));
        }
        let slots = |kind| {
            let total = worker.slots(kind);
            let used = total - worker.free(kind);
            (total, used)
        };
        let mut memory = link.memory().clone();
        // Its last report may predate later orders.
        memory
            .suspended
            .retain(|suspended| self.is_suspended(suspended));
        let mut reason = None;
        if phase == WorkerPhase::Draining {
            reason = link.drain_reason().map(str::to_owned);
        }
        let identity = link.identity();
        Some(WorkerSummary {
            worker: id,
            name: identity.name.clone(),
            host: identity.host.clone(),
            rack: identity.rack.clone(),
            state: phase,
            remarks,
            failing: blame.map(|blame| blame.last),
            isolation: identity.isolation.clone(),
            gone_millis: None,
            reason,
            map_slots: slots(TaskKind::Map),
            reduce_slots: slots(TaskKind::Reduce),
            silent_millis: whole_millis(link.heard.silence()),
            memory,
        })
    }

    fn is_suspended(&self, memory: &SuspendedMemory) -> bool {
        match self.local.state().view().attempt(memory.attempt) {
            Some(attempt) => attempt.state() == AttemptState::Suspended,
            None => false,
        }
    }
}

fn worker_phase(link: &Link, worker: &Worker) -> WorkerPhase {
    if link.is_leaving() {
        return WorkerPhase::Leaving;
    }
    match worker.state() {
        // The remark reports the missing connection instead of an exclusion.
        WorkerState::Up if !link.is_connected() => WorkerPhase::Up,
        WorkerState::Up if worker.exclusion().is_some() || worker.lacks().is_some() => {
            WorkerPhase::Excluded
        }
        WorkerState::Up => WorkerPhase::Up,
        WorkerState::Draining => WorkerPhase::Draining,
        WorkerState::Unknown | WorkerState::Lost => WorkerPhase::Lost,
    }
}

/// Returns the remark that explains a worker's phase, if any.
fn phase_remark(link: &Link, worker: &Worker, phase: WorkerPhase) -> Option<String> {
    match phase {
        WorkerPhase::Up if !link.is_connected() => Some("but not connected".to_owned()),
        WorkerPhase::Up if worker.is_cleared() => {
            Some("kept for a task that runs alone".to_owned())
        }
        // An exclusion is explained by its blame.
        WorkerPhase::Excluded if worker.exclusion().is_none() => worker.lacks().map(str::to_owned),
        _ => None,
    }
}
