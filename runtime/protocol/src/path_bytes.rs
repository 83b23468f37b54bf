//! Serde encoding of paths as bytes: unlike the standard one, it accepts names that are not UTF-8.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text in human-readable formats if the path is UTF-8; else bytes.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) if serializer.is_human_readable() => serializer.serialize_str(text),
        _ => path.as_os_str().as_bytes().serialize(serializer),
    }
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Readable {
        Text(String),
        Bytes(Vec<u8>),
    }
    if !deserializer.is_human_readable() {
        return Vec::<u8>::deserialize(deserializer).map(path);
    }
    Ok(match Readable::deserialize(deserializer)? {
        Readable::Text(text) => PathBuf::from(text),
        Readable::Bytes(bytes) => path(bytes),
    })
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// For the inputs of a reduce.
pub mod inputs {
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    use napreduce_engine::AttemptId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        inputs: &[(AttemptId, PathBuf)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            inputs
                .iter()
                .map(|(attempt, input)| (attempt, input.as_os_str().as_bytes())),
        )
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(AttemptId, PathBuf)>, D::Error> {
        let inputs = Vec::<(AttemptId, Vec<u8>)>::deserialize(deserializer)?;
        Ok(inputs
            .into_iter()
            .map(|(attempt, bytes)| (attempt, super::path(bytes)))
            .collect())
    }
}

/// For several paths.
pub mod list {
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| path.as_os_str().as_bytes()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Vec<u8>>::deserialize(deserializer)?
            .into_iter()
            .map(super::path)
            .collect())
    }
}

/// For an optional path.
pub mod optional {
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref()
            .map(|path| path.as_os_str().as_bytes())
            .serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Vec<u8>>::deserialize(deserializer)?.map(super::path))
    }
}
