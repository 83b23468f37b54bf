//! Samples this process's memory from `/proc/self/status`.

use napreduce_protocol::Counter;

use crate::context::TaskContext;
use crate::proc::bytes_of;

/// Records the anonymous memory if it is a new peak. The counter stays 0 if the kernel does not report it.
pub(super) fn sample_memory(context: &TaskContext) {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        context.counters().add(
            Counter::PeakAnonBytes,
            bytes_of(&status, "RssAnon:").unwrap_or(0),
        );
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
