//! What an engine is told of a job, and what it says of it.
//!
//! Owns these forms. Does not own frames, plans and reports, which guests use (`forms`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::forms::GuestReport;

/// Version of what an engine is told.
pub(super) const ENGINE_FORMAT: &str = "napreduce-engine/1";
/// Begins a line of standard output that is an event: the separator of JSON text sequences.
pub(super) const SEPARATOR: u8 = 0x1e;

/// `engine.json`.
#[derive(Debug, Serialize)]
pub(super) struct EngineDescription<'a> {
    pub(super) format: &'static str,
    /// The process that submits; an engine ends when it is gone.
    pub(super) submitter: u32,
    pub(super) name: &'a str,
    pub(super) settings: &'a BTreeMap<String, String>,
}

/// `jobs/<n>.json`.
#[derive(Debug, Serialize)]
pub(super) struct JobRequest {
    pub(super) format: &'static str,
    /// Which event is about it.
    pub(super) number: u32,
    pub(super) job: String,
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) plan: PathBuf,
    pub(super) files: Vec<SideFile>,
    /// For each map, the one file that it reads, if it is one and its name is text.
    pub(super) inputs: Vec<Option<String>>,
    pub(super) reduces: u32,
    pub(super) attempts_max: u32,
    /// Guests write their parts here, each attempt under a name of its own.
    pub(super) parts: String,
}

/// A file that guests find by name.
#[derive(Debug, Serialize)]
pub(super) struct SideFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// What an engine says of a job.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum EngineEvent {
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

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct PhaseCounts {
    pub(super) done: u32,
    pub(super) running: u32,
}

impl EngineEvent {
    /// The number of the job that it is about.
    pub(super) fn number(&self) -> u32 {
        match self {
            EngineEvent::Progress { number, .. }
            | EngineEvent::Report { number, .. }
            | EngineEvent::Done { number, .. }
            | EngineEvent::Failed { number, .. } => *number,
        }
    }

    /// What a line of standard output says; none if it is not for us.
    pub(super) fn parse(line: &[u8]) -> Option<Result<EngineEvent, String>> {
        let text = line.strip_prefix(&[SEPARATOR])?;
        Some(serde_json::from_slice(text).map_err(|error| error.to_string()))
    }
}
