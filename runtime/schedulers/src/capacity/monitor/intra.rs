//! Intra-queue preemption: takes containers from applications of low precedence, and from users above their
//! limit, for applications of higher precedence. Follows YARN's `IntraQueueCandidatesSelector`.

use napreduce_engine::Ratio;

use super::round::Round;
use super::shares::{Leaf, Shares};
use super::victims::{Pass, Victim};
use super::{IntraQueue, RoundSettings};
use crate::capacity::configuration::IntraQueueOrder;

/// The amount that an application receives from others of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub queue: usize,
    pub application: u64,
    pub amount: u64,
}

/// Chooses containers of one leaf. Returns the applications that benefit.
pub(super) fn select(round: &mut Round<'_>, settings: &IntraQueue, leaf: usize) -> Vec<Claim> {
    let (tree, round_settings): (_, &RoundSettings) = (round.tree, round.settings);
    let state = tree.queue(leaf);
    let threshold = settings.minimum_threshold * state.guaranteed;
    if state.preemption_disabled || Ratio::whole(state.used) < threshold {
        return Vec::new();
    }
    let applications = round.applications(leaf).to_vec();
    if applications.len() < 2 {
        return Vec::new();
    }
    let snapshot = Leaf {
        guaranteed: state.guaranteed,
        used: state.used,
        obtain: round.obtain(leaf),
        settings: round_settings.of(leaf),
        intra_queue: settings,
    };
    let mut shares = Shares::new(&applications, snapshot, &round.selection);
    let earlier: Vec<u64> = round
        .selection
        .of_queue(leaf)
        .map(|victim| victim.size)
        .collect();
    for size in earlier {
        shares.deduct(size);
    }
    let claims = shares
        .applications
        .iter()
        .filter(|share| share.gets > 0)
        .map(|share| Claim {
            queue: leaf,
            application: share.application.id,
            amount: u64::try_from(share.gets).unwrap_or(u64::MAX),
        });
    let claims: Vec<Claim> = claims.collect();
    round.begin_within(&claims);
    take(round, settings, leaf, &mut shares);
    claims
}

/// Takes containers, lowest precedence first, until the total to give is reached.
fn take(round: &mut Round<'_>, settings: &IntraQueue, leaf: usize, shares: &mut Shares<'_>) {
    let mut missing: i128 = shares.applications.iter().map(|share| share.gives).sum();
    for share in shares
        .applications
        .iter()
        .rev()
        .filter(|share| share.gives > 0)
    {
        let application = share.application;
        let Some(user) = shares.users.get_mut(application.user.as_str()) else {
            continue;
        };
        for container in application.in_preemption_order() {
            if missing <= 0 {
                return;
            }
            if container.is_master
                || container.is_killable
                || round.selection.contains(container.id)
            {
                continue;
            }
            let rest = user.used - i128::from(container.size);
            if settings.order == IntraQueueOrder::UserLimitFirst && rest <= shares.user_limit {
                break;
            }
            let victim = Victim {
                container: container.id,
                size: container.size,
                application: application.id,
                queue: leaf,
                pass: Pass::IntraQueue,
                reservation: None,
            };
            if round.add(victim) {
                missing -= i128::from(container.size);
                user.used = rest;
            }
        }
    }
}
