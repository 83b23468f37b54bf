//! `nap job logs`: the output of attempts on all workers.

mod following;
mod tail;

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use clap::Args;
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

/// Columns of why an attempt failed, above its log.
const WHY_COLUMNS_MAX: usize = 200;

#[derive(Debug, Clone, Args)]
pub struct LogArguments {
    /// job_0007, 7, last
    #[arg(value_name = "JOB")]
    job: JobSelector,

    /// One attempt, such as m_0003.1, or the last one of a task, such as m_0003 [default: every attempt]
    #[arg(value_name = "ATTEMPT")]
    attempt: Option<String>,

    /// Standard error instead of standard output
    #[arg(long)]
    stderr: bool,

    /// Only the last lines of each
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,

    /// Go on with what is printed, until the attempt has ended, or the job
    #[arg(long, short)]
    follow: bool,

    /// Both logs of every attempt that failed, under why it did
    #[arg(long, conflicts_with_all = ["attempt", "follow"])]
    failed: bool,

    #[command(flatten)]
    format: FormatArguments,
}

/// A log that is to be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WantedLog {
    attempt: AttemptId,
    stream: LogStream,
    /// What stands above it, where several are printed.
    title: String,
}

pub fn run(arguments: &LogArguments, client: &mut ClusterClient) -> Result<()> {
    let is_json = arguments.format.format == Format::Json;
    if arguments.follow && is_json {
        return Err(usage(anyhow!("a log that goes on is no JSON; leave out --follow or --format json")));
    }
    let job = select_one(arguments.job, "nap job logs", client)?;
    let detail = client.ask(GetJob { job })?;
    let stream = if arguments.stderr { LogStream::Stderr } else { LogStream::Stdout };
    let logs = if arguments.failed {
        of_failed(&detail, arguments.stderr)
    } else {
        let one = |attempt: AttemptId| WantedLog { attempt, stream, title: attempt.to_string() };
        chosen(job, arguments.attempt.as_deref(), &detail)?.into_iter().map(one).collect()
    };
    match arguments.format.format {
        _ if arguments.follow => {
            let only = arguments.attempt.as_ref().and(logs.first()).map(|log| log.attempt);
            following::follow(job, only, stream, arguments.tail, client)
        }
        Format::Table => print_all(&logs, arguments.tail, client),
        Format::Json => {
            let mut answers = Vec::new();
            for WantedLog { attempt, stream, .. } in logs {
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

/// Both logs of every attempt that failed, or standard error alone, with why it did.
fn of_failed(detail: &JobDetail, only_stderr: bool) -> Vec<WantedLog> {
    let mut failed: Vec<&AttemptSummary> =
        detail.attempts.iter().filter(|attempt| attempt.has_failed()).collect();
    failed.sort_by_key(|attempt| attempt.attempt);
    let streams: &[LogStream] =
        if only_stderr { &[LogStream::Stderr] } else { &[LogStream::Stdout, LogStream::Stderr] };
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

/// The attempts that are meant, in order.
fn chosen(job: JobId, named: Option<&str>, detail: &JobDetail) -> Result<Vec<AttemptId>> {
    let existing = detail.attempts.iter().map(|attempt| attempt.attempt);
    let Some(named) = named else {
        // One that is being launched has printed nothing, and its worker has no log of it yet.
        let is_launching = |attempt: &AttemptSummary| {
            attempt.end.is_none() && attempt.moments.is_some_and(|moments| moments.started.is_none())
        };
        let begun = detail.attempts.iter().filter(|attempt| !is_launching(attempt));
        let mut all: Vec<AttemptId> = begun.map(|attempt| attempt.attempt).collect();
        all.sort();
        return Ok(all);
    };
    let selector = TaskSelector::of_job(job, named).map_err(|error| usage(anyhow!(error)))?;
    match selector.attempt_among(existing) {
        Some(attempt) => Ok(vec![attempt]),
        None => Err(usage(anyhow!("there was no attempt {named} of {job}; see: nap job history {job}"))),
    }
}

/// A log as it is now, or its last lines.
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

/// One log as it is; several with a line before each. A log that cannot be had does not keep back the others.
fn print_all(logs: &[WantedLog], tail: Option<usize>, client: &mut ClusterClient) -> Result<()> {
    let mut missing = None;
    for WantedLog { attempt, stream, title } in logs {
        let several = logs.len() > 1;
        let mut out = HeadedOutput { heading: several.then(|| format!("==> {title} <==\n")) };
        let printed = match tail {
            Some(lines) => tail::read(*attempt, *stream, lines, client)
                .and_then(|(bytes, _)| out.write_all(&bytes).map_err(ClientError::Output)),
            None => client.log(*attempt, *stream, 0, &mut out).map(drop),
        };
        match printed {
            Ok(()) => {}
            Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error @ ClientError::Refused { .. }) if several => {
                print_error(format_args!("nap: {}", several_lines(&error.to_string())));
                missing = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if missing.is_some() { Err(printed()) } else { Ok(()) }
}

/// Standard output; the heading comes before the first bytes, so that empty logs say nothing.
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
