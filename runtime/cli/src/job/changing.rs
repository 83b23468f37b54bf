//! `nap job hold`, `release` and `set`: changes to existing jobs.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use napreduce_cluster::ClusterClient;
use napreduce_engine::JobChange;
use napreduce_protocol::requests::{ChangeJob, CommandJob};
use napreduce_protocol::{
    JobCommand, StorageScheme,
    printing::{print, print_error},
};

use super::{effect_of, for_each_live};
use crate::failure::usage;
use crate::ids::{JobSelector, select_one};

#[derive(Debug, Clone, Args)]
pub struct HoldArguments {
    /// job_0007, 7, 3-7, last, the name of one job, or all for unfinished jobs
    #[arg(value_name = "JOB", required = true)]
    pub jobs: Vec<JobSelector>,

    /// Reason, shown in the history and by `nap job explain` [default: requested by nap job ...]
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct SetArguments {
    /// job_0007, 7, 3-7, last, the name of one job, or all for unfinished jobs
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobSelector>,

    /// Priority; higher ones go first
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    priority: Option<i32>,

    /// Queue; see `nap queue list`
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,

    /// Reason, shown in the history [default: requested by nap job set]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "requested by nap job set",
        hide_default_value = true
    )]
    reason: String,
}

#[derive(Debug, Clone, Args)]
pub struct RerunArguments {
    /// job_0007, 7, last, or the name of one job
    #[arg(value_name = "JOB")]
    job: JobSelector,

    /// Output directory [default: the one of the job, which must not exist unless the job overwrites it]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Reason, shown in the history of the new job [default: requested by nap job rerun]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "requested by nap job rerun",
        hide_default_value = true
    )]
    reason: String,
}

impl SetArguments {
    /// Fails if there is nothing to change.
    pub fn check(&self) -> Result<()> {
        if self.priority.is_none() && self.queue.is_none() {
            return Err(usage(anyhow!(
                "nothing to change; give --priority or --queue"
            )));
        }
        Ok(())
    }
}

impl HoldArguments {
    pub fn reason(&self, command: JobCommand) -> String {
        self.reason
            .clone()
            .unwrap_or_else(|| format!("requested by nap job {}", command.in_words()))
    }
}

/// Submits a job again and prints the ID of the new one.
pub fn rerun(arguments: &RerunArguments, client: &mut ClusterClient) -> Result<()> {
    let job = select_one(&arguments.job, "nap job rerun", client)?;
    let absolute = |output: &PathBuf| match StorageScheme::from_path(output) {
        None => std::path::absolute(output),
        // The path of an object store is absolute.
        Some(_) => Ok(output.clone()),
    };
    let output = arguments.output.as_ref().map(absolute).transpose();
    let output = output.context("cannot find the current directory")?;
    let new = client.rerun(job, output.as_deref(), &arguments.reason)?;
    print(format_args!("{new}\n"));
    Ok(())
}

pub fn hold(
    arguments: &HoldArguments,
    command: JobCommand,
    client: &mut ClusterClient,
) -> Result<()> {
    let reason = arguments.reason(command);
    for_each_live(&arguments.jobs, client, |client, job| {
        client.ask(CommandJob {
            job,
            command,
            reason: reason.clone(),
        })?;
        print_error(format_args!("{job} {}", effect_of(command)));
        Ok(())
    })
}

pub fn set(arguments: &SetArguments, client: &mut ClusterClient) -> Result<()> {
    let change = JobChange {
        priority: arguments.priority,
        queue: arguments.queue.clone(),
    };
    for_each_live(&arguments.jobs, client, |client, job| {
        let change = change.clone();
        let reason = arguments.reason.clone();
        let changed = format!("{job} now has {}", change.in_words());
        client.ask(ChangeJob {
            job,
            change,
            reason,
        })?;
        print_error(format_args!("{changed}"));
        Ok(())
    })
}
