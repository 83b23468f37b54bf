//! Messages between the submitter and an engine: job requests and events.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::GuestReport;

/// Version of the messages to an engine.
pub const ENGINE_FORMAT: &str = "napreduce-engine/1";
/// First byte of an event line on standard output: the separator of JSON text sequences.
const SEPARATOR: u8 = 0x1e;

/// `engine.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct EngineDescription {
    pub format: String,
    /// The submitting process; the engine exits when it is gone.
    pub submitter: u32,
    pub name: String,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// `jobs/<n>.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobRequest {
    pub format: String,
    /// The number of the job in events.
    pub number: u32,
    pub job: String,
    pub name: String,
    pub program: PathBuf,
    pub plan: PathBuf,
    pub files: Vec<SideFile>,
    /// For each map, the file it reads if there is just one and its name is valid UTF-8.
    pub inputs: Vec<Option<String>>,
    pub reduces: u32,
    pub attempts_max: u32,
    /// Guests write their parts here, each attempt under its own name.
    pub parts: PathBuf,
}

/// A file that guests find by name.
#[derive(Debug, Serialize, Deserialize)]
pub struct SideFile {
    pub name: String,
    pub path: PathBuf,
}

/// An event of a job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineEvent {
    /// Progress of the job.
    Progress {
        number: u32,
        maps: PhaseCounts,
        #[serde(default)]
        reduces: PhaseCounts,
    },
    /// A completed task: a reduce, or the map of a map-only job.
    Report {
        number: u32,
        report: Box<GuestReport>,
    },
    /// All tasks are done and reported.
    Done {
        number: u32,
        /// Failed attempts, as far as the engine counts them.
        #[serde(default)]
        failed_maps: u64,
        #[serde(default)]
        failed_reduces: u64,
    },
    /// The job failed.
    Failed {
        number: u32,
        /// The failed task, if known, such as `job_0001_m_0003`.
        #[serde(default)]
        task: Option<String>,
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct PhaseCounts {
    pub done: u32,
    pub running: u32,
}

impl EngineEvent {
    /// Returns the number of the job.
    pub fn number(&self) -> u32 {
        match self {
            EngineEvent::Progress { number, .. }
            | EngineEvent::Report { number, .. }
            | EngineEvent::Done { number, .. }
            | EngineEvent::Failed { number, .. } => *number,
        }
    }

    /// Parses a line of standard output; `None` if it is not an event.
    pub fn parse(line: &[u8]) -> Option<Result<EngineEvent, String>> {
        let text = line.strip_prefix(&[SEPARATOR])?;
        Some(serde_json::from_slice(text).map_err(|error| error.to_string()))
    }
}
