//! `nap job logs`: the output of attempts on all workers.

mod following;
mod tail;

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use clap::Args;
use following::FollowedLogs;
use napreduce_cluster::{ClientError, ClusterClient};
use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::requests::GetJob;
use napreduce_protocol::{
    AttemptSummary, JobDetail, LogStream, one_line, printing::print_error, several_lines,
};
use serde_json::json;

use crate::failure::{printed, usage};
use crate::format::{Format, FormatArguments};
use crate::ids::{JobSelector, TaskSelector, select_one};

/// Maximum columns of the error above the log of a failed attempt.
const WHY_COLUMNS_MAX: usize = 200;

#[derive(Debug, Clone, Args)]
pub struct LogArguments {
    /// job_0007, 7, last, or the name of one job
    #[arg(value_name = "JOB")]
    job: JobSelector,

    /// Attempt m_0003.1, or task m_0003 for its last attempt [default: all attempts]
    #[arg(value_name = "ATTEMPT")]
    attempt: Option<String>,

    /// Print standard error instead of standard output
    #[arg(long)]
    stderr: bool,

    /// Number of lines from the end of each log [default: all]
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,

    /// Print new output until the attempt, or the job, ends
    #[arg(long, short)]
    follow: bool,

    /// Print both logs of every failed attempt, with its error
    #[arg(long, conflicts_with_all = ["attempt", "follow"])]
    failed: bool,

    #[command(flatten)]
    format: FormatArguments,
}

impl LogArguments {
    /// Fails for JSON without an end.
    pub fn check(&self) -> Result<()> {
        if self.follow && self.format.format == Format::Json {
            return Err(usage(anyhow!(
                "--follow: not possible with --format json; leave out one of them"
            )));
        }
        Ok(())
    }
}

/// A log to print.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WantedLog {
    attempt: AttemptId,
    stream: LogStream,
    /// The heading, if several logs are printed.
    title: String,
}

pub fn run(arguments: &LogArguments, client: &mut ClusterClient) -> Result<()> {
    let job = select_one(&arguments.job, "nap job logs", client)?;
    let detail = client.ask(GetJob { job })?;
    let stream = if arguments.stderr {
        LogStream::Stderr
    } else {
        LogStream::Stdout
    };
    let logs = if arguments.failed {
        of_failed(&detail, arguments.stderr)
    } else {
        let one = |attempt: AttemptId| WantedLog {
            attempt,
            stream,
            title: attempt.to_string(),
        };
        chosen(job, arguments.attempt.as_deref(), &detail)?
            .into_iter()
            .map(one)
            .collect()
    };
    match arguments.format.format {
        _ if arguments.follow => {
            let only = arguments
                .attempt
                .as_ref()
                .and(logs.first())
                .map(|log| log.attempt);
            following::follow(
                job,
                FollowedLogs {
                    only,
                    stream,
                    tail: arguments.tail,
                },
                client,
            )
        }
        Format::Table => print_all(&logs, arguments.tail, client),
        Format::Json => {
            let mut answers = Vec::new();
            for WantedLog {
                attempt, stream, ..
            } in logs
            {
                let mut answer = match read(attempt, stream, arguments.tail, client) {
                    Ok(bytes) => json!({ "log": String::from_utf8_lossy(&bytes) }),
                    Err(ClientError::Refused { reason, .. }) => json!({ "error": reason }),
                    Err(error) => return Err(error.into()),
                };
                answer["attempt"] = attempt.to_string().into();
                answer["stream"] = stream.in_words().into();
                answers.push(answer);
            }
            arguments.format.print(|_| String::new(), || answers)
        }
    }
}

/// Returns both logs, or standard error only, of every failed attempt, with its error as title.
fn of_failed(detail: &JobDetail, only_stderr: bool) -> Vec<WantedLog> {
    let mut failed: Vec<&AttemptSummary> = detail
        .attempts
        .iter()
        .filter(|attempt| attempt.has_failed())
        .collect();
    failed.sort_by_key(|attempt| attempt.attempt);
    let streams: &[LogStream] = if only_stderr {
        &[LogStream::Stderr]
    } else {
        &[LogStream::Stdout, LogStream::Stderr]
    };
    let logs = failed.into_iter().flat_map(|failed| {
        let why = one_line(failed.end.as_deref().unwrap_or_default(), WHY_COLUMNS_MAX);
        streams.iter().map(move |stream| WantedLog {
            attempt: failed.attempt,
            stream: *stream,
            title: format!(
                "{} {} (failed on {}: {why})",
                failed.attempt,
                stream.in_words(),
                failed.worker_name
            ),
        })
    });
    logs.collect()
}

/// Returns the selected attempts in order.
fn chosen(job: JobId, named: Option<&str>, detail: &JobDetail) -> Result<Vec<AttemptId>> {
    let existing = detail.attempts.iter().map(|attempt| attempt.attempt);
    let Some(named) = named else {
        // The worker of an attempt that is being launched has no log of it yet.
        let is_launching = |attempt: &AttemptSummary| {
            attempt.end.is_none()
                && attempt
                    .moments
                    .is_some_and(|moments| moments.started.is_none())
        };
        let begun = detail
            .attempts
            .iter()
            .filter(|attempt| !is_launching(attempt));
        let mut all: Vec<AttemptId> = begun.map(|attempt| attempt.attempt).collect();
        all.sort();
        return Ok(all);
    };
    let selector = TaskSelector::of_job(job, named).map_err(|error| usage(anyhow!(error)))?;
    match selector.attempt_among(existing) {
        Some(attempt) => Ok(vec![attempt]),
        None => Err(usage(anyhow!(
            "{job} has no attempt {named}; see: nap job history {job}"
        ))),
    }
}

/// Reads a log, or its last lines.
fn read(
    attempt: AttemptId,
    stream: LogStream,
    tail: Option<usize>,
    client: &mut ClusterClient,
) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    match tail {
        Some(lines) => bytes = tail::read(attempt, stream, lines, client)?.0,
        None => {
            client.log(attempt, stream, 0, &mut bytes)?;
        }
    }
    Ok(bytes)
}

/// Prints one log as it is, several with a heading each. Continues after a log that cannot be read.
fn print_all(logs: &[WantedLog], tail: Option<usize>, client: &mut ClusterClient) -> Result<()> {
    let mut missing = None;
    for WantedLog {
        attempt,
        stream,
        title,
    } in logs
    {
        let several = logs.len() > 1;
        let mut out = HeadedOutput {
            heading: several.then(|| format!("==> {title} <==\n")),
        };
        let printed = match tail {
            Some(lines) => tail::read(*attempt, *stream, lines, client)
                .and_then(|(bytes, _)| out.write_all(&bytes).map_err(ClientError::Output)),
            None => client.log(*attempt, *stream, 0, &mut out).map(drop),
        };
        match printed {
            Ok(()) => {}
            Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(error @ ClientError::Refused { .. }) if several => {
                print_error(format_args!("nap: {}", several_lines(&error.to_string())));
                missing = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if missing.is_some() {
        Err(printed())
    } else {
        Ok(())
    }
}

/// Standard output; the heading is printed before the first bytes, so that empty logs have none.
struct HeadedOutput {
    heading: Option<String>,
}

impl Write for HeadedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stdout().lock();
        if let Some(heading) = self.heading.take().filter(|_| !bytes.is_empty()) {
            out.write_all(heading.as_bytes())?;
        }
        out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
