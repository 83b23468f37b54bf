//! One round: the passes in order, over one snapshot and one budget.

use napreduce_engine::Ratio;

use super::ideal::{Distribution, Sharing};
use super::take::obtained;
use super::tree::QueueTree;
use super::victims::{Application, Demand, Pass, Selection, Victim, take_from_leaf};
use super::{Claim, RoundSettings, intra, priority, reserved};

/// The result of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundChoice {
    /// In the order chosen.
    pub victims: Vec<Victim>,
    /// Ideal share of each queue in the last pass over queues.
    pub ideal: Vec<Ratio>,
    /// Amount to take from each leaf in the last pass over queues.
    pub obtain: Vec<u64>,
    /// The applications that benefit from the intra-queue pass.
    pub claims: Vec<Claim>,
}

/// A round in progress.
pub struct Round<'a> {
    pub(super) tree: &'a QueueTree,
    pub(super) settings: &'a RoundSettings,
    pub(super) selection: Selection,
    source: &'a mut dyn FnMut(usize) -> Vec<Application>,
    leaves: Vec<Option<Vec<Application>>>,
    wanting: Vec<usize>,
    ideal: Vec<Ratio>,
    obtain: Vec<u64>,
    claims: Vec<Claim>,
}

impl<'a> Round<'a> {
    /// Runs a round. Without any demand nothing is taken, not even a rounding remainder. Calls `source` for
    /// the applications of a leaf at most once, and only for leaves from which containers may be taken.
    pub fn run(
        tree: &'a QueueTree,
        settings: &'a RoundSettings,
        source: &'a mut dyn FnMut(usize) -> Vec<Application>,
    ) -> RoundChoice {
        let mut round = Round {
            tree,
            settings,
            selection: Selection::with_budget(settings.allowed()),
            source,
            leaves: vec![None; tree.len()],
            wanting: Vec::new(),
            ideal: Vec::new(),
            obtain: vec![0; tree.len()],
            claims: Vec::new(),
        };
        let idle = (0..tree.len()).all(|queue| tree.queue(queue).pending == 0);
        if idle {
            round.distribute(false, true);
            return round.into_outcome();
        }
        if let Some(delay) = settings.priority_delay {
            priority::select(&mut round, delay);
        }
        if settings.reserved_aware {
            let obtain = round.distribute(false, false);
            reserved::select(&mut round, obtain);
        }
        round.take_from_leaves(Pass::Guarantee);
        if settings.balance_beyond_guaranteed {
            round.take_from_leaves(Pass::Balance);
        }
        if let Some(intra_queue) = &settings.intra_queue {
            for leaf in round.wanting.clone() {
                let claims = intra::select(&mut round, intra_queue, leaf);
                round.claims.extend(claims);
            }
        }
        round.into_outcome()
    }

    fn into_outcome(self) -> RoundChoice {
        let Round { selection, ideal, obtain, claims, .. } = self;
        RoundChoice { victims: selection.victims, ideal, obtain, claims }
    }

    pub(super) fn applications(&mut self, leaf: usize) -> &[Application] {
        self.leaves[leaf].get_or_insert_with(|| (self.source)(leaf))
    }

    /// Returns the amount to take from a leaf in the last pass over queues.
    pub(super) fn obtain(&self, leaf: usize) -> u64 {
        self.obtain[leaf]
    }

    /// Computes ideal shares, and the amount to take from each leaf.
    fn distribute(&mut self, beyond_guaranteed: bool, natural_termination: bool) -> Vec<u64> {
        let sharing = Sharing { beyond_guaranteed, count_reserved: self.settings.reserved_aware };
        let distribution = Distribution::of(self.tree, sharing);
        let obtain = obtained(self.tree, &distribution, self.settings, natural_termination);
        for leaf in distribution.wanting {
            if !self.wanting.contains(&leaf) {
                self.wanting.push(leaf);
            }
        }
        self.ideal = distribution.ideal;
        obtain
    }

    /// One pass over the queues: for queues below their guarantee, or to balance those above it.
    fn take_from_leaves(&mut self, pass: Pass) {
        self.obtain = self.distribute(pass == Pass::Balance, true);
        for victim in &self.selection.victims {
            // Published behaviour: an amount equal to the size of a chosen container is not reduced.
            if self.obtain[victim.queue] > victim.size {
                self.obtain[victim.queue] -= victim.size;
            }
        }
        for queue in self.tree.leaves() {
            let state = self.tree.queue(queue);
            if self.obtain[queue] == 0 || state.preemption_disabled {
                continue;
            }
            let demand = Demand {
                queue,
                obtain: self.obtain[queue],
                masters_kept: self.settings.masters_kept * state.guaranteed,
                order: self.settings.of(queue).order,
                pass,
                reserved: self.settings.reserved_hold_room,
            };
            let applications = self.leaves[queue].get_or_insert_with(|| (self.source)(queue));
            take_from_leaf(applications, demand, &mut self.selection);
        }
    }
}
