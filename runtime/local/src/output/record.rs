//! The content of `_temporary/claim.json`: the holder of the output directory and the state of its commit.

use std::path::Path;
use std::{fmt, io};

use napreduce_engine::JobId;
use napreduce_protocol::ClaimToken;
use serde::{Deserialize, Serialize};

use super::storage::{Storage, StorageError};
use super::trouble::Trouble;
use crate::process::ProcessIdentity;

/// Version of the file.
const CLAIM_VERSION: u32 = 1;

/// The state of a job's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step {
    /// Tasks may write below `_temporary`; nothing else was touched.
    Claimed,
    /// Parts are being put into place; this is always completed.
    Intent,
}

/// The party that completes the work of a dead holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The next coordinator of the cluster, from its journal.
    Cluster,
    /// The next run that claims the directory: the job ended with the program.
    Program,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClaimRecord {
    version: u32,
    pub(super) token: ClaimToken,
    /// Identifies the submission, so that a retry recognizes its own files.
    #[serde(with = "hexadecimal")]
    pub(super) submission: u128,
    #[serde(with = "text")]
    pub(super) job: JobId,
    pub(super) step: Step,
    pub(super) owner: Owner,
    pub(super) holder: ProcessIdentity,
    /// Number of directories created: the output directory, its parent and so on.
    pub(super) made: u32,
}

impl ClaimRecord {
    pub(super) fn new(
        token: ClaimToken,
        submission: u128,
        job: JobId,
        owner: Owner,
        holder: ProcessIdentity,
        made: u32,
    ) -> ClaimRecord {
        ClaimRecord {
            version: CLAIM_VERSION,
            token,
            submission,
            job,
            step: Step::Claimed,
            owner,
            holder,
            made,
        }
    }

    pub(super) fn text(&self) -> Result<Vec<u8>, Trouble> {
        let text = serde_json::to_vec_pretty(self);
        let mut text =
            text.map_err(|error| Trouble::Final(format!("cannot encode the claim: {error}")))?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads a claim; `None` if it is missing.
    pub(super) fn read(
        storage: &Storage,
        path: &Path,
    ) -> Result<Option<ClaimRecord>, StorageError> {
        let Some(text) = storage.read(path)? else {
            return Ok(None);
        };
        let record = ClaimRecord::parse(&text, path);
        record
            .map(Some)
            .map_err(|error| storage.failure("read", path, error))
    }

    /// Parses a file; `path` is for messages.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> io::Result<ClaimRecord> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let unreadable = |what: String| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} is not a valid claim: {what}", path.display()),
            )
        };
        let Versioned { version } =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        if version != CLAIM_VERSION {
            return Err(unreadable(format!(
                "it has version {version}, but this program reads {CLAIM_VERSION}"
            )));
        }
        serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))
    }
}

impl fmt::Display for ClaimRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.job, self.holder)
    }
}

/// Serializes a submission token as text, since not all JSON readers handle large numbers exactly.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(token: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{token:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(deserializer)?, 16)
            .map_err(serde::de::Error::custom)
    }
}

/// Serializes a job id in its printed form.
mod text {
    use napreduce_engine::JobId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(job: &JobId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(job)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<JobId, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text
            .strip_prefix("job_")
            .and_then(|number| number.parse().ok());
        number
            .map(JobId)
            .ok_or_else(|| serde::de::Error::custom(format!("invalid job id {text:?}")))
    }
}
