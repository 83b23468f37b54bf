//! The objects of one output, addressed by their names in it.

use std::path::Path;

use napreduce_protocol::{ObjectEntry, ObjectStores, PendingUpload, PutCondition, StoreError};
use napreduce_task::object_stores;

use super::super::layout::{STORED_CHECKPOINT, TEMPORARY, is_written_by_tasks};
use super::super::trouble::Trouble;
use crate::world::World;

pub(super) const CLAIM: &str = "_temporary/claim.json";
pub(super) const INTENT: &str = "_temporary/intent.json";
/// Name prefix of objects written to read the store's clock.
pub(super) const PROBE: &str = "_temporary/probe-";

/// An output in a store.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    stores: &'static dyn ObjectStores,
    /// `s3://bucket/prefix`, without a slash at its end.
    base: String,
    world: World,
}

impl Bucket {
    /// Returns the output of this name, if the program supports its store; the error is a hint for the user.
    pub(crate) fn for_output(world: &World, output: &Path) -> Result<Bucket, String> {
        let text = output
            .to_str()
            .ok_or_else(|| format!("{} is not UTF-8", output.display()))?;
        Ok(Bucket::in_stores(world, object_stores(output)?, text))
    }

    pub(super) fn in_stores(
        world: &World,
        stores: &'static dyn ObjectStores,
        output: &str,
    ) -> Bucket {
        Bucket {
            stores,
            base: output.trim_end_matches('/').to_owned(),
            world: world.clone(),
        }
    }

    /// Returns the world of this process.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Returns the path of an object: `s3://bucket/prefix/name`.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// Returns the name of an object; `None` if it is not in this output.
    fn name_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.base)?.strip_prefix('/')
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, Trouble> {
        let path = self.path_of(name);
        self.stores
            .get(&path)
            .map_err(|error| trouble("read", &path, error))
    }

    pub(super) fn put(
        &self,
        name: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, Trouble> {
        let path = self.path_of(name);
        self.stores
            .put(&path, bytes, condition)
            .map_err(|error| trouble("write", &path, error))
    }

    pub(super) fn find(&self, name: &str) -> Result<Option<ObjectEntry>, Trouble> {
        let path = self.path_of(name);
        self.stores
            .find(&path)
            .map_err(|error| trouble("find", &path, error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Trouble> {
        let path = self.path_of(name);
        self.stores
            .remove(&path)
            .map_err(|error| trouble("remove", &path, error))
    }

    /// Lists all objects, at any depth, by name.
    pub(super) fn objects(&self) -> Result<Vec<(String, ObjectEntry)>, Trouble> {
        let listed = self
            .stores
            .list(&self.base)
            .map_err(|error| trouble("list", &self.base, error))?;
        let mut objects = Vec::with_capacity(listed.len());
        for entry in listed {
            if let Some(name) = self.name_of(&entry.object) {
                objects.push((name.to_owned(), entry));
            }
        }
        Ok(objects)
    }

    /// Completes an upload and returns its version; `None` if there is no such upload.
    pub(super) fn complete(
        &self,
        name: &str,
        upload: &PendingUpload,
    ) -> Result<Option<String>, Trouble> {
        let path = self.path_of(name);
        self.stores
            .complete_upload(&path, upload)
            .map_err(|error| trouble("complete", &path, error))
    }

    /// Returns the version that an upload will have.
    pub(super) fn version_of(&self, name: &str, upload: &PendingUpload) -> Option<String> {
        self.stores.version_of(&self.path_of(name), upload)
    }

    /// Drops unfinished uploads of tasks, of this run or an earlier one. Uploads of objects that no task
    /// writes belong to others.
    pub(super) fn abort_uploads(&self) -> Result<(), Trouble> {
        let listed = self
            .stores
            .uploads(&self.base)
            .map_err(|error| trouble("list the uploads of", &self.base, error))?;
        for upload in &listed {
            let name = self.name_of(&upload.object);
            if name.is_some_and(is_written_by_tasks) {
                self.stores
                    .abort_upload(upload)
                    .map_err(|error| trouble("abort an upload of", &upload.object, error))?;
            }
        }
        Ok(())
    }
}

/// Returns whether an object is not part of any output.
pub(super) fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMPORARY)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether an object was made by a claim, commit or checkpoint; other temporary objects belong to
/// other programs.
pub(super) fn is_remains(name: &str) -> bool {
    matches!(name, CLAIM | INTENT) || name.starts_with(PROBE) || name.starts_with(STORED_CHECKPOINT)
}

/// Describes the error of a call on a store. Leaves out the path if the store's message contains it.
fn trouble(doing: &str, path: &str, error: StoreError) -> Trouble {
    let StoreError {
        message,
        is_passing,
    } = error;
    let what = if message.contains(path) {
        format!("cannot {doing} output: {message}")
    } else {
        format!("cannot {doing} {path}: {message}")
    };
    if is_passing {
        Trouble::Passing { what, away: true }
    } else {
        Trouble::Final(what)
    }
}
