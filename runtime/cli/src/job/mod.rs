//! `nap job`: commands about jobs.

mod changing;
mod comparison;
mod detail;
mod listing;
mod logs;
mod report;
mod trace;

#[cfg(test)]
pub use listing::tests::summary as sample_summary;
pub use listing::{left_text, phase_text, text as jobs_text};
pub use report::ReportFile;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_answers::{
    CountersAnswer, FindingAnswer, HistoryAnswer, JobExplanation, JobStatusAnswer, SubmittedAnswer,
};
use napreduce_cluster::{ClusterClient, FollowOptions, OnInterrupt};
use napreduce_engine::JobId;
use napreduce_local::ProgressMode;
use napreduce_protocol::requests::{CommandJob, Explain, GetJob, KillJob, ListJobs, ListTasks};
use napreduce_protocol::{
    JobCommand, JobDetail, JobError, TaskCommand, printing::print_error, several_lines,
};
use napreduce_web::clock::{now_micros, now_millis};
use serde::Serialize;

use crate::cluster::ClusterArguments;
use crate::explaining::explanations;
use crate::failure::Failures;
use crate::format::FormatArguments;
use crate::ids::{JOBS_MAX, JobSelector, KnownJob, existing, select};
use crate::screen::Screen;
use crate::settling::{CommandTarget, WaitArguments, settle};

/// List, follow, suspend, resume, kill, compare and explain jobs, and read their logs
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
JOB is job_0007 or 7, a range such as 3-7, last (submitted last), all, or the
name of one job: the only unfinished one, or else the only ended one.

Examples:
  nap job list
  nap job list --state failed,killed --since 24h --sort -took
  nap job status last
  nap job wait 3-7                        exit status 1 if one of them fails
  nap job kill all                        every job that has not ended
  nap job kill wordcount                  the only unfinished job of this name
  nap job hold 7 --reason 'input is late'
  nap job set 7 --priority 5 --queue nightly
  nap job rerun 7 --output /shared/again  same program and inputs, as a new job
  nap job suspend last                    stop its tasks until it is resumed
  nap job logs last m_0003.1 --stderr     output of one attempt
  nap job logs last --follow --tail 10    output of all attempts, as it comes
  nap job logs last --failed              logs of failed attempts, with errors
  nap job trace last --output trace.json  timeline for Perfetto
  nap job compare 7 9                     two jobs side by side
  nap job explain 7                       why it waits, what makes it slow")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Args)]
struct Selected {
    /// job_0007, 7, 3-7, last, all, or the name of one job
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobSelector>,

    #[command(flatten)]
    format: FormatArguments,
}

#[derive(Debug, Clone, Args)]
struct CommandArguments {
    #[command(flatten)]
    which: changing::HoldArguments,
    #[command(flatten)]
    wait: WaitArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// List running jobs, then waiting, then ended ones, newest first
    List(listing::JobListArguments),
    /// Print state and progress of jobs
    Status(Selected),
    /// Show the progress of jobs until they end; exit status 1 unless all succeed
    Wait {
        /// job_0007, 7, 3-7, last, all, or the name of one job
        #[arg(value_name = "JOB", required = true)]
        jobs: Vec<JobSelector>,

        /// Print only the results
        #[arg(long, short)]
        quiet: bool,
    },
    /// Kill jobs
    Kill {
        /// job_0007, 7, 3-7, last, the name of one job, or all for unfinished jobs
        #[arg(value_name = "JOB", required = true)]
        jobs: Vec<JobSelector>,

        /// Reason, shown to clients that wait and in the history
        #[arg(long, value_name = "TEXT", default_value = "killed by nap job kill")]
        reason: String,
    },
    /// Stop the running tasks of jobs, which keep their memory, and start none until `resume`
    Suspend(CommandArguments),
    /// Continue suspended jobs
    Resume(CommandArguments),
    /// Start no more tasks of jobs until `release`; running ones finish
    Hold(changing::HoldArguments),
    /// Release held jobs
    Release(changing::HoldArguments),
    /// Change the priority or queue of jobs
    Set(changing::SetArguments),
    /// Submit a job again, with its program and files
    Rerun(changing::RerunArguments),
    /// Print how jobs were submitted: command line, inputs, program, side files
    Submitted(Selected),
    /// Print two jobs side by side: times, preemptions, what was submitted differently, counters
    Compare(comparison::CompareArguments),
    /// Print counters of jobs
    Counters(Selected),
    /// Print the output of attempts
    Logs(logs::LogArguments),
    /// Print events and attempts of jobs in order of time
    History(Selected),
    /// Write a timeline of all attempts for Perfetto
    Trace(trace::TraceArguments),
    /// Write a report of a job as one HTML file
    Report(report::ReportArguments),
    /// Print why jobs make no progress, and what makes or made them slow
    Explain(Selected),
}

impl Command {
    /// Fails, before connecting, if flags are invalid together.
    fn check(&self) -> Result<()> {
        match self {
            Command::List(arguments) => arguments.check(),
            Command::Logs(arguments) => arguments.check(),
            Command::Set(arguments) => arguments.check(),
            _ => Ok(()),
        }
    }
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    arguments.command.check()?;
    let connect = || cluster.connect();
    match &arguments.command {
        Command::List(arguments) => listing::list(arguments, &mut connect()?),
        Command::Status(selected) => {
            show::<JobStatusAnswer>(selected, &mut connect()?, detail::status)
        }
        Command::Submitted(selected) => {
            show::<SubmittedAnswer>(selected, &mut connect()?, detail::submitted)
        }
        // It may read a history without a cluster.
        Command::Compare(arguments) => comparison::run(arguments, cluster),
        Command::Counters(selected) => {
            show::<CountersAnswer>(selected, &mut connect()?, detail::counters)
        }
        Command::History(selected) => {
            show::<HistoryAnswer>(selected, &mut connect()?, detail::history)
        }
        Command::Wait { jobs, quiet } => wait(jobs, *quiet, &mut connect()?),
        Command::Kill { jobs, reason } => for_each_live(jobs, &mut connect()?, |client, job| {
            client.ask(KillJob {
                job,
                reason: reason.clone(),
            })?;
            print_error(format_args!("{job} is being killed"));
            Ok(())
        }),
        Command::Suspend(commanded) => command(commanded, JobCommand::Suspend, &mut connect()?),
        Command::Resume(commanded) => command(commanded, JobCommand::Resume, &mut connect()?),
        Command::Hold(arguments) => changing::hold(arguments, JobCommand::Hold, &mut connect()?),
        Command::Release(arguments) => {
            changing::hold(arguments, JobCommand::Release, &mut connect()?)
        }
        Command::Rerun(arguments) => changing::rerun(arguments, &mut connect()?),
        Command::Set(arguments) => changing::set(arguments, &mut connect()?),
        Command::Logs(arguments) => logs::run(arguments, &mut connect()?),
        Command::Trace(arguments) => trace::run(arguments, &mut connect()?),
        Command::Report(arguments) => report::run(arguments, &mut connect()?),
        Command::Explain(Selected { jobs, format }) => {
            let (explained, failures) = of_each(jobs, &mut connect()?, explain)?;
            let lines = |one: &JobExplanation| {
                let findings = one.findings.iter().map(FindingAnswer::line);
                (
                    one.job.clone(),
                    one.lines.iter().cloned().chain(findings).collect(),
                )
            };
            format.print(|_| explanations(explained.iter().map(lines)), || &explained)?;
            failures.finish()
        }
    }
}

fn explain(client: &mut ClusterClient, job: JobId) -> Result<JobExplanation> {
    let reasons = client.ask(Explain { job, task: None })?;
    let detail = client.ask(GetJob { job })?;
    let is_open = detail.summary.ended_millis.is_none();
    let tasks = if is_open {
        client.ask(ListTasks { job: Some(job) })?
    } else {
        Vec::new()
    };
    let findings = FindingAnswer::all_of(&detail, &tasks, now_micros());
    Ok(JobExplanation::new(job, &reasons, findings))
}

fn show<A: for<'job> From<&'job JobDetail> + Serialize>(
    selected: &Selected,
    client: &mut ClusterClient,
    text: fn(&JobDetail, &Screen) -> String,
) -> Result<()> {
    let (details, failures) = of_each(&selected.jobs, client, |client, job| {
        Ok(client.ask(GetJob { job })?)
    })?;
    let texts = |screen: &Screen| {
        details
            .iter()
            .map(|detail| text(detail, screen))
            .collect::<Vec<_>>()
            .join("\n")
    };
    selected
        .format
        .print(texts, || details.iter().map(A::from).collect::<Vec<_>>())?;
    failures.finish()
}

/// Asks about each selected job. Returns the answers, and the failures of the other requests.
pub fn of_each<T>(
    selectors: &[JobSelector],
    client: &mut ClusterClient,
    mut ask: impl FnMut(&mut ClusterClient, JobId) -> Result<T>,
) -> Result<(Vec<T>, Failures)> {
    let mut failures = Failures::default();
    let mut answers = Vec::new();
    for job in select(selectors, client, &mut failures)? {
        answers.extend(failures.check(ask(client, job))?);
    }
    if answers.is_empty() {
        std::mem::take(&mut failures).finish()?;
    }
    Ok((answers, failures))
}

fn wait(selectors: &[JobSelector], quiet: bool, client: &mut ClusterClient) -> Result<()> {
    // Ctrl-C ends the waiting only: the job was submitted by another process.
    let on_interrupt = OnInterrupt::Detach;
    let mut failures = Failures::default();
    let jobs = select(selectors, client, &mut failures)?;
    let submitted = client.ask(ListJobs { limit: JOBS_MAX })?;
    for job in jobs {
        let known = submitted.iter().find(|listed| listed.job == job);
        let elapsed = known.map_or(0, |listed| {
            now_millis().saturating_sub(listed.submitted_millis)
        });
        let elapsed = Duration::from_millis(elapsed);
        let options = FollowOptions {
            progress: ProgressMode::Auto,
            quiet,
            on_interrupt,
            elapsed,
        };
        match client.follow(job, &options) {
            Ok(report) => print_error(format_args!(
                "{job} {} succeeded in {:.3} s; output in {}",
                several_lines(&report.name),
                report.wall.as_secs_f64(),
                report.output.display()
            )),
            Err(JobError::Failed { reason, .. }) => {
                print_error(format_args!("{job} failed: {}", several_lines(&reason)));
                failures.add_printed();
            }
            Err(error @ JobError::Killed { .. }) => {
                print_error(format_args!("{}", several_lines(&error.to_string())));
                failures.add_printed();
            }
            Err(error @ JobError::Interrupted { .. }) => return Err(error.into()),
            Err(error) => {
                failures.check(Err::<(), _>(error))?;
            }
        }
    }
    failures.finish()
}

/// Returns what a job does after a command.
pub fn effect_of(command: JobCommand) -> &'static str {
    match command {
        JobCommand::Suspend => "is being suspended",
        JobCommand::Resume | JobCommand::Release => "continues",
        JobCommand::Hold => "is held; its running tasks finish",
    }
}

fn command(
    commanded: &CommandArguments,
    command: JobCommand,
    client: &mut ClusterClient,
) -> Result<()> {
    let reason = commanded.which.reason(command);
    let mut ordered = Vec::new();
    let mut failures = act_on_each(&commanded.which.jobs, client, |client, job| {
        client.ask(CommandJob {
            job,
            command,
            reason: reason.clone(),
        })?;
        print_error(format_args!("{job} {}", effect_of(command)));
        ordered.push(CommandTarget {
            job,
            attempts: Vec::new(),
        });
        Ok(())
    })?;
    // Resumed attempts may wait for slots for any time.
    if !commanded.wait.no_wait && command != JobCommand::Resume {
        failures.check(settle(
            &ordered,
            TaskCommand::Suspend,
            &commanded.wait,
            client,
        ))?;
    }
    failures.finish()
}

/// Calls `act` for each job as [`act_on_each`], and fails if any call fails.
fn for_each_live(
    selectors: &[JobSelector],
    client: &mut ClusterClient,
    act: impl FnMut(&mut ClusterClient, JobId) -> Result<()>,
) -> Result<()> {
    act_on_each(selectors, client, act)?.finish()
}

/// Calls `act` for each selected job, `all` being those that have not ended. Returns the failures.
fn act_on_each(
    selectors: &[JobSelector],
    client: &mut ClusterClient,
    mut act: impl FnMut(&mut ClusterClient, JobId) -> Result<()>,
) -> Result<Failures> {
    let all = existing(selectors, client)?;
    let unfinished: Vec<KnownJob> = all
        .iter()
        .filter(|known| !known.phase.has_ended())
        .cloned()
        .collect();
    let mut failures = Failures::default();
    let mut jobs = Vec::new();
    for selector in selectors {
        let among = if *selector == JobSelector::All {
            &unfinished
        } else {
            &all
        };
        jobs.extend(failures.check(selector.among(among))?.unwrap_or_default());
    }
    jobs.sort();
    jobs.dedup();
    for job in jobs {
        failures.check(act(client, job))?;
    }
    Ok(failures)
}
