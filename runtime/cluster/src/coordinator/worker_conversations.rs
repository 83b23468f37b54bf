//! The coordinator's conversations with workers: hello, messages and silence. Assigns each connection to a
//! worker and declares silent workers lost.

use std::time::Duration;

use napreduce_engine::delivery::Receipt;
use napreduce_engine::{Event, WorkerId, WorkerState};
use napreduce_local::coordinator::{Caller, Extra, Identity, Link};
#[cfg(feature = "simulated")]
use napreduce_local::world::{Fact, note};
use napreduce_local::world::{Situation, reached};
use napreduce_protocol::{FromWorker, Hello, ToWorker, whole_millis};

use super::ClusterCoordinator;

/// How a worker was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Its process has died.
    Crashed,
    /// Its process may live: it is cut off, stopped, or cannot be trusted.
    CutOff,
}

impl ClusterCoordinator {
    /// Handles a hello on a new connection: a known worker continues, any other gets a number.
    pub(super) fn on_hello(&mut self, hello: Hello, caller: Caller) {
        let journal = self.journal.header().journal;
        let Some((worker, link)) = self.claimed_link(&hello, journal) else {
            let worker = self.join(&hello);
            return self.connect(worker, 0, caller);
        };
        let same_start = link.identity().incarnation == hello.incarnation;
        let same_number = match hello.before {
            Some(before) => before == (journal, worker),
            None => hello.received == 0,
        };
        if same_start && same_number && link.can_resume_after(hello.received) {
            reached(Situation::WorkerReconnected);
            self.local
                .log(&format!("{worker} ({}) reconnected", hello.name));
            return self.connect(worker, hello.received, caller);
        }
        if let Some(reason) = self.name_is_taken(worker, &hello) {
            reached(Situation::WorkerRefused);
            self.local
                .log(&format!("refused a worker on {}: {reason}", hello.host));
            // A worker that does not wait for the answer gets it the next time.
            let _ = caller.messages.send(ToWorker::Refused {
                reason,
                name_free_in_millis: Some(whole_millis(self.configuration.liveness)),
            });
            return;
        }
        reached(Situation::WorkerReplaced);
        let reason = format!("replaced by a later start of {}", hello.name);
        let loss = if same_start {
            Loss::CutOff
        } else {
            Loss::Crashed
        };
        self.lose(worker, reason, loss);
        let worker = self.join(&hello);
        self.connect(worker, 0, caller);
    }

    /// Returns why a worker cannot replace a live worker of the same name, if so. A worker in the same
    /// directory counts as live only while it is connected, since its successor holds the directory's lock.
    fn name_is_taken(&self, worker: WorkerId, hello: &Hello) -> Option<String> {
        let link = self.local.state().links().get(&worker)?;
        let holder = link.identity();
        if holder.incarnation == hello.incarnation {
            return None;
        }
        let is_in_same_place = holder.host == hello.host && holder.directory == hello.directory;
        let is_silent = link.heard.silence() > self.configuration.liveness;
        if !link.is_connected() && (is_in_same_place || is_silent) {
            return None;
        }
        Some(format!(
            "worker name {} is in use by {worker} on {} in {}; choose another with --name",
            holder.name,
            holder.host,
            holder.directory.display()
        ))
    }

    /// Finds the worker's link by number, else by name. A leaving worker is only found by number, since its
    /// name may already belong to its successor.
    fn claimed_link(&self, hello: &Hello, journal: u64) -> Option<(WorkerId, &Link)> {
        let links = self.local.state().links();
        if let Some((numbered_by, worker)) = hello.before
            && numbered_by == journal
            && let Some(link) = links.get(&worker)
            && link.identity().name == hello.name
        {
            return Some((worker, link));
        }
        for (worker, link) in links {
            if link.identity().name == hello.name && !link.is_leaving() {
                return Some((*worker, link));
            }
        }
        None
    }

    fn join(&mut self, hello: &Hello) -> WorkerId {
        let journal = self.journal.header().journal;
        let next = self.local.state().next_worker();
        if hello.before == Some((journal, next)) {
            // An earlier coordinator gave it this number, and its journal has lost that. The worker must see that it is new.
            self.local.state_mut().number_workers_above(next);
        }
        let worker = self.local.state().next_worker();
        let identity = Identity {
            name: hello.name.clone(),
            incarnation: hello.incarnation,
            slots: hello.slots,
            host: hello.host.clone(),
            rack: hello.rack.clone(),
            data_address: hello.data_address.clone(),
            directory: hello.directory.clone(),
            architecture: hello.architecture.clone(),
            isolation: hello.isolation.clone(),
        };
        self.local.log(&format!(
            "{worker} joined: {} on {} with {} map and {} reduce slots",
            hello.name, hello.host, hello.slots.map, hello.slots.reduce
        ));
        #[cfg(feature = "simulated")]
        note(&Fact::WorkerJoined {
            worker,
            name: &hello.name,
        });
        let joined = identity.joined(worker);
        self.local
            .enter_with(Some(joined), vec![Extra::Joined { worker, identity }]);
        if hello.memory > 0 {
            let memory = Event::WorkerMemory {
                worker,
                bytes: hello.memory,
            };
            self.local.enter_with(Some(memory), Vec::new());
        }
        worker
    }

    /// Attaches a connection to its worker's link. `received` is the number of the last order that the worker has
    /// received, 0 for a new one.
    fn connect(&mut self, worker: WorkerId, received: u64, caller: Caller) {
        let Some(link) = self.local.state_mut().link_mut(worker) else {
            return;
        };
        let welcome = ToWorker::Welcome {
            worker,
            journal: self.journal.header().journal,
            received: link.received(),
            heartbeat_millis: whole_millis(self.configuration.heartbeat),
            silence_millis: whole_millis(self.configuration.liveness),
        };
        if let Err(error) = link.acknowledge(received) {
            return self.local.log(&format!("warning: {worker}: {error}"));
        }
        self.connections.insert(caller.connection, worker);
        link.connect(caller, received, welcome);
        self.local.state_mut().touch(worker);
    }

    pub(super) fn on_disconnected(&mut self, connection: u64) {
        let Some(worker) = self.connections.remove(&connection) else {
            return;
        };
        let Some(link) = self.local.state_mut().link_mut(worker) else {
            return;
        };
        if !link.disconnect(connection) {
            return;
        }
        if link.is_leaving() {
            self.local.state_mut().remove_link(worker);
            self.local.log(&format!("{worker} has left"));
        } else {
            self.local.log(&format!(
                "the connection of {worker} is broken; waiting for it to reconnect"
            ));
        }
    }

    pub(super) fn on_message(&mut self, connection: u64, message: FromWorker) {
        let Some(&worker) = self.connections.get(&connection) else {
            return;
        };
        let Some(link) = self.local.state_mut().link_mut(worker) else {
            return;
        };
        match message {
            FromWorker::Hello(_) => {
                self.hang_up(connection, worker, "protocol error: second Hello")
            }
            FromWorker::Reported {
                number,
                age_micros,
                report,
            } => match link.classify_report(number) {
                Receipt::Fresh => {
                    let age = Duration::from_micros(age_micros);
                    let at = self.local.clock().before_now(age);
                    self.local.on_report(worker, at, report);
                }
                Receipt::Duplicate => {}
                Receipt::Gap => {
                    self.hang_up(connection, worker, "protocol error: a report is missing")
                }
            },
            FromWorker::Received { through } => {
                if let Err(error) = link.acknowledge(through) {
                    self.lose(worker, error.to_string(), Loss::CutOff);
                }
            }
            FromWorker::Heartbeat { progress, memory } => {
                link.ask_for_answer();
                link.set_memory(memory);
                self.local.state_mut().touch(worker);
                self.local.on_progress(worker, &progress);
            }
        }
    }

    /// Closes a connection that cannot be trusted; the worker reconnects.
    fn hang_up(&mut self, connection: u64, worker: WorkerId, why: &str) {
        self.local
            .log(&format!("dropped the connection of {worker}: {why}"));
        self.on_disconnected(connection);
    }

    /// Declares workers lost that were silent for too long. `paused` is the time since the last check: after
    /// a pause of this process itself, messages may be waiting unread.
    pub(super) fn check_liveness(&mut self, paused: Duration) {
        let liveness = self.configuration.liveness;
        if paused > liveness / 2 {
            reached(Situation::CoordinatorPaused);
            self.local.state_mut().begin_to_listen();
            return;
        }
        let mut silent = Vec::new();
        for (worker, link) in self.local.state().links() {
            if link.heard.silence() > liveness {
                // A crashed process closes its connection; a worker that is only silent is cut off or stopped.
                let loss = if link.is_connected() {
                    Loss::CutOff
                } else {
                    Loss::Crashed
                };
                silent.push((*worker, loss));
            }
        }
        for (worker, loss) in silent {
            reached(Situation::WorkerSilent);
            let reason = format!("no message for {:.1} s", liveness.as_secs_f64());
            self.lose(worker, reason, loss);
        }
    }

    /// Declares a worker lost, with everything it runs and holds.
    fn lose(&mut self, worker: WorkerId, reason: String, loss: Loss) {
        if let Some(link) = self.local.state().links().get(&worker)
            && link.is_leaving()
        {
            self.local.state_mut().remove_link(worker);
            return;
        }
        self.local.log(&format!("{worker} is lost: {reason}"));
        let lost = Event::WorkerLost {
            worker,
            crashed: loss == Loss::Crashed,
        };
        self.local
            .enter_with(Some(lost), vec![Extra::Lost { worker, reason }]);
    }

    /// Returns whether a worker can receive orders.
    pub(super) fn is_there(&self, worker: WorkerId) -> bool {
        match self.local.state().view().worker(worker) {
            Some(known) => !matches!(known.state(), WorkerState::Unknown | WorkerState::Lost),
            None => false,
        }
    }
}
