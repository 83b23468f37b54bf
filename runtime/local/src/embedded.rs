//! A job inside this program's own process tree: coordinator and one worker as two tasks of one
//! small runtime.
//!
//! Owns the setting up and the winding down, and what a signal to this program means. Does not own anything
//! that a cluster would do otherwise: the two talk by messages only.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use napreduce_engine::{JobId, Slots, WorkerId};
use napreduce_protocol::{JobError, JobPlan, JobReport};
use napreduce_task::{
    Interrupts, PauseSignal, Pauses, Spawner, check_kernel, signal_name, stop_this_process,
    task_process_requested,
};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::coordinator::{Coordinator, Following, Input};
use crate::progress::{ProgressDisplay, ProgressMode};
use crate::worker::{Worker, WorkerSettings, cores};

const WORKER: WorkerId = WorkerId(1);
const HEARTBEAT: Duration = Duration::from_millis(200);
/// This program stops without those of its tasks that are not stopped by then.
const REST_MAX: Duration = Duration::from_secs(5);

/// Jobs of one program are numbered in the order in which they run.
static JOBS: AtomicU32 = AtomicU32::new(0);

/// How to run a job inside this program's own process tree.
#[derive(Debug, Clone)]
pub struct EmbeddedSettings {
    /// How many map attempts, and how many reduce attempts, run at once; at least 1, and as
    /// many as there are cores unless said otherwise.
    pub slots: u32,
    /// When progress is shown.
    pub progress: ProgressMode,
    /// Nothing but errors of the job on standard error, and nothing of what its tasks print; wins
    /// over `progress`.
    pub quiet: bool,
}

impl Default for EmbeddedSettings {
    fn default() -> EmbeddedSettings {
        EmbeddedSettings { slots: cores(), progress: ProgressMode::default(), quiet: false }
    }
}

/// Runs a job to its end, blocking; attempts are child processes, this program executed again.
///
/// One at a time in a process. While it runs, SIGINT, SIGTERM and SIGHUP end the job; a second one ends the
/// program at once. SIGTSTP, as by Ctrl-Z, suspends all tasks, and then the program stops until it gets
/// SIGCONT. Must not be called from inside an async runtime.
///
/// # Errors
///
/// See [`JobError`]. Unless the job succeeded, no part of it is left in the output directory.
pub fn run_embedded(plan: JobPlan, settings: &EmbeddedSettings) -> Result<JobReport, JobError> {
    check(&plan, settings)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| JobError::io("start the runtime", error))?;
    let report = runtime.block_on(run(plan, settings));
    // All that was given to its threads was waited for.
    runtime.shutdown_background();
    report
}

/// The id of the next job that this program runs by itself.
pub fn next_job() -> JobId {
    JobId(JOBS.fetch_add(1, Ordering::Relaxed) + 1)
}

fn check(plan: &JobPlan, settings: &EmbeddedSettings) -> Result<(), JobError> {
    let refuse = |why: &str| Err(JobError::Plan(why.to_owned()));
    if task_process_requested() {
        return refuse("this is a task process; call task_process_main before anything else in main");
    }
    if settings.slots == 0 {
        return refuse("slots must be at least 1");
    }
    check_kernel().map_err(|error| JobError::io("run tasks on this machine", error))?;
    plan.check().map_err(JobError::Plan)
}

async fn run(mut plan: JobPlan, settings: &EmbeddedSettings) -> Result<JobReport, JobError> {
    // Before that they would only hold memory, for segments of this machine are mapped when they are wanted.
    plan.slowstart_permille = 1000;
    let unhandled = |error| JobError::io("handle signals", error);
    let mut interrupts = Interrupts::install().map_err(unhandled)?;
    let mut pauses = Pauses::install().map_err(unhandled)?;
    let tasks = plan.splits.len() as u64 + u64::from(plan.reduces);
    let spawner = Spawner::for_one_job(settings.quiet, settings.slots as usize, tasks);
    let job = next_job();
    let output = plan.output.display().to_string();
    let cluster = Cluster::start(spawner, settings.slots, job);
    let mut submission = cluster.submit(plan);
    let mut display = ProgressDisplay::new(settings.progress, settings.quiet);
    let mut rest: Option<Rest> = None;
    let ended = loop {
        tokio::select! {
            ended = submission.follow(&mut display) => break ended,
            signal = interrupts.arrival() => {
                let signal = signal.map_err(unhandled)?;
                let name = signal_name(signal).unwrap_or("a signal");
                cluster.tell(Input::Interrupt { reason: format!("interrupted by {name}") });
                // It is to end now, rather than to stand still.
                rest = None;
                break Err(interrupted(signal, &output, submission.follow(&mut display).await));
            }
            asked = pauses.arrival() => match asked.map_err(unhandled)? {
                PauseSignal::Stop if rest.is_none() => rest = Some(cluster.pause()),
                PauseSignal::Continue if rest.take().is_some() => cluster.tell(Input::GoOn),
                PauseSignal::Stop | PauseSignal::Continue => {}
            },
            () = come_to_rest(&mut rest) => {
                rest = None;
                stop_this_process();
                cluster.tell(Input::GoOn);
            }
        }
    };
    display.end();
    cluster.stop().await?;
    if rest.is_some() || pauses.arrived() == Some(PauseSignal::Stop) {
        // The job was over before all of it was at rest; the program is to stand still all the same.
        stop_this_process();
    }
    match interrupts.arrived() {
        // It came too late to end this job, but it must not be lost on a driver that has more to do.
        Some(signal) => Err(interrupted(signal, &output, ended)),
        None => ended,
    }
}

/// What a signal led to: mostly a killed job, but one that was being committed is committed to its end.
pub fn interrupted(signal: i32, output: &str, ended: Result<JobReport, JobError>) -> JobError {
    let left = match ended {
        Ok(_) => format!("the job was complete by then, its output is in {output}"),
        Err(JobError::Failed { .. } | JobError::Killed { .. }) => {
            format!("nothing of the job is left in {output}")
        }
        Err(other) => other.to_string(),
    };
    JobError::Interrupted { signal, left }
}

/// The tasks are being suspended, since this program is to stand still.
struct Rest {
    come: oneshot::Receiver<()>,
    by: Instant,
}

/// Waits until everything is at rest, or for as long as that may take; for ever when nothing is to
/// come to rest.
async fn come_to_rest(rest: &mut Option<Rest>) {
    match rest {
        // What could not be stopped is stopped by nobody, and goes on by itself.
        Some(Rest { come, by }) => drop(timeout_at(*by, come).await),
        None => pending().await,
    }
}

/// The two actors.
struct Cluster {
    inputs: UnboundedSender<Input>,
    coordinator: JoinHandle<()>,
    worker: JoinHandle<()>,
}

impl Cluster {
    fn start(spawner: Spawner, slots: u32, job: JobId) -> Cluster {
        let (to_worker, orders) = unbounded_channel();
        let (inputs, arriving) = unbounded_channel();
        let (news_end, mut news) = unbounded_channel();
        let slots = Slots { map: slots, reduce: slots };
        let settings = WorkerSettings::embedded(HEARTBEAT);
        let worker = tokio::spawn(Worker::run(settings, Arc::new(spawner), orders, news_end));
        let told = inputs.clone();
        tokio::spawn(async move {
            while let Some(news) = news.recv().await {
                // The coordinator ends before its worker, and does not want to know more then.
                let _ = told.send(Input::News { worker: WORKER, news });
            }
        });
        let own = inputs.clone();
        // It listens as long as there is something to be sent back.
        let send_back = Arc::new(move |input| drop(own.send(input)));
        let coordinator = Coordinator::embedded(WORKER, slots, to_worker, job, send_back);
        let coordinator = tokio::spawn(coordinator.run(arriving));
        Cluster { inputs, coordinator, worker }
    }

    fn tell(&self, input: Input) {
        // The coordinator listens until it is told to finish.
        let _ = self.inputs.send(input);
    }

    /// Has all tasks suspended.
    fn pause(&self) -> Rest {
        let (at_rest, come) = oneshot::channel();
        self.tell(Input::Pause { at_rest });
        Rest { come, by: Instant::now() + REST_MAX }
    }

    fn submit(&self, plan: JobPlan) -> Submission {
        let (reply, accepted) = oneshot::channel();
        self.tell(Input::Submit { plan: Box::new(plan), reply });
        Submission { accepted, following: None }
    }

    /// Lets the coordinator end, and then the worker, which kills what still runs.
    async fn stop(self) -> Result<(), JobError> {
        self.tell(Input::Finish);
        let coordinator = self.coordinator.await;
        let worker = self.worker.await;
        let internal = |error: &dyn std::fmt::Display| JobError::Internal(error.to_string());
        coordinator.map_err(|error| internal(&error))?;
        worker.map_err(|error| internal(&error))
    }
}

/// A job that was handed in.
struct Submission {
    accepted: oneshot::Receiver<Result<(JobId, Following), JobError>>,
    /// Once it was accepted.
    following: Option<Following>,
}

impl Submission {
    /// Shows progress until the job has ended.
    async fn follow(&mut self, display: &mut ProgressDisplay) -> Result<JobReport, JobError> {
        let gone = || JobError::Internal("the coordinator ended before the job".to_owned());
        if self.following.is_none() {
            let (_, following) = (&mut self.accepted).await.map_err(|_| gone())??;
            self.following = Some(following);
        }
        let Following { progress, end } = self.following.as_mut().ok_or_else(gone)?;
        loop {
            tokio::select! {
                biased;
                Ok(()) = progress.changed() => display.show(&progress.borrow_and_update()),
                ended = end.wait_for(Option::is_some) => {
                    let ended = ended.map_err(|_| gone())?.clone();
                    return ended.ok_or_else(gone)?.into_result();
                }
            }
        }
    }
}
