//! Connections to NameNodes, one per NameNode, and open files. Everything read from a file is of one version.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use hdfs_native::client::FileStatus;
use hdfs_native::file::FileReader;
use hdfs_native::{Client, ClientBuilder, HdfsError};
use napreduce_protocol::lock;

use crate::stores::requests::{Failure, SILENCE_MAX, innermost};
use crate::stores::{ObjectUri, StorageError, threads};

/// Limits the library's own retries, which take minutes, to two per NameNode; `requests` retries.
const OWN_TRIES: (&str, &str) = ("dfs.client.failover.max.attempts", "3");
/// Maximum number of open files; each holds its list of blocks.
const OPEN_MAX: usize = 8;

static CLIENTS: Mutex<Option<HashMap<String, Arc<Hdfs>>>> = Mutex::new(None);

/// A file system: one NameNode, or several with one name.
pub(crate) struct Hdfs {
    pub(crate) client: Client,
    /// Open files, most recently used last.
    open: Mutex<VecDeque<Arc<OpenFile>>>,
}

/// A file in one version, and the locations of its blocks.
pub(crate) struct OpenFile {
    pub(crate) path: String,
    pub(crate) status: FileStatus,
    pub(crate) reader: FileReader,
}

impl fmt::Debug for Hdfs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hdfs")
    }
}

/// Returns the file system of a file, creating a client if necessary. Makes no request.
pub(crate) fn connected(uri: &ObjectUri) -> Result<Arc<Hdfs>, StorageError> {
    let mut clients = locked(&CLIENTS);
    let known = clients.get_or_insert_default();
    if let Some(hdfs) = known.get(uri.bucket()) {
        return Ok(Arc::clone(hdfs));
    }
    let url = format!("hdfs://{}", uri.bucket());
    // The client belongs to the threads that create it: those of requests.
    let making = async {
        ClientBuilder::new()
            .with_url(url)
            .with_config([OWN_TRIES])
            .build()
    };
    let client = threads::wait(uri, making)?.map_err(|error| settings(uri, &error))?;
    let hdfs = Arc::new(Hdfs {
        client,
        open: Mutex::default(),
    });
    known.insert(uri.bucket().to_owned(), Arc::clone(&hdfs));
    Ok(hdfs)
}

fn settings(uri: &ObjectUri, error: &HdfsError) -> StorageError {
    let reason = match error {
        HdfsError::InvalidArgument(_) => {
            format!(
                "{} is neither HOST:PORT nor a nameservice of HADOOP_CONF_DIR",
                uri.bucket()
            )
        }
        other => innermost(other),
    };
    StorageError::Settings {
        uri: uri.to_string(),
        reason,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    lock(mutex)
}

/// Identifies a version of a file. The library does not report file ids.
pub(crate) fn version_of(status: &FileStatus) -> String {
    format!("\"{}-{}\"", status.modification_time, status.length)
}

/// Makes a call with a timeout.
pub(crate) async fn ask<T>(
    call: impl Future<Output = hdfs_native::Result<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(SILENCE_MAX, call).await {
        Ok(answer) => answer.map_err(|error| failure(&error)),
        Err(_) => Err(Failure::Broken(format!(
            "no response for {} s",
            SILENCE_MAX.as_secs()
        ))),
    }
}

/// The failure for a missing file.
pub(crate) const MISSING: Failure = Failure::Answer {
    status: 404,
    code: None,
};
/// The failure for an existing or changed file.
pub(crate) const CHANGED: Failure = Failure::Answer {
    status: 412,
    code: None,
};

/// Classifies an error. Only the kind of a server's error is kept.
pub(crate) fn failure(error: &HdfsError) -> Failure {
    match error {
        HdfsError::FileNotFound(_) => MISSING,
        HdfsError::AlreadyExists(_) => CHANGED,
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => of_class(class),
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            Failure::Answer {
                status: 401,
                code: Some("SASL".to_owned()),
            }
        }
        HdfsError::IOError(error) => Failure::Broken(innermost(error)),
        HdfsError::DataTransferError(_) => {
            Failure::Broken("a data transfer from a DataNode failed".to_owned())
        }
        HdfsError::ChecksumError => {
            Failure::Broken("received bytes do not match their checksum".to_owned())
        }
        HdfsError::BlocksNotFound(_) => {
            Failure::Broken("no DataNode has the blocks of the file".to_owned())
        }
        HdfsError::OperationFailed(_) => {
            Failure::Broken("the NameNode did not complete the operation in time".to_owned())
        }
        HdfsError::InvalidRPCResponse(_) => {
            Failure::Broken("the response cannot be decoded".to_owned())
        }
        HdfsError::UnsupportedFeature(_) => {
            Failure::Odd("the file is encrypted or stored in an unsupported way".to_owned())
        }
        other => Failure::Odd(innermost(other)),
    }
}

/// Classifies exceptions of a NameNode.
fn of_class(class: &str) -> Failure {
    let name = class.rsplit(['.', '$']).next().unwrap_or_default();
    match name {
        "FileNotFoundException" => MISSING,
        "FileAlreadyExistsException" | "AlreadyBeingCreatedException" => CHANGED,
        "AccessControlException" | "AuthorizationException" | "InvalidToken" => Failure::Answer {
            status: 403,
            code: Some(name.to_owned()),
        },
        // Among the reasons: the NameNode starts or fails over, or has no DataNode.
        "SafeModeException"
        | "StandbyException"
        | "RetriableException"
        | "IOException"
        | "NotReplicatedYetException"
        | "ObserverRetryOnActiveException" => {
            Failure::Broken(format!("the NameNode returned {name}"))
        }
        _ => Failure::Odd(format!("the NameNode returned {name}")),
    }
}

impl Hdfs {
    /// Returns the status of a file; a directory counts as missing.
    pub(crate) async fn status(&self, path: &str) -> Result<FileStatus, Failure> {
        let status = ask(self.client.get_file_info(path)).await?;
        if status.isdir {
            Err(MISSING)
        } else {
            Ok(status)
        }
    }

    /// Opens a file, in the expected version if one is given. Reads return bytes of this version or fail,
    /// since another version has other blocks.
    pub(crate) async fn open(
        &self,
        path: &str,
        wanted: Option<&str>,
    ) -> Result<Arc<OpenFile>, Failure> {
        if let Some(file) = wanted.and_then(|version| self.known(path, version)) {
            return Ok(file);
        }
        let expected = match wanted {
            Some(version) => version.to_owned(),
            None => version_of(&self.status(path).await?),
        };
        let reader = ask(self.client.read(path)).await?;
        // The version before and after reading the list of blocks is the same, so the blocks are of it.
        let status = self.status(path).await?;
        if version_of(&status) != expected {
            let replaced =
                || Failure::Broken("the file was replaced while it was opened".to_owned());
            return Err(if wanted.is_some() {
                CHANGED
            } else {
                replaced()
            });
        }
        if reader.file_length() < status.length {
            return Err(Failure::Broken(
                "some blocks of the file are missing".to_owned(),
            ));
        }
        let file = Arc::new(OpenFile {
            path: path.to_owned(),
            status,
            reader,
        });
        let mut open = locked(&self.open);
        if open.len() == OPEN_MAX {
            open.pop_front();
        }
        open.push_back(Arc::clone(&file));
        Ok(file)
    }

    fn known(&self, path: &str, version: &str) -> Option<Arc<OpenFile>> {
        let mut open = locked(&self.open);
        let at = open
            .iter()
            .position(|file| file.path == path && version_of(&file.status) == version)?;
        let file = open.remove(at)?;
        open.push_back(Arc::clone(&file));
        Some(file)
    }

    /// Closes a file after an error, so that the next read opens it again.
    pub(crate) fn forget(&self, path: &str) {
        locked(&self.open).retain(|file| file.path != path);
    }

    /// Lists all files below a directory; none if it does not exist.
    pub(crate) async fn files_below(&self, directory: &str) -> Result<Vec<FileStatus>, Failure> {
        let mut found = Vec::new();
        let mut left = vec![directory.to_owned()];
        while let Some(directory) = left.pop() {
            for status in self.entries(&directory).await?.unwrap_or_default() {
                if status.isdir {
                    left.push(status.path);
                } else {
                    found.push(status);
                }
            }
        }
        Ok(found)
    }

    /// Lists a directory; `None` if it does not exist.
    pub(crate) async fn entries(
        &self,
        directory: &str,
    ) -> Result<Option<Vec<FileStatus>>, Failure> {
        let mut entries = Vec::new();
        let listing = self.client.list_status_iter(directory, false);
        loop {
            match ask(async { listing.next().await.transpose() }).await {
                // The listing of a file is the file.
                Ok(Some(status)) if status.path == directory => return Ok(None),
                Ok(Some(status)) => entries.push(status),
                Ok(None) => return Ok(Some(entries)),
                Err(failure) if failure == MISSING => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hadoop_exceptions_map_to_error_kinds() {
        let of = |class: &str| {
            failure(&HdfsError::RPCError(
                class.to_owned(),
                "a long message".to_owned(),
            ))
        };
        assert_eq!(of("java.io.FileNotFoundException"), MISSING);
        assert_eq!(
            of("org.apache.hadoop.fs.FileAlreadyExistsException"),
            CHANGED
        );
        let denied = of("org.apache.hadoop.security.AccessControlException");
        assert_eq!(denied.to_string(), "403 AccessControlException");
        let starting = of("org.apache.hadoop.hdfs.server.namenode.SafeModeException");
        assert_eq!(
            starting,
            Failure::Broken("the NameNode returned SafeModeException".to_owned())
        );
        let odd = of("org.apache.hadoop.fs.InvalidPathException");
        assert_eq!(
            odd,
            Failure::Odd("the NameNode returned InvalidPathException".to_owned())
        );
    }

    #[test]
    fn name_without_port_is_nameservice() {
        let uri = ObjectUri::parse("hdfs://nobody-knows/k".as_ref()).expect("a name");
        let error = connected(&uri)
            .expect_err("there are no settings")
            .to_string();
        assert!(
            error.contains("neither HOST:PORT nor a nameservice of HADOOP_CONF_DIR"),
            "{error}"
        );
    }
}
