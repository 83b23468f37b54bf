//! Options that all experiments share: work folder, binaries, and report format.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use napreduce_lab::report::Report;
use napreduce_lab::{Interrupt, Session, WorkSettings};
use napreduce_protocol::printing::{print, print_error};

/// The settings of an experiment and the shared options.
#[derive(Debug, Args)]
pub struct ExperimentArguments<S: Args> {
    #[command(flatten)]
    settings: S,
    #[command(flatten)]
    place: Workplace,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub struct Workplace {
    #[command(flatten)]
    work: WorkSettings,
    /// Folder of the binaries to run: nap, wordcount, terasort [default: that of nap-lab]
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Printing {
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write the report with all measured times to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
}

impl<S: Args> ExperimentArguments<S> {
    /// Runs the experiment and prints its report. Returns whether it succeeded.
    pub fn run<R: Report>(&self, experiment: impl Fn(&S, &Session) -> Result<R>) -> Result<bool> {
        let session = self.place.session()?;
        session.warn_if_busy();
        let report = experiment(&self.settings, &session)?;
        self.printing.print(&report)?;
        Ok(report.succeeded())
    }
}

impl Workplace {
    pub fn session(&self) -> Result<Session> {
        session(self.work.clone(), binaries(self.bin_dir.as_deref())?)
    }

    /// For an experiment that runs no binaries.
    pub fn session_without_binaries(&self) -> Result<Session> {
        session(self.work.clone(), PathBuf::new())
    }
}

impl Printing {
    /// Prints the report, and writes it to the file if one is named. If one fails, the other is still done:
    /// the figures may have taken an hour.
    pub fn print(&self, report: &impl Report) -> Result<()> {
        let json = report.json()?;
        let written = match &self.json {
            Some(path) => {
                fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))
            }
            None => Ok(()),
        };
        print(match self.format {
            Format::Table => report.table(),
            Format::Json => json,
        });
        written
    }
}

/// Progress goes to standard error, and signals end the experiment early.
fn session(work: WorkSettings, binaries: PathBuf) -> Result<Session> {
    let interrupt = Interrupt::listen().context("cannot catch signals")?;
    Ok(Session::new(interrupt, work, binaries, |line| {
        print_error(line)
    }))
}

/// A progress bar, which is hidden unless standard error is a terminal.
pub fn bar(runs: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(runs);
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}

/// The folder of our binaries, absolute because programs run in another folder.
fn binaries(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = named {
        return std::path::absolute(folder)
            .with_context(|| format!("cannot find {}", folder.display()));
    }
    let program =
        std::env::current_exe().context("cannot find this binary; name a folder with --bin-dir")?;
    if cfg!(debug_assertions) {
        print_error(format_args!(
            "this nap-lab and the binaries next to it are debug builds; for figures use cargo build --release"
        ));
    }
    Ok(program.parent().map(Path::to_owned).unwrap_or_default())
}
