//! Shares against an exact bisection of the level, and properties of any division.

use napreduce_engine::Ratio;
use napreduce_schedulers::fair::{Claim, UNBOUNDED, shares};
use proptest::prelude::*;

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let weight = (0_i128..8, 1_i128..5).prop_map(|(above, below)| Ratio::new(above, below));
    let bounds = (
        prop_oneof![Just(0_u64), 0_u64..60],
        prop_oneof![Just(UNBOUNDED), 0_u64..120],
    );
    let claim = (bounds, weight).prop_map(|((min, max), weight)| Claim {
        min: min.min(max),
        max,
        weight,
    });
    prop::collection::vec(claim, 0..9)
}

/// Returns the share of a claim at a level, scaled by the denominators of level and weight.
fn at_level(claim: &Claim, level: Ratio) -> Ratio {
    let clamp = |share: Ratio| {
        share
            .max(Ratio::whole(claim.min))
            .min(Ratio::whole(claim.max))
    };
    clamp(claim.weight * level)
}

/// Returns, by bisection in steps of 1/STEPS, the largest level at which the shares do not exceed the total.
fn level(total: u64, open: &[Claim], steps: i128) -> i128 {
    let fits = |level: i128| {
        let sum = open
            .iter()
            .map(|claim| at_level(claim, Ratio::new(level, steps)))
            .fold(Ratio::ZERO, |sum, share| sum + share);
        sum <= Ratio::whole(total)
    };
    let mut low = 0;
    let mut high = 100_000 * steps;
    while high - low > 1 {
        let middle = (low + high) / 2;
        if fits(middle) {
            low = middle
        } else {
            high = middle
        }
    }
    low
}

fn is_open(claim: &Claim) -> bool {
    claim.max > 0 && claim.weight > Ratio::ZERO
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shares_match_bisection(total in 0_u64..300, claims in claims()) {
        const STEPS: i128 = 1 << 20;
        let got = shares(total, &claims);
        let fixed: u64 = claims.iter().zip(&got).filter(|(claim, _)| !is_open(claim)).map(|(_, share)| share).sum();
        let open: Vec<Claim> = claims.iter().copied().filter(is_open).collect();
        let left = total.saturating_sub(fixed);
        let level = level(left, &open, STEPS);
        for (claim, share) in claims.iter().zip(&got).filter(|(claim, _)| is_open(claim)) {
            // The true level lies between this one and the next step, unless the minima alone exceed the
            // total.
            let below = at_level(claim, Ratio::new(level, STEPS)).of(1);
            let above = at_level(claim, Ratio::new(level + 1, STEPS)).of(1);
            prop_assert!((below..=above).contains(share), "{claim:?} got {share}, not {below}..={above}");
        }
    }

    #[test]
    fn shares_respect_bounds_and_add_up(total in 0_u64..300, claims in claims()) {
        let got = shares(total, &claims);
        let fixed: u64 = claims.iter().zip(&got).filter(|(claim, _)| !is_open(claim)).map(|(_, share)| share).sum();
        let open: Vec<(&Claim, u64)> =
            claims.iter().zip(got.iter().copied()).filter(|(claim, _)| is_open(claim)).collect();
        let left = u128::from(total.saturating_sub(fixed));
        let mut sum = 0_u128;
        let mut least = 0_u128;
        let mut most = 0_u128;
        for (claim, share) in &open {
            prop_assert!((claim.min..=claim.max).contains(share));
            sum += u128::from(*share);
            least += u128::from(claim.min);
            most += u128::from(claim.max);
        }
        let target = left.min(most).max(least);
        prop_assert!(sum <= target && target - sum <= open.len() as u128, "{sum} of {target}");
    }

    #[test]
    fn larger_total_lowers_no_share(total in 0_u64..300, more in 0_u64..50, claims in claims()) {
        let before = shares(total, &claims);
        let after = shares(total + more, &claims);
        prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
    }

    #[test]
    fn shares_are_independent_of_weight_scale(total in 0_u64..300, claims in claims(), scale in 1_i128..1000) {
        let scaled: Vec<Claim> = claims
            .iter()
            .map(|claim| Claim { weight: claim.weight * Ratio::new(scale, 7), ..*claim })
            .collect();
        prop_assert_eq!(shares(total, &claims), shares(total, &scaled));
    }
}

#[test]
fn inexact_weights_still_share_everything() {
    let claim = |above, below| Claim {
        min: 0,
        max: UNBOUNDED,
        weight: Ratio::new(above, below),
    };
    let long = 999_999_999_999_999_989_i128;
    let got = shares(
        1000,
        &[
            claim(1, long),
            claim(1, long - 2),
            claim(1, long - 8),
            claim(3, 1),
        ],
    );
    assert_eq!(got[3], 999, "{got:?}");
    let even = shares(
        900,
        &[claim(long, 7), claim(long - 1, 7), claim(long - 2, 7)],
    );
    assert_eq!(even, [300, 300, 299], "{even:?}");
}
