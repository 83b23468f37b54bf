//! Fair queueing over time among siblings with equal usage per weight.
//!
//! A child's *service* is the slot time it has received per unit of weight. The parent's *due* is the virtual
//! time: the service that each active child would have under equal sharing. The child with the least service
//! is served first. Three rules bound the state:
//!
//! - A child that begins to wait has at least the due service: idle children earn no credit.
//! - A child that releases its last slot is ahead of the due by at most what one slot gave it.
//! - A child that receives a slot is behind the due by at most what the longest hold gives.
//!
//! # Bound on the wait of a child without a slot
//!
//! Let the children hold `S` slots at all times, each for at most `D`, and let `n` active children have total
//! weight `W`. A child of weight `w` that holds nothing waits at most
//!
//! ```text
//! D * W / (w * S)  +  2 * D * (n - 1) / S  +  D        so with equal weights less than D * (3 * n / S + 1)
//! ```
//!
//! 1. When it begins to wait its service is ahead of the due by at most `D / w` (second rule). The due grows
//!    by `S / W`, so it catches up after `D * W / (w * S)`.
//! 2. From then on no child that begins to wait overtakes it (first rule). Each of the others was behind the
//!    due by at most `D` of slot time when it received its first slot since (third rule). It therefore takes
//!    `D` of slot time, plus the rest of one hold, `D`, before its service is larger.
//! 3. The slots held at that point are free after `D`.
//!
//! Children with usage come after siblings without. Minimum shares, priorities and zero weights take
//! precedence over turns and are not part of this bound.

use napreduce_engine::{Span, Time};
use serde::{Deserialize, Serialize};

/// Service units per microsecond of a slot at weight one.
const UNIT: i128 = 1 << 16;
/// Fixed-point unit for sums of weights.
const WEIGHT_UNIT: i128 = 1 << 32;

/// A weight as a fraction; zero for a child without a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnWeight {
    pub above: u64,
    pub below: u64,
}

/// The usage and demand of a child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub usage: u64,
    /// Whether it could use another slot and is below its maximum.
    pub waits: bool,
    /// Whether it has usage or demand.
    pub active: bool,
    pub weight: TurnWeight,
}

/// A linear function of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Growing {
    at_zero: i128,
    rate: i128,
}

/// The service of one child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    service: Growing,
    /// When it last received a slot.
    given: Time,
    #[serde(skip)]
    standing: Standing,
}

/// The virtual time of one parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turns {
    due: Growing,
    /// The longest observed hold of a slot.
    longest: Span,
    #[serde(skip)]
    usage: u64,
    #[serde(skip)]
    weight: i128,
}

impl Default for TurnWeight {
    fn default() -> TurnWeight {
        TurnWeight { above: 1, below: 1 }
    }
}

impl TurnWeight {
    /// Returns the service of `micros` of slot time at this weight.
    fn service(self, micros: u64) -> i128 {
        i128::from(micros) * UNIT * i128::from(self.below) / i128::from(self.above.max(1))
    }

    fn summand(self) -> i128 {
        let sum = WEIGHT_UNIT * i128::from(self.above) / i128::from(self.below.max(1));
        if self.above == 0 { 0 } else { sum.max(1) }
    }
}

impl Standing {
    fn summand(&self) -> i128 {
        if self.active {
            self.weight.summand()
        } else {
            0
        }
    }
}

impl Growing {
    fn at(self, now: Time) -> i128 {
        self.at_zero
            .saturating_add(self.rate.saturating_mul(now.0.into()))
    }

    fn through(now: Time, value: i128, rate: i128) -> Growing {
        Growing {
            at_zero: value.saturating_sub(rate.saturating_mul(now.0.into())),
            rate,
        }
    }
}

impl Turn {
    /// Sort key among children with equal usage per weight, smallest first. Their services grow at the same
    /// rate, so the order is stable until one of them changes.
    pub(crate) fn place(&self) -> i128 {
        self.service.at_zero
    }
}

impl Turns {
    /// Records a child's new standing. With `restored`, restores the standing that was saved with it.
    pub(crate) fn take(&mut self, now: Time, turn: &mut Turn, after: Standing, restored: bool) {
        if !restored && turn.standing != after {
            self.change(now, turn, after);
        } else {
            self.sum(turn, after);
        }
    }

    fn change(&mut self, now: Time, turn: &mut Turn, after: Standing) {
        let before = turn.standing;
        let due = self.due.at(now);
        let mut service = turn.service.at(now);
        if after.usage > before.usage {
            service = service.max(due - after.weight.service(self.longest.0));
            turn.given = now;
        } else if after.usage == 0 && before.usage > 0 {
            // All its slots were held at least since then.
            let held = now.since(turn.given);
            self.longest = self.longest.max(held);
            service = service.min(due + after.weight.service(held.0));
        }
        if after.waits && !before.waits {
            service = service.max(due);
        }
        turn.service = Growing::through(now, service, after.weight.service(after.usage));
        self.sum(turn, after);
        let rate = if self.weight > 0 {
            i128::from(self.usage) * UNIT * WEIGHT_UNIT / self.weight
        } else {
            0
        };
        self.due = Growing::through(now, due, rate);
    }

    fn sum(&mut self, turn: &mut Turn, after: Standing) {
        let before = std::mem::replace(&mut turn.standing, after);
        self.usage = self.usage + after.usage - before.usage;
        self.weight = self.weight + after.summand() - before.summand();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn standing(usage: u64, waits: bool, weight: u64) -> Standing {
        Standing {
            usage,
            waits,
            active: usage > 0 || waits,
            weight: TurnWeight {
                above: weight,
                below: 1,
            },
        }
    }

    /// Returns the slot seconds of each child after `tasks` tasks on one slot; `children` are weight and task
    /// length.
    fn served<const N: usize>(children: [(u64, u64); N], tasks: u32) -> [u64; N] {
        let mut turns = Turns::default();
        let mut now = Time(0);
        let mut all = children.map(|_| Turn::default());
        for (turn, (weight, _)) in all.iter_mut().zip(children) {
            turns.change(now, turn, standing(0, true, weight));
        }
        let mut seconds = [0; N];
        for _ in 0..tasks {
            let first = (0..N)
                .min_by_key(|child| all[*child].place())
                .expect("children exist");
            let (weight, length) = children[first];
            turns.change(now, &mut all[first], standing(1, true, weight));
            now = now + Span::from_secs(length);
            turns.change(now, &mut all[first], standing(0, true, weight));
            seconds[first] += length;
        }
        seconds
    }

    #[test]
    fn equal_weights_get_equal_time_for_any_task_length() {
        let [long, short] = served([(1, 60), (1, 10)], 700);
        assert!(long.abs_diff(short) <= 70, "{long} and {short}");
    }

    #[test]
    fn time_is_proportional_to_weight() {
        let [one, two, three] = served([(1, 10), (2, 10), (3, 7)], 3000);
        assert!(
            two.abs_diff(2 * one) <= 30 && three.abs_diff(3 * one) <= 40,
            "{one}, {two} and {three}"
        );
    }

    #[test]
    fn idle_children_earn_no_credit() {
        let mut turns = Turns::default();
        let mut busy = Turn::default();
        let mut idle = Turn::default();
        turns.change(Time(0), &mut busy, standing(1, true, 1));
        let later = Time(1000 * SECOND);
        turns.change(later, &mut idle, standing(0, true, 1));
        turns.change(later, &mut busy, standing(0, true, 1));
        assert_eq!(idle.place(), busy.place(), "both begin at what is due");
    }
}
