//! The coordinator's loop: what arrives is journaled, taken in, and answered.
//!
//! Owns the order of things: nothing that follows from an entry leaves before the entry is in the journal.
//! Does not own what follows (`state`), nor sockets, whose tasks send what they hear.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use napreduce_engine::{
    DEFAULT_RACK, Engine, EngineSettings, Event, Fifo, JobId, Slots, SuspendedMax, WorkerId, fields,
};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobEnd, JobError, JobPlan, JobProgress, ToWorker, WorkerNews, several_lines};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::claims::Claim;
use super::clock::{Clock, unix_micros};
use super::ending::{Ending, Tried};
use super::entry::{Accepted, Entry, Extra, Identity};
use super::lasting::{ClusterInput, JournalError, Lasting, Pins};
use super::link::Link;
use super::pauses::Pause;
use super::requests::{Following, Request};
use super::state::CoordinatorState;
use super::submissions::Submitter;
use crate::output::{Disk, OutputClaim, Resumed, Trouble};

/// How often followers hear of progress, and what is due is looked at.
const TICK: Duration = Duration::from_millis(100);
/// What arrived is journaled with one write for so many at a time.
const BATCH: usize = 256;

/// What arrives from workers, from an embedding program, and from work that was done beside the loop.
#[derive(Debug)]
pub(crate) enum Input {
    Cluster(ClusterInput),
    /// From the worker in this process.
    News {
        worker: WorkerId,
        news: WorkerNews,
    },
    /// A job of this process.
    Submit {
        plan: Box<JobPlan>,
        reply: oneshot::Sender<Result<(JobId, Following), JobError>>,
    },
    Claimed {
        accepted: Box<Accepted>,
        pins: Pins,
        claim: Result<OutputClaim, JobError>,
    },
    /// A claim was taken up again, or not.
    Resumed {
        job: JobId,
        resumed: Result<Resumed<OutputClaim>, Trouble>,
    },
    /// A try to end a job is over.
    Tried {
        job: JobId,
        tried: Tried,
    },
    /// The embedding program was interrupted: end what it submitted.
    Interrupt {
        reason: String,
    },
    /// The embedding program is to stand still: say when nothing is at work any more.
    Pause {
        at_rest: oneshot::Sender<()>,
    },
    /// The embedding program goes on.
    GoOn,
    /// End when what has arrived is in the journal; jobs go on with the next coordinator.
    Stop,
}

/// Who follows a job.
pub(super) struct Followed {
    pub(super) progress: watch::Sender<JobProgress>,
    pub(super) end: watch::Sender<Option<JobEnd>>,
}

/// An answer that waits for the journal.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

fields! {
    pub(crate) struct Coordinator {
        pub(super) clock: Clock = Clock::resume(state.epoch_micros, state.last),
        /// The highest number given to a job, journaled or not.
        pub(super) last_job: u32 = state.last_job,
        pub(super) state: CoordinatorState = state,
        pub(super) lasting: Option<Lasting> = lasting,
        /// What waits in a batch and is not decided about.
        pub(super) batch: Option<Entry>,
        /// Entries taken in since the last write.
        pub(super) unwritten: Vec<Vec<u8>>,
        pub(super) answers: Vec<Answer>,
        pub(super) connections: BTreeMap<u64, WorkerId>,
        pub(super) claims: BTreeMap<JobId, Claim>,
        /// Jobs whose tasks are over and whose output is not settled.
        pub(super) endings: BTreeMap<JobId, Ending>,
        /// When the leases of claims were renewed last.
        pub(super) renewed: Instant = Instant::now(),
        pub(super) disk: Disk,
        /// Submissions whose output directory is being claimed, by token.
        pub(super) claiming: BTreeMap<u128, (JobId, Vec<Submitter>)>,
        pub(super) followed: BTreeMap<JobId, Followed>,
        pub(super) own: UnboundedSender<Input> = own,
        ticked: Instant = Instant::now(),
        stopping: bool,
        pub(super) interrupted: Option<String>,
        pub(super) pause: Option<Pause>,
    }

    pub(super) fn new(state: CoordinatorState, lasting: Option<Lasting>, own: UnboundedSender<Input>);
}

impl Coordinator {
    /// A coordinator of one worker inside this process, whose next job gets the number `job`. Its jobs end
    /// with it.
    pub(crate) fn embedded(
        worker: WorkerId,
        slots: Slots,
        orders: UnboundedSender<ToWorker>,
        job: JobId,
        own: UnboundedSender<Input>,
    ) -> Coordinator {
        let mut settings = EngineSettings::default();
        // Nothing takes what its tasks give up when the program is to stand still.
        settings.preemption.suspended_max = SuspendedMax::Unlimited;
        settings.one_host = true;
        let engine = Engine::new(Box::new(Fifo::default()), settings);
        let state = CoordinatorState::new(engine, "fifo".to_owned(), unix_micros());
        let mut coordinator = Coordinator::new(state, None, own);
        coordinator.last_job = job.0 - 1;
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
        if let Some(link) = coordinator.state.links.get_mut(&worker) {
            link.connect_local(orders);
        }
        coordinator
    }

    /// Runs until it is told to stop, or, embedded, until `requests` is closed and every job has ended.
    pub(crate) async fn run(
        mut self,
        mut requests: UnboundedReceiver<Request>,
        mut inputs: UnboundedReceiver<Input>,
    ) -> Result<(), JournalError> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut open, mut batch) = (true, Vec::new());
        // Workers have their time to come back from now on, however long it took to read the journal.
        self.state.links.values_mut().for_each(Link::begin_to_listen);
        self.ticked = Instant::now();
        self.conclude()?;
        while !self.stopping && (open || self.lasting.is_some() || self.is_busy()) {
            let wake_at = self.state.wake_at.map(|at| self.clock.instant(at));
            tokio::select! {
                _ = inputs.recv_many(&mut batch, BATCH) => {
                    for input in batch.drain(..) {
                        self.take(input);
                    }
                    self.decide();
                }
                request = requests.recv(), if open => match request {
                    Some(request) => self.answer(request),
                    None => open = false,
                },
                () = sleep_until_some(wake_at) => self.enter(Event::Woken),
                _ = tick.tick() => self.on_tick(),
            }
            self.conclude()?;
        }
        self.compact_at_the_end().await
    }

    /// Keeps every event from now on with what followed.
    #[cfg(test)]
    pub(super) fn record(&mut self, recording: Option<super::recording::Recording>) {
        self.state.recorded = recording;
    }

    fn is_busy(&self) -> bool {
        !self.state.jobs.is_empty() || !self.claiming.is_empty()
    }

    fn take(&mut self, input: Input) {
        if !matches!(input, Input::Cluster(_) | Input::News { .. }) {
            self.decide();
        }
        match input {
            Input::Cluster(input) => self.take_cluster_input(input),
            Input::News { worker, news } => self.on_news(worker, news),
            Input::Submit { plan, reply } => self.submit_embedded(*plan, reply),
            Input::Claimed { accepted, pins, claim } => self.on_claimed(*accepted, pins, claim),
            Input::Resumed { job, resumed } => self.on_resumed(job, resumed),
            Input::Tried { job, tried } => self.on_tried(job, tried),
            Input::Interrupt { reason } => self.interrupt(reason),
            Input::Pause { at_rest } => self.pause(at_rest),
            Input::GoOn => self.go_on(),
            Input::Stop => self.stopping = true,
        }
    }

    /// Has `answer` called when everything taken in so far is in the journal.
    pub(super) fn afterwards(&mut self, answer: impl FnOnce() + Send + 'static) {
        self.answers.push(Box::new(answer));
    }

    /// Writes the journal, and then lets out what follows.
    fn conclude(&mut self) -> Result<(), JournalError> {
        let ended = std::mem::take(&mut self.state.ended);
        let commits = ended.iter().filter(|job| self.begin_commit(**job)).count();
        if let Some(lasting) = &mut self.lasting
            && !self.unwritten.is_empty()
        {
            lasting.write(&self.unwritten, commits > 0)?;
        }
        self.unwritten.clear();
        self.state.flush();
        for answer in std::mem::take(&mut self.answers) {
            answer();
        }
        for notice in std::mem::take(&mut self.state.notices) {
            self.say(&notice);
        }
        for job in ended {
            self.start_ending(job);
        }
        self.tell_rest();
        self.compact_if_due()
    }

    fn on_tick(&mut self) {
        let paused = self.ticked.elapsed();
        self.ticked = Instant::now();
        self.look_after_cluster(paused);
        self.look_after_claims();
        let view = self.state.engine.view();
        for (job, followed) in &self.followed {
            if let Some(job) = self.state.jobs.get(job).filter(|_| followed.progress.receiver_count() > 0) {
                followed.progress.send_replace(job.progress(&view));
            }
        }
    }

    /// How a job goes on.
    pub(super) fn follow(&mut self, job: JobId) -> Following {
        let followed = self.followed.entry(job).or_insert_with(|| Followed {
            progress: watch::Sender::new(JobProgress::default()),
            end: watch::Sender::new(None),
        });
        Following { progress: followed.progress.subscribe(), end: followed.end.subscribe() }
    }

    /// For the log of a daemon; an embedded coordinator says only what its user should know.
    pub(super) fn say(&self, what: &str) {
        match &self.lasting {
            Some(_) => tracing::info!(target: "coordinator", "{what}"),
            None => print_error(format_args!("{}", several_lines(what))),
        }
    }
}

/// Waits until then; for ever when there is no then.
async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => pending().await,
    }
}
