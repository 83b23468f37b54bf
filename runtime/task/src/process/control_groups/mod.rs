//! Control groups of the kernel, one for each attempt of a worker, so that a task cannot take the machine.
//!
//! Owns where groups may be made (version 1 as root, version 2 as root or where they were delegated), their
//! limits, who is put into them, and their removal. Does not own how much an attempt may have (the worker). A
//! group is used by one attempt after the other: making one costs more than limiting it anew, and what is in
//! the page cache would keep a removed one.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, test_kill_process};

const MOUNTED: &str = "/sys/fs/cgroup";
/// The folders of workers begin so, followed by the number of their process.
const PREFIX: &str = "napreduce-worker-";
/// Processes and threads of one attempt at a time.
const PROCESSES_MAX: u32 = 4096;
/// A killed process has left its group within so long, unless a disk holds it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Folders of one process have numbers.
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// Where this process makes groups.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hierarchy {
    /// One of memory and one of processes.
    First {
        memory: PathBuf,
        pids: PathBuf,
    },
    Second(PathBuf),
}

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
    /// How often the kernel had ended somebody in it before.
    kills_before: u64,
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
        let mut group = ControlGroup { groups, hierarchy, number, memory_max, kills_before: 0 };
        group.limit()?;
        group.kills_before = group.kills();
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

    /// What its processes may hold together, in bytes.
    pub fn memory_max(&self) -> u64 {
        self.memory_max
    }

    /// Whether the kernel has ended a process in it, since it held more than it may.
    pub fn ran_out(&self) -> bool {
        self.kills() > self.kills_before
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

    fn kills(&self) -> u64 {
        let folders = self.hierarchy.folders(self.number);
        let name = if folders.len() == 2 { "memory.oom_control" } else { "memory.events" };
        let text = folders.first().and_then(|memory| fs::read_to_string(memory.join(name)).ok());
        let line =
            |text: String| text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        text.and_then(line).unwrap_or(0)
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

impl Hierarchy {
    /// By what the kernel says of this process.
    fn find(mounted: &Path, membership: &str) -> Result<Hierarchy, String> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", getpid().as_raw_nonzero());
        if mounted.join("memory/memory.limit_in_bytes").exists() {
            let parent = |controller: &str| {
                let top = mounted.join(controller);
                let own = group_of(membership, controller).map(|path| top.join(path));
                own.filter(|path| path.is_dir()).unwrap_or(top)
            };
            let (memory, pids) = (parent("memory"), parent("pids"));
            for parent in [&memory, &pids] {
                remove_stale(parent);
                make(&parent.join(&name))?;
            }
            return Ok(Hierarchy::First { memory: memory.join(&name), pids: pids.join(&name) });
        }
        let own = mounted.join(group_of(membership, "").unwrap_or_default());
        let controllers = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        if ["memory", "pids"].iter().any(|wanted| !controllers.split_whitespace().any(|one| one == *wanted)) {
            return Err(format!("the control groups in {} do not limit memory and processes", own.display()));
        }
        let parent = delegated(&own)
            .or_else(|why| switched_on(mounted).map(|()| mounted.to_owned()).map_err(|_| why))?;
        remove_stale(&parent);
        let folder = parent.join(&name);
        make(&folder)?;
        switched_on(&folder)?;
        Ok(Hierarchy::Second(folder))
    }

    fn folders(&self, number: u32) -> Vec<PathBuf> {
        let name = number.to_string();
        match self {
            Hierarchy::First { memory, pids } => vec![memory.join(&name), pids.join(&name)],
            Hierarchy::Second(folder) => vec![folder.join(&name)],
        }
    }

    fn make(&self, number: u32) -> io::Result<()> {
        self.folders(number).iter().try_for_each(|folder| match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(named(folder, &error)),
            _ => Ok(()),
        })
    }

    /// What somebody is still in stays, and is removed by a later worker of this host.
    fn remove(&self, made: u32) {
        for folder in (0..made).flat_map(|number| self.folders(number)) {
            let _ = fs::remove_dir(folder);
        }
        let all: &[&PathBuf] = match self {
            Hierarchy::First { memory, pids } => &[memory, pids],
            Hierarchy::Second(folder) => &[folder],
        };
        for folder in all {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A group of version 2 that is this process's alone becomes one with groups below it: the process moves into
/// one of them, for a group has either processes or groups.
fn delegated(own: &Path) -> Result<PathBuf, String> {
    let processes = fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
    let itself = getpid().as_raw_nonzero().to_string();
    if processes.lines().any(|process| process != itself) {
        return Err(format!("{} has other processes, too; it was not delegated", own.display()));
    }
    let leaf = own.join("napreduce-worker");
    make(&leaf)?;
    write(&leaf, "cgroup.procs", &itself).map_err(|error| error.to_string())?;
    switched_on(own)?;
    Ok(own.to_owned())
}

/// Has the groups below a group of version 2 limit memory and processes.
fn switched_on(group: &Path) -> Result<(), String> {
    let on = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    for controller in ["memory", "pids"] {
        if !on.split_whitespace().any(|name| name == controller) {
            let switch = format!("+{controller}");
            write(group, "cgroup.subtree_control", &switch).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Removes what a worker that was killed has left: its tasks died with it.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        let Some(process) = process.and_then(Pid::from_raw) else { continue };
        // One of another user is alive all the same.
        if test_kill_process(process) != Err(Errno::SRCH) {
            continue;
        }
        for below in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(below.path());
        }
        let _ = fs::remove_dir(entry.path());
    }
}

fn own_membership() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// The path of the group under a controller of version 1, or of version 2 when that is not named,
/// without its slash.
fn group_of<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then(|| path.trim_start_matches('/'))
    })
}

fn make(folder: &Path) -> Result<(), String> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(named(folder, &error).to_string()),
        _ => Ok(()),
    }
}

fn write(folder: &Path, name: &str, value: &str) -> io::Result<()> {
    let path = folder.join(name);
    let written =
        OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| named(&path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
