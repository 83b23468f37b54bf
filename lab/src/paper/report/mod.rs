//! What is left of an experiment: a folder that says everything and from which everything can be made again.
//!
//! Owns the folder. Files: `text` the table for a terminal, `page` the HTML page, `markdown` the page of the
//! docs, `figures` the plots. Does not own verdicts.
//!
//! ```text
//! report.html, report.txt   for people
//! verdicts.json             for programs; the same bytes whenever it is made again of the same rows
//! figures/natjam-5.svg      each figure, with what was published
//! runs.jsonl.xz             a row for each job of each run: all of the above is made of it
//! report.json               which figures, and how often somebody looked at them
//! variants/                 the workload and the configuration of every variant
//! environment.json          machine, program, commit, command, time
//! ```

mod agreement;
mod figures;
mod markdown;
mod page;
mod text;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use napreduce_sim::plot::PlotError;
use serde::{Deserialize, Serialize};

use super::inference::LEVEL;
use super::live::runs_live;
use super::registry::Paper;
use super::rows::{Executor, Runs, RunsError};
use super::verdict::{Judgement, Verdict, judge};
use crate::machine::Machine;
use crate::workspace::{WorkError, write};

const SELECTION: &str = "report.json";

/// Figures with what was measured and what is said of them.
#[derive(Debug)]
pub struct PaperReport {
    papers: Vec<Paper>,
    selection: Selection,
    /// What was measured.
    pub runs: Runs,
    pub judgements: Vec<Judgement>,
}

/// Which figures were asked for, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Selection {
    /// Papers and their figures.
    pub figures: Vec<(String, String)>,
    /// How often verdicts were made of growing rows: whoever goes on until something holds is less
    /// sure of it.
    pub looks: u32,
    /// What the figures were to be run by.
    #[serde(default = "simulated")]
    pub executors: Vec<Executor>,
}

fn simulated() -> Vec<Executor> {
    vec![Executor::Simulated]
}

/// Where and how it was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Environment {
    pub machine: Machine,
    pub version: &'static str,
    /// Of the folder that the command was given in.
    pub commit: Option<String>,
    pub command: Vec<String>,
    pub seconds: f64,
}

/// A report cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    File(#[from] WorkError),
    #[error("{path}: {what}; is it the folder of a report?")]
    Malformed { path: PathBuf, what: String },
    #[error("there is no figure {figure} of {paper} any more")]
    Gone { paper: String, figure: String },
    #[error(transparent)]
    Rows(#[from] RunsError),
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl Selection {
    /// The level of error of a verdict.
    pub(super) fn level(&self) -> f64 {
        if self.looks > 1 { LEVEL / 2.0 } else { LEVEL }
    }

    /// Adds those of them that are new.
    pub(super) fn run_by(&mut self, executors: Vec<Executor>) {
        let new = executors.into_iter().filter(|executor| !self.executors.contains(executor));
        let new: Vec<Executor> = new.collect();
        self.executors.extend(new);
    }

    pub(super) fn of<'a>(&'a self, paper: &'a str) -> impl Iterator<Item = &'a str> {
        self.figures.iter().filter(move |(name, _)| name == paper).map(|(_, figure)| figure.as_str())
    }

    /// Of the folder of a report.
    pub(super) fn read(folder: &Path) -> Result<Selection, ReportError> {
        let path = folder.join(SELECTION);
        let text = fs::read_to_string(&path).map_err(WorkError::using("read", &path))?;
        serde_json::from_str(&text).map_err(|error| ReportError::Malformed { path, what: error.to_string() })
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), ReportError> {
        Ok(write(&folder.join(SELECTION), json(self))?)
    }
}

impl PaperReport {
    /// Judges the figures of a selection by what was measured.
    ///
    /// # Errors
    /// When a figure is not there any more.
    pub fn new(papers: Vec<Paper>, selection: Selection, runs: Runs) -> Result<PaperReport, ReportError> {
        let mut judgements = Vec::new();
        for (name, id) in &selection.figures {
            let paper = papers.iter().find(|paper| paper.name == *name);
            let found = paper.and_then(|paper| Some((paper, paper.figures.get(id)?)));
            let Some((paper, figure)) = found else {
                return Err(ReportError::Gone { paper: name.clone(), figure: id.clone() });
            };
            for &executor in &selection.executors {
                // One that cannot be tested is said to be so once.
                if executor.is_simulated() || runs_live(paper, figure) {
                    judgements.push(judge((paper, id, figure), &runs, executor, selection.level()));
                }
            }
        }
        Ok(PaperReport { papers, selection, runs, judgements })
    }

    /// Adds what another report has judged, and its runs.
    pub fn add(&mut self, other: PaperReport) {
        self.selection.looks = self.selection.looks.max(other.selection.looks);
        self.selection.figures.extend(other.selection.figures);
        self.selection.run_by(other.selection.executors);
        self.runs.extend(other.runs);
        self.judgements.extend(other.judgements);
    }

    /// Of a folder, judged again.
    ///
    /// # Errors
    /// When it is no report, or its rows cannot be read.
    pub fn read(papers: Vec<Paper>, folder: &Path) -> Result<PaperReport, ReportError> {
        let selection = Selection::read(folder)?;
        PaperReport::new(papers, selection, Runs::open(folder, Runs::read)?)
    }

    /// Writes everything but the rows, which were written as the runs ended.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let figures = folder.join("figures");
        make(&figures)?;
        self.selection.write(folder)?;
        write(&folder.join("verdicts.json"), self.verdicts())?;
        write(&folder.join("report.txt"), self.text())?;
        for judgement in &self.judgements {
            if let Some((paper, figure)) = self.entry(judgement) {
                let of = (paper, judgement.figure.as_str(), figure);
                figures::draw(&figures, of, &self.runs, judgement.executor)?;
            }
        }
        write(&folder.join("report.html"), self.page(&figures))?;
        self.write_variants(&folder.join("variants"))
    }

    /// All judgements as JSON.
    pub fn verdicts(&self) -> String {
        json(&self.judgements)
    }

    fn write_variants(&self, folder: &Path) -> Result<(), ReportError> {
        make(folder)?;
        let keys = self.runs.iter().map(|run| &run.run.key);
        let variants: BTreeSet<_> = keys.map(|key| (&key.paper, &key.campaign, &key.variant)).collect();
        for (paper, campaign, variant) in variants {
            let name = format!("{paper}.{campaign}.{variant}");
            let paper = self.papers.iter().find(|known| known.name == *paper);
            let Some(campaign) = paper.and_then(|paper| paper.campaigns.get(campaign)) else { continue };
            let Some(variant) = campaign.variants.get(variant) else { continue };
            if let (Ok(workload), Ok(configuration)) = (campaign.text(variant), variant.configuration_text())
            {
                write(&folder.join(format!("{name}.workload.toml")), workload)?;
                write(&folder.join(format!("{name}.configuration.toml")), configuration)?;
            }
        }
        Ok(())
    }

    fn entry(&self, judgement: &Judgement) -> Option<(&Paper, &super::registry::Figure)> {
        let paper = self.papers.iter().find(|paper| paper.name == judgement.paper)?;
        Some((paper, paper.figures.get(&judgement.figure)?))
    }

    /// Whether every output of live runs was right.
    pub fn identical(&self) -> bool {
        self.runs.iter().filter_map(|run| run.run.live.as_ref()).all(|live| live.identical)
    }

    /// How many figures have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.judgements.iter().filter(|judgement| judgement.verdict == verdict).count()
    }
}

impl Environment {
    /// Of this process.
    pub fn describe(seconds: f64) -> Environment {
        // Where there is no git, or no repository, there is no commit to name.
        let git = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
        let commit = git.ok().filter(|output| output.status.success());
        Environment {
            machine: Machine::describe(),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit
                .and_then(|output| String::from_utf8(output.stdout).ok())
                .map(|text| text.trim().to_owned()),
            command: std::env::args().skip(1).collect(),
            seconds,
        }
    }

    /// Writes it into the folder of a report.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        Ok(write(&folder.join("environment.json"), json(self))?)
    }
}

pub(super) fn make(folder: &Path) -> Result<(), ReportError> {
    Ok(fs::create_dir_all(folder).map_err(WorkError::using("make", folder))?)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data can be written as JSON") + "\n"
}
