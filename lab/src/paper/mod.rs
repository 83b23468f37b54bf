//! The figures of the papers: claims, runs that test them, and verdicts.
//!
//! ```text
//! registry (papers/*.toml) -> runs -> rows (raw.jsonl, compressed at the end) -> measure, inference -> verdict -> report
//! ```
//!
//! Verdicts and plots depend only on rows, so they can be recomputed.

mod inference;
mod measure;
mod quantity;
mod registry;
mod report;
mod rows;
mod runs;
mod selection;
mod tally;
mod verdict;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
pub use registry::{Figure, Paper, papers};
pub use report::{Environment, Origin, PaperReport, Selection};
pub use rows::{Executor, LiveRow, MeasuredRun, RunKey, Runs};
pub use runs::{PlannedRun, Repetitions, plan, runs_live, simulate};
pub use selection::select;
pub use verdict::{Judgement, Ruling, Verdict};

use crate::error::{cannot, signal};
use crate::session::Session;

#[derive(Debug, Clone)]
pub struct PaperSettings {
    /// Papers and figures.
    pub figures: Vec<(String, String)>,
    /// Blocks of each campaign, instead of the number in its entry.
    pub blocks: Option<u32>,
    pub seed: u64,
    /// For the report.
    pub folder: PathBuf,
    /// Whether blocks are added to a report.
    pub go_on: bool,
    /// Whether figures are simulated.
    pub simulate: bool,
    /// Whether their live recipes are simulated.
    pub rehearse: bool,
    /// Whether they are run live.
    pub live: bool,
}

/// Runs the campaigns of figures by every chosen executor and judges the figures. `advance` is called with the numbers of
/// ended and of all simulated runs. After an interrupt the finished runs are judged.
pub fn paper(
    settings: &PaperSettings,
    session: &Session,
    mut advance: impl FnMut(usize, usize),
) -> Result<PaperReport> {
    let began = Instant::now();
    let papers = papers()?;
    report::make(&settings.folder)?;
    let raw = settings.folder.join(rows::RAW);
    let executors = settings.executors();
    let mut selection = Selection {
        figures: settings.figures.clone(),
        looks: 1,
        executors,
    };
    let mut runs = Runs::default();
    if settings.go_on {
        selection = Selection::read(&settings.folder)?;
        selection.looks += 1;
        selection.run_by(settings.executors());
        runs = Runs::read(&settings.folder)?;
        // Start a new raw file.
        runs.pack(&settings.folder)?;
    } else if raw.exists() || settings.folder.join(rows::PACKED).exists() {
        bail!(
            "{} has a report already; add blocks to it with --continue, or name another folder",
            settings.folder.display()
        );
    }
    let (planned, planned_live) = plans(settings, &selection, &papers, &runs);
    if planned.is_empty() && planned_live.is_empty() && !settings.simulate {
        bail!("none of these figures runs live: no campaign has a live recipe; add --simulate");
    }
    selection.write(&settings.folder)?;
    let failed = cannot("write", &raw);
    let mut file = File::create_new(&raw).map_err(failed)?;
    let mut ended = 0;
    advance(0, planned.len());
    simulate(&planned, &session.interrupt, |run| {
        run.write(&mut file).map_err(failed)?;
        runs.add(run);
        ended += 1;
        advance(ended, planned.len());
        Ok(())
    })?;
    if !planned_live.is_empty() {
        let ran = runs::run_live(&planned_live, session, |run| {
            run.write(&mut file).map_err(failed)?;
            runs.add(run);
            Ok(())
        });
        match ran {
            // The finished runs are judged.
            Err(error) if signal(&error).is_some() => {}
            ran => ran?,
        }
    }
    Environment::describe(began.elapsed().as_secs_f64()).write(&settings.folder)?;
    let mut report = PaperReport::new(papers.clone(), selection, runs)?;
    report.origins.push(Origin::read(&settings.folder)?);
    report.write(&settings.folder)?;
    report.runs.pack(&settings.folder)?;
    Ok(report)
}

/// The runs in simulated time, at either scale, and the live runs.
fn plans<'a>(
    settings: &PaperSettings,
    selection: &Selection,
    papers: &'a [Paper],
    runs: &Runs,
) -> (Vec<PlannedRun<'a>>, Vec<PlannedRun<'a>>) {
    let mut planned = Vec::new();
    let mut planned_live = Vec::new();
    for paper in papers {
        let figures: Vec<&str> = selection.of(&paper.name).collect();
        let repetitions = |executor| Repetitions {
            blocks: settings.blocks,
            first: first_block(runs, paper, executor),
            seed: settings.seed,
        };
        for executor in settings.executors() {
            let to = if executor == Executor::Live {
                &mut planned_live
            } else {
                &mut planned
            };
            to.extend(plan(paper, &figures, executor, repetitions(executor)));
        }
    }
    (planned, planned_live)
}

fn first_block(runs: &Runs, paper: &Paper, executor: Executor) -> u32 {
    let of_it = runs.iter().map(|run| &run.run.key);
    let of_it = of_it.filter(|key| key.paper == paper.name && key.executor == executor);
    of_it.map(|key| key.block + 1).max().unwrap_or(0)
}

impl PaperSettings {
    fn executors(&self) -> Vec<Executor> {
        let asked = [self.simulate, self.rehearse, self.live]
            .into_iter()
            .zip(Executor::ALL);
        asked
            .filter(|(asked, _)| *asked)
            .map(|(_, executor)| executor)
            .collect()
    }
}

/// Judges and draws the report in each folder again; the returned report is of all of them.
pub fn paper_again(folders: &[impl AsRef<Path>]) -> Result<PaperReport> {
    let mut all = PaperReport::new(papers()?, Selection::default(), Runs::default())?;
    for folder in folders {
        let report = PaperReport::read(papers()?, folder.as_ref())?;
        report.write(folder.as_ref())?;
        all.add(report);
    }
    Ok(all)
}
