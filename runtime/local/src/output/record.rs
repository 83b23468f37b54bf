//! What `_temporary/claim.json` says: whose the output directory is, and how far its commit has come.
//!
//! Owns the token and the form of the file. Does not own when it is written (`claim`, `commit`).

use std::path::Path;
use std::{fmt, io};

use napreduce_engine::JobId;
use napreduce_protocol::ClaimToken;
use napreduce_task::ProcessIdentity;
use serde::{Deserialize, Serialize};

/// Version of the file.
const CLAIM_VERSION: u32 = 1;

/// How far a job is with its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step {
    /// Its tasks may write below `_temporary`; nothing else was touched.
    Claimed,
    /// Its parts are being put into place, which is always brought to its end.
    Intent,
}

/// Who brings to an end what its holder cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The next coordinator of the cluster, from its journal.
    Cluster,
    /// Whoever wants the directory next: the job ended with the program.
    Program,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClaimRecord {
    version: u32,
    pub(super) token: ClaimToken,
    /// The submitter's token: what an earlier try of the same submission left is its own.
    #[serde(with = "hexadecimal")]
    pub(super) submission: u128,
    #[serde(with = "text")]
    pub(super) job: JobId,
    pub(super) step: Step,
    pub(super) owner: Owner,
    pub(super) holder: ProcessIdentity,
    /// How many directories the claim made: the output directory, its parent and so on.
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

    pub(super) fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads what a file holds; `path` is for people.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> io::Result<ClaimRecord> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let unreadable = |what: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is no claim: {what}", path.display()))
        };
        let Versioned { version } =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        if version != CLAIM_VERSION {
            return Err(unreadable(format!(
                "it has version {version}, and this program reads {CLAIM_VERSION}"
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

/// A token of a submission as text: JSON numbers are not read exactly everywhere.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(token: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{token:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        u128::from_str_radix(&String::deserialize(deserializer)?, 16).map_err(serde::de::Error::custom)
    }
}

/// A job as it prints everywhere.
mod text {
    use napreduce_engine::JobId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(job: &JobId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(job)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JobId, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_prefix("job_").and_then(|number| number.parse().ok());
        number.map(JobId).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no job")))
    }
}
