//! Locations for control groups: version 1 as root, version 2 as root or where delegated. Creates and removes
//! the folders of a worker.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use napreduce_protocol::IoResult;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

/// Prefix of a worker's folders, followed by its process id.
const PREFIX: &str = "napreduce-worker-";
/// Numbers the folders of one process.
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// The location of this process's groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// The memory and the process controller.
    First {
        memory: PathBuf,
        pids: PathBuf,
    },
    Second(PathBuf),
}

impl Hierarchy {
    /// Finds the location from the kernel's description of this process.
    pub(super) fn find(mounted: &Path, membership: &str) -> Result<Hierarchy, String> {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", getpid().as_raw_nonzero());
        if mounted.join("memory/memory.limit_in_bytes").exists() {
            return Ok(Hierarchy::First {
                memory: make_in_first(mounted, membership, "memory", &name)?,
                pids: make_in_first(mounted, membership, "pids", &name)?,
            });
        }
        let own = mounted.join(group_of(membership, "").unwrap_or_default());
        let controllers = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
        let has = |wanted| controllers.split_whitespace().any(|name| name == wanted);
        if !has("memory") || !has("pids") {
            return Err(format!(
                "the control groups in {} lack the memory or pids controller",
                own.display()
            ));
        }
        let parent = match take_delegated(&own) {
            Ok(()) => own,
            // Root may use the top group instead.
            Err(_) if enable_controllers(mounted).is_ok() => mounted.to_owned(),
            Err(why) => return Err(why),
        };
        remove_stale(&parent);
        let folder = parent.join(&name);
        make(&folder).map_err(|error| error.to_string())?;
        enable_controllers(&folder)?;
        Ok(Hierarchy::Second(folder))
    }

    /// Returns the memory of all groups, as the kernel counts it.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        let file = match self {
            Hierarchy::First { memory, .. } => memory.join("memory.usage_in_bytes"),
            Hierarchy::Second(folder) => folder.join("memory.current"),
        };
        fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    pub(super) fn folders(&self, number: u32) -> Vec<PathBuf> {
        let name = number.to_string();
        match self {
            Hierarchy::First { memory, pids } => vec![memory.join(&name), pids.join(&name)],
            Hierarchy::Second(folder) => vec![folder.join(&name)],
        }
    }

    pub(super) fn make(&self, number: u32) -> io::Result<()> {
        for folder in self.folders(number) {
            make(&folder)?;
        }
        Ok(())
    }

    /// Removes the folders. One still in use stays and is removed by a later worker on this host.
    pub(super) fn remove(&self, made: u32) {
        for number in 0..made {
            for folder in self.folders(number) {
                let _ = fs::remove_dir(folder);
            }
        }
        match self {
            Hierarchy::First { memory, pids } => {
                let _ = fs::remove_dir(memory);
                let _ = fs::remove_dir(pids);
            }
            Hierarchy::Second(folder) => {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// Makes a worker's folder in the group that this process has for a version 1 controller, or else in the top one.
fn make_in_first(
    mounted: &Path,
    membership: &str,
    controller: &str,
    name: &str,
) -> Result<PathBuf, String> {
    let mut parent = mounted.join(controller);
    if let Some(group) = group_of(membership, controller) {
        let own = parent.join(group);
        if own.is_dir() {
            parent = own;
        }
    }
    remove_stale(&parent);
    let folder = parent.join(name);
    make(&folder).map_err(|error| error.to_string())?;
    Ok(folder)
}

/// Converts a version 2 group that belongs to this process alone into one with subgroups: the process moves
/// into one of them, since a group has either processes or subgroups.
fn take_delegated(own: &Path) -> Result<(), String> {
    let processes = fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
    let itself = getpid().as_raw_nonzero().to_string();
    if processes.lines().any(|process| process != itself) {
        return Err(format!(
            "{} contains other processes; it is not delegated to this worker",
            own.display()
        ));
    }
    let leaf = own.join("napreduce-worker");
    make(&leaf).map_err(|error| error.to_string())?;
    write(&leaf, "cgroup.procs", &itself).map_err(|error| error.to_string())?;
    enable_controllers(own)
}

/// Enables the memory and process controllers in the subgroups of a version 2 group.
fn enable_controllers(group: &Path) -> Result<(), String> {
    let on = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    for controller in ["memory", "pids"] {
        if !on.split_whitespace().any(|name| name == controller) {
            let switch = format!("+{controller}");
            write(group, "cgroup.subtree_control", &switch).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Removes the folders of a killed worker; its tasks died with it.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(worker_process) else {
            continue;
        };
        // A process of another user is alive as well.
        if test_kill_process(process) != Err(Errno::SRCH) {
            continue;
        }
        for below in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(below.path());
        }
        let _ = fs::remove_dir(entry.path());
    }
}

/// Returns the process of the worker whose folder has this name.
fn worker_process(folder: &str) -> Option<Pid> {
    let numbers = folder.strip_prefix(PREFIX)?;
    let process = numbers.split('-').next()?;
    Pid::from_raw(process.parse().ok()?)
}

pub(super) fn own_membership() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// Returns the path of the group of a version 1 controller, or of version 2 for an empty name, without its
/// leading slash.
pub(in crate::process) fn group_of<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    for line in membership.lines() {
        // `4:memory,hugetlb:/user.slice`
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        if let [_, controllers, path] = fields[..]
            && controllers.split(',').any(|name| name == controller)
        {
            return Some(path.trim_start_matches('/'));
        }
    }
    None
}

fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
        .unless_there()
        .map_err(|error| named(folder, &error))
}

pub(super) fn write(folder: &Path, name: &str, value: &str) -> io::Result<()> {
    let path = folder.join(name);
    let written = OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| named(&path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
