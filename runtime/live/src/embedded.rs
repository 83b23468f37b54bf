//! A job inside this program's own process tree: coordinator and one worker as two tasks of one small runtime.
//!
//! Owns the setting up and the winding down, and what a signal to this program means. Does not own anything that a
//! cluster would do otherwise: the two talk by messages only.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use napreduce_core::{JobId, Slots, WorkerId};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::coordinator::{Coordinator, Listener, Request};
use crate::plan::{EmbeddedSettings, JobPlan};
use crate::process::{Interrupts, Spawner, signal_name};
use crate::progress::{JobProgress, ProgressDisplay};
use crate::report::{JobError, JobReport};
use crate::task::task_process_requested;
use crate::worker::{Worker, WorkerSettings};

const WORKER: WorkerId = WorkerId(1);
const HEARTBEAT: Duration = Duration::from_millis(200);

/// Jobs of one program are numbered in the order in which they run.
static JOBS: AtomicU32 = AtomicU32::new(0);

/// Runs a job to its end, blocking; attempts are child processes, this program executed again.
///
/// One at a time in a process. While it runs, SIGINT, SIGTERM and SIGHUP end the job; a second one ends the program at
/// once. Must not be called from inside an async runtime.
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
    runtime.block_on(run(plan, settings))
}

fn check(plan: &JobPlan, settings: &EmbeddedSettings) -> Result<(), JobError> {
    let refuse = |why: &str| Err(JobError::Plan(why.to_owned()));
    if task_process_requested() {
        return refuse("this is a task process; call task_process_main before anything else in main");
    }
    if settings.slots == 0 {
        return refuse("slots must be at least 1");
    }
    plan.check().map_err(JobError::Plan)
}

async fn run(plan: JobPlan, settings: &EmbeddedSettings) -> Result<JobReport, JobError> {
    let mut interrupts = Interrupts::install().map_err(|error| JobError::io("handle signals", error))?;
    let spawner = Spawner::start().map_err(|error| JobError::io("start a thread", error))?;
    let job = JobId(JOBS.fetch_add(1, Ordering::Relaxed) + 1);
    let output = plan.output.display().to_string();
    let cluster = Cluster::start(spawner, settings.slots);
    let mut submission = cluster.submit(job, plan);
    let mut display = ProgressDisplay::new(settings.progress, settings.quiet);
    let ended = tokio::select! {
        ended = submission.follow(&mut display) => ended,
        signal = interrupts.arrival() => {
            let signal = signal.map_err(|error| JobError::io("wait for signals", error))?;
            let name = signal_name(signal).unwrap_or("a signal");
            cluster.request(Request::Kill { job, reason: format!("interrupted by {name}") });
            Err(interrupted(signal, &output, submission.follow(&mut display).await))
        }
    };
    display.end();
    cluster.stop().await?;
    match interrupts.arrived() {
        // It came too late to end this job, but it must not be lost on a driver that has more to do.
        Some(signal) => Err(interrupted(signal, &output, ended)),
        None => ended,
    }
}

/// What a signal led to: mostly a killed job, but one that was being committed is committed to its end.
fn interrupted(signal: i32, output: &str, ended: Result<JobReport, JobError>) -> JobError {
    let left = match ended {
        Ok(_) => format!("the job was complete by then, its output is in {output}"),
        Err(JobError::Failed { .. }) => format!("nothing of the job is left in {output}"),
        Err(other) => other.to_string(),
    };
    JobError::Interrupted { signal, left }
}

/// The two actors.
struct Cluster {
    requests: UnboundedSender<Request>,
    coordinator: JoinHandle<()>,
    worker: JoinHandle<()>,
}

impl Cluster {
    fn start(spawner: Spawner, slots: u32) -> Cluster {
        let (to_worker, orders) = unbounded_channel();
        let (to_coordinator, arriving) = unbounded_channel();
        let (news_end, mut news) = unbounded_channel();
        let (requests, requested) = unbounded_channel();
        let slots = Slots { map: slots, reduce: slots };
        let settings = WorkerSettings { heartbeat: HEARTBEAT };
        let worker = tokio::spawn(Worker::run(settings, spawner, orders, news_end));
        tokio::spawn(async move {
            while let Some(one) = news.recv().await {
                // The coordinator ends before its worker, and does not want to know more then.
                let _ = to_coordinator.send((WORKER, one));
            }
        });
        let coordinator = Coordinator::embedded(WORKER, slots, to_worker);
        let coordinator = tokio::spawn(coordinator.run(requested, arriving));
        Cluster { requests, coordinator, worker }
    }

    fn request(&self, request: Request) {
        // The coordinator listens until the other end of its channel is dropped.
        let _ = self.requests.send(request);
    }

    fn submit(&self, job: JobId, plan: JobPlan) -> Submission {
        let (progress_end, progress) = watch::channel(JobProgress::default());
        let (end, ended) = oneshot::channel();
        let listener = Listener { progress: progress_end, end };
        self.request(Request::Submit { job, plan: Box::new(plan), listener });
        Submission { progress, ended }
    }

    /// Lets the coordinator end, and then the worker, which kills what still runs.
    async fn stop(self) -> Result<(), JobError> {
        drop(self.requests);
        let coordinator = self.coordinator.await;
        let worker = self.worker.await;
        coordinator.and(worker).map_err(|error| JobError::Internal(error.to_string()))
    }
}

/// A job that was handed in.
struct Submission {
    progress: watch::Receiver<JobProgress>,
    ended: oneshot::Receiver<Result<JobReport, JobError>>,
}

impl Submission {
    /// Shows progress until the job has ended.
    async fn follow(&mut self, display: &mut ProgressDisplay) -> Result<JobReport, JobError> {
        loop {
            tokio::select! {
                biased;
                Ok(()) = self.progress.changed() => display.show(&self.progress.borrow_and_update()),
                ended = &mut self.ended => {
                    return ended.unwrap_or_else(|_| {
                        Err(JobError::Internal("the coordinator ended before the job".to_owned()))
                    });
                }
            }
        }
    }
}
