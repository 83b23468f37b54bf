//! Small files as a whole: written to a temporary name and renamed, so that readers never see a part; read,
//! and removed.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use hdfs_native::WriteOptions;
use hdfs_native::client::FileStatus;

use crate::stores::hdfs::{CHANGED, Hdfs, MISSING, ask, failure, version_of};
use crate::stores::requests::Failure;

/// Returns a random name.
pub(super) fn draw() -> String {
    let mut bytes = [0; 16];
    // Nothing works without random numbers.
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Options for a file that only this process writes, so an existing one is its own.
pub(super) fn overwriting(with_directories: bool) -> WriteOptions {
    WriteOptions::default()
        .overwrite(true)
        .create_parent(with_directories)
}

/// Writes a file that no other process writes.
pub(super) async fn write_small(
    hdfs: &Hdfs,
    path: &str,
    bytes: &[u8],
    with_directories: bool,
) -> Result<(), Failure> {
    let mut writer = ask(hdfs.client.create(path, overwriting(with_directories))).await?;
    if !bytes.is_empty() {
        ask(writer.write_bytes(Bytes::copy_from_slice(bytes))).await?;
    }
    ask(writer.close()).await
}

/// Moves a file to its name, replacing an existing file. Returns its version.
pub(super) async fn replace(
    hdfs: &Hdfs,
    writing: &str,
    path: &str,
    bytes: &[u8],
) -> Result<String, Failure> {
    write_small(hdfs, writing, bytes, true).await?;
    let status = hdfs.status(writing).await?;
    match ask(hdfs.client.rename(writing, path, true)).await {
        Ok(()) => Ok(version_of(&status)),
        Err(failure) if failure == MISSING => {
            Err(Failure::Broken("the file was removed meanwhile".to_owned()))
        }
        Err(failure) if failure == CHANGED => {
            Err(Failure::Odd("a directory has this name".to_owned()))
        }
        Err(failure) => Err(failure),
    }
}

/// Reads a whole small file.
pub(super) async fn read_small(hdfs: &Hdfs, path: &str) -> Result<(Vec<u8>, FileStatus), Failure> {
    let file = hdfs.open(path, None).await?;
    // The file is not cached for further reads.
    hdfs.forget(path);
    let read = file.reader.read_range_stream(0, file.status.length);
    let bytes: BytesMut = read.try_collect().await.map_err(|error| failure(&error))?;
    Ok((bytes.to_vec(), file.status.clone()))
}

/// Removes a file or a directory tree; succeeds if there is none.
pub(super) async fn remove(hdfs: &Hdfs, path: &str) -> Result<(), Failure> {
    delete(hdfs, path, true).await
}

/// Removes a file, if it exists. A nonempty directory is left.
pub(super) async fn remove_file(hdfs: &Hdfs, path: &str) -> Result<(), Failure> {
    delete(hdfs, path, false).await
}

async fn delete(hdfs: &Hdfs, path: &str, with_all_in_it: bool) -> Result<(), Failure> {
    match ask(hdfs.client.delete(path, with_all_in_it)).await {
        Err(failure) if failure != MISSING => Err(failure),
        _ => Ok(()),
    }
}

/// Removes a directory if it is empty.
pub(super) async fn remove_if_empty(hdfs: &Hdfs, path: &str) {
    // Another process may write there.
    let _ = ask(hdfs.client.delete(path, false)).await;
}
