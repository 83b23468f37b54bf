//! The arena of keys that are too long for a slot of the combine table.
//!
//! Owns their bytes, each after its length, from one flush to the next.

/// Bytes of a key's length in front of it.
const LEN_BYTES: usize = 4;

#[derive(Debug)]
pub(crate) struct LongKeys {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl LongKeys {
    /// An arena that never grows beyond `bytes_max` by itself; what is pushed is the caller's to bound.
    pub(crate) fn new(bytes_max: usize) -> LongKeys {
        LongKeys { bytes: Vec::new(), bytes_max }
    }

    /// Adds a key and returns its place.
    pub(crate) fn push(&mut self, key: &[u8]) -> u64 {
        let place = self.bytes.len();
        let needed = place + LEN_BYTES + key.len();
        if needed > self.bytes.capacity() {
            // Half again as much, not twice: the vector and its copy count against the table's share.
            let wanted = (needed + needed / 2).min(self.bytes_max.max(needed));
            self.bytes.reserve_exact(wanted - place);
        }
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        place as u64
    }

    /// The key at a place that `push` returned.
    #[inline]
    pub(crate) fn get(&self, place: u64) -> &[u8] {
        let (head, rest) = self.bytes[place as usize..].split_at(LEN_BYTES);
        let len = u32::from_le_bytes(*head.first_chunk().expect("split at the length of a length"));
        &rest[..len as usize]
    }

    /// Bytes used.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all keys, and keeps the memory only where it is little.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > self.bytes_max / 8 {
            self.bytes = Vec::new();
        }
    }
}
