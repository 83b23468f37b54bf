//! Owns what daemons have used so far, as the kernel counts it: processor time and the most memory.
//! What it was used for belongs to the experiment.

use std::fs;

use rustix::param::clock_ticks_per_second;
use rustix::process::Pid;

use crate::live_cluster::LiveCluster;
use crate::machine::{field, kibibytes};

/// Of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DaemonUsage {
    /// Seconds in user and in kernel mode, without its children.
    pub processor_seconds: f64,
    /// The same with the children that have ended.
    pub family_seconds: f64,
    /// The most memory that was resident at once, in bytes.
    pub peak_bytes: u64,
}

impl DaemonUsage {
    /// Until now; nothing of a process that is gone.
    pub fn of(process: Pid) -> DaemonUsage {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{}/{name}", process.as_raw_nonzero())).unwrap_or_default()
        };
        let (own, children) = ticks_of(&read("stat")).unwrap_or((0, 0));
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        DaemonUsage {
            processor_seconds: seconds(own),
            family_seconds: seconds(own + children),
            peak_bytes: peak_of(&read("status")).unwrap_or(0),
        }
    }
}

/// Its own and those of its children, the fields 14 to 17 of `/proc/PID/stat`; the second is the program's
/// name in brackets and may hold anything.
fn ticks_of(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = fields.map_while(|field| field.parse::<u64>().ok());
    let mut both = || Some(ticks.next()? + ticks.next()?);
    Some((both()?, both()?))
}

/// What a cluster used from one moment to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// Processor seconds of the coordinator, the workers and their tasks that have ended.
    pub(super) all: f64,
    pub(super) coordinator: f64,
    /// The most memory of the coordinator.
    pub(super) peak_bytes: u64,
}

/// What a cluster has used so far.
pub(super) struct Reading {
    coordinator: DaemonUsage,
    all: f64,
}

impl Reading {
    pub(super) fn of(cluster: &LiveCluster<'_>) -> Reading {
        let daemons = cluster.workers.iter().chain([&cluster.coordinator]);
        let all = daemons.map(|process| DaemonUsage::of(*process).family_seconds).sum();
        Reading { coordinator: DaemonUsage::of(cluster.coordinator), all }
    }

    /// What was used since then.
    pub(super) fn until_now(&self, cluster: &LiveCluster<'_>) -> Used {
        let now = Reading::of(cluster);
        Used {
            all: now.all - self.all,
            coordinator: now.coordinator.processor_seconds - self.coordinator.processor_seconds,
            peak_bytes: now.coordinator.peak_bytes,
        }
    }
}

fn peak_of(status: &str) -> Option<u64> {
    Some(kibibytes(&field(status, "VmHWM")?)?.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        assert_eq!(ticks_of("7 (a) b) S 1 7 7 0 -1 4194560 900 800 30 20 5 6 20 30 0"), Some((11, 50)));
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
