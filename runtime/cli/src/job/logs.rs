//! `nap job logs`: what attempts have printed, from wherever they ran.
//!
//! Owns which attempts are meant and what stands between two of them. Does not own how logs are fetched.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use napreduce_core::{AttemptId, JobId};
use napreduce_live::{ClientError, ClusterClient, JobDetail, LogStream, several_lines};
use serde_json::json;

use super::select;
use crate::failure::Failure;
use crate::format::{Format, FormatArguments};
use crate::ids::{JobSelector, TaskSelector};

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

    #[command(flatten)]
    format: FormatArguments,
}

pub fn run(arguments: &LogArguments, client: &mut ClusterClient) -> Result<()> {
    let jobs = select(&[arguments.job], client)?;
    let [job] = jobs.as_slice() else {
        bail!("logs are read of one job at a time; {} are meant", jobs.len())
    };
    let detail = client.job(*job)?;
    let attempts = chosen(*job, arguments.attempt.as_deref(), &detail)?;
    let stream = if arguments.stderr { LogStream::Stderr } else { LogStream::Stdout };
    match arguments.format.format {
        Format::Table => print_all(&attempts, stream, client),
        Format::Json => {
            let mut logs = Vec::new();
            for attempt in attempts {
                let mut bytes = Vec::new();
                let read = client.log(attempt, stream, 0, &mut bytes);
                logs.push(match read {
                    Ok(_) => {
                        json!({ "attempt": attempt.to_string(), "log": String::from_utf8_lossy(&bytes) })
                    }
                    Err(ClientError::Refused { reason, .. }) => {
                        json!({ "attempt": attempt.to_string(), "error": reason })
                    }
                    Err(error) => return Err(error.into()),
                });
            }
            arguments.format.print(String::new, || logs.into())
        }
    }
}

/// The attempts that are meant, in order.
fn chosen(job: JobId, named: Option<&str>, detail: &JobDetail) -> Result<Vec<AttemptId>> {
    let existing = detail.attempts.iter().map(|attempt| attempt.attempt);
    let Some(named) = named else {
        let mut all: Vec<AttemptId> = existing.collect();
        all.sort();
        return Ok(all);
    };
    let selector = TaskSelector::of_job(job, named).map_err(anyhow::Error::msg)?;
    match selector.attempt_among(existing) {
        Some(attempt) => Ok(vec![attempt]),
        None => bail!("there was no attempt {named} of {job}; see: nap job history {job}"),
    }
}

/// One log as it is; several with a line before each. A log that cannot be had does not keep back the others.
fn print_all(attempts: &[AttemptId], stream: LogStream, client: &mut ClusterClient) -> Result<()> {
    let mut missing = None;
    for attempt in attempts {
        let mut bytes =
            HeadedOutput { heading: (attempts.len() > 1).then(|| format!("==> {attempt} <==\n")) };
        match client.log(*attempt, stream, 0, &mut bytes) {
            Ok(_) => {}
            Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error @ ClientError::Refused { .. }) if attempts.len() > 1 => {
                eprintln!("nap: {}", several_lines(&error.to_string()));
                missing = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if missing.is_some() { Err(Failure::Said.into()) } else { Ok(()) }
}

/// Standard output; the heading comes before the first bytes, so that empty logs say nothing.
struct HeadedOutput {
    heading: Option<String>,
}

impl Write for HeadedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = io::stdout().lock();
        if let Some(heading) = self.heading.take() {
            out.write_all(heading.as_bytes())?;
        }
        out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
