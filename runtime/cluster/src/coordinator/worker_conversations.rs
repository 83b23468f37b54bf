//! The coordinator's conversations with workers: hello, messages and silence. Assigns each connection to a
//! worker and declares silent workers lost.

use std::time::Duration;

use napreduce_engine::delivery::Receipt;
use napreduce_engine::{Event, WorkerId, WorkerState};
use napreduce_local::coordinator::{Caller, Extra, Identity, Link, LiveJob, of_report};
use napreduce_protocol::{FromWorker, Hello, ToWorker};

use super::ClusterCoordinator;

impl ClusterCoordinator {
    /// Handles a hello on a new connection: a known worker continues, any other gets a number.
    pub(super) fn on_hello(&mut self, hello: Hello, caller: Caller) {
        let journal = self.journal.header().journal;
        let known = self.claimed_link(&hello, journal).map(|(worker, link)| {
            let before = hello
                .before
                .map_or(hello.received == 0, |before| before == (journal, worker));
            let same = link.identity().incarnation == hello.incarnation && before;
            (worker, same && link.can_resume_after(hello.received))
        });
        // A new worker has received no orders under its number yet.
        let (worker, received) = match known {
            Some((worker, true)) => {
                self.local
                    .log(&format!("{worker} ({}) reconnected", hello.name));
                (worker, hello.received)
            }
            Some((worker, false)) => {
                if let Some(reason) = self.name_is_taken(worker, &hello) {
                    self.local
                        .log(&format!("refused a worker on {}: {reason}", hello.host));
                    // A worker that does not wait for the answer gets it the next time.
                    let _ = caller.messages.send(ToWorker::Refused {
                        reason,
                        name_taken: true,
                    });
                    return;
                }
                let same = self
                    .local
                    .state()
                    .links()
                    .get(&worker)
                    .map(|link| link.identity().incarnation);
                let crashed = same != Some(hello.incarnation);
                self.lose(
                    worker,
                    format!("replaced by a later start of {}", hello.name),
                    crashed,
                );
                (self.join(&hello), 0)
            }
            None => (self.join(&hello), 0),
        };
        self.connect(worker, received, caller);
    }

    /// Returns why a worker cannot replace a live worker of the same name, if so. A worker in the same
    /// directory counts as live only while it is connected, since its successor holds the directory's lock.
    fn name_is_taken(&self, worker: WorkerId, hello: &Hello) -> Option<String> {
        let link = self.local.state().links().get(&worker)?;
        let liveness = self.configuration.liveness;
        let Identity {
            name,
            incarnation,
            host,
            directory,
            ..
        } = link.identity();
        let same_place = (host, directory) == (&hello.host, &hello.directory);
        let heard = link.heard.silence() <= liveness && !same_place;
        let alive = *incarnation != hello.incarnation && (link.is_connected() || heard);
        alive.then(|| {
            let place = directory.display();
            format!(
                "worker name {name} is in use by {worker} on {host} in {place}; choose another with --name"
            )
        })
    }

    /// Finds the worker's link by number, else by name. A leaving worker is only found by number, since its
    /// name may already belong to its successor.
    fn claimed_link(&self, hello: &Hello, journal: u64) -> Option<(WorkerId, &Link)> {
        let links = self.local.state().links();
        let number = hello
            .before
            .filter(|(of, _)| *of == journal)
            .map(|(_, worker)| worker);
        let by_number = number.and_then(|worker| Some((worker, links.get(&worker)?)));
        let by_name = links
            .iter()
            .map(|(worker, link)| (*worker, link))
            .filter(|(_, link)| !link.is_leaving());
        by_number
            .into_iter()
            .chain(by_name)
            .find(|(_, link)| link.identity().name == hello.name)
    }

    fn join(&mut self, hello: &Hello) -> WorkerId {
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
        let joined = identity.joined(worker);
        self.local
            .enter_with(Some(joined), vec![Extra::Joined { worker, identity }]);
        if hello.memory > 0 {
            self.local.enter_with(
                Some(Event::WorkerMemory {
                    worker,
                    bytes: hello.memory,
                }),
                Vec::new(),
            );
        }
        worker
    }

    fn connect(&mut self, worker: WorkerId, received: u64, caller: Caller) {
        let Some(link) = self.local.state_mut().link_mut(worker) else {
            return;
        };
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let welcome = ToWorker::Welcome {
            worker,
            journal: self.journal.header().journal,
            received: link.received(),
            heartbeat_millis: millis(self.configuration.heartbeat),
            silence_millis: millis(self.configuration.liveness),
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
            } => match link.look(number) {
                Receipt::Fresh => {
                    let at = self
                        .local
                        .clock()
                        .before_now(Duration::from_micros(age_micros));
                    let report = self.local.look_at_storage(report);
                    let (event, mut extra) = of_report(worker, number, at, report);
                    extra.retain(|extra| self.keeps(extra));
                    self.local.add_to_batch(event, extra);
                }
                Receipt::Duplicate => {}
                Receipt::Gap => {
                    self.hang_up(connection, worker, "protocol error: a report is missing")
                }
            },
            FromWorker::Received { through } => {
                if let Err(error) = link.acknowledge(through) {
                    self.lose(worker, error.to_string(), false);
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

    /// Returns whether to keep an extra: the output of failed attempts is optional and limited per job.
    fn keeps(&self, extra: &Extra) -> bool {
        let Extra::Printed { attempt, .. } = extra else {
            return true;
        };
        self.configuration.failed_logs
            && self
                .local
                .state()
                .jobs()
                .get(&attempt.task.job)
                .is_some_and(LiveJob::has_room_for_logs)
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
            self.local.state_mut().begin_to_listen();
            return;
        }
        let silent = self
            .local
            .state()
            .links()
            .iter()
            .filter(|(_, link)| link.heard.silence() > liveness);
        let silent: Vec<WorkerId> = silent.map(|(worker, _)| *worker).collect();
        for worker in silent {
            // A crashed process closes its connection; a worker that is only silent is cut off or stopped.
            let crashed = self
                .local
                .state()
                .links()
                .get(&worker)
                .is_some_and(|link| !link.is_connected());
            self.lose(
                worker,
                format!("no message for {:.1} s", liveness.as_secs_f64()),
                crashed,
            );
        }
    }

    /// Declares a worker lost, with everything it runs and holds; `crashed` if its process died.
    pub(super) fn lose(&mut self, worker: WorkerId, reason: String, crashed: bool) {
        let leaving = self
            .local
            .state()
            .links()
            .get(&worker)
            .is_some_and(Link::is_leaving);
        if leaving {
            self.local.state_mut().remove_link(worker);
            return;
        }
        self.local.log(&format!("{worker} is lost: {reason}"));
        let lost = Event::WorkerLost { worker, crashed };
        self.local
            .enter_with(Some(lost), vec![Extra::Lost { worker, reason }]);
    }

    /// Returns whether a worker can receive orders.
    pub(super) fn is_there(&self, worker: WorkerId) -> bool {
        let state = self
            .local
            .state()
            .view()
            .worker(worker)
            .map(napreduce_engine::Worker::state);
        !matches!(state, None | Some(WorkerState::Unknown | WorkerState::Lost))
    }
}
