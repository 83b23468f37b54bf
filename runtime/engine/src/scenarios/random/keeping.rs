//! An independent model of the limit on suspended attempts, computed from reports and orders alone. There are
//! never more than the limit; after it was reached, none are added until at most half of it remains.
//! `Engine::check` verifies the engine's own count.

use std::collections::{BTreeMap, BTreeSet};

use crate::{AttemptId, Effect, Event, Order, Report, SuspendedMax, WorkerId};

/// The attempts that were ordered to suspend and not ordered to resume since.
#[derive(Debug)]
pub struct Keeping {
    most: SuspendedMax,
    stopped: BTreeMap<WorkerId, BTreeSet<AttemptId>>,
    full: BTreeSet<WorkerId>,
}

impl Keeping {
    pub fn new(most: SuspendedMax) -> Keeping {
        Keeping {
            most,
            stopped: BTreeMap::new(),
            full: BTreeSet::new(),
        }
    }

    /// Processes an event and its orders; `is_live` returns whether an attempt has not ended.
    pub fn follow(
        &mut self,
        event: &Event,
        effects: &[Effect],
        is_live: impl Fn(AttemptId) -> bool,
    ) {
        let refused = match event {
            Event::Reported {
                attempt,
                report: Report::SuspendRefused { .. },
                ..
            } => Some(*attempt),
            _ => None,
        };
        let stopped = self.stopped.values().flatten().copied();
        let over: Vec<AttemptId> = stopped
            .filter(|id| Some(*id) == refused || !is_live(*id))
            .collect();
        for id in over {
            self.releases(id);
        }
        for effect in effects {
            match effect {
                Effect::Send {
                    worker,
                    order: Order::Suspend { attempt },
                } => self.stops(*worker, *attempt),
                Effect::Send {
                    order: Order::Resume { attempt },
                    ..
                }
                | Effect::Send {
                    order: Order::Checkpoint { attempt },
                    ..
                }
                | Effect::Send {
                    order: Order::Kill { attempt },
                    ..
                } => self.releases(*attempt),
                _ => {}
            }
        }
    }

    /// Returns whether a worker may keep no more suspended attempts.
    pub fn is_full(&self, worker: WorkerId) -> bool {
        self.full.contains(&worker)
    }

    fn stops(&mut self, worker: WorkerId, attempt: AttemptId) {
        let SuspendedMax::AtMost(most) = self.most else {
            return;
        };
        let stopped = self.stopped.entry(worker).or_default();
        assert!(
            !self.full.contains(&worker),
            "{attempt} is suspended on {worker}, which is full: {stopped:?}"
        );
        stopped.insert(attempt);
        assert!(
            stopped.len() <= most as usize,
            "{worker} keeps {stopped:?}, and may keep {most}"
        );
        if stopped.len() == most as usize {
            self.full.insert(worker);
        }
    }

    fn releases(&mut self, attempt: AttemptId) {
        let SuspendedMax::AtMost(most) = self.most else {
            return;
        };
        for (worker, stopped) in &mut self.stopped {
            if stopped.remove(&attempt) && stopped.len() <= (most / 2) as usize {
                self.full.remove(worker);
            }
        }
    }
}
