//! Small objects, which are written conditionally, read and removed as a whole.
//!
//! If a response is lost, the object is read to find out whether this process wrote it.

use bytes::Bytes;
use napreduce_protocol::{ObjectEntry, PutCondition, StorageScheme};
use object_store::{ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};

use crate::stores::connection::{Bucket, bucket};
use crate::stores::figures::WRITTEN;
use crate::stores::listing::{FoundObject, stat};
use crate::stores::object::{path_of, quoted};
use crate::stores::requests::{RetryBudget, retried};
use crate::stores::{ObjectUri, StorageError, threads};

/// Size limit; a larger object is foreign.
const BYTES_MAX: u64 = 256 << 20;

/// Reads a small object, if it exists.
pub(crate) fn get(uri: &ObjectUri) -> Result<Option<(Vec<u8>, FoundObject)>, StorageError> {
    get_in(&bucket(uri)?, uri)
}

fn get_in(
    bucket: &Bucket,
    uri: &ObjectUri,
) -> Result<Option<(Vec<u8>, FoundObject)>, StorageError> {
    let bucket = bucket.clone();
    let path = path_of(uri)?;
    let object = uri.clone();
    let got = threads::wait(uri, async move {
        let whole = || async {
            let answer = bucket.objects.get(&path).await?;
            let meta = answer.meta.clone();
            if meta.size > BYTES_MAX {
                return Ok((Bytes::new(), meta));
            }
            Ok((answer.bytes().await?, meta))
        };
        retried(&object, RetryBudget::new(), whole).await
    });
    match got? {
        Ok((bytes, meta)) => {
            let generation = meta.version.clone();
            let found = FoundObject::of(uri.clone(), meta)?;
            let version = version_in(uri, generation).unwrap_or(found.version);
            Ok(Some((bytes.to_vec(), FoundObject { version, ..found })))
        }
        Err(StorageError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the version and content of an object, if it exists.
pub(crate) fn find(uri: &ObjectUri) -> Result<Option<ObjectEntry>, StorageError> {
    match stat(uri) {
        Ok(found) => Ok(Some(found.entry())),
        Err(StorageError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes an object. Returns its version, or `None` if the condition is not met.
pub(crate) fn put(
    uri: &ObjectUri,
    bytes: &[u8],
    condition: PutCondition<'_>,
) -> Result<Option<String>, StorageError> {
    put_in(&bucket(uri)?, uri, bytes, condition)
}

fn put_in(
    bucket: &Bucket,
    uri: &ObjectUri,
    bytes: &[u8],
    condition: PutCondition<'_>,
) -> Result<Option<String>, StorageError> {
    let mode = match condition {
        PutCondition::Always => PutMode::Overwrite,
        PutCondition::Absent => PutMode::Create,
        PutCondition::Version(version) => PutMode::Update(UpdateVersion {
            e_tag: Some(version.to_owned()),
            version: Some(version.to_owned()),
        }),
    };
    let sent = Bytes::copy_from_slice(bytes);
    let path = path_of(uri)?;
    let object = uri.clone();
    let asked = bucket.clone();
    let put = threads::wait(uri, async move {
        let request = || {
            WRITTEN.count_request();
            let options = PutOptions::from(mode.clone());
            asked.objects.put_opts(&path, sent.clone().into(), options)
        };
        retried(&object, RetryBudget::writing(), request).await
    });
    match put? {
        Ok(result) => {
            WRITTEN.count_bytes(bytes.len());
            match version_in(uri, result.version).or(result.e_tag.map(quoted)) {
                Some(version) => Ok(Some(version)),
                None => Ok(get_in(bucket, uri)?.map(|(_, found)| found.version)),
            }
        }
        // An earlier request may have written it, and its response been lost.
        Err(StorageError::Changed { .. } | StorageError::Missing { .. })
            if condition != PutCondition::Always =>
        {
            let found = get_in(bucket, uri)?;
            Ok(found
                .filter(|(there, _)| there == bytes)
                .map(|(_, found)| found.version))
        }
        Err(error) => Err(error),
    }
}

/// Google's conditions compare generations, others ETags.
fn version_in(uri: &ObjectUri, generation: Option<String>) -> Option<String> {
    generation.filter(|_| uri.scheme() == StorageScheme::Gcs)
}

/// Removes an object; succeeds if there is none.
pub(crate) fn remove(uri: &ObjectUri) -> Result<(), StorageError> {
    let bucket = bucket(uri)?;
    let path = path_of(uri)?;
    let object = uri.clone();
    let removed = threads::wait(uri, async move {
        let request = || {
            WRITTEN.count_request();
            bucket.objects.delete(&path)
        };
        retried(&object, RetryBudget::writing(), request).await
    });
    match removed? {
        Ok(()) | Err(StorageError::Missing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditional_write_respects_condition() {
        let bucket = Bucket::in_memory();
        let uri = ObjectUri::parse("s3://memory/claim".as_ref()).expect("a name");
        let put = |bytes: &[u8], condition| {
            put_in(&bucket, &uri, bytes, condition).expect("memory answers")
        };
        assert_eq!(get_in(&bucket, &uri).expect("memory answers"), None);
        let first = put(b"one", PutCondition::Absent).expect("there was none");
        assert_eq!(
            put(b"two", PutCondition::Absent),
            None,
            "somebody else's is there"
        );
        assert_eq!(
            put(b"one", PutCondition::Absent),
            Some(first.clone()),
            "it was written before"
        );
        assert_eq!(put(b"two", PutCondition::Version("\"other\"")), None);
        let (bytes, found) = get_in(&bucket, &uri)
            .expect("memory answers")
            .expect("an object");
        assert_eq!((&bytes[..], &found.version), (&b"one"[..], &first));
        let second = put(b"three", PutCondition::Always).expect("nothing was asked for");
        assert_ne!(first, second);
    }
}
