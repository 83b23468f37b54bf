//! Owns what a daemon has used so far, as the kernel counts it: processor time and the most memory.
//! What it was used for belongs to the experiment.

use std::fs;

use rustix::param::clock_ticks_per_second;
use rustix::process::Pid;

/// Of one process, without its children.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DaemonUsage {
    /// Seconds in user and in kernel mode.
    pub processor_seconds: f64,
    /// The most memory that was resident at once, in bytes.
    pub peak_bytes: u64,
}

impl DaemonUsage {
    /// Until now; nothing of a process that is gone.
    pub fn of(process: Pid) -> DaemonUsage {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{}/{name}", process.as_raw_nonzero())).unwrap_or_default()
        };
        let ticks = ticks_of(&read("stat")).unwrap_or(0);
        DaemonUsage {
            processor_seconds: ticks as f64 / clock_ticks_per_second() as f64,
            peak_bytes: peak_of(&read("status")).unwrap_or(0),
        }
    }
}

/// The fields 14 and 15 of `/proc/PID/stat`; the second is the program's name in brackets and may hold anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        assert_eq!(ticks_of("7 (a) b) S 1 7 7 0 -1 4194560 900 800 30 20 5 6 0"), Some(11));
        assert_eq!(ticks_of("7 (a"), None);
        assert_eq!(peak_of("VmPeak: 9 kB\nVmHWM:\t  12 kB\n"), Some(12 << 10));
        assert_eq!(peak_of(""), None);
    }

    #[test]
    fn a_process_has_used_something_and_one_that_is_gone_nothing() {
        let own = rustix::process::getpid();
        assert!(DaemonUsage::of(own).peak_bytes > 4096);
        let gone = Pid::from_raw(i32::MAX).expect("a number");
        assert_eq!(DaemonUsage::of(gone), DaemonUsage::default());
    }
}
