//! `nap job hold`, `release` and `set`: changes to existing jobs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use napreduce_cluster::ClusterClient;
use napreduce_engine::JobChange;
use napreduce_protocol::requests::{ChangeJob, CommandJob};
use napreduce_protocol::{
    JobCommand, StorageScheme,
    printing::{print, print_error},
};

use super::for_each_live;
use crate::ids::{JobSelector, select_one};

#[derive(Debug, Clone, Args)]
pub struct HoldArguments {
    /// job_0007, 7, 3-7, last; all means those that have not ended
    #[arg(value_name = "JOB", required = true)]
    pub jobs: Vec<JobSelector>,

    /// Shown in their history and to whoever asks why they do not get on [default: "asked for by nap
    /// job ..."]
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[group(id = "change", required = true, multiple = true, args = ["priority", "queue"])]
pub struct SetArguments {
    /// job_0007, 7, 3-7, last; all means those that have not ended
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobSelector>,

    /// Higher is more important
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    priority: Option<i32>,

    /// Where it belongs from now on; nap queue list says which queues there are
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,

    /// Shown in their history [default: asked for by nap job set]
    #[arg(long, value_name = "TEXT", default_value = "asked for by nap job set", hide_default_value = true)]
    reason: String,
}

#[derive(Debug, Clone, Args)]
pub struct RerunArguments {
    /// job_0007, 7, last
    #[arg(value_name = "JOB")]
    job: JobSelector,

    /// Where its output goes [default: where that of the job was to go, which must not be there, unless it
    /// was to be overwritten]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Shown in the history of the new job [default: asked for by nap job rerun]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "asked for by nap job rerun",
        hide_default_value = true
    )]
    reason: String,
}

impl HoldArguments {
    pub fn reason(&self, command: JobCommand) -> String {
        self.reason.clone().unwrap_or_else(|| format!("asked for by nap job {}", command.in_words()))
    }
}

/// Submits a job once more; its number is printed.
pub fn rerun(arguments: &RerunArguments, client: &mut ClusterClient) -> Result<()> {
    let job = select_one(arguments.job, "nap job rerun", client)?;
    let absolute = |output: &PathBuf| match StorageScheme::of(output) {
        None => std::path::absolute(output),
        // It has the same name everywhere.
        Some(_) => Ok(output.clone()),
    };
    let output = arguments.output.as_ref().map(absolute).transpose();
    let output = output.context("the current directory cannot be told")?;
    let new = client.rerun(job, output.as_deref(), &arguments.reason)?;
    print(format_args!("{new}\n"));
    Ok(())
}

pub fn hold(arguments: &HoldArguments, command: JobCommand, client: &mut ClusterClient) -> Result<()> {
    let reason = arguments.reason(command);
    for_each_live(&arguments.jobs, client, |client, job| {
        client.ask(CommandJob { job, command, reason: reason.clone() })?;
        match command {
            JobCommand::Hold => print_error(format_args!("{job} is held; what runs of it is let finish")),
            _ => print_error(format_args!("{job} goes on")),
        }
        Ok(())
    })
}

pub fn set(arguments: &SetArguments, client: &mut ClusterClient) -> Result<()> {
    let change = JobChange { priority: arguments.priority, queue: arguments.queue.clone() };
    for_each_live(&arguments.jobs, client, |client, job| {
        let (change, reason) = (change.clone(), arguments.reason.clone());
        let changed = format!("{job} has {} from now on", change.in_words());
        client.ask(ChangeJob { job, change, reason })?;
        print_error(format_args!("{changed}"));
        Ok(())
    })
}
