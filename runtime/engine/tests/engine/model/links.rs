//! Both ends of the links between coordinator and workers: sending, delivery and reconnection.

use std::collections::BTreeMap;

use napreduce_engine::delivery::Receipt;
use napreduce_engine::{Effect, WorkerId};

use crate::model::coordinator::{Coordinator, job_of};
use crate::model::network::{Message, ToWorker};
use crate::model::world::{World, spec};

impl World {
    /// Sends the messages that these effects added to the outboxes of connected workers.
    pub(crate) fn send_new(&mut self, effects: &[Effect]) {
        let mut added: BTreeMap<WorkerId, u64> = BTreeMap::new();
        for effect in effects {
            if let Effect::Send { worker, .. } | Effect::WorkerMayLeave { worker } = effect {
                *added.entry(*worker).or_default() += 1;
            }
        }
        for (worker, count) in added
            .into_iter()
            .filter(|(worker, _)| self.connected.contains(worker))
        {
            let outbox = &self.coordinator.sessions[&worker].outbox;
            for (number, message) in outbox.unacknowledged_from(outbox.next_number() - count) {
                let message = Message::ToWorker(number, message.clone());
                self.network.send(&mut self.rng, worker, message);
            }
        }
    }

    /// Delivers the next message.
    pub(crate) fn arrive(&mut self) {
        let Some((id, message)) = self.network.arrive(&mut self.rng) else {
            return;
        };
        match message {
            Message::ToWorker(number, message) => self.arrive_at_worker(id, number, message),
            Message::FromWorker(number, attempt, report) => {
                if !self.coordinator.knows(id) {
                    return;
                }
                match self.coordinator.accepts(id, number) {
                    Receipt::Fresh => {
                        let event = Coordinator::reported(id, attempt, report);
                        self.handle(event, Some(number));
                    }
                    Receipt::Duplicate => self.network.note("duplicate dropped"),
                    Receipt::Gap => self.disconnect_for_a_gap(id),
                }
            }
            Message::WorkerReceived(through) => {
                if let Some(session) = self.coordinator.sessions.get_mut(&id) {
                    session
                        .outbox
                        .acknowledge(through)
                        .expect("a worker received what was sent");
                }
            }
            Message::CoordinatorReceived(through) => {
                if let Some(worker) = self.workers.get_mut(&id) {
                    worker
                        .outbox
                        .acknowledge(through)
                        .expect("the coordinator journaled what was sent");
                }
            }
        }
    }

    pub(crate) fn arrive_at_worker(&mut self, id: WorkerId, number: u64, message: ToWorker) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let spec = match &message {
            ToWorker::Obey(order) => self.books.specs[&job_of(order)].clone(),
            ToWorker::Leave => spec(0, 0),
        };
        let arrival = worker.receive(&mut self.rng, number, message, &spec);
        self.books.check_obeyed(id, &worker.obeyed);
        if worker.left {
            self.workers.remove(&id);
            self.connected.remove(&id);
        }
        match arrival {
            Receipt::Fresh => {}
            Receipt::Duplicate => self.network.note("duplicate dropped"),
            Receipt::Gap => self.disconnect_for_a_gap(id),
        }
    }

    pub(crate) fn disconnect_for_a_gap(&mut self, id: WorkerId) {
        self.network.note("gap refused");
        self.connected.remove(&id);
    }

    pub(crate) fn send_reports_from(&mut self, id: WorkerId, number: u64) {
        let worker = &self.workers[&id];
        for (number, (attempt, report)) in worker.outbox.unacknowledged_from(number) {
            let message = Message::FromWorker(number, *attempt, report.clone());
            self.network.send(&mut self.rng, id, message);
        }
    }

    /// Sends the acknowledgements of both sides.
    pub(crate) fn acknowledge(&mut self) {
        let Some(id) = self.any_worker().filter(|id| self.connected.contains(id)) else {
            return;
        };
        let through = self.workers[&id].inbox.received();
        self.network
            .send(&mut self.rng, id, Message::WorkerReceived(through));
    }

    pub(crate) fn coordinator_reports_what_it_holds(&mut self) {
        let Some(id) = self.any_worker().filter(|id| self.connected.contains(id)) else {
            return;
        };
        let through = self.coordinator.sessions[&id].inbox.received();
        self.network
            .send(&mut self.rng, id, Message::CoordinatorReceived(through));
    }

    pub(crate) fn connect_somebody(&mut self) {
        if let Some(id) = self.any_worker() {
            self.connect(id);
        }
    }

    /// Connects a worker again: each side reports what it has received, and the other resends the rest. A
    /// worker that was declared lost meanwhile kills its attempts and registers as a new worker.
    pub(crate) fn connect(&mut self, id: WorkerId) {
        if self.network.cut.contains(&id) {
            return;
        }
        if !self.coordinator.knows(id) {
            self.network.note("worker superseded");
            self.workers.remove(&id);
            self.connected.remove(&id);
            return self.join();
        }
        self.connected.insert(id);
        let worker = self
            .workers
            .get_mut(&id)
            .expect("the caller chose one that runs");
        let session = self.coordinator.sessions.get_mut(&id).expect("it joined");
        session
            .outbox
            .acknowledge(worker.inbox.received())
            .expect("a worker received what was sent");
        worker
            .outbox
            .acknowledge(session.inbox.received())
            .expect("the coordinator journaled what was sent");
        let again: Vec<_> = session
            .outbox
            .unacknowledged()
            .map(|(number, one)| (number, one.clone()))
            .collect();
        for (number, message) in again {
            self.network
                .send(&mut self.rng, id, Message::ToWorker(number, message));
        }
        self.send_reports_from(id, 0);
    }
}
