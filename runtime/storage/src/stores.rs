//! The stores of this program as the runtime knows them.
//!
//! Owns the way from whole names and back. Does not own any request.

use std::path::Path;

use napreduce_protocol::{
    ObjectEntry, ObjectStores, PendingUpload, PutCondition, StoreError, StoredUpload, UploadWriter,
    WrittenFigures,
};

#[cfg(feature = "hdfs")]
use crate::hdfs_files::stores_of as hdfs;
use crate::listing::{FoundObject, list, stat};
use crate::upload::Upload;
use crate::{ObjectUri, StorageError, figures, small, upload, upload_listing};

/// All that were built in; the others say which feature they want.
///
/// ```
/// use napreduce_protocol::ObjectStores;
/// use napreduce_storage::Stores;
///
/// assert_eq!(Stores.take_written().requests, 0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Stores;

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> StoreError {
        let is_final = matches!(
            error,
            StorageError::BadUri { .. }
                | StorageError::FeatureOff { .. }
                | StorageError::NoBucket { .. }
                | StorageError::Refused { .. }
        );
        StoreError { message: error.to_string(), is_passing: !is_final }
    }
}

fn uri(object: &str) -> Result<ObjectUri, StorageError> {
    ObjectUri::parse(Path::new(object))
}

/// Those of HDFS, where an object is in it: its files are renamed, which no object can be.
#[cfg(not(feature = "hdfs"))]
fn hdfs(_: &str) -> Option<Stores> {
    None
}

impl ObjectStores for Stores {
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.begin_upload(object);
        }
        Ok(Box::new(Upload::begin(uri(object)?)?))
    }

    fn complete_upload(&self, object: &str, upload: &PendingUpload) -> Result<Option<String>, StoreError> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.complete_upload(object, upload);
        }
        Ok(upload::complete(&uri(object)?, upload)?)
    }

    fn version_of(&self, object: &str, upload: &PendingUpload) -> Option<String> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.version_of(object, upload);
        }
        upload::version_of(&uri(object).ok()?, upload)
    }

    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError> {
        if let Some(hdfs) = hdfs(&upload.object) {
            return hdfs.abort_upload(upload);
        }
        Ok(upload::abort(&uri(&upload.object)?, &upload.id)?)
    }

    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError> {
        if let Some(hdfs) = hdfs(under) {
            return hdfs.uploads(under);
        }
        let found = upload_listing::uploads(&uri(under)?)?;
        Ok(found.into_iter().map(|(uri, id)| StoredUpload { object: uri.to_string(), id }).collect())
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.get(object);
        }
        Ok(small::get(&uri(object)?)?.map(|(bytes, found)| (bytes, found.entry())))
    }

    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.put(object, bytes, condition);
        }
        Ok(small::put(&uri(object)?, bytes, condition)?)
    }

    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.find(object);
        }
        match stat(&uri(object)?) {
            Ok(found) => Ok(Some(found.entry())),
            Err(StorageError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&self, object: &str) -> Result<(), StoreError> {
        if let Some(hdfs) = hdfs(object) {
            return hdfs.remove(object);
        }
        Ok(small::remove(&uri(object)?)?)
    }

    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        if let Some(hdfs) = hdfs(under) {
            return hdfs.list(under);
        }
        Ok(list(&uri(under)?)?.into_iter().map(FoundObject::entry).collect())
    }

    fn take_written(&self) -> WrittenFigures {
        figures::take_written()
    }
}

impl UploadWriter for Upload {
    fn id(&self) -> &str {
        Upload::id(self)
    }

    fn send(&mut self, part: Vec<u8>) -> Result<(), StoreError> {
        Ok(Upload::send(self, part)?)
    }

    fn finish(self: Box<Self>) -> Result<PendingUpload, StoreError> {
        Ok(Upload::finish(*self)?)
    }
}
