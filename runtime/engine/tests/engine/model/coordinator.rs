//! The coordinator: the engine, a journal of events, and the undelivered messages of each worker. A recovered
//! engine replays the journal, from the beginning or a snapshot, and sends the same orders under the same
//! numbers. Everything stored passes through JSON.

use std::collections::BTreeMap;

use napreduce_engine::delivery::{Inbox, Outbox, Receipt};
use napreduce_engine::scenarios::InOrder;
use napreduce_engine::{
    Effect, Engine, EngineSettings, EngineSnapshot, Event, ExclusionSettings, Order, Report, Span,
    SpeculationSettings, Time, WorkerId, WorkerState,
};
use serde::{Deserialize, Serialize};

use crate::model::network::ToWorker;

/// The state of the link to a worker, which outlives connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub outbox: Outbox<ToWorker>,
    pub inbox: Inbox,
}

/// An entry of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    at: Time,
    /// The number of the worker's message, if the event came from a worker.
    number: Option<u64>,
    event: Event,
}

/// The state that survives a crash.
#[derive(Debug, Default)]
struct Journal {
    snapshot: Option<String>,
    entries: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Snapshot {
    engine: EngineSnapshot,
    sessions: Vec<(WorkerId, Session)>,
    handled: usize,
}

pub struct Coordinator {
    pub engine: Engine,
    pub sessions: BTreeMap<WorkerId, Session>,
    pub wake: Option<Time>,
    /// The number of handled events.
    handled: usize,
    journal: Journal,
}

pub fn settings() -> EngineSettings {
    EngineSettings {
        strict: true,
        exclusion: Some(ExclusionSettings {
            failures: 1,
            tasks: 1,
            span: Span::from_millis(20),
        }),
        shortage_span: Span::from_millis(2),
        speculation: Some(SpeculationSettings {
            minimum: Span::from_millis(5),
            finished_min: 1,
            slowdown_permille: 1500,
            period: Span::from_millis(4),
        }),
        ..EngineSettings::default()
    }
}

impl Coordinator {
    pub fn new() -> Coordinator {
        let engine = Engine::new(Box::new(InOrder), settings());
        let sessions = BTreeMap::new();
        let journal = Journal::default();
        Coordinator {
            engine,
            sessions,
            wake: None,
            handled: 0,
            journal,
        }
    }

    /// Classifies a numbered report: new, repeated or out of order. A new one counts only after its journal
    /// entry.
    pub fn accepts(&self, worker: WorkerId, number: u64) -> Receipt {
        let mut inbox = self.sessions[&worker].inbox;
        inbox.accept(number)
    }

    /// Journals an event before it has effects.
    pub fn journal(&mut self, at: Time, event: Event, number: Option<u64>) -> Entry {
        let entry = Entry { at, number, event };
        self.journal
            .entries
            .push(serde_json::to_string(&entry).expect("an event is plain data"));
        entry
    }

    /// Passes a journaled event to the engine.
    pub fn handle(&mut self, entry: Entry) -> Vec<Effect> {
        self.handled += 1;
        if let (Some(number), Event::Reported { worker, .. }) = (entry.number, &entry.event) {
            let session = self
                .sessions
                .get_mut(worker)
                .expect("a worker that reports has joined");
            assert_eq!(
                session.inbox.accept(number),
                Receipt::Fresh,
                "the journal holds what is no news"
            );
        }
        if let Event::WorkerJoined { worker, .. } = entry.event {
            self.sessions.insert(worker, Session::default());
        }
        if entry.event == Event::Woken {
            self.wake = None;
        }
        let effects = self.engine.handle(entry.at, entry.event);
        for effect in &effects {
            match effect {
                Effect::Send { worker, order } => self.tell(*worker, ToWorker::Obey(order.clone())),
                Effect::WorkerMayLeave { worker } => self.tell(*worker, ToWorker::Leave),
                Effect::WakeAt(time) => {
                    self.wake = Some(self.wake.map_or(*time, |before| before.min(*time)))
                }
                Effect::Record(_)
                | Effect::JobEnded { .. }
                | Effect::SubmitWanted { .. }
                | Effect::Warn { .. } => {}
            }
        }
        effects
    }

    fn tell(&mut self, worker: WorkerId, message: ToWorker) {
        self.sessions
            .get_mut(&worker)
            .expect("orders go to workers that joined")
            .outbox
            .push(message);
    }

    /// Returns whether a worker is a member of the cluster.
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.engine
            .view()
            .worker(worker)
            .is_some_and(|known| known.state() != WorkerState::Lost)
    }

    /// Writes a snapshot and begins a new journal.
    pub fn snapshot(&mut self) {
        let engine = self.engine.snapshot();
        let sessions = self
            .sessions
            .iter()
            .map(|(id, session)| (*id, session.clone()))
            .collect();
        let snapshot = Snapshot {
            engine,
            sessions,
            handled: self.handled,
        };
        let text = serde_json::to_string(&snapshot).expect("a snapshot is plain data");
        self.journal = Journal {
            snapshot: Some(text),
            entries: Vec::new(),
        };
    }

    pub fn has_snapshot(&self) -> bool {
        self.journal.snapshot.is_some()
    }

    /// Drops everything but the journal, and recovers. Returns the effects of the replayed events and the
    /// number of the first of them.
    pub fn recover(&mut self) -> (usize, Vec<Vec<Effect>>) {
        let journal = std::mem::take(&mut self.journal);
        let mut recovered = match &journal.snapshot {
            None => Coordinator::new(),
            Some(text) => {
                let snapshot: Snapshot = serde_json::from_str(text).expect("what was written");
                let engine = Engine::restore(snapshot.engine, Box::new(InOrder), settings())
                    .expect("a snapshot that is whole");
                let sessions = snapshot.sessions.into_iter().collect();
                let handled = snapshot.handled;
                let wake = engine.next_wake();
                Coordinator {
                    engine,
                    sessions,
                    wake,
                    handled,
                    journal: Journal::default(),
                }
            }
        };
        let first = recovered.handled;
        let entries = journal.entries.iter();
        let entries = entries.map(|line| serde_json::from_str(line).expect("what was written"));
        let effects = entries.map(|entry| recovered.handle(entry)).collect();
        let known = recovered.wake;
        let asked = recovered.engine.next_wake();
        assert!(
            known.is_some() == asked.is_some() && known <= asked,
            "to be woken {known:?}, not {asked:?}"
        );
        recovered.journal = journal;
        *self = recovered;
        (first, effects)
    }

    /// Converts a report to an event.
    pub fn reported(
        worker: WorkerId,
        attempt: napreduce_engine::AttemptId,
        report: Report,
    ) -> Event {
        Event::Reported {
            worker,
            attempt,
            report,
        }
    }
}

/// Returns the job of an order.
pub fn job_of(order: &Order) -> napreduce_engine::JobId {
    order.attempt().task.job
}
