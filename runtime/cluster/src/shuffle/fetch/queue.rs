//! The queue of fetches by peer: turns, backoff after failures, and their limits. It computes on times passed
//! by the caller.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use napreduce_data::SegmentAssembly;
use napreduce_engine::AttemptId;
use napreduce_protocol::FetchLimits;

/// Maximum segments requested at once.
const BATCH_MAX: usize = 64;
const BACK_OFF_MAX: Duration = Duration::from_secs(2);
/// The time limit applies only after this many tries.
const TRIES_MIN: u32 = 3;

/// A requested partition of a segment, with its received part.
#[derive(Debug)]
pub(super) struct SegmentRequest {
    pub(super) attempt: AttemptId,
    /// First block needed.
    pub(super) first_block: u64,
    pub(super) assembly: Option<SegmentAssembly>,
    /// Damaged receipts since the last valid block.
    pub(super) damaged: u32,
}

impl SegmentRequest {
    /// Returns the first missing block.
    pub(super) fn next_block(&self) -> u64 {
        self.assembly
            .as_ref()
            .map_or(self.first_block, SegmentAssembly::next_block)
    }
}

/// The next action of a thread.
#[derive(Debug)]
pub(super) enum Next {
    Batch {
        address: String,
        items: Vec<SegmentRequest>,
    },
    /// No work before this time or until a change.
    Nothing { until: Option<Instant> },
}

/// The rest of an incomplete batch.
#[derive(Debug)]
pub(super) struct Failure {
    /// Segments not fetched.
    pub(super) items: Vec<SegmentRequest>,
    /// Whether any data arrived.
    pub(super) progressed: bool,
    /// Time without progress, excluding stops of this process.
    pub(super) spent: Duration,
}

#[derive(Debug, Default)]
struct Peer {
    waiting: VecDeque<SegmentRequest>,
    /// Whether a batch is being fetched. One connection fills a link; more would share it.
    connected: bool,
    /// Consecutive tries without progress, and their time.
    failures: u32,
    spent: Duration,
    not_before: Option<Instant>,
    /// The number of its last turn.
    turn: u64,
}

/// Requested segments by peer.
#[derive(Debug)]
pub(super) struct Queue {
    limits: FetchLimits,
    peers: BTreeMap<String, Peer>,
    turns: u64,
}

impl Queue {
    pub(super) fn new(limits: FetchLimits) -> Queue {
        Queue {
            limits,
            peers: BTreeMap::new(),
            turns: 0,
        }
    }

    pub(super) fn add(&mut self, attempt: AttemptId, address: &str, first_block: u64) {
        let peer = self.peers.entry(address.to_owned()).or_default();
        peer.waiting.push_back(SegmentRequest {
            attempt,
            first_block,
            assembly: None,
            damaged: 0,
        });
    }

    /// Removes waiting segments of a map task.
    pub(super) fn cancel(&mut self, map: u32) {
        for peer in self.peers.values_mut() {
            peer.waiting
                .retain(|request| request.attempt.task.index != map);
        }
    }

    /// Takes a batch from the peer that has waited longest; `ended` or `failed` must follow.
    pub(super) fn take(&mut self, now: Instant) -> Next {
        let ready = |peer: &Peer| !peer.waiting.is_empty() && !peer.connected;
        let due = |peer: &Peer| peer.not_before.is_none_or(|at| at <= now);
        let ready_peers = self.peers.iter_mut().filter(|(_, peer)| ready(peer));
        let mut until = None;
        let mut chosen: Option<(&String, &mut Peer)> = None;
        for (address, peer) in ready_peers {
            if !due(peer) {
                until = until.into_iter().chain(peer.not_before).min();
            } else if chosen
                .as_ref()
                .is_none_or(|(_, best)| peer.turn < best.turn)
            {
                chosen = Some((address, peer));
            }
        }
        let Some((address, peer)) = chosen else {
            return Next::Nothing { until };
        };
        self.turns += 1;
        peer.turn = self.turns;
        peer.connected = true;
        let count = peer.waiting.len().min(BATCH_MAX);
        Next::Batch {
            address: address.clone(),
            items: peer.waiting.drain(..count).collect(),
        }
    }

    /// Handles a completely answered batch.
    pub(super) fn ended(&mut self, address: &str) {
        if let Some(peer) = self.peers.get_mut(address) {
            peer.connected = false;
            (peer.failures, peer.spent, peer.not_before) = (0, Duration::ZERO, None);
        }
    }

    /// Requeues the rest of a batch cancelled by this side; does not count as a failure of the peer.
    pub(super) fn put_back(&mut self, address: &str, items: Vec<SegmentRequest>) {
        if let Some(peer) = self.peers.get_mut(address) {
            peer.connected = false;
            for request in items.into_iter().rev() {
                peer.waiting.push_front(request);
            }
        }
    }

    /// Requeues the rest of a batch until a busy peer has room; does not count as a failure.
    pub(super) fn busy(&mut self, address: &str, items: Vec<SegmentRequest>, until: Instant) {
        self.put_back(address, items);
        if let Some(peer) = self.peers.get_mut(address) {
            peer.not_before = Some(until);
        }
    }

    /// Requeues the rest of a failed batch. Returns the segments given up with the peer, if any, and the
    /// number of tries.
    pub(super) fn failed(
        &mut self,
        address: &str,
        failure: Failure,
        now: Instant,
    ) -> Option<(Vec<SegmentRequest>, u32)> {
        let peer = self.peers.get_mut(address)?;
        peer.connected = false;
        for request in failure.items.into_iter().rev() {
            peer.waiting.push_front(request);
        }
        if failure.progressed {
            (peer.failures, peer.spent) = (0, Duration::ZERO);
        }
        peer.failures += 1;
        peer.spent += failure.spent;
        let FetchLimits {
            tries_max,
            spent_max,
            back_off,
            ..
        } = self.limits;
        if peer.failures >= tries_max || (peer.failures >= TRIES_MIN && peer.spent >= spent_max) {
            let lost = peer.waiting.drain(..).collect();
            let tries = peer.failures;
            (peer.failures, peer.spent, peer.not_before) = (0, Duration::ZERO, None);
            return Some((lost, tries));
        }
        let wait = back_off
            .saturating_mul(1 << (peer.failures - 1).min(16))
            .min(BACK_OFF_MAX);
        peer.spent += wait;
        peer.not_before = Some(now + wait);
        None
    }
}
