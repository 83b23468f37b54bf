//! `nap job`: the commands about jobs, and the exit status of waiting.

mod changing;
mod detail;
mod listing;
mod logs;
mod report;
mod trace;

#[cfg(test)]
pub use listing::tests::summary as sample_summary;
pub use listing::{phase_text, text as jobs_text};
pub use report::ReportFile;

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_cluster::{ClusterClient, FollowOptions, OnInterrupt};
use napreduce_engine::{JobId, Reason};
use napreduce_local::ProgressMode;
use napreduce_protocol::requests::{CommandJob, Explain, GetJob, KillJob, ListJobs};
use napreduce_protocol::{
    JobCommand, JobDetail, JobError, JobPhase, TaskCommand, printing::print_error, several_lines,
};
use napreduce_web::answers::{CountersAnswer, HistoryAnswer, JobExplanation, JobStatusAnswer};
use serde::Serialize;

use crate::cluster::ClusterArguments;
use crate::explaining::explanations;
use crate::failure::Failures;
use crate::format::FormatArguments;
use crate::ids::{JOBS_MAX, JobSelector, select};
use crate::screen::Screen;
use crate::settling::{Ordered, WaitArguments, settle};

/// Look at jobs, wait for them, suspend, resume and end them, read their logs
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
JOB is job_0007 or 7, several as 3-7, the one submitted last as last, every one as all.

Examples:
  nap job list
  nap job list --state failed,killed --since 24h --sort -took
  nap job status last
  nap job wait 3-7                        exit status 1 if one of them fails
  nap job kill all                        every job that has not ended
  nap job hold 7 --reason 'its input is late'
  nap job set 7 --priority 5 --queue nightly
  nap job rerun 7 --output /shared/again  the same definition over the same inputs, as a new job
  nap job suspend last                    stop what runs of it, and start nothing, until it is resumed
  nap job logs last m_0003.1 --stderr     what an attempt has printed, wherever it ran
  nap job logs last --follow --tail 10    what all of them print, until the job has ended
  nap job logs last --failed              both logs of the attempts that failed, and why they did
  nap job trace last --output trace.json  a picture of who held which slot when
  nap job explain 7                       why it does not get on")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Args)]
struct Selected {
    /// job_0007, 7, 3-7, last, all
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobSelector>,

    #[command(flatten)]
    format: FormatArguments,
}

#[derive(Debug, Clone, Args)]
struct Commanded {
    #[command(flatten)]
    which: changing::HoldArguments,
    #[command(flatten)]
    wait: WaitArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Running jobs, then ended ones, newest first
    List(listing::JobListArguments),
    /// How far jobs are
    Status(Selected),
    /// Wait for the end of jobs, with progress; exit status 1 if one of them does not succeed
    Wait {
        /// job_0007, 7, 3-7, last, all
        #[arg(value_name = "JOB", required = true)]
        jobs: Vec<JobSelector>,

        /// Show no progress, only how they end
        #[arg(long, short)]
        quiet: bool,
    },
    /// End jobs
    Kill {
        /// job_0007, 7, 3-7, last; all means those that have not ended
        #[arg(value_name = "JOB", required = true)]
        jobs: Vec<JobSelector>,

        /// Shown to whoever waits for them, and in their history
        #[arg(long, value_name = "TEXT", default_value = "killed by nap job kill")]
        reason: String,
    },
    /// Stop what runs of jobs where it is, and start nothing of them, until they are resumed
    Suspend(Commanded),
    /// Let suspended jobs go on
    Resume(Commanded),
    /// Start nothing of jobs until they are released; what runs of them is let finish
    Hold(changing::HoldArguments),
    /// Let held jobs go on
    Release(changing::HoldArguments),
    /// Give jobs another priority or queue
    Set(changing::SetArguments),
    /// Submit a job once more, with the program and the files that it had
    Rerun(changing::RerunArguments),
    /// What jobs have counted
    Counters(Selected),
    /// What attempts have printed
    Logs(logs::LogArguments),
    /// What happened to jobs and their attempts
    History(Selected),
    /// Write the life of every attempt as a picture, a file for Perfetto
    Trace(trace::TraceArguments),
    /// Write a page about a job, one file that needs nothing else
    Report(report::ReportArguments),
    /// Why jobs do not get on
    Explain(Selected),
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let mut client = cluster.connect()?;
    match &arguments.command {
        Command::List(arguments) => listing::list(arguments, &mut client),
        Command::Status(selected) => show::<JobStatusAnswer>(selected, &mut client, detail::status),
        Command::Counters(selected) => show::<CountersAnswer>(selected, &mut client, detail::counters),
        Command::History(selected) => show::<HistoryAnswer>(selected, &mut client, detail::history),
        Command::Wait { jobs, quiet } => wait(jobs, *quiet, &mut client),
        Command::Kill { jobs, reason } => for_each_live(jobs, &mut client, |client, job| {
            client.ask(KillJob { job, reason: reason.clone() })?;
            print_error(format_args!("{job} is being killed"));
            Ok(())
        }),
        Command::Suspend(commanded) => command(commanded, JobCommand::Suspend, &mut client),
        Command::Resume(commanded) => command(commanded, JobCommand::Resume, &mut client),
        Command::Hold(arguments) => changing::hold(arguments, JobCommand::Hold, &mut client),
        Command::Release(arguments) => changing::hold(arguments, JobCommand::Release, &mut client),
        Command::Rerun(arguments) => changing::rerun(arguments, &mut client),
        Command::Set(arguments) => changing::set(arguments, &mut client),
        Command::Logs(arguments) => logs::run(arguments, &mut client),
        Command::Trace(arguments) => trace::run(arguments, &mut client),
        Command::Report(arguments) => report::run(arguments, &mut client),
        Command::Explain(Selected { jobs, format }) => {
            let (explained, failures) = of_each(jobs, &mut client, |client, job| {
                Ok((job, client.ask(Explain { job, task: None })?))
            })?;
            let answer = |(job, reasons): &(JobId, Vec<Reason>)| JobExplanation::of(*job, reasons);
            format
                .print(|_| explanations(&explained), || explained.iter().map(answer).collect::<Vec<_>>())?;
            failures.finish()
        }
    }
}

fn show<A: for<'job> From<&'job JobDetail> + Serialize>(
    selected: &Selected,
    client: &mut ClusterClient,
    text: fn(&JobDetail, &Screen) -> String,
) -> Result<()> {
    let (details, failures) = of_each(&selected.jobs, client, |client, job| Ok(client.ask(GetJob { job })?))?;
    let texts =
        |screen: &Screen| details.iter().map(|detail| text(detail, screen)).collect::<Vec<_>>().join("\n");
    selected.format.print(texts, || details.iter().map(A::from).collect::<Vec<_>>())?;
    failures.finish()
}

/// Asks about each job that is meant. The failures are of those that could not be answered.
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
    // Whoever waits is not who submitted: Ctrl-C ends the waiting only.
    let on_interrupt = OnInterrupt::Detach;
    let options = FollowOptions { progress: ProgressMode::Auto, quiet, on_interrupt };
    let mut failures = Failures::default();
    for job in select(selectors, client, &mut failures)? {
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

fn command(commanded: &Commanded, command: JobCommand, client: &mut ClusterClient) -> Result<()> {
    let reason = commanded.which.reason(command);
    let mut ordered = Vec::new();
    let mut failures = act_on_each(&commanded.which.jobs, client, |client, job| {
        client.ask(CommandJob { job, command, reason: reason.clone() })?;
        let said = match command {
            JobCommand::Suspend => "is being suspended",
            JobCommand::Resume | JobCommand::Release => "goes on",
            JobCommand::Hold => "is held",
        };
        print_error(format_args!("{job} {said}"));
        ordered.push(Ordered { job, attempts: Vec::new() });
        Ok(())
    })?;
    // What goes on needs slots, which it gets whenever there are some.
    if !commanded.wait.no_wait && command != JobCommand::Resume {
        failures.check(settle(&ordered, TaskCommand::Suspend, &commanded.wait, client))?;
    }
    failures.finish()
}

/// Does something to each job that is meant, as [`act_on_each`].
fn for_each_live(
    selectors: &[JobSelector],
    client: &mut ClusterClient,
    act: impl FnMut(&mut ClusterClient, JobId) -> Result<()>,
) -> Result<()> {
    act_on_each(selectors, client, act)?.finish()
}

/// Does something to each job that is meant; `all` are those that have not ended. The failures are of those
/// to which it could not be done.
fn act_on_each(
    selectors: &[JobSelector],
    client: &mut ClusterClient,
    mut act: impl FnMut(&mut ClusterClient, JobId) -> Result<()>,
) -> Result<Failures> {
    let mut listed = Vec::new();
    if selectors.iter().any(JobSelector::needs_listing) {
        listed = client.ask(ListJobs { limit: JOBS_MAX })?;
    }
    let live = |phase: JobPhase| phase.is_active() || phase == JobPhase::Stopping;
    let mut failures = Failures::default();
    let mut jobs = Vec::new();
    for selector in selectors {
        let only_live = *selector == JobSelector::All;
        let among = listed.iter().filter(|job| !only_live || live(job.phase));
        let existing: Vec<JobId> = among.map(|job| job.job).collect();
        jobs.extend(failures.check(selector.among(&existing))?.unwrap_or_default());
    }
    jobs.sort();
    jobs.dedup();
    for job in jobs {
        failures.check(act(client, job))?;
    }
    Ok(failures)
}
