//! Times as whole numbers of a unit, for messages, files and listings.

use std::time::Duration;

/// Returns a time in whole milliseconds; `u64::MAX` if there are more.
pub fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a time in whole microseconds; `u64::MAX` if there are more.
pub fn whole_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns a time in whole nanoseconds; `u64::MAX` if there are more.
pub fn whole_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
