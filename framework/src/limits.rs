//! The valid numbers of a run, however they are set: by a flag, by a method, in a definition or in a test.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use napreduce_protocol::ByteSize;

/// Reduce tasks of a job that has any.
pub(crate) const REDUCES: RangeInclusive<u32> = 1..=100_000;

/// Tasks of one kind that run at once in one process.
pub(crate) const SLOTS: RangeInclusive<u32> = 1..=4_096;

/// From the smallest memory that a task can divide to the largest plausible one.
pub(crate) const TASK_MEMORY: RangeInclusive<ByteSize> =
    ByteSize::new(1 << 20)..=ByteSize::new(1 << 40);

/// The longest time that a flag takes, about a century.
const HOURS_MAX: u64 = 876_000;

/// Checks a number; `what` names it in the error.
pub(crate) fn check<N: PartialOrd + Display>(
    what: &str,
    number: N,
    valid: &RangeInclusive<N>,
) -> Result<(), String> {
    if valid.contains(&number) {
        return Ok(());
    }
    Err(format!(
        "{what} {number}: use {} to {}",
        valid.start(),
        valid.end()
    ))
}

/// Checks a time; `what` names it in the error.
pub(crate) fn check_time(what: &str, time: Duration) -> Result<(), String> {
    if time <= Duration::from_secs(HOURS_MAX * 3600) {
        return Ok(());
    }
    Err(format!(
        "{what} {time:?}: use {HOURS_MAX}h (100 years) at most"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_outside_its_range_names_the_range() {
        assert_eq!(check("reduces", 1, &REDUCES), Ok(()));
        assert_eq!(check("reduces", 100_000, &REDUCES), Ok(()));
        assert_eq!(
            check("reduces", 0, &REDUCES),
            Err("reduces 0: use 1 to 100000".to_owned())
        );
        let refused = check("task memory", ByteSize::new(0), &TASK_MEMORY);
        assert_eq!(refused, Err("task memory 0B: use 1MiB to 1TiB".to_owned()));
    }
}
