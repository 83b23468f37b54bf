//! The runtime's object store interface on HDFS.

use std::sync::Arc;

use napreduce_protocol::{
    ObjectEntry, ObjectStores, PendingUpload, PutCondition, StoreError, StoredUpload, UploadWriter,
    WrittenFigures,
};

use super::layout::{ListedKey, Places, listed};
use super::small::{draw, remove, remove_file, remove_if_empty, replace};
use super::swapped::{Current, Swap, current};
use super::upload::{HdfsUpload, abort, complete, uploads};
use super::waiting::{read, written};
use crate::stores::hdfs::connected;
use crate::stores::listing::list;
use crate::stores::{FoundObject, ObjectUri, StorageError, figures, small};

/// All HDFS file systems.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HdfsStores;

/// Returns the current version of a file that may have versions.
fn swapped(uri: &ObjectUri) -> Result<Option<Current>, StorageError> {
    let Some(versions) = Places::of(uri)?.versions() else {
        return Ok(None);
    };
    let hdfs = connected(uri)?;
    read(uri, move || {
        let hdfs = Arc::clone(&hdfs);
        let versions = versions.clone();
        async move { current(&hdfs, &versions).await }
    })
}

fn of_swapped(uri: &ObjectUri, found: &Current) -> ObjectEntry {
    ObjectEntry {
        object: uri.to_string(),
        bytes: found.bytes.len() as u64,
        version: found.version.clone(),
        modified: found.modified,
    }
}

/// Classifies an entry of a listing.
fn of_listed(found: FoundObject) -> Option<ObjectEntry> {
    match listed(found.uri.key()) {
        ListedKey::Object => Some(found.entry()),
        ListedKey::Swapped(key, version) => {
            let object = found.uri.with_key(&key).to_string();
            let version = version.to_owned();
            Some(ObjectEntry {
                object,
                bytes: 0,
                version,
                modified: found.modified,
            })
        }
        ListedKey::Hidden => None,
    }
}

impl ObjectStores for HdfsStores {
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError> {
        Ok(Box::new(HdfsUpload::begin(ObjectUri::of(object)?)?))
    }

    fn complete_upload(
        &self,
        object: &str,
        upload: &PendingUpload,
    ) -> Result<Option<String>, StoreError> {
        Ok(complete(&ObjectUri::of(object)?, upload)?)
    }

    fn version_of(&self, _: &str, upload: &PendingUpload) -> Option<String> {
        upload.parts.first().cloned()
    }

    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError> {
        Ok(abort(&ObjectUri::of(&upload.object)?, &upload.id)?)
    }

    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError> {
        let found = uploads(&ObjectUri::of(under)?)?;
        Ok(found
            .into_iter()
            .map(|(uri, id)| StoredUpload {
                object: uri.to_string(),
                id,
            })
            .collect())
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError> {
        let uri = ObjectUri::of(object)?;
        if let Some(found) = swapped(&uri)? {
            let entry = of_swapped(&uri, &found);
            return Ok(Some((found.bytes, entry)));
        }
        Ok(small::get(&uri)?.map(|(bytes, found)| (bytes, found.entry())))
    }

    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError> {
        let uri = ObjectUri::of(object)?;
        let hdfs = connected(&uri)?;
        let places = Places::of(&uri)?;
        if let Some(swap) = Swap::new(&places, bytes, condition) {
            let swap = Arc::new(swap);
            return Ok(written(&uri, move || {
                let hdfs = Arc::clone(&hdfs);
                let swap = Arc::clone(&swap);
                async move { swap.run(&hdfs).await }
            })?);
        }
        if condition != PutCondition::Always {
            let message = format!("{object}: conditional writes need a path in _temporary");
            return Err(StoreError {
                message,
                is_passing: false,
            });
        }
        let writing = places.writing(&draw());
        let path = places.path;
        let bytes = Arc::<[u8]>::from(bytes);
        let version = written(&uri, move || {
            let hdfs = Arc::clone(&hdfs);
            let writing = writing.clone();
            let path = path.clone();
            let bytes = Arc::clone(&bytes);
            async move { replace(&hdfs, &writing, &path, &bytes).await }
        })?;
        Ok(Some(version))
    }

    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError> {
        let uri = ObjectUri::of(object)?;
        if let Some(found) = swapped(&uri)? {
            return Ok(Some(of_swapped(&uri, &found)));
        }
        Ok(small::find(&uri)?)
    }

    fn remove(&self, object: &str) -> Result<(), StoreError> {
        let uri = ObjectUri::of(object)?;
        let hdfs = connected(&uri)?;
        let places = Places::of(&uri)?;
        let is_swapped = swapped(&uri)?.is_some();
        Ok(written(&uri, move || {
            let hdfs = Arc::clone(&hdfs);
            let places = places.clone();
            async move {
                if let Some(versions) = places.versions().filter(|_| is_swapped) {
                    // A concurrent claim notices and starts again.
                    remove(&hdfs, &places.all_writing()).await?;
                    remove(&hdfs, &versions).await?;
                    for directory in places.empty_ones() {
                        remove_if_empty(&hdfs, &directory).await;
                    }
                }
                remove_file(&hdfs, &places.path).await
            }
        })?)
    }

    fn remove_below(&self, under: &str) -> Result<(), StoreError> {
        let uri = ObjectUri::of(under)?;
        let hdfs = connected(&uri)?;
        let path = Places::of(&uri)?.path;
        Ok(written(&uri, move || {
            let hdfs = Arc::clone(&hdfs);
            let path = path.clone();
            async move { remove(&hdfs, &path).await }
        })?)
    }

    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        Ok(list(&ObjectUri::of(under)?)?
            .into_iter()
            .filter_map(of_listed)
            .collect())
    }

    fn take_written(&self) -> WrittenFigures {
        figures::take_written()
    }
}
