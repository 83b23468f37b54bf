//! Turns over time among children of one parent that hold equally much for their weight.
//!
//! A child's *service* is the slot time that it received for each unit of its weight. The parent's *due* is
//! the service that each child would have, had all that hold or want slots shared alike. The child with less
//! service goes first. Three rules keep what is remembered small:
//!
//! * A child that begins to want has at least the service that is due: being idle earns nothing.
//! * A child that has given up its last slot is ahead of what is due by what one slot gave it at most.
//! * A child that is given a slot is behind what is due by what the longest such hold gives at most.
//!
//! # How long a child without a slot waits
//!
//! Let the parent's children hold `S` slots all the time, each for `D` at most, and let `n` children of the
//! weights `W` together hold or want slots. A child of weight `w` that holds nothing waits at most
//!
//! ```text
//! D * W / (w * S)  +  2 * D * (n - 1) / S  +  D        so with equal weights less than D * (3 * n / S + 1)
//! ```
//!
//! 1. When it begins to wait its service is ahead of the due by `D / w` at most (second rule). The due grows
//!    by `S / W`, so it has caught up after `D * W / (w * S)`.
//! 2. From then on no child that begins to want goes before it (first rule). Each of the others was behind
//!    the due by `D` of slot time at most when it was given its first slot since (third rule), so it takes `D`
//!    of slot time, and what is left of one slot then, `D`, before its service is larger.
//! 3. The slots that were held when that began are free after `D`.
//!
//! Children of the same parent that hold nothing are in no other order, and those that hold something come
//! after them. Minimum shares, priorities and weights of zero go before turns: they are no part of this.

use napreduce_engine::{Span, Time};
use serde::{Deserialize, Serialize};

/// One microsecond of a slot for one unit of weight.
const UNIT: i128 = 1 << 16;
/// The unit of sums of weights.
const WEIGHT_UNIT: i128 = 1 << 32;

/// A weight as a fraction; zero for a child that is due nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnWeight {
    pub above: u64,
    pub below: u64,
}

/// What a child holds and wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub usage: u64,
    /// It could use another slot, and may have it.
    pub waits: bool,
    /// It holds or wants something.
    pub active: bool,
    pub weight: TurnWeight,
}

/// A number that grows by the same amount every microsecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Growing {
    at_zero: i128,
    rate: i128,
}

/// A child's service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    service: Growing,
    /// When it was last given a slot.
    given: Time,
    #[serde(skip)]
    standing: Standing,
}

/// What is due to each child of one parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turns {
    due: Growing,
    /// The longest that a slot was certainly held.
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
    /// What slot time is for one of this weight.
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
        if self.active { self.weight.summand() } else { 0 }
    }
}

impl Growing {
    fn at(self, now: Time) -> i128 {
        self.at_zero.saturating_add(self.rate.saturating_mul(now.0.into()))
    }

    fn through(now: Time, value: i128, rate: i128) -> Growing {
        Growing { at_zero: value.saturating_sub(rate.saturating_mul(now.0.into())), rate }
    }
}

impl Turn {
    /// Orders children that hold equally much for their weight, smaller first: the services of these grow
    /// alike, so that their order stays until one of them changes.
    pub(crate) fn place(&self) -> i128 {
        self.service.at_zero
    }
}

impl Turns {
    /// A child holds and wants this from now on; or did when both were saved, if they are recalled.
    pub(crate) fn take(&mut self, now: Time, turn: &mut Turn, after: Standing, recalled: bool) {
        if !recalled && turn.standing != after {
            self.change(now, turn, after);
        } else {
            self.sum(turn, after);
        }
    }

    fn change(&mut self, now: Time, turn: &mut Turn, after: Standing) {
        let (before, due) = (turn.standing, self.due.at(now));
        let mut service = turn.service.at(now);
        if after.usage > before.usage {
            service = service.max(due - after.weight.service(self.longest.0));
            turn.given = now;
        } else if after.usage == 0 && before.usage > 0 {
            // Whatever it held was held since then at least.
            let held = now.since(turn.given);
            self.longest = self.longest.max(held);
            service = service.min(due + after.weight.service(held.0));
        }
        if after.waits && !before.waits {
            service = service.max(due);
        }
        turn.service = Growing::through(now, service, after.weight.service(after.usage));
        self.sum(turn, after);
        let rate =
            if self.weight > 0 { i128::from(self.usage) * UNIT * WEIGHT_UNIT / self.weight } else { 0 };
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
        Standing { usage, waits, active: usage > 0 || waits, weight: TurnWeight { above: weight, below: 1 } }
    }

    /// The slot seconds of each child after so many tasks on one slot, by weight and length of a task.
    fn served<const N: usize>(children: [(u64, u64); N], tasks: u32) -> [u64; N] {
        let (mut turns, mut now) = (Turns::default(), Time(0));
        let mut all = children.map(|_| Turn::default());
        for (turn, (weight, _)) in all.iter_mut().zip(children) {
            turns.change(now, turn, standing(0, true, weight));
        }
        let mut seconds = [0; N];
        for _ in 0..tasks {
            let first = (0..N).min_by_key(|child| all[*child].place()).expect("there are some");
            let (weight, length) = children[first];
            turns.change(now, &mut all[first], standing(1, true, weight));
            now = now + Span::from_secs(length);
            turns.change(now, &mut all[first], standing(0, true, weight));
            seconds[first] += length;
        }
        seconds
    }

    #[test]
    fn children_of_equal_weight_get_equal_time_whatever_their_tasks_take() {
        let [long, short] = served([(1, 60), (1, 10)], 700);
        assert!(long.abs_diff(short) <= 70, "{long} and {short}");
    }

    #[test]
    fn time_is_divided_by_weight() {
        let [one, two, three] = served([(1, 10), (2, 10), (3, 7)], 3000);
        assert!(two.abs_diff(2 * one) <= 30 && three.abs_diff(3 * one) <= 40, "{one}, {two} and {three}");
    }

    #[test]
    fn idle_children_earn_nothing() {
        let (mut turns, mut busy, mut idle) = (Turns::default(), Turn::default(), Turn::default());
        turns.change(Time(0), &mut busy, standing(1, true, 1));
        let later = Time(1000 * SECOND);
        turns.change(later, &mut idle, standing(0, true, 1));
        turns.change(later, &mut busy, standing(0, true, 1));
        assert_eq!(idle.place(), busy.place(), "both begin at what is due");
    }
}
