//! `nap history`: the history of ended jobs, without a cluster.

mod export;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use napreduce_history::HistoryFolder;
use napreduce_protocol::Secret;
use napreduce_web::{HistorySource, PageSource, WebServer, WebSettings};

use crate::cluster::WebAddress;
use crate::failure::usage;
use crate::ids::JobSelector;
use crate::job::ReportFile;
use crate::web::{Dashboard, ServeArguments, settings, wait, what_if_settings};

/// Serve and export the history of ended jobs, without a cluster
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap history serve /srv/nap              dashboard of a cluster directory
  nap history serve copied/history        a copy of DIR/coordinator/history
  nap history serve runs other/history    several, for comparison
  nap history export /srv/nap --output tables
  nap history report /srv/nap last --output report.html")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Serve a dashboard of histories, read-only, until interrupted
    Serve {
        /// Cluster directory, its folder `coordinator`, a copy of its history, or a folder of these
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,

        #[command(flatten)]
        serve: ServeArguments,
    },
    /// Write tables of ended jobs for other tools
    Export(export::ExportArguments),
    /// Write a report of an ended job as one HTML file
    Report {
        /// Cluster directory, its folder `coordinator`, or a copy of its history
        #[arg(value_name = "PATH")]
        path: PathBuf,

        /// job_0007, 7, last, or the name of one job
        #[arg(value_name = "JOB")]
        job: JobSelector,

        #[command(flatten)]
        file: ReportFile,
    },
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Serve { paths, serve } => serve_page(paths, serve),
        Command::Export(arguments) => export::run(arguments),
        Command::Report { path, job, file } => file.write(&export::read_one(path, job)?),
    }
}

fn serve_page(paths: &[PathBuf], serve: &ServeArguments) -> Result<()> {
    let recordings = named_histories(paths).map_err(usage)?;
    // A fresh secret: links are valid until the server ends.
    let secret = Secret::generate().context("cannot read random numbers")?;
    let settings = settings(secret, WebAddress::chosen(serve.web, None));
    // Simulation results are removed with the server; the folder has no configuration file.
    let place = tempfile::Builder::new().prefix("nap-what-if-").tempdir();
    let place = place.context(
        "cannot create a temporary folder for simulations; set TMPDIR to a writable one",
    )?;
    let what_if = Some(what_if_settings(
        place.path().join("kept"),
        place.path(),
        None,
    ));
    let settings = WebSettings {
        hosts: serve.host.clone(),
        what_if,
        ..settings
    };
    let server = match <[_; 1]>::try_from(recordings) {
        Ok([(_, source)]) => WebServer::start(&settings, source)?,
        Err(several) => WebServer::start_recordings(&settings, several)?,
    };
    wait(&Dashboard::new(server).line()?)
}

/// Opens every history, named by its folder; a number is appended to a name that is taken.
fn named_histories(paths: &[PathBuf]) -> Result<Vec<(String, Arc<dyn PageSource>)>> {
    let mut found: Vec<(String, Arc<dyn PageSource>)> = Vec::new();
    for path in paths {
        for folder in HistoryFolder::find(path)? {
            let source = HistorySource::open(&folder)?;
            let place = folder.canonicalize().unwrap_or(folder);
            let base = place
                .file_name()
                .unwrap_or(place.as_os_str())
                .to_string_lossy()
                .into_owned();
            let is_free = |name: &String| found.iter().all(|(known, _)| known != name);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let name = std::iter::once(base.clone())
                .chain(numbered)
                .find(is_free)
                .unwrap_or(base);
            found.push((name, Arc::new(source)));
        }
    }
    Ok(found)
}
