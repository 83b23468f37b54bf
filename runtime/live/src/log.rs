//! What daemons say on standard error.
//!
//! Owns the form of a line. Does not own what is worth saying.

use std::time::SystemTime;

/// One line: when (UTC), who, what.
pub(crate) fn say(who: &str, what: &str) {
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    eprintln!("{now:.3} {who}: {what}");
}
