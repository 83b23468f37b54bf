//! Assigns each stint to a slot (lane) of its worker: the lowest free one, independent of the input order. The
//! history does not record slots, which are interchangeable.

use std::collections::HashMap;

use napreduce_engine::{TaskKind, WorkerId};

use super::{MILLI_MICROS, Stint};

/// A slot of a worker, as drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    pub worker: WorkerId,
    pub is_reduce: bool,
    /// Number among the worker's slots of the same kind, from 0.
    pub number: u32,
}

/// Assigns lanes so that stints do not overlap, and sorts by time. Launch times have a resolution of one
/// millisecond, so a stint may start up to that much later, when the lane is free.
pub fn assign_lanes<'job>(mut stints: Vec<Stint<'job>>) -> Vec<(Lane, Stint<'job>)> {
    stints.sort_by_key(|stint| (stint.from_micros, stint.until_micros, stint.attempt));
    let mut free_at: HashMap<(WorkerId, bool), Vec<u64>> = HashMap::new();
    let place = |mut stint: Stint<'job>| {
        let is_reduce = stint.attempt.task.kind == TaskKind::Reduce;
        let lanes = free_at.entry((stint.worker, is_reduce)).or_default();
        let by = stint.from_micros + (MILLI_MICROS - 1);
        let number = lanes
            .iter()
            .position(|free| *free <= by)
            .unwrap_or_else(|| {
                lanes.push(0);
                lanes.len() - 1
            });
        stint.from_micros = stint.from_micros.max(lanes[number]);
        stint.until_micros = stint.until_micros.max(stint.from_micros);
        lanes[number] = stint.until_micros;
        (
            Lane {
                worker: stint.worker,
                is_reduce,
                number: number as u32,
            },
            stint,
        )
    };
    stints.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, JobId, TaskId};
    use proptest::prelude::*;

    use super::super::StintEnd;
    use super::*;

    fn stint(index: u32, worker: u32, from_micros: u64, until_micros: u64) -> Stint<'static> {
        let kind = if index.is_multiple_of(2) {
            TaskKind::Map
        } else {
            TaskKind::Reduce
        };
        let attempt = AttemptId {
            task: TaskId {
                job: JobId(1),
                kind,
                index,
            },
            number: 1,
        };
        let end = StintEnd::Ended;
        let worker = WorkerId(worker);
        let started_micros = None;
        let preemption = None;
        let end_text = None;
        let restore = None;
        Stint {
            attempt,
            worker,
            from_micros,
            started_micros,
            until_micros,
            end,
            preemption,
            end_text,
            restore,
        }
    }

    #[test]
    fn stint_starts_on_a_lane_freed_within_its_millisecond() {
        let both = assign_lanes(vec![stint(0, 1, 0, 5_400), stint(2, 1, 5_000, 9_000)]);
        let lanes: Vec<_> = both
            .iter()
            .map(|(lane, stint)| (lane.number, stint.from_micros))
            .collect();
        assert_eq!(lanes, [(0, 0), (0, 5_400)]);
        let both = assign_lanes(vec![stint(0, 1, 0, 6_400), stint(2, 1, 5_000, 9_000)]);
        assert_eq!(
            both.iter().map(|(lane, _)| lane.number).collect::<Vec<_>>(),
            [0, 1]
        );
    }

    proptest! {
        #[test]
        fn lanes_never_overlap_and_ignore_input_order(
            spans in proptest::collection::vec((0..3_u32, 0..50_000_u64, 0..20_000_u64), 0..60),
            seed in any::<u64>(),
        ) {
            let stints: Vec<_> = (0..).zip(&spans)
                .map(|(index, (worker, from, length))| stint(index, *worker, *from, from + length))
                .collect();
            let placed = assign_lanes(stints.clone());
            let mut shuffled = stints.clone();
            let half = (seed as usize).checked_rem(shuffled.len()).unwrap_or(0);
            shuffled.rotate_left(half);
            prop_assert_eq!(&assign_lanes(shuffled), &placed);
            prop_assert_eq!(placed.len(), stints.len());
            for (index, (lane, one)) in placed.iter().enumerate() {
                let before = &stints[one.attempt.task.index as usize];
                prop_assert!(one.from_micros - before.from_micros < MILLI_MICROS);
                prop_assert!(one.until_micros >= before.until_micros && one.until_micros >= one.from_micros);
                for (other_lane, other) in &placed[index + 1..] {
                    let apart = one.until_micros <= other.from_micros || other.until_micros <= one.from_micros;
                    prop_assert!(lane != other_lane || apart, "{one:?} {other:?}");
                }
            }
        }
    }
}
