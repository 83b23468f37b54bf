//! Where an experiment works, and how its report is printed.
//!
//! Owns the arguments that every experiment has. Does not own what is in a report.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use napreduce_lab::WorkSettings;
use serde::Serialize;

/// What every experiment is asked for.
#[derive(Debug, Args)]
pub struct Workplace {
    /// Where clusters, inputs and outputs go, in a folder of their own that is removed at the end [default:
    /// the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,

    /// Leave them in place
    #[arg(long)]
    pub keep: bool,

    /// The folder of the binaries that are measured: nap, wordcount, terasort [default: this one's]
    #[arg(long, value_name = "DIR")]
    pub bin_dir: Option<PathBuf>,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    Table,
    Json,
}

impl Workplace {
    pub fn work(&self) -> WorkSettings {
        WorkSettings { parent: self.work.clone(), keep: self.keep }
    }

    pub fn binaries(&self) -> Result<PathBuf> {
        binaries(self.bin_dir.as_deref())
    }

    /// Prints a report to standard output and, if asked for, writes it to a file as JSON. Neither is left out
    /// because the other fails: the figures may have taken an hour.
    pub fn print<R: Serialize>(
        &self,
        report: &R,
        table: impl Fn() -> String,
        file: Option<&Path>,
    ) -> Result<()> {
        let json = serde_json::to_string_pretty(report).context("cannot write the report as JSON")? + "\n";
        let written = match file {
            Some(path) => fs::write(path, &json).with_context(|| format!("cannot write {}", path.display())),
            None => Ok(()),
        };
        let text = match self.format {
            Format::Table => table(),
            Format::Json => json,
        };
        io::stdout().write_all(text.as_bytes()).context("cannot print the report")?;
        written
    }
}

/// The folder of our binaries, absolute because programs run in another folder.
pub fn binaries(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = named {
        return std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()));
    }
    let program = std::env::current_exe().context("cannot find this binary; name a folder with --bin-dir")?;
    if cfg!(debug_assertions) {
        eprintln!(
            "this nap-lab and the binaries beside it are debug builds; for figures use cargo build --release"
        );
    }
    Ok(program.parent().map(Path::to_owned).unwrap_or_default())
}
