//! Which paths are objects in a store and not files.
//!
//! Owns the beginnings of such names, and with which feature of a program each is read. Does not own stores:
//! whoever never reads an input, such as a coordinator, knows no more of them than this.

use std::path::Path;

use napreduce_engine::listed;

listed! {
    /// The kind of store that a name such as `s3://bucket/key` is in.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use napreduce_protocol::StorageScheme;
    ///
    /// assert_eq!(StorageScheme::of(Path::new("s3://logs/2026/a.txt")), Some(StorageScheme::S3));
    /// assert_eq!(StorageScheme::of(Path::new("/srv/logs/a.txt")), None);
    /// assert_eq!(StorageScheme::Gcs.feature(), "gcs");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum StorageScheme {
        /// `s3://` and `s3a://`: S3 and what speaks like it.
        S3 = "S3",
        /// `gs://`: Google Cloud Storage.
        Gcs = "Google Cloud Storage",
        /// `abfss://` and `abfs://`: Azure.
        Azure = "Azure storage",
        /// `hdfs://`: HDFS.
        Hdfs = "HDFS",
    }
}

const BEGINNINGS: [(&str, StorageScheme); 6] = [
    ("s3://", StorageScheme::S3),
    ("s3a://", StorageScheme::S3),
    ("gs://", StorageScheme::Gcs),
    ("abfss://", StorageScheme::Azure),
    ("abfs://", StorageScheme::Azure),
    ("hdfs://", StorageScheme::Hdfs),
];

impl StorageScheme {
    /// Of what the name begins with; `None` of the path of a file. A file in a folder called `s3:` is named
    /// by `./s3:/...`.
    pub fn of(path: &Path) -> Option<StorageScheme> {
        StorageScheme::split(path).map(|(scheme, _)| scheme)
    }

    /// The same, and what stands behind the two slashes.
    pub fn split(path: &Path) -> Option<(StorageScheme, &[u8])> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let begins = |(beginning, scheme): &(&str, StorageScheme)| {
            Some((*scheme, bytes.strip_prefix(beginning.as_bytes())?))
        };
        BEGINNINGS.iter().find_map(begins)
    }

    /// The feature of `napreduce` with which a program reads such objects.
    pub fn feature(self) -> &'static str {
        match self {
            StorageScheme::S3 => "s3",
            StorageScheme::Gcs => "gcs",
            StorageScheme::Azure => "azure",
            StorageScheme::Hdfs => "hdfs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_beginnings_are_of_stores() {
        let of = |name: &str| StorageScheme::of(Path::new(name));
        assert_eq!(of("s3a://b/k"), Some(StorageScheme::S3));
        assert_eq!(of("gs://b"), Some(StorageScheme::Gcs));
        assert_eq!(of("abfss://c@a.dfs.core.windows.net/k"), Some(StorageScheme::Azure));
        assert_eq!(of("hdfs://namenode:8020/k"), Some(StorageScheme::Hdfs));
        for file in ["s3", "s3:/b/k", "./s3://b/k", "/s3://b", "http://b/k", "S3://b/k", ""] {
            assert_eq!(of(file), None, "{file}");
        }
        let rest = StorageScheme::split(Path::new("s3://b//k"));
        assert_eq!(rest, Some((StorageScheme::S3, &b"b//k"[..])), "as it was spelled");
    }
}
