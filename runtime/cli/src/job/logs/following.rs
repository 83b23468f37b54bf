//! `nap job logs --follow`: prints the output of attempts as it is written.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use napreduce_cluster::{ClientError, ClusterClient};
use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::requests::GetJob;
use napreduce_protocol::{LogStream, printing::print_error, several_lines};

use super::tail;
use crate::failure::printed;

const LOOK_MIN: Duration = Duration::from_millis(200);
/// Attempts of a job are many: they are asked for so seldom that this takes a small part of anybody's time.
const LIST_MIN: Duration = Duration::from_secs(1);
const TIMES_AS_LONG: u32 = 20;
/// A line that is longer than this is printed in pieces.
const LINE_BYTES_MAX: usize = 64 << 10;

/// One log, as far as it is printed.
#[derive(Debug, Default)]
struct FollowedLog {
    /// From where on it is read next.
    offset: u64,
    /// A line whose end is not there yet.
    rest: Vec<u8>,
    /// Nothing more of it comes.
    is_over: bool,
    /// Its attempt had ended when the attempts were listed last.
    has_ended: bool,
}

/// Prints what one attempt prints until it has ended, or what all of a job do until that has.
pub fn follow(
    job: JobId,
    only: Option<AttemptId>,
    stream: LogStream,
    tail: Option<usize>,
    client: &mut ClusterClient,
) -> Result<()> {
    let mut following = LogFollower { stream, tail, only, logs: BTreeMap::new(), last: None, missing: 0 };
    following.logs.extend(only.map(|attempt| (attempt, FollowedLog::default())));
    match following.run(job, client) {
        Ok(()) if following.missing > 0 => Err(printed()),
        Ok(()) => Ok(()),
        Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow!(error)),
    }
}

struct LogFollower {
    stream: LogStream,
    /// Of what was there before: so many lines.
    tail: Option<usize>,
    only: Option<AttemptId>,
    logs: BTreeMap<AttemptId, FollowedLog>,
    /// Whose line was printed last.
    last: Option<AttemptId>,
    /// Logs that could not be read to their end.
    missing: usize,
}

impl LogFollower {
    fn run(&mut self, job: JobId, client: &mut ClusterClient) -> Result<(), ClientError> {
        let mut job_is_over = self.only.is_some();
        let mut list_at = Instant::now();
        loop {
            let began = Instant::now();
            if !job_is_over && began >= list_at {
                job_is_over = self.list(job, client)?;
                list_at = Instant::now() + LIST_MIN.max(began.elapsed() * TIMES_AS_LONG);
            }
            let open: Vec<AttemptId> =
                self.logs.iter().filter(|(_, log)| !log.is_over).map(|(attempt, _)| *attempt).collect();
            if open.is_empty() && job_is_over {
                return Ok(());
            }
            for attempt in open {
                self.go_on(attempt, client)?;
            }
            thread::sleep(LOOK_MIN.max(began.elapsed()));
        }
    }

    /// Learns of the attempts that there are by now; whether the job has ended, so that no more of them come.
    fn list(&mut self, job: JobId, client: &mut ClusterClient) -> Result<bool, ClientError> {
        let detail = client.ask(GetJob { job })?;
        for attempt in detail.attempts {
            let log = self.logs.entry(attempt.attempt).or_default();
            log.has_ended = attempt.ended_millis.is_some();
        }
        Ok(detail.summary.ended_millis.is_some())
    }

    /// Prints what there is of a log beyond what was printed.
    fn go_on(&mut self, attempt: AttemptId, client: &mut ClusterClient) -> Result<(), ClientError> {
        let Some(log) = self.logs.get(&attempt) else { return Ok(()) };
        let offset = log.offset;
        let read = match self.tail.filter(|_| offset == 0) {
            Some(lines) => tail::read(attempt, self.stream, lines, client),
            None => {
                let mut bytes = Vec::new();
                client.log(attempt, self.stream, offset, &mut bytes).map(|read| (bytes, read))
            }
        };
        let (bytes, read) = match read {
            Ok(read) => read,
            // Whoever has just been told to run it has nothing of it yet; who has run it may be gone.
            Err(ClientError::Refused { reason, .. }) => {
                self.refused(attempt, &reason);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let was_cut = read.length < offset;
        let Some(log) = self.logs.get_mut(&attempt) else { return Ok(()) };
        log.offset = read.length.max(offset);
        log.rest.extend_from_slice(&bytes);
        log.is_over = read.has_ended || was_cut;
        let whole = if self.only.is_some() || log.is_over || log.rest.len() > LINE_BYTES_MAX {
            log.rest.len()
        } else {
            log.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
        };
        let mut lines: Vec<u8> = log.rest.drain(..whole).collect();
        if log.is_over && self.only.is_none() && lines.last().is_some_and(|last| *last != b'\n') {
            lines.push(b'\n');
        }
        if was_cut {
            print_error(format_args!(
                "nap: the log of {attempt} is at its bound of {} bytes, and what comes is dropped; see --log-bytes-max of nap worker",
                read.length
            ));
        }
        self.print(attempt, &lines).map_err(ClientError::Output)
    }

    fn refused(&mut self, attempt: AttemptId, reason: &str) {
        let Some(log) = self.logs.get_mut(&attempt) else { return };
        if log.has_ended || self.only.is_some() {
            print_error(format_args!("nap: {}", several_lines(reason)));
            log.is_over = true;
            self.missing += 1;
        }
    }

    /// With a line before it that names the attempt, when another one was printed last and several are meant.
    fn print(&mut self, attempt: AttemptId, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        if self.only.is_none() && self.last.replace(attempt) != Some(attempt) {
            writeln!(out, "==> {attempt} <==")?;
        }
        out.write_all(lines)?;
        out.flush()
    }
}
