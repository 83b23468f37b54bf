//! Passes what the live code notes to the oracles, and counts the situations that it reaches.

use std::cell::RefCell;
use std::collections::BTreeMap;

use napreduce_engine::{JobOutcome, WorkerId};
use napreduce_local::world::{Fact, Observer, Situation};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::facts::Facts;
use crate::log::Log;
use crate::oracles::{DeliveryOracle, ExchangeOracle, GrantOracle, HoldOracle, JournalOracle};
use crate::reactions::Reached;

/// Observes one run.
pub struct WorldObserver {
    facts: Facts,
    log: Log,
    situations: RefCell<BTreeMap<Situation, u64>>,
    oracles: RefCell<Oracles>,
    /// The names of the workers that have joined.
    names: RefCell<BTreeMap<WorkerId, String>>,
    moments: UnboundedSender<Reached>,
}

struct Oracles {
    journal: JournalOracle,
    exchange: ExchangeOracle,
    grants: GrantOracle,
    holds: HoldOracle,
    delivery: DeliveryOracle,
}

impl WorldObserver {
    /// Creates the observer of a run.
    pub fn new(
        facts: &Facts,
        log: &Log,
        moments: UnboundedSender<Reached>,
        healed: Instant,
    ) -> WorldObserver {
        WorldObserver {
            facts: facts.clone(),
            log: log.clone(),
            situations: RefCell::default(),
            names: RefCell::default(),
            moments,
            oracles: RefCell::new(Oracles {
                journal: JournalOracle::default(),
                exchange: ExchangeOracle::default(),
                grants: GrantOracle::default(),
                holds: HoldOracle::new(facts),
                delivery: DeliveryOracle::new(healed),
            }),
        }
    }

    /// Returns the name of a worker.
    pub fn name_of(&self, worker: WorkerId) -> Option<String> {
        self.names.borrow().get(&worker).cloned()
    }

    /// Returns how often each situation was reached.
    pub fn situations(&self) -> BTreeMap<Situation, u64> {
        self.situations.borrow().clone()
    }
}

impl Observer for WorldObserver {
    fn on_reached(&self, situation: Situation) {
        if situation == Situation::WorkerForgotten && !self.facts.has_forgotten() {
            let what = "a coordinator has lost reports that it acknowledged";
            self.log.violation("oracle", what);
        }
        *self.situations.borrow_mut().entry(situation).or_default() += 1;
    }

    fn on_fact(&self, fact: &Fact<'_>) {
        if let Fact::WorkerJoined { worker, name } = fact {
            let name = (*name).to_owned();
            self.names.borrow_mut().insert(*worker, name);
        }
        if let Fact::JobEnding { job, .. } = fact {
            self.facts.note_ending(*job);
        }
        if let Fact::JobEnding {
            job,
            outcome: Some(JobOutcome::Succeeded),
        } = fact
        {
            self.facts.note_decided(*job);
        }
        if let Some(reached) = Reached::from_fact(fact) {
            // Sending fails after the faults, when the reactions have ended.
            let _ = self.moments.send(reached);
        }
        let mut oracles = self.oracles.borrow_mut();
        let mut found = vec![oracles.journal.judge(fact)];
        // A coordinator that has lost the end of its journal decides again.
        if !self.facts.has_forgotten() {
            found.push(oracles.exchange.judge(fact));
            found.push(oracles.grants.judge(fact));
            found.push(oracles.holds.judge(fact));
            found.push(oracles.delivery.judge(fact));
        }
        if matches!(fact, Fact::ReplayEnds) && oracles.grants.has_grants() {
            self.on_reached(Situation::RecoveredGranted);
        }
        for violation in found.into_iter().flatten() {
            self.log.violation("oracle", violation);
        }
    }
}
