//! Files in memory that behave as those of a machine that may lose power at any time.
//!
//! A file has the content that processes see and the content that is on the disk; a directory has the entries of both
//! kinds. [`DiskFile::sync_data`] and [`Disk::sync_directory`] make them equal. A power loss draws which of the changes
//! since then survive:
//!
//! - of a file's writes some first ones, of which the last one may be torn, and the unwritten rest up to the file's
//!   new length may read as zeros; or, where the settings allow it, each page for itself;
//! - of the changes of directory entries none, all, some first ones, or any. A rename survives as a whole. Syncing a
//!   file does not sync its entry.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Debug};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_protocol::lock;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::{Disk, DiskFile, FileKind, FileLock, FileStat, HeldLock, Links, Opening};

/// Number of the root directory.
const ROOT: u64 = 0;
const PAGE_BYTES: usize = 4096;

/// A simulated disk. Clones share it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    user: User,
}

/// Where the calls come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    /// The machine of the disk.
    Machine,
    /// Another machine, to which the disk is shared. Its calls are not counted, and no faults are drawn for them.
    Other,
}

/// The effect of a fault on one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// The call is not carried out and returns this error number. After a sync that failed, what it should have
    /// synced is visible until the machine loses power, and lost then, as on Linux.
    Error(i32),
    /// The call is carried out, but it and all later calls fail until [`SimDisk::kill_processes`] or
    /// [`SimDisk::lose_power`], as if the process had ended before the call returned.
    LastCall,
}

/// How often calls misbehave, and how long they take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FaultRates {
    /// The share of calls that fail with `EIO`.
    pub errors: f64,
    /// The share of writes and reads that are interrupted or handle fewer bytes than they could.
    pub short: f64,
    /// The time that each sync takes.
    pub sync: Duration,
    /// The share of calls that stall, and the maximum time that they take.
    pub stalls: (f64, Duration),
    /// Whether each page of what was written since the last sync is lost or kept for itself, in any order.
    pub pages_in_any_order: bool,
}

/// The content of a file that a power loss leaves, or may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivors {
    /// The numbers of the pages whose unsynced content is kept; the others have the content of the last sync, or zeros.
    pub pages: Vec<usize>,
    /// The length of the file.
    pub bytes: usize,
}

#[derive(Debug)]
struct State {
    random: Pcg64,
    nodes: BTreeMap<u64, Node>,
    next_node: u64,
    /// Changes of directory entries that a power loss may undo, oldest first.
    unsynced: Vec<EntryChange>,
    /// The file of each open handle.
    open: BTreeMap<u64, u64>,
    /// The handle that holds the lock of each locked file or directory.
    locks: BTreeMap<u64, u64>,
    next_handle: u64,
    calls: u64,
    faults: BTreeMap<u64, CallFault>,
    at_last_call: Option<Reaction>,
    /// The numbers of the calls that synced a file or directory.
    syncs: Vec<u64>,
    /// The numbers of the syncs that are not carried out.
    ignored_syncs: BTreeSet<u64>,
    is_down: bool,
    rates: FaultRates,
    bytes_max: Option<u64>,
    latency: Duration,
    /// Counts changes, for the times of files.
    ticks: i64,
}

/// The function that a simulation calls after the last call of the machine.
struct Reaction(Box<dyn FnOnce() + Send>);

impl Debug for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reaction")
    }
}

#[derive(Debug)]
enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

#[derive(Debug, Default)]
struct FileNode {
    content: Vec<u8>,
    synced: Vec<u8>,
    /// Changes of the content since its last sync.
    unsynced: Vec<ContentChange>,
    mode: u32,
    modified: i64,
    changed: i64,
}

#[derive(Debug, Default)]
struct DirectoryNode {
    mode: u32,
    entries: BTreeMap<OsString, u64>,
    synced: BTreeMap<OsString, u64>,
}

#[derive(Debug, Clone)]
enum ContentChange {
    Write { at: usize, bytes: Vec<u8> },
    SetLength(usize),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    directory: u64,
    name: OsString,
}

/// An atomic change of one or two entries: the file or directory that each leads to from then on.
#[derive(Debug)]
struct EntryChange {
    slots: Vec<(Slot, Option<u64>)>,
}

/// The kind of a call, for its faults and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Read,
    Write,
    Sync,
    Other,
}

impl SimDisk {
    /// Creates an empty disk, whose draws depend on the seed alone.
    #[must_use]
    pub fn new(seed: u64) -> SimDisk {
        let root = Node::Directory(DirectoryNode {
            mode: 0o755,
            ..DirectoryNode::default()
        });
        SimDisk {
            state: Arc::new(Mutex::new(State {
                random: Pcg64::seed_from_u64(seed),
                nodes: BTreeMap::from([(ROOT, root)]),
                next_node: ROOT + 1,
                unsynced: Vec::new(),
                open: BTreeMap::new(),
                locks: BTreeMap::new(),
                next_handle: 0,
                calls: 0,
                faults: BTreeMap::new(),
                at_last_call: None,
                syncs: Vec::new(),
                ignored_syncs: BTreeSet::new(),
                is_down: false,
                rates: FaultRates::default(),
                bytes_max: None,
                latency: Duration::ZERO,
                ticks: 0,
            })),
            user: User::Machine,
        }
    }

    /// Returns this disk for another machine that shares it. That machine sees the same content as the processes here, and
    /// its calls do not fail.
    #[must_use]
    pub fn shared(&self) -> SimDisk {
        SimDisk {
            state: Arc::clone(&self.state),
            user: User::Other,
        }
    }

    /// Returns the number of calls until now.
    #[must_use]
    pub fn calls(&self) -> u64 {
        lock(&self.state).calls
    }

    /// Returns the numbers of the calls that synced a file or directory.
    #[must_use]
    pub fn syncs(&self) -> Vec<u64> {
        lock(&self.state).syncs.clone()
    }

    /// Makes the sync with that number succeed without being carried out, as if its caller had forgotten it.
    pub fn ignore_sync(&self, number: u64) {
        lock(&self.state).ignored_syncs.insert(number);
    }

    /// Makes the call of that number, counted from 0 as [`SimDisk::calls`] does, fail. Forgotten when the processes end.
    pub fn fail_call(&self, number: u64, fault: CallFault) {
        lock(&self.state).faults.insert(number, fault);
    }

    /// Forgets the faults of calls that were not made yet.
    pub fn forget_faults(&self) {
        lock(&self.state).faults.clear();
    }

    /// Sets what is done once, in the next call with the fault [`CallFault::LastCall`]: the process that made it must not
    /// continue.
    pub fn at_last_call(&self, act: impl FnOnce() + Send + 'static) {
        lock(&self.state).at_last_call = Some(Reaction(Box::new(act)));
    }

    /// Sets how often calls misbehave from now on.
    pub fn set_rates(&self, rates: FaultRates) {
        lock(&self.state).rates = rates;
    }

    /// Sets how many bytes of files the disk holds, or that it holds any number.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        lock(&self.state).bytes_max = bytes;
    }

    /// Returns how many bytes of files the disk holds.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        lock(&self.state).used_bytes()
    }

    /// Returns the time that calls took since the last call of this method. Calls do not wait: the simulation that polls their process
    /// lets that time pass.
    #[must_use]
    pub fn take_latency(&self) -> Duration {
        std::mem::take(&mut lock(&self.state).latency)
    }

    /// Ends all processes that use the disk: their files are closed, and their locks released. What they wrote stays.
    pub fn kill_processes(&self) {
        lock(&self.state).close_files();
    }

    /// Ends all processes that use the disk, draws which of the changes since the last syncs survive, and starts the
    /// machine again.
    pub fn lose_power(&self) {
        let mut state = lock(&self.state);
        state.close_files();
        state.lose_entries();
        state.lose_content();
        state.remove_unreachable();
    }

    /// Returns everything that a power loss may leave of a file: each set of pages that were written since its last sync,
    /// with the old length, the new one, and each length between them that ends a page.
    ///
    /// # Errors
    /// Fails if there is no such file.
    pub fn possible_survivors(&self, path: &Path) -> io::Result<Vec<Survivors>> {
        let mut state = lock(&self.state);
        let number = state.find(path)?;
        let file = state.file(number)?;
        let mut pages = BTreeSet::new();
        for change in &file.unsynced {
            if let ContentChange::Write { at, bytes } = change
                && !bytes.is_empty()
            {
                pages.extend(at / PAGE_BYTES..=(at + bytes.len() - 1) / PAGE_BYTES);
            }
        }
        let ends = [file.synced.len(), file.content.len()];
        let mut lengths = BTreeSet::from(ends);
        for page in &pages {
            lengths.insert(
                ((page + 1) * PAGE_BYTES).clamp(ends[0].min(ends[1]), ends[0].max(ends[1])),
            );
        }
        let mut sets = vec![Vec::new()];
        for page in pages {
            for index in 0..sets.len() {
                let mut with_page: Vec<usize> = sets[index].clone();
                with_page.push(page);
                sets.push(with_page);
            }
        }
        let mut survivors = Vec::new();
        for bytes in lengths {
            for pages in &sets {
                survivors.push(Survivors {
                    pages: pages.clone(),
                    bytes,
                });
            }
        }
        Ok(survivors)
    }

    /// Loses power as [`SimDisk::lose_power`] does, except that exactly this is left of a file.
    ///
    /// # Errors
    /// Fails if there is no such file.
    pub fn lose_power_except(&self, path: &Path, survivors: &Survivors) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.close_files();
        let number = state.find(path)?;
        state.file(number)?.keep(survivors);
        drop(state);
        self.lose_power();
        Ok(())
    }

    fn call<T>(
        &self,
        kind: CallKind,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = lock(&self.state);
        if self.user == User::Other {
            return act(&mut state);
        }
        match state.begin_call(kind)? {
            Some(CallFault::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(CallFault::LastCall) => {
                // The call takes effect, but its process has ended and gets no result.
                let _ = act(&mut state);
                state.is_down = true;
                let reaction = state.at_last_call.take();
                drop(state);
                if let Some(Reaction(react)) = reaction {
                    react();
                }
                Err(down())
            }
            None => act(&mut state),
        }
    }
}

impl SimDisk {
    fn sync(&self, act: impl FnOnce(&mut State) -> io::Result<()>) -> io::Result<()> {
        self.call(CallKind::Sync, |state| {
            let number = state.calls.saturating_sub(1);
            if state.ignored_syncs.contains(&number) {
                return Ok(());
            }
            act(state)
        })
    }
}

fn down() -> io::Error {
    io::Error::other("the process has ended")
}

fn system_error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

impl State {
    /// Counts a call and draws its fault.
    fn begin_call(&mut self, kind: CallKind) -> io::Result<Option<CallFault>> {
        if self.is_down {
            return Err(down());
        }
        let number = self.calls;
        self.calls += 1;
        if kind == CallKind::Sync {
            self.syncs.push(number);
            self.latency += self.rates.sync;
        }
        let (stalls, longest) = self.rates.stalls;
        if stalls > 0.0 && self.random.random_bool(stalls) {
            self.latency += longest.mul_f64(self.random.random::<f64>());
        }
        if let Some(fault) = self.faults.remove(&number) {
            return Ok(Some(fault));
        }
        if self.rates.errors > 0.0 && self.random.random_bool(self.rates.errors) {
            return Ok(Some(CallFault::Error(libc::EIO)));
        }
        Ok(None)
    }

    fn close_files(&mut self) {
        self.open.clear();
        self.locks.clear();
        self.is_down = false;
        self.faults.clear();
    }

    fn add_handle(&mut self, node: u64) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.open.insert(handle, node);
        handle
    }

    fn close(&mut self, node: u64, handle: u64) {
        self.open.remove(&handle);
        if self.locks.get(&node) == Some(&handle) {
            self.locks.remove(&node);
        }
    }

    fn lock(&mut self, node: u64, handle: u64) -> FileLock {
        let holder = *self.locks.entry(node).or_insert(handle);
        if holder == handle {
            FileLock::Taken
        } else {
            FileLock::HeldBy(None)
        }
    }

    fn directory(&mut self, number: u64) -> io::Result<&mut DirectoryNode> {
        match self.nodes.get_mut(&number) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(system_error(libc::ENOTDIR)),
            None => Err(system_error(libc::ENOENT)),
        }
    }

    fn file(&mut self, number: u64) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&number) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(system_error(libc::EISDIR)),
            None => Err(system_error(libc::ESTALE)),
        }
    }

    /// Returns the file of an open handle.
    fn opened(&mut self, file: &SimFile) -> io::Result<&mut FileNode> {
        if !self.open.contains_key(&file.handle) {
            return Err(down());
        }
        self.file(file.node)
    }

    fn change_file(&mut self, file: &SimFile, change: ContentChange) -> io::Result<()> {
        self.ticks += 1;
        let now = self.ticks;
        let file = self.opened(file)?;
        file.change(change);
        file.modified = now;
        file.changed = now;
        Ok(())
    }

    fn stat(&self, number: u64) -> io::Result<FileStat> {
        let stat = FileStat {
            kind: FileKind::Directory,
            bytes: 0,
            device: 1,
            inode: number,
            owner: rustix::process::geteuid().as_raw(),
            mode: 0,
            modified: (0, 0),
            changed: (0, 0),
        };
        match self.nodes.get(&number) {
            Some(Node::Directory(directory)) => Ok(FileStat {
                mode: directory.mode,
                ..stat
            }),
            Some(Node::File(file)) => Ok(FileStat {
                kind: FileKind::File,
                bytes: file.content.len() as u64,
                mode: file.mode,
                modified: (file.modified, 0),
                changed: (file.changed, 0),
                ..stat
            }),
            None => Err(system_error(libc::ENOENT)),
        }
    }

    fn find(&mut self, path: &Path) -> io::Result<u64> {
        let mut number = ROOT;
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => {
                    let found = self.directory(number)?.entries.get(name).copied();
                    number = found.ok_or_else(|| system_error(libc::ENOENT))?;
                }
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(system_error(libc::EINVAL));
                }
            }
        }
        Ok(number)
    }

    /// Returns the name of a path in its directory, and what it leads to.
    fn slot(&mut self, path: &Path) -> io::Result<(Slot, Option<u64>)> {
        let name = path.file_name().ok_or_else(|| system_error(libc::EINVAL))?;
        let directory = self.find(path.parent().unwrap_or(Path::new("")))?;
        let found = self.directory(directory)?.entries.get(name).copied();
        let slot = Slot {
            directory,
            name: name.to_owned(),
        };
        Ok((slot, found))
    }

    fn add_node(&mut self, node: Node) -> u64 {
        let number = self.next_node;
        self.next_node += 1;
        self.nodes.insert(number, node);
        number
    }

    fn change_entries(&mut self, slots: Vec<(Slot, Option<u64>)>) -> io::Result<()> {
        for (slot, target) in &slots {
            let directory = self.directory(slot.directory)?;
            set_entry(&mut directory.entries, &slot.name, *target);
        }
        self.unsynced.push(EntryChange { slots });
        Ok(())
    }

    /// Makes the wanted changes of entries survive, and earlier ones of the same names.
    fn settle_entries(&mut self, mut is_wanted: impl FnMut(&EntryChange) -> bool) {
        let mut needed: BTreeSet<Slot> = BTreeSet::new();
        let mut settled = Vec::new();
        let mut left = Vec::new();
        for change in std::mem::take(&mut self.unsynced).into_iter().rev() {
            let is_needed = change.slots.iter().any(|(slot, _)| needed.contains(slot));
            if is_wanted(&change) || is_needed {
                needed.extend(change.slots.iter().map(|(slot, _)| slot.clone()));
                settled.push(change);
            } else {
                left.push(change);
            }
        }
        left.reverse();
        self.unsynced = left;
        for change in settled.into_iter().rev() {
            for (slot, target) in change.slots {
                // A directory that was removed meanwhile is gone.
                if let Ok(directory) = self.directory(slot.directory) {
                    set_entry(&mut directory.synced, &slot.name, target);
                }
            }
        }
    }

    /// Draws which changes of entries survive, and forgets the others.
    fn lose_entries(&mut self) {
        let count = self.unsynced.len();
        let mut kept = vec![false; count];
        match self.random.random_range(0..4) {
            0 => {}
            1 => kept.fill(true),
            2 => {
                let first = self.random.random_range(0..=count);
                kept[..first].fill(true);
            }
            _ => {
                for one in &mut kept {
                    *one = self.random.random_bool(0.5);
                }
            }
        }
        // Changes are settled from the last one to the first.
        self.settle_entries(|_| kept.pop().unwrap_or(false));
        self.unsynced.clear();
        for node in self.nodes.values_mut() {
            if let Node::Directory(directory) = node {
                directory.entries = directory.synced.clone();
            }
        }
    }

    /// Draws which writes survive, and forgets the others.
    fn lose_content(&mut self) {
        let in_any_order = self.rates.pages_in_any_order;
        for node in self.nodes.values_mut() {
            if let Node::File(file) = node {
                file.lose_content(&mut self.random, in_any_order);
            }
        }
    }

    /// Removes the files and directories without an entry, whose processes have ended.
    fn remove_unreachable(&mut self) {
        let used = self.used_nodes();
        self.nodes.retain(|number, _| used.contains(number));
    }

    /// Returns the files and directories that have an entry or are open.
    fn used_nodes(&self) -> BTreeSet<u64> {
        let mut reached: BTreeSet<u64> = self.open.values().copied().collect();
        reached.insert(ROOT);
        let mut to_visit = vec![ROOT];
        while let Some(number) = to_visit.pop() {
            if let Some(Node::Directory(directory)) = self.nodes.get(&number) {
                for target in directory.entries.values() {
                    if reached.insert(*target) {
                        to_visit.push(*target);
                    }
                }
            }
        }
        reached
    }

    /// Returns how many bytes of a write or read are handled.
    fn draw_length(&mut self, bytes: usize) -> io::Result<usize> {
        let short = self.rates.short;
        if bytes == 0 || short == 0.0 || !self.random.random_bool(short) {
            return Ok(bytes);
        }
        if self.random.random_bool(0.25) {
            return Err(system_error(libc::EINTR));
        }
        Ok(self.random.random_range(1..=bytes))
    }

    fn free_bytes(&self) -> usize {
        let Some(max) = self.bytes_max else {
            return usize::MAX;
        };
        usize::try_from(max.saturating_sub(self.used_bytes())).unwrap_or(usize::MAX)
    }

    fn used_bytes(&self) -> u64 {
        let mut used = 0;
        for number in self.used_nodes() {
            if let Some(Node::File(file)) = self.nodes.get(&number) {
                used += file.content.len() as u64;
            }
        }
        used
    }

    fn open(&mut self, path: &Path, opening: Opening) -> io::Result<(u64, u64)> {
        let (slot, found) = self.slot(path)?;
        let node = match (found, opening) {
            (Some(_), Opening::CreateNew { .. }) => return Err(system_error(libc::EEXIST)),
            (None, Opening::Read | Opening::ReadLinked | Opening::Change) => {
                return Err(system_error(libc::ENOENT));
            }
            (Some(node), _) => {
                if self.file(node).is_err() {
                    return Err(match opening {
                        Opening::Read | Opening::ReadLinked => {
                            let what = "it is not a regular file";
                            io::Error::new(io::ErrorKind::InvalidInput, what)
                        }
                        _ => system_error(libc::EISDIR),
                    });
                }
                node
            }
            (
                None,
                Opening::CreateOrChange { mode }
                | Opening::CreateNew { mode }
                | Opening::CreateOrEmpty { mode },
            ) => {
                let node = self.add_node(Node::File(FileNode {
                    mode,
                    ..FileNode::default()
                }));
                self.change_entries(vec![(slot, Some(node))])?;
                node
            }
        };
        if matches!(opening, Opening::CreateOrEmpty { .. }) {
            self.file(node)?.change(ContentChange::SetLength(0));
        }
        Ok((node, self.add_handle(node)))
    }

    fn make_directory(&mut self, slot: Slot, mode: u32) -> io::Result<()> {
        let made = self.add_node(Node::Directory(DirectoryNode {
            mode,
            ..DirectoryNode::default()
        }));
        self.change_entries(vec![(slot, Some(made))])
    }

    /// Returns whether a directory is another one, or beneath it.
    fn is_beneath(&self, directory: u64, above: u64) -> bool {
        if directory == above {
            return true;
        }
        let Some(Node::Directory(node)) = self.nodes.get(&above) else {
            return false;
        };
        let mut entries = node.entries.values();
        entries.any(|entry| self.is_beneath(directory, *entry))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (source, moved) = self.slot(from)?;
        let (target, replaced) = self.slot(to)?;
        let moved = moved.ok_or_else(|| system_error(libc::ENOENT))?;
        if self.is_beneath(target.directory, moved) {
            return Err(system_error(libc::EINVAL));
        }
        // Two names of one file stay.
        if replaced == Some(moved) {
            return Ok(());
        }
        if let Some(replaced) = replaced {
            if self.is_beneath(source.directory, replaced) {
                return Err(system_error(libc::ENOTEMPTY));
            }
            match (self.nodes.get(&moved), self.nodes.get(&replaced)) {
                (Some(Node::File(_)), Some(Node::Directory(_))) => {
                    return Err(system_error(libc::EISDIR));
                }
                (Some(Node::Directory(_)), Some(Node::File(_))) => {
                    return Err(system_error(libc::ENOTDIR));
                }
                (_, Some(Node::Directory(directory))) if !directory.entries.is_empty() => {
                    return Err(system_error(libc::ENOTEMPTY));
                }
                _ => {}
            }
        }
        self.ticks += 1;
        let now = self.ticks;
        if let Ok(file) = self.file(moved) {
            file.changed = now;
        }
        self.change_entries(vec![(source, None), (target, Some(moved))])
    }
}

fn set_entry(entries: &mut BTreeMap<OsString, u64>, name: &OsStr, target: Option<u64>) {
    match target {
        Some(node) => {
            entries.insert(name.to_owned(), node);
        }
        None => {
            entries.remove(name);
        }
    }
}

impl ContentChange {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            ContentChange::Write { at, bytes } => {
                let end = at + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*at..end].copy_from_slice(bytes);
            }
            ContentChange::SetLength(bytes) => content.resize(*bytes, 0),
        }
    }
}

impl FileNode {
    fn change(&mut self, change: ContentChange) {
        change.apply(&mut self.content);
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// Keeps exactly these changes, as if they had been synced.
    fn keep(&mut self, survivors: &Survivors) {
        let mut left = self.synced.clone();
        left.resize(survivors.bytes, 0);
        for page in &survivors.pages {
            let start = page * PAGE_BYTES;
            let end = (start + PAGE_BYTES).min(left.len()).min(self.content.len());
            if start < end {
                left[start..end].copy_from_slice(&self.content[start..end]);
            }
        }
        self.unsynced.clear();
        self.synced = left;
    }

    fn lose_content(&mut self, random: &mut Pcg64, in_any_order: bool) {
        let changes = std::mem::take(&mut self.unsynced);
        if !changes.is_empty() {
            self.synced = survivor(&self.synced, &changes, random, in_any_order);
        }
        self.content = self.synced.clone();
    }
}

/// Draws what is left of a file after a power loss.
fn survivor(
    synced: &[u8],
    changes: &[ContentChange],
    random: &mut Pcg64,
    in_any_order: bool,
) -> Vec<u8> {
    let mut left = synced.to_vec();
    if in_any_order {
        let mut whole = synced.to_vec();
        for change in changes {
            change.apply(&mut whole);
        }
        if random.random_bool(0.5) {
            left.resize(whole.len(), 0);
        }
        let common = left.len().min(whole.len());
        for (page, new) in left[..common]
            .chunks_mut(PAGE_BYTES)
            .zip(whole[..common].chunks(PAGE_BYTES))
        {
            if random.random_bool(0.5) {
                page.copy_from_slice(new);
            }
        }
        return left;
    }
    let whole_ones = match random.random_range(0..4) {
        0 => 0,
        1 => changes.len(),
        _ => random.random_range(0..=changes.len()),
    };
    for change in &changes[..whole_ones] {
        change.apply(&mut left);
    }
    if let Some(ContentChange::Write { at, bytes }) = changes.get(whole_ones)
        && random.random_bool(0.75)
    {
        let torn = random.random_range(0..=bytes.len());
        let written = ContentChange::Write {
            at: *at,
            bytes: bytes[..torn].to_vec(),
        };
        written.apply(&mut left);
        // The new length may be on the disk before the content.
        let end = at + bytes.len();
        if left.len() < end && random.random_bool(0.25) {
            left.resize(random.random_range(left.len()..=end), 0);
        }
    }
    left
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, opening: Opening) -> io::Result<Box<dyn DiskFile>> {
        let (node, handle) = self.call(CallKind::Other, |state| state.open(path, opening))?;
        Ok(Box::new(SimFile {
            disk: self.clone(),
            node,
            handle,
            position: 0,
            is_writable: opening != Opening::Read,
        }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.call(CallKind::Read, |state| {
            let number = state.find(directory)?;
            let entries = &state.directory(number)?.entries;
            let mut names: Vec<OsString> = entries.keys().cloned().collect();
            // Nothing may depend on the order.
            for last in (1..names.len()).rev() {
                names.swap(last, state.random.random_range(0..=last));
            }
            Ok(names)
        })
    }

    fn stat(&self, path: &Path, _links: Links) -> io::Result<FileStat> {
        self.call(CallKind::Read, |state| {
            let number = state.find(path)?;
            state.stat(number)
        })
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.call(CallKind::Other, |state| {
            let number = state.find(path)?;
            match state.nodes.get_mut(&number) {
                Some(Node::Directory(directory)) => directory.mode = mode,
                Some(Node::File(file)) => file.mode = mode,
                None => {}
            }
            Ok(())
        })
    }

    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.call(CallKind::Other, |state| match state.slot(path)? {
            (_, Some(_)) => Err(system_error(libc::EEXIST)),
            (slot, None) => state.make_directory(slot, mode),
        })
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        self.call(CallKind::Other, |state| {
            let node = state.find(file)?;
            match state.slot(name)? {
                (_, Some(_)) => Err(system_error(libc::EEXIST)),
                _ if state.file(node).is_err() => Err(system_error(libc::EPERM)),
                (slot, None) => state.change_entries(vec![(slot, Some(node))]),
            }
        })
    }

    fn make_directories(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.reverse();
        self.call(CallKind::Other, |state| {
            for directory in ancestors {
                if directory.file_name().is_none() {
                    continue;
                }
                match state.slot(directory)? {
                    (_, Some(found)) if state.directory(found).is_ok() => {}
                    (_, Some(_)) if directory == path => return Err(system_error(libc::EEXIST)),
                    (_, Some(_)) => return Err(system_error(libc::ENOTDIR)),
                    (slot, None) => state.make_directory(slot, mode)?,
                }
            }
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(CallKind::Other, |state| state.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call(CallKind::Other, |state| {
            let (slot, found) = state.slot(path)?;
            let found = found.ok_or_else(|| system_error(libc::ENOENT))?;
            state.file(found)?;
            state.change_entries(vec![(slot, None)])
        })
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.sync(|state| {
            let number = state.find(directory)?;
            state.directory(number)?;
            state.settle_entries(|change| {
                let mut slots = change.slots.iter();
                slots.any(|(slot, _)| slot.directory == number)
            });
            Ok(())
        })
    }

    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn HeldLock>> {
        let (node, handle) = self.call(CallKind::Other, |state| {
            let node = state.find(directory)?;
            state.directory(node)?;
            let handle = state.add_handle(node);
            match state.lock(node, handle) {
                FileLock::Taken => Ok((node, handle)),
                // A call on the simulated disk cannot wait.
                FileLock::HeldBy(_) => {
                    state.close(node, handle);
                    Err(system_error(libc::EDEADLK))
                }
            }
        })?;
        Ok(Box::new(SimLock {
            disk: self.clone(),
            node,
            handle,
        }))
    }
}

/// A held lock of a directory.
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    node: u64,
    handle: u64,
}

impl HeldLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        lock(&self.disk.state).close(self.node, self.handle);
    }
}

/// An open file of a simulated disk.
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    node: u64,
    handle: u64,
    position: usize,
    is_writable: bool,
}

impl DiskFile for SimFile {
    fn stat(&self) -> io::Result<FileStat> {
        self.disk.call(CallKind::Read, |state| {
            state.opened(self)?;
            state.stat(self.node)
        })
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.disk.call(CallKind::Other, |state| {
            state.ticks += 1;
            let now = state.ticks;
            let file = state.opened(self)?;
            file.mode = mode;
            file.changed = now;
            Ok(())
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let length = usize::try_from(bytes).map_err(|_| system_error(libc::EFBIG))?;
        self.disk.call(CallKind::Write, |state| {
            state.change_file(self, ContentChange::SetLength(length))
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.disk.sync(|state| {
            state.opened(self)?.sync();
            Ok(())
        });
        if synced
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(libc::EIO))
        {
            // The kernel counts the pages as written from now on.
            if let Ok(file) = lock(&self.disk.state).opened(self) {
                file.unsynced.clear();
            }
        }
        synced
    }

    fn lock(&self) -> io::Result<FileLock> {
        self.disk.call(CallKind::Other, |state| {
            state.opened(self)?;
            Ok(state.lock(self.node, self.handle))
        })
    }
}

impl Read for SimFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let position = self.position;
        let count = self.disk.call(CallKind::Read, |state| {
            let left = state.opened(self)?.content.len().saturating_sub(position);
            let count = state.draw_length(left.min(into.len()))?;
            let content = &state.opened(self)?.content;
            into[..count].copy_from_slice(&content[position..position + count]);
            Ok(count)
        })?;
        self.position += count;
        Ok(count)
    }
}

impl Write for SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_writable {
            return Err(system_error(libc::EBADF));
        }
        let at = self.position;
        let count = self.disk.call(CallKind::Write, |state| {
            let free = state.free_bytes();
            if free == 0 && !bytes.is_empty() {
                return Err(system_error(libc::ENOSPC));
            }
            let count = state.draw_length(bytes.len().min(free))?;
            let bytes = bytes[..count].to_vec();
            state.change_file(self, ContentChange::Write { at, bytes })?;
            Ok(count)
        })?;
        self.position += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SimFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = self.disk.call(CallKind::Other, |state| {
            Ok(state.opened(self)?.content.len())
        })?;
        let (from, by) = match to {
            SeekFrom::Start(at) => (0, i64::try_from(at).unwrap_or(i64::MAX)),
            SeekFrom::End(by) => (length, by),
            SeekFrom::Current(by) => (self.position, by),
        };
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let position = from.saturating_add(by);
        self.position = usize::try_from(position).map_err(|_| system_error(libc::EINVAL))?;
        Ok(self.position as u64)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        lock(&self.disk.state).close(self.node, self.handle);
    }
}
