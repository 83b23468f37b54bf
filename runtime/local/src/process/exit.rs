//! Descriptions of exit statuses.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use napreduce_task::signal_name;

/// Describes the end of a process that did not finish its task.
pub fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match signal_name(signal) {
            Some(name) => format!("process ended by signal {signal} ({name})"),
            None => format!("process ended by signal {signal}"),
        },
        (None, Some(code)) => format!("process exited with status {code} before finishing"),
        (None, None) => format!("process ended before finishing: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_is_described_by_signal_or_status() {
        let text = |raw| describe_exit(ExitStatus::from_raw(raw));
        assert_eq!(text(9), "process ended by signal 9 (SIGKILL)");
        assert_eq!(text(11 | 0x80), "process ended by signal 11 (SIGSEGV)");
        assert_eq!(text(40), "process ended by signal 40");
        assert_eq!(
            text(3 << 8),
            "process exited with status 3 before finishing"
        );
        assert_eq!(text(0), "process exited with status 0 before finishing");
    }
}
