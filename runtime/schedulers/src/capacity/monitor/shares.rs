//! The arithmetic of the intra-queue pass: the ideal share of each application, and the amounts that
//! applications give and receive.

use std::cmp::Reverse;

use napreduce_engine::{Ratio, SortedMap, sort_by_key};

use super::victims::{Application, Selection};
use super::{IntraQueue, QueueSettings};
use crate::capacity::configuration::{ApplicationOrder, IntraQueueOrder};

/// A leaf in the intra-queue pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf<'a> {
    pub guaranteed: Ratio,
    pub used: u64,
    /// Amount that other queues take from it in this round.
    pub obtain: u64,
    pub settings: QueueSettings,
    pub intra_queue: &'a IntraQueue,
}

/// The shares of an application.
#[derive(Debug, Clone)]
pub(super) struct Share<'a> {
    pub application: &'a Application,
    /// Amount chosen by earlier passes.
    chosen: i128,
    ideal: i128,
    /// Missing to its ideal share.
    lacks: i128,
    /// Part of `lacks` that others give.
    pub gets: i128,
    /// Maximum that it can give.
    takeable: i128,
    /// Amount that it gives.
    pub gives: i128,
}

/// A user of the leaf.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct User {
    pub used: i128,
    masters: i128,
    chosen: i128,
    ideal: i128,
    /// Set once the user limit bounded an amount; the user then gives nothing more above the limit.
    excess_given: bool,
}

/// The applications of a leaf, highest precedence first.
#[derive(Debug)]
pub(super) struct Shares<'a> {
    leaf: Leaf<'a>,
    pub applications: Vec<Share<'a>>,
    pub users: SortedMap<&'a str, User>,
    /// Maximum per user.
    pub user_limit: i128,
}

impl Share<'_> {
    fn used(&self) -> i128 {
        i128::from(self.application.used())
    }

    fn masters(&self) -> i128 {
        i128::from(self.application.masters())
    }
}

impl<'a> Shares<'a> {
    /// Computes the amounts to give and receive, within the queue's limit and the round's budget.
    pub fn new(
        applications: &'a [Application],
        leaf: Leaf<'a>,
        selection: &Selection,
    ) -> Shares<'a> {
        let mut users: SortedMap<&str, User> = SortedMap::new();
        for application in applications {
            let user = users.get_or_default(&application.user);
            user.used += i128::from(application.used());
            user.masters += i128::from(application.masters());
            user.chosen += i128::from(selection.of_application(application.id));
        }
        let share = |application: &'a Application| {
            let chosen = i128::from(selection.of_application(application.id));
            Share {
                application,
                chosen,
                ideal: 0,
                lacks: 0,
                gets: 0,
                takeable: 0,
                gives: 0,
            }
        };
        let user_limit = leaf.user_limit(users.len());
        let applications = leaf
            .sorted(applications, &users)
            .into_iter()
            .map(share)
            .collect();
        let mut shares = Shares {
            leaf,
            applications,
            users,
            user_limit,
        };
        shares.set_ideal_shares();
        shares.set_preemptable(i128::from(selection.budget));
        shares.transfer();
        shares
    }

    /// Distributes what the queue keeps over its applications, highest precedence first, up to each user's
    /// limit.
    fn set_ideal_shares(&mut self) {
        let masters: i128 = self.users.values().map(|user| user.masters).sum();
        let mut left = i128::from(self.leaf.used) - i128::from(self.leaf.obtain) - masters;
        for share in &mut self.applications {
            let Some(user) = self.users.get_mut(share.application.user.as_str()) else {
                continue;
            };
            let limit = self.user_limit - user.masters;
            if left <= 0 {
                break;
            }
            if user.ideal >= limit {
                continue;
            }
            let has = share.used() - share.masters() - share.chosen;
            let wants = (has + i128::from(share.application.pending)).max(0);
            share.ideal = left.min(wants).min(limit - user.ideal);
            user.ideal += share.ideal;
            left -= share.ideal;
            share.lacks = (share.ideal - has).max(0);
        }
    }

    /// Computes the maximum that each application can give, lowest precedence first, within the budget.
    fn set_preemptable(&mut self, budget: i128) {
        let limit = (self.leaf.guaranteed * self.leaf.intra_queue.max_allowable_limit).of(1);
        let mut room = (i128::from(limit) - i128::from(self.leaf.obtain))
            .max(0)
            .min(budget);
        let kept = match self.leaf.intra_queue.order {
            IntraQueueOrder::UserLimitFirst => i128::from(self.leaf.intra_queue.minimum_allocation),
            IntraQueueOrder::PriorityFirst => 0,
        };
        for share in self.applications.iter_mut().rev() {
            let beyond = share.used() - share.ideal - share.chosen - share.masters() - kept;
            share.takeable = beyond.max(0).min(room);
            room -= share.takeable;
        }
    }

    /// Transfers amounts from applications of low precedence to those of high precedence.
    fn transfer(&mut self) {
        for claimant in 0..self.applications.len() {
            for victim in (0..self.applications.len()).rev() {
                let lacks = self.applications[claimant].lacks - self.applications[claimant].gets;
                if lacks <= 0 {
                    break;
                }
                let amount = self.givable(claimant, victim).min(lacks);
                self.applications[victim].gives += amount;
                self.applications[claimant].gets += amount;
            }
        }
    }

    /// Returns the amount that one application can take from another now.
    fn givable(&mut self, claimant: usize, victim: usize) -> i128 {
        let to = &self.applications[claimant];
        let from = &self.applications[victim];
        let left = from.takeable - from.gives;
        let claimer = to.application;
        let giver = from.application;
        let same_user = claimer.user == giver.user;
        let Some(user) = self.users.get_mut(giver.user.as_str()) else {
            return 0;
        };
        if left <= 0 || (same_user && giver.priority >= claimer.priority) {
            return 0;
        }
        let excess = user.used - user.masters - (self.user_limit - user.masters);
        let is_over = excess > 0;
        if !same_user && !is_over && self.leaf.intra_queue.order == IntraQueueOrder::UserLimitFirst
        {
            return 0;
        }
        if same_user || giver.priority != claimer.priority || !is_over {
            return left;
        }
        let bound = if user.excess_given {
            0
        } else {
            (excess - user.chosen).max(0)
        };
        if bound < left {
            user.excess_given = true;
        }
        bound.min(left)
    }

    /// Reduces what each application gives by the size of a victim of an earlier pass.
    pub fn deduct(&mut self, size: u64) {
        for share in &mut self.applications {
            if share.gives > i128::from(size) {
                share.gives -= i128::from(size);
            }
        }
    }
}

impl Leaf<'_> {
    /// Returns the maximum per user, rounded up.
    fn user_limit(&self, users: usize) -> i128 {
        let share = match self.settings.minimum_user_limit_percent {
            Some(percent) => self.guaranteed * percent / Ratio::whole(100),
            None => self.guaranteed / Ratio::whole(users.max(1) as u64),
        };
        -(-share.numerator()).div_euclid(share.denominator())
    }

    /// Returns the applications, highest precedence first.
    fn sorted<'a>(
        &self,
        applications: &'a [Application],
        users: &SortedMap<&'a str, User>,
    ) -> Vec<&'a Application> {
        let by_use = self.settings.order == ApplicationOrder::Fair
            && self.intra_queue.order == IntraQueueOrder::UserLimitFirst;
        let use_of = |application: &Application| {
            users
                .get(application.user.as_str())
                .map_or(0, |user| user.used)
        };
        let mut sorted: Vec<&Application> = applications.iter().collect();
        sort_by_key(&mut sorted, |application| {
            if by_use {
                (
                    Reverse(0),
                    use_of(application),
                    application.used(),
                    application.age,
                )
            } else {
                (Reverse(application.priority), 0, 0, application.age)
            }
        });
        sorted
    }
}
