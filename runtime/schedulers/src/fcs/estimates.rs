//! The estimates of FCS as exact formulas: remaining shuffle time, remaining reduce work, and slackness.

use serde::{Deserialize, Serialize};

use napreduce_engine::Ratio;

/// The remaining work of a job. Orders by shuffle time, then by reduce work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RemainingWork {
    /// Time until the last map finishes.
    pub shuffle: ShuffleTime,
    /// Unprocessed bytes, or another measure of reduce work.
    pub reduce: Ratio,
}

/// The time until all maps of a job are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ShuffleTime {
    Finite(Ratio),
    /// Maps are left, but none makes progress.
    Infinite,
}

/// Returns the time until `maps_left` maps are done, if each takes `mean` and `rate` of them finish in that
/// time. Zero without maps left.
pub fn remaining_shuffle(maps_left: u64, rate: Ratio, mean: Ratio) -> ShuffleTime {
    if maps_left == 0 {
        ShuffleTime::Finite(Ratio::ZERO)
    } else if rate <= Ratio::ZERO {
        ShuffleTime::Infinite
    } else {
        ShuffleTime::Finite(Ratio::whole(maps_left) / rate * mean)
    }
}

/// Returns the remaining reduce work. Extrapolates the output `written` at `maps_progress` to all maps and
/// subtracts what is `reduced`. Zero before any output.
pub fn remaining_reduce(written: Ratio, maps_progress: Ratio, reduced: Ratio) -> Ratio {
    let total = if maps_progress > Ratio::ZERO {
        written / maps_progress
    } else {
        Ratio::ZERO
    };
    (total - reduced).max(Ratio::ZERO)
}

/// A reduce in the victim selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningReduce {
    /// Time since its first launch, including preempted time.
    pub total: Ratio,
    /// Time that it ran.
    pub service: Ratio,
    /// Completed fraction of its work.
    pub progress: Ratio,
}

/// The bounds on preemptable reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// A reduce with at least this slackness keeps its slot.
    pub slackness: Ratio,
    /// So does a reduce with more progress than this.
    pub progress_max: Ratio,
    /// So does a reduce that has run for less than this.
    pub service_min: Ratio,
}

/// Returns the elapsed time of a reduce divided by its estimated total run time; zero while it makes no
/// progress.
pub fn slackness(reduce: &RunningReduce) -> Ratio {
    if reduce.service <= Ratio::ZERO {
        return Ratio::ZERO;
    }
    reduce.total * reduce.progress / reduce.service
}

/// Whether a reduce is within the bounds.
pub fn is_preemptable(reduce: &RunningReduce, bounds: &Bounds) -> bool {
    slackness(reduce) < bounds.slackness
        && reduce.progress <= bounds.progress_max
        && reduce.service >= bounds.service_min
}

/// Returns the number of declined opportunities after which a task migrates, so that on `workers` a fraction
/// `locality` of tasks returns to its worker.
pub fn migration_threshold(workers: u32, locality: f64) -> f64 {
    let away = 1.0 - locality;
    -f64::from(workers) * (away / (1.0 + away)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_shuffle_is_zero_without_maps() {
        let none = ShuffleTime::Finite(Ratio::ZERO);
        assert_eq!(remaining_shuffle(0, Ratio::ZERO, Ratio::whole(5)), none);
        assert_eq!(
            remaining_shuffle(1, Ratio::ZERO, Ratio::whole(5)),
            ShuffleTime::Infinite
        );
        assert!(none < ShuffleTime::Infinite);
    }

    #[test]
    fn remaining_reduce_extrapolates_map_output() {
        let written = Ratio::whole(100);
        let quarter = Ratio::new(1, 4);
        assert_eq!(
            remaining_reduce(written, quarter, Ratio::ZERO),
            Ratio::whole(400)
        );
        assert_eq!(
            remaining_reduce(written, Ratio::ONE, Ratio::whole(30)),
            Ratio::whole(70)
        );
        assert_eq!(
            remaining_reduce(written, Ratio::ONE, Ratio::whole(130)),
            Ratio::ZERO
        );
        assert_eq!(
            remaining_reduce(Ratio::ZERO, Ratio::ZERO, Ratio::ZERO),
            Ratio::ZERO
        );
    }

    #[test]
    fn slackness_is_zero_without_service() {
        let reduce = RunningReduce {
            total: Ratio::whole(9),
            service: Ratio::ZERO,
            progress: Ratio::ZERO,
        };
        assert_eq!(slackness(&reduce), Ratio::ZERO);
    }
}
