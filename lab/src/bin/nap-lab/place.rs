//! Where an experiment works, and how its report is printed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use napreduce_lab::report::Report;
use napreduce_lab::{Interrupt, Session, WorkSettings};
use napreduce_protocol::printing::{print, print_error};

/// What an experiment is asked for.
#[derive(Debug, Args)]
pub struct Asked<S: Args> {
    #[command(flatten)]
    pub settings: S,
    #[command(flatten)]
    place: Workplace,
}

/// The same, of one whose report may go to a file as well.
#[derive(Debug, Args)]
pub struct Saved<S: Args> {
    #[command(flatten)]
    asked: Asked<S>,
    /// Also write the report with every single time to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What every experiment is asked for.
#[derive(Debug, Args)]
pub struct Workplace {
    #[command(flatten)]
    work: WorkSettings,
    /// The folder of the binaries that are measured: nap, wordcount, terasort [default: this one's]
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

impl<S: Args> Asked<S> {
    /// Runs the experiment and prints its report; whether it found what it should.
    pub fn run<R: Report>(&self, experiment: impl Fn(&S, &Session) -> Result<R>) -> Result<bool> {
        self.run_and_save(None, experiment)
    }

    fn run_and_save<R: Report>(
        &self,
        json: Option<&Path>,
        experiment: impl Fn(&S, &Session) -> Result<R>,
    ) -> Result<bool> {
        let report = experiment(&self.settings, &self.place.session()?)?;
        self.place.print(&report, json)?;
        Ok(report.succeeded())
    }
}

impl<S: Args> Saved<S> {
    pub fn run<R: Report>(&self, experiment: impl Fn(&S, &Session) -> Result<R>) -> Result<bool> {
        self.asked.run_and_save(self.json.as_deref(), experiment)
    }
}

impl Workplace {
    pub fn session(&self) -> Result<Session> {
        let session = session(self.work.clone(), binaries(self.bin_dir.as_deref())?)?;
        session.warn_if_busy();
        Ok(session)
    }

    /// Prints a report to standard output and, if asked for, writes it to a file as JSON. Neither is left out
    /// because the other fails: the figures may have taken an hour.
    pub fn print(&self, report: &impl Report, file: Option<&Path>) -> Result<()> {
        let json = report.json()?;
        let written = match file {
            Some(path) => fs::write(path, &json).with_context(|| format!("cannot write {}", path.display())),
            None => Ok(()),
        };
        print(match self.format {
            Format::Table => report.table(),
            Format::Json => json,
        });
        written
    }
}

/// What an experiment does is told on standard error, and it ends early on a signal.
pub fn session(work: WorkSettings, binaries: PathBuf) -> Result<Session> {
    let interrupt = Interrupt::listen().context("cannot catch signals")?;
    Ok(Session::new(interrupt, work, binaries, |line| print_error(line)))
}

/// A bar of so many runs; it is hidden where standard error is no terminal.
pub fn bar(runs: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(runs);
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}

/// The folder of our binaries, absolute because programs run in another folder.
pub fn binaries(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = named {
        return std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()));
    }
    let program = std::env::current_exe().context("cannot find this binary; name a folder with --bin-dir")?;
    if cfg!(debug_assertions) {
        print_error(format_args!(
            "this nap-lab and the binaries beside it are debug builds; for figures use cargo build --release"
        ));
    }
    Ok(program.parent().map(Path::to_owned).unwrap_or_default())
}
