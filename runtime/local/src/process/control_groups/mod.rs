//! Control groups of the kernel, one for each attempt of a worker, so that a task cannot exhaust the machine.
//!
//! A group is reused by later attempts: creating one costs more than changing its limits, and page cache
//! would keep a removed one alive.

mod hierarchy;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{fs, io};

use napreduce_protocol::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(super) use self::hierarchy::group_of;
use self::hierarchy::{Hierarchy, own_membership, write};

const MOUNTED: &str = "/sys/fs/cgroup";
/// Maximum processes and threads of one attempt.
const PROCESSES_MAX: u32 = 4096;
/// Memory limit of a process without an attempt.
const IDLE_MEMORY_MAX: u64 = 1 << 30;
/// Time in which a killed process leaves its group, unless it is blocked on a disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// The groups of a worker's attempts, removed on drop.
#[derive(Debug)]
pub struct ControlGroups {
    mounted: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    /// Changes when this process is moved to another cgroup.
    membership: String,
    hierarchy: Hierarchy,
    made: u32,
    free: BTreeSet<u32>,
}

/// The group of one attempt; its processes are killed on drop.
#[derive(Debug)]
pub struct ControlGroup {
    groups: Arc<ControlGroups>,
    hierarchy: Hierarchy,
    number: u32,
    memory_max: u64,
    /// The counters when the limits were set.
    counts_before: OutOfMemoryCounts,
}

/// The kernel's OOM counters of one group.
#[derive(Debug, Clone, Copy, Default)]
struct OutOfMemoryCounts {
    /// Processes of the group killed by the OOM killer, whichever limit was reached.
    kills: u64,
    /// Number of times the group's own limit was reached.
    limits: u64,
}

/// The limit whose exhaustion led to an OOM kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfMemory {
    /// The group's own limit.
    Group,
    /// The machine's memory or the limit of an enclosing group, such as a pod's.
    Elsewhere,
}

impl ControlGroups {
    /// Finds where groups can be created and checks that they can be limited.
    ///
    /// # Errors
    /// Returns the reason for people if there are no usable groups.
    pub fn create() -> Result<Arc<ControlGroups>, String> {
        ControlGroups::create_in(Path::new(MOUNTED))
    }

    fn create_in(mounted: &Path) -> Result<Arc<ControlGroups>, String> {
        let membership = own_membership();
        let hierarchy = Hierarchy::find(mounted, &membership)?;
        // This process may have moved into a subgroup.
        let membership = own_membership();
        let inside = Mutex::new(Inside {
            membership,
            hierarchy,
            made: 0,
            free: BTreeSet::new(),
        });
        let groups = Arc::new(ControlGroups {
            mounted: mounted.to_owned(),
            inside,
        });
        // Create and limit a group now, so that a missing permission is detected early.
        drop(groups.take(1 << 30).map_err(|error| error.to_string())?);
        Ok(groups)
    }

    /// Returns the memory of all groups.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.inside().hierarchy.memory_bytes()
    }

    /// Returns the version of the kernel's interface: 1 or 2.
    pub fn version(&self) -> u8 {
        match self.inside().hierarchy {
            Hierarchy::First { .. } => 1,
            Hierarchy::Second(_) => 2,
        }
    }

    /// Returns an empty group whose processes may hold this many bytes of memory together.
    ///
    /// # Errors
    /// Reports the file that could not be written.
    pub fn take(self: &Arc<ControlGroups>, memory_max: u64) -> io::Result<ControlGroup> {
        let mut inside = self.inside();
        let membership = own_membership();
        if membership != inside.membership {
            // Groups below the former cgroup of this process would not be bounded by the new one.
            inside.hierarchy.remove(inside.made);
            inside.hierarchy =
                Hierarchy::find(&self.mounted, &membership).map_err(io::Error::other)?;
            (inside.membership, inside.made) = (own_membership(), 0);
            inside.free.clear();
        }
        let number = match inside.free.pop_first() {
            Some(number) => number,
            None => {
                inside.hierarchy.make(inside.made)?;
                inside.made += 1;
                inside.made - 1
            }
        };
        let hierarchy = inside.hierarchy.clone();
        drop(inside);
        let groups = Arc::clone(self);
        let counts_before = OutOfMemoryCounts::default();
        let mut group = ControlGroup {
            groups,
            hierarchy,
            number,
            memory_max,
            counts_before,
        };
        group.limit_to(memory_max)?;
        Ok(group)
    }

    /// Returns a group with this process, which has no attempt yet. Moving a process can block in the kernel,
    /// usually for some milliseconds.
    ///
    /// # Errors
    /// Reports the file that could not be written.
    pub(super) fn take_ahead(self: &Arc<ControlGroups>, process: Pid) -> io::Result<ControlGroup> {
        let group = self.take(IDLE_MEMORY_MAX)?;
        group.admit(process)?;
        Ok(group)
    }

    /// Returns groups in a directory where no limit can be set, and the first of them.
    #[cfg(test)]
    pub(crate) fn without_limits(folder: &Path) -> (Arc<ControlGroups>, ControlGroup) {
        let membership = own_membership();
        let hierarchy = Hierarchy::Second(folder.to_owned());
        let inside = Inside {
            membership,
            hierarchy: hierarchy.clone(),
            made: 1,
            free: BTreeSet::new(),
        };
        let groups = Arc::new(ControlGroups {
            mounted: folder.to_owned(),
            inside: Mutex::new(inside),
        });
        let counts_before = OutOfMemoryCounts::default();
        let group = ControlGroup {
            groups: Arc::clone(&groups),
            hierarchy,
            number: 0,
            memory_max: IDLE_MEMORY_MAX,
            counts_before,
        };
        (groups, group)
    }

    /// Locks the state; no panic can leave it half-changed.
    fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        let inside = self.inside();
        inside.hierarchy.remove(inside.made);
    }
}

impl ControlGroup {
    /// Moves a process into the group, including its future children.
    ///
    /// # Errors
    /// Reports the file that could not be written, most often because the process has ended.
    pub fn admit(&self, process: Pid) -> io::Result<()> {
        let number = process.as_raw_nonzero().to_string();
        self.hierarchy
            .folders(self.number)
            .iter()
            .try_for_each(|one| write(one, "cgroup.procs", &number))
    }

    /// Sets the memory limit and resets the counters.
    ///
    /// # Errors
    /// Reports the file that could not be written.
    pub fn limit_to(&mut self, memory_max: u64) -> io::Result<()> {
        self.memory_max = memory_max;
        self.limit()?;
        self.counts_before = self.counts();
        Ok(())
    }

    /// Returns whether the group is below the present cgroup of this process.
    pub fn is_current(&self) -> bool {
        let inside = self.groups.inside();
        inside.hierarchy == self.hierarchy && inside.membership == own_membership()
    }

    /// Returns which limit led to an OOM kill in the group, if there was one.
    pub fn ran_out(&self) -> Option<OutOfMemory> {
        let before = self.counts_before;
        let now = self.counts();
        let place = if now.limits > before.limits {
            OutOfMemory::Group
        } else {
            OutOfMemory::Elsewhere
        };
        (now.kills > before.kills).then_some(place)
    }

    /// Returns whether the group is empty.
    pub fn is_deserted(&self) -> bool {
        self.members().is_empty()
    }

    fn limit(&self) -> io::Result<()> {
        let memory = self.memory_max.to_string();
        let processes = PROCESSES_MAX.to_string();
        match &*self.hierarchy.folders(self.number) {
            [first, second] => {
                write(first, "memory.limit_in_bytes", &memory)?;
                write(second, "pids.max", &processes)
            }
            [both, ..] => {
                // Kill all processes of an attempt or none: a task without its command is useless.
                write(both, "memory.oom.group", "1")?;
                write(both, "memory.max", &memory)?;
                write(both, "pids.max", &processes)
            }
            [] => Ok(()),
        }
    }

    fn counts(&self) -> OutOfMemoryCounts {
        let folders = self.hierarchy.folders(self.number);
        let read = |name: &str| {
            folders
                .first()
                .and_then(|memory| fs::read_to_string(memory.join(name)).ok())
        };
        let count = |name: &str, line: &str| {
            let text = read(name)?;
            text.lines()
                .find_map(|text| text.strip_prefix(line)?.trim().parse().ok())
        };
        // In version 2, `oom_kill` also counts kills for limits of outer groups, and `oom` those for this
        // limit.
        let (kills, limits) = match folders.len() {
            2 => (
                count("memory.oom_control", "oom_kill "),
                count("memory.failcnt", ""),
            ),
            _ => (
                count("memory.events", "oom_kill "),
                count("memory.events", "oom "),
            ),
        };
        OutOfMemoryCounts {
            kills: kills.unwrap_or(0),
            limits: limits.unwrap_or(0),
        }
    }

    /// Kills a member and waits for its end. The descriptor is opened before the membership is checked, so
    /// that a reused process id cannot be killed. An error means that it has ended.
    fn end(&self, member: Pid, patience: Duration) {
        let Ok(pidfd) = pidfd_open(member, PidfdFlags::empty()) else {
            return;
        };
        if self.members().contains(&member) && pidfd_send_signal(&pidfd, Signal::KILL).is_ok() {
            let limit = Timespec::try_from(patience).ok();
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], limit.as_ref());
        }
    }

    /// Returns the process ids in the group.
    fn members(&self) -> Vec<Pid> {
        let members = self.hierarchy.folders(self.number).into_iter().next();
        let text = members.and_then(|memory| fs::read_to_string(memory.join("cgroup.procs")).ok());
        text.unwrap_or_default()
            .lines()
            .filter_map(|line| Pid::from_raw(line.trim().parse().ok()?))
            .collect()
    }
}

impl Drop for ControlGroup {
    /// Kills the processes; a group that does not become empty is not reused.
    fn drop(&mut self) {
        let began = Instant::now();
        loop {
            let members = self.members();
            if members.is_empty() {
                let mut inside = self.groups.inside();
                if inside.hierarchy == self.hierarchy {
                    inside.free.insert(self.number);
                }
                return;
            }
            if began.elapsed() > PATIENCE {
                return;
            }
            for member in members {
                self.end(member, PATIENCE.saturating_sub(began.elapsed()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
