//! `_SUCCESS`: the parts of an output and the claim that committed it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::{
    ClaimToken, CounterValues, JobReport, PartOutput, PartReport, PendingUpload,
};
use serde::{Deserialize, Serialize};

use super::layout::{JobPaths, SUCCESS, is_part};
use super::storage::{Storage, StorageError};
use super::trouble::Trouble;

/// Version of the text of `_SUCCESS`.
const MANIFEST_VERSION: u32 = 1;

/// The content of `_SUCCESS`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) job: JobId,
    pub(crate) name: String,
    pub(crate) counters: CounterValues,
    pub(crate) parts: Vec<CommittedPart>,
}

/// A committed part of a task's output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommittedPart {
    pub(crate) attempt: AttemptId,
    /// The name of a named output; `None` for the main output.
    pub(crate) output: Option<String>,
    pub(crate) report: PartReport,
    /// The upload to complete if the output is in a store.
    pub(crate) upload: Option<PendingUpload>,
}

#[derive(Serialize)]
struct ManifestText<'a> {
    version: u32,
    job: String,
    /// Identifies the output and shows whether an interrupted commit is complete.
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
    /// The version of the object if the output is in a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
}

impl Manifest {
    /// Lists the parts of a job in task order, followed by the parts of named outputs, sorted by name.
    pub(crate) fn new<'a>(
        job: JobId,
        name: &str,
        counters: CounterValues,
        written: impl Iterator<Item = (AttemptId, &'a PartOutput)>,
        paths: &JobPaths,
    ) -> Manifest {
        let mut parts: Vec<CommittedPart> = Vec::new();
        let mut named_parts: BTreeMap<&str, Vec<CommittedPart>> = BTreeMap::new();
        for (attempt, part) in written {
            parts.push(CommittedPart {
                attempt,
                output: None,
                report: PartReport {
                    name: paths.part_name(attempt.task),
                    records: part.records,
                    bytes: part.bytes,
                    digest: part.digest,
                },
                upload: part.upload.clone(),
            });
            for named in &part.named {
                let parts_of_output = named_parts.entry(&named.name).or_default();
                parts_of_output.push(CommittedPart {
                    attempt,
                    output: Some(named.name.clone()),
                    report: PartReport {
                        name: paths.named_part(&named.name, attempt.task),
                        records: named.records,
                        bytes: named.bytes,
                        digest: named.digest,
                    },
                    upload: named.upload.clone(),
                });
            }
        }
        parts.extend(named_parts.into_values().flatten());
        Manifest {
            job,
            name: name.to_owned(),
            counters,
            parts,
        }
    }

    /// Returns the job's report.
    pub(crate) fn report(self, wall: Duration, output: &Path) -> JobReport {
        let parts = self.parts.into_iter().map(|part| part.report).collect();
        JobReport {
            job: self.job,
            name: self.name,
            counters: self.counters,
            wall,
            parts,
            output: output.to_owned(),
        }
    }

    /// Returns the text of `_SUCCESS`; `versions` maps part names to object versions.
    pub(super) fn text(
        &self,
        claim: ClaimToken,
        versions: &BTreeMap<String, String>,
    ) -> Result<Vec<u8>, Trouble> {
        let parts = self
            .parts
            .iter()
            .map(|part| &part.report)
            .map(|part| PartText {
                name: &part.name,
                records: part.records,
                bytes: part.bytes,
                digest: format!("{:016x}", part.digest),
                etag: versions
                    .get(&part.name)
                    .map(|version| version.trim_matches('"')),
            });
        let text = serde_json::to_vec_pretty(&ManifestText {
            version: MANIFEST_VERSION,
            job: self.job.to_string(),
            claim,
            name: &self.name,
            counters: self.counters.iter().collect(),
            parts: parts.collect(),
        });
        let mut text =
            text.map_err(|error| Trouble::Final(format!("cannot write _SUCCESS: {error}")))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// Returns the names of files that a `_SUCCESS` lists beside the part files: those of named outputs. None for a file of
/// another program.
pub fn named_output_files(success: &[u8]) -> Vec<String> {
    SuccessFile::parse(success)
        .files()
        .filter(|name| !is_part(OsStr::new(name)))
        .collect()
}

/// The fields that are read from a `_SUCCESS`, including those of other versions and other programs.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SuccessFile {
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

impl SuccessFile {
    /// Reads the `_SUCCESS` of an output directory; `None` if there is none. An entry that is not a regular
    /// file, such as a symbolic link, is not followed or read and lists no files.
    pub(super) fn read(storage: &Storage) -> Result<Option<SuccessFile>, StorageError> {
        let success = Path::new(SUCCESS);
        match storage.find(success)? {
            Some(found) if found.is_file => {
                Ok(storage.read(success)?.map(|text| SuccessFile::parse(&text)))
            }
            Some(_) => Ok(Some(SuccessFile::default())),
            None => Ok(None),
        }
    }

    /// Parses a `_SUCCESS`; an unknown format lists no files.
    pub(super) fn parse(bytes: &[u8]) -> SuccessFile {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Returns the listed files, skipping names that lead out of the directory or are reserved.
    pub(super) fn files(self) -> impl Iterator<Item = String> {
        let names = self.parts.into_iter().map(|part| part.name);
        names.filter(|name| {
            !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\0'])
        })
    }

    /// Returns the job and claim that wrote it, for messages.
    pub(super) fn writer(&self) -> String {
        let job = self.job.as_deref().unwrap_or("another program");
        self.claim
            .map_or_else(|| job.to_owned(), |claim| format!("{job} (claim {claim})"))
    }
}
