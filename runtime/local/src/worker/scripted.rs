//! A machine and a task process that are controlled by a test.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use napreduce_protocol::{FrameBuffer, FromTask, ToTask, encode};
use napreduce_task::Paging;
use rustix::process::{Pid, getpid};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;

use crate::process::{
    Awaited, ChildEvent, ControlChannel, ControlGroup, Launch, Pending, ProcessMemory, Processes,
    SpareMemory, TaskProcess,
};

/// A request of the worker to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Suspend,
    Resume,
    Kill,
    Reap,
    Sweep,
}

/// A machine with plenty of memory, unless a test changes its figures.
#[derive(Debug)]
pub(super) struct ScriptedMachine {
    pub(super) memory: ProcessMemory,
    pub(super) spare: SpareMemory,
    pub(super) stalled_micros: Option<u64>,
    /// The process returned by the next start.
    process: Mutex<Option<ScriptedProcess>>,
    requests: UnboundedSender<Request>,
}

#[derive(Debug)]
struct ScriptedProcess {
    control: UnixStream,
    changes: Arc<AsyncMutex<UnboundedReceiver<ChildEvent>>>,
    requests: UnboundedSender<Request>,
    stands_still: Arc<AtomicBool>,
    has_ended: watch::Sender<bool>,
}

/// The test's end of a scripted process.
pub(super) struct ScriptedTask {
    control: UnixStream,
    inbox: FrameBuffer,
    /// Changes that the kernel confirms.
    pub(super) changes: UnboundedSender<ChildEvent>,
    /// What the kernel shows of a suspended process.
    pub(super) stands_still: Arc<AtomicBool>,
    pub(super) requests: UnboundedReceiver<Request>,
}

impl ScriptedMachine {
    /// Creates a machine and the task that its next start returns.
    pub(super) fn new() -> (ScriptedMachine, ScriptedTask) {
        let (control, own) = UnixStream::pair().expect("a channel");
        let (changes, confirmed) = unbounded_channel();
        let (requests, asked) = unbounded_channel();
        let stands_still = Arc::new(AtomicBool::new(true));
        let process = ScriptedProcess {
            control,
            changes: Arc::new(AsyncMutex::new(confirmed)),
            requests: requests.clone(),
            stands_still: Arc::clone(&stands_still),
            has_ended: watch::Sender::new(false),
        };
        let machine = ScriptedMachine {
            memory: ProcessMemory::default(),
            spare: SpareMemory {
                available: 1 << 40,
                swap_free: 1 << 40,
            },
            stalled_micros: None,
            process: Mutex::new(Some(process)),
            requests,
        };
        let task = ScriptedTask {
            control: own,
            inbox: FrameBuffer::default(),
            changes,
            stands_still,
            requests: asked,
        };
        (machine, task)
    }
}

impl ScriptedTask {
    /// Sends a message as the task.
    pub(super) fn send(&self, message: &FromTask) {
        let bytes = encode(message).expect("a message");
        assert_eq!(
            self.control.try_write(&bytes).expect("written"),
            bytes.len()
        );
    }

    /// Waits for the next message to the task.
    pub(super) async fn receive(&mut self) -> ToTask {
        loop {
            if let Some(message) = self.inbox.next_message().expect("a message") {
                return message;
            }
            self.control.readable().await.expect("a channel");
            let mut bytes = [0; 4096];
            match self.control.try_read(&mut bytes) {
                Ok(count) => {
                    assert!(count > 0, "the worker closed the channel");
                    self.inbox.push(&bytes[..count]);
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }
}

impl Processes for ScriptedMachine {
    fn start(&self, _: Launch) -> Pending<'_, Box<dyn TaskProcess>> {
        let process = self.process.lock().expect("not poisoned").take();
        let started = process.ok_or_else(|| io::Error::other("no process in the script"));
        Box::pin(async { started.map(|process| Box::new(process) as Box<dyn TaskProcess>) })
    }

    fn sweep(&self, _: Vec<String>) {
        self.requests
            .send(Request::Sweep)
            .expect("the test listens");
    }

    fn memory_of(&self, _: Pid) -> io::Result<ProcessMemory> {
        Ok(self.memory)
    }

    fn spare_memory(&self) -> io::Result<SpareMemory> {
        Ok(self.spare)
    }

    fn stalled_micros(&self) -> Option<u64> {
        self.stalled_micros
    }

    fn oom_kills(&self) -> u64 {
        0
    }
}

impl ScriptedProcess {
    fn ask(&self, request: Request) {
        // The test may have ended before its process.
        let _ = self.requests.send(request);
    }
}

impl TaskProcess for ScriptedProcess {
    fn id(&self) -> Pid {
        getpid()
    }

    fn control(&self) -> &dyn ControlChannel {
        &self.control
    }

    fn marks(&self) -> &[String] {
        &[]
    }

    fn take_group(&mut self) -> Option<ControlGroup> {
        None
    }

    fn note_stopped(&self) {}

    fn suspend(&self) {
        self.ask(Request::Suspend);
    }

    fn stands_still(&self) -> bool {
        self.stands_still.load(Ordering::Relaxed)
    }

    fn resume(&self) {
        self.ask(Request::Resume);
    }

    fn kill(&self) {
        self.ask(Request::Kill);
        self.has_ended.send_replace(true);
    }

    fn await_change(&self, _: Awaited) -> Pending<'static, ChildEvent> {
        let changes = Arc::clone(&self.changes);
        Box::pin(async move {
            let change = changes.lock().await.recv().await;
            Ok(change.unwrap_or(ChildEvent::Ended))
        })
    }

    fn ended(&self) -> Pending<'_, ()> {
        let mut has_ended = self.has_ended.subscribe();
        Box::pin(async move {
            let ended = has_ended.wait_for(|ended| *ended).await;
            ended.map(drop).map_err(io::Error::other)
        })
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.ask(Request::Reap);
        Ok(ExitStatus::from_raw(9))
    }

    fn oom_score_adjustment(&self) -> io::Result<i32> {
        Ok(0)
    }

    fn set_oom_score_adjustment(&self, _: i32) -> io::Result<()> {
        Ok(())
    }

    fn check_paging(&self) -> io::Result<()> {
        Ok(())
    }

    fn page(&self, _: Paging, _: Arc<AtomicBool>) -> io::Result<JoinHandle<io::Result<u64>>> {
        Ok(tokio::spawn(async { Ok(0) }))
    }
}
