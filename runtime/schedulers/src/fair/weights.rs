//! The weight of a job among the jobs of its pool, by size and priority, and its sort key.

use napreduce_engine::{JobId, Ratio, TaskKind};

use crate::fair::configuration::PoolOrder;
use crate::fair::order::Weight;
use crate::fair::pool::{Amount, Key, short};
use crate::fair::tree::Entry;
use crate::turns::{Standing, TurnWeight};

/// The inputs of job weights. Without any, every job has weight 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobWeights {
    /// Higher demand increases the weight.
    pub by_size: bool,
    /// Higher priority increases the weight.
    pub by_priority: bool,
}

impl JobWeights {
    /// Returns the weight of a job relative to the other jobs of its pool.
    pub(super) fn of(self, entry: &Entry, kind: TaskKind) -> Ratio {
        let size = if self.by_size {
            size_weight(entry.kinds[kind].demand.held.demand)
        } else {
            Ratio::ONE
        };
        if self.by_priority {
            Ratio::whole(u64::from(entry.priority.max(1).unsigned_abs())) * size
        } else {
            size
        }
    }

    fn short(self, entry: &Entry, kind: TaskKind) -> Option<Weight> {
        let plain = !self.by_size && !self.by_priority;
        if plain {
            Some(Weight::ONE)
        } else {
            Weight::new(self.of(entry, kind))
        }
    }

    pub(super) fn standing(self, entry: &Entry, kind: TaskKind) -> Standing {
        let Amount { usage, demand } = entry.kinds[kind].demand.held;
        let weight = self
            .short(entry, kind)
            .map_or_else(TurnWeight::default, Weight::in_turns);
        Standing {
            usage,
            waits: usage < demand,
            active: demand > 0,
            weight,
        }
    }

    pub(super) fn key(self, job: JobId, entry: &Entry, kind: TaskKind, order: PoolOrder) -> Key {
        let Amount { usage, demand } = entry.kinds[kind].demand.held;
        let name = job.0;
        if order == PoolOrder::Fifo {
            // A higher priority sorts first.
            let usage = i32::MAX.abs_diff(entry.priority);
            let start = (0, entry.submitted);
            return Key {
                usage,
                min: 0,
                demand: 1,
                weight: Some(Weight::ONE),
                start,
                name,
            };
        }
        let start = (entry.kinds[kind].turn.place(), entry.submitted);
        let weight = self.short(entry, kind);
        Key {
            usage: short(usage),
            min: 0,
            demand: short(demand),
            weight,
            start,
            name,
        }
    }
}

/// Returns log2(1 + demand), truncated to 12 binary digits so that all machines agree.
fn size_weight(demand: u64) -> Ratio {
    const DIGITS: u32 = 12;
    let number = u128::from(demand) + 1;
    let whole = number.ilog2();
    // The number scaled into [1, 2) with 64 binary digits. Each squaring yields one digit of the logarithm.
    let mut scaled = (number << 64) >> whole;
    let mut log = i128::from(whole);
    for _ in 0..DIGITS {
        scaled = (scaled >> 32) * (scaled >> 32);
        log *= 2;
        if scaled >= 2 << 64 {
            scaled >>= 1;
            log += 1;
        }
    }
    Ratio::new(log, 1 << DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_weight_approximates_logarithm() {
        for (demand, weight) in [
            (0, Ratio::ZERO),
            (1, Ratio::ONE),
            (3, Ratio::whole(2)),
            (1023, Ratio::whole(10)),
        ] {
            assert_eq!(size_weight(demand), weight, "of {demand}");
        }
        for demand in [2_u64, 6, 99, 12_345, u64::from(u32::MAX)] {
            let exact = (demand as f64 + 1.0).log2();
            let off = exact - size_weight(demand).to_f64();
            assert!(
                (-1e-9..1.0 / 4096.0 + 1e-9).contains(&off),
                "of {demand}: off by {off}"
            );
        }
    }
}
