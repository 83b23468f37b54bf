//! Ticks of a period.
//!
//! Owns that one which was missed is not made up for. Does not own what is done at each.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// The first one comes at once.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
