//! A job inside this program's own process tree: the coordinator and one worker as two tasks of one small
//! runtime.
//!
//! They communicate by messages only, as in a cluster. `run_embedded` is for command lines and handles signals to
//! the program; `start_embedded` is for libraries, and `start_on_threads` for tests.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use napreduce_engine::{JobId, Slots, WorkerId};
use napreduce_protocol::{JobError, JobPlan, JobProgress, JobReport};
use napreduce_task::{Definitions, signal_name, task_process_requested};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::coordinator::{Coordinator, Following, Input, Notices};
use crate::process::{
    Interrupts, PauseSignal, Pauses, Processes, Spawner, TaskThreads, check_kernel,
    stop_this_process,
};
use crate::progress::{ProgressDisplay, ProgressMode};
use crate::started_job::{JobLink, StartedJob};
use crate::worker::{Worker, WorkerSettings, cores};
use crate::world::World;

const WORKER: WorkerId = WorkerId(1);
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Maximum wait for tasks to be suspended before this program stops.
const REST_MAX: Duration = Duration::from_secs(5);

/// The number of the next job, counted per program.
static JOBS: AtomicU32 = AtomicU32::new(0);

/// The settings of an embedded job.
#[derive(Debug, Clone)]
pub struct EmbeddedSettings {
    /// Maximum concurrent map attempts, and maximum concurrent reduce attempts; at least 1. Default: the
    /// number of cores.
    pub slots: u32,
    /// When progress is shown.
    pub progress: ProgressMode,
    /// Print nothing on standard error except errors of the job; also suppresses the output of its tasks.
    /// Overrides `progress`.
    pub quiet: bool,
}

impl Default for EmbeddedSettings {
    fn default() -> EmbeddedSettings {
        EmbeddedSettings {
            slots: cores(),
            progress: ProgressMode::default(),
            quiet: false,
        }
    }
}

/// Runs a job of a command line to its end. Blocking. Attempts are child processes that execute this program.
///
/// Only one job can run at a time in this way. While it runs, SIGINT, SIGTERM and SIGHUP end the job; a
/// second signal ends the program at once. SIGTSTP, as by Ctrl-Z, suspends all tasks and then stops the
/// program until SIGCONT. Must not be called from inside an async runtime.
///
/// # Errors
///
/// See [`JobError`]. Unless the job succeeded, no part of it remains in the output directory.
pub fn run_embedded(plan: JobPlan, settings: &EmbeddedSettings) -> Result<JobReport, JobError> {
    check(&plan, settings)?;
    let runtime = runtime()?;
    let report = runtime.block_on(run(plan, settings));
    // All work on its threads is finished.
    runtime.shutdown_background();
    report
}

/// Starts a job that runs beside the rest of this program. Attempts are child processes that execute this
/// program, in its environment and working directory at that time.
///
/// Any number of jobs can run at once, each with `slots` of its own, and also inside an async runtime. Unlike
/// [`run_embedded`] it installs no signal handlers, changes no other state of this process, and prints nothing:
/// warnings are events of `tracing`. What tasks print goes to standard error, or nowhere if `quiet`; `progress` is
/// ignored.
///
/// Do not ignore SIGCHLD in a program that calls this, and do not wait for any child (`waitpid(-1)`): the exit
/// statuses of tasks would be lost.
///
/// # Errors
///
/// Fails if the plan or the settings are invalid, or no thread can be started. The job itself reports all other
/// errors. Unless it succeeds, no part of it remains in the output directory.
pub fn start_embedded(plan: JobPlan, settings: &EmbeddedSettings) -> Result<StartedJob, JobError> {
    check(&plan, settings)?;
    let job = next_job();
    let settings = settings.clone();
    // Dropping the runtime waits for its threads, which close their files.
    StartedJob::start(job, move |link| {
        let processes = Arc::new(spawner(&plan, &settings));
        runtime()?.block_on(run_started(job, plan, settings.slots, processes, link))
    })
}

/// Starts a job whose attempts run on threads of this process: for tests and small data, where starting processes
/// would take longer than the work. Output, errors, retries and counters are those of [`start_embedded`].
///
/// `definitions` builds the job of each attempt. A panic of user code fails its attempt and is not printed: the
/// first such job wraps the panic hook of this process, which gets all other panics. Counts and panics of threads
/// that user code starts are not those of the attempt. With `quiet`, warnings of tasks are not printed; what user code
/// prints is. A killed attempt ends at its next boundary (a batch of records,
/// or a group), so user code that never returns is never ended. An exit, an abort or a lack of memory ends the
/// program. Attempts have the environment variables of this process, and no others.
///
/// # Errors
///
/// As [`start_embedded`].
pub fn start_on_threads(
    plan: JobPlan,
    definitions: Arc<dyn Definitions + Send + Sync>,
    settings: &EmbeddedSettings,
) -> Result<StartedJob, JobError> {
    check(&plan, settings)?;
    let job = next_job();
    let slots = settings.slots;
    let processes = Arc::new(TaskThreads::new(definitions, settings.quiet));
    StartedJob::start(job, move |link| {
        runtime()?.block_on(run_started(job, plan, slots, processes, link))
    })
}

fn runtime() -> Result<Runtime, JobError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| JobError::io("start the runtime", error))
}

/// Returns the id of the next job that this program runs by itself.
pub fn next_job() -> JobId {
    JobId(JOBS.fetch_add(1, Ordering::Relaxed) + 1)
}

fn check(plan: &JobPlan, settings: &EmbeddedSettings) -> Result<(), JobError> {
    let refuse = |why: &str| Err(JobError::Plan(why.to_owned()));
    if task_process_requested() {
        return refuse(
            "this is a task process; call task_process_main before anything else in main",
        );
    }
    if settings.slots == 0 {
        return refuse("slots must be at least 1");
    }
    check_kernel().map_err(|error| JobError::io("run tasks on this machine", error))?;
    plan.check().map_err(JobError::Plan)
}

/// Creates the spawner of a job; it starts processes ahead.
fn spawner(plan: &JobPlan, settings: &EmbeddedSettings) -> Spawner {
    let tasks = plan.splits.len() as u64 + u64::from(plan.reduces);
    Spawner::for_one_job(settings.quiet, settings.slots as usize, tasks)
}

async fn run_started(
    job: JobId,
    plan: JobPlan,
    slots: u32,
    processes: Arc<dyn Processes>,
    mut link: JobLink,
) -> Result<JobReport, JobError> {
    let (cluster, mut submission) = Cluster::start(job, plan, slots, processes, Notices::Traced);
    let show = |progress: &JobProgress| {
        link.progress.send_replace(*progress);
    };
    let mut ended = pin!(submission.follow(show));
    let ended = loop {
        tokio::select! {
            ended = &mut ended => break ended,
            Some(reason) = link.cancels.recv() => cluster.tell(Input::Interrupt { reason }),
        }
    };
    cluster.stop().await?;
    ended
}

async fn run(plan: JobPlan, settings: &EmbeddedSettings) -> Result<JobReport, JobError> {
    let unhandled = |error| JobError::io("handle signals", error);
    let mut interrupts = Interrupts::install().map_err(unhandled)?;
    let mut pauses = Pauses::install().map_err(unhandled)?;
    let output = plan.output.display().to_string();
    let processes = Arc::new(spawner(&plan, settings));
    let (cluster, mut submission) = Cluster::start(
        next_job(),
        plan,
        settings.slots,
        processes,
        Notices::Printed,
    );
    let mut display = ProgressDisplay::new(settings.progress, settings.quiet, Duration::ZERO);
    let mut rest: Option<Rest> = None;
    let ended = loop {
        tokio::select! {
            ended = submission.follow(|progress| display.show(progress)) => break ended,
            signal = interrupts.arrival() => {
                let signal = signal.map_err(unhandled)?;
                let name = signal_name(signal).unwrap_or("a signal");
                cluster.tell(Input::Interrupt { reason: format!("interrupted by {name}") });
                // Ending overrides stopping.
                rest = None;
                let ended = submission.follow(|progress| display.show(progress)).await;
                break Err(interrupted(signal, &output, ended));
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
        // The job ended before all tasks were suspended; stop the program anyway.
        stop_this_process();
    }
    match interrupts.arrived() {
        // The signal came too late to end this job, but a driver with more jobs must see it.
        Some(signal) => Err(interrupted(signal, &output, ended)),
        None => ended,
    }
}

/// Returns the error of an interrupted job. Usually the job was killed, but a commit in progress was
/// completed.
pub fn interrupted(signal: i32, output: &str, ended: Result<JobReport, JobError>) -> JobError {
    let left = match ended {
        Ok(_) => format!("the job was already complete; its output is in {output}"),
        Err(JobError::Failed { .. } | JobError::Killed { .. }) => {
            format!("the job left no files in {output}")
        }
        Err(other) => other.to_string(),
    };
    JobError::Interrupted { signal, left }
}

/// The suspension of all tasks before this program stops.
struct Rest {
    come: oneshot::Receiver<()>,
    by: Instant,
}

/// Waits until all tasks are suspended or the time limit has passed. Never resolves if no suspension is under
/// way.
async fn come_to_rest(rest: &mut Option<Rest>) {
    match rest {
        // Tasks that could not be stopped continue.
        Some(Rest { come, by }) => drop(timeout_at(*by, come).await),
        None => pending().await,
    }
}

/// The coordinator and the worker.
struct Cluster {
    inputs: UnboundedSender<Input>,
    coordinator: JoinHandle<()>,
    worker: JoinHandle<()>,
}

impl Cluster {
    /// Starts both and submits the job.
    fn start(
        job: JobId,
        mut plan: JobPlan,
        slots: u32,
        processes: Arc<dyn Processes>,
        notices: Notices,
    ) -> (Cluster, Submission) {
        // Start reduces after all maps: earlier they would only hold memory, since segments of this machine are
        // mapped on demand.
        plan.slowstart_permille = 1000;
        let (to_worker, orders) = unbounded_channel();
        let (inputs, arriving) = unbounded_channel();
        let (news_end, mut news) = unbounded_channel();
        let slots = Slots {
            map: slots,
            reduce: slots,
        };
        let world = World::real();
        let settings = WorkerSettings::embedded(world.clone(), HEARTBEAT, processes);
        let worker = world.tasks.spawn(Worker::run(settings, orders, news_end));
        let sender = inputs.clone();
        world.tasks.spawn(async move {
            while let Some(news) = news.recv().await {
                // The coordinator ends before its worker and then ignores news.
                let _ = sender.send(Input::News {
                    worker: WORKER,
                    news,
                });
            }
        });
        let own = inputs.clone();
        // The receiver exists while there is something to send back.
        let send_back = Arc::new(move |input| drop(own.send(input)));
        let tasks = world.tasks.clone();
        let coordinator =
            Coordinator::embedded(world, WORKER, slots, to_worker, job, send_back, notices);
        let coordinator = tasks.spawn(coordinator.run(arriving));
        let cluster = Cluster {
            inputs,
            coordinator,
            worker,
        };
        let submission = cluster.submit(plan);
        (cluster, submission)
    }

    fn tell(&self, input: Input) {
        // The coordinator receives until `Finish`.
        let _ = self.inputs.send(input);
    }

    /// Suspends all tasks.
    fn pause(&self) -> Rest {
        let (at_rest, come) = oneshot::channel();
        self.tell(Input::Pause { at_rest });
        Rest {
            come,
            by: Instant::now() + REST_MAX,
        }
    }

    fn submit(&self, plan: JobPlan) -> Submission {
        let (reply, accepted) = oneshot::channel();
        self.tell(Input::Submit {
            plan: Box::new(plan),
            reply,
        });
        Submission {
            accepted,
            following: None,
        }
    }

    /// Ends the coordinator and then the worker, which kills running attempts.
    async fn stop(self) -> Result<(), JobError> {
        self.tell(Input::Finish);
        let coordinator = self.coordinator.await;
        let worker = self.worker.await;
        let internal = |error: &dyn std::fmt::Display| JobError::Internal(error.to_string());
        coordinator.map_err(|error| internal(&error))?;
        worker.map_err(|error| internal(&error))
    }
}

/// A submitted job.
struct Submission {
    accepted: oneshot::Receiver<Result<(JobId, Following), JobError>>,
    /// Set once the job is accepted.
    following: Option<Following>,
}

impl Submission {
    /// Shows progress until the job has ended.
    async fn follow(&mut self, mut show: impl FnMut(&JobProgress)) -> Result<JobReport, JobError> {
        let gone = || JobError::Internal("the coordinator ended before the job".to_owned());
        if self.following.is_none() {
            let (_, following) = (&mut self.accepted).await.map_err(|_| gone())??;
            self.following = Some(following);
        }
        let Following { progress, end } = self.following.as_mut().ok_or_else(gone)?;
        loop {
            tokio::select! {
                biased;
                Ok(()) = progress.changed() => show(&progress.borrow_and_update()),
                ended = end.wait_for(Option::is_some) => {
                    let ended = ended.map_err(|_| gone())?.clone();
                    return ended.ok_or_else(gone)?.into_result();
                }
            }
        }
    }
}
