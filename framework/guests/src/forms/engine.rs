//! What an engine is told of a job, and what it says of it.
//!
//! Owns these forms. Does not own who says it (`submit`, and `hadoop` in the place of an engine).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::GuestReport;

/// Version of what an engine is told.
pub const ENGINE_FORMAT: &str = "napreduce-engine/1";
/// Begins a line of standard output that is an event: the separator of JSON text sequences.
const SEPARATOR: u8 = 0x1e;

/// `engine.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct EngineDescription {
    pub format: String,
    /// The process that submits; an engine ends when it is gone.
    pub submitter: u32,
    pub name: String,
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// `jobs/<n>.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobRequest {
    pub format: String,
    /// Which event is about it.
    pub number: u32,
    pub job: String,
    pub name: String,
    pub program: PathBuf,
    pub plan: PathBuf,
    pub files: Vec<SideFile>,
    /// For each map, the one file that it reads, if it is one and its name is text.
    pub inputs: Vec<Option<String>>,
    pub reduces: u32,
    pub attempts_max: u32,
    /// Guests write their parts here, each attempt under a name of its own.
    pub parts: PathBuf,
}

/// A file that guests find by name.
#[derive(Debug, Serialize, Deserialize)]
pub struct SideFile {
    pub name: String,
    pub path: PathBuf,
}

/// What an engine says of a job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineEvent {
    /// How far it is.
    Progress {
        number: u32,
        maps: PhaseCounts,
        #[serde(default)]
        reduces: PhaseCounts,
    },
    /// A task is done: a reduce, or the map of a map-only job.
    Report { number: u32, report: Box<GuestReport> },
    /// All tasks are done, and their reports were said.
    Done {
        number: u32,
        /// Attempts that failed, as far as the engine counts them.
        #[serde(default)]
        failed_maps: u64,
        #[serde(default)]
        failed_reduces: u64,
    },
    /// It was not run to its end.
    Failed {
        number: u32,
        /// Of one task, if it is known: as `job_0001_m_0003`.
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
    /// The number of the job that it is about.
    pub fn number(&self) -> u32 {
        match self {
            EngineEvent::Progress { number, .. }
            | EngineEvent::Report { number, .. }
            | EngineEvent::Done { number, .. }
            | EngineEvent::Failed { number, .. } => *number,
        }
    }

    /// Writes the line that says it.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        out.write_all(&[&[SEPARATOR], &text[..], b"\n"].concat())
    }

    /// What a line of standard output says; none if it is not for us.
    pub fn parse(line: &[u8]) -> Option<Result<EngineEvent, String>> {
        let text = line.strip_prefix(&[SEPARATOR])?;
        Some(serde_json::from_slice(text).map_err(|error| error.to_string()))
    }
}
