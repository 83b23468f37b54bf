//! What daemons say on standard error.
//!
//! Owns the form of a line. Does not own what is worth saying.

use std::time::SystemTime;

use napreduce_protocol::one_line;

/// Columns of a line that are written; what is said may have been made up by others.
const COLUMNS_MAX: usize = 4_000;

/// One line: when (UTC), who, what.
pub(crate) fn say(who: &str, what: &str) {
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    eprintln!("{now:.3} {}: {}", one_line(who, COLUMNS_MAX), one_line(what, COLUMNS_MAX));
}
