//! One journal file: opening, locking, reading up to its last whole frame, appending and syncing.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use napreduce_local::clock::now;
use napreduce_local::world::disk::{Disk, DiskFile, FileLock, Opening};
use tokio::time::Instant;

use super::frame::{self, CHAINED_HEAD_BYTES, Frame, Layout, Link};
use super::{FsyncPolicy, Header, JOURNAL_VERSION, JournalError, UNSETTLED_VERSION};

/// The permissions of journal files, before the process's mask.
pub(super) const MODE: u32 = 0o666;

/// A journal file open for appending.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    bytes: u64,
    /// The length that a power loss cannot change.
    synced_bytes: u64,
    /// The checksum of the last frame.
    sum: u32,
    fsync: FsyncPolicy,
    synced: Instant,
    /// Whether entries were appended since the last sync.
    dirty: bool,
}

/// The content of a file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) header: Header,
    pub(super) entries: Vec<Vec<u8>>,
    /// The end of its last whole frame.
    pub(super) end: u64,
    /// The end of its last entry: marks may follow.
    entries_end: u64,
    /// The length that its frames prove to be synced.
    settled: u64,
    /// The checksum of its last whole frame.
    pub(super) sum: u32,
    /// A message about a truncated tail.
    pub(super) cut: Option<String>,
    /// The defect at `end`, if it is not the end of the file.
    damage: Option<String>,
    /// The entries after the damage that can be read.
    pub(super) lost: Vec<Vec<u8>>,
}

impl Content {
    /// Parses a file up to its damage; `None` if it has no header. Fails if the header is damaged.
    fn parse(path: &Path, bytes: &[u8]) -> Result<Option<Content>, JournalError> {
        let first = match frame::read_first(bytes) {
            Frame::Whole(first) => first,
            Frame::End | Frame::Torn { .. } => return Ok(None),
            Frame::Damaged { what } => {
                return Err(JournalError::Damaged {
                    path: path.to_owned(),
                    offset: 0,
                    what,
                });
            }
        };
        let header = read_header(path, first.payload)?;
        let layout = layout_of(header.version);
        let mut content = Content {
            header,
            entries: Vec::new(),
            end: first.next as u64,
            entries_end: first.next as u64,
            settled: 0,
            sum: first.sum,
            cut: None,
            damage: None,
            lost: Vec::new(),
        };
        let mut offset = first.next;
        loop {
            match frame::read(bytes, offset, content.sum, layout) {
                Frame::Whole(frame) => {
                    offset = frame.next;
                    content.end = offset as u64;
                    content.sum = frame.sum;
                    content.settled = content.settled.max(frame.settled);
                    if !frame.payload.is_empty() {
                        content.entries.push(frame.payload.to_vec());
                        content.entries_end = content.end;
                    }
                }
                Frame::Torn { what } => {
                    content.cut = Some(format!(
                        "{} ends inside an entry ({what}): dropped its last {} bytes, from byte {offset} on",
                        path.display(),
                        bytes.len() - offset
                    ));
                    return Ok(Some(content));
                }
                Frame::Damaged { what } => {
                    content.damage = Some(what);
                    content.lost = entries_after(bytes, offset, layout);
                    return Ok(Some(content));
                }
                Frame::End => return Ok(Some(content)),
            }
        }
    }

    /// Returns the error of a damaged file.
    pub(super) fn damage(&self, path: &Path) -> Option<JournalError> {
        let what = self.damage.clone()?;
        Some(self.damaged(path, what))
    }

    /// Returns the error of a file that a later one continues, if it is damaged or torn.
    pub(super) fn damage_before_successor(&self, path: &Path) -> Option<JournalError> {
        if let Some(damage) = self.damage(path) {
            return Some(damage);
        }
        let cut = self.cut.as_ref()?;
        Some(self.damaged(path, format!("{cut}, but a later file continues it")))
    }

    fn damaged(&self, path: &Path, what: String) -> JournalError {
        JournalError::Damaged {
            path: path.to_owned(),
            offset: self.end,
            what,
        }
    }

    /// Returns whether the layout of the file has marks and settled lengths.
    fn is_marking(&self) -> bool {
        layout_of(self.header.version) == Layout::Settled
    }
}

fn layout_of(version: u32) -> Layout {
    if version <= UNSETTLED_VERSION {
        Layout::Unsettled
    } else {
        Layout::Settled
    }
}

/// Returns the entries after a broken frame that can be read.
fn entries_after(bytes: &[u8], broken: usize, layout: Layout) -> Vec<Vec<u8>> {
    let frames = frame::frames_after(bytes, broken, layout);
    frames
        .filter(|frame| !frame.payload.is_empty())
        .map(|frame| frame.payload.to_vec())
        .collect()
}

impl JournalFile {
    /// Creates a file; on return it is locked, and it survives a power loss with its header.
    pub(super) fn create(
        disk: &dyn Disk,
        path: &Path,
        header: &Header,
        fsync: FsyncPolicy,
    ) -> Result<JournalFile, JournalError> {
        let mut file = disk
            .open(path, Opening::CreateOrChange { mode: MODE })
            .map_err(JournalError::io("create", path))?;
        lock(&*file, path)?;
        file.set_len(0).map_err(JournalError::io("empty", path))?;
        let text = serde_json::to_vec(header)
            .map_err(io::Error::from)
            .map_err(JournalError::io("encode the header of", path))?;
        let mut bytes = Vec::new();
        let sum = frame::push(&mut bytes, &text)
            .map_err(io::Error::other)
            .map_err(JournalError::io("append to", path))?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Report the first error.
            let _ = file.set_len(0);
            return Err(JournalError::io("write the header of", path)(error));
        }
        disk.sync_parent(path)
            .map_err(JournalError::io("sync the directory of", path))?;
        let length = bytes.len() as u64;
        Ok(JournalFile {
            path: path.to_owned(),
            file,
            bytes: length,
            synced_bytes: length,
            sum,
            fsync,
            synced: now(),
            dirty: false,
        })
    }

    /// Opens and locks an existing file and truncates a torn tail. `None` without a header: the coordinator died
    /// while creating the file.
    pub(super) fn open(
        disk: &dyn Disk,
        path: &Path,
        fsync: FsyncPolicy,
    ) -> Result<Option<(JournalFile, Content)>, JournalError> {
        let mut file = disk
            .open(path, Opening::Change)
            .map_err(JournalError::io("open", path))?;
        lock(&*file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(JournalError::io("read", path))?;
        let Some(content) = Content::parse(path, &bytes)? else {
            return Ok(None);
        };
        if let Some(damage) = content.damage(path) {
            return Err(damage);
        }
        if content.cut.is_some() {
            file.set_len(content.end)
                .map_err(JournalError::io("cut the torn tail of", path))?;
        }
        let is_syncing = fsync != FsyncPolicy::Never;
        if is_syncing && content.is_marking() && content.settled < content.end {
            rewrite(&mut *file, &bytes, content.settled, content.end)
                .map_err(JournalError::io("write again the unsynced tail of", path))?;
        }
        // A coordinator that was killed may have left entries that are not on the disk yet. This one acts on them.
        if content.cut.is_some() || is_syncing {
            file.sync_data().map_err(JournalError::io("sync", path))?;
        }
        file.seek(SeekFrom::Start(content.end))
            .map_err(JournalError::io("seek in", path))?;
        let mut journal = JournalFile {
            path: path.to_owned(),
            file,
            bytes: content.end,
            synced_bytes: content.end,
            sum: content.sum,
            fsync,
            synced: now(),
            dirty: false,
        };
        if is_syncing && content.is_marking() && content.settled < content.entries_end {
            journal.mark()?;
        }
        Ok(Some((journal, content)))
    }

    /// Fails if a coordinator writes to a file.
    pub(super) fn check_unlocked(disk: &dyn Disk, path: &Path) -> Result<(), JournalError> {
        let file = disk
            .open(path, Opening::Change)
            .map_err(JournalError::io("open", path))?;
        lock(&*file, path)
    }

    /// Reads a file up to its last whole frame or its damage, without changing it. `None` without a header.
    pub(super) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Content>, JournalError> {
        Content::parse(path, &read_bytes(disk, path)?)
    }

    /// Returns the entries that can be read in a file whose header cannot.
    pub(super) fn read_headless(
        disk: &dyn Disk,
        path: &Path,
    ) -> Result<Vec<Vec<u8>>, JournalError> {
        let bytes = read_bytes(disk, path)?;
        Ok(entries_after(&bytes, 0, Layout::Settled))
    }

    /// Appends entries with one write. If that fails, the next coordinator does not see them.
    pub(super) fn append(&mut self, entries: &[Vec<u8>]) -> Result<(), JournalError> {
        let before = self.bytes;
        let appended = self.write_and_sync(entries);
        self.cut_if_failed(before, appended)
    }

    /// Cuts the file to a length after an error. What a failed sync could not write stays visible until the machine
    /// loses power: a coordinator that appended to it would leave a gap.
    fn cut_if_failed(
        &self,
        length: u64,
        written: Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        if written.is_err() {
            // Report the first error.
            let _ = self.file.set_len(length);
        }
        written
    }

    fn write_and_sync(&mut self, entries: &[Vec<u8>]) -> Result<(), JournalError> {
        self.write(entries)?;
        self.dirty = true;
        if self.fsync == FsyncPolicy::Always {
            self.sync()
        } else {
            self.sync_if_due()
        }
    }

    /// Writes frames with these payloads.
    fn write(&mut self, payloads: &[Vec<u8>]) -> Result<(), JournalError> {
        let mut bytes = Vec::with_capacity(
            payloads
                .iter()
                .map(|payload| payload.len() + CHAINED_HEAD_BYTES)
                .sum(),
        );
        let mut sum = self.sum;
        for payload in payloads {
            let settled = match self.fsync {
                // Nothing is ever synced: each entry counts once it is written.
                FsyncPolicy::Never => self.bytes + bytes.len() as u64,
                FsyncPolicy::Always | FsyncPolicy::Interval(_) => self.synced_bytes,
            };
            let link = Link {
                previous: sum,
                settled,
            };
            sum = frame::push_chained(&mut bytes, link, payload)
                .map_err(io::Error::other)
                .map_err(JournalError::io("append to", &self.path))?;
        }
        self.file
            .write_all(&bytes)
            .map_err(JournalError::io("append to", &self.path))?;
        self.sum = sum;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Syncs what the policy requires by now.
    pub(super) fn sync_if_due(&mut self) -> Result<(), JournalError> {
        match self.fsync {
            FsyncPolicy::Interval(interval) if self.dirty && self.synced.elapsed() >= interval => {
                self.sync()
            }
            _ => Ok(()),
        }
    }

    /// Syncs everything, unless the policy is never to sync.
    pub(super) fn sync_wanted(&mut self) -> Result<(), JournalError> {
        match self.fsync {
            FsyncPolicy::Never => Ok(()),
            FsyncPolicy::Always | FsyncPolicy::Interval(_) if !self.dirty => Ok(()),
            FsyncPolicy::Always | FsyncPolicy::Interval(_) => self.sync(),
        }
    }

    /// Syncs everything, marks included, unless the policy is never to sync. Nothing may be appended afterwards: the
    /// file that follows proves what this one has to contain.
    pub(super) fn seal(&mut self) -> Result<(), JournalError> {
        if self.fsync == FsyncPolicy::Never || self.synced_bytes == self.bytes {
            return Ok(());
        }
        self.sync_data()
    }

    /// Syncs all entries, and marks them as synced.
    fn sync(&mut self) -> Result<(), JournalError> {
        self.sync_data()?;
        self.mark()
    }

    fn sync_data(&mut self) -> Result<(), JournalError> {
        self.file
            .sync_data()
            .map_err(JournalError::io("sync", &self.path))?;
        self.synced = now();
        self.synced_bytes = self.bytes;
        self.dirty = false;
        Ok(())
    }

    /// Appends a mark, which tells a later damage of the entries before it from a torn append. It reaches the disk with
    /// the next sync, or when the kernel writes it back.
    fn mark(&mut self) -> Result<(), JournalError> {
        self.write(&[Vec::new()])
    }

    /// Returns the checksum of the last frame.
    pub(super) fn sum(&self) -> u32 {
        self.sum
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Locks a file as long as it is open: a second coordinator must not write to it, even if the lock file of the
/// cluster directory was removed. The kernel releases the lock when the process ends.
fn lock(file: &dyn DiskFile, path: &Path) -> Result<(), JournalError> {
    match file.lock().map_err(JournalError::io("lock", path))? {
        FileLock::Taken => Ok(()),
        FileLock::HeldBy(holder) => {
            let holder = holder.map_or_else(String::new, |process| format!(" (process {process})"));
            Err(JournalError::InUse {
                path: path.to_owned(),
                holder,
            })
        }
    }
}

/// Writes a part of a file's content again: pages that a failed sync has dropped are visible, but never written back.
fn rewrite(file: &mut dyn DiskFile, bytes: &[u8], from: u64, to: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(from))?;
    let start = usize::try_from(from).unwrap_or(usize::MAX);
    let end = usize::try_from(to).unwrap_or(usize::MAX);
    file.write_all(&bytes[start..end])
}

fn read_bytes(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    disk.open(path, Opening::Read)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(JournalError::io("read", path))?;
    Ok(bytes)
}

pub(super) fn read_header(path: &Path, payload: &[u8]) -> Result<Header, JournalError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let damaged = |error: serde_json::Error| JournalError::Damaged {
        path: path.to_owned(),
        offset: 0,
        what: format!("no header: {error}"),
    };
    let Versioned { version } = serde_json::from_slice(payload).map_err(damaged)?;
    if !(UNSETTLED_VERSION..=JOURNAL_VERSION).contains(&version) {
        return Err(JournalError::Version {
            path: path.to_owned(),
            found: version,
        });
    }
    serde_json::from_slice(payload).map_err(damaged)
}
