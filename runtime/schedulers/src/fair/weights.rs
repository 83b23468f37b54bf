//! What a job weighs among the jobs of its pool, and where it stands there.
//!
//! Owns the weights by size and by priority. Does not own the order (`order`).

use napreduce_engine::{JobId, Ratio, TaskKind};

use crate::fair::configuration::PoolOrder;
use crate::fair::order::Weight;
use crate::fair::pool::{Amount, Key, short};
use crate::fair::tree::Entry;
use crate::turns::{Standing, TurnWeight};

/// What weights go by. Without either every job weighs 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobWeights {
    /// A job that wants more weighs more.
    pub by_size: bool,
    /// A job of higher priority weighs more.
    pub by_priority: bool,
}

impl JobWeights {
    /// The part of a job in relation to the other jobs of its pool.
    pub(super) fn of(self, entry: &Entry, kind: TaskKind) -> Ratio {
        let size = if self.by_size { size_weight(entry.kinds[kind].demand.held.demand) } else { Ratio::ONE };
        if self.by_priority {
            Ratio::whole(u64::from(entry.priority.max(1).unsigned_abs())) * size
        } else {
            size
        }
    }

    fn short(self, entry: &Entry, kind: TaskKind) -> Option<Weight> {
        let plain = !self.by_size && !self.by_priority;
        if plain { Some(Weight::ONE) } else { Weight::new(self.of(entry, kind)) }
    }

    /// What the turn of a job in its pool goes by.
    pub(super) fn standing(self, entry: &Entry, kind: TaskKind) -> Standing {
        let Amount { usage, demand } = entry.kinds[kind].demand.held;
        let weight = self.short(entry, kind).map_or_else(TurnWeight::default, Weight::in_turns);
        Standing { usage, waits: usage < demand, active: demand > 0, weight }
    }

    /// Where a job stands in a pool of this order.
    pub(super) fn key(self, job: JobId, entry: &Entry, kind: TaskKind, order: PoolOrder) -> Key {
        let Amount { usage, demand } = entry.kinds[kind].demand.held;
        let name = job.0;
        if order == PoolOrder::Fifo {
            // Higher priorities are smaller.
            let usage = i32::MAX.abs_diff(entry.priority);
            let start = (0, entry.submitted);
            return Key { usage, min: 0, demand: 1, weight: Some(Weight::ONE), start, name };
        }
        let start = (entry.kinds[kind].turn.place(), entry.submitted);
        let weight = self.short(entry, kind);
        Key { usage: short(usage), min: 0, demand: short(demand), weight, start, name }
    }
}

/// log2(1 + demand), cut to 12 binary digits: the same on every machine.
fn size_weight(demand: u64) -> Ratio {
    const DIGITS: u32 = 12;
    let number = u128::from(demand) + 1;
    let whole = number.ilog2();
    // The number scaled to between 1 and 2, with 64 binary digits; each squaring gives one digit of the
    // logarithm.
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
    fn the_weight_of_a_size_is_its_logarithm() {
        for (demand, weight) in
            [(0, Ratio::ZERO), (1, Ratio::ONE), (3, Ratio::whole(2)), (1023, Ratio::whole(10))]
        {
            assert_eq!(size_weight(demand), weight, "of {demand}");
        }
        for demand in [2_u64, 6, 99, 12_345, u64::from(u32::MAX)] {
            let exact = (demand as f64 + 1.0).log2();
            let off = exact - size_weight(demand).to_f64();
            assert!((-1e-9..1.0 / 4096.0 + 1e-9).contains(&off), "of {demand}: off by {off}");
        }
    }
}
