//! One journal file: opening, locking, reading up to its last whole frame, appending and syncing.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use napreduce_local::clock::now;
use napreduce_local::world::disk::{Disk, DiskFile, FileLock, Opening};
use tokio::time::Instant;

use super::frame::{self, CHAINED_HEAD_BYTES, Frame};
use super::{FsyncPolicy, Header, JOURNAL_VERSION, JournalError};

/// The permissions of journal files, before the process's mask.
pub(super) const MODE: u32 = 0o666;

/// A journal file open for appending.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    bytes: u64,
    /// The length that the last sync has made durable.
    synced_bytes: u64,
    /// The checksum of the last frame; `None` before the header.
    sum: Option<u32>,
    fsync: FsyncPolicy,
    synced: Instant,
    dirty: bool,
}

impl JournalFile {
    /// Creates a handle that appends to an empty file.
    fn empty(path: &Path, file: Box<dyn DiskFile>, fsync: FsyncPolicy) -> JournalFile {
        JournalFile {
            path: path.to_owned(),
            file,
            bytes: 0,
            synced_bytes: 0,
            sum: None,
            fsync,
            synced: now(),
            dirty: false,
        }
    }
}

/// The content of a file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) header: Header,
    pub(super) entries: Vec<Vec<u8>>,
    /// The end of its last whole frame.
    pub(super) end: u64,
    /// The checksum of that frame.
    sum: u32,
    /// A message about a truncated tail.
    pub(super) cut: Option<String>,
}

impl Content {
    /// Parses a file; `None` if it has no header.
    fn parse(path: &Path, bytes: &[u8]) -> Result<Option<Content>, JournalError> {
        let Frame::Whole {
            payload,
            mut sum,
            mut next,
        } = check(path, 0, frame::read_first(bytes))?
        else {
            return Ok(None);
        };
        let header = read_header(path, payload)?;
        let mut entries = Vec::new();
        loop {
            let offset = next;
            match check(path, offset, frame::read(bytes, offset, sum))? {
                Frame::Whole {
                    payload,
                    sum: own,
                    next: end,
                } => {
                    entries.push(payload.to_vec());
                    sum = own;
                    next = end;
                }
                Frame::Torn { what } => {
                    let cut = format!(
                        "{} ends inside an entry ({what}): dropped its last {} bytes, from byte {offset} on",
                        path.display(),
                        bytes.len() - offset
                    );
                    return Ok(Some(Content {
                        header,
                        entries,
                        end: offset as u64,
                        sum,
                        cut: Some(cut),
                    }));
                }
                Frame::End | Frame::Damaged { .. } => {
                    return Ok(Some(Content {
                        header,
                        entries,
                        end: offset as u64,
                        sum,
                        cut: None,
                    }));
                }
            }
        }
    }
}

impl JournalFile {
    /// Creates a file; on return it is locked, and it survives a power loss with its header.
    pub(super) fn create(
        disk: &dyn Disk,
        path: &Path,
        header: Header,
        fsync: FsyncPolicy,
    ) -> Result<JournalFile, JournalError> {
        let file = disk
            .open(path, Opening::CreateOrChange { mode: MODE })
            .map_err(JournalError::io("create", path))?;
        lock(&*file, path)?;
        file.set_len(0).map_err(JournalError::io("empty", path))?;
        let mut journal = JournalFile::empty(path, file, fsync);
        let text = serde_json::to_vec(&header)
            .map_err(io::Error::from)
            .map_err(JournalError::io("encode the header of", path))?;
        journal.append(&[text])?;
        if fsync != FsyncPolicy::Always {
            journal.sync()?;
        }
        disk.sync_parent(path)
            .map_err(JournalError::io("sync the directory of", path))?;
        Ok(journal)
    }

    /// Opens and locks an existing file and truncates a torn last frame. `None` without a header: the coordinator died
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
        if content.cut.is_some() {
            file.set_len(content.end)
                .map_err(JournalError::io("cut the torn tail of", path))?;
        }
        // A coordinator that was killed may have left entries that are not on the disk yet. This one acts on them.
        if content.cut.is_some() || fsync != FsyncPolicy::Never {
            file.sync_data().map_err(JournalError::io("sync", path))?;
        }
        file.seek(SeekFrom::Start(content.end))
            .map_err(JournalError::io("seek in", path))?;
        let journal = JournalFile {
            bytes: content.end,
            synced_bytes: content.end,
            sum: Some(content.sum),
            ..JournalFile::empty(path, file, fsync)
        };
        Ok(Some((journal, content)))
    }

    /// Fails if a coordinator writes to a file.
    pub(super) fn check_unlocked(disk: &dyn Disk, path: &Path) -> Result<(), JournalError> {
        let file = disk
            .open(path, Opening::Change)
            .map_err(JournalError::io("open", path))?;
        lock(&*file, path)
    }

    /// Reads a file up to its last whole frame without changing it.
    pub(super) fn read(disk: &dyn Disk, path: &Path) -> Result<Option<Content>, JournalError> {
        let mut bytes = Vec::new();
        disk.open(path, Opening::Read)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(JournalError::io("read", path))?;
        Content::parse(path, &bytes)
    }

    /// Appends entries with one write. If that fails, the next coordinator does not see them.
    pub(super) fn append(&mut self, entries: &[Vec<u8>]) -> Result<(), JournalError> {
        let before = self.bytes;
        let appended = self.write_and_sync(entries);
        if appended.is_err() {
            // Report the first error.
            let _ = self.file.set_len(before);
        }
        appended
    }

    /// Writes again what an earlier append has left unsynced, if there is any. After a failed sync the kernel shows it until the machine loses power, but no
    /// later sync writes it to the disk: a coordinator that appended to it would leave a gap.
    fn write_unsynced_again(&mut self) -> io::Result<()> {
        if self.fsync == FsyncPolicy::Always {
            return Ok(());
        }
        let mut unsynced = Vec::new();
        self.file.seek(SeekFrom::Start(self.synced_bytes))?;
        self.file.read_to_end(&mut unsynced)?;
        self.file.seek(SeekFrom::Start(self.synced_bytes))?;
        self.file.write_all(&unsynced)
    }

    fn write_and_sync(&mut self, entries: &[Vec<u8>]) -> Result<(), JournalError> {
        let mut bytes = Vec::with_capacity(
            entries
                .iter()
                .map(|entry| entry.len() + CHAINED_HEAD_BYTES)
                .sum(),
        );
        let mut sum = self.sum;
        for entry in entries {
            let pushed = match sum {
                None => frame::push(&mut bytes, entry),
                Some(previous) => frame::push_chained(&mut bytes, previous, entry),
            };
            let pushed = pushed
                .map_err(io::Error::other)
                .map_err(JournalError::io("append to", &self.path))?;
            sum = Some(pushed);
        }
        self.file
            .write_all(&bytes)
            .map_err(JournalError::io("append to", &self.path))?;
        self.sum = sum;
        self.bytes += bytes.len() as u64;
        self.dirty = true;
        if self.fsync == FsyncPolicy::Always {
            self.sync()
        } else {
            self.sync_if_due()
        }
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

    /// Syncs everything.
    fn sync(&mut self) -> Result<(), JournalError> {
        if let Err(error) = self.file.sync_data() {
            if self.write_unsynced_again().is_err() {
                // A power loss may take these entries anyway. Report the first error.
                let _ = self.file.set_len(self.synced_bytes);
            }
            return Err(JournalError::io("sync", &self.path)(error));
        }
        self.synced = now();
        self.synced_bytes = self.bytes;
        self.dirty = false;
        Ok(())
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

/// Refuses a damaged frame.
fn check<'a>(path: &Path, offset: usize, frame: Frame<'a>) -> Result<Frame<'a>, JournalError> {
    match frame {
        Frame::Damaged { what } => Err(JournalError::Damaged {
            path: path.to_owned(),
            offset: offset as u64,
            what,
        }),
        other => Ok(other),
    }
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
    if version != JOURNAL_VERSION {
        return Err(JournalError::Version {
            path: path.to_owned(),
            found: version,
        });
    }
    serde_json::from_slice(payload).map_err(damaged)
}
