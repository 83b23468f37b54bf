//! `nap job logs --follow`: prints the output of attempts as it is written.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use napreduce_cluster::{ClientError, ClusterClient};
use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::requests::{GetJob, ListJobs};
use napreduce_protocol::{LogStream, printing::print_error, several_lines};

use super::tail;
use crate::failure::printed;

const LOOK_MIN: Duration = Duration::from_millis(200);
/// Whether the job has ended is asked this often, since that is cheap.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// The number of jobs among which the job is looked for, newest first. Others are listed each time.
const JOBS_ASKED: u32 = 200;
/// Listing the attempts of a large job takes a while: it is repeated after `TIMES_AS_LONG` times its duration.
const TIMES_AS_LONG: u32 = 20;
/// Longer lines are printed in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;

/// One log and its printed part.
#[derive(Debug, Default)]
struct FollowedLog {
    offset: u64,
    /// The start of an incomplete line.
    rest: Vec<u8>,
    /// No more output can follow.
    is_over: bool,
    /// Whether the attempt had ended at the last listing.
    has_ended: bool,
}

/// Prints the output of one attempt until it ends, or of all attempts of a job until the job ends.
pub fn follow(job: JobId, selection: FollowedLogs, client: &mut ClusterClient) -> Result<()> {
    let only = selection
        .only
        .map(|attempt| (attempt, FollowedLog::default()));
    let mut follower = LogFollower {
        selection,
        logs: only.into_iter().collect(),
        last: None,
        missing: 0,
    };
    match follower.run(job, client) {
        Ok(()) if follower.missing > 0 => Err(printed()),
        Ok(()) => Ok(()),
        Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow!(error)),
    }
}

/// Which logs to follow, and from where.
pub struct FollowedLogs {
    /// `None` for all attempts of the job.
    pub only: Option<AttemptId>,
    pub stream: LogStream,
    /// Number of lines to print of the output so far; `None` for all.
    pub tail: Option<usize>,
}

struct LogFollower {
    selection: FollowedLogs,
    logs: BTreeMap<AttemptId, FollowedLog>,
    /// The attempt whose output was printed last.
    last: Option<AttemptId>,
    /// Number of logs that could not be read completely.
    missing: usize,
}

/// Returns whether a job has ended, or is not among the jobs that are listed first.
fn has_ended(job: JobId, client: &mut ClusterClient) -> Result<bool, ClientError> {
    let jobs = client.ask(ListJobs { limit: JOBS_ASKED })?;
    let found = jobs.iter().find(|summary| summary.job == job);
    Ok(found.is_none_or(|summary| summary.ended_millis.is_some()))
}

impl LogFollower {
    fn run(&mut self, job: JobId, client: &mut ClusterClient) -> Result<(), ClientError> {
        let mut job_is_over = self.selection.only.is_some();
        let mut ask_at = Instant::now();
        let mut list_at = ask_at;
        loop {
            let began = Instant::now();
            if !job_is_over && began >= ask_at {
                if began >= list_at || has_ended(job, client)? {
                    let listing = Instant::now();
                    job_is_over = self.list(job, client)?;
                    list_at = Instant::now() + listing.elapsed() * TIMES_AS_LONG;
                }
                ask_at = Instant::now() + ASK_INTERVAL;
            }
            let open: Vec<AttemptId> = self
                .logs
                .iter()
                .filter(|(_, log)| !log.is_over)
                .map(|(attempt, _)| *attempt)
                .collect();
            if open.is_empty() && job_is_over {
                return Ok(());
            }
            for attempt in open {
                self.print_new(attempt, client)?;
            }
            thread::sleep(LOOK_MIN.max(began.elapsed()));
        }
    }

    /// Lists the attempts; returns whether the job has ended, so that no more follow.
    fn list(&mut self, job: JobId, client: &mut ClusterClient) -> Result<bool, ClientError> {
        let detail = client.ask(GetJob { job })?;
        for attempt in detail.attempts {
            let log = self.logs.entry(attempt.attempt).or_default();
            log.has_ended = attempt.ended_millis.is_some();
        }
        Ok(detail.summary.ended_millis.is_some())
    }

    /// Prints the new output of an attempt.
    fn print_new(
        &mut self,
        attempt: AttemptId,
        client: &mut ClusterClient,
    ) -> Result<(), ClientError> {
        let Some(log) = self.logs.get(&attempt) else {
            return Ok(());
        };
        let offset = log.offset;
        let read = match self.selection.tail.filter(|_| offset == 0) {
            Some(lines) => tail::read(attempt, self.selection.stream, lines, client),
            None => {
                let mut bytes = Vec::new();
                client
                    .log(attempt, self.selection.stream, offset, &mut bytes)
                    .map(|read| (bytes, read))
            }
        };
        let (bytes, read) = match read {
            Ok(read) => read,
            // Its worker has no log yet, or is gone.
            Err(ClientError::Refused { reason, .. }) => {
                self.refused(attempt, &reason);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let was_cut = read.length < offset;
        let Some(log) = self.logs.get_mut(&attempt) else {
            return Ok(());
        };
        log.offset = read.length.max(offset);
        log.rest.extend_from_slice(&bytes);
        log.is_over = read.has_ended || was_cut;
        let whole =
            if self.selection.only.is_some() || log.is_over || log.rest.len() > LINE_BYTES_MAX {
                log.rest.len()
            } else {
                log.rest
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |at| at + 1)
            };
        let mut lines: Vec<u8> = log.rest.drain(..whole).collect();
        if log.is_over
            && self.selection.only.is_none()
            && lines.last().is_some_and(|last| *last != b'\n')
        {
            lines.push(b'\n');
        }
        if was_cut {
            print_error(format_args!(
                "nap: the log of {attempt} has reached its limit of {} bytes, later output is dropped; see --log-bytes-max of nap worker",
                read.length
            ));
        }
        self.print(attempt, &lines).map_err(ClientError::Output)
    }

    fn refused(&mut self, attempt: AttemptId, reason: &str) {
        let Some(log) = self.logs.get_mut(&attempt) else {
            return;
        };
        if log.has_ended || self.selection.only.is_some() {
            print_error(format_args!("nap: {}", several_lines(reason)));
            log.is_over = true;
            self.missing += 1;
        }
    }

    /// Prints lines, after a heading if the attempt changes.
    fn print(&mut self, attempt: AttemptId, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        if self.selection.only.is_none() && self.last.replace(attempt) != Some(attempt) {
            writeln!(out, "==> {attempt} <==")?;
        }
        out.write_all(lines)?;
        out.flush()
    }
}
