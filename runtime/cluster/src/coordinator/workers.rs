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
            .filter_map(|worker| self.worker_summary(*worker))
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

    fn worker_summary(&self, worker: WorkerId) -> Option<WorkerSummary> {
        let state = self.local.state();
        let link = state.links().get(&worker)?;
        let known = state.view().worker(worker)?;
        let phase = worker_phase(link, known);
        let mut remarks: Vec<String> = phase_remark(link, known, phase).into_iter().collect();
        let mut blame = None;
        if matches!(phase, WorkerPhase::Up | WorkerPhase::Excluded) {
            blame = match known.exclusion() {
                Some(exclusion) => Some(&exclusion.blame),
                None => known.blame(),
            };
        }
        remarks.extend(blame.map(Blame::in_words));
        let unread: Vec<_> = state.view().unread_from(worker).collect();
        if !unread.is_empty() {
            remarks.push(format!("not readable from {}", unread.join(", ")));
        }
        let slots = |kind| (known.slots(kind), known.slots(kind) - known.free(kind));
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
            worker,
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

fn worker_phase(link: &Link, known: &Worker) -> WorkerPhase {
    if link.is_leaving() {
        return WorkerPhase::Leaving;
    }
    match known.state() {
        WorkerState::Up if !link.is_connected() => WorkerPhase::Up,
        WorkerState::Up if known.exclusion().is_some() || known.lacks().is_some() => {
            WorkerPhase::Excluded
        }
        WorkerState::Up => WorkerPhase::Up,
        WorkerState::Draining => WorkerPhase::Draining,
        WorkerState::Unknown | WorkerState::Lost => WorkerPhase::Lost,
    }
}

/// Returns what is to be said about a worker's phase.
fn phase_remark(link: &Link, known: &Worker, phase: WorkerPhase) -> Option<String> {
    match phase {
        WorkerPhase::Up if !link.is_connected() => Some("but not connected".to_owned()),
        WorkerPhase::Up if known.is_cleared() => Some("kept for a task that runs alone".to_owned()),
        // An exclusion is explained by its blame.
        WorkerPhase::Excluded if known.exclusion().is_none() => known.lacks().map(str::to_owned),
        _ => None,
    }
}
