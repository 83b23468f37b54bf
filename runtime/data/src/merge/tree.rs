//! The merge: a loser tree over one cursor per source. Records come by key, then by source, then by arrival.

use std::hint::select_unpredictable;

use crate::key;
use crate::record::Source;
use crate::segment::{Cursor, SegmentError, SegmentPosition};

const SOURCE_BITS: u32 = 32;
const LEN_BITS: u32 = 4;
const HEAD_BYTES: usize = 11;
/// The length code of a key that is longer than its prefix.
const LONG: u128 = HEAD_BYTES as u128 + 1;

/// The first bytes of a key and its length code: different codes mean different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyCode(u128);

impl KeyCode {
    /// Packs the first 11 bytes, padded with zeros, and the length code. Codes order like keys, except keys that
    /// share 11 bytes and are longer.
    #[inline]
    pub(crate) fn new(key: &[u8]) -> KeyCode {
        let prefix = key::head(key) >> (128 - 8 * HEAD_BYTES as u32);
        KeyCode(prefix << LEN_BITS | key.len().min(HEAD_BYTES + 1) as u128)
    }

    /// A code that no key has.
    pub(crate) fn unknown() -> KeyCode {
        KeyCode(Node::EXHAUSTED >> SOURCE_BITS | LONG)
    }

    /// Whether the code holds the whole key, so that equal codes mean equal keys.
    #[inline]
    pub(crate) fn is_whole(self) -> bool {
        self.0 & ((1 << LEN_BITS) - 1) != LONG
    }
}

/// A node of the tree, `[exhausted | key code | source]`. Nodes compare as integers; only keys that share 11
/// bytes and are longer have to be compared themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node(u128);

impl Node {
    const EXHAUSTED: u128 = 1 << 127;

    #[inline]
    fn new(key: &[u8], source: usize) -> Node {
        Node(KeyCode::new(key).0 << SOURCE_BITS | source as u128)
    }

    /// The node of a source without further records.
    #[inline]
    fn exhausted(source: usize) -> Node {
        Node(Node::EXHAUSTED | source as u128)
    }

    #[inline]
    fn is_exhausted(self) -> bool {
        self.0 & Node::EXHAUSTED != 0
    }

    #[inline]
    fn source(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline]
    fn code(self) -> KeyCode {
        KeyCode(self.0 >> SOURCE_BITS)
    }

    /// Whether the key is longer than the node's prefix.
    #[inline]
    fn is_long(self) -> bool {
        !self.code().is_whole()
    }
}

/// An error of one source of a merge.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct MergeError {
    /// The source, in the given order.
    pub input: usize,
    pub error: SegmentError,
}

/// The merged stream of several cursors.
#[derive(Debug)]
pub struct Merge {
    pub(crate) cursors: Vec<Cursor>,
    /// `nodes[1..]` are losers: node i has children 2i and 2i+1, and source s is leaf `cursors.len() + s`.
    /// `nodes[0]` is the winner.
    nodes: Vec<Node>,
    started: bool,
}

impl Merge {
    /// Creates a merge before its first record.
    pub fn new(cursors: Vec<Cursor>) -> Merge {
        let nodes = vec![Node::exhausted(0); cursors.len().max(1)];
        Merge {
            cursors,
            nodes,
            started: false,
        }
    }

    /// Moves to the next record; returns `false` after the last one.
    ///
    /// # Errors
    /// The error of a source.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, MergeError> {
        if !self.started {
            return self.start();
        }
        let winner = self.nodes[0];
        if winner.is_exhausted() {
            return Ok(false);
        }
        let source = self.source();
        let node = self.next_node(source)?;
        // The same short key again from the same source still beats all others.
        if node != winner || node.is_long() {
            self.replay(source, node);
        }
        Ok(!self.nodes[0].is_exhausted())
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::key)
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        self.current().map_or(&[], Cursor::value)
    }

    /// Returns the source of the current record.
    #[inline]
    pub fn source(&self) -> usize {
        self.nodes[0].source()
    }

    /// Returns the code of the current key.
    #[inline]
    pub(crate) fn key_code(&self) -> KeyCode {
        self.nodes[0].code()
    }

    /// Returns the position of each source: of its current record, or of the one it offers next.
    pub fn positions(&self) -> Vec<SegmentPosition> {
        self.cursors.iter().map(Cursor::position).collect()
    }

    /// Returns the position of each source after the current record.
    pub(crate) fn positions_after_current(&self) -> Vec<SegmentPosition> {
        let mut positions = self.positions();
        if self.started && !self.nodes[0].is_exhausted() {
            let source = self.source();
            positions[source] = self.cursors[source].next_position();
        }
        positions
    }

    /// Returns the stored bytes of all blocks entered in all sources.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.bytes_read).sum()
    }

    #[inline]
    fn current(&self) -> Option<&Cursor> {
        self.cursors.get(self.source())
    }

    fn next_node(&mut self, source: usize) -> Result<Node, MergeError> {
        let cursor = &mut self.cursors[source];
        match cursor.advance() {
            Ok(true) => Ok(Node::new(cursor.key(), source)),
            Ok(false) => Ok(Node::exhausted(source)),
            Err(error) => Err(MergeError {
                input: source,
                error,
            }),
        }
    }

    #[cold]
    fn start(&mut self) -> Result<bool, MergeError> {
        self.started = true;
        let sources = self.cursors.len();
        let mut winners = vec![Node::exhausted(0); 2 * sources.max(1)];
        for source in 0..sources {
            winners[sources + source] = self.next_node(source)?;
        }
        for node in (1..sources).rev() {
            let left = winners[2 * node];
            let right = winners[2 * node + 1];
            let left_wins = self.less(left, right);
            winners[node] = if left_wins { left } else { right };
            self.nodes[node] = if left_wins { right } else { left };
        }
        if sources > 0 {
            self.nodes[0] = winners[1];
        }
        Ok(!self.nodes[0].is_exhausted())
    }

    #[inline]
    fn replay(&mut self, source: usize, mut candidate: Node) {
        let mut node = (self.cursors.len() + source) / 2;
        while node > 0 {
            let loser = self.nodes[node];
            // The winner of a match is unpredictable, so the code does not branch on it.
            let beaten = self.less(loser, candidate);
            self.nodes[node] = Node(select_unpredictable(beaten, candidate.0, loser.0));
            candidate = Node(select_unpredictable(beaten, loser.0, candidate.0));
            node /= 2;
        }
        self.nodes[0] = candidate;
    }

    #[inline]
    fn less(&self, left: Node, right: Node) -> bool {
        if left.code() != right.code() || !left.is_long() {
            return left < right;
        }
        self.less_beyond_head(left, right)
    }

    #[inline(never)]
    fn less_beyond_head(&self, left: Node, right: Node) -> bool {
        let left_key = &self.cursors[left.source()].key()[HEAD_BYTES..];
        let right_key = &self.cursors[right.source()].key()[HEAD_BYTES..];
        left_key.cmp(right_key).then(left.cmp(&right)).is_lt()
    }
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
