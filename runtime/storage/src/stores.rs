//! The stores of this program as the runtime knows them.
//!
//! Owns the way from whole names and back. Does not own any request.

use std::path::Path;

use napreduce_protocol::{
    ObjectEntry, ObjectStores, PendingUpload, PutCondition, StoreError, StoredUpload, UploadWriter,
    WrittenFigures,
};

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

fn entry(found: FoundObject) -> ObjectEntry {
    let FoundObject { uri, length, version, modified } = found;
    ObjectEntry { object: uri.to_string(), bytes: length, version, modified }
}

impl ObjectStores for Stores {
    fn begin_upload(&self, object: &str) -> Result<Box<dyn UploadWriter>, StoreError> {
        Ok(Box::new(Upload::begin(uri(object)?)?))
    }

    fn complete_upload(&self, object: &str, upload: &PendingUpload) -> Result<Option<String>, StoreError> {
        Ok(upload::complete(&uri(object)?, upload)?)
    }

    fn version_of(&self, object: &str, upload: &PendingUpload) -> Option<String> {
        upload::version_of(&uri(object).ok()?, upload)
    }

    fn abort_upload(&self, upload: &StoredUpload) -> Result<(), StoreError> {
        Ok(upload::abort(&uri(&upload.object)?, &upload.id)?)
    }

    fn uploads(&self, under: &str) -> Result<Vec<StoredUpload>, StoreError> {
        let found = upload_listing::uploads(&uri(under)?)?;
        Ok(found.into_iter().map(|(uri, id)| StoredUpload { object: uri.to_string(), id }).collect())
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectEntry)>, StoreError> {
        Ok(small::get(&uri(object)?)?.map(|(bytes, found)| (bytes, entry(found))))
    }

    fn put(
        &self,
        object: &str,
        bytes: &[u8],
        condition: PutCondition<'_>,
    ) -> Result<Option<String>, StoreError> {
        Ok(small::put(&uri(object)?, bytes, condition)?)
    }

    fn find(&self, object: &str) -> Result<Option<ObjectEntry>, StoreError> {
        match stat(&uri(object)?) {
            Ok(found) => Ok(Some(entry(found))),
            Err(StorageError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&self, object: &str) -> Result<(), StoreError> {
        Ok(small::remove(&uri(object)?)?)
    }

    fn list(&self, under: &str) -> Result<Vec<ObjectEntry>, StoreError> {
        Ok(list(&uri(under)?)?.into_iter().map(entry).collect())
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
