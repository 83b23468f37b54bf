//! Control groups of the kernel, one for each attempt of a worker, so that a task cannot take the machine.
//!
//! Owns their limits, and who is put into them. Does not own where they may be made (`hierarchy`) nor how
//! much an attempt may have (the worker). A group is used by one attempt after the other: making one costs
//! more than limiting it anew, and what is in the page cache would keep a removed one.

mod hierarchy;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(super) use self::hierarchy::group_of;
use self::hierarchy::{Hierarchy, own_membership, write};

const MOUNTED: &str = "/sys/fs/cgroup";
/// Processes and threads of one attempt at a time.
const PROCESSES_MAX: u32 = 4096;
/// What a process may hold that nobody has given work yet.
const IDLE_MEMORY_MAX: u64 = 1 << 30;
/// A killed process has left its group within so long, unless a disk holds it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The groups of a worker's attempts; removed when it is dropped.
#[derive(Debug)]
pub struct ControlGroups {
    mounted: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    /// Changes when somebody puts this process elsewhere.
    membership: String,
    hierarchy: Hierarchy,
    made: u32,
    free: BTreeSet<u32>,
}

/// The group of one attempt; its processes are ended when it is dropped.
#[derive(Debug)]
pub struct ControlGroup {
    groups: Arc<ControlGroups>,
    hierarchy: Hierarchy,
    number: u32,
    memory_max: u64,
    /// As they were when it was limited.
    counts_before: OutOfMemoryCounts,
}

/// What the kernel counts of one group.
#[derive(Debug, Clone, Copy, Default)]
struct OutOfMemoryCounts {
    /// Processes in it that the kernel has ended for want of memory, whoever lacked it.
    kills: u64,
    /// How often it reached its own limit.
    limits: u64,
}

/// Whose want of memory ended a process of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfMemory {
    /// The group reached its own limit.
    Group,
    /// The machine's memory or the limit of a group around this one, such as a pod's, was used up.
    Elsewhere,
}

impl ControlGroups {
    /// Finds out where groups can be made, and that they can be limited.
    ///
    /// # Errors
    /// Why there are none, for people.
    pub fn create() -> Result<Arc<ControlGroups>, String> {
        ControlGroups::create_in(Path::new(MOUNTED))
    }

    fn create_in(mounted: &Path) -> Result<Arc<ControlGroups>, String> {
        let membership = own_membership();
        let hierarchy = Hierarchy::find(mounted, &membership)?;
        // It may have moved to make room.
        let membership = own_membership();
        let inside = Mutex::new(Inside { membership, hierarchy, made: 0, free: BTreeSet::new() });
        let groups = Arc::new(ControlGroups { mounted: mounted.to_owned(), inside });
        // One is made and limited at once, so that what cannot be had is known before it is relied on.
        drop(groups.take(1 << 30).map_err(|error| error.to_string())?);
        Ok(groups)
    }

    /// The version of the kernel's interface: 1 or 2.
    pub fn version(&self) -> u8 {
        match self.inside().hierarchy {
            Hierarchy::First { .. } => 1,
            Hierarchy::Second(_) => 2,
        }
    }

    /// A group with nobody in it, whose processes may hold so many bytes of memory together.
    ///
    /// # Errors
    /// The file that could not be written.
    pub fn take(self: &Arc<ControlGroups>, memory_max: u64) -> io::Result<ControlGroup> {
        let mut inside = self.inside();
        let membership = own_membership();
        if membership != inside.membership {
            // Groups below the one in which this process was would not be bounded by the new one.
            inside.hierarchy.remove(inside.made);
            inside.hierarchy = Hierarchy::find(&self.mounted, &membership).map_err(io::Error::other)?;
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
        let mut group = ControlGroup { groups, hierarchy, number, memory_max, counts_before };
        group.limit_to(memory_max)?;
        Ok(group)
    }

    /// A group with this process in it, which has no attempt yet: the kernel lets whoever puts somebody into
    /// a group wait, most often for some milliseconds.
    ///
    /// # Errors
    /// The file that could not be written.
    pub(super) fn take_ahead(self: &Arc<ControlGroups>, process: Pid) -> io::Result<ControlGroup> {
        let group = self.take(IDLE_MEMORY_MAX)?;
        group.admit(process)?;
        Ok(group)
    }

    /// A panic while it was held can only have come between whole changes.
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        let inside = self.inside();
        inside.hierarchy.remove(inside.made);
    }
}

impl ControlGroup {
    /// Puts a process into it, and so everything that it starts from now on.
    ///
    /// # Errors
    /// The file that could not be written; above all when the process is gone.
    pub fn admit(&self, process: Pid) -> io::Result<()> {
        let number = process.as_raw_nonzero().to_string();
        self.hierarchy.folders(self.number).iter().try_for_each(|one| write(one, "cgroup.procs", &number))
    }

    /// From now on its processes may hold so much; what has happened in it so far does not count.
    ///
    /// # Errors
    /// The file that could not be written.
    pub fn limit_to(&mut self, memory_max: u64) -> io::Result<()> {
        self.memory_max = memory_max;
        self.limit()?;
        self.counts_before = self.counts();
        Ok(())
    }

    /// Whether it is where groups are made now: this process was not put elsewhere since.
    pub fn is_current(&self) -> bool {
        let inside = self.groups.inside();
        inside.hierarchy == self.hierarchy && inside.membership == own_membership()
    }

    /// Whose want of memory the kernel has ended a process in it for, if it has.
    pub fn ran_out(&self) -> Option<OutOfMemory> {
        let (before, now) = (self.counts_before, self.counts());
        let place = if now.limits > before.limits { OutOfMemory::Group } else { OutOfMemory::Elsewhere };
        (now.kills > before.kills).then_some(place)
    }

    /// Whether nobody is in it.
    pub fn is_deserted(&self) -> bool {
        self.members().is_empty()
    }

    fn limit(&self) -> io::Result<()> {
        let (memory, processes) = (self.memory_max.to_string(), PROCESSES_MAX.to_string());
        match &*self.hierarchy.folders(self.number) {
            [first, second] => {
                write(first, "memory.limit_in_bytes", &memory)?;
                write(second, "pids.max", &processes)
            }
            [both, ..] => {
                // All of an attempt or nothing: a task without the command that it feeds is of no use.
                write(both, "memory.oom.group", "1")?;
                write(both, "memory.max", &memory)?;
                write(both, "pids.max", &processes)
            }
            [] => Ok(()),
        }
    }

    fn counts(&self) -> OutOfMemoryCounts {
        let folders = self.hierarchy.folders(self.number);
        let read = |name: &str| folders.first().and_then(|memory| fs::read_to_string(memory.join(name)).ok());
        let count = |name: &str, line: &str| {
            let text = read(name)?;
            text.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok())
        };
        // In version 2, `oom_kill` counts kills for the limits of outer groups, too, and `oom` those for this limit.
        let (kills, limits) = match folders.len() {
            2 => (count("memory.oom_control", "oom_kill "), count("memory.failcnt", "")),
            _ => (count("memory.events", "oom_kill "), count("memory.events", "oom ")),
        };
        OutOfMemoryCounts { kills: kills.unwrap_or(0), limits: limits.unwrap_or(0) }
    }

    /// Ends a member and waits until it has ended. Opened first and looked at then: what the descriptor is of
    /// cannot become somebody else. An error says that it is gone.
    fn end(&self, member: Pid, patience: Duration) {
        let Ok(pidfd) = pidfd_open(member, PidfdFlags::empty()) else { return };
        if self.members().contains(&member) && pidfd_send_signal(&pidfd, Signal::KILL).is_ok() {
            let limit = Timespec::try_from(patience).ok();
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], limit.as_ref());
        }
    }

    /// Whoever is in it.
    fn members(&self) -> Vec<Pid> {
        let members = self.hierarchy.folders(self.number).into_iter().next();
        let text = members.and_then(|memory| fs::read_to_string(memory.join("cgroup.procs")).ok());
        text.unwrap_or_default().lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)).collect()
    }
}

impl Drop for ControlGroup {
    /// A group that does not get empty is not used again.
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
