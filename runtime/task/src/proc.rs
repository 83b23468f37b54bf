//! Reads `/proc`: children, states, ages, memory and threads of processes.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::{fs, io};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// Returns the children of a process, also those of its threads.
pub fn children_of(process: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut children = Vec::new();
    for list in lists {
        children.extend(
            list.split_ascii_whitespace()
                .filter_map(|number| number.parse::<i32>().ok()),
        );
    }
    children
}

/// A process as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The letter of the state of its first thread.
    pub state: char,
    /// Its process group.
    pub group: i32,
    /// In clock ticks since boot.
    pub started: u64,
}

/// Returns the state of a process; `None` if it does not exist.
pub fn stat_of(process: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain anything.
fn parse_stat(stat: &str) -> Option<Stat> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?;
    Some(Stat {
        state,
        group,
        started,
    })
}

/// Returns the letters of the states of the threads of a process.
pub fn threads_of(process: i32) -> Vec<char> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let stats = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats
        .filter_map(|stat| Some(parse_stat(&stat)?.state))
        .collect()
}

/// Returns the state of a thread of this process and the processor time that it has used; `None` if the kernel does not
/// tell.
pub fn thread_use(thread: i32) -> Option<(char, Duration)> {
    let place = format!("/proc/self/task/{thread}");
    let stat = parse_stat(&fs::read_to_string(format!("{place}/stat")).ok()?)?;
    let schedstat = fs::read_to_string(format!("{place}/schedstat")).ok()?;
    let nanos: u64 = schedstat.split_ascii_whitespace().next()?.parse().ok()?;
    (nanos > 0).then(|| (stat.state, Duration::from_nanos(nanos)))
}

/// Returns the time since a process was forked, exact to a clock tick (usually 10 ms).
pub fn age_of(process: i32) -> Option<Duration> {
    let ticks = stat_of(process)?.started;
    let ticks_per_second = clock_ticks_per_second();
    let started = Duration::from_millis(ticks.checked_mul(1000)?.checked_div(ticks_per_second)?);
    let now = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    Some(now.saturating_sub(started))
}

/// Parses a line of `/proc` such as `VmRSS:     1234 kB`.
pub fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns whether the calling thread is the only one of this process.
pub fn has_one_thread() -> io::Result<bool> {
    // A directory has two links plus one per subdirectory: one for each thread here.
    Ok(fs::metadata("/proc/self/task")?.nlink() == 3)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn process_name_with_parenthesis_is_skipped() {
        assert_eq!(parse_stat("12"), None);
        let stat = "12 (a) b) T 1 77 3 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 4711 9 9";
        assert_eq!(
            parse_stat(stat),
            Some(Stat {
                state: 'T',
                group: 77,
                started: 4711
            })
        );
        assert_eq!(parse_stat("12 (a) T 1"), None);
    }

    #[test]
    fn age_of_process_counts_from_its_start() {
        let began = Instant::now();
        let own_id = || i32::try_from(std::process::id()).expect("a process ID");
        let mut child = Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("a program");
        let process = i32::try_from(child.id()).expect("a process ID");
        let age = age_of(process).expect("it runs");
        let of_parent = age_of(own_id()).expect("it runs");
        let tick = Duration::from_millis(20);
        assert!(age <= began.elapsed() + tick, "{age:?}");
        assert!(of_parent >= age, "{of_parent:?}");
        // The first process of the machine or container.
        assert!(age_of(1).expect("it runs") > Duration::ZERO);
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
        assert_eq!(age_of(process), None);
    }
}
