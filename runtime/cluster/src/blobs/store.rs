//! A directory of blobs with a size limit. Unpinned blobs are evicted, least recently used first. The
//! directory must not be shared between processes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_local::world::disk::{Disk, DiskFile, Links, Opening};
use napreduce_protocol::{Blob, Digest, IoResult, lock};

use super::executable::{ExecutableError, program_architecture};
use super::stamp::Stamp;
use super::writer::{BlobWriter, MODE, UNFINISHED};
use super::{BlobError, digest_of};

/// Maximum number of unfinished files that wait to be continued.
const UNFINISHED_MAX: usize = 2;

/// The blobs of a coordinator or a worker.
#[derive(Debug)]
pub(crate) struct BlobStore {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    bytes_max: u64,
    index: Mutex<Index>,
}

#[derive(Debug, Default)]
struct Index {
    blobs: BTreeMap<Digest, StoredBlob>,
    /// Bytes of blobs that are being written.
    reserved: u64,
    /// Use counter; larger is more recent.
    uses: u64,
    /// Makes the names of unfinished files unique.
    writers: u64,
    /// Unfinished files that can be continued, oldest first.
    unfinished: Vec<UnfinishedFile>,
}

/// A file that the next writer of the blob continues.
#[derive(Debug)]
struct UnfinishedFile {
    digest: Digest,
    path: PathBuf,
}

#[derive(Debug)]
struct StoredBlob {
    bytes: u64,
    used: u64,
    pins: usize,
    /// The file's stamp when its content was last verified since the store was opened.
    verified: Option<Stamp>,
}

impl BlobStore {
    /// Opens a directory, creating it if it is missing; removes unfinished files of an earlier process.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        directory: impl Into<PathBuf>,
        bytes_max: u64,
    ) -> Result<Arc<BlobStore>, BlobError> {
        let directory = directory.into();
        create(&*disk, &directory)?;
        // A coordinator that was killed may have left blobs whose names are not on the disk yet.
        disk.sync_parent(&directory)
            .and_then(|()| disk.sync_directory(&directory))
            .map_err(|error| BlobError::io(format!("sync {}", directory.display()), error))?;
        let index = scan(&*disk, &directory)
            .map_err(|error| BlobError::io(format!("list {}", directory.display()), error))?;
        Ok(Arc::new(BlobStore {
            disk,
            directory,
            bytes_max,
            index: Mutex::new(index),
        }))
    }

    /// Keeps a blob from being evicted while the result lives; `None` if it is not stored.
    ///
    /// The content is verified on first use after opening, since a machine crash may have torn it. It is
    /// verified again whenever the file changed, since tasks run as the same user. A blob that differs is
    /// removed and counts as missing. Blocking.
    pub(crate) fn pin(self: &Arc<Self>, digest: Digest) -> Result<Option<PinnedBlob>, BlobError> {
        let verified = {
            let mut index = self.index();
            index.uses += 1;
            let uses = index.uses;
            let Some(stored) = index.blobs.get_mut(&digest) else {
                return Ok(None);
            };
            stored.used = uses;
            stored.pins += 1;
            stored.verified
        };
        let pinned = PinnedBlob {
            store: Arc::clone(self),
            digest,
        };
        let now = Stamp::at(self.disk(), &self.path(digest)).ok();
        let is_as_verified = verified.is_some() && now == verified;
        if is_as_verified {
            return Ok(Some(pinned));
        }
        let is_intact = self.verify(digest)?;
        if !is_intact {
            return Ok(None);
        }
        Ok(Some(pinned))
    }

    /// Starts to write a blob and reserves its bytes.
    pub(crate) fn writer(self: &Arc<Self>, blob: Blob) -> Result<BlobWriter, BlobError> {
        // Others may have removed it.
        create(self.disk(), &self.directory)?;
        let number = {
            let mut index = self.index();
            self.make_room(&mut index, blob)?;
            index.reserved += blob.bytes;
            index.writers += 1;
            index.writers
        };
        let unfinished = self
            .directory
            .join(format!("{}.{number}{UNFINISHED}", blob.digest));
        BlobWriter::create(Arc::clone(self), blob, unfinished)
    }

    /// Continues an unfinished blob, or starts to write it; reserves its bytes.
    pub(crate) fn continued(self: &Arc<Self>, blob: Blob) -> Result<BlobWriter, BlobError> {
        let Some(unfinished) = self.take_unfinished(blob)? else {
            return self.writer(blob);
        };
        match BlobWriter::resume(Arc::clone(self), blob, unfinished) {
            Ok(writer) if writer.fits() => Ok(writer),
            // A file that cannot be continued is removed.
            _ => self.writer(blob),
        }
    }

    /// Takes the unfinished file of a blob, if there is one, and reserves the blob's bytes.
    fn take_unfinished(&self, blob: Blob) -> Result<Option<PathBuf>, BlobError> {
        let mut index = self.index();
        let place = index
            .unfinished
            .iter()
            .position(|file| file.digest == blob.digest);
        let Some(place) = place else {
            return Ok(None);
        };
        self.make_room(&mut index, blob)?;
        index.reserved += blob.bytes;
        let file = index.unfinished.remove(place);
        Ok(Some(file.path))
    }

    /// Keeps the unfinished file of a blob for the next writer, and removes the oldest ones.
    pub(super) fn keep_unfinished(&self, digest: Digest, path: PathBuf) {
        let mut index = self.index();
        index.unfinished.push(UnfinishedFile { digest, path });
        while index.unfinished.len() > UNFINISHED_MAX {
            let oldest = index.unfinished.remove(0);
            // A leftover is removed when the store is next opened.
            let _ = self.disk.remove_file(&oldest.path);
        }
    }

    /// Returns the disk of the directory.
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// Returns the path of a blob, stored or not.
    pub(super) fn path(&self, digest: Digest) -> PathBuf {
        self.directory.join(digest.to_string())
    }

    /// Releases the reservation of a writer.
    pub(super) fn release(&self, bytes: u64) {
        self.index().reserved -= bytes;
    }

    /// Moves a verified file into place.
    pub(super) fn add(self: &Arc<Self>, blob: Blob, unfinished: &Path) -> io::Result<PinnedBlob> {
        // Under the lock, so that evicting an older copy cannot remove this one.
        let mut index = self.index();
        let path = self.path(blob.digest);
        self.disk.rename(unfinished, &path)?;
        // The journal may say from now on that the blob is here.
        self.disk.sync_directory(&self.directory)?;
        let verified = Some(Stamp::at(self.disk(), &path)?);
        index.uses += 1;
        let used = index.uses;
        let fresh = StoredBlob {
            bytes: blob.bytes,
            used,
            pins: 0,
            verified,
        };
        // If another writer of the same blob was faster, its pins stay counted.
        let stored = index.blobs.entry(blob.digest).or_insert(fresh);
        stored.bytes = blob.bytes;
        stored.used = used;
        stored.pins += 1;
        stored.verified = verified;
        Ok(PinnedBlob {
            store: Arc::clone(self),
            digest: blob.digest,
        })
    }

    /// Returns whether the store is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.index().blobs.is_empty()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // A panic leaves the index consistent: every change is one statement.
        lock(&self.index)
    }

    /// Evicts unpinned blobs, least recently used first, until the blob fits.
    fn make_room(&self, index: &mut Index, blob: Blob) -> Result<(), BlobError> {
        let pinned: u64 = index
            .blobs
            .values()
            .filter(|stored| stored.pins > 0)
            .map(|stored| stored.bytes)
            .sum();
        let held = pinned.saturating_add(index.reserved);
        if held.saturating_add(blob.bytes) > self.bytes_max {
            return Err(BlobError::Full {
                digest: blob.digest,
                bytes: blob.bytes,
                limit: self.bytes_max,
                held,
                directory: self.directory.display().to_string(),
            });
        }
        let stored: u64 = index.blobs.values().map(|stored| stored.bytes).sum();
        let mut present = stored + index.reserved;
        while present.saturating_add(blob.bytes) > self.bytes_max {
            let least_recent = index
                .blobs
                .iter()
                .filter(|(_, stored)| stored.pins == 0)
                .min_by_key(|(_, stored)| stored.used);
            let Some((digest, evicted)) = least_recent else {
                break;
            };
            let digest = *digest;
            let evicted_bytes = evicted.bytes;
            self.remove_file(digest)?;
            index.blobs.remove(&digest);
            present -= evicted_bytes;
        }
        Ok(())
    }

    fn remove_file(&self, digest: Digest) -> Result<(), BlobError> {
        let path = self.path(digest);
        self.disk
            .remove_file(&path)
            .if_there()
            .map_err(|error| BlobError::io(format!("remove {}", path.display()), error))?;
        Ok(())
    }

    /// Returns whether a blob matches its digest; removes it otherwise. The caller holds a pin.
    fn verify(&self, digest: Digest) -> Result<bool, BlobError> {
        let path = self.path(digest);
        let failed = |error| BlobError::io(format!("read {}", path.display()), error);
        let intact = verified_stamp(self.disk(), &path, digest).map_err(failed)?;
        let mut index = self.index();
        let now = Stamp::at(self.disk(), &path).if_there().map_err(failed)?;
        if let Some(stored) = index.blobs.get_mut(&digest)
            && now.is_some()
        {
            if now == intact {
                stored.verified = now;
                return Ok(true);
            }
            if now == stored.verified {
                // Another writer of the same blob has replaced the file by a good one meanwhile.
                return Ok(true);
            }
        }
        if now.is_some() {
            tracing::warn!(target: "blobs", "{} is damaged and was removed; it will be sent again", path.display());
        }
        self.mark_missing(&mut index, digest)?;
        Ok(false)
    }

    /// Removes a damaged file. Jobs that pinned it continue with open descriptors; their pins apply again
    /// when the blob is sent again.
    fn mark_missing(&self, index: &mut Index, digest: Digest) -> Result<(), BlobError> {
        self.remove_file(digest)?;
        if let Some(stored) = index.blobs.get_mut(&digest) {
            stored.bytes = 0;
            stored.verified = None;
        }
        Ok(())
    }
}

/// Creates the directory if it is missing.
fn create(disk: &dyn Disk, directory: &Path) -> Result<(), BlobError> {
    disk.make_directories(directory, 0o700)
        .map_err(|error| BlobError::io(format!("create {}", directory.display()), error))
}

/// Returns the file's stamp if its content matches the digest. Restricts its permissions to read and execute
/// by the owner.
fn verified_stamp(disk: &dyn Disk, path: &Path, digest: Digest) -> io::Result<Option<Stamp>> {
    let mut file = match disk.open(path, Opening::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // It is not a regular file.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.stat()?.mode & 0o777 != MODE {
        file.set_mode(MODE)?;
    }
    let before = Stamp::from(file.stat()?);
    let (found, _) = digest_of(&mut file)?;
    let after = Stamp::from(file.stat()?);
    if found != digest || before != after {
        return Ok(None);
    }
    Ok(Some(after))
}

/// Indexes the directory's files in the order in which they were written.
fn scan(disk: &dyn Disk, directory: &Path) -> io::Result<Index> {
    let mut found = Vec::new();
    for name in disk.list(directory)? {
        let path = directory.join(&name);
        let name = name.to_string_lossy();
        if name.ends_with(UNFINISHED) {
            disk.remove_file(&path)?;
        } else if let Ok(digest) = name.parse::<Digest>() {
            let stat = disk.stat(&path, Links::NotFollowed)?;
            found.push((stat.modified, digest, stat.bytes));
        }
    }
    found.sort();
    let mut index = Index::default();
    for (_, digest, bytes) in found {
        index.uses += 1;
        index.blobs.insert(
            digest,
            StoredBlob {
                bytes,
                used: index.uses,
                pins: 0,
                verified: None,
            },
        );
    }
    Ok(index)
}

/// A blob that is not evicted while this value lives.
#[derive(Debug)]
pub(crate) struct PinnedBlob {
    store: Arc<BlobStore>,
    pub(super) digest: Digest,
}

impl PinnedBlob {
    /// Returns the path of the file, which its owner can read and execute.
    ///
    /// Executing a program that has just been written may fail as busy: a process being started at the same
    /// time may still hold the writing descriptor. The caller has to retry.
    pub(crate) fn path(&self) -> PathBuf {
        self.store.path(self.digest)
    }

    /// Returns the architecture of the program that the blob is. Blocking.
    pub(crate) fn architecture(&self) -> Result<&'static str, ExecutableError> {
        program_architecture(self.store.disk(), &self.path())
    }

    /// Returns whether the file is still the verified one. Blocking.
    pub(crate) fn is_as_verified(&self) -> bool {
        let verified = self
            .store
            .index()
            .blobs
            .get(&self.digest)
            .and_then(|stored| stored.verified);
        verified.is_some() && Stamp::at(self.store.disk(), &self.path()).ok() == verified
    }

    /// Opens the file; returns it and its length. Blocking.
    pub(crate) fn open(&self) -> Result<(Box<dyn DiskFile>, u64), BlobError> {
        let path = self.path();
        let failed = |error| BlobError::io(format!("read {}", path.display()), error);
        let file = self
            .store
            .disk()
            .open(&path, Opening::Read)
            .map_err(failed)?;
        let length = file.stat().map_err(failed)?.bytes;
        Ok((file, length))
    }
}

impl Clone for PinnedBlob {
    fn clone(&self) -> PinnedBlob {
        if let Some(stored) = self.store.index().blobs.get_mut(&self.digest) {
            stored.pins += 1;
        }
        PinnedBlob {
            store: Arc::clone(&self.store),
            digest: self.digest,
        }
    }
}

impl Drop for PinnedBlob {
    fn drop(&mut self) {
        if let Some(stored) = self.store.index().blobs.get_mut(&self.digest) {
            stored.pins = stored.pins.saturating_sub(1);
        }
    }
}
