//! Uploads in parts: the object appears when a process that knows the parts completes the upload.

use std::collections::VecDeque;

use bytes::Bytes;
use md5::{Digest as _, Md5};
use napreduce_protocol::{PendingUpload, StorageScheme, StoreError, UploadWriter};
use object_store::multipart::PartId;
use tokio::task::JoinHandle;

use crate::stores::connection::{Bucket, bucket};
use crate::stores::figures::WRITTEN;
use crate::stores::object::{path_of, quoted};
use crate::stores::requests::{Failure, RetryBudget, retried, traced};
use crate::stores::threads::{self, no_threads};
use crate::stores::{ObjectUri, StorageError};

/// Concurrent requests.
const UNDER_WAY: usize = 2;

type Answer = Result<PartId, StorageError>;

/// An upload in progress. Dropping it neither completes nor aborts it.
#[derive(Debug)]
pub(crate) struct Upload {
    uri: ObjectUri,
    bucket: Bucket,
    path: object_store::path::Path,
    id: String,
    under_way: VecDeque<JoinHandle<Answer>>,
    sent: usize,
    done: Vec<String>,
}

impl Upload {
    /// Starts an upload. Azure needs no request, since its blocks belong to the object.
    ///
    /// # Errors
    ///
    /// If the store fails for three minutes.
    pub(crate) fn begin(uri: ObjectUri) -> Result<Upload, StorageError> {
        let bucket = bucket(&uri)?;
        Upload::begin_in(bucket, uri)
    }

    fn begin_in(bucket: Bucket, uri: ObjectUri) -> Result<Upload, StorageError> {
        let path = path_of(&uri)?;
        let asked = bucket.clone();
        let at = path.clone();
        let object = uri.clone();
        let begun = threads::wait(&uri, async move {
            let request = || {
                if object.scheme() != StorageScheme::Azure {
                    WRITTEN.count_request();
                }
                asked.uploads.create_multipart(&at)
            };
            retried(&object, RetryBudget::writing(), request).await
        });
        let id = begun??;
        let under_way = VecDeque::with_capacity(UNDER_WAY);
        let sent = 0;
        let done = Vec::new();
        Ok(Upload {
            uri,
            bucket,
            path,
            id,
            under_way,
            sent,
            done,
        })
    }

    fn take_answer(&mut self) -> Result<(), StorageError> {
        let Some(request) = self.under_way.pop_front() else {
            return Ok(());
        };
        let ended = threads::wait(&self.uri, request)?;
        let answer =
            ended.unwrap_or_else(|_| Err(no_threads(&self.uri, std::io::ErrorKind::Interrupted)));
        self.done.push(answer?.content_id);
        Ok(())
    }
}

/// Fails if the store has not accepted this or an earlier part within three minutes.
impl UploadWriter for Upload {
    fn id(&self) -> &str {
        &self.id
    }

    /// Waits while two requests are in flight.
    fn send(&mut self, part: Vec<u8>) -> Result<(), StoreError> {
        while self.under_way.len() >= UNDER_WAY {
            self.take_answer()?;
        }
        let bucket = self.bucket.clone();
        let path = self.path.clone();
        let object = self.uri.clone();
        let id = self.id.clone();
        let number = self.sent;
        let part = Bytes::from(part);
        let request = threads::start(&self.uri, async move {
            let request = || {
                WRITTEN.count_request();
                bucket
                    .uploads
                    .put_part(&path, &id, number, part.clone().into())
            };
            let sent = retried(&object, RetryBudget::writing(), request).await?;
            WRITTEN.count_bytes(part.len());
            Ok(sent)
        });
        self.under_way.push_back(request?);
        self.sent += 1;
        Ok(())
    }

    /// An empty object has one empty part; in Azure, which rejects empty blocks, it has none.
    fn finish(mut self: Box<Self>) -> Result<PendingUpload, StoreError> {
        if self.sent == 0 && self.uri.scheme() != StorageScheme::Azure {
            self.send(Vec::new())?;
        }
        while !self.under_way.is_empty() {
            self.take_answer()?;
        }
        Ok(PendingUpload {
            id: std::mem::take(&mut self.id),
            parts: std::mem::take(&mut self.done),
        })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        for request in self.under_way.drain(..) {
            request.abort();
        }
    }
}

/// Completes an upload. Returns the version of the object, or `None` if there is no such upload.
pub(crate) fn complete(
    uri: &ObjectUri,
    upload: &PendingUpload,
) -> Result<Option<String>, StorageError> {
    complete_in(&bucket(uri)?, uri, upload)
}

fn complete_in(
    bucket: &Bucket,
    uri: &ObjectUri,
    upload: &PendingUpload,
) -> Result<Option<String>, StorageError> {
    let bucket = bucket.clone();
    let path = path_of(uri)?;
    let object = uri.clone();
    let upload = upload.clone();
    let completed = threads::wait(uri, async move {
        let mut budget = RetryBudget::writing();
        loop {
            WRITTEN.count_request();
            let parts = upload
                .parts
                .iter()
                .map(|part| PartId {
                    content_id: part.clone(),
                })
                .collect();
            let failure =
                match traced(bucket.uploads.complete_multipart(&path, &upload.id, parts)).await {
                    Ok(result) => return Ok(Some(result.e_tag)),
                    Err(Failure::Answer { status, code }) if is_gone(status, code.as_deref()) => {
                        return Ok(None);
                    }
                    // A response may begin as a success and contain an error.
                    Err(Failure::Odd(reason)) => Failure::Broken(reason),
                    Err(failure) => failure,
                };
            budget.wait(&object, &failure).await?;
        }
    });
    completed??
        .map(|version| version.map(quoted).ok_or_else(|| no_version(uri)))
        .transpose()
}

/// Returns whether the upload does not exist. Azure has no upload ids: a missing block was committed or
/// discarded.
fn is_gone(status: u16, code: Option<&str>) -> bool {
    match status {
        404 => !matches!(code, Some("NoSuchBucket" | "ContainerNotFound")),
        400 => code == Some("InvalidBlockList"),
        _ => false,
    }
}

/// The error for an object without a version.
pub(crate) fn no_version(uri: &ObjectUri) -> StorageError {
    let answer = "no ETag, which identifies versions".to_owned();
    StorageError::Refused {
        uri: uri.to_string(),
        answer,
        hint: "",
    }
}

/// Aborts an upload; succeeds if there is none. Azure discards blocks at the next commit of the object, or
/// after a week.
pub(crate) fn abort(uri: &ObjectUri, id: &str) -> Result<(), StorageError> {
    if uri.scheme() == StorageScheme::Azure {
        return Ok(());
    }
    let bucket = bucket(uri)?;
    let path = path_of(uri)?;
    let object = uri.clone();
    let id = id.to_owned();
    let aborted = threads::wait(uri, async move {
        let request = || {
            WRITTEN.count_request();
            bucket.uploads.abort_multipart(&path, &id)
        };
        retried(&object, RetryBudget::writing(), request).await
    });
    match aborted? {
        Ok(()) | Err(StorageError::Missing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Predicts the version of an uploaded object. S3 derives it from the parts, unless it encrypts them with its
/// own keys.
pub(crate) fn version_of(uri: &ObjectUri, upload: &PendingUpload) -> Option<String> {
    if uri.scheme() != StorageScheme::S3 {
        return None;
    }
    let mut digests = Md5::new();
    for part in &upload.parts {
        let part = part.trim_matches('"');
        if part.len() != 32 || !part.is_ascii() {
            return None;
        }
        for at in (0..part.len()).step_by(2) {
            digests.update([u8::from_str_radix(&part[at..at + 2], 16).ok()?]);
        }
    }
    let digest: String = digests
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(format!("\"{digest}-{}\"", upload.parts.len()))
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt as _;

    use super::*;

    fn uri() -> ObjectUri {
        ObjectUri::parse("s3://memory/part".as_ref()).expect("a name")
    }

    fn bytes_of(bucket: &Bucket) -> Option<Vec<u8>> {
        let bucket = bucket.clone();
        let path = path_of(&uri()).expect("a key");
        let got = threads::wait(&uri(), async move {
            bucket.objects.get(&path).await?.bytes().await
        });
        got.expect("threads").ok().map(|bytes| bytes.to_vec())
    }

    #[test]
    fn upload_is_visible_only_after_completion() {
        for parts in [&[][..], &["a"], &["a", "bc", "d", "ef", "g"]] {
            let bucket = Bucket::in_memory();
            let mut upload = Upload::begin_in(bucket.clone(), uri()).expect("begun");
            parts
                .iter()
                .for_each(|part| upload.send(part.as_bytes().to_vec()).expect("taken"));
            let pending = Box::new(upload).finish().expect("all of it is there");
            assert_eq!(pending.parts.len(), parts.len().max(1));
            assert_eq!(bytes_of(&bucket), None, "nobody sees it yet");
            let version = complete_in(&bucket, &uri(), &pending).expect("memory answers");
            assert!(version.is_some());
            assert_eq!(bytes_of(&bucket), Some(parts.concat().into_bytes()));
        }
    }

    #[test]
    fn empty_azure_object_has_no_block() {
        let uri =
            ObjectUri::parse("abfss://c@a.dfs.core.windows.net/part".as_ref()).expect("a name");
        let upload = Upload::begin_in(Bucket::in_memory(), uri).expect("begun");
        assert_eq!(
            Box::new(upload).finish().map(|pending| pending.parts),
            Ok(Vec::new())
        );
    }

    #[test]
    fn missing_upload_differs_from_missing_bucket() {
        for (status, code) in [
            (404, Some("NoSuchUpload")),
            (404, None),
            (400, Some("InvalidBlockList")),
        ] {
            assert!(is_gone(status, code), "{status} {code:?}");
        }
        for (status, code) in [
            (404, Some("NoSuchBucket")),
            (404, Some("ContainerNotFound")),
            (400, Some("InvalidPart")),
            (400, None),
            (503, None),
        ] {
            assert!(!is_gone(status, code), "{status} {code:?}");
        }
    }

    #[test]
    fn object_version_derives_from_parts() {
        let of = |uri: &str, parts: &[&str]| {
            let parts = parts.iter().map(|part| (*part).to_owned()).collect();
            let upload = PendingUpload {
                id: "u".to_owned(),
                parts,
            };
            version_of(&ObjectUri::parse(uri.as_ref()).expect("a name"), &upload)
        };
        // The MD5 of the MD5 of the empty part.
        let empty = "\"d41d8cd98f00b204e9800998ecf8427e\"";
        assert_eq!(
            of("s3://b/k", &[empty]).as_deref(),
            Some("\"59adb24ef3cdbe0297f05b395827453f-1\"")
        );
        assert_eq!(of("gs://b/k", &[empty]), None);
        assert_eq!(of("s3://b/k", &["\"not-md5\""]), None);
    }
}
