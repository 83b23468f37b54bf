//! `nap down`: ends the cluster that `nap up` runs in a directory, and waits until its processes are gone.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use napreduce_cluster::{
    ClientError, ClusterClient, ClusterDirectory, ClusterPlace, Patience, RunningProcess,
};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::requests::{ListJobs, ListWorkers};
use napreduce_protocol::{several_lines, whole_millis};
use rustix::process::Signal;
use serde::Serialize;

use crate::cluster::ClusterArguments;
use crate::failure::usage;
use crate::format::{FormatArguments, span};
use crate::ids::JOBS_MAX;
use crate::worker::is_gone;

/// Limit on the answers of the coordinator; a cluster that does not answer is ended all the same.
const ANSWER: Duration = Duration::from_secs(2);
/// Interval of messages while the command waits.
const TELL: Duration = Duration::from_secs(10);
/// Unfinished jobs to name.
const NAMED_MAX: usize = 10;

/// End the cluster that nap up runs in a directory
///
/// The workers checkpoint their tasks, as on SIGTERM. The command waits until coordinator and workers have ended.
/// Unfinished jobs continue with the next `nap up` in the same directory.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap down
  nap down --dir /srv/nap
  nap down --now            tasks that run lose the work since their checkpoint
  nap down --format json

Exit status: 0 ended, 1 failed, 2 wrong usage, 69 no nap up runs there.")]
pub struct Arguments {
    /// Do not checkpoint running tasks; they start again with the next nap up
    #[arg(long)]
    now: bool,

    #[command(flatten)]
    format: FormatArguments,
}

/// What the command has ended.
#[derive(Debug, PartialEq, Serialize)]
struct EndedCluster {
    directory: PathBuf,
    /// The process of `nap up`.
    process: u32,
    /// Names of the workers; `null` if the coordinator did not answer.
    workers: Option<Vec<String>>,
    /// Jobs that continue with the next `nap up`; `null` if the coordinator did not answer.
    unfinished: Option<Vec<UnfinishedJob>>,
    took_millis: u64,
}

#[derive(Debug, PartialEq, Serialize)]
struct UnfinishedJob {
    job: String,
    name: String,
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    if cluster.coordinator.is_some() {
        return Err(usage(anyhow!(
            "--coordinator: nap down ends a cluster on this machine; leave it out, or name a directory with --dir"
        )));
    }
    let directory = cluster.directory()?;
    let up = directory.running_up().map_err(ClientError::from)?;
    let began = Instant::now();
    let (workers, unfinished) = contents(&directory).unzip();
    let signal = if arguments.now {
        ending_at_once(up.id())?
    } else {
        Signal::TERM
    };
    let daemons = children_of(up.id());
    print_error(format_args!(
        "nap up (process {}) is ending in {}",
        up.id(),
        directory.path().display()
    ));
    up.signal(signal).context("cannot end nap up")?;
    wait_for(&up, "nap up", began)?;
    // It ends them in order, unless it was killed meanwhile.
    for daemon in &daemons {
        wait_for(daemon, "a daemon of nap up", began)?;
    }
    let ended = EndedCluster {
        directory: directory.path().to_owned(),
        process: up.id(),
        workers,
        unfinished,
        took_millis: whole_millis(began.elapsed()),
    };
    arguments.format.print(|_| text(&ended), || &ended)
}

/// Asks for the names of the workers and the unfinished jobs; `None` if the coordinator does not answer.
fn contents(directory: &ClusterDirectory) -> Option<(Vec<String>, Vec<UnfinishedJob>)> {
    let patience = Patience {
        first: ANSWER,
        later: ANSWER,
        absent: Duration::ZERO,
        answer: ANSWER,
        tell: false,
        ..Patience::default()
    };
    let mut client =
        ClusterClient::connect(ClusterPlace::Directory(directory.clone()), patience).ok()?;
    let mut workers = client.ask(ListWorkers).ok()?;
    workers.retain(|worker| !is_gone(worker));
    workers.sort_by(|one, other| one.name.cmp(&other.name));
    let mut jobs = client.ask(ListJobs { limit: JOBS_MAX }).ok()?;
    jobs.retain(|job| !job.phase.has_ended());
    let unfinished = jobs.into_iter().map(|job| UnfinishedJob {
        job: job.job.to_string(),
        name: job.name,
    });
    Some((
        workers.into_iter().map(|worker| worker.name).collect(),
        unfinished.collect(),
    ))
}

/// Returns the signal that ends `nap up` without checkpoints. It has none if it was started in the background of a
/// script under `nohup`, since both are ignored then.
fn ending_at_once(process: u32) -> Result<Signal> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))
        .context("cannot read the signals of nap up")?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    for signal in [Signal::INT, Signal::HUP] {
        if caught & (1 << (signal.as_raw() - 1)) != 0 {
            return Ok(signal);
        }
    }
    print_error(
        "nap up ignores SIGINT and SIGHUP, as it was started; its tasks are checkpointed first",
    );
    Ok(Signal::TERM)
}

/// Returns the coordinator and the workers that a process has started.
fn children_of(process: u32) -> Vec<RunningProcess> {
    let mut children = Vec::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return children;
    };
    for entry in entries.flatten() {
        let Some(child) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if parent_of(child) != Some(process) {
            continue;
        }
        // The id could have been given to another process before it was opened.
        if let Ok(Some(opened)) = RunningProcess::open(child)
            && parent_of(child) == Some(process)
        {
            children.push(opened);
        }
    }
    children
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

fn wait_for(process: &RunningProcess, what: &str, began: Instant) -> Result<()> {
    while !process
        .wait(TELL)
        .with_context(|| format!("cannot wait for {what}"))?
    {
        print_error(format_args!(
            "waiting for {what} (process {}) for {} now",
            process.id(),
            span(whole_millis(began.elapsed()))
        ));
    }
    Ok(())
}

fn text(ended: &EndedCluster) -> String {
    let workers = match &ended.workers {
        None => "its workers".to_owned(),
        Some(names) if names.is_empty() => "no workers".to_owned(),
        Some(names) if names.len() == 1 => format!("worker {}", names[0]),
        Some(names) => format!("workers {}", names.join(", ")),
    };
    let directory = ended.directory.display();
    let took = span(ended.took_millis);
    let mut text = format!(
        "ended after {took}: nap up (process {}), its coordinator, {workers}\n",
        ended.process
    );
    let unfinished = ended.unfinished.as_deref().unwrap_or_default();
    if !unfinished.is_empty() {
        let jobs = if unfinished.len() == 1 {
            "job continues"
        } else {
            "jobs continue"
        };
        text.push_str(&format!(
            "{} unfinished {jobs} with: nap up --dir {directory}\n",
            unfinished.len()
        ));
    }
    for job in unfinished.iter().take(NAMED_MAX) {
        text.push_str(&format!("  {} {}\n", job.job, job.name));
    }
    if unfinished.len() > NAMED_MAX {
        text.push_str(&format!("  and {} more\n", unfinished.len() - NAMED_MAX));
    }
    several_lines(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(workers: Option<&[&str]>, unfinished: usize) -> EndedCluster {
        let job = |number| UnfinishedJob {
            job: format!("job_{number:04}"),
            name: "in\u{1b}[2Jdex".to_owned(),
        };
        EndedCluster {
            directory: "/srv/nap".into(),
            process: 4711,
            workers: workers.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            unfinished: Some((1..=unfinished).map(job).collect()),
            took_millis: 1_234,
        }
    }

    #[test]
    fn text_names_workers_and_unfinished_jobs() {
        assert_eq!(
            text(&ended(Some(&["local-a", "local-b"]), 1)),
            "ended after 1.2 s: nap up (process 4711), its coordinator, workers local-a, local-b\n\
             1 unfinished job continues with: nap up --dir /srv/nap\n  job_0001 in\\u{1b}[2Jdex\n"
        );
        let many = text(&ended(Some(&["local-a"]), 12));
        assert!(
            many.contains("worker local-a\n12 unfinished jobs continue with"),
            "{many}"
        );
        assert!(
            many.ends_with("  job_0010 in\\u{1b}[2Jdex\n  and 2 more\n"),
            "{many}"
        );
        let unknown = text(&EndedCluster {
            unfinished: None,
            ..ended(None, 0)
        });
        assert_eq!(
            unknown,
            "ended after 1.2 s: nap up (process 4711), its coordinator, its workers\n"
        );
    }

    #[test]
    fn signal_of_a_process_that_catches_none_is_sigterm() {
        // A shell's child ignores or catches none of them; the harness may ignore some.
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a process");
        let signal = ending_at_once(child.id()).expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it is a child");
        assert_eq!(signal, Signal::TERM);
    }
}
