//! Reads `/proc`: children, states, memory and threads of processes.

use std::os::unix::fs::MetadataExt;
use std::{fs, io};

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
    use super::*;

    #[test]
    fn process_name_with_parenthesis_is_skipped() {
        assert_eq!(parse_state("12 (a) b) T 1 77 3"), Some(('T', 77)));
        assert_eq!(parse_state("12"), None);
    }
}
