//! The task's end of the control channel: one thread that listens and tells how far the work is.
//!
//! Owns what happens beside the work: progress about ten times a second, a sign of life at least every second, samples
//! of memory, the end of this process when nobody listens any more. Does not own the work, nor the order of the messages
//! that belong to it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, getpid, kill_current_process_group};

use super::context::TaskContext;
use super::memory::sample_memory;
use crate::protocol::{FromTask, ToTask, WireError, read_message, write_message};
use crate::shuffle::Arrival;

const PROGRESS_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// After so many intervals without progress the worker is told that this process is alive.
const SILENT_INTERVALS_MAX: u32 = 10;

/// The sending half, shared by the work and the control thread.
#[derive(Clone)]
pub(super) struct ControlChannel {
    stream: Arc<Mutex<UnixStream>>,
}

impl ControlChannel {
    /// Starts to listen on `stream`; the second result receives the right to commit. More inputs go to `inputs`.
    pub(super) fn attend(
        stream: UnixStream,
        context: Arc<TaskContext>,
        inputs: Sender<Arrival>,
    ) -> io::Result<(ControlChannel, Receiver<()>)> {
        let listening = stream.try_clone()?;
        let channel_end = ControlChannel { stream: Arc::new(Mutex::new(stream)) };
        let (grants, granted) = channel();
        let attendant = Attendant { listening, sending: channel_end.clone(), context, grants, inputs };
        std::thread::Builder::new().name("control".into()).spawn(move || attendant.run())?;
        Ok((channel_end, granted))
    }

    pub(super) fn send(&self, message: &FromTask) -> Result<(), WireError> {
        // A panic while it was held can only have come before or after whole messages.
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        write_message(&*stream, message)
    }
}

struct Attendant {
    listening: UnixStream,
    sending: ControlChannel,
    context: Arc<TaskContext>,
    grants: Sender<()>,
    inputs: Sender<Arrival>,
}

impl Attendant {
    /// Ends only with the process: when the worker closes the channel, nobody wants the work any more.
    fn run(self) {
        if let Err(error) = self.attend() {
            eprintln!("{}: control channel: {error}", self.context.attempt());
        }
        end_process_group();
    }

    fn attend(&self) -> Result<(), WireError> {
        let mut told = (0, 0, 0);
        let mut silent = 0;
        loop {
            let mut interest = [PollFd::from_borrowed_fd(self.listening.as_fd(), PollFlags::IN)];
            match poll(&mut interest, Some(&PROGRESS_INTERVAL)) {
                Ok(0) => {
                    sample_memory(&self.context);
                    let now = self.context.progress().signs_of_life();
                    silent += 1;
                    if now != told || silent >= SILENT_INTERVALS_MAX {
                        (told, silent) = (now, 0);
                        let (bytes_done, bytes_total, waited) = now;
                        self.sending.send(&FromTask::Progress { bytes_done, bytes_total, waited })?;
                    }
                }
                Ok(_) => match read_message(&self.listening)? {
                    // The work may have ended without asking; then there is nobody to tell.
                    Some(ToTask::CommitGranted) => drop(self.grants.send(())),
                    // As above; a map has nobody who waits for inputs, and a reduce that has all of them neither.
                    Some(ToTask::MoreInputs(inputs)) => drop(self.inputs.send(Arrival::Named(inputs))),
                    Some(ToTask::Start(_)) => {
                        let reason = "a second start; a process runs one attempt";
                        return Err(WireError::Io(io::Error::other(reason)));
                    }
                    None => return Ok(()),
                },
                Err(Errno::INTR) => {}
                Err(error) => return Err(WireError::Io(error.into())),
            }
        }
    }
}

/// Ends this process without running anything of the user's, and whatever it started in its own process group.
fn end_process_group() -> ! {
    if getpgrp() == getpid() {
        // On success this does not return; should it be refused, the process ends alone.
        let _ = kill_current_process_group(Signal::KILL);
    }
    std::process::abort()
}
