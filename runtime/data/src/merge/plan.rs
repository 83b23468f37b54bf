//! The plan of intermediate merges: which sources to merge first when there are too many for one merge.

use std::ops::Range;

use crate::budget::Budget;
use crate::segment::BlockCompression;

/// Returns the most sources that one merge may have, given the setting and the memory.
pub(crate) fn fan_in(wanted: usize, compression: BlockCompression, budget: &Budget) -> usize {
    let wanted = wanted.max(2);
    match compression {
        BlockCompression::None => wanted,
        BlockCompression::Lz4 => wanted.min(budget.fan_in_compressed()),
    }
}

/// Returns the next range of sources to merge, given all sizes; `None` if they fit one merge.
///
/// Equal keys come in the order of their sources, so only neighbours can be merged. The first merge is as
/// narrow as possible, so that all later ones are full; among ranges of equal width it takes the smallest, so
/// that few bytes are written twice.
pub(crate) fn next_merge(sizes: &[u64], fan_in: usize) -> Option<Range<usize>> {
    if sizes.len() <= fan_in {
        return None;
    }
    let rest = (sizes.len() - 1) % (fan_in - 1);
    let width = if rest == 0 { fan_in } else { rest + 1 };
    let mut sum: u64 = sizes[..width].iter().sum();
    let mut start = 0;
    let mut least = sum;
    for end in width..sizes.len() {
        sum = sum - sizes[end - width] + sizes[end];
        if sum < least {
            (start, least) = (end - width + 1, sum);
        }
    }
    Some(start..start + width)
}

#[cfg(test)]
mod tests {
    use super::next_merge;

    /// Merges until one merge is left; returns the number of intermediate merges.
    fn merges(count: usize, fan_in: usize) -> usize {
        let mut sizes: Vec<u64> = (0..count as u64)
            .map(|index| index * 37 % 101 + 1)
            .collect();
        let total: u64 = sizes.iter().sum();
        let mut merges = 0;
        while let Some(range) = next_merge(&sizes, fan_in) {
            assert!(
                (2..=fan_in).contains(&range.len()),
                "{range:?} of {count}, fan-in {fan_in}"
            );
            let sum = sizes[range.clone()].iter().sum();
            sizes.splice(range, [sum]);
            merges += 1;
        }
        assert_eq!(sizes.iter().sum::<u64>(), total);
        if merges > 0 {
            assert_eq!(sizes.len(), fan_in, "the last merge is full");
        }
        merges
    }

    #[test]
    fn next_merge_fills_the_last_merge_with_fewest_passes() {
        for fan_in in [2, 3, 7, 64] {
            for count in 0..300usize {
                let needed = count.saturating_sub(fan_in).div_ceil(fan_in - 1);
                assert_eq!(
                    merges(count, fan_in),
                    needed,
                    "{count} sources, fan-in {fan_in}"
                );
            }
        }
    }

    #[test]
    fn next_merge_takes_the_smallest_neighbours() {
        assert_eq!(next_merge(&[9, 9, 1, 2, 9, 9, 9], 6), Some(2..4));
        assert_eq!(next_merge(&[1, 9, 9, 1], 3), Some(0..2));
    }
}
