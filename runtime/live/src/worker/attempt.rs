//! Supervision of one attempt: one task process from start to reaped.
//!
//! Owns the process handle and both directions of its control channel. Does not own what the end of the attempt means
//! for its task. The process is gone when `Ended` is told, so its slot is free.
//!
//! ```text
//! spawned --Hello--> Started --CommitRequest--> CommitRequested --(Commit order)--> granted
//!    any state: process ended -> channel drained, group killed, reaped -> Ended
//!    any state: Kill order -> group killed, then as above
//! ```

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use napreduce_core::{AttemptId, FailureClass};
use tokio::io::Interest;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::execution::explain_start;
use super::hang::{HangWatch, Limits};
use super::logs::AttemptLogs;
use crate::body::PartOutput;
use crate::counters::CounterValues;
use crate::process::{Launch, Spawner, TaskProcess, describe_exit};
use crate::protocol::{
    FrameBuffer, FromTask, PROTOCOL_VERSION, ReduceWork, TaskDescription, ToTask, WireError, Work, encode,
};
use crate::shuffle::MapInput;
use crate::task::TaskError;

/// Bytes read from a control channel at once; messages of tasks are small.
const READ_BYTES: usize = 4096;

/// How often the logs of an attempt are cut to their bound, at least.
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(250);

/// What the worker wants of a supervised attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttemptOrder {
    Commit,
    /// For a reduce that waits for them; of no use to any other attempt.
    MoreInputs(Vec<MapInput>),
    Kill,
}

/// What a supervised attempt tells.
#[derive(Debug)]
pub(super) enum AttemptEvent {
    Started,
    Progressed {
        bytes_done: u64,
        bytes_total: u64,
    },
    CommitRequested,
    /// A reduce cannot read these map outputs and waits for what replaces them.
    InputsLost {
        attempts: Vec<AttemptId>,
        reason: String,
    },
    Ended {
        end: AttemptEnd,
        /// Its directory, empty, for another attempt to use.
        idle_scratch: Option<PathBuf>,
    },
}

/// How an attempt ended; its process is gone.
#[derive(Debug)]
pub(super) enum AttemptEnd {
    Done { counters: CounterValues, part: Option<PartOutput> },
    Failed(TaskError),
    Killed,
}

/// All it takes to run and supervise an attempt.
pub(super) struct Supervision {
    pub(super) description: TaskDescription,
    pub(super) launch: Launch,
    pub(super) limits: Limits,
    /// What it prints, in a cluster.
    pub(super) logs: Option<AttemptLogs>,
    /// The name of this host, in a cluster.
    pub(super) host: Option<String>,
    pub(super) spawner: Arc<Spawner>,
    pub(super) orders: UnboundedReceiver<AttemptOrder>,
    pub(super) events: UnboundedSender<(AttemptId, AttemptEvent)>,
}

impl Supervision {
    /// Runs the attempt; `Ended` is the last event it tells.
    pub(super) async fn run(mut self) {
        let end = match self.start().await {
            Ok(supervised) => supervised.run(&mut self).await,
            Err(error) => AttemptEnd::Failed(error),
        };
        if let Some(logs) = &mut self.logs {
            logs.keep_bound();
        }
        let end = self.blame(end).await;
        let idle_scratch = self.remove_files(matches!(end, AttemptEnd::Done { .. })).await;
        self.tell(AttemptEvent::Ended { end, idle_scratch });
    }

    async fn start(&mut self) -> Result<Supervised, TaskError> {
        let start = ToTask::Start(Box::new(self.description.clone()));
        let outbox = encode(&start).map_err(|error| TaskError::fatal(error.to_string()))?;
        let launch = std::mem::take(&mut self.launch);
        let program = launch.program.clone();
        let process = self.spawner.spawn(launch).await;
        let process =
            process.map_err(|error| explain_start(&error, program.as_ref(), self.host.as_deref()))?;
        Ok(Supervised {
            process,
            watch: HangWatch::new(self.limits),
            looked: Instant::now(),
            outbox,
            inbox: FrameBuffer::default(),
            hears: true,
            killed: false,
            part: None,
            outcome: None,
        })
    }

    /// An input that cannot be opened from this host is not the fault of the task: another worker may see it.
    async fn blame(&self, end: AttemptEnd) -> AttemptEnd {
        let (Some(host), Work::Map(task)) = (&self.host, &self.description.work) else { return end };
        match end {
            AttemptEnd::Failed(error) if error.class == FailureClass::Task => {
                let path = task.split.path.clone();
                let opened = tokio::task::spawn_blocking(move || fs::File::open(path).map(drop)).await;
                AttemptEnd::Failed(match opened {
                    Ok(Err(unreadable)) => TaskError::retryable(format!(
                        "host {host} cannot read {}: {unreadable}; is it on storage that every worker sees? ({})",
                        task.split.path.display(),
                        error.message
                    )),
                    _ => error,
                })
            }
            end => end,
        }
    }

    /// Removes what is in the scratch of the ended attempt, and what it wrote unless that is the result. What cannot be
    /// removed is tried again with everything else when the job ends. The directory itself, if it is empty now.
    async fn remove_files(&self, done: bool) -> Option<PathBuf> {
        let (scratch, output) = match &self.description.work {
            Work::Map(task) => (&task.scratch, &task.output),
            Work::Reduce(ReduceWork { task, .. }) => (&task.scratch, &task.output),
        };
        let apart = output.parent() != Some(scratch.as_path());
        if !done && apart {
            // Missing unless the attempt wrote it. Beside the loop: a part is on shared storage, which may be slow.
            let output = output.clone();
            let _ = tokio::task::spawn_blocking(move || fs::remove_file(output)).await;
        }
        if fs::read_dir(scratch).ok()?.next().is_some() {
            // It may be large, so beside the loop.
            let scratch = scratch.clone();
            let _ = tokio::task::spawn_blocking(move || fs::remove_dir_all(scratch)).await;
            return None;
        }
        Some(scratch.clone())
    }

    fn tell(&self, event: AttemptEvent) {
        // A worker that no longer listens has been dropped, and this attempt with it.
        let _ = self.events.send((self.description.attempt, event));
    }
}

/// A running process and what it has said.
struct Supervised {
    process: TaskProcess,
    /// Bytes still to be sent.
    outbox: Vec<u8>,
    inbox: FrameBuffer,
    watch: HangWatch,
    looked: Instant,
    /// False once the channel was closed by the task, or the rest of it cannot be understood.
    hears: bool,
    /// Whether the worker ordered its end.
    killed: bool,
    part: Option<PartOutput>,
    outcome: Option<AttemptEnd>,
}

impl Supervised {
    async fn run(mut self, supervision: &mut Supervision) -> AttemptEnd {
        let mut look = self.look_interval();
        loop {
            let control = self.process.control();
            tokio::select! {
                biased;
                order = supervision.orders.recv() => match order {
                    Some(AttemptOrder::Commit) => {
                        self.watch.set_waits(false);
                        self.send(&ToTask::CommitGranted);
                    }
                    Some(AttemptOrder::MoreInputs(inputs)) => self.send(&ToTask::MoreInputs(inputs)),
                    Some(AttemptOrder::Kill) | None => {
                        self.killed = true;
                        self.process.kill();
                        break;
                    }
                },
                ready = control.ready(self.interest()), if self.hears || !self.outbox.is_empty() => {
                    let exchanged = ready.and_then(|_| self.exchange(supervision));
                    if let Err(error) = exchanged {
                        self.give_up(&format!("control channel: {error}"));
                    }
                }
                ended = self.process.ended() => {
                    if let Err(error) = ended {
                        self.give_up(&format!("cannot watch the task process: {error}"));
                    }
                    break;
                }
                _ = look.tick() => self.look(supervision),
            }
        }
        self.finish(supervision).await
    }

    fn look_interval(&self) -> Interval {
        let mut look = interval(self.watch.interval().min(LOOK_INTERVAL_MAX));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look
    }

    /// Ends a process that hangs, and keeps what it prints within bounds.
    fn look(&mut self, supervision: &mut Supervision) {
        if let Some(logs) = &mut supervision.logs {
            logs.keep_bound();
        }
        let now = Instant::now();
        let passed = now.duration_since(self.looked);
        self.looked = now;
        // Once it has said how it ended, or is being ended, its end is all that is awaited.
        if self.outcome.is_none()
            && let Some(hang) = self.watch.on_tick(passed)
        {
            self.give_up(&self.watch.describe(hang));
        }
    }

    fn interest(&self) -> Interest {
        match (self.hears, self.outbox.is_empty()) {
            (true, true) => Interest::READABLE,
            (true, false) => Interest::READABLE | Interest::WRITABLE,
            (false, _) => Interest::WRITABLE,
        }
    }

    fn send(&mut self, message: &ToTask) {
        match encode(message) {
            Ok(frame) => self.outbox.extend_from_slice(&frame),
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    /// Sends and receives what can be without waiting.
    fn exchange(&mut self, supervision: &Supervision) -> io::Result<()> {
        self.send_waiting()?;
        while self.hears && self.receive(supervision)? {}
        Ok(())
    }

    fn send_waiting(&mut self) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match self.process.control().try_write(&self.outbox) {
                Ok(count) => drop(self.outbox.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It ended without reading; its exit says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.outbox.clear(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes in what has arrived; false when nothing has.
    fn receive(&mut self, supervision: &Supervision) -> io::Result<bool> {
        let mut bytes = [0; READ_BYTES];
        match self.process.control().try_read(&mut bytes) {
            Ok(0) => {
                self.hears = false;
                if !self.inbox.is_between_frames() {
                    self.give_up(&WireError::CutShort.to_string());
                }
            }
            Ok(count) => {
                self.inbox.push(&bytes[..count]);
                self.listen(supervision);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // The other end was closed with something unread in it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.hears = false,
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn listen(&mut self, supervision: &Supervision) {
        while self.hears {
            match self.inbox.next() {
                Ok(Some(message)) => self.hear(message, supervision),
                Ok(None) => break,
                Err(error) => self.give_up(&format!("control channel: {error}")),
            }
        }
    }

    fn hear(&mut self, message: FromTask, supervision: &Supervision) {
        self.watch.on_heard();
        match message {
            FromTask::Hello { version: PROTOCOL_VERSION } => supervision.tell(AttemptEvent::Started),
            FromTask::Hello { version } => self.give_up(&format!(
                "the task process speaks protocol version {version}, its worker {PROTOCOL_VERSION}; \
                 was the program replaced while it ran?"
            )),
            FromTask::Progress { bytes_done, bytes_total, waited } => {
                self.watch.on_progress(bytes_done, bytes_total, waited);
                supervision.tell(AttemptEvent::Progressed { bytes_done, bytes_total });
            }
            FromTask::CommitRequest { part } => {
                self.part = Some(part);
                self.watch.set_waits(true);
                supervision.tell(AttemptEvent::CommitRequested);
            }
            FromTask::Done { counters } => {
                self.outcome = Some(AttemptEnd::Done { counters, part: self.part });
            }
            FromTask::InputsLost { attempts, reason } => {
                supervision.tell(AttemptEvent::InputsLost { attempts, reason });
            }
            FromTask::Failed(error) => self.outcome = Some(AttemptEnd::Failed(error)),
            FromTask::Ready { .. }
            | FromTask::Resumed { .. }
            | FromTask::Checkpointed { .. }
            | FromTask::Restored
            | FromTask::RestoreRefused { .. }
            | FromTask::StopSignalled => {}
        }
    }

    /// Ends a process that cannot be understood or watched.
    fn give_up(&mut self, reason: &str) {
        self.hears = false;
        self.outbox.clear();
        self.outcome = Some(AttemptEnd::Failed(TaskError::retryable(reason)));
        self.process.kill();
    }

    /// What the process said before it ended counts, even if its end was ordered meanwhile.
    async fn finish(mut self, supervision: &Supervision) -> AttemptEnd {
        // After a kill the process needs a moment; an error leaves it to the reaping to wait.
        let _ = self.process.ended().await;
        while self.hears && self.receive(supervision).unwrap_or(false) {}
        let reaped = self.process.reap();
        match (self.outcome, reaped) {
            (Some(done @ AttemptEnd::Done { .. }), _) => done,
            _ if self.killed => AttemptEnd::Killed,
            (Some(outcome), _) => outcome,
            (None, Ok(status)) => AttemptEnd::Failed(end_without_outcome(status)),
            (None, Err(error)) => {
                AttemptEnd::Failed(TaskError::retryable(format!("cannot reap the task process: {error}")))
            }
        }
    }
}

/// SIGKILL comes from outside (somebody, or the kernel short of memory); anything else is the task's own doing.
fn end_without_outcome(status: ExitStatus) -> TaskError {
    use std::os::unix::process::ExitStatusExt;
    let message = describe_exit(status);
    if status.signal() == Some(libc::SIGKILL) {
        TaskError::retryable(message)
    } else {
        TaskError::task(message)
    }
}
