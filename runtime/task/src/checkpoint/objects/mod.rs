//! Checkpoints as objects in a store, for workers that share no directory.
//!
//! Owns which objects a checkpoint is, in which order they are written, and bringing the files back. Does not
//! own what is in the files (`file`, `description`), nor when somebody saves (the task process).
//!
//! ```text
//! PREFIX-job_0001_r_0003.1-000000   8 MiB of a file that the checkpoint names, and so on; of `checkpoint` itself, too
//! PREFIX-job_0001_r_0003.1          written last: the files, each with its length and its objects
//! PREFIX-job_0001_r_0003.2          names objects of its own and of .1
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use napreduce_engine::AttemptId;
use napreduce_protocol::{IoResult, ObjectStores, PutCondition, StoreError};
use serde::{Deserialize, Serialize};

use super::description::Checkpoint;
use super::error::CheckpointError;
use super::file::check_name;
use crate::progress;

/// Bytes of a file in one object: what a store takes in one request.
const OBJECT_BYTES: u64 = 8 << 20;
/// Of what stands in the last object.
const VERSION: u32 = 1;
const PARTIAL: &str = "partial";

/// Why a checkpoint did not come to a store, or from it.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error("{}", .0.message)]
    Store(StoreError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("checkpoint {object} is damaged: {what}")]
    Damaged { object: String, what: String },
}

/// A file, and the objects in which it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Its name, from the directory of all checkpoints.
    file: String,
    bytes: u64,
    /// What follows the prefix in their names, in order.
    objects: Vec<String>,
}

/// What stands in the last object.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    version: u32,
    files: Vec<StoredFile>,
    /// Records and milliseconds of work that are saved; of an earlier version none.
    #[serde(default)]
    reached: (u64, u64),
}

/// Where the checkpoints of a job's attempts are.
#[derive(Debug, Clone)]
pub struct CheckpointObjects {
    stores: &'static dyn ObjectStores,
    prefix: String,
}

impl CheckpointObjects {
    /// Those whose names begin with `prefix`.
    ///
    /// # Errors
    /// What to do for a program that knows no such store.
    pub fn of(prefix: &Path) -> Result<CheckpointObjects, String> {
        let stores = crate::object_stores(prefix)?;
        let text = prefix.to_str().ok_or_else(|| format!("{} is not UTF-8", prefix.display()))?;
        Ok(CheckpointObjects { stores, prefix: text.to_owned() })
    }

    /// Puts there what `attempt` has saved in `directory`; `before` is what it was started from. The files
    /// that it names, in return.
    ///
    /// # Errors
    /// What the store does not take, and what cannot be read.
    pub fn save(
        &self,
        directory: &Path,
        attempt: AttemptId,
        before: &[StoredFile],
    ) -> Result<Vec<StoredFile>, ObjectsError> {
        let own = name_of(directory);
        let checkpoint = Checkpoint::read(directory, attempt.task)?;
        let mut sending = Sending { objects: self, attempt: &own, sent: 0 };
        let mut files = Vec::new();
        // Names come twice where several parts of a checkpoint are in one file.
        for name in checkpoint.files().collect::<BTreeSet<String>>() {
            let earlier = before.iter().find(|stored| stored.file == name);
            files.push(match name.split_once('/') {
                Some((folder, file)) if folder == own => sending.send(&directory.join(file), name.clone())?,
                _ => earlier.cloned().ok_or_else(|| {
                    self.damaged(&own, format!("it names {name}, which its attempt was not started from"))
                })?,
            });
        }
        let description = Checkpoint::path_in(directory);
        files.push(sending.send(&description, format!("{own}/{}", name_of(&description)))?);
        let reached = (checkpoint.records(), checkpoint.active_millis);
        let index = Index { version: VERSION, files, reached };
        let text = serde_json::to_vec(&index).map_err(|error| self.damaged(&own, error.to_string()))?;
        self.put(&own, &text)?;
        Ok(index.files)
    }

    /// The names of all checkpoints that were saved to their end, the one whose work is furthest first; for
    /// prefixes that end in a name in a folder, names in which the last `-` is followed by no number alone.
    ///
    /// # Errors
    /// What the store does not hand out.
    pub fn furthest_first(&self) -> Result<Vec<String>, ObjectsError> {
        let (folder, _) = self.prefix.rsplit_once('/').unwrap_or_default();
        let listed = self.stores.list(folder).map_err(ObjectsError::Store)?;
        let mut found = Vec::new();
        for entry in listed {
            let name = entry.object.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('-'));
            let Some(name) = name.filter(|name| !is_part(name)) else { continue };
            let Some(index) = self.get(name)? else { continue };
            // What cannot be read is refused when it is fetched, with the reason.
            let reached = serde_json::from_slice(&index).map_or((0, 0), |index: Index| index.reached);
            found.push((reached, name.to_owned()));
        }
        found.sort_by(|one, other| other.cmp(one));
        Ok(found.into_iter().map(|(_, name)| name).collect())
    }

    /// Brings back the files of the checkpoint that is to be in `directory`, those of earlier attempts beside
    /// it. Files that are there already stay. Without such a checkpoint nothing is brought.
    ///
    /// # Errors
    /// What the store does not hand out, what is not whole, and what cannot be written.
    pub fn fetch(&self, directory: &Path) -> Result<Vec<StoredFile>, ObjectsError> {
        let own = name_of(directory);
        let Some(index) = self.get(&own)? else { return Ok(Vec::new()) };
        let index: Index =
            serde_json::from_slice(&index).map_err(|error| self.damaged(&own, error.to_string()))?;
        if index.version != VERSION {
            let what = format!("it has version {}, this program reads version {VERSION}", index.version);
            return Err(self.damaged(&own, what));
        }
        let base = directory.parent().unwrap_or(Path::new(""));
        for stored in &index.files {
            check_name(&stored.file).map_err(|what| self.damaged(&own, what))?;
            let path = base.join(&stored.file);
            if !fs::metadata(&path).is_ok_and(|found| found.len() == stored.bytes) {
                self.fetch_file(stored, &path)?;
            }
        }
        Ok(index.files)
    }

    /// Takes a checkpoint out of use whose files proved damaged; fine if there is none.
    ///
    /// # Errors
    /// What the store does not do.
    pub fn set_aside(&self, directory: &Path) -> Result<(), ObjectsError> {
        self.stores.remove(&self.object(&name_of(directory))).map_err(ObjectsError::Store)
    }

    fn fetch_file(&self, stored: &StoredFile, path: &Path) -> Result<(), ObjectsError> {
        let directory = path.parent().unwrap_or(Path::new(""));
        let made = fs::create_dir(directory).unless_there();
        made.map_err(|error| CheckpointError::io("create", directory, error))?;
        let partial = path.with_extension(PARTIAL);
        let mut file =
            File::create(&partial).map_err(|error| CheckpointError::io("create", &partial, error))?;
        let mut bytes = 0;
        for object in &stored.objects {
            let part = self.get(object)?.ok_or_else(|| self.damaged(object, "it is gone".to_owned()))?;
            file.write_all(&part).map_err(|error| CheckpointError::io("write", &partial, error))?;
            bytes += part.len() as u64;
            progress();
        }
        if bytes != stored.bytes {
            let what = format!("{} has {bytes} bytes, not {}", stored.file, stored.bytes);
            return Err(self.damaged(&name_of(directory), what));
        }
        fs::rename(&partial, path).map_err(|error| CheckpointError::io("rename", &partial, error))?;
        Ok(())
    }

    fn object(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        let got = self.stores.get(&self.object(name)).map_err(ObjectsError::Store)?;
        Ok(got.map(|(bytes, _)| bytes))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectsError> {
        let put = self.stores.put(&self.object(name), bytes, PutCondition::Always);
        put.map(drop).map_err(ObjectsError::Store)
    }

    fn damaged(&self, name: &str, what: String) -> ObjectsError {
        ObjectsError::Damaged { object: self.object(name), what }
    }
}

/// The objects of one attempt while they are written.
struct Sending<'a> {
    objects: &'a CheckpointObjects,
    attempt: &'a str,
    sent: u32,
}

impl Sending<'_> {
    fn send(&mut self, path: &Path, name: String) -> Result<StoredFile, ObjectsError> {
        let unread = |error| CheckpointError::io("read", path, error);
        let mut file = File::open(path).map_err(unread)?;
        let mut stored = StoredFile { file: name, bytes: 0, objects: Vec::new() };
        loop {
            let mut part = Vec::new();
            let read = (&mut file).take(OBJECT_BYTES).read_to_end(&mut part).map_err(unread)?;
            if read == 0 {
                return Ok(stored);
            }
            let object = format!("{}-{:06}", self.attempt, self.sent);
            self.objects.put(&object, &part)?;
            progress();
            self.sent += 1;
            stored.bytes += read as u64;
            stored.objects.push(object);
        }
    }
}

/// Whether an object is some of a file.
fn is_part(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
