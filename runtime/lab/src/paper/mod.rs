//! Every figure of the papers, by one command: what is claimed, what was measured, what is said of it.
//!
//! Owns the way from entries of the registry to verdicts and a report. Does not own the simulator.
//!
//! ```text
//! registry (papers/*.toml) -> simulate -> rows (raw.jsonl) -> measure, inference -> verdict -> report
//! ```
//!
//! A verdict is made of rows alone, so that what was measured once can be judged and drawn again.

mod inference;
mod measure;
mod quantity;
mod registry;
mod report;
mod rows;
mod selection;
mod simulate;
mod verdict;
mod workloads;

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use registry::{Figure, Paper, RegistryError, papers};
pub use report::{Environment, PaperReport, ReportError, Selection};
pub use rows::{MeasuredRun, RowsError, RunKey, Runs};
pub use selection::{SelectionError, select};
pub use simulate::{PlannedRun, Repetitions, SimulateError, plan, simulate};
pub use verdict::{Judgement, Ruling, Verdict};

use crate::process::Interrupt;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct PaperSettings {
    /// Papers and figures.
    pub figures: Vec<(String, String)>,
    /// Blocks of each campaign; what its entry says, without.
    pub blocks: Option<u32>,
    pub seed: u64,
    /// The folder of the report.
    pub folder: PathBuf,
    /// Whether blocks are added to what is there.
    pub go_on: bool,
}

/// An experiment did not come to its report.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("{0} has a report already; add blocks to it with --continue, or name another folder")]
    Exists(PathBuf),
}

/// Simulates what figures need, and judges them. `advance` is called as each run ends, with how many there are.
///
/// When the interrupt comes, what was measured until then is judged.
///
/// # Errors
/// When a run cannot be made, or the report cannot be written.
pub fn paper(
    settings: &PaperSettings,
    interrupt: &Interrupt,
    mut advance: impl FnMut(usize, usize),
) -> Result<PaperReport, PaperError> {
    let (began, papers) = (Instant::now(), papers()?);
    report::make(&settings.folder)?;
    let raw = settings.folder.join(report::RAW);
    let mut selection = Selection { figures: settings.figures.clone(), looks: 1 };
    let mut runs = Runs::default();
    if settings.go_on {
        selection = Selection::read(&settings.folder)?;
        selection.looks += 1;
        runs = Runs::read_whole(&raw)?;
    } else if raw.exists() {
        return Err(PaperError::Exists(settings.folder.clone()));
    }
    let mut planned = Vec::new();
    for paper in &papers {
        let figures: Vec<&str> = selection.of(&paper.name).collect();
        let first = runs.iter().filter(|run| run.run.key.paper == paper.name);
        let first = first.map(|run| run.run.key.block + 1).max().unwrap_or(0);
        planned.extend(plan(
            paper,
            &figures,
            Repetitions { blocks: settings.blocks, first, seed: settings.seed },
        ));
    }
    selection.write(&settings.folder)?;
    let failed = |source| PaperError::Write { path: raw.clone(), source };
    let mut file = OpenOptions::new().create(true).append(true).open(&raw).map_err(failed)?;
    let mut ended = 0;
    advance(0, planned.len());
    simulate(&planned, interrupt, |run| -> Result<(), PaperError> {
        run.write(&mut file).map_err(failed)?;
        runs.add(run);
        ended += 1;
        advance(ended, planned.len());
        Ok(())
    })?;
    let report = PaperReport::new(papers.clone(), selection, runs)?;
    report.write(&settings.folder)?;
    Environment::describe(began.elapsed().as_secs_f64()).write(&settings.folder)?;
    Ok(report)
}

/// Judges and draws again what was measured.
///
/// # Errors
/// When the folder is no report.
pub fn paper_again(folder: &Path) -> Result<PaperReport, PaperError> {
    let report = PaperReport::read(papers()?, folder)?;
    report.write(folder)?;
    Ok(report)
}
