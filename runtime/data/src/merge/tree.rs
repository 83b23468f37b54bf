//! The merge heap: a minimum-first loser tree over one cursor per source.
//!
//! Owns the order of the merged stream: by key, then by source, then by arrival. Each node of the tree is one
//! integer, `[exhausted | first 11 key bytes | their number, or 12 for more | source]`, so that a step
//! compares integers and only keys that agree in 11 bytes and go on are looked at.

use std::hint::select_unpredictable;

use crate::key;
use crate::record::Source;
use crate::segment::{Cursor, SegmentError, SegmentPosition};

const SOURCE_BITS: u32 = 32;
const LEN_BITS: u32 = 4;
const HEAD_BYTES: usize = 11;
/// The length code of a key that goes on beyond its head.
const LONG: u128 = HEAD_BYTES as u128 + 1;
const EXHAUSTED: u128 = 1 << 127;

/// The first bytes of a key and its length, as far as they fit one integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyCode(u128);

impl KeyCode {
    pub(crate) fn of(key: &[u8]) -> KeyCode {
        KeyCode(code(key))
    }

    /// A code that no key has, and that says nothing about any.
    pub(crate) fn unknown() -> KeyCode {
        KeyCode(EXHAUSTED >> SOURCE_BITS | LONG)
    }

    /// Whether keys with this code are equal.
    #[inline]
    pub(crate) fn is_whole(self) -> bool {
        !is_long(self.0 << SOURCE_BITS)
    }
}

/// One source of a merge failed.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct MergeError {
    /// Which one, in the order in which they were given.
    pub input: usize,
    pub error: SegmentError,
}

/// The merged stream of several cursors; equal keys come in the order of the sources.
#[derive(Debug)]
pub struct Merge {
    pub(crate) cursors: Vec<Cursor>,
    /// `nodes[1..]` are losers, node i has children 2i and 2i+1, leaf of source s is node `cursors.len() +
    /// s`; `nodes[0]` is the winner.
    nodes: Vec<u128>,
    started: bool,
}

impl Merge {
    /// A merge before its first record.
    pub fn new(cursors: Vec<Cursor>) -> Merge {
        let nodes = vec![EXHAUSTED; cursors.len().max(1)];
        Merge { cursors, nodes, started: false }
    }

    /// Moves to the next record; `false` when all sources are exhausted.
    ///
    /// # Errors
    /// The damage of a source, and which source it is.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, MergeError> {
        if !self.started {
            return self.start();
        }
        let winner = self.nodes[0];
        if winner & EXHAUSTED != 0 {
            return Ok(false);
        }
        let source = self.source();
        let node = self.next_node(source)?;
        // The same short key again from the same source: it still beats all others.
        if node != winner || is_long(node) {
            self.replay(source, node);
        }
        Ok(self.nodes[0] & EXHAUSTED == 0)
    }

    /// The current record's key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::key)
    }

    /// The current record's value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::value)
    }

    /// Which source the current record comes from.
    #[inline]
    pub fn source(&self) -> usize {
        self.nodes[0] as u32 as usize
    }

    /// The current key's first bytes and length, as far as they fit: different codes are different keys.
    #[inline]
    pub(crate) fn key_code(&self) -> KeyCode {
        KeyCode(self.nodes[0] >> SOURCE_BITS)
    }

    /// Where each source stands: at the current record, or at the one it offers next.
    pub fn positions(&self) -> Vec<SegmentPosition> {
        self.cursors.iter().map(Cursor::position).collect()
    }

    /// Where each source goes on after the current record.
    pub(crate) fn positions_after_current(&self) -> Vec<SegmentPosition> {
        let mut positions = self.positions();
        if self.started && self.nodes[0] & EXHAUSTED == 0 {
            let source = self.source();
            positions[source] = self.cursors[source].next_position();
        }
        positions
    }

    /// Stored bytes of the blocks that were entered in all sources.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.bytes_read).sum()
    }

    #[inline]
    fn current(&self) -> Option<&Cursor> {
        self.cursors.get(self.source())
    }

    fn next_node(&mut self, source: usize) -> Result<u128, MergeError> {
        let cursor = &mut self.cursors[source];
        match cursor.advance() {
            Ok(true) => Ok(code(cursor.key()) << SOURCE_BITS | source as u128),
            Ok(false) => Ok(EXHAUSTED | source as u128),
            Err(error) => Err(MergeError { input: source, error }),
        }
    }

    #[cold]
    fn start(&mut self) -> Result<bool, MergeError> {
        self.started = true;
        let sources = self.cursors.len();
        let mut winners = vec![EXHAUSTED; 2 * sources.max(1)];
        for source in 0..sources {
            winners[sources + source] = self.next_node(source)?;
        }
        for node in (1..sources).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = self.less(left, right);
            winners[node] = if left_wins { left } else { right };
            self.nodes[node] = if left_wins { right } else { left };
        }
        if sources > 0 {
            self.nodes[0] = winners[1];
        }
        Ok(self.nodes[0] & EXHAUSTED == 0)
    }

    #[inline]
    fn replay(&mut self, source: usize, mut candidate: u128) {
        let mut node = (self.cursors.len() + source) / 2;
        while node > 0 {
            let loser = self.nodes[node];
            // Who wins a match cannot be foreseen: no branch on it.
            let beaten = self.less(loser, candidate);
            self.nodes[node] = select_unpredictable(beaten, candidate, loser);
            candidate = select_unpredictable(beaten, loser, candidate);
            node /= 2;
        }
        self.nodes[0] = candidate;
    }

    #[inline]
    fn less(&self, left: u128, right: u128) -> bool {
        if (left ^ right) >> SOURCE_BITS != 0 || !is_long(left) {
            return left < right;
        }
        self.less_beyond_head(left, right)
    }

    #[inline(never)]
    fn less_beyond_head(&self, left: u128, right: u128) -> bool {
        let left_key = &self.cursors[left as u32 as usize].key()[HEAD_BYTES..];
        let right_key = &self.cursors[right as u32 as usize].key()[HEAD_BYTES..];
        left_key.cmp(right_key).then(left.cmp(&right)).is_lt()
    }
}

#[inline]
fn is_long(node: u128) -> bool {
    node >> SOURCE_BITS & ((1 << LEN_BITS) - 1) == LONG
}

/// `[first 11 bytes padded with zeros | length code]`: orders keys as their bytes do, up to keys that agree
/// in 11 bytes and go on.
#[inline]
fn code(key: &[u8]) -> u128 {
    let prefix = key::head(key) >> (128 - 8 * HEAD_BYTES as u32);
    prefix << LEN_BITS | key.len().min(HEAD_BYTES + 1) as u128
}

impl Source for Merge {
    type Error = MergeError;

    #[inline]
    fn advance(&mut self) -> Result<bool, MergeError> {
        Merge::advance(self)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        Merge::key(self)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        Merge::value(self)
    }

    #[inline]
    fn record(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::record)
    }
}
