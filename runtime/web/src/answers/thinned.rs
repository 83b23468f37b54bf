//! Fewer rows for more stints than a page can hold: those that are narrower than a column become one row for
//! each column of their lane.
//!
//! Owns which are merged, and what a row says that stands for several. Does not own the form of the answer
//! (`timeline`).

use napreduce_history::{Lane, Stint};

/// A timeline of more than this is thinned: answers have 4 MiB at most (`columns`).
const BYTES_MAX: usize = 4 << 20;
/// Of a row in columns: times of 32 bits, and other numbers as jobs of 100,000 attempts have them.
const STINT_BYTES: usize = 24;
const NAP_BYTES: usize = 140;
const PREEMPTION_BYTES: usize = 700;
/// Of how an attempt ended, beside its words.
const END_BYTES: usize = 12;
/// What is thinned has so many rows at most; what is left of the bytes is for lanes and preemptions.
pub const BARS_MAX: usize = 150_000;
/// So many preemptions, ends that were not successes, and restores are told of what is thinned.
pub const TOLD_MAX: usize = 500;
/// Of a lane, unless it is said.
pub const COLUMNS: u32 = 1_000;

/// Whether that is more than an answer may hold.
pub fn is_too_much(placed: &[(Lane, Stint<'_>)], naps: usize) -> bool {
    let bytes_of = |stint: &Stint<'_>| {
        let said = stint.end_text.filter(|said| *said != "done").map_or(0, |said| said.len() + END_BYTES);
        STINT_BYTES + stint.preemption.map_or(0, |_| PREEMPTION_BYTES) + said
    };
    placed.iter().map(|(_, stint)| bytes_of(stint)).sum::<usize>() + naps * NAP_BYTES > BYTES_MAX
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar<'job> {
    pub lane: Lane,
    /// Of several, the longest of those that ended in the way in which most of the time was spent; it begins
    /// with the first of them and ends with the last.
    pub stint: Stint<'job>,
    /// How many it stands for.
    pub count: u32,
}

/// A row for each of the stints, which stand by lane and time.
pub fn all<'job>(placed: Vec<(Lane, Stint<'job>)>) -> Vec<Bar<'job>> {
    placed.into_iter().map(|(lane, stint)| Bar { lane, stint, count: 1 }).collect()
}

/// Fewer rows: so many columns a lane, or as many as there is room for.
pub fn thinned<'job>(placed: &[(Lane, Stint<'job>)], window: (u64, u64), columns: u32) -> Vec<Bar<'job>> {
    let lanes = placed.chunk_by(|(one, _), (other, _)| one == other).count();
    let room = u32::try_from(BARS_MAX / lanes.max(1)).unwrap_or(u32::MAX);
    let mut columns = columns.min(room).max(1);
    loop {
        let bars = merged_by(placed, window, columns);
        if bars.len() <= BARS_MAX || columns == 1 {
            return bars;
        }
        // What is wide stands beside the columns; seldom much of it.
        columns -= columns.div_ceil(10);
    }
}

/// In each lane twice as many rows as there are columns at most, since what is wide may be beside what is
/// narrow in each.
fn merged_by<'job>(
    placed: &[(Lane, Stint<'job>)],
    (from_micros, until_micros): (u64, u64),
    columns: u32,
) -> Vec<Bar<'job>> {
    let width = until_micros.saturating_sub(from_micros).div_ceil(u64::from(columns)).max(1);
    let is_narrow = |stint: &Stint<'_>| stint.until_micros - stint.from_micros < width;
    let column = |stint: &Stint<'_>| stint.from_micros.saturating_sub(from_micros) / width;
    let are_one = |(lane, one): &(Lane, Stint<'_>), (other_lane, other): &(Lane, Stint<'_>)| {
        lane == other_lane && is_narrow(one) && is_narrow(other) && column(one) == column(other)
    };
    placed.chunk_by(are_one).map(merged).collect()
}

fn merged<'job>(placed: &[(Lane, Stint<'job>)]) -> Bar<'job> {
    // Few ways to end, so that a list is enough.
    let mut ways: Vec<(_, u64, &Stint<'job>)> = Vec::new();
    for (_, stint) in placed {
        let (way, length) = ((stint.end, stint.end_text == Some("done")), length(stint));
        match ways.iter_mut().find(|(known, ..)| *known == way) {
            None => ways.push((way, length, stint)),
            Some((_, sum, longest)) => {
                *sum += length;
                if length > self::length(longest) {
                    *longest = stint;
                }
            }
        }
    }
    let first = &placed[0];
    // Of equal ones the first, so that equal input gives equal rows.
    let most = ways.iter().rev().max_by_key(|(_, sum, _)| *sum).map_or(&first.1, |(.., longest)| *longest);
    let from_micros = first.1.from_micros;
    let until_micros = placed.iter().map(|(_, stint)| stint.until_micros).max().unwrap_or(from_micros);
    Bar {
        lane: first.0,
        stint: Stint { from_micros, until_micros, ..most.clone() },
        count: placed.len() as u32,
    }
}

fn length(stint: &Stint<'_>) -> u64 {
    stint.until_micros - stint.from_micros
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
    use napreduce_history::{StintEnd, assign_lanes};
    use proptest::prelude::*;

    use super::*;

    fn stint(index: u32, worker: u32, from_micros: u64, until_micros: u64, is_done: bool) -> Stint<'static> {
        let task = TaskId { job: JobId(1), kind: TaskKind::Map, index };
        Stint {
            attempt: AttemptId { task, number: 1 },
            worker: WorkerId(worker),
            from_micros,
            started_micros: None,
            until_micros,
            end: StintEnd::Ended,
            preemption: None,
            end_text: Some(if is_done { "done" } else { "failed: bad row" }),
            restore: None,
        }
    }

    fn placed(stints: Vec<Stint<'static>>) -> Vec<(Lane, Stint<'static>)> {
        let mut placed = assign_lanes(stints);
        placed.sort_by_key(|(lane, stint)| (*lane, stint.from_micros, stint.until_micros, stint.attempt));
        placed
    }

    const WINDOW: (u64, u64) = (0, 100_000);

    #[test]
    fn narrow_ones_become_one_a_column_and_wide_ones_stay() {
        let of = |index, from, until, is_done| stint(index, 1, from, until, is_done);
        let many = placed(vec![
            of(0, 0, 2_000, true),
            of(1, 2_000, 5_000, false),
            of(2, 5_000, 6_500, true),
            of(3, 11_000, 12_000, true),
            of(4, 12_000, 42_000, true),
            of(5, 42_000, 43_000, true),
        ]);
        let bars = thinned(&many, WINDOW, 10);
        let said: Vec<_> = bars
            .iter()
            .map(|bar| {
                (bar.stint.attempt.task.index, bar.stint.from_micros, bar.stint.until_micros, bar.count)
            })
            .collect();
        // Most of the first column was done, and the longest of that is the first.
        assert_eq!(
            said,
            [(0, 0, 6_500, 3), (3, 11_000, 12_000, 1), (4, 12_000, 42_000, 1), (5, 42_000, 43_000, 1)]
        );
        assert_eq!(all(many).len(), 6);
    }

    proptest! {
        #[test]
        fn every_stint_is_in_one_row_and_rows_are_bounded(
            spans in proptest::collection::vec((0..3_u32, 0..100_000_u64, 0..9_000_u64, any::<bool>()), 1..200),
            columns in 1..40_u32,
        ) {
            let stints = (0..).zip(&spans)
                .map(|(index, (worker, from, length, is_done))| {
                    stint(index, *worker, *from, (from + length).min(WINDOW.1), *is_done)
                })
                .collect();
            let placed = placed(stints);
            let bars = thinned(&placed, WINDOW, columns);
            prop_assert_eq!(bars.iter().map(|bar| bar.count as usize).sum::<usize>(), spans.len());
            for lane in bars.chunk_by(|one, other| one.lane == other.lane) {
                prop_assert!(lane.len() <= 2 * columns as usize + 1, "{} of {columns}", lane.len());
                for pair in lane.windows(2) {
                    prop_assert!(pair[0].stint.until_micros <= pair[1].stint.from_micros);
                }
            }
            for (lane, stint) in &placed {
                let covers = |bar: &&Bar<'_>| {
                    bar.lane == *lane
                        && bar.stint.from_micros <= stint.from_micros
                        && bar.stint.until_micros >= stint.until_micros
                };
                prop_assert!(bars.iter().any(|bar| covers(&bar)), "{stint:?}");
            }
        }
    }
}
