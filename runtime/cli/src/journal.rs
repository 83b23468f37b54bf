//! `nap journal check`: reads a coordinator's journal without changes and without a coordinator.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_answers::JobAnswer;
use napreduce_cluster::{JournalCheck, ReplayError, check_journal};
use napreduce_protocol::several_lines;
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_web::clock::now_millis;
use serde_json::json;

use crate::cluster::ClusterArguments;
use crate::failure::usage;
use crate::format::FormatArguments;
use crate::job::jobs_text;
use crate::screen::Screen;

/// Check the journal of a coordinator
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap journal check             the journal of the cluster of this machine
  nap journal check /srv/nap    of another directory or copy

Exit status: 0 a coordinator can continue from it, 1 damaged, 2 not found.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Read the whole journal, without changes, and print its content or its damage
    Check {
        /// Cluster directory, or a copy of its folder `coordinator` [default: the one of --dir]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,

        #[command(flatten)]
        format: FormatArguments,
    },
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let Command::Check { directory, format } = &arguments.command;
    let directory = match directory {
        Some(directory) => directory.clone(),
        None => cluster.directory()?.path().to_owned(),
    };
    let inside = directory.join("coordinator");
    let place = if inside.is_dir() { inside } else { directory };
    let check = check_journal(&place, SchedulerConfiguration::read).map_err(|error| {
        let is_missing = matches!(error, ReplayError::NoJournal(_));
        let error =
            anyhow::Error::from(error).context(format!("the journal in {}", place.display()));
        if is_missing { usage(error) } else { error }
    })?;
    format.print(
        |screen| text(&place.display().to_string(), &check, screen),
        || answer(&check),
    )
}

fn answer(check: &JournalCheck) -> serde_json::Value {
    json!({
        "scheduler": check.scheduler,
        "begun_millis": check.begun_millis,
        "last_millis": check.last_millis,
        "has_snapshot": check.has_snapshot,
        "entries": check.entries,
        "workers": check.workers,
        "jobs": check.jobs.iter().map(JobAnswer::from).collect::<Vec<_>>(),
        "remarks": check.remarks,
    })
}

fn text(place: &str, check: &JournalCheck, screen: &Screen) -> String {
    let JournalCheck {
        scheduler,
        entries,
        workers,
        jobs,
        remarks,
        ..
    } = check;
    let before = if check.has_snapshot {
        "a snapshot and "
    } else {
        ""
    };
    let mut text = format!(
        "journal    {place}\nbegun      {}, last written {}\nscheduler  {scheduler}\nholds      {before}{entries} entries: \
         {workers} workers, {} unfinished jobs\n",
        screen.moment(check.begun_millis),
        screen.moment(check.last_millis),
        jobs.len()
    );
    for remark in remarks {
        text.push_str(&format!("remark     {}\n", several_lines(remark)));
    }
    text.push_str("a coordinator can continue from it\n");
    if !jobs.is_empty() {
        text.push_str(&format!("\n{}", jobs_text(jobs, now_millis(), screen)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sample_summary;

    #[test]
    fn journal_check_prints_summary_and_jobs() {
        let check = JournalCheck {
            scheduler: "fair".to_owned(),
            begun_millis: 1_790_000_000_000,
            last_millis: 1_790_000_060_000,
            has_snapshot: true,
            entries: 12,
            workers: 2,
            jobs: vec![sample_summary()],
            remarks: vec!["journal-00000003.log ends inside an entry".to_owned()],
        };
        let text_of_check = text("/srv/nap/coordinator", &check, &Screen::plain());
        let (head, table) = text_of_check.split_once("\n\n").expect("two parts");
        assert_eq!(
            head,
            "journal    /srv/nap/coordinator\nbegun      2026-09-21T14:13:20Z, last written 2026-09-21T14:14:20Z\n\
             scheduler  fair\nholds      a snapshot and 12 entries: 2 workers, 1 unfinished jobs\n\
             remark     journal-00000003.log ends inside an entry\na coordinator can continue from it"
        );
        assert!(
            table.starts_with("JOB") && table.contains("job_0007"),
            "{table}"
        );
        assert_eq!(answer(&check)["jobs"][0]["job"], "job_0007");
    }
}
