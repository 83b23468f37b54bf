//! What is to be fetched from whom, and when a peer is given up.
//!
//! Owns whose turn it is, the back-off after failures and their limits, as a computation on times it is
//! given. Does not own threads or connections.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use napreduce_data::SegmentAssembly;
use napreduce_engine::AttemptId;
use napreduce_protocol::FetchLimits;

/// Segments asked for at once.
const BATCH_MAX: usize = 64;
const BACK_OFF_MAX: Duration = Duration::from_secs(2);
/// Time is a limit only after so many tries.
const TRIES_MIN: u32 = 3;

/// A segment's partition that is wanted, as far as it has come.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) attempt: AttemptId,
    /// Nothing before this block of the partition is wanted.
    pub(super) first_block: u64,
    pub(super) assembly: Option<SegmentAssembly>,
    /// How often it came damaged, since a block of it was whole.
    pub(super) damaged: u32,
}

impl Wanted {
    /// The first block that is lacking.
    pub(super) fn next_block(&self) -> u64 {
        self.assembly.as_ref().map_or(self.first_block, SegmentAssembly::next_block)
    }
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Next {
    Batch {
        address: String,
        items: Vec<Wanted>,
    },
    /// Nothing before this time, or until something changes.
    Nothing {
        until: Option<Instant>,
    },
}

/// How a batch ended that could not be fetched whole.
#[derive(Debug)]
pub(super) struct Failure {
    /// What was not fetched.
    pub(super) items: Vec<Wanted>,
    /// Whether anything of the batch came.
    pub(super) progressed: bool,
    /// How long it took since then, without the time in which this process was stopped.
    pub(super) spent: Duration,
}

#[derive(Debug, Default)]
struct Peer {
    wanted: VecDeque<Wanted>,
    /// A batch of it is being fetched. One connection fills a link; more would share it.
    connected: bool,
    /// Tries in a row that brought nothing, and the time they took.
    failures: u32,
    spent: Duration,
    not_before: Option<Instant>,
    /// When it was its turn last.
    turn: u64,
}

/// What is wanted, by peer.
#[derive(Debug)]
pub(super) struct Queue {
    limits: FetchLimits,
    peers: BTreeMap<String, Peer>,
    turns: u64,
}

impl Queue {
    pub(super) fn new(limits: FetchLimits) -> Queue {
        Queue { limits, peers: BTreeMap::new(), turns: 0 }
    }

    pub(super) fn want(&mut self, attempt: AttemptId, address: &str, first_block: u64) {
        let peer = self.peers.entry(address.to_owned()).or_default();
        peer.wanted.push_back(Wanted { attempt, first_block, assembly: None, damaged: 0 });
    }

    /// Takes what waits of a map task off the queue.
    pub(super) fn forget(&mut self, map: u32) {
        for peer in self.peers.values_mut() {
            peer.wanted.retain(|wanted| wanted.attempt.task.index != map);
        }
    }

    /// A batch of the peer that has waited longest; `ended` or `failed` has to follow.
    pub(super) fn take(&mut self, now: Instant) -> Next {
        let ready = |peer: &Peer| !peer.wanted.is_empty() && !peer.connected;
        let due = |peer: &Peer| peer.not_before.is_none_or(|at| at <= now);
        let waiting = self.peers.iter_mut().filter(|(_, peer)| ready(peer));
        let mut until = None;
        let mut chosen: Option<(&String, &mut Peer)> = None;
        for (address, peer) in waiting {
            if !due(peer) {
                until = until.into_iter().chain(peer.not_before).min();
            } else if chosen.as_ref().is_none_or(|(_, best)| peer.turn < best.turn) {
                chosen = Some((address, peer));
            }
        }
        let Some((address, peer)) = chosen else { return Next::Nothing { until } };
        self.turns += 1;
        peer.turn = self.turns;
        peer.connected = true;
        let count = peer.wanted.len().min(BATCH_MAX);
        Next::Batch { address: address.clone(), items: peer.wanted.drain(..count).collect() }
    }

    /// All of a batch was answered.
    pub(super) fn ended(&mut self, address: &str) {
        if let Some(peer) = self.peers.get_mut(address) {
            peer.connected = false;
            (peer.failures, peer.spent, peer.not_before) = (0, Duration::ZERO, None);
        }
    }

    /// A batch was given up for now, by this side: the rest of it waits again, without a grudge
    /// against the peer.
    pub(super) fn put_back(&mut self, address: &str, items: Vec<Wanted>) {
        if let Some(peer) = self.peers.get_mut(address) {
            peer.connected = false;
            for wanted in items.into_iter().rev() {
                peer.wanted.push_front(wanted);
            }
        }
    }

    /// The peer has no room before this time: the rest of a batch waits again, without a grudge.
    pub(super) fn busy(&mut self, address: &str, items: Vec<Wanted>, until: Instant) {
        self.put_back(address, items);
        if let Some(peer) = self.peers.get_mut(address) {
            peer.not_before = Some(until);
        }
    }

    /// A batch broke off: the rest of it waits again. What the peer holds and is given up now, if it is, with
    /// the number of tries.
    pub(super) fn failed(
        &mut self,
        address: &str,
        failure: Failure,
        now: Instant,
    ) -> Option<(Vec<Wanted>, u32)> {
        let peer = self.peers.get_mut(address)?;
        peer.connected = false;
        for wanted in failure.items.into_iter().rev() {
            peer.wanted.push_front(wanted);
        }
        if failure.progressed {
            (peer.failures, peer.spent) = (0, Duration::ZERO);
        }
        peer.failures += 1;
        peer.spent += failure.spent;
        let FetchLimits { tries_max, spent_max, back_off, .. } = self.limits;
        if peer.failures >= tries_max || (peer.failures >= TRIES_MIN && peer.spent >= spent_max) {
            let lost = peer.wanted.drain(..).collect();
            let tries = peer.failures;
            (peer.failures, peer.spent, peer.not_before) = (0, Duration::ZERO, None);
            return Some((lost, tries));
        }
        let wait = back_off.saturating_mul(1 << (peer.failures - 1).min(16)).min(BACK_OFF_MAX);
        peer.spent += wait;
        peer.not_before = Some(now + wait);
        None
    }
}
