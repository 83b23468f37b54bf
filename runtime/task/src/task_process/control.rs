//! The task's end of the control channel: one thread that receives messages and reports progress.
//!
//! It reports progress about ten times a second and liveness at least every second, samples memory, and ends
//! this process when the worker closes the channel. For a task on a thread it ends the work at its next boundary.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use napreduce_protocol::printing::print_error;
use napreduce_protocol::{FromTask, ToTask, WireError, lock, read_message, write_message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use super::memory::sample_memory;
use crate::context::{Signs, Supervisor, TaskContext};
use crate::fetch_inputs::InputEvent;
use crate::heap::trim_heap;
use crate::paging::page_out_self;
use crate::proc::thread_use;
use crate::slice::run_soon_when_woken;
use crate::stop_signals::StopSignals;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// A suspended task that reaches no boundary within this time is stopped wherever it is.
const BOUNDARY_WAIT: Duration = Duration::from_millis(50);
/// Processor time within which short work reaches a boundary: work that waits for a processor is waited for.
const PROCESSOR_TIME: Duration = Duration::from_millis(10);
/// Interval of checks whether what was in flight then has ended.
const LATE_LOOK: Duration = Duration::from_millis(10);
/// Liveness is reported after this many intervals without progress.
const SILENT_INTERVALS_MAX: u32 = 10;

/// Both halves, shared by the work and the control thread.
#[derive(Clone)]
pub(super) struct ControlChannel {
    sending: Arc<Mutex<UnixStream>>,
    /// The holder receives the next message: usually the control thread, sometimes the work at a boundary.
    hearing: Arc<Mutex<Ear>>,
}

/// Where a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// A process of its own.
    Process,
    /// A thread of the worker's process.
    Thread,
}

/// Messages received while waiting for a commit grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Granted,
    /// A request at the gate.
    Asked,
}

/// The state of the channel after all messages were received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChannelState {
    Open,
    Closed,
}

impl ControlChannel {
    /// Starts to receive on `stream`; the second result receives the commit grant. Further inputs go to
    /// `inputs`.
    pub(super) fn attend(
        stream: UnixStream,
        context: Arc<TaskContext>,
        inputs: Sender<InputEvent>,
        home: Home,
    ) -> io::Result<(ControlChannel, Receiver<Word>)> {
        let stops = match home {
            Home::Process => Some(StopSignals::install(Signal::TSTP)?),
            Home::Thread => None,
        };
        let listening = stream.try_clone()?;
        let polled = stream.try_clone()?;
        let (grants, granted) = channel();
        let sending = Arc::new(Mutex::new(stream));
        let ear = Ear {
            stream: listening,
            broken: None,
            context: Arc::downgrade(&context),
            grants,
            inputs,
        };
        let channel_end = ControlChannel {
            sending,
            hearing: Arc::new(Mutex::new(ear)),
        };
        context.gate().attach(Box::new(channel_end.clone()));
        let attendant = Attendant {
            polled,
            stops,
            channel: channel_end.clone(),
            context,
        };
        std::thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                run_soon_when_woken();
                attendant.run();
            })?;
        Ok((channel_end, granted))
    }

    /// Ends the control thread of a task on a thread.
    pub(super) fn close(&self) {
        let stream = lock(&self.sending);
        // The worker may have closed it.
        let _ = stream.shutdown(Shutdown::Both);
    }

    pub(super) fn send(&self, message: &FromTask) -> Result<(), WireError> {
        // A panic can leave only whole messages on the channel.
        let stream = lock(&self.sending);
        write_message(&*stream, message)
    }

    /// Wakes the work if it waits for inputs or a commit grant.
    fn wake(&self) {
        lock(&self.hearing).wake();
    }

    /// Receives all available messages.
    fn hear(&self) -> Result<ChannelState, WireError> {
        let mut ear = lock(&self.hearing);
        let heard = ear.hear(self);
        if let Err(error) = &heard {
            // Another thread may receive the error first; the control thread needs it to end the process.
            ear.broken = Some(error.to_string());
        }
        heard
    }
}

impl Supervisor for ControlChannel {
    fn tell(&self, message: &FromTask) -> Result<(), WireError> {
        self.send(message)
    }

    fn catch_up(&self) {
        // The control thread meets the same error and ends the process.
        let _ = self.hear();
    }
}

/// The receiving half.
struct Ear {
    stream: UnixStream,
    /// The reason why the channel is unusable.
    broken: Option<String>,
    /// The context refers to this channel.
    context: Weak<TaskContext>,
    grants: Sender<Word>,
    inputs: Sender<InputEvent>,
}

impl Ear {
    fn hear(&mut self, answering: &ControlChannel) -> Result<ChannelState, WireError> {
        if let Some(broken) = &self.broken {
            return Err(WireError::Io(io::Error::other(broken.clone())));
        }
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            let mut interest = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN)];
            match poll(&mut interest, Some(&at_once)) {
                Ok(0) => return Ok(ChannelState::Open),
                Ok(_) => match read_message(&self.stream)? {
                    Some(message) => self.follow(message, answering)?,
                    None => return Ok(ChannelState::Closed),
                },
                Err(Errno::INTR) => {}
                Err(error) => return Err(WireError::Io(error.into())),
            }
        }
    }

    fn follow(&self, message: ToTask, answering: &ControlChannel) -> Result<(), WireError> {
        // Without its context the attempt has ended.
        let Some(context) = self.context.upgrade() else {
            return Ok(());
        };
        match message {
            // The work may have ended without waiting; then there is no receiver.
            ToTask::CommitGranted => {
                let _ = self.grants.send(Word::Granted);
            }
            // As above; a map does not wait for inputs, and neither does a reduce that has all of them.
            ToTask::MoreInputs(inputs) => {
                let _ = self.inputs.send(InputEvent::Named(inputs));
            }
            ToTask::Start(_) | ToTask::Outfit(_) => {
                let reason = "protocol error: second Start; a process runs one attempt";
                return Err(WireError::Io(io::Error::other(reason)));
            }
            ToTask::Suspend { epoch, page_out } => {
                context.gate().suspend(epoch, page_out);
                self.wake();
            }
            ToTask::Resume {
                epoch,
                suspended_nanos,
            } => {
                context.clock.set_suspended(suspended_nanos);
                if context.gate().resume(epoch) {
                    answering.send(&FromTask::Resumed { epoch })?;
                }
            }
            ToTask::Checkpoint => {
                context.gate().checkpoint();
                self.wake();
            }
        }
        Ok(())
    }

    /// Wakes a task that waits for inputs or a commit grant: it is at a boundary and checks requests only
    /// when something arrives.
    fn wake(&self) {
        // A task that no longer waits need not be woken.
        let _ = self.inputs.send(InputEvent::GateRequest);
        let _ = self.grants.send(Word::Asked);
    }
}

struct Attendant {
    polled: UnixStream,
    /// Only in a process of its own.
    stops: Option<StopSignals>,
    channel: ControlChannel,
    context: Arc<TaskContext>,
}

impl Attendant {
    /// Runs until the channel is closed: a process then ends, and the work of a thread ends at its next boundary.
    fn run(self) {
        let attended = self.attend();
        if self.stops.is_none() {
            self.context.gate().kill();
            return self.channel.wake();
        }
        if let Err(error) = attended {
            print_error(format_args!(
                "{}: control channel: {error}",
                self.context.attempt()
            ));
        }
        end_process_group();
    }

    fn attend(&self) -> Result<(), WireError> {
        let mut last = LastReport::default();
        let mut due = Instant::now() + PROGRESS_INTERVAL;
        let mut wait: Option<BoundaryWait> = None;
        loop {
            wait = self.next_stop(wait)?;
            let watched = [
                Some(self.polled.as_fd()),
                self.stops.as_ref().map(StopSignals::as_fd),
            ];
            let watched = watched.into_iter().flatten();
            let mut interest: Vec<PollFd<'_>> = watched
                .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
                .collect();
            let next = wait.as_ref().map_or(due, |wait| wait.until.min(due));
            let left = next.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut interest, Some(&timeout)) {
                Ok(_) => {
                    if self.stops.as_ref().is_some_and(StopSignals::take) {
                        self.channel.send(&FromTask::StopSignalled)?;
                    }
                    if self.channel.hear()? == ChannelState::Closed {
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(WireError::Io(error.into())),
            }
            // Also under a steady stream of messages.
            if due <= Instant::now() {
                due = Instant::now() + PROGRESS_INTERVAL;
                self.tell_progress(&mut last)?;
            }
        }
    }

    /// Tells the worker that it may stop the process wherever the work is, if the work reaches no boundary in time.
    /// Returns when to look again.
    fn next_stop(&self, wait: Option<BoundaryWait>) -> Result<Option<BoundaryWait>, WireError> {
        let gate = self.context.gate();
        if self.stops.is_none() || !gate.awaits_boundary() {
            return Ok(None);
        }
        let now = Instant::now();
        let Some(wait) = wait else {
            return Ok(Some(BoundaryWait::begin(now)));
        };
        if now < wait.until {
            return Ok(Some(wait));
        }
        let later = BoundaryWait {
            until: now + LATE_LOOK,
            ..wait
        };
        if wait.is_starved() {
            return Ok(Some(later));
        }
        let Some((epoch, page_out)) = gate.allow_stop_anywhere() else {
            return Ok(Some(later));
        };
        trim_heap();
        if page_out {
            page_out_self();
        }
        self.channel.send(&FromTask::Ready {
            epoch,
            saves: false,
        })?;
        Ok(None)
    }

    /// Reports changes since the last report and asks the work for the next one.
    fn tell_progress(&self, last: &mut LastReport) -> Result<(), WireError> {
        if self.stops.is_some() {
            sample_memory(&self.context);
        }
        let now = self.context.progress().signs_of_life();
        last.silent += 1;
        if now != last.signs || last.silent >= SILENT_INTERVALS_MAX {
            *last = LastReport {
                signs: now,
                silent: 0,
            };
            let Signs {
                bytes_done,
                bytes_total,
                others: signs,
            } = now;
            self.channel.send(&FromTask::Progress {
                bytes_done,
                bytes_total,
                signs,
            })?;
        }
        self.context.gate().question();
        Ok(())
    }
}

/// The wait for work that must reach a boundary.
struct BoundaryWait {
    until: Instant,
    /// The processor time that the work had used at the request, if the kernel tells.
    used: Option<Duration>,
}

impl BoundaryWait {
    fn begin(now: Instant) -> BoundaryWait {
        BoundaryWait {
            until: now + BOUNDARY_WAIT,
            used: use_of_work().map(|(_, used)| used),
        }
    }

    /// Returns whether the work could not run: it waits for a processor and has hardly had one since the request.
    fn is_starved(&self) -> bool {
        let (Some(before), Some((state, used))) = (self.used, use_of_work()) else {
            return false;
        };
        state == 'R' && used.saturating_sub(before) < PROCESSOR_TIME
    }
}

/// Returns the state of the thread that works, and its processor time.
fn use_of_work() -> Option<(char, Duration)> {
    // A process runs its attempt on its first thread.
    thread_use(getpid().as_raw_nonzero().get())
}

/// The state reported to the worker.
#[derive(Default)]
struct LastReport {
    signs: Signs,
    /// Intervals since the last report.
    silent: u32,
}

/// Kills this process and its process group without running user code.
fn end_process_group() -> ! {
    if getpgrp() == getpid() {
        // Does not return on success; if it fails, the process ends alone.
        let _ = kill_current_process_group(Signal::KILL);
    }
    std::process::abort()
}
