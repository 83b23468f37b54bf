//! The speed of a task with limited bandwidth.

use napreduce_engine::Span;

/// The speed of a task relative to unlimited bandwidth, in units of 10^-9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace(u32);

impl Pace {
    const WHOLE: u32 = 1_000_000_000;
    /// Full speed.
    pub const FULL: Pace = Pace(Pace::WHOLE);
    /// Not computed yet.
    pub const UNKNOWN: Pace = Pace(0);

    /// Returns the pace of a task that wants `wanted` bytes per second and gets `given`; never zero.
    pub fn new(given: u64, wanted: u64) -> Pace {
        if wanted == 0 {
            return Pace::FULL;
        }
        let share = u128::from(given) * u128::from(Pace::WHOLE) / u128::from(wanted);
        let share = u32::try_from(share).unwrap_or(Pace::WHOLE);
        Pace(share.clamp(1, Pace::WHOLE))
    }

    /// Returns the work done in `span` microseconds.
    pub fn done_in(self, span: u64) -> u64 {
        if self == Pace::FULL {
            return span;
        }
        (u128::from(span) * u128::from(self.0) / u128::from(Pace::WHOLE)) as u64
    }

    /// Returns the time for `work`, rounded up to microseconds.
    pub fn time_for(self, work: u64) -> Span {
        if self == Pace::FULL {
            return Span(work);
        }
        let time = (u128::from(work) * u128::from(Pace::WHOLE)).div_ceil(u128::from(self.0.max(1)));
        Span(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_converts_work_and_time_consistently() {
        for (given, wanted) in [(1, 3), (2, 3), (999, 1000), (5, 5), (1, 1_000_000)] {
            let pace = Pace::new(given, wanted);
            for work in [0, 1, 7, 1_000_000, 123_456_789] {
                let time = pace.time_for(work);
                assert!(pace.done_in(time.0) >= work, "{given} of {wanted}, {work}");
                assert!(
                    time.0 == 0 || pace.done_in(time.0 - 1) < work,
                    "{given} of {wanted}, {work}"
                );
            }
        }
    }
}
