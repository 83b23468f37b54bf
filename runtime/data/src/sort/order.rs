//! Sorts entries: a radix sort, then keys that go on beyond their entries. Locators make the order stable,
//! because records lie in the arena in order of arrival.

use super::entry::EntryLayout;
use super::radix;
use crate::record::RecordEncoding;
use crate::region::prefetch;

/// Ranges of equal entries up to this length are sorted by comparing whole keys.
const COMPARED_MAX: usize = 12;
/// How often a range of equal entries is re-keyed with the next key bytes before whole keys are compared.
const REKEYED_MAX: usize = 8;
/// Prefetch distance in entries.
const AHEAD: usize = 16;

/// Sorts entries by partition, key and arrival. They lie in memory in reverse order of arrival; `scratch` has
/// the length of `entries`.
pub(super) fn sort(entries: &mut [u128], scratch: &mut [u128], data: &[u8], layout: EntryLayout) {
    radix::sort_reversed(entries, scratch);
    resolve(entries, data, layout, layout.prefix_bytes(), 0);
}

/// Sorts ranges of entries whose keys share the first `depth` bytes and are longer.
fn resolve(entries: &mut [u128], data: &[u8], layout: EntryLayout, depth: usize, rekeyed: usize) {
    if let RecordEncoding::Fixed { key, .. } = layout.encoding
        && depth >= key as usize
    {
        return;
    }
    let mut start = 0;
    while start + 1 < entries.len() {
        let first = entries[start];
        let mut end = start + 1;
        if layout.is_truncated(first) {
            let bits = layout.without_locator(first);
            while end < entries.len() && layout.without_locator(entries[end]) == bits {
                end += 1;
            }
            if end - start > 1 {
                sort_range(&mut entries[start..end], data, layout, depth, rekeyed);
            }
        }
        start = end;
    }
}

fn sort_range(range: &mut [u128], data: &[u8], layout: EntryLayout, depth: usize, rekeyed: usize) {
    let rest = |entry: u128| -> &[u8] {
        let record = &data[layout.locator(entry)..];
        let extent = layout
            .encoding
            .parse(record)
            .expect("the arena holds whole records only");
        &record[extent.key + depth..extent.value]
    };
    if range.len() <= COMPARED_MAX || rekeyed == REKEYED_MAX || layout.prefix_bytes() == 0 {
        let locator = |entry| layout.locator(entry);
        range.sort_unstable_by(|&a, &b| {
            rest(a)
                .cmp(rest(b))
                .then_with(|| locator(a).cmp(&locator(b)))
        });
        return;
    }
    for index in 0..range.len() {
        if let Some(&ahead) = range.get(index + AHEAD) {
            prefetch(data, layout.locator(ahead) + depth);
        }
        range[index] = layout.rekeyed(range[index], rest(range[index]));
    }
    range.sort_unstable();
    resolve(
        range,
        data,
        layout,
        depth + layout.prefix_bytes(),
        rekeyed + 1,
    );
}
