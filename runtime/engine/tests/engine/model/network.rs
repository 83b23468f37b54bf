//! A network that loses, repeats, delays and reorders messages, and whose links can be cut.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{AttemptId, Order, Report, WorkerId};
use rand::Rng;
use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

/// A numbered message to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    Obey(Order),
    Leave,
}

/// A message in transit between the coordinator and one worker.
#[derive(Debug, Clone)]
pub enum Message {
    ToWorker(u64, ToWorker),
    FromWorker(u64, AttemptId, Report),
    /// The worker has received all messages up to this number.
    WorkerReceived(u64),
    /// The coordinator has journaled all reports up to this number.
    CoordinatorReceived(u64),
}

#[derive(Debug, Default)]
pub struct Network {
    flying: Vec<(WorkerId, Message)>,
    pub cut: BTreeSet<WorkerId>,
    /// Whether the network no longer loses or reorders messages.
    pub calm: bool,
    pub happened: BTreeMap<&'static str, u64>,
}

impl Network {
    pub fn note(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    pub fn send(&mut self, rng: &mut Pcg32, worker: WorkerId, message: Message) {
        if self.calm {
            return self.flying.push((worker, message));
        }
        if self.cut.contains(&worker) || rng.random_bool(0.04) {
            return self.note("message lost");
        }
        if rng.random_bool(0.04) {
            self.note("message repeated");
            self.flying.push((worker, message.clone()));
        }
        self.flying.push((worker, message));
    }

    /// Returns the next delivered message; messages on a cut link are lost.
    pub fn arrive(&mut self, rng: &mut Pcg32) -> Option<(WorkerId, Message)> {
        if self.flying.is_empty() {
            return None;
        }
        let overtakes = !self.calm && self.flying.len() > 1 && rng.random_bool(0.15);
        let chosen = if overtakes {
            rng.random_range(1..self.flying.len())
        } else {
            0
        };
        if overtakes {
            self.note("message overtaken");
        }
        let (worker, message) = self.flying.remove(chosen);
        if self.cut.contains(&worker) {
            self.note("message lost");
            return None;
        }
        Some((worker, message))
    }

    /// Drops some messages in transit, after a process or connection has ended; the others may still be
    /// delivered later.
    pub fn lose_some(&mut self, rng: &mut Pcg32) {
        let before = self.flying.len();
        self.flying.retain(|_| rng.random_bool(0.3));
        *self.happened.entry("message lost").or_default() += (before - self.flying.len()) as u64;
    }

    pub fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }
}
