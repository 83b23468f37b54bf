//! A file that becomes a part when it is renamed. One process writes it sequentially; another may complete or
//! drop it.

use std::sync::Arc;

use bytes::Bytes;
use hdfs_native::file::FileWriter;
use napreduce_protocol::{PendingUpload, StoreError, UploadWriter};

use super::layout::{Places, upload_of, uploads_of};
use super::small::{draw, overwriting, remove_file};
use super::waiting::{read, written};
use crate::stores::figures::WRITTEN;
use crate::stores::hdfs::{CHANGED, Hdfs, MISSING, ask, connected, version_of};
use crate::stores::requests::Failure;
use crate::stores::{ObjectUri, StorageError, threads};

/// A file that is being written. Dropping it neither completes nor removes it.
pub(crate) struct HdfsUpload {
    uri: ObjectUri,
    hdfs: Arc<Hdfs>,
    id: String,
    path: String,
    /// `None` after an error: a file cannot be continued.
    writer: Option<FileWriter>,
}

impl HdfsUpload {
    /// Creates the file.
    pub(crate) fn begin(uri: ObjectUri) -> Result<HdfsUpload, StorageError> {
        let hdfs = connected(&uri)?;
        let id = draw();
        let path = Places::of(&uri)?.upload(&id);
        let begun = {
            let hdfs = Arc::clone(&hdfs);
            let path = path.clone();
            written(&uri, move || {
                let hdfs = Arc::clone(&hdfs);
                let path = path.clone();
                async move { ask(hdfs.client.create(&path, overwriting(true))).await }
            })?
        };
        Ok(HdfsUpload {
            uri,
            hdfs,
            id,
            path,
            writer: Some(begun),
        })
    }

    /// A write cannot be retried: the attempt fails, and the next one writes a new file.
    fn failed(&self, failure: Failure) -> StorageError {
        match failure {
            Failure::Broken(reason) => StorageError::Unreachable {
                uri: self.uri.to_string(),
                reason,
                tries: 1,
                seconds: 0,
            },
            other => other.explain(&self.uri),
        }
    }

    fn broken(&self) -> StorageError {
        self.failed(Failure::Broken("an earlier write failed".to_owned()))
    }
}

impl UploadWriter for HdfsUpload {
    fn id(&self) -> &str {
        &self.id
    }

    /// Some bytes may not have reached DataNodes when this returns.
    fn send(&mut self, part: Vec<u8>) -> Result<(), StoreError> {
        let Some(mut writer) = self.writer.take() else {
            return Err(self.broken().into());
        };
        let bytes = part.len();
        let sent = threads::wait(&self.uri, async move {
            WRITTEN.count_request();
            ask(writer.write_bytes(Bytes::from(part)))
                .await
                .map(|_| writer)
        })?;
        self.writer = Some(sent.map_err(|failure| self.failed(failure))?);
        WRITTEN.count_bytes(bytes);
        Ok(())
    }

    /// Waits until all bytes are on DataNodes.
    fn finish(mut self: Box<Self>) -> Result<PendingUpload, StoreError> {
        let Some(mut writer) = self.writer.take() else {
            return Err(self.broken().into());
        };
        let hdfs = Arc::clone(&self.hdfs);
        let path = self.path.clone();
        let finished = threads::wait(&self.uri, async move {
            ask(writer.close()).await?;
            hdfs.status(&path).await
        })?;
        let status = finished.map_err(|failure| self.failed(failure))?;
        // A rename keeps time and length.
        Ok(PendingUpload {
            id: std::mem::take(&mut self.id),
            parts: vec![version_of(&status)],
        })
    }
}

/// Renames an upload to its object. Returns the version, or `None` if there is no such upload.
pub(crate) fn complete(
    uri: &ObjectUri,
    upload: &PendingUpload,
) -> Result<Option<String>, StorageError> {
    let hdfs = connected(uri)?;
    let places = Places::of(uri)?;
    let from = places.upload(&upload.id);
    let to = places.path;
    let version = upload.parts.first().cloned();
    written(uri, move || {
        let hdfs = Arc::clone(&hdfs);
        let from = from.clone();
        let to = to.clone();
        let version = version.clone();
        async move {
            match ask(hdfs.client.rename(&from, &to, true)).await {
                Ok(()) => Ok(version),
                Err(failure) if failure == MISSING => Ok(None),
                Err(failure) if failure == CHANGED => {
                    Err(Failure::Odd("a directory has this name".to_owned()))
                }
                Err(failure) => Err(failure),
            }
        }
    })
}

/// Removes an upload; succeeds if there is none.
pub(crate) fn abort(uri: &ObjectUri, id: &str) -> Result<(), StorageError> {
    let hdfs = connected(uri)?;
    let path = Places::of(uri)?.upload(id);
    written(uri, move || {
        let hdfs = Arc::clone(&hdfs);
        let path = path.clone();
        async move { remove_file(&hdfs, &path).await }
    })
}

/// Lists the uploads of an output with their ids.
pub(crate) fn uploads(output: &ObjectUri) -> Result<Vec<(ObjectUri, String)>, StorageError> {
    let hdfs = connected(output)?;
    let directory = uploads_of(output);
    let found = read(output, move || {
        let hdfs = Arc::clone(&hdfs);
        let directory = directory.clone();
        async move { hdfs.entries(&directory).await }
    })?;
    let base = output.key().trim_end_matches('/');
    let upload = |path: &str| {
        let (name, id) = upload_of(path.rsplit('/').next()?)?;
        Some((output.with_key(&format!("{base}/{name}")), id.to_owned()))
    };
    Ok(found
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| upload(&entry.path))
        .collect())
}
