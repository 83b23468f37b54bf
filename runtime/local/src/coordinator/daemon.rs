//! The coordinator's loop: inputs are journaled, applied and answered.
//!
//! No effect of an entry leaves the coordinator before the entry is journaled. `run` is the loop of an
//! embedded run, which has no journal; the loop of a cluster calls the same steps in the same order.

use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{
    DEFAULT_RACK, Engine, EngineSettings, Event, Fifo, JobId, Slots, SuspendedMax, Time, WorkerId,
};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{ToWorker, several_lines};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::claims::Claims;
use super::endings::Endings;
use super::entries::Entries;
use super::entry::{Extra, Identity};
use super::followers::{Followers, Following};
use super::program::Program;
use super::renewals::Renewals;
use super::state::CoordinatorState;
use super::submitters::Submitters;
use super::{ClusterServices, Coordinator, Input, Notices, SendBack};
use crate::clock::{EngineClock, now};
use crate::output::Disk;
use crate::world::World;
#[cfg(feature = "simulated")]
use crate::world::{Fact, note};

/// Interval of progress updates and of checks for due work.
const TICK: Duration = Duration::from_millis(100);
/// Maximum inputs journaled with one write.
pub const BATCH: usize = 256;

/// Returns the ticks of a coordinator's loop.
pub fn ticks() -> Interval {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}

impl Coordinator {
    pub fn new(
        world: World,
        state: CoordinatorState,
        cluster: Option<Box<dyn ClusterServices>>,
        send_back: SendBack,
    ) -> Coordinator {
        Coordinator {
            clock: EngineClock::resume(
                world.clock.unix_micros(),
                state.epoch_micros(),
                state.last(),
            ),
            disk: Disk::new(world.clone()),
            world,
            entries: Entries::new(cluster.is_some()),
            submitters: Submitters::new(state.last_job()),
            claims: Claims::default(),
            renewals: Renewals::new(now()),
            endings: Endings::default(),
            followers: Followers::default(),
            program: Program::default(),
            notices: Notices::Traced,
            state,
            cluster,
            send_back,
        }
    }

    /// Creates a coordinator with one worker inside this process; its next job gets the number `job`. It
    /// holds no state beyond the process.
    pub(crate) fn embedded(
        world: World,
        worker: WorkerId,
        slots: Slots,
        orders: UnboundedSender<ToWorker>,
        job: JobId,
        send_back: SendBack,
        notices: Notices,
    ) -> Coordinator {
        let mut settings = EngineSettings::default();
        // Slots of suspended tasks stay free while the program is stopped.
        settings.preemption.suspended_max = SuspendedMax::Unlimited;
        settings.one_host = true;
        let engine = Engine::new(Box::new(Fifo::default()), settings);
        let state = CoordinatorState::new(engine, "fifo".to_owned(), world.clock.unix_micros());
        let mut coordinator = Coordinator::new(world, state, None, send_back);
        coordinator.submitters = Submitters::new(job.0 - 1);
        coordinator.notices = notices;
        let identity = Identity {
            name: String::new(),
            incarnation: 0,
            slots,
            host: String::new(),
            rack: DEFAULT_RACK.to_owned(),
            data_address: String::new(),
            directory: PathBuf::new(),
            architecture: std::env::consts::ARCH.to_owned(),
            isolation: String::new(),
        };
        let joined = identity.joined(worker);
        coordinator.enter_with(Some(joined), vec![Extra::Joined { worker, identity }]);
        if let Some(link) = coordinator.state.link_mut(worker) {
            link.connect_local(orders);
        }
        coordinator
    }

    /// Runs an embedded coordinator until [`Input::Finish`] has arrived and every job has ended.
    pub(crate) async fn run(mut self, mut inputs: UnboundedReceiver<Input>) {
        let mut tick = ticks();
        let mut batch = Vec::new();
        self.begin_to_listen();
        self.conclude_unjournaled();
        while !self.program.is_finishing() || self.is_busy() {
            tokio::select! {
                _ = inputs.recv_many(&mut batch, BATCH) => {
                    for input in batch.drain(..) {
                        self.take(input);
                    }
                    self.decide();
                }
                () = sleep_until_some(self.wake_at()) => self.enter(Event::Woken),
                _ = tick.tick() => self.on_tick(),
            }
            self.conclude_unjournaled();
        }
    }

    /// Starts the time for workers to reconnect now, however long reading the journal took.
    pub fn begin_to_listen(&mut self) {
        self.state.begin_to_listen();
    }

    /// Returns when the engine must be woken.
    pub fn wake_at(&self) -> Option<Instant> {
        self.state.wake_at().map(|at| self.clock.instant(at))
    }

    pub fn clock(&self) -> EngineClock {
        self.clock
    }

    /// Returns the time of the next entry.
    pub fn entry_time(&self) -> Time {
        self.clock.now().max(self.state.last())
    }

    pub fn state(&self) -> &CoordinatorState {
        &self.state
    }

    pub fn state_mut(&mut self) -> &mut CoordinatorState {
        &mut self.state
    }

    /// Replaces the disk by one whose calls fail in a test.
    pub fn set_disk(&mut self, disk: Disk) {
        self.disk = disk;
    }

    fn is_busy(&self) -> bool {
        !self.state.jobs().is_empty() || self.submitters.are_waiting()
    }

    pub fn take(&mut self, input: Input) {
        // News are collected into one entry; any other input begins a new one.
        if !matches!(input, Input::News { .. }) {
            self.decide();
        }
        match input {
            Input::News { worker, news } => self.on_news(worker, news),
            Input::Submit { plan, reply } => self.submit_embedded(*plan, reply),
            Input::Claimed {
                accepted,
                pins,
                claim,
            } => self.on_claimed(Arc::unwrap_or_clone(accepted), pins, claim),
            Input::Resumed { job, resumed } => self.on_resumed(job, resumed),
            Input::Verified { job, check } => self.on_verified(job, check),
            Input::Tried { job, tried } => self.on_tried(job, tried),
            Input::Interrupt { reason } => self.interrupt(reason),
            Input::Pause { at_rest } => self.pause(at_rest),
            Input::GoOn => self.go_on(),
            Input::Finish => self.program.finish(),
        }
    }

    /// Calls `answer` when all inputs so far are journaled.
    pub fn afterwards(&mut self, answer: impl FnOnce() + Send + 'static) {
        self.entries.answer_later(answer);
    }

    /// Writes the journal and then releases the effects. `write` gets the entries, and whether they must be
    /// synced when it returns: an output is committed or removed next, which must not outlive them.
    pub fn conclude<E>(
        &mut self,
        write: impl FnOnce(&[Vec<u8>], bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let ended = self.state.take_ended();
        for job in &ended {
            self.begin_commit(*job);
        }
        let must_sync = !ended.is_empty();
        #[cfg(feature = "simulated")]
        for job in &ended {
            let known = self.state.jobs().get(job);
            note(&Fact::JobEnding {
                job: *job,
                outcome: known.and_then(|known| known.outcome.as_ref()),
            });
        }
        #[cfg(feature = "simulated")]
        if let Err(broken) = self.state.check_outputs() {
            tracing::error!(target: "oracle", "{broken}");
        }
        #[cfg(feature = "simulated")]
        if let Err(broken) = self.state.engine().check() {
            tracing::error!(target: "oracle", "{broken}");
        }
        self.entries.write(|entries| write(entries, must_sync))?;
        self.state.flush();
        self.entries.release_answers();
        for notice in self.state.take_notices() {
            self.log(&notice);
        }
        for job in ended {
            self.start_ending(job);
        }
        self.tell_rest();
        Ok(())
    }

    fn conclude_unjournaled(&mut self) {
        let Ok(()) = self.conclude(|_, _| Ok::<(), Infallible>(()));
    }

    pub fn on_tick(&mut self) {
        self.look_after_claims();
        let engine = self.state.engine();
        let now = self.entry_time();
        self.followers
            .publish(|job| Some(self.state.jobs().get(&job)?.progress(engine, now)));
    }

    /// Subscribes to the progress of a job.
    pub fn follow(&mut self, job: JobId) -> Following {
        self.followers.follow(job)
    }

    /// Logs a line for the operator of a daemon, or for the user of a program with an embedded coordinator.
    pub fn log(&self, what: &str) {
        match self.notices {
            Notices::Traced => tracing::info!(target: "coordinator", "{what}"),
            Notices::Printed => print_error(format_args!("{}", several_lines(what))),
        }
    }
}

/// Waits until `at`; never resolves if it is `None`.
pub async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}
