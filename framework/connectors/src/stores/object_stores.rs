//! The stores of this program, by the runtime's interface.

use std::path::Path;

use napreduce_protocol::{
    ObjectEntry, ObjectStores, PendingUpload, PutCondition, StorageScheme, StoreError,
    StoredUpload, UploadWriter, WrittenFigures,
};

#[cfg(feature = "hdfs")]
use crate::stores::hdfs_files::HdfsStores;
use crate::stores::listing::{FoundObject, list};
use crate::stores::upload::Upload;
use crate::stores::{ObjectUri, StorageError, figures, small, upload, upload_listing};

/// Returns the stores of an object. A store that is not built in reports the missing feature. HDFS has its
/// own implementation, since its files can be renamed.
///
/// ```
/// let stores = napreduce_connectors::stores::stores_of("s3://bucket/key".as_ref());
/// assert_eq!(stores.take_written().requests, 0);
/// ```
pub fn stores_of(object: &Path) -> &'static dyn ObjectStores {
    match StorageScheme::from_path(object) {
        #[cfg(feature = "hdfs")]
        Some(StorageScheme::Hdfs) => &HdfsStores,
        _ => &Stores,
    }
}

#[derive(Debug, Clone, Copy)]
struct Stores;

impl From<StorageError> for StoreError {
    fn from(error: StorageError) -> StoreError {
        let is_final = matches!(
            error,
            StorageError::BadUri { .. }
                | StorageError::FeatureOff { .. }
                | StorageError::NoBucket { .. }
                | StorageError::Refused { .. }
        );
        StoreError {
            message: error.to_string(),
            is_passing: !is_final,
        }
    }
}

impl ObjectStores for Stores {
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError> {
        Ok(Box::new(Upload::begin(ObjectUri::of(object)?)?))
    }

    fn complete_upload(
        &self,
        object: &str,
        upload: &PendingUpload,
    ) -> Result<Option<String>, StoreError> {
        Ok(upload::complete(&ObjectUri::of(object)?, upload)?)
    }

    fn version_of(&self, object: &str, upload: &PendingUpload) -> Option<String> {
        upload::version_of(&ObjectUri::of(object).ok()?, upload)
    }

    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError> {
        Ok(upload::abort(&ObjectUri::of(&upload.object)?, &upload.id)?)
    }

    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError> {
        let found = upload_listing::uploads(&ObjectUri::of(under)?)?;
        Ok(found
            .into_iter()
            .map(|(uri, id)| StoredUpload {
                object: uri.to_string(),
                id,
            })
            .collect())
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError> {
        Ok(small::get(&ObjectUri::of(object)?)?.map(|(bytes, found)| (bytes, found.entry())))
    }

    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError> {
        Ok(small::put(&ObjectUri::of(object)?, bytes, condition)?)
    }

    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError> {
        Ok(small::find(&ObjectUri::of(object)?)?)
    }

    fn remove(&self, object: &str) -> Result<(), StoreError> {
        Ok(small::remove(&ObjectUri::of(object)?)?)
    }

    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        Ok(list(&ObjectUri::of(under)?)?
            .into_iter()
            .map(FoundObject::entry)
            .collect())
    }

    fn take_written(&self) -> WrittenFigures {
        figures::take_written()
    }
}
