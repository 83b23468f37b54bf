//! Distinguishes object names from file paths by their scheme. Processes that read no input, such as a
//! coordinator, need only this.

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
    /// assert_eq!(StorageScheme::from_path(Path::new("s3://logs/2026/a.txt")), Some(StorageScheme::S3));
    /// assert_eq!(StorageScheme::from_path(Path::new("/srv/logs/a.txt")), None);
    /// assert_eq!(StorageScheme::Gcs.feature(), "gcs");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum StorageScheme {
        /// `s3://` and `s3a://`: S3 and compatible stores.
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
    /// Returns the path's scheme; `None` for a file. A file in a directory named `s3:` is written
    /// `./s3:/...`.
    pub fn from_path(path: &Path) -> Option<StorageScheme> {
        StorageScheme::split(path).map(|(scheme, _)| scheme)
    }

    /// Returns the scheme and the part after the two slashes.
    pub fn split(path: &Path) -> Option<(StorageScheme, &[u8])> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let begins = |(beginning, scheme): &(&str, StorageScheme)| {
            Some((*scheme, bytes.strip_prefix(beginning.as_bytes())?))
        };
        BEGINNINGS.iter().find_map(begins)
    }

    /// The `napreduce` feature that is needed to read such objects.
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
    fn storage_scheme_needs_whole_prefix() {
        let of = |name: &str| StorageScheme::from_path(Path::new(name));
        assert_eq!(of("s3a://b/k"), Some(StorageScheme::S3));
        assert_eq!(of("gs://b"), Some(StorageScheme::Gcs));
        assert_eq!(
            of("abfss://c@a.dfs.core.windows.net/k"),
            Some(StorageScheme::Azure)
        );
        assert_eq!(of("hdfs://namenode:8020/k"), Some(StorageScheme::Hdfs));
        for file in [
            "s3",
            "s3:/b/k",
            "./s3://b/k",
            "/s3://b",
            "http://b/k",
            "S3://b/k",
            "",
        ] {
            assert_eq!(of(file), None, "{file}");
        }
        let rest = StorageScheme::split(Path::new("s3://b//k"));
        assert_eq!(
            rest,
            Some((StorageScheme::S3, &b"b//k"[..])),
            "as it was spelled"
        );
    }
}
