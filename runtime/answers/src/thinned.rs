//! Thinning of timelines that are too large for a page: stints narrower than a column become one bar per column of
//! their lane.

use napreduce_history::{Lane, Stint};

/// A larger timeline is thinned: a response has at most 4 MiB (`columns`).
const BYTES_MAX: usize = 4 << 20;
/// Size of a row in columns: 32-bit times, and other numbers as in jobs of 100,000 attempts.
const STINT_BYTES: usize = 24;
const NAP_BYTES: usize = 140;
const PREEMPTION_BYTES: usize = 700;
/// Size of an attempt's end, besides its text.
const END_BYTES: usize = 12;
/// The most bars of a thinned timeline, which leaves room for lanes and preemptions.
pub const BARS_MAX: usize = 150_000;
/// The most preemptions, unsuccessful ends and restores listed in a thinned timeline.
pub const LISTED_MAX: usize = 500;
/// Default number of columns per lane.
pub const COLUMNS: u32 = 1_000;

/// Whether a timeline exceeds the size limit.
pub fn is_too_much(placed: &[(Lane, Stint<'_>)], naps: usize) -> bool {
    let bytes_of = |stint: &Stint<'_>| {
        let end = stint
            .end_text
            .filter(|_| !stint.has_succeeded())
            .map_or(0, |text| text.len() + END_BYTES);
        STINT_BYTES + stint.preemption.map_or(0, |_| PREEMPTION_BYTES) + end
    };
    placed
        .iter()
        .map(|(_, stint)| bytes_of(stint))
        .sum::<usize>()
        + naps * NAP_BYTES
        > BYTES_MAX
}

/// A bar of a lane, for one or several stints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar<'job> {
    pub lane: Lane,
    /// For several stints: the longest one with the most frequent end by time, extended from the first start to the
    /// last end.
    pub stint: Stint<'job>,
    /// Number of stints.
    pub count: u32,
}

/// Returns one bar per stint; the stints are ordered by lane and time.
pub fn all<'job>(placed: Vec<(Lane, Stint<'job>)>) -> Vec<Bar<'job>> {
    placed
        .into_iter()
        .map(|(lane, stint)| Bar {
            lane,
            stint,
            count: 1,
        })
        .collect()
}

/// Returns fewer bars: at most `columns` columns per lane, or as many as fit.
pub fn thinned<'job>(
    placed: &[(Lane, Stint<'job>)],
    window: (u64, u64),
    columns: u32,
) -> Vec<Bar<'job>> {
    let lanes = placed.chunk_by(|(one, _), (other, _)| one == other).count();
    let room = u32::try_from(BARS_MAX / lanes.max(1)).unwrap_or(u32::MAX);
    let mut columns = columns.min(room).max(1);
    loop {
        let bars = merged_by(placed, window, columns);
        if bars.len() <= BARS_MAX || columns == 1 {
            return bars;
        }
        // Wide stints come on top of the columns; usually there are few.
        columns -= columns.div_ceil(10);
    }
}

/// Merges narrow stints of the same column. A lane gets up to two bars per column, since a wide stint may follow a
/// narrow one in each.
fn merged_by<'job>(
    placed: &[(Lane, Stint<'job>)],
    (from_micros, until_micros): (u64, u64),
    columns: u32,
) -> Vec<Bar<'job>> {
    let width = until_micros
        .saturating_sub(from_micros)
        .div_ceil(u64::from(columns))
        .max(1);
    let is_narrow = |stint: &Stint<'_>| stint.until_micros - stint.from_micros < width;
    let column = |stint: &Stint<'_>| stint.from_micros.saturating_sub(from_micros) / width;
    let are_one = |(lane, one): &(Lane, Stint<'_>), (other_lane, other): &(Lane, Stint<'_>)| {
        lane == other_lane && is_narrow(one) && is_narrow(other) && column(one) == column(other)
    };
    placed.chunk_by(are_one).map(merged).collect()
}

fn merged<'job>(placed: &[(Lane, Stint<'job>)]) -> Bar<'job> {
    // There are few kinds of ends, so a list suffices.
    let mut ways: Vec<(_, u64, &Stint<'job>)> = Vec::new();
    for (_, stint) in placed {
        let way = (stint.end, stint.has_succeeded());
        let length = length(stint);
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
    // The first of equals, so that equal input gives equal bars.
    let most = ways
        .iter()
        .rev()
        .max_by_key(|(_, sum, _)| *sum)
        .map_or(&first.1, |(.., longest)| *longest);
    let from_micros = first.1.from_micros;
    let until_micros = placed
        .iter()
        .map(|(_, stint)| stint.until_micros)
        .max()
        .unwrap_or(from_micros);
    Bar {
        lane: first.0,
        stint: Stint {
            from_micros,
            until_micros,
            ..most.clone()
        },
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

    fn stint(
        index: u32,
        worker: u32,
        from_micros: u64,
        until_micros: u64,
        is_done: bool,
    ) -> Stint<'static> {
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index,
        };
        Stint {
            attempt: AttemptId { task, number: 1 },
            worker: WorkerId(worker),
            from_micros,
            started_micros: None,
            until_micros,
            end: StintEnd::Ended,
            preemption: None,
            end_text: Some(if is_done {
                "succeeded"
            } else {
                "failed: bad row"
            }),
            restore: None,
        }
    }

    fn placed(stints: Vec<Stint<'static>>) -> Vec<(Lane, Stint<'static>)> {
        let mut placed = assign_lanes(stints);
        placed.sort_by_key(|(lane, stint)| {
            (*lane, stint.from_micros, stint.until_micros, stint.attempt)
        });
        placed
    }

    const WINDOW: (u64, u64) = (0, 100_000);

    #[test]
    fn narrow_stints_merge_by_column_and_wide_ones_stay() {
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
        let drawn: Vec<_> = bars
            .iter()
            .map(|bar| {
                (
                    bar.stint.attempt.task.index,
                    bar.stint.from_micros,
                    bar.stint.until_micros,
                    bar.count,
                )
            })
            .collect();
        // Most of the first column succeeded, and the first stint is the longest of these.
        assert_eq!(
            drawn,
            [
                (0, 0, 6_500, 3),
                (3, 11_000, 12_000, 1),
                (4, 12_000, 42_000, 1),
                (5, 42_000, 43_000, 1)
            ]
        );
        assert_eq!(all(many).len(), 6);
    }

    proptest! {
        #[test]
        fn every_stint_is_in_one_of_few_bars(
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
