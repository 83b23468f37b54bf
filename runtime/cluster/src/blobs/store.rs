//! A directory of blobs within a bound of bytes.
//!
//! Owns which blobs are there, which of them jobs need, and which make room for others: those that
//! nobody needs, the longest unused first. Does not own their writing (`writer`). Several processes
//! must not share a directory.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napreduce_protocol::{Blob, Digest, IoResult, open_regular};

use super::BlobError;
use super::stamp::Stamp;
use super::writer::{BlobWriter, MODE, UNFINISHED};

/// The blobs of a coordinator or a worker.
#[derive(Debug)]
pub(crate) struct BlobStore {
    directory: PathBuf,
    bytes_max: u64,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    kept: BTreeMap<Digest, Kept>,
    /// Of blobs that are being written.
    reserved: u64,
    /// Counts uses; the larger the more recent.
    uses: u64,
    /// Makes the names of unfinished files differ.
    writers: u64,
}

#[derive(Debug)]
struct Kept {
    bytes: u64,
    used: u64,
    pins: usize,
    /// The file when its content was compared with its name, if it was since the store was opened.
    verified: Option<Stamp>,
}

impl BlobStore {
    /// Opens a directory, made if it is missing; what an earlier process left unfinished is removed.
    pub(crate) fn open(directory: impl Into<PathBuf>, bytes_max: u64) -> Result<Arc<BlobStore>, BlobError> {
        let directory = directory.into();
        let shown = directory.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| BlobError::io(format!("create {shown}"), error))?;
        let index = scan(&directory).map_err(|error| BlobError::io(format!("list {shown}"), error))?;
        Ok(Arc::new(BlobStore { directory, bytes_max, index: Mutex::new(index) }))
    }

    /// Keeps a blob from being evicted for as long as the result lives; `None` when it is not here.
    ///
    /// Its content is compared with its name the first time after opening, since a crash of the machine may
    /// have torn it, and whenever the file is not the one that was compared, since tasks run as the same
    /// user; one that differs is removed and not here. Blocking.
    pub(crate) fn pin(self: &Arc<Self>, digest: Digest) -> Result<Option<PinnedBlob>, BlobError> {
        let verified = {
            let mut index = self.index();
            index.uses += 1;
            let uses = index.uses;
            let Some(kept) = index.kept.get_mut(&digest) else { return Ok(None) };
            kept.used = uses;
            kept.pins += 1;
            kept.verified
        };
        let pinned = PinnedBlob { store: Arc::clone(self), digest };
        let as_verified = verified.is_some() && Stamp::at(&self.path(digest)).ok() == verified;
        if as_verified || self.verify(digest)? { Ok(Some(pinned)) } else { Ok(None) }
    }

    /// Begins to take in a blob; room for it is made at once.
    pub(crate) fn writer(self: &Arc<Self>, blob: Blob) -> Result<BlobWriter, BlobError> {
        let number = {
            let mut index = self.index();
            self.make_room(&mut index, blob)?;
            index.reserved += blob.bytes;
            index.writers += 1;
            index.writers
        };
        let unfinished = self.directory.join(format!("{}.{number}{UNFINISHED}", blob.digest));
        BlobWriter::create(Arc::clone(self), blob, unfinished)
    }

    /// Where a blob is, or would be.
    pub(super) fn path(&self, digest: Digest) -> PathBuf {
        self.directory.join(digest.to_string())
    }

    /// A writer of so many bytes has ended.
    pub(super) fn release(&self, bytes: u64) {
        self.index().reserved -= bytes;
    }

    /// Puts what a writer has verified in its place.
    pub(super) fn add(self: &Arc<Self>, blob: Blob, unfinished: &Path) -> io::Result<PinnedBlob> {
        // Under the lock, so that nobody evicts a former copy of it in between, and thereby this one.
        let mut index = self.index();
        let path = self.path(blob.digest);
        fs::rename(unfinished, &path)?;
        let verified = Some(Stamp::at(&path)?);
        index.uses += 1;
        let used = index.uses;
        let fresh = Kept { bytes: blob.bytes, used, pins: 0, verified };
        // Another writer of the same blob may have been faster; then its pins count on.
        let kept = index.kept.entry(blob.digest).or_insert(fresh);
        kept.bytes = blob.bytes;
        kept.used = used;
        kept.pins += 1;
        kept.verified = verified;
        Ok(PinnedBlob { store: Arc::clone(self), digest: blob.digest })
    }

    /// Whether nothing was ever put into it, or everything was evicted.
    pub(crate) fn is_empty(&self) -> bool {
        self.index().kept.is_empty()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // Nothing is left half done by a panic: every change is one statement.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what nobody needs, the longest unused first, until the blob fits.
    fn make_room(&self, index: &mut Index, blob: Blob) -> Result<(), BlobError> {
        let held: u64 = index.kept.values().filter(|kept| kept.pins > 0).map(|kept| kept.bytes).sum();
        let held = held.saturating_add(index.reserved);
        if held.saturating_add(blob.bytes) > self.bytes_max {
            let (limit, directory) = (self.bytes_max, self.directory.display().to_string());
            return Err(BlobError::Full { digest: blob.digest, bytes: blob.bytes, limit, held, directory });
        }
        let mut present = index.kept.values().map(|kept| kept.bytes).sum::<u64>() + index.reserved;
        while present.saturating_add(blob.bytes) > self.bytes_max {
            let unused =
                index.kept.iter().filter(|(_, kept)| kept.pins == 0).min_by_key(|(_, kept)| kept.used);
            let Some(digest) = unused.map(|(digest, _)| *digest) else { break };
            self.remove_file(digest)?;
            present -= index.kept.remove(&digest).map_or(0, |kept| kept.bytes);
        }
        Ok(())
    }

    fn remove_file(&self, digest: Digest) -> Result<(), BlobError> {
        let path = self.path(digest);
        let removed = fs::remove_file(&path).if_there().map(drop);
        removed.map_err(|error| BlobError::io(format!("remove {}", path.display()), error))
    }

    /// Whether a blob is what its name says; otherwise it is removed. The caller holds a pin.
    fn verify(&self, digest: Digest) -> Result<bool, BlobError> {
        let path = self.path(digest);
        let failed = |error| BlobError::io(format!("read {}", path.display()), error);
        let intact = examine(&path, digest).map_err(failed)?;
        let mut index = self.index();
        let now = Stamp::at(&path).ok();
        match index.kept.get_mut(&digest) {
            Some(kept) if intact.is_some() && intact == now => {
                kept.verified = now;
                Ok(true)
            }
            // A writer of the same blob has put a good one in its place meanwhile.
            Some(kept) if now.is_some() && kept.verified == now => Ok(true),
            _ => {
                if now.is_some() {
                    tracing::warn!(target: "blobs", "{} is damaged and was removed; it will be sent again", path.display());
                }
                self.lose(&mut index, digest)?;
                Ok(false)
            }
        }
    }

    /// Removes a file that is not what it should be. Jobs that have pinned it go on with what they have open,
    /// and their pins count on when it is sent again.
    fn lose(&self, index: &mut Index, digest: Digest) -> Result<(), BlobError> {
        self.remove_file(digest)?;
        if let Some(kept) = index.kept.get_mut(&digest) {
            (kept.bytes, kept.verified) = (0, None);
        }
        Ok(())
    }
}

/// The file when it was what its name says. Nobody but its owner may read or execute it afterwards, and
/// nobody write.
fn examine(path: &Path, digest: Digest) -> io::Result<Option<Stamp>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A link in its place.
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    if metadata.permissions().mode() & 0o777 != MODE {
        file.set_permissions(Permissions::from_mode(MODE))?;
    }
    let before = Stamp::of(&file.metadata()?);
    let (found, _) = Digest::of(&file)?;
    let after = Stamp::of(&file.metadata()?);
    Ok((found == digest && before == after).then_some(after))
}

/// What is in the directory, in the order in which it was written.
fn scan(directory: &Path) -> io::Result<Index> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(UNFINISHED) {
            fs::remove_file(entry.path())?;
        } else if let Ok(digest) = name.parse::<Digest>() {
            let metadata = entry.metadata()?;
            found.push((metadata.modified()?, digest, metadata.len()));
        }
    }
    found.sort();
    let mut index = Index::default();
    for (_, digest, bytes) in found {
        index.uses += 1;
        index.kept.insert(digest, Kept { bytes, used: index.uses, pins: 0, verified: None });
    }
    Ok(index)
}

/// A blob that stays where it is for as long as this value lives.
#[derive(Debug)]
pub(crate) struct PinnedBlob {
    store: Arc<BlobStore>,
    /// Its name.
    pub(super) digest: Digest,
}

impl PinnedBlob {
    /// The file, which its owner may read and execute.
    ///
    /// A program that has just been written may for a moment be refused as busy, when a process that
    /// is being started at the same time still holds the descriptor it was written through; whoever
    /// executes it tries again.
    pub(crate) fn path(&self) -> PathBuf {
        self.store.path(self.digest)
    }

    /// Whether the file is the one whose content was compared with its name. Blocking.
    pub(crate) fn is_as_verified(&self) -> bool {
        let verified = self.store.index().kept.get(&self.digest).and_then(|kept| kept.verified);
        verified.is_some() && Stamp::at(&self.path()).ok() == verified
    }

    /// Opens it; the file and its length. Blocking.
    pub(crate) fn open(&self) -> Result<(File, u64), BlobError> {
        let path = self.path();
        let opened = open_regular(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) =
            opened.map_err(|error| BlobError::io(format!("read {}", path.display()), error))?;
        Ok((file, length))
    }
}

impl Clone for PinnedBlob {
    fn clone(&self) -> PinnedBlob {
        if let Some(kept) = self.store.index().kept.get_mut(&self.digest) {
            kept.pins += 1;
        }
        PinnedBlob { store: Arc::clone(&self.store), digest: self.digest }
    }
}

impl Drop for PinnedBlob {
    fn drop(&mut self) {
        if let Some(kept) = self.store.index().kept.get_mut(&self.digest) {
            kept.pins = kept.pins.saturating_sub(1);
        }
    }
}
