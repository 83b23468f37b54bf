//! Owns what the kernel tells about a running process and its descendants: who they are, how much anonymous
//! memory they hold, how much processor time ended children took.
//! Mapped files are left out on purpose: they are page cache that the kernel may drop at any moment.

use std::collections::BTreeSet;
use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::Pid;
use serde::Serialize;

/// The largest amounts of anonymous memory seen in a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryPeak {
    /// Of all processes together, in bytes.
    pub tree_bytes: u64,
    /// Of any one process below the first, in bytes; 0 when there was none. For a job this is a task process.
    pub descendant_bytes: u64,
    /// How often the tree was looked at.
    pub samples: u64,
}

/// Follows one process and everything it starts.
#[derive(Debug)]
pub struct TreeSampler {
    root: Pid,
    peak: MemoryPeak,
    page_bytes: u64,
    /// All members that were ever seen, but for the first, by number.
    seen: BTreeSet<i32>,
}

impl TreeSampler {
    pub fn new(root: Pid) -> TreeSampler {
        TreeSampler {
            root,
            peak: MemoryPeak::default(),
            page_bytes: page_size() as u64,
            seen: BTreeSet::new(),
        }
    }

    /// Looks once at every process of the tree. Processes that end meanwhile count as holding nothing.
    pub fn sample(&mut self) {
        let mut tree_bytes = 0;
        let members = self.members();
        self.seen.extend(members[1..].iter().map(|member| member.as_raw_nonzero().get()));
        for process in members {
            let bytes = anonymous_pages(process).unwrap_or(0) * self.page_bytes;
            tree_bytes += bytes;
            if process != self.root {
                self.peak.descendant_bytes = self.peak.descendant_bytes.max(bytes);
            }
        }
        self.peak.tree_bytes = self.peak.tree_bytes.max(tree_bytes);
        self.peak.samples += 1;
    }

    /// The descendants that were seen, whoever's children they are by now.
    pub fn seen(&self) -> Vec<Pid> {
        self.seen.iter().filter_map(|number| Pid::from_raw(*number)).collect()
    }

    /// What was seen so far; `None` when nothing was.
    pub fn peak(&self) -> Option<MemoryPeak> {
        (self.peak.tree_bytes > 0).then_some(self.peak)
    }

    /// The process and its descendants that are alive now, parents before children.
    pub fn members(&self) -> Vec<Pid> {
        let mut members = vec![self.root];
        let mut next = 0;
        while let Some(&process) = members.get(next) {
            next += 1;
            children(process, &mut members);
        }
        members
    }
}

/// Appends the children of every thread of `process`.
fn children(process: Pid, into: &mut Vec<Pid>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())) else { return };
    for thread in threads.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        into.extend(list.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
}

/// Resident pages that belong to no file: `resident - shared` of statm.
fn anonymous_pages(process: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/statm", process.as_raw_nonzero())).ok()?;
    let mut fields = text.split_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(resident.saturating_sub(shared))
}

/// Processor seconds of children that ended and were waited for, and of theirs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChildrenTime {
    pub user: f64,
    pub system: f64,
}

/// What all ended children of this process took so far.
pub fn children_time() -> ChildrenTime {
    let read = || parse_children_time(&fs::read_to_string("/proc/self/stat").ok()?);
    read().unwrap_or_default()
}

fn parse_children_time(stat: &str) -> Option<ChildrenTime> {
    // The second field is the program's name in brackets and may hold anything; counting starts behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(13).map(str::parse::<u64>);
    let per_second = clock_ticks_per_second() as f64;
    let mut seconds = || Some(ticks.next()?.ok()? as f64 / per_second);
    Some(ChildrenTime { user: seconds()?, system: seconds()? })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_brackets() {
        let stat = "1 (a ) b) S 2 3 4 5 6 7 8 9 10 11 12 13 200 100 16 17 18";
        let time = parse_children_time(stat).unwrap();
        let per_second = clock_ticks_per_second() as f64;
        assert_eq!((time.user, time.system), (200.0 / per_second, 100.0 / per_second));
    }

    #[test]
    fn grandchildren_belong_to_the_tree() {
        // The inner shell says that it runs, then waits on a pipe that ends with this test.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "/bin/sh -c 'echo ready; read line'; true"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        let mut sampler = TreeSampler::new(Pid::from_child(&child));
        sampler.sample();
        let members = sampler.members();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((line.as_str(), members.len()), ("ready\n", 2));
        let peak = sampler.peak().unwrap();
        assert!(peak.tree_bytes > peak.descendant_bytes && peak.descendant_bytes > 0, "{peak:?}");
    }
}
