//! A process of a simulation on a machine of its own: its tasks run until it crashes, its random numbers follow from a
//! seed, and its wall clock may differ from that of others.
//!
//! All processes of a simulation share one current-thread runtime with a paused clock, which jumps to the next timer
//! whenever no task can run.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use napreduce_protocol::{ClaimToken, lock, whole_micros};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{Instant, Sleep, sleep};

use super::SplitMix;
use super::disk::SimDisk;
use crate::clock::now;
use crate::process::{Life, ProcessIdentity};

/// The time that blocking work takes unless [`Node::set_latency`] changes it.
const LATENCY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(2);
/// Handles of this many tasks are kept before ended ones are removed.
const HANDLES_KEPT: usize = 64;

/// A process of a simulation. The next one on its machine is another node of the same host.
#[derive(Debug, Clone)]
pub struct Node {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    identity: ProcessIdentity,
    /// Claims on output directories.
    held: BTreeSet<ClaimToken>,
    power: Power,
    numbers: SplitMix,
    latency: RangeInclusive<Duration>,
    /// Until this time blocking work takes this long instead.
    slow: Option<(Instant, RangeInclusive<Duration>)>,
    /// The disk whose calls make the tasks wait.
    disk: Option<SimDisk>,
    /// Every task that has not ended, and some that have.
    tasks: Vec<AbortHandle>,
    /// The number of handles at which those of ended tasks are removed.
    tasks_max: usize,
    /// Tasks that were woken while the machine was asleep.
    woken: Vec<Waker>,
    began: Instant,
    /// The time of its wall clock when it began.
    unix_micros: u64,
}

/// Whether the tasks of a machine run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    Asleep,
    Crashed,
}

impl Node {
    /// Creates a running process. Its random numbers and its process id follow from `seed`; the wall clock of its host
    /// shows `unix_micros` now.
    pub fn new(host: &str, seed: u64, unix_micros: u64) -> Node {
        let mut numbers = SplitMix::new(seed);
        let identity = ProcessIdentity::simulated(host, numbers.number());
        let state = State {
            identity,
            held: BTreeSet::new(),
            power: Power::On,
            numbers,
            latency: LATENCY,
            slow: None,
            disk: None,
            tasks: Vec::new(),
            tasks_max: HANDLES_KEPT,
            woken: Vec::new(),
            began: now(),
            unix_micros,
        };
        Node {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Ends the machine. None of its tasks runs again, and blocking work that has not run never does. The runtime
    /// drops the tasks when it next runs.
    pub fn crash(&self) {
        let mut state = lock(&self.state);
        state.power = Power::Crashed;
        state.woken.clear();
        for task in state.tasks.drain(..) {
            task.abort();
        }
    }

    /// Returns whether the machine has crashed.
    pub fn has_crashed(&self) -> bool {
        lock(&self.state).power == Power::Crashed
    }

    /// Stops running the tasks, as a laptop does whose lid is closed. Time passes meanwhile.
    pub fn fall_asleep(&self) {
        let mut state = lock(&self.state);
        if state.power == Power::On {
            state.power = Power::Asleep;
        }
    }

    /// Runs the tasks again after [`Node::fall_asleep`].
    pub fn wake_up(&self) {
        let woken = {
            let mut state = lock(&self.state);
            if state.power != Power::Asleep {
                return;
            }
            state.power = Power::On;
            std::mem::take(&mut state.woken)
        };
        for waker in woken {
            waker.wake();
        }
    }

    /// Sets the wall clock.
    pub fn set_unix_micros(&self, unix_micros: u64) {
        let mut state = lock(&self.state);
        state.began = now();
        state.unix_micros = unix_micros;
    }

    /// Sets the bounds of the time that blocking work takes from now on.
    pub fn set_latency(&self, latency: RangeInclusive<Duration>) {
        lock(&self.state).latency = latency;
    }

    /// Sets other bounds of that time for work that begins before `until`.
    pub fn slow_down(&self, latency: RangeInclusive<Duration>, until: Instant) {
        lock(&self.state).slow = Some((until, latency));
    }

    /// Makes each task wait as long as its calls to this disk take.
    pub fn use_disk(&self, disk: SimDisk) {
        lock(&self.state).disk = Some(disk);
    }

    /// Returns its identity.
    pub(super) fn identity(&self) -> ProcessIdentity {
        lock(&self.state).identity.clone()
    }

    /// Returns whether a process is alive. A host runs one at a time, and others are not visible from here.
    pub(super) fn life_of(&self, other: &ProcessIdentity) -> Life {
        let own = self.identity();
        if own == *other {
            Life::Alive
        } else if own.is_on_host_of(other) {
            Life::Dead
        } else {
            Life::Unknown
        }
    }

    /// Calls `act` with the claims that it holds.
    pub(super) fn with_held<T>(&self, act: impl FnOnce(&mut BTreeSet<ClaimToken>) -> T) -> T {
        act(&mut lock(&self.state).held)
    }

    /// Returns the time of the wall clock.
    pub(super) fn unix_micros(&self) -> u64 {
        let state = lock(&self.state);
        let passed = whole_micros(now().duration_since(state.began));
        state.unix_micros.saturating_add(passed)
    }

    /// Fills the bytes with random ones.
    pub(super) fn fill(&self, bytes: &mut [u8]) {
        let mut state = lock(&self.state);
        for piece in bytes.chunks_mut(8) {
            let number = state.numbers.number().to_le_bytes();
            piece.copy_from_slice(&number[..piece.len()]);
        }
    }

    /// Starts a task of this machine.
    pub(super) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = tokio::spawn(self.powered(future));
        self.keep(task.abort_handle());
        task
    }

    /// Starts a task of this machine as a member of a set.
    pub(super) fn spawn_in<F>(&self, set: &mut JoinSet<F::Output>, future: F) -> AbortHandle
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = set.spawn(self.powered(future));
        self.keep(task.clone());
        task
    }

    /// Returns a future that does blocking work after a time that is drawn now.
    pub(super) fn after_latency<T>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static {
        let latency = self.draw_latency();
        async move {
            sleep(latency).await;
            work()
        }
    }

    fn take_disk_latency(&self) -> Duration {
        match &lock(&self.state).disk {
            Some(disk) => disk.take_latency(),
            None => Duration::ZERO,
        }
    }

    fn draw_latency(&self) -> Duration {
        let mut state = lock(&self.state);
        let latency = match &state.slow {
            Some((until, latency)) if now() < *until => latency.clone(),
            _ => state.latency.clone(),
        };
        state.numbers.duration(&latency)
    }

    fn powered<F: Future>(&self, future: F) -> Powered<F> {
        Powered {
            node: self.clone(),
            future: Some(Box::pin(future)),
            stall: None,
        }
    }

    fn keep(&self, task: AbortHandle) {
        let mut state = lock(&self.state);
        if state.power == Power::Crashed {
            task.abort();
            return;
        }
        if state.tasks.len() >= state.tasks_max {
            state.tasks.retain(|task| !task.is_finished());
            state.tasks_max = HANDLES_KEPT.max(state.tasks.len() * 2);
        }
        state.tasks.push(task);
    }
}

/// A future that runs while its machine does.
struct Powered<F> {
    node: Node,
    /// Dropped when the machine crashes.
    future: Option<Pin<Box<F>>>,
    /// The rest of the time that its last calls to the disk take.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Powered<F> {
    /// Polls the future unless its last calls to the disk are under way.
    fn poll_running(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        if let Some(stall) = &mut self.stall {
            ready!(stall.as_mut().poll(context));
            self.stall = None;
        }
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(context);
        let latency = self.node.take_disk_latency();
        if polled.is_ready() || latency.is_zero() {
            return polled;
        }
        let mut stall = Box::pin(sleep(latency));
        // It is woken at the end of this time, and polls the future again.
        if stall.as_mut().poll(context).is_pending() {
            self.stall = Some(stall);
        }
        Poll::Pending
    }
}

impl<F: Future> Future for Powered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let power = {
            let mut state = lock(&self.node.state);
            if state.power == Power::Asleep {
                state.woken.push(context.waker().clone());
            }
            state.power
        };
        match power {
            Power::On => self.poll_running(context),
            Power::Asleep => Poll::Pending,
            Power::Crashed => {
                self.future = None;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::super::disk::{Disk, FaultRates};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Runs a test on a paused clock.
    fn on_paused_clock(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
            .block_on(test);
    }

    /// Counts the seconds that a task of the machine sees.
    fn count_seconds(node: &Node) -> Arc<AtomicU32> {
        let seen = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&seen);
        node.world().tasks.spawn(async move {
            loop {
                sleep(SECOND).await;
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        seen
    }

    #[test]
    fn crash_ends_tasks_and_work_that_has_not_begun() {
        on_paused_clock(async {
            let node = Node::new("a", 1, 0);
            node.set_latency(SECOND..=SECOND);
            let seconds = count_seconds(&node);
            let done = Arc::new(AtomicU32::new(0));
            let counter = Arc::clone(&done);
            let work = node.world().tasks.blocking(move || {
                counter.fetch_add(1, Ordering::Relaxed);
            });
            work.await.expect("it has run");
            let counter = Arc::clone(&done);
            node.world().tasks.blocking(move || {
                counter.fetch_add(1, Ordering::Relaxed);
            });
            sleep(SECOND / 2).await;
            node.crash();
            sleep(10 * SECOND).await;
            assert_eq!(seconds.load(Ordering::Relaxed), 1);
            assert_eq!(done.load(Ordering::Relaxed), 1);
            assert_eq!(Arc::strong_count(&done), 1, "the closure is dropped");
            assert_eq!(Arc::strong_count(&seconds), 1, "the task is dropped");
            let late = node.world().tasks.spawn(async {});
            assert!(late.await.expect_err("it never runs").is_cancelled());
        });
    }

    #[test]
    fn sleeping_machine_runs_nothing_and_then_continues() {
        on_paused_clock(async {
            let node = Node::new("a", 1, 0);
            let seconds = count_seconds(&node);
            sleep(SECOND * 5 / 2).await;
            node.fall_asleep();
            sleep(100 * SECOND).await;
            assert_eq!(seconds.load(Ordering::Relaxed), 2);
            node.wake_up();
            sleep(SECOND * 3 / 2).await;
            assert_eq!(seconds.load(Ordering::Relaxed), 4);
            assert_eq!(node.world().clock.unix_micros(), 104_000_000);
        });
    }

    #[test]
    fn task_waits_for_calls_to_its_disk() {
        on_paused_clock(async {
            let node = Node::new("a", 1, 0);
            let disk = SimDisk::new(1);
            disk.set_rates(FaultRates {
                sync: SECOND,
                ..FaultRates::default()
            });
            node.use_disk(disk.clone());
            let began = now();
            let syncing = node.world().tasks.spawn(async move {
                disk.sync_directory(Path::new("/")).expect("synced");
                sleep(SECOND / 2).await;
                disk.sync_directory(Path::new("/")).expect("synced");
                sleep(SECOND / 2).await;
                began.elapsed()
            });
            assert_eq!(syncing.await.expect("it has run"), 2 * SECOND);
        });
    }

    #[test]
    fn numbers_and_latencies_follow_from_seed() {
        let draw = |seed| {
            let node = Node::new("a", seed, 0);
            let mut bytes = [0; 20];
            node.fill(&mut bytes);
            let latencies = [(); 5].map(|()| node.draw_latency());
            assert!(latencies.iter().all(|latency| LATENCY.contains(latency)));
            (bytes, latencies)
        };
        on_paused_clock(async move {
            assert_eq!(draw(1), draw(1));
            assert_ne!(draw(1), draw(2));
        });
    }
}
