//! Names of objects: `s3://bucket/key`.

use std::fmt;
use std::path::Path;

use napreduce_protocol::StorageScheme;

use crate::stores::StorageError;

/// The name of an object, or of what begins with it. Keys are as they are, without escapes.
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
    /// All of it, as it was given.
    text: String,
    /// Where bucket and key begin in it; both end where the next thing begins.
    bucket: usize,
    key: usize,
}

impl ObjectUri {
    /// Takes a name apart.
    ///
    /// # Errors
    ///
    /// [`StorageError::BadUri`] of what names no bucket, is not UTF-8, or has a key that no
    /// directory could have.
    pub fn parse(path: &Path) -> Result<ObjectUri, StorageError> {
        let bad = |reason: &str| StorageError::BadUri {
            uri: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let Some(text) = path.to_str() else { return Err(bad("it is not UTF-8")) };
        let Some((scheme, rest)) = StorageScheme::split(path) else {
            return Err(bad("it does not begin with s3://, gs://, abfss:// or hdfs://"));
        };
        let bucket = text.len() - rest.len();
        let key = text[bucket..].find('/').map_or(text.len(), |slash| bucket + slash + 1);
        let uri = ObjectUri { scheme, text: text.to_owned(), bucket, key };
        if uri.bucket().is_empty() && scheme == StorageScheme::Hdfs {
            return Err(bad("it is to be hdfs://HOST:PORT/... or hdfs://NAMESERVICE/..."));
        }
        if uri.bucket().is_empty() {
            return Err(bad("it names no bucket"));
        }
        if scheme == StorageScheme::Azure && !uri.bucket().contains('@') {
            return Err(bad("it is to be abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/..."));
        }
        let parts = uri.key().strip_suffix('/').unwrap_or(uri.key());
        if !parts.is_empty() && parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(bad("keys with //, /./ or /../ are not read"));
        }
        Ok(uri)
    }

    /// The object of a name that is text.
    pub(crate) fn of(name: &str) -> Result<ObjectUri, StorageError> {
        ObjectUri::parse(Path::new(name))
    }

    /// The kind of store.
    pub fn scheme(&self) -> StorageScheme {
        self.scheme
    }

    /// The bucket; of Azure the container and its account.
    pub fn bucket(&self) -> &str {
        self.text[self.bucket..self.key].trim_end_matches('/')
    }

    /// What stands behind the bucket; empty for all of it.
    pub fn key(&self) -> &str {
        &self.text[self.key..]
    }

    /// That its bucket is not there.
    pub(crate) fn no_bucket(&self) -> StorageError {
        StorageError::NoBucket { uri: self.to_string(), bucket: self.bucket().to_owned() }
    }

    /// Another name in the same bucket.
    #[must_use]
    pub fn with_key(&self, key: &str) -> ObjectUri {
        let root = self.text[..self.key].trim_end_matches('/');
        let text = format!("{root}/{key}");
        ObjectUri { scheme: self.scheme, key: root.len() + 1, bucket: self.bucket, text }
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
            ("abfss://c@a.dfs.core.windows.net/k", "c@a.dfs.core.windows.net", "k"),
        ] {
            let uri = parse(text).expect("a name");
            assert_eq!((uri.bucket(), uri.key(), uri.to_string()), (bucket, key, text.to_owned()));
            let other = uri.with_key("x/y");
            assert_eq!((other.bucket(), other.key()), (bucket, "x/y"));
        }
    }

    #[test]
    fn invalid_uri_is_rejected_with_reason() {
        for (text, reason) in [
            ("s3://", "names no bucket"),
            ("s3:///k", "names no bucket"),
            ("s3://b//k", "//"),
            ("s3://b/a/../k", "//"),
            ("abfss://c/k", "CONTAINER@ACCOUNT"),
            ("hdfs:///k", "hdfs://HOST:PORT/"),
            ("/srv/x", "does not begin with s3://"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason) && error.contains(text), "{error}");
        }
    }
}
