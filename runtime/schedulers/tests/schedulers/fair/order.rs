//! The order of children against a reference with exact ratios, and the laws of an order.

use std::cmp::Ordering;

use napreduce_engine::{JobId, Ratio, Time};
use napreduce_schedulers::fair::{ChildStanding, Name, Weight};
use proptest::prelude::*;

/// A child and its weight as given.
type Child = (ChildStanding, Ratio);

fn child() -> impl Strategy<Value = Child> {
    let amounts = (0_u64..6, 0_u64..6, 0_u64..8);
    let weight = (0_i128..4, 1_i128..4).prop_map(|(above, below)| Ratio::new(above, below));
    (amounts, weight, 0_u64..3, 0_u32..3).prop_map(|((usage, min, demand), weight, start, id)| {
        let standing = ChildStanding {
            usage,
            min,
            demand,
            weight: Weight::new(weight),
            start: Time(start),
            name: Name::Job(JobId(id)),
        };
        (standing, weight)
    })
}

/// The rules one by one, in exact ratios.
fn reference_order((left, left_weight): &Child, (right, right_weight): &Child) -> Ordering {
    let need = |child: &ChildStanding| {
        let bound = child.min.min(child.demand);
        // At or above the minimum: after all children below theirs.
        if child.usage < bound {
            Ratio::whole(child.usage) / Ratio::whole(bound)
        } else {
            Ratio::ONE
        }
    };
    let load = |child: &ChildStanding, weight: Ratio| {
        let usage = Ratio::whole(child.usage);
        if weight > Ratio::ZERO {
            (false, usage / weight)
        } else {
            (true, usage)
        }
    };
    (left.demand == 0)
        .cmp(&(right.demand == 0))
        .then(need(left).cmp(&need(right)))
        .then(load(left, *left_weight).cmp(&load(right, *right_weight)))
        .then(left.start.cmp(&right.start))
        .then(left.name.cmp(&right.name))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn child_order_matches_reference(left in child(), right in child()) {
        prop_assert_eq!(left.0.cmp(&right.0), reference_order(&left, &right));
        prop_assert_eq!(right.0.cmp(&left.0), left.0.cmp(&right.0).reverse());
    }

    #[test]
    fn child_order_is_transitive(first in child(), second in child(), third in child()) {
        if first.0 <= second.0 && second.0 <= third.0 {
            prop_assert!(first.0 <= third.0);
        }
    }
}
