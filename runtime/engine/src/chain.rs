//! One deadline for consecutive jobs: divides the remaining time between them.

use crate::time::Span;

/// Returns how much of the time `left` the next job of a chain may take: all but the expected durations of
/// the `later` jobs. `own` is its expected duration, if known. Jobs of unknown duration each get an equal
/// part of the time that the others leave. If the total exceeds the time left, each duration is reduced in
/// proportion.
///
/// ```
/// use napreduce_engine::{Span, chain_share};
///
/// let seconds = Span::from_secs;
/// assert_eq!(chain_share(seconds(60), None, &[None, None]), seconds(20));
/// assert_eq!(chain_share(seconds(60), None, &[Some(seconds(15))]), seconds(45));
/// assert_eq!(chain_share(seconds(30), Some(seconds(20)), &[Some(seconds(40))]), seconds(10));
/// ```
pub fn chain_share(left: Span, own: Option<Span>, later: &[Option<Span>]) -> Span {
    let left = u128::from(left.0);
    let micros = |length: &Option<Span>| length.map(|length| u128::from(length.0));
    let known: u128 = later.iter().chain([&own]).filter_map(micros).sum();
    let share = if known > left {
        left * micros(&own).unwrap_or(0) / known
    } else {
        let unknown = later
            .iter()
            .chain([&own])
            .filter(|length| length.is_none())
            .count() as u128;
        let each = (left - known).checked_div(unknown).unwrap_or(0);
        left - later
            .iter()
            .map(|length| micros(length).unwrap_or(each))
            .sum::<u128>()
    };
    Span(u64::try_from(share).expect("no more than is left"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(left: u64, own: Option<u64>, later: &[Option<u64>]) -> u64 {
        let later: Vec<Option<Span>> = later.iter().map(|length| length.map(Span)).collect();
        chain_share(Span(left), own.map(Span), &later).0
    }

    #[test]
    fn unknown_jobs_get_equal_shares() {
        assert_eq!(share(60, None, &[]), 60);
        assert_eq!(share(60, None, &[None, None]), 20);
        assert_eq!(share(0, None, &[None]), 0);
    }

    #[test]
    fn later_jobs_keep_expected_time() {
        assert_eq!(share(60, Some(5), &[Some(15), Some(10)]), 35);
        assert_eq!(share(60, None, &[Some(20), None]), 20);
        assert_eq!(share(60, Some(20), &[None, None]), 20);
    }

    #[test]
    fn excessive_expected_time_is_scaled_down() {
        assert_eq!(share(30, Some(20), &[Some(40)]), 10);
        assert_eq!(share(0, Some(20), &[Some(40), None]), 0);
        assert_eq!(share(30, None, &[Some(40)]), 0);
    }
}
