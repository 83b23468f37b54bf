//! Samples this process's memory from `/proc/self/status`.

use napreduce_protocol::Counter;

use crate::context::TaskContext;
use crate::proc::bytes_of;

/// Notes the anonymous memory held now, if it is the most so far. A kernel that does not tell leaves the
/// counter at 0.
pub(super) fn sample_memory(context: &TaskContext) {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        context.counters().add(Counter::PeakAnonBytes, bytes_of(&status, "RssAnon:").unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_anonymous_memory_is_read() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(bytes_of(&status, "RssAnon:").unwrap() > 4096);
    }
}
