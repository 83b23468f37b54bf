//! `nap history`: the history of ended jobs, without a cluster.

mod export;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use napreduce_history::{Converted, HistoryFolder, convert_history};
use napreduce_protocol::{Secret, printing::print_error};
use napreduce_web::{HistorySource, PageSource, WebServer, WebSettings};

use crate::cluster::WebAddress;
use crate::failure::usage;
use crate::ids::JobSelector;
use crate::job::ReportFile;
use crate::web::{Running, ServeArguments, settings, wait, what_if_settings};

/// The history of a cluster, which may run, have ended, or be a copy
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap history serve /srv/nap                  the page of a cluster that does not run
  nap history serve copied/history            of a copy of DIR/coordinator/history, on any machine
  nap history serve runs other/history        several, to be compared: all that `nap sim --record runs` wrote, and one more
  nap history export /srv/nap --output tables             jobs, attempts, preemptions and more as csv
  nap history report /srv/nap last --output report.html   one job as a page that needs nothing else
  nap history convert /srv/nap                            recordings of a version before 0.3.0")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Serve the page of a history, or of several, until interrupted; nothing in them is locked or written
    Serve {
        /// The directory of a cluster, that of its coordinator, a copy of its history, or a folder of these
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,

        #[command(flatten)]
        serve: ServeArguments,
    },
    /// Write tables of ended jobs, for other tools
    Export(export::ExportArguments),
    /// Write a page about an ended job, one file that needs nothing else
    Report {
        /// The directory of a cluster, that of its coordinator, or a copy of its history
        #[arg(value_name = "PATH")]
        path: PathBuf,

        /// job_0007, 7, last
        #[arg(value_name = "JOB")]
        job: JobSelector,

        #[command(flatten)]
        file: ReportFile,
    },
    /// Rewrite recordings of an earlier version (.napt); the cluster must not run
    Convert {
        /// The directory of a cluster, that of its coordinator, or a copy of its history
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Serve { paths, serve } => serve_page(paths, serve),
        Command::Export(arguments) => export::run(arguments),
        Command::Report { path, job, file } => file.write(&export::read_one(path, *job)?),
        Command::Convert { path } => convert(path),
    }
}

fn convert(path: &Path) -> Result<()> {
    let converted = convert_history(path).with_context(|| format!("cannot convert {}", path.display()))?;
    for Converted { from, remarks, .. } in &converted {
        for remark in remarks {
            print_error(format_args!("{} is kept: {remark}", from.display()));
        }
    }
    let kept = converted.iter().filter(|one| !one.remarks.is_empty()).count();
    print_error(format_args!("{}: {} recordings converted", path.display(), converted.len() - kept));
    ensure!(kept == 0, "{kept} recordings were not converted completely; see the messages above");
    Ok(())
}

fn serve_page(paths: &[PathBuf], serve: &ServeArguments) -> Result<()> {
    let recordings = named_histories(paths).map_err(usage)?;
    // Nobody shares a secret with it, so what it signs counts until it ends.
    let secret = Secret::generate().context("the system gives no random numbers")?;
    let settings = settings(secret, WebAddress::chosen(serve.bind, None));
    // What is simulated there is gone with the page; no file of tables is in it.
    let place = tempfile::Builder::new().prefix("nap-what-if-").tempdir();
    let place = place.context("cannot make a folder for what-ifs; see that TMPDIR can be written")?;
    let what_if = Some(what_if_settings(place.path().join("kept"), place.path(), None));
    let settings = WebSettings { hosts: serve.host.clone(), what_if, ..settings };
    let server = match <[_; 1]>::try_from(recordings) {
        Ok([(_, source)]) => WebServer::start(&settings, source)?,
        Err(several) => WebServer::start_recordings(&settings, several)?,
    };
    wait(&Running::new(server).line()?)
}

/// Every history that is meant, by the name of its folder; one of a name that was there already has a number
/// behind it.
fn named_histories(paths: &[PathBuf]) -> Result<Vec<(String, Arc<dyn PageSource>)>> {
    let mut found: Vec<(String, Arc<dyn PageSource>)> = Vec::new();
    for path in paths {
        for folder in HistoryFolder::find(path)? {
            let source = HistorySource::open(&folder)?;
            let place = folder.canonicalize().unwrap_or(folder);
            let base = place.file_name().unwrap_or(place.as_os_str()).to_string_lossy().into_owned();
            let is_free = |name: &String| found.iter().all(|(known, _)| known != name);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let name = std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base);
            found.push((name, Arc::new(source)));
        }
    }
    Ok(found)
}
