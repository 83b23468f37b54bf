//! A file system for tests that injects one fault and records the calls.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_protocol::lock;

use super::{Call, Disk};
use crate::world::World;

/// The effect of a fault on one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call is not carried out and returns this error number.
    Refused(i32),
    /// The call is carried out but reports `ENOENT`.
    Denied,
    /// The call is carried out; it and all later calls fail as if the process had been killed.
    Last,
}

/// A recorded operation, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    MakeDirectory(PathBuf),
    Create(PathBuf),
    Write(PathBuf, Vec<u8>),
    SyncFile(PathBuf),
    SyncDirectory(PathBuf),
    Rename(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    RemoveDirectory(PathBuf),
    RemoveTree(PathBuf),
}

#[derive(Debug, Default)]
struct ScriptState {
    calls: usize,
    fault: Option<(usize, Fault)>,
    dead: bool,
    done: Vec<Done>,
}

/// The scripted fault and the recorded calls of a disk.
#[derive(Debug)]
pub struct DiskScript {
    /// The output directory; relative paths of calls are resolved against it.
    root: PathBuf,
    state: Mutex<ScriptState>,
}

/// Blocks all calls of a disk until it is dropped.
pub struct Stall<'a> {
    _answers: MutexGuard<'a, ScriptState>,
}

impl DiskScript {
    /// Returns a disk on which the call of that number, counted from 0, fails; `root` is the output
    /// directory.
    pub fn disk(root: &Path, fault: Option<(usize, Fault)>) -> (Disk, Arc<DiskScript>) {
        let state = Mutex::new(ScriptState {
            fault,
            ..ScriptState::default()
        });
        let script = Arc::new(DiskScript {
            root: root.to_owned(),
            state,
        });
        (
            Disk {
                world: World::real(),
                script: Some(Arc::clone(&script)),
            },
            script,
        )
    }

    /// Blocks calls until the result is dropped.
    pub fn stall(&self) -> Stall<'_> {
        Stall {
            _answers: lock(&self.state),
        }
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> usize {
        lock(&self.state).calls
    }

    /// Returns whether the process was killed.
    pub fn is_dead(&self) -> bool {
        lock(&self.state).dead
    }

    /// Returns all recorded operations.
    pub fn done(&self) -> Vec<Done> {
        lock(&self.state).done.clone()
    }

    pub(super) fn run<T>(
        &self,
        call: Call<'_>,
        real: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = lock(&self.state);
        if state.dead {
            return Err(io::Error::other("the process was killed"));
        }
        let fault = state
            .fault
            .filter(|(index, _)| *index == state.calls)
            .map(|(_, fault)| fault);
        state.calls += 1;
        if let Some(Fault::Refused(code)) = fault {
            return Err(io::Error::from_raw_os_error(code));
        }
        let result = real();
        if result.is_ok() {
            state.done.extend(self.remember(call));
        }
        match fault {
            Some(Fault::Denied) => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            Some(Fault::Last) => {
                state.dead = true;
                Err(io::Error::other("the process was killed"))
            }
            _ => result,
        }
    }

    fn remember(&self, call: Call<'_>) -> Option<Done> {
        let at = |path: &Path| {
            let path = self.root.join(path);
            path.components().collect::<PathBuf>()
        };
        Some(match call {
            Call::Look | Call::Touch | Call::Lock => return None,
            Call::MakeRoot(path) | Call::MakeDirectory(path) => Done::MakeDirectory(at(path)),
            Call::RemoveRoot(path) | Call::RemoveDirectory(path) => Done::RemoveDirectory(at(path)),
            Call::Create(path) => Done::Create(at(path)),
            Call::Write(path, bytes) => Done::Write(at(path), bytes.to_owned()),
            Call::SyncFile(path) => Done::SyncFile(at(path)),
            Call::SyncDirectory(path) | Call::SyncRoot(path) => Done::SyncDirectory(at(path)),
            Call::Rename(from, to) => Done::Rename(at(from), at(to)),
            Call::RemoveFile(path) => Done::RemoveFile(at(path)),
            Call::RemoveTree(path) => Done::RemoveTree(at(path)),
        })
    }
}
