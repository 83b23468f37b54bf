//! Checkpoints as objects in a store, for workers without a shared directory.
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
use super::error::{CheckpointError, FileResult};
use super::file::check_name;
use crate::progress;

/// Bytes of a file per object: the size of one request.
const OBJECT_BYTES: u64 = 8 << 20;
/// Version of the last object.
const VERSION: u32 = 1;
const PARTIAL: &str = "partial";

/// A failure to save or fetch a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("checkpoint {object} is damaged: {what}")]
    Damaged { object: String, what: String },
}

/// A file and the objects that contain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Its path relative to the directory of all checkpoints.
    file: String,
    bytes: u64,
    /// Their names without the prefix, in order.
    objects: Vec<String>,
}

/// The content of the last object.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    version: u32,
    files: Vec<StoredFile>,
    /// Records and milliseconds of saved work; 0 if written by an earlier version.
    #[serde(default)]
    reached: (u64, u64),
}

/// The location of the checkpoints of a job's attempts.
#[derive(Debug, Clone)]
pub struct CheckpointObjects {
    stores: &'static dyn ObjectStores,
    prefix: String,
}

impl CheckpointObjects {
    /// Returns the checkpoints whose names begin with `prefix`.
    ///
    /// # Errors
    /// Returns a hint for the user if the program does not support this store.
    pub fn open(prefix: &Path) -> Result<CheckpointObjects, String> {
        let stores = crate::object_stores(prefix)?;
        let text = prefix
            .to_str()
            .ok_or_else(|| format!("{} is not UTF-8", prefix.display()))?;
        Ok(CheckpointObjects {
            stores,
            prefix: text.to_owned(),
        })
    }

    /// Saves the checkpoint of `attempt` in `directory`; `before` is the checkpoint it started from. Returns
    /// the files that it names.
    ///
    /// # Errors
    /// Fails if the store rejects a request or a file cannot be read.
    pub fn save(
        &self,
        directory: &Path,
        attempt: AttemptId,
        before: &[StoredFile],
    ) -> Result<Vec<StoredFile>, ObjectsError> {
        let own = name_of(directory);
        let checkpoint = Checkpoint::read(directory, attempt.task)?;
        let mut sending = Sending {
            objects: self,
            attempt: &own,
            sent: 0,
        };
        let mut files = Vec::new();
        // Names are repeated if several parts of a checkpoint are in one file.
        for name in checkpoint.files().collect::<BTreeSet<String>>() {
            let earlier = before.iter().find(|stored| stored.file == name);
            files.push(match name.split_once('/') {
                Some((folder, file)) if folder == own => {
                    sending.send(&directory.join(file), name.clone())?
                }
                _ => earlier.cloned().ok_or_else(|| {
                    self.damaged(
                        &own,
                        format!(
                            "it refers to {name}, but its attempt did not start from that file"
                        ),
                    )
                })?,
            });
        }
        let description = Checkpoint::path_in(directory);
        files.push(sending.send(&description, format!("{own}/{}", name_of(&description)))?);
        let reached = (checkpoint.records(), checkpoint.active_millis);
        let index = Index {
            version: VERSION,
            files,
            reached,
        };
        let text =
            serde_json::to_vec(&index).map_err(|error| self.damaged(&own, error.to_string()))?;
        self.put(&own, &text)?;
        Ok(index.files)
    }

    /// Returns the names of all complete checkpoints, the most advanced first. For prefixes that end in a
    /// name in a folder; a name whose last `-` is followed by only a number is a part.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn furthest_first(&self) -> Result<Vec<String>, ObjectsError> {
        let (folder, _) = self.prefix.rsplit_once('/').unwrap_or_default();
        let listed = self.stores.list(folder)?;
        let mut found = Vec::new();
        for entry in listed {
            let name = entry
                .object
                .strip_prefix(&self.prefix)
                .and_then(|rest| rest.strip_prefix('-'));
            let Some(name) = name.filter(|name| !is_part(name)) else {
                continue;
            };
            let Some(index) = self.get(name)? else {
                continue;
            };
            // An unreadable index is rejected with the reason when it is fetched.
            let reached =
                serde_json::from_slice(&index).map_or((0, 0), |index: Index| index.reached);
            found.push((reached, name.to_owned()));
        }
        found.sort_by(|one, other| other.cmp(one));
        Ok(found.into_iter().map(|(_, name)| name).collect())
    }

    /// Fetches the files of the checkpoint for `directory`, including those of earlier attempts next to it.
    /// Existing files stay. Does nothing if there is no such checkpoint.
    ///
    /// # Errors
    /// Fails if the store cannot be read, the checkpoint is incomplete, or a file cannot be written.
    pub fn fetch(&self, directory: &Path) -> Result<Vec<StoredFile>, ObjectsError> {
        let own = name_of(directory);
        let Some(index) = self.get(&own)? else {
            return Ok(Vec::new());
        };
        let index: Index = serde_json::from_slice(&index)
            .map_err(|error| self.damaged(&own, error.to_string()))?;
        if index.version != VERSION {
            let what = format!(
                "it has version {}, but this program reads version {VERSION}",
                index.version
            );
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

    /// Disables a checkpoint whose files are damaged; succeeds if there is none.
    ///
    /// # Errors
    /// Fails if the store rejects a request.
    pub fn set_aside(&self, directory: &Path) -> Result<(), ObjectsError> {
        Ok(self.stores.remove(&self.object(&name_of(directory)))?)
    }

    fn fetch_file(&self, stored: &StoredFile, path: &Path) -> Result<(), ObjectsError> {
        let directory = path.parent().unwrap_or(Path::new(""));
        fs::create_dir(directory)
            .unless_there()
            .at("create", directory)?;
        let partial = path.with_extension(PARTIAL);
        let mut file = File::create(&partial).at("create", &partial)?;
        let mut bytes = 0;
        for object in &stored.objects {
            let part = self
                .get(object)?
                .ok_or_else(|| self.damaged(object, "the object is missing".to_owned()))?;
            file.write_all(&part).at("write", &partial)?;
            bytes += part.len() as u64;
            progress();
        }
        if bytes != stored.bytes {
            let what = format!("{} has {bytes} bytes, not {}", stored.file, stored.bytes);
            return Err(self.damaged(&name_of(directory), what));
        }
        fs::rename(&partial, path).at("rename", &partial)?;
        Ok(())
    }

    fn object(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        let got = self.stores.get(&self.object(name))?;
        Ok(got.map(|(bytes, _)| bytes))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectsError> {
        self.stores
            .put(&self.object(name), bytes, PutCondition::Always)?;
        Ok(())
    }

    fn damaged(&self, name: &str, what: String) -> ObjectsError {
        ObjectsError::Damaged {
            object: self.object(name),
            what,
        }
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
        let mut file = File::open(path).at("read", path)?;
        let mut stored = StoredFile {
            file: name,
            bytes: 0,
            objects: Vec::new(),
        };
        loop {
            let mut part = Vec::new();
            let read = (&mut file)
                .take(OBJECT_BYTES)
                .read_to_end(&mut part)
                .at("read", path)?;
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

/// Returns whether an object is a part of a file.
fn is_part(name: &str) -> bool {
    name.rsplit_once('-')
        .is_some_and(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests;
