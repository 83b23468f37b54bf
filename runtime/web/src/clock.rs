//! The wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use napreduce_protocol::{whole_micros, whole_millis};

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns milliseconds since 1970.
pub fn now_millis() -> u64 {
    whole_millis(since_1970())
}

/// Returns microseconds since 1970.
pub fn now_micros() -> u64 {
    whole_micros(since_1970())
}
