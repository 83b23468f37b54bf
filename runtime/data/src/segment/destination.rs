//! Where a segment is written: a file under a temporary name, or a file in memory that the worker keeps. A
//! segment that exceeds the memory moves to disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::error::WriteError;
use super::seal::{PartialFile, Seal, copy_rest};

/// A segment being written.
pub(super) struct SegmentDestination {
    file: File,
    partial: PartialFile,
    /// The file in memory, and its size limit.
    memory: Option<(PathBuf, u64)>,
    written: u64,
}

impl SegmentDestination {
    /// Opens the file in memory if there is one; otherwise creates the file under its temporary name.
    pub(super) fn create(
        target: &Path,
        memory: Option<&(PathBuf, u64)>,
    ) -> Result<SegmentDestination, WriteError> {
        let partial = PartialFile::new(target);
        // Fall back to disk if the memory cannot be opened.
        let opened = memory.and_then(|kept| {
            let file = OpenOptions::new().write(true).open(&kept.0).ok()?;
            Some((file, Some(kept.clone())))
        });
        let (file, memory) = match opened {
            Some(opened) => opened,
            None => (partial.create()?, None),
        };
        Ok(SegmentDestination {
            file,
            partial,
            memory,
            written: 0,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if let Some((_, room)) = &self.memory
            && self.written + bytes.len() as u64 > *room
        {
            self.move_to_disk()?;
        }
        self.file
            .write_all(bytes)
            .map_err(|source| WriteError::new("write", self.place(), source))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn place(&self) -> &Path {
        self.memory
            .as_ref()
            .map_or(&self.partial.path, |(memory, _)| memory)
    }

    fn move_to_disk(&mut self) -> Result<(), WriteError> {
        let Some((memory, _)) = self.memory.take() else {
            return Ok(());
        };
        let written =
            File::open(&memory).map_err(|source| WriteError::new("open", &memory, source))?;
        self.file = self.partial.create()?;
        let copied = copy_rest(&written, &mut self.file)
            .map_err(|source| WriteError::new("write", &self.partial.path, source))?;
        if copied != self.written {
            let error = io::Error::other(format!(
                "the file has {copied} bytes; expected {}",
                self.written
            ));
            return Err(WriteError::new("read", &memory, error));
        }
        Ok(())
    }

    /// Gives the complete segment its name, by a link if it is in memory; returns whether it is.
    pub(super) fn publish(mut self, seal: Seal) -> Result<bool, WriteError> {
        if seal.durable {
            self.move_to_disk()?;
        }
        if let Some((memory, _)) = &self.memory {
            symlink(memory, &self.partial.path)
                .map_err(|source| WriteError::new("create", &self.partial.path, source))?;
        }
        self.partial.publish(&self.file, seal)?;
        Ok(self.memory.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::seal::partial_name;
    use super::*;

    /// Writes three pieces with this much memory; returns whether the segment ends up in memory.
    fn is_in_memory(room: u64, durable: bool) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("segment");
        let memory = folder.path().join("memory");
        File::create(&memory).expect("memory");
        let mut destination =
            SegmentDestination::create(&target, Some(&(memory, room))).expect("a destination");
        for piece in ["one ", "two ", "three"] {
            destination.write(piece.as_bytes()).expect("written");
        }
        let is_in_memory = destination.publish(Seal { durable }).expect("published");
        assert_eq!(is_in_memory, target.is_symlink());
        assert_eq!(fs::read(&target).expect("a segment"), b"one two three");
        assert!(!partial_name(&target).exists());
        is_in_memory
    }

    #[test]
    fn segment_stays_in_memory_only_if_it_fits() {
        assert!(is_in_memory(13, false));
        for room in 0..13 {
            assert!(!is_in_memory(room, false), "{room}");
        }
        assert!(
            !is_in_memory(13, true),
            "a durable segment is not in memory"
        );
    }

    #[test]
    fn create_falls_back_to_disk_without_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("segment");
        let missing = (folder.path().join("missing"), 100);
        let mut destination =
            SegmentDestination::create(&target, Some(&missing)).expect("a destination");
        destination.write(b"bytes").expect("written");
        destination
            .publish(Seal { durable: false })
            .expect("published");
        assert!(target.symlink_metadata().expect("a segment").is_file());
    }

    #[test]
    fn dropped_segment_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("segment");
        let mut destination = SegmentDestination::create(&target, None).expect("a destination");
        destination.write(b"bytes").expect("written");
        drop(destination);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
