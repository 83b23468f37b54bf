//! Exact weighted max-min fair shares with minima and maxima.
//!
//! Finds the level R at which the sum of `min(max(weight * R, min), max)` equals the amount, and truncates
//! each share to an integer.

use napreduce_engine::{Ratio, sort_by};

/// The largest amount: the maximum of an unlimited claim. Sums saturate here.
pub const UNBOUNDED: u64 = i64::MAX as u64;

/// Bound on the sum of scaled weights; products with amounts then fit 128 bits.
const WEIGHTS_MAX: u128 = 1 << 62;

/// The claim of one child on the divided amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Satisfied first, if there is enough.
    pub min: u64,
    /// [`UNBOUNDED`] without a maximum.
    pub max: u64,
    /// Weight relative to the other claims. A claim with weight zero gets its minimum only.
    pub weight: Ratio,
}

impl Claim {
    /// Returns the share if it does not depend on the other claims.
    fn fixed(&self) -> Option<u64> {
        if self.max == 0 {
            Some(0)
        } else if self.weight <= Ratio::ZERO {
            Some(self.min)
        } else {
            None
        }
    }
}

/// The level (amount / weight) at which a claim starts to grow (at its minimum) or stops (at its maximum).
#[derive(Debug, Clone, Copy)]
struct Step {
    claim: usize,
    amount: u64,
    weight: u128,
    starts: bool,
}

impl Step {
    /// Orders by level; at equal levels a start precedes a stop.
    fn cmp(&self, other: &Step) -> std::cmp::Ordering {
        let left = u128::from(self.amount) * other.weight;
        let right = u128::from(other.amount) * self.weight;
        left.cmp(&right).then(other.starts.cmp(&self.starts))
    }
}

/// The state of a claim at the current level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimLevel {
    AtMin,
    Growing,
    AtMax,
}

/// Returns the share of each claim in `total`, in order. If the minima alone exceed the total, each claim
/// gets its minimum.
pub fn shares(total: u64, claims: &[Claim]) -> Vec<u64> {
    let mut shares: Vec<u64> = claims
        .iter()
        .map(|claim| claim.fixed().unwrap_or(0))
        .collect();
    let taken: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    let left = u128::from(total.min(UNBOUNDED)).saturating_sub(taken);
    let open: Vec<usize> = (0..claims.len())
        .filter(|&index| claims[index].fixed().is_none())
        .collect();
    let bounds: Vec<(u64, u64)> = open.iter().map(|&index| bounds(&claims[index])).collect();
    let least: u128 = bounds.iter().map(|(min, _)| u128::from(*min)).sum();
    let most: u128 = bounds.iter().map(|(_, max)| u128::from(*max)).sum();
    let target = left.min(most);
    if least >= target {
        for (&index, &(min, _)) in open.iter().zip(&bounds) {
            shares[index] = min;
        }
        return shares;
    }
    let weights = scaled(
        &open
            .iter()
            .map(|&index| claims[index].weight)
            .collect::<Vec<_>>(),
    );
    for (&index, share) in open.iter().zip(pour(target, least, &bounds, &weights)) {
        shares[index] = share;
    }
    shares
}

fn bounds(claim: &Claim) -> (u64, u64) {
    let max = claim.max.min(UNBOUNDED);
    (claim.min.min(max), max)
}

/// Raises the level until the shares add up to `target`, which lies between the sums of the bounds.
fn pour(target: u128, least: u128, bounds: &[(u64, u64)], weights: &[u128]) -> Vec<u64> {
    let step = |claim: usize, amount, starts| Step {
        claim,
        amount,
        weight: weights[claim],
        starts,
    };
    let mut steps: Vec<Step> = Vec::with_capacity(2 * bounds.len());
    for (claim, (min, max)) in bounds.iter().enumerate() {
        steps.push(step(claim, *min, true));
        steps.push(step(claim, *max, false));
    }
    sort_by(&mut steps, Step::cmp);
    let mut stages = vec![ClaimLevel::AtMin; bounds.len()];
    // The total of claims that do not grow, and the weight of those that do.
    let mut still = least;
    let mut growing = 0_u128;
    for step in steps {
        // At the level of this step the sum is still + growing * amount / weight.
        let reached = still * step.weight + growing * u128::from(step.amount);
        if growing > 0 && reached >= target * step.weight {
            break;
        }
        stages[step.claim] = if step.starts {
            ClaimLevel::Growing
        } else {
            ClaimLevel::AtMax
        };
        if step.starts {
            still -= u128::from(step.amount);
            growing += step.weight;
        } else {
            still += u128::from(step.amount);
            growing -= step.weight;
        }
    }
    let share = |claim: usize| match stages[claim] {
        ClaimLevel::AtMin => bounds[claim].0,
        ClaimLevel::AtMax => bounds[claim].1,
        ClaimLevel::Growing => {
            u64::try_from(weights[claim] * (target - still) / growing).unwrap_or(UNBOUNDED)
        }
    };
    (0..bounds.len()).map(share).collect()
}

/// Scales the weights to one denominator: exactly if that takes at most 62 bits, otherwise truncated to
/// multiples of 2^-30 of the largest.
fn scaled(weights: &[Ratio]) -> Vec<u128> {
    exactly_scaled(weights).unwrap_or_else(|| {
        let largest = weights.iter().copied().max().unwrap_or(Ratio::ONE);
        weights
            .iter()
            .map(|weight| cut(*weight / largest))
            .collect()
    })
}

/// Returns a ratio of at most 1 in multiples of 2^-30, at least one of them.
fn cut(part: Ratio) -> u128 {
    let above = part.numerator().unsigned_abs();
    let below = part.denominator().unsigned_abs();
    let cut = if below < 1 << 90 {
        (above << 30) / below
    } else {
        above / (below >> 30)
    };
    cut.max(1)
}

fn exactly_scaled(weights: &[Ratio]) -> Option<Vec<u128>> {
    let mut common = 1_u128;
    for weight in weights {
        let denominator = u128::try_from(weight.denominator()).ok()?;
        common = (common / divisor(common, denominator)).checked_mul(denominator)?;
        if common > WEIGHTS_MAX {
            return None;
        }
    }
    let mut sum = 0_u128;
    let mut all = Vec::with_capacity(weights.len());
    for weight in weights {
        let above = u128::try_from(weight.numerator()).ok()?;
        let below = u128::try_from(weight.denominator()).ok()?;
        let scaled = above.checked_mul(common / below)?;
        sum = sum.checked_add(scaled)?;
        all.push(scaled);
    }
    (sum < WEIGHTS_MAX).then_some(all)
}

/// Greatest common divisor.
fn divisor(mut left: u128, mut right: u128) -> u128 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left.max(1)
}
