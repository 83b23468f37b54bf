//! Periodic ticks; missed ticks are skipped.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// The first one comes at once.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
