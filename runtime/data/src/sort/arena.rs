//! The sort arena: encoded records grow from the bottom, their sort entries from the top, a chunk at a time up
//! to the arena's share of the budget. Half the size of the entries stays free as scratch space for the sort.
#![allow(unsafe_code)] // writes to mapped memory

use std::convert::Infallible;
use std::slice;

use super::entry::EntryLayout;
use super::order;
use crate::budget::Grant;
use crate::key;
use crate::record::{Extent, HEADER_MAX, RecordEncoding, Source};
use crate::region::{CHUNK_BYTES, Region, prefetch};

const ENTRY_BYTES: usize = size_of::<u128>();
/// An entry and its scratch space.
const ENTRY_COST: usize = 2 * ENTRY_BYTES;
/// Bytes that a write may go past a record's end: short copies use whole 16-byte stores.
const SLACK: usize = 32;
/// Prefetch distance in records, whose order in memory is random.
const AHEAD: usize = 16;

#[derive(Debug)]
pub(crate) struct Arena {
    region: Region,
    layout: EntryLayout,
    /// Bytes of records, from the region's start.
    data_len: usize,
    records: usize,
    /// Granted bytes that are still free, without scratch space and slack.
    room: usize,
    grant: Grant,
    max: usize,
}

/// The records of an arena in sorted order.
pub(crate) struct Sorted<'a> {
    entries: &'a [u128],
    data: &'a [u8],
    layout: EntryLayout,
}

/// A record to be added, with the head of its key.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub key: &'a [u8],
    pub head: u128,
    pub value: &'a [u8],
}

impl Arena {
    /// Creates an arena that may grow to `max` bytes. `reserve` limits what `set_max` may allow later. Nothing
    /// is allocated yet.
    pub(crate) fn new(
        partitions: u32,
        encoding: RecordEncoding,
        max: usize,
        reserve: usize,
        grant: Grant,
    ) -> Arena {
        let reserve = reserve.max(max).next_multiple_of(4096);
        let region = Region::reserve(reserve);
        // Except at the ends, where a tiny task would clear 2 MiB each for a few bytes.
        region.prefer_huge_pages(CHUNK_BYTES..reserve.saturating_sub(CHUNK_BYTES));
        let layout = EntryLayout::new(partitions, encoding, reserve);
        Arena {
            region,
            layout,
            data_len: 0,
            records: 0,
            room: 0,
            grant,
            max,
        }
    }

    /// Changes the size limit.
    pub(crate) fn set_max(&mut self, max: usize) {
        self.max = max.min(self.region.len());
    }

    /// Whether an empty arena could hold a record with these lengths.
    pub(crate) fn could_hold(&self, key: usize, value: usize) -> bool {
        cost(key, value).saturating_add(SLACK) <= self.max
    }

    /// Adds a record; returns `false` if it does not fit. The caller checks the lengths of a fixed encoding.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        encoding: RecordEncoding,
        partition: u32,
        record: Record<'_>,
    ) -> bool {
        let Record { key, head, value } = record;
        let cost = cost(key.len(), value.len());
        if cost > self.room && !self.grow(cost) {
            return false;
        }
        let len;
        // SAFETY: `room` covers the header, key, value and entry, and at least SLACK more bytes lie between the
        // records and the entries, so all writes stay inside the region. Entries are aligned because the end
        // of the region is.
        unsafe {
            let record = self.region.base().as_ptr().add(self.data_len);
            let header_len = write_header(record, encoding, key.len(), value.len());
            len = header_len + key.len() + value.len();
            copy_key(record.add(header_len), key, head);
            copy_short(record.add(header_len + key.len()), value);
            let top = self
                .region
                .base()
                .as_ptr()
                .add(self.region.len())
                .cast::<u128>();
            top.sub(self.records + 1).write(self.layout.entry(
                partition,
                head,
                key.len(),
                self.data_len,
            ));
        }
        self.data_len += len;
        self.records += 1;
        self.room -= len + ENTRY_COST;
        true
    }

    /// Grants another chunk, or more if `cost` needs it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, cost: usize) -> bool {
        let used = self.data_len + self.records * ENTRY_COST + SLACK;
        let needed = used.saturating_add(cost);
        if needed > self.max {
            return false;
        }
        // The first grants are small, so that a tiny task touches and accounts for little memory.
        let step = self.grant.bytes().clamp(CHUNK_BYTES / 32, CHUNK_BYTES);
        let granted = needed.max(self.grant.bytes() + step).min(self.max);
        self.grant.set(granted);
        self.room = granted - used;
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Sorts the records.
    pub(crate) fn sort(&mut self) -> Sorted<'_> {
        // SAFETY: `push` wrote the first `data_len` bytes and the last `records` entries. Between them is room
        // for as many entries of scratch space, zeroed or written before. The three slices do not overlap, and
        // the borrow of `self` keeps them exclusive.
        let (data, scratch, entries) = unsafe {
            let top = self
                .region
                .base()
                .as_ptr()
                .add(self.region.len())
                .cast::<u128>();
            (
                slice::from_raw_parts(self.region.base().as_ptr(), self.data_len),
                slice::from_raw_parts_mut(top.sub(2 * self.records), self.records),
                slice::from_raw_parts_mut(top.sub(self.records), self.records),
            )
        };
        order::sort(entries, scratch, data, self.layout);
        Sorted {
            entries,
            data,
            layout: self.layout,
        }
    }

    /// Removes all records and keeps the memory, which is warm.
    pub(crate) fn clear(&mut self) {
        self.data_len = 0;
        self.records = 0;
        self.room = self.grant.bytes().saturating_sub(SLACK);
    }
}

/// The records of one partition of a sorted arena.
pub(crate) struct SortedPartition<'a> {
    entries: &'a [u128],
    data: &'a [u8],
    layout: EntryLayout,
    next: usize,
    record: &'a [u8],
}

impl<'a> Sorted<'a> {
    pub(crate) fn partition(&self, partition: u32) -> SortedPartition<'a> {
        let start = self
            .entries
            .partition_point(|&entry| self.layout.partition(entry) < partition);
        let rest = &self.entries[start..];
        let len = rest.partition_point(|&entry| self.layout.partition(entry) == partition);
        SortedPartition {
            entries: &rest[..len],
            data: self.data,
            layout: self.layout,
            next: 0,
            record: &[],
        }
    }
}

impl SortedPartition<'_> {
    #[inline]
    fn parse(&self, bytes: &[u8]) -> Extent {
        self.layout
            .encoding
            .parse(bytes)
            .expect("the arena holds whole records only")
    }
}

impl Source for SortedPartition<'_> {
    type Error = Infallible;

    #[inline]
    fn advance(&mut self) -> Result<bool, Infallible> {
        let Some(&entry) = self.entries.get(self.next) else {
            return Ok(false);
        };
        if let Some(&ahead) = self.entries.get(self.next + AHEAD) {
            let at = self.layout.locator(ahead);
            prefetch(self.data, at);
            prefetch(self.data, at + 64);
        }
        let rest = &self.data[self.layout.locator(entry)..];
        self.record = &rest[..self.parse(rest).end];
        self.next += 1;
        Ok(true)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        let extent = self.parse(self.record);
        &self.record[extent.key..extent.value]
    }

    #[inline]
    fn value(&self) -> &[u8] {
        &self.record[self.parse(self.record).value..]
    }

    #[inline]
    fn record(&self) -> &[u8] {
        self.record
    }
}

/// Returns the room that a record with these lengths needs at most.
#[inline(always)]
fn cost(key: usize, value: usize) -> usize {
    key.saturating_add(value)
        .saturating_add(HEADER_MAX + ENTRY_COST)
}

/// Writes a record's header and returns its length.
///
/// # Safety
/// `into` is valid for writing HEADER_MAX bytes.
#[inline(always)]
unsafe fn write_header(into: *mut u8, encoding: RecordEncoding, key: usize, value: usize) -> usize {
    if encoding.stride().is_some() {
        return 0;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        if key < 0x80 && value < 0x80 {
            into.cast::<[u8; 2]>()
                .write_unaligned([key as u8, value as u8]);
            return 2;
        }
        let mut header = [0; HEADER_MAX];
        let len = encoding.header(key, value, &mut header);
        into.copy_from_nonoverlapping(header.as_ptr(), len);
        len
    }
}

/// Copies a key whose first 16 bytes are `head`.
///
/// # Safety
/// `into` is valid for writing 16 bytes more than the key's length.
#[inline(always)]
unsafe fn copy_key(into: *mut u8, key: &[u8], head: u128) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if key.len() <= 16 {
            into.cast::<[u8; 16]>().write_unaligned(head.to_be_bytes());
        } else {
            into.copy_from_nonoverlapping(key.as_ptr(), key.len());
        }
    }
}

/// Copies bytes; fast if there are at most 16.
///
/// # Safety
/// `into` is valid for writing 16 bytes more than the length of `bytes`.
#[inline(always)]
unsafe fn copy_short(into: *mut u8, bytes: &[u8]) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if bytes.len() <= 16 {
            into.cast::<[u8; 16]>()
                .write_unaligned(key::head(bytes).to_be_bytes());
        } else {
            into.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
}
