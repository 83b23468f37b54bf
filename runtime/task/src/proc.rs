//! Reads `/proc`: children, states, ages, memory and threads of processes.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::{fs, io};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

pub fn children_of(process: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut children = Vec::new();
    for list in lists {
        children.extend(list.split_ascii_whitespace().filter_map(|number| number.parse::<i32>().ok()));
    }
    children
}

/// Returns the letter of its state and its process group.
pub fn state_of(process: i32) -> Option<(char, i32)> {
    parse_state(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain anything.
fn parse_state(stat: &str) -> Option<(char, i32)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

/// Returns the time since a process was forked, exact to a clock tick (usually 10 ms).
pub fn age_of(process: i32) -> Option<Duration> {
    let ticks = parse_start(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    let ticks_per_second = clock_ticks_per_second();
    let started = Duration::from_millis(ticks.checked_mul(1000)?.checked_div(ticks_per_second)?);
    let now = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    Some(now.saturating_sub(started))
}

/// Parses the start time from `/proc/PID/stat`, in clock ticks since boot.
fn parse_start(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
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
        assert_eq!(parse_state("12 (a) b) T 1 77 3"), Some(('T', 77)));
        assert_eq!(parse_state("12"), None);
        let stat = "12 (a) b) T 1 77 3 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 4711 9 9";
        assert_eq!(parse_start(stat), Some(4711));
        assert_eq!(parse_start("12 (a) T 1"), None);
    }

    #[test]
    fn age_of_process_counts_from_its_start() {
        let began = Instant::now();
        let own_id = || i32::try_from(std::process::id()).expect("a process ID");
        let mut child = Command::new("sleep").arg("1000").spawn().expect("a program");
        let process = i32::try_from(child.id()).expect("a process ID");
        let (age, of_parent) = (age_of(process).expect("it runs"), age_of(own_id()).expect("it runs"));
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
