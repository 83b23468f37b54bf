//! One version of one object. Reads return bytes of this version only and continue after broken responses.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};

use crate::stores::connection::{Bucket, bucket};
use crate::stores::figures::READ;
use crate::stores::requests::{Failure, RetryBudget, innermost, traced};
use crate::stores::{ObjectUri, StorageError, threads};

/// An object in one version. Opening makes no request; the first read does.
///
/// ```no_run
/// use napreduce_connectors::stores::{ObjectUri, StoredObject, stat};
///
/// let uri = ObjectUri::parse("s3://books/moby.txt".as_ref())?;
/// let found = stat(&uri)?;
/// let object = StoredObject::open(uri, found.version, found.length)?;
/// let mut text = vec![0; 100];
/// object.read_at(&mut text, 0)?;
/// # Ok::<(), napreduce_connectors::stores::StorageError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StoredObject {
    uri: ObjectUri,
    bucket: Bucket,
    path: Path,
    version: String,
    length: u64,
}

impl StoredObject {
    /// Opens the version of `length` bytes that [`stat`](crate::stores::stat) or
    /// [`list`](crate::stores::list) has returned.
    ///
    /// # Errors
    ///
    /// If the settings in the environment are invalid or there are no credentials.
    pub fn open(
        uri: ObjectUri,
        version: String,
        length: u64,
    ) -> Result<StoredObject, StorageError> {
        let bucket = bucket(&uri)?;
        let path = path_of(&uri)?;
        Ok(StoredObject {
            uri,
            bucket,
            path,
            version,
            length,
        })
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the name.
    pub fn uri(&self) -> &ObjectUri {
        &self.uri
    }

    /// Reads bytes at `offset` with one request: all of `into`, or up to the end. Returns their number.
    ///
    /// # Errors
    ///
    /// [`StorageError::Changed`] if the object has another version; other errors after retries for three
    /// minutes.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, StorageError> {
        let there = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = into.len().min(there);
        if wanted == 0 {
            return Ok(0);
        }
        let object = self.clone();
        let range = offset..offset + wanted as u64;
        let bytes = threads::wait(&self.uri, async move { object.fetch(range).await })??;
        into[..wanted].copy_from_slice(&bytes);
        Ok(wanted)
    }

    /// Reads a range, which must lie in the object.
    pub(crate) async fn fetch(&self, range: std::ops::Range<u64>) -> Result<Bytes, StorageError> {
        let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = BytesMut::with_capacity(wanted);
        let mut budget = RetryBudget::new();
        loop {
            let before = bytes.len();
            let rest = range.start + before as u64..range.end;
            let Err(failure) = self.fetch_into(&mut bytes, rest).await else {
                return Ok(bytes.freeze());
            };
            if bytes.len() > before {
                // Progress, however slow.
                budget = RetryBudget::new();
            }
            if let Err(error) = budget.wait(&self.uri, &failure).await {
                return Err(match error {
                    // The object existed when its version was recorded.
                    StorageError::Missing { uri } => StorageError::Changed { uri },
                    other => other,
                });
            }
        }
    }

    /// Appends a range with one request. Received bytes stay in `into` if the response ends early.
    async fn fetch_into(
        &self,
        bytes: &mut BytesMut,
        range: std::ops::Range<u64>,
    ) -> Result<(), Failure> {
        READ.count_request();
        let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: Some(self.version.clone()),
            ..GetOptions::default()
        };
        let answer = traced(self.bucket.objects.get_opts(&self.path, options)).await?;
        // A server that ignores the condition returns another version.
        if answer
            .meta
            .e_tag
            .clone()
            .is_some_and(|found| quoted(found) != quoted(self.version.clone()))
        {
            return Err(Failure::Answer {
                status: 412,
                code: None,
            });
        }
        let mut body = answer.into_stream();
        let mut came = 0;
        loop {
            let piece = body.try_next().await;
            let piece = piece.map_err(|error| Failure::Broken(innermost(&error)))?;
            let Some(piece) = piece else { break };
            came += piece.len();
            if came > wanted {
                return Err(Failure::Broken(
                    "the response is longer than requested".to_owned(),
                ));
            }
            READ.count_bytes(piece.len());
            bytes.extend_from_slice(&piece);
        }
        if came < wanted {
            return Err(Failure::Broken("the response ended early".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
impl StoredObject {
    /// An in-memory store for tests.
    pub(crate) fn in_memory(bytes: &[u8]) -> StoredObject {
        let uri = ObjectUri::parse("s3://memory/object".as_ref()).expect("a name");
        let bucket = Bucket::in_memory();
        let path = path_of(&uri).expect("a key");
        let mut object = StoredObject {
            uri,
            bucket,
            path,
            version: String::new(),
            length: bytes.len() as u64,
        };
        object.version = object.replace(bytes);
        object
    }

    /// Replaces the object.
    pub(crate) fn replace(&self, bytes: &[u8]) -> String {
        use object_store::ObjectStoreExt as _;

        let bucket = self.bucket.clone();
        let path = self.path.clone();
        let bytes = Bytes::copy_from_slice(bytes);
        let put = async move { bucket.objects.put(&path, bytes.into()).await };
        let put = threads::wait(&self.uri, put);
        put.expect("threads")
            .expect("memory")
            .e_tag
            .expect("a version")
    }
}

/// Returns a version as conditions need it. Azure lists versions without quotes.
pub(crate) fn quoted(version: String) -> String {
    if version.starts_with('"') || version.starts_with("W/") {
        version
    } else {
        format!("\"{version}\"")
    }
}

/// Returns the key as `object_store` needs it.
pub(crate) fn path_of(uri: &ObjectUri) -> Result<Path, StorageError> {
    Path::parse(uri.key()).map_err(|error| StorageError::BadUri {
        uri: uri.to_string(),
        reason: innermost(&error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_read_up_to_end_of_object() {
        let object = StoredObject::in_memory(b"0123456789");
        let mut read = [0; 4];
        assert_eq!((object.read_at(&mut read, 2), read), (Ok(4), *b"2345"));
        assert_eq!(
            (object.read_at(&mut read, 8), &read[..2]),
            (Ok(2), &b"89"[..])
        );
        assert_eq!(object.read_at(&mut read, 10), Ok(0));
        assert_eq!(object.read_at(&mut [], 0), Ok(0));
    }

    #[test]
    fn etags_are_quoted() {
        assert_eq!(quoted("0x8D".to_owned()), "\"0x8D\"");
        assert_eq!(quoted("\"0x8D\"".to_owned()), "\"0x8D\"");
        assert_eq!(quoted("W/\"1\"".to_owned()), "W/\"1\"");
    }

    #[test]
    fn changed_object_version_is_rejected() {
        let object = StoredObject::in_memory(b"0123456789");
        object.replace(b"9876543210");
        let changed = StorageError::Changed {
            uri: "s3://memory/object".to_owned(),
        };
        assert_eq!(object.read_at(&mut [0; 4], 2), Err(changed));
    }
}
