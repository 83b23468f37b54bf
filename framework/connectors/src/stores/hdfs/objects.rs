//! Files of HDFS as objects of `object_store`: metadata, lists and reads of ranges. Writes use `hdfs_files`.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, TryFutureExt, TryStreamExt, stream};
use hdfs_native::client::FileStatus;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartId,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

use super::client::{Hdfs, failure, version_of};
use crate::stores::requests::{Failure, note};

/// An HDFS file system as an `ObjectStore`.
#[derive(Debug, Clone)]
pub(crate) struct HdfsObjects(pub(crate) Arc<Hdfs>);

impl std::fmt::Display for HdfsObjects {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HDFS")
    }
}

/// `requests` reads the recorded failure instead.
fn failed(failure: Failure) -> Error {
    let source = failure.to_string().into();
    note(failure);
    Error::Generic {
        store: "HDFS",
        source,
    }
}

fn not_implemented(operation: &str) -> Error {
    Error::NotImplemented {
        operation: operation.to_owned(),
        implementer: "HDFS".to_owned(),
    }
}

fn absolute(key: &Path) -> String {
    format!("/{key}")
}

fn meta(status: &FileStatus) -> Result<ObjectMeta> {
    Ok(ObjectMeta {
        location: Path::parse(&status.path)?,
        last_modified: (UNIX_EPOCH + Duration::from_millis(status.modification_time)).into(),
        size: status.length as u64,
        e_tag: Some(version_of(status)),
        version: None,
    })
}

#[async_trait]
impl ObjectStore for HdfsObjects {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let path = absolute(location);
        let result = |meta, range, payload| GetResult {
            payload: GetResultPayload::Stream(payload),
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        };
        if options.head {
            let meta = meta(&self.0.status(&path).await.map_err(failed)?)?;
            return Ok(result(meta, 0..0, stream::empty().boxed()));
        }
        let file = self
            .0
            .open(&path, options.if_match.as_deref())
            .await
            .map_err(failed)?;
        let meta = meta(&file.status)?;
        let range = match options.range {
            Some(GetRange::Bounded(range)) => range.start..range.end.min(meta.size),
            None => 0..meta.size,
            Some(_) => return Err(not_implemented("ranges from the end")),
        };
        let begin = range.start as usize;
        let end = range.end.max(range.start) as usize;
        let bytes = file.reader.read_range_stream(begin, end - begin);
        let hdfs = Arc::clone(&self.0);
        let broken = move |error| {
            hdfs.forget(&path);
            failed(failure(&error))
        };
        Ok(result(meta, range, bytes.map_err(broken).boxed()))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let hdfs = Arc::clone(&self.0);
        let directory = prefix.map_or("/".to_owned(), absolute);
        let listed = async move { hdfs.files_below(&directory).await.map_err(failed) };
        let metas = listed.map_ok(|files| stream::iter(files).map(|status| meta(&status)));
        metas.into_stream().try_flatten().boxed()
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(not_implemented("put_opts"))
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(not_implemented("put_multipart_opts"))
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        stream::once(async { Err(not_implemented("delete_stream")) }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(not_implemented("list_with_delimiter"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(not_implemented("copy_opts"))
    }
}

#[async_trait]
impl MultipartStore for HdfsObjects {
    async fn create_multipart(&self, _: &Path) -> Result<MultipartId> {
        Err(not_implemented("create_multipart"))
    }

    async fn put_part(&self, _: &Path, _: &MultipartId, _: usize, _: PutPayload) -> Result<PartId> {
        Err(not_implemented("put_part"))
    }

    async fn complete_multipart(
        &self,
        _: &Path,
        _: &MultipartId,
        _: Vec<PartId>,
    ) -> Result<PutResult> {
        Err(not_implemented("complete_multipart"))
    }

    async fn abort_multipart(&self, _: &Path, _: &MultipartId) -> Result<()> {
        Err(not_implemented("abort_multipart"))
    }
}
