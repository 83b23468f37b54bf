//! Memory for the segments of maps: files without a place on disk, which exist while this worker keeps them
//! open.
//!
//! A segment is written once, read by each reduce, and removed when its job ends. On a disk the kernel writes
//! it back if there are many, which is useless and blocks writers. Segments in memory are lost with the
//! worker, as are segments on its disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_protocol::{MemoryFile, lock};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use crate::process::{Processes, descriptors_max};

/// Minimum size worth a descriptor; a smaller segment is removed before the kernel writes it back.
const BYTES_MIN: u64 = 256 << 10;
/// Use at most 1/4 of the descriptors of this process; connections and processes need the others.
const DESCRIPTORS_SHARE: u64 = 4;

/// Descriptors that all segment memories of this process use: several jobs may run in it.
static FILES: AtomicU64 = AtomicU64::new(0);

/// The segment memory of one worker.
#[derive(Debug)]
pub struct SegmentMemory {
    processes: Arc<dyn Processes>,
    bytes_max: u64,
    /// Memory reserved for other uses of the machine.
    left_over: u64,
    files_max: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    files: u64,
    bytes: u64,
    /// Reserved but not yet written; included in the total.
    promised: u64,
}

impl Held {
    fn add_file(&mut self) {
        self.files += 1;
        FILES.fetch_add(1, Ordering::Relaxed);
    }

    fn remove_file(&mut self) {
        self.files -= 1;
        FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Memory for one segment, released on drop.
#[derive(Debug)]
pub(super) struct MemorySegment {
    of: Arc<SegmentMemory>,
    file: File,
    bytes: u64,
    is_promise: bool,
}

impl SegmentMemory {
    /// Creates a pool of `bytes_max` bytes; by default half of the memory available now.
    pub fn new(bytes_max: Option<u64>, processes: Arc<dyn Processes>) -> Arc<SegmentMemory> {
        // A machine that does not report its memory has none to spare.
        let available = processes.spare_memory().map_or(0, |spare| spare.available);
        Arc::new(SegmentMemory {
            processes,
            bytes_max: bytes_max.unwrap_or(available / 2),
            left_over: if bytes_max.is_some() {
                0
            } else {
                available / 2
            },
            files_max: descriptors_max() / DESCRIPTORS_SHARE,
            held: Mutex::default(),
        })
    }

    /// Reserves memory for a segment, if there is room.
    pub(super) fn take(self: &Arc<SegmentMemory>, bytes: u64) -> Option<MemorySegment> {
        if bytes < BYTES_MIN || !self.promise(bytes) {
            return None;
        }
        match memfd_create("napreduce-segment", MemfdFlags::CLOEXEC) {
            Ok(file) => Some(MemorySegment {
                of: Arc::clone(self),
                file: file.into(),
                bytes,
                is_promise: true,
            }),
            Err(error) => {
                tracing::debug!(target: "worker", "no memory for a segment: {error}");
                self.change(|held| {
                    held.remove_file();
                    held.bytes -= bytes;
                    held.promised -= bytes;
                });
                None
            }
        }
    }

    fn promise(&self, bytes: u64) -> bool {
        let mut held = self.held();
        if FILES.load(Ordering::Relaxed) >= self.files_max
            || held.bytes.saturating_add(bytes) > self.bytes_max
        {
            return false;
        }
        if self.left_over > 0 {
            let available = self
                .processes
                .spare_memory()
                .map_or(0, |spare| spare.available);
            if available
                < self
                    .left_over
                    .saturating_add(held.promised)
                    .saturating_add(bytes)
            {
                return false;
            }
        }
        held.add_file();
        held.bytes += bytes;
        held.promised += bytes;
        true
    }

    /// Locks the state; no panic can leave it half-changed.
    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        change(&mut self.held());
    }
}

impl MemorySegment {
    /// Returns the path through which other processes of this user open it.
    pub(super) fn place(&self) -> MemoryFile {
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        MemoryFile {
            path: PathBuf::from(path),
            bytes: self.bytes,
        }
    }

    /// Allocates all of it now, so that the kernel charges it to this worker and not to the writing attempt.
    /// Blocking.
    ///
    /// # Errors
    /// Fails if there is not enough memory.
    pub(super) fn allocate(&self) -> io::Result<()> {
        Ok(fallocate(
            &self.file,
            FallocateFlags::KEEP_SIZE,
            0,
            self.bytes,
        )?)
    }

    /// Keeps the memory of a finished attempt, cut to the length written; `None` if the segment is elsewhere.
    pub(super) fn keep(mut self, segment: &Path) -> Option<MemorySegment> {
        let linked = segment
            .read_link()
            .is_ok_and(|found| found == self.place().path);
        let length = self.file.metadata().ok().filter(|_| linked)?.len();
        // Frees the allocation beyond its end; a failure has no other effect.
        let _ = self.file.set_len(length);
        let promised = self.bytes;
        self.of.change(|held| {
            held.promised -= promised;
            held.bytes = held.bytes - promised + length;
        });
        (self.bytes, self.is_promise) = (length, false);
        Some(self)
    }
}

impl Drop for MemorySegment {
    fn drop(&mut self) {
        let bytes = self.bytes;
        let is_promise = self.is_promise;
        self.of.change(|held| {
            held.remove_file();
            held.bytes -= bytes;
            held.promised -= if is_promise { bytes } else { 0 };
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;
    use crate::process::Spawner;

    const MIB: u64 = 1 << 20;

    fn pool(bytes_max: Option<u64>) -> Arc<SegmentMemory> {
        SegmentMemory::new(bytes_max, Arc::new(Spawner::for_one_job(false, 0, 0)))
    }

    fn held(memory: &SegmentMemory) -> (u64, u64, u64) {
        let held = memory.held();
        (held.files, held.bytes, held.promised)
    }

    #[test]
    fn promised_and_kept_segment_memory_adds_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = pool(Some(3 * MIB));
        assert!(
            memory.take(BYTES_MIN - 1).is_none(),
            "too small to be worth it"
        );
        let one = memory.take(2 * MIB).expect("there is room");
        assert!(memory.take(2 * MIB).is_none(), "there is room for 3 MiB");
        let other = memory.take(MIB).expect("there is room");
        assert_eq!(held(&memory), (2, 3 * MIB, 3 * MIB));
        drop(other);
        assert_eq!(held(&memory), (1, 2 * MIB, 2 * MIB));
        one.allocate().expect("allocated");
        let mut file = OpenOptions::new()
            .write(true)
            .open(one.place().path)
            .expect("another process's view");
        file.write_all(&[7; 1000]).expect("written");
        let segment = folder.path().join("segment");
        symlink(one.place().path, &segment).expect("a link");
        let kept = one.keep(&segment).expect("it is linked");
        assert_eq!(held(&memory), (1, 1000, 0));
        assert_eq!(fs::read(&segment).expect("a segment"), [7; 1000]);
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let before = fs::metadata(&segment).map(identity).expect("a segment");
        drop(kept);
        assert_eq!(held(&memory), (0, 0, 0));
        // Its path names a descriptor, whose number another test may use by now.
        let after = fs::metadata(&segment).map(identity);
        assert_ne!(
            after.ok(),
            Some(before),
            "it is gone with the worker's hold on it"
        );
    }

    #[test]
    fn memory_of_segment_on_disk_is_released() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = pool(Some(MIB));
        let segment = folder.path().join("segment");
        fs::write(&segment, "on the disk").expect("written");
        assert!(
            memory
                .take(MIB)
                .expect("there is room")
                .keep(&segment)
                .is_none()
        );
        assert!(
            memory
                .take(MIB)
                .expect("there is room")
                .keep(&folder.path().join("missing"))
                .is_none()
        );
        assert_eq!(held(&memory), (0, 0, 0));
    }

    #[test]
    fn default_segment_memory_leaves_half_free() {
        let memory = pool(None);
        assert!(memory.take(memory.bytes_max + 1).is_none());
        let none = pool(Some(0));
        assert!(none.take(MIB).is_none());
    }
}
