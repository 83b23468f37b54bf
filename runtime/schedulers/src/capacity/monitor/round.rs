//! One round: the passes in order, over one snapshot and one budget.

use napreduce_engine::Ratio;

use super::ideal::{Distribution, Sharing};
use super::source::{Applications, Source};
use super::tree::QueueTree;
use super::victims::{Application, Demand, Pass, Selection, Victim, take_from_leaf};
use super::{Arithmetic, Claim, RoundSettings, intra, priority, reserved, slots, take};

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
    /// Amount that queues below their guarantee lack and others exceed, but that nobody uses where it is.
    pub untaken: u64,
}

/// A round in progress.
pub struct Round<'a> {
    pub(super) tree: &'a QueueTree,
    pub(super) settings: &'a RoundSettings,
    pub(super) selection: Selection,
    source: &'a mut dyn Source,
    leaves: Vec<Option<Vec<Application>>>,
    wanting: Vec<usize>,
    ideal: Vec<Ratio>,
    obtain: Vec<u64>,
    claims: Vec<Claim>,
    untaken: u64,
}

impl Round<'_> {
    /// Runs a round in which every container is worth taking: see [`Round::run_on`].
    pub fn run(
        tree: &QueueTree,
        settings: &RoundSettings,
        applications: &mut dyn FnMut(usize) -> Vec<Application>,
    ) -> RoundChoice {
        Round::run_on(tree, settings, &mut Applications(applications))
    }
}

impl<'a> Round<'a> {
    /// Runs a round. Without any demand nothing is taken, not even a rounding remainder. Asks `source` for
    /// the applications of a leaf at most once, and only for leaves from which containers may be taken.
    pub fn run_on(
        tree: &'a QueueTree,
        settings: &'a RoundSettings,
        source: &'a mut dyn Source,
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
            untaken: 0,
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
        round.untaken = round.take_from_leaves(Pass::Guarantee);
        if settings.balance_beyond_guaranteed {
            round.take_from_leaves(Pass::Balance);
        }
        if let Some(intra_queue) = &settings.intra_queue {
            for leaf in round.wanting.clone() {
                if !round.may_take_within(leaf) {
                    continue;
                }
                let claims = intra::select(&mut round, intra_queue, leaf);
                round.claims.extend(claims);
            }
        }
        round.into_outcome()
    }

    fn into_outcome(self) -> RoundChoice {
        let Round {
            selection,
            ideal,
            obtain,
            claims,
            untaken,
            ..
        } = self;
        RoundChoice {
            victims: selection.victims,
            ideal,
            obtain,
            claims,
            untaken,
        }
    }

    pub(super) fn applications(&mut self, leaf: usize) -> &[Application] {
        self.leaves[leaf].get_or_insert_with(|| self.source.applications(leaf))
    }

    /// Adds a victim if the budget allows and somebody will use what it frees; returns whether it did.
    pub(super) fn add(&mut self, victim: Victim) -> bool {
        self.selection.add(victim, self.source)
    }

    /// Announces the claims of applications of one leaf on others of it.
    pub(super) fn begin_within(&mut self, claims: &[Claim]) {
        self.source.begin_pass(&self.ideal, claims, 0);
    }

    /// Returns whether the applications of a leaf may take from each other: in whole slots, not if other queues
    /// take from the leaf.
    fn may_take_within(&self, leaf: usize) -> bool {
        let is_taken_from = self.selection.of_queue(leaf).next().is_some();
        match self.settings.arithmetic {
            Arithmetic::Published => true,
            Arithmetic::WholeSlots => !is_taken_from && self.source.may_take_within(leaf),
        }
    }

    /// Returns the amount to take from a leaf in the last pass over queues.
    pub(super) fn obtain(&self, leaf: usize) -> u64 {
        self.obtain[leaf]
    }

    /// Computes ideal shares, and the amount to take from each leaf.
    fn distribute(&mut self, beyond_guaranteed: bool, natural_termination: bool) -> Vec<u64> {
        let sharing = Sharing {
            beyond_guaranteed,
            count_reserved: self.settings.reserved_aware,
        };
        let tree = self.tree;
        let settings = self.settings;
        let distribution;
        let obtain;
        match settings.arithmetic {
            Arithmetic::Published => {
                distribution = Distribution::new(tree, sharing);
                obtain = take::obtained(tree, &distribution, settings, natural_termination);
            }
            Arithmetic::WholeSlots => {
                distribution = slots::distribute(tree, sharing);
                obtain = slots::obtained(tree, &distribution, settings, natural_termination);
            }
        }
        for leaf in distribution.wanting {
            if !self.wanting.contains(&leaf) {
                self.wanting.push(leaf);
            }
        }
        self.ideal = distribution.ideal;
        self.source.begin_pass(&self.ideal, &[], 0);
        obtain
    }

    /// One pass over the queues: for queues below their guarantee, or to balance those above it. Returns the
    /// amount within the budget that nobody uses.
    fn take_from_leaves(&mut self, pass: Pass) -> u64 {
        self.obtain = self.distribute(pass == Pass::Balance, true);
        for victim in &self.selection.victims {
            let obtain = &mut self.obtain[victim.queue];
            match self.settings.arithmetic {
                // Published behaviour: an amount equal to the size of a chosen container is not reduced.
                Arithmetic::Published if *obtain > victim.size => *obtain -= victim.size,
                Arithmetic::Published => {}
                Arithmetic::WholeSlots => *obtain = obtain.saturating_sub(victim.size),
            }
        }
        let mut missing = self.obtain.clone();
        for sweep in 0..self.source.sweeps() {
            self.source.begin_pass(&self.ideal, &[], sweep);
            for queue in self.tree.leaves() {
                let state = self.tree.queue(queue);
                if missing[queue] == 0 || state.preemption_disabled {
                    continue;
                }
                let demand = Demand {
                    queue,
                    obtain: missing[queue],
                    masters_kept: self.settings.masters_kept * state.guaranteed,
                    order: self.settings.of(queue).order,
                    pass,
                    reserved: self.settings.reserved_hold_room,
                };
                let applications =
                    self.leaves[queue].get_or_insert_with(|| self.source.applications(queue));
                missing[queue] =
                    take_from_leaf(applications, demand, &mut self.selection, self.source);
            }
        }
        missing.iter().sum::<u64>().min(self.selection.budget)
    }
}
