//! What memory this process holds, as the kernel counts it.
//!
//! Owns the reading of `/proc/self/status`. Does not own the limit a task has.

use super::context::TaskContext;
use crate::counters::Counter;

/// Notes the anonymous memory held now, if it is the most so far. A kernel that does not tell leaves the counter at 0.
pub(super) fn sample_memory(context: &TaskContext) {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        context.counters().add(Counter::PeakAnonBytes, anonymous_bytes(&status).unwrap_or(0));
    }
}

/// The line reads `RssAnon: 1234 kB`, with a tab and spaces between.
fn anonymous_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_memory_is_read_in_bytes() {
        assert_eq!(anonymous_bytes("VmHWM:\t  900 kB\nRssAnon:\t     512 kB\n"), Some(512 << 10));
        assert_eq!(anonymous_bytes("VmHWM:\t  900 kB\n"), None);
        assert_eq!(anonymous_bytes("RssAnon:\t many kB\n"), None);
    }

    #[test]
    fn this_process_holds_some() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(anonymous_bytes(&status).unwrap() > 4096);
    }
}
