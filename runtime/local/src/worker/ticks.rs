//! Periodic ticks; missed ticks are not made up.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Returns ticks with this period; the first one is immediate.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
