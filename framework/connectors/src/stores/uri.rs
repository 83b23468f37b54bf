//! Names of objects: `s3://bucket/key`.

use std::fmt;
use std::path::Path;

use napreduce_protocol::StorageScheme;

use crate::stores::StorageError;

/// The name of an object or prefix. Keys are literal, without escapes.
///
/// ```
/// use napreduce_connectors::stores::ObjectUri;
///
/// let uri = ObjectUri::parse("s3://books/english/moby dick.txt".as_ref())?;
/// assert_eq!((uri.bucket(), uri.key()), ("books", "english/moby dick.txt"));
/// assert_eq!(uri.with_key("german/faust.txt").to_string(), "s3://books/german/faust.txt");
/// # Ok::<(), napreduce_connectors::stores::StorageError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectUri {
    scheme: StorageScheme,
    /// The text as given.
    text: String,
    /// Byte offsets of bucket and key.
    bucket: usize,
    key: usize,
}

impl ObjectUri {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// [`StorageError::BadUri`] if it has no bucket, is not UTF-8, or its key is not a valid file path.
    pub fn parse(path: &Path) -> Result<ObjectUri, StorageError> {
        let bad = |reason: &str| StorageError::BadUri {
            uri: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let Some(text) = path.to_str() else {
            return Err(bad("not UTF-8"));
        };
        let Some((scheme, rest)) = StorageScheme::split(path) else {
            return Err(bad("it must begin with s3://, gs://, abfss:// or hdfs://"));
        };
        let bucket = text.len() - rest.len();
        let key = text[bucket..]
            .find('/')
            .map_or(text.len(), |slash| bucket + slash + 1);
        let uri = ObjectUri {
            scheme,
            text: text.to_owned(),
            bucket,
            key,
        };
        if uri.bucket().is_empty() && scheme == StorageScheme::Hdfs {
            return Err(bad(
                "expected hdfs://HOST:PORT/... or hdfs://NAMESERVICE/...",
            ));
        }
        if uri.bucket().is_empty() {
            return Err(bad("it has no bucket"));
        }
        if scheme == StorageScheme::Azure && !uri.bucket().contains('@') {
            return Err(bad(
                "expected abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/...",
            ));
        }
        let parts = uri.key().strip_suffix('/').unwrap_or(uri.key());
        if !parts.is_empty() && parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(bad("keys with //, /./ or /../ are not supported"));
        }
        Ok(uri)
    }

    /// Parses a name given as text.
    pub(crate) fn of(name: &str) -> Result<ObjectUri, StorageError> {
        ObjectUri::parse(Path::new(name))
    }

    /// Returns the kind of store.
    pub fn scheme(&self) -> StorageScheme {
        self.scheme
    }

    /// Returns the bucket; for Azure, the container and its account.
    pub fn bucket(&self) -> &str {
        self.text[self.bucket..self.key].trim_end_matches('/')
    }

    /// Returns the key; empty for the whole bucket.
    pub fn key(&self) -> &str {
        &self.text[self.key..]
    }

    /// The error for a missing bucket.
    pub(crate) fn no_bucket(&self) -> StorageError {
        StorageError::NoBucket {
            uri: self.to_string(),
            bucket: self.bucket().to_owned(),
        }
    }

    /// Returns another name in the same bucket.
    #[must_use]
    pub fn with_key(&self, key: &str) -> ObjectUri {
        let root = self.text[..self.key].trim_end_matches('/');
        let text = format!("{root}/{key}");
        ObjectUri {
            scheme: self.scheme,
            key: root.len() + 1,
            bucket: self.bucket,
            text,
        }
    }
}

impl fmt::Display for ObjectUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ObjectUri, String> {
        ObjectUri::parse(Path::new(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn uris_are_split_without_unescaping() {
        for (text, bucket, key) in [
            ("s3://b", "b", ""),
            ("s3://b/", "b", ""),
            ("s3://b/a%20b/c d", "b", "a%20b/c d"),
            ("s3a://b/dir/", "b", "dir/"),
            ("gs://b/k", "b", "k"),
            ("hdfs://namenode:8020/k", "namenode:8020", "k"),
            (
                "abfss://c@a.dfs.core.windows.net/k",
                "c@a.dfs.core.windows.net",
                "k",
            ),
        ] {
            let uri = parse(text).expect("a name");
            assert_eq!(
                (uri.bucket(), uri.key(), uri.to_string()),
                (bucket, key, text.to_owned())
            );
            let other = uri.with_key("x/y");
            assert_eq!((other.bucket(), other.key()), (bucket, "x/y"));
        }
    }

    #[test]
    fn invalid_uri_is_rejected_with_reason() {
        for (text, reason) in [
            ("s3://", "has no bucket"),
            ("s3:///k", "has no bucket"),
            ("s3://b//k", "//"),
            ("s3://b/a/../k", "//"),
            ("abfss://c/k", "CONTAINER@ACCOUNT"),
            ("hdfs:///k", "hdfs://HOST:PORT/"),
            ("/srv/x", "must begin with s3://"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason) && error.contains(text), "{error}");
        }
    }
}
