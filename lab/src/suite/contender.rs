//! Owns one who takes part in the suite: how a job is run once by it, and how its output is judged.
//! When it is its turn belongs to the experiment.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::data::SuiteInput;
use super::jobs::SuiteJob;
use super::lines::LineSet;
use crate::error::LabError;
use crate::outputs::OutputDigest;
use crate::peers::{InstalledPeer, PeerTool, Places};
use crate::process::{CommandLine, Interrupt, Sampling, run};
use crate::program::Resources;
use crate::workspace::WorkError;

const DUCKDB: &str = include_str!("formulations/suite_duckdb.py");
const POLARS: &str = include_str!("formulations/suite_polars.py");

/// What an undisturbed run with one slot has written.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) digest: OutputDigest,
    pub(super) lines: LineSet,
}

impl Reference {
    pub(super) fn read(output: &Path) -> Result<Reference, LabError> {
        Ok(Reference { digest: OutputDigest::read(output)?, lines: LineSet::of(output)? })
    }
}

/// Whether a peer has a formulation of the job.
pub(super) fn formulates(peer: PeerTool, job: SuiteJob) -> bool {
    match (peer, job) {
        // A sum of 32-bit numbers in the order of the input is no query.
        (_, SuiteJob::KmeansMovies) => false,
        (PeerTool::DuckDb, _) => true,
        (PeerTool::Polars, job) => !matches!(job, SuiteJob::Classification | SuiteJob::AdjacencyList),
        (PeerTool::Sort | PeerTool::Coreutils | PeerTool::PySpark | PeerTool::Bare, _) => false,
    }
}

/// One job with its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    pub(super) job: SuiteJob,
    pub(super) binary: &'a Path,
    pub(super) input: &'a SuiteInput,
    pub(super) centroids: &'a Path,
    pub(super) resources: Resources,
    pub(super) reduces: u32,
    pub(super) time_max: Duration,
}

impl Work<'_> {
    /// Runs our program in the empty `folder`; its output is `folder/out`. Tells the seconds it took.
    pub(super) fn run(&self, folder: &Path, interrupt: &Interrupt) -> Result<f64, LabError> {
        let places = (self.input.folder.as_path(), self.centroids);
        let output = folder.join("out");
        let command = self.job.command(self.binary, places, &output, self.resources, self.reduces);
        Ok(run(&command.within(self.time_max), folder, Sampling::Off, interrupt)?.wall_seconds)
    }

    /// What is wrong with our output; every byte counts.
    pub(super) fn judge(&self, folder: &Path, reference: &Reference) -> Result<Option<String>, LabError> {
        let same = OutputDigest::read(&folder.join("out"))? == reference.digest;
        let wrong = || "wrong output: other bytes than those of the run with one slot".to_owned();
        Ok((!same).then(wrong))
    }

    /// Has a peer do the same in the empty `folder`; its output is `folder/out`.
    pub(super) fn run_peer(
        &self,
        peer: &InstalledPeer,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<f64, LabError> {
        let output = folder.join("out");
        let made = fs::create_dir(&output);
        made.map_err(WorkError::using("make", &output))?;
        let command = self.peer_command(peer, folder, &output.join("part-r-00000"))?;
        Ok(run(&command.within(self.time_max), folder, Sampling::Off, interrupt)?.wall_seconds)
    }

    fn peer_command(
        &self,
        peer: &InstalledPeer,
        folder: &Path,
        output: &Path,
    ) -> Result<CommandLine, LabError> {
        let places = Places { input: &self.input.folder, output, scratch: folder };
        if self.job == SuiteJob::Terasort {
            // The rows are one file.
            let input = self.input.folder.join("part-00000");
            let places = Places { input: &input, ..places };
            return Ok(peer.command(crate::program::BenchmarkJob::Terasort, places, self.resources)?);
        }
        let script = if peer.peer == PeerTool::Polars { POLARS } else { DUCKDB };
        let command = peer.script("suite", script, Some(self.job.in_words()), places, self.resources)?;
        Ok(if self.job.wants_centroids() { command.arg(self.centroids) } else { command })
    }

    /// What is wrong with a peer's output; the order of its lines is free.
    pub(super) fn judge_peer(
        &self,
        folder: &Path,
        reference: &Reference,
    ) -> Result<Option<String>, LabError> {
        let difference = reference.lines.difference(&LineSet::of(&folder.join("out"))?);
        Ok(difference.map(|difference| format!("wrong output: {difference}")))
    }
}
