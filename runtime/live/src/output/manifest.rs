//! `_SUCCESS`: what an output consists of, and whose commit put it there.
//!
//! Owns the text, and reading what an earlier job wrote. Does not own when it gets into place (`commit`).

use std::collections::BTreeMap;

use napreduce_core::{AttemptId, JobId};
use napreduce_protocol::{ClaimToken, CounterValues, PartReport};
use serde::{Deserialize, Serialize};

use super::trouble::Trouble;

/// Version of the text of `_SUCCESS`.
const MANIFEST_VERSION: u32 = 1;

/// What `_SUCCESS` says.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) job: JobId,
    pub(crate) name: String,
    pub(crate) counters: CounterValues,
    pub(crate) parts: Vec<CommittedPart>,
}

/// A part and the attempt whose part it is.
#[derive(Debug, Clone)]
pub(crate) struct CommittedPart {
    pub(crate) attempt: AttemptId,
    /// Of an output with a name: which.
    pub(crate) output: Option<String>,
    pub(crate) report: PartReport,
}

#[derive(Serialize)]
struct ManifestText<'a> {
    version: u32,
    job: String,
    /// Tells outputs of one job apart, and whether a commit that was cut short is complete.
    claim: ClaimToken,
    name: &'a str,
    counters: BTreeMap<&'a str, u64>,
    parts: Vec<PartText<'a>>,
}

#[derive(Serialize)]
struct PartText<'a> {
    name: &'a str,
    records: u64,
    bytes: u64,
    /// xxh3-64 of the file, in hexadecimal.
    digest: String,
}

impl Manifest {
    pub(super) fn text(&self, claim: ClaimToken) -> Result<Vec<u8>, Trouble> {
        let parts = self.parts.iter().map(|part| &part.report).map(|part| PartText {
            name: &part.name,
            records: part.records,
            bytes: part.bytes,
            digest: format!("{:016x}", part.digest),
        });
        let text = serde_json::to_vec_pretty(&ManifestText {
            version: MANIFEST_VERSION,
            job: self.job.to_string(),
            claim,
            name: &self.name,
            counters: self.counters.iter().collect(),
            parts: parts.collect(),
        });
        let mut text = text.map_err(|error| Trouble::Final(format!("cannot write _SUCCESS: {error}")))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// What can be read of a `_SUCCESS`, whoever wrote it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Written {
    #[serde(default)]
    pub(super) claim: Option<ClaimToken>,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    parts: Vec<WrittenPart>,
}

#[derive(Debug, Deserialize)]
struct WrittenPart {
    name: String,
}

impl Written {
    /// One of another program says nothing that is understood.
    pub(super) fn parse(bytes: &[u8]) -> Written {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// The files it lists; names that lead elsewhere are left out.
    pub(super) fn files(self) -> impl Iterator<Item = String> {
        let names = self.parts.into_iter().map(|part| part.name);
        names.filter(|name| !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\0']))
    }

    /// Whose output it is, for people.
    pub(super) fn writer(&self) -> String {
        let job = self.job.as_deref().unwrap_or("another program");
        self.claim.map_or_else(|| job.to_owned(), |claim| format!("{job} (claim {claim})"))
    }
}
