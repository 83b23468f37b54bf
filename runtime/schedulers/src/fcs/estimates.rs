//! What FCS knows of jobs and tasks: how long until all maps are done, how much is left to reduce, and how
//! slack a task has become.
//!
//! Owns the formulas, exact and in any unit. Does not own where the numbers come from.

use serde::{Deserialize, Serialize};

use napreduce_engine::Ratio;

/// What is left of a job, in the order in which FCS compares it: first the time until its last map, then the
/// data its reduces have not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RemainingWork {
    /// The time until all maps are done.
    pub shuffle: ShuffleTime,
    /// Bytes that are not reduced yet, or any other measure of it.
    pub reduce: Ratio,
}

/// A time until all maps of a job are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ShuffleTime {
    /// So long.
    Finite(Ratio),
    /// Longer than any other: maps are left and none of them makes progress.
    Infinite,
}

/// The time until so many maps are done that take `mean` each, if `rate` of them are done in the time of one.
/// Without maps left it is nothing, however slow they were.
pub fn remaining_shuffle(maps_left: u64, rate: Ratio, mean: Ratio) -> ShuffleTime {
    if maps_left == 0 {
        ShuffleTime::Finite(Ratio::ZERO)
    } else if rate <= Ratio::ZERO {
        ShuffleTime::Infinite
    } else {
        ShuffleTime::Finite(Ratio::whole(maps_left) / rate * mean)
    }
}

/// What is left to reduce when maps wrote `written` so far and did this share of their work: what they will
/// have written, without what is `reduced` already. Before they wrote anything nothing is known of it.
pub fn remaining_reduce(written: Ratio, maps_progress: Ratio, reduced: Ratio) -> Ratio {
    let total = if maps_progress > Ratio::ZERO { written / maps_progress } else { Ratio::ZERO };
    (total - reduced).max(Ratio::ZERO)
}

/// A reduce as the choice of victims sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningReduce {
    /// The time since it was first started, also while it was preempted.
    pub total: Ratio,
    /// The time it was at work.
    pub service: Ratio,
    /// The share of its work that is done.
    pub progress: Ratio,
}

/// Which reduces may be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// A reduce of this slackness keeps its slot.
    pub slackness: Ratio,
    /// One that has done more than this share keeps it, too.
    pub progress_max: Ratio,
    /// And one that was at work for less than this.
    pub service_min: Ratio,
}

/// How many times as long a reduce has been there as it would take in all without preemption; nothing while
/// it made no progress.
pub fn slackness(reduce: &RunningReduce) -> Ratio {
    if reduce.service <= Ratio::ZERO {
        return Ratio::ZERO;
    }
    reduce.total * reduce.progress / reduce.service
}

/// Whether a reduce may be preempted.
pub fn is_preemptable(reduce: &RunningReduce, bounds: &Bounds) -> bool {
    slackness(reduce) < bounds.slackness
        && reduce.progress <= bounds.progress_max
        && reduce.service >= bounds.service_min
}

/// How often a task is declined before it goes to another worker, so that on `workers` of them a share
/// `locality` of tasks goes on where it was.
pub fn migration_threshold(workers: u32, locality: f64) -> f64 {
    let away = 1.0 - locality;
    -f64::from(workers) * (away / (1.0 + away)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_maps_left_nothing_remains_to_shuffle() {
        let none = ShuffleTime::Finite(Ratio::ZERO);
        assert_eq!(remaining_shuffle(0, Ratio::ZERO, Ratio::whole(5)), none);
        assert_eq!(remaining_shuffle(1, Ratio::ZERO, Ratio::whole(5)), ShuffleTime::Infinite);
        assert!(none < ShuffleTime::Infinite);
    }

    #[test]
    fn the_output_of_all_maps_is_scaled_from_that_of_some() {
        let (written, quarter) = (Ratio::whole(100), Ratio::new(1, 4));
        assert_eq!(remaining_reduce(written, quarter, Ratio::ZERO), Ratio::whole(400));
        assert_eq!(remaining_reduce(written, Ratio::ONE, Ratio::whole(30)), Ratio::whole(70));
        assert_eq!(remaining_reduce(written, Ratio::ONE, Ratio::whole(130)), Ratio::ZERO);
        assert_eq!(remaining_reduce(Ratio::ZERO, Ratio::ZERO, Ratio::ZERO), Ratio::ZERO);
    }

    #[test]
    fn a_reduce_that_never_worked_is_not_slack() {
        let reduce = RunningReduce { total: Ratio::whole(9), service: Ratio::ZERO, progress: Ratio::ZERO };
        assert_eq!(slackness(&reduce), Ratio::ZERO);
    }
}
