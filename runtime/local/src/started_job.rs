//! A job that runs on a thread of its own, as a value: it can be awaited, watched and cancelled. Embedded jobs
//! and jobs of a cluster are started in the same way.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};

use napreduce_engine::JobId;
use napreduce_protocol::{JobError, JobProgress, JobReport};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

/// The reason of a job whose [`StartedJob`] is dropped.
const DROPPED: &str = "its handle was dropped";

/// A job that was started and runs on a thread of its own.
///
/// [`wait`](StartedJob::wait) blocks until its end; as a future, it resolves at its end in any async runtime.
/// Dropping it cancels an embedded job and blocks until no process and no temporary file of it is left; a job of a
/// cluster runs on. [`detach`](StartedJob::detach) lets either run on.
#[derive(Debug)]
#[must_use = "dropping an embedded job cancels it; call `wait` or `detach`"]
pub struct StartedJob {
    job: JobId,
    cancels: UnboundedSender<String>,
    progress: watch::Receiver<JobProgress>,
    end: oneshot::Receiver<Result<JobReport, JobError>>,
    /// `None` once the job is detached or the thread has ended.
    thread: Option<JoinHandle<()>>,
    /// Whether dropping it lets the job run on.
    detaches: bool,
}

/// The requests to a started job, and its news.
#[derive(Debug)]
pub struct JobLink {
    /// The reasons of requests to cancel the job; closed once it is detached.
    pub cancels: UnboundedReceiver<String>,
    pub progress: watch::Sender<JobProgress>,
}

impl StartedJob {
    /// Runs `run` on a new thread, which need not have an async runtime.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn start(
        job: JobId,
        run: impl FnOnce(JobLink) -> Result<JobReport, JobError> + Send + 'static,
    ) -> Result<StartedJob, JobError> {
        let (cancels, cancels_end) = unbounded_channel();
        let (progress_end, progress) = watch::channel(JobProgress::default());
        let (send_end, end) = oneshot::channel();
        let link = JobLink {
            cancels: cancels_end,
            progress: progress_end,
        };
        let thread = Builder::new().name(job.to_string()).spawn(move || {
            // Ignored if the job is detached.
            let _ = send_end.send(run(link));
        });
        let thread =
            thread.map_err(|error| JobError::io(format!("start the thread of {job}"), error))?;
        Ok(StartedJob {
            job,
            cancels,
            progress,
            end,
            thread: Some(thread),
            detaches: false,
        })
    }

    /// Lets the job run on when this is dropped.
    pub fn detach_on_drop(mut self) -> StartedJob {
        self.detaches = true;
        self
    }

    pub fn job(&self) -> JobId {
        self.job
    }

    /// Returns the progress so far; it is updated several times a second.
    pub fn progress(&self) -> JobProgress {
        *self.progress.borrow()
    }

    /// Returns a watch on the progress, which does not keep the job alive.
    pub fn watch(&self) -> ProgressWatch {
        ProgressWatch(self.progress.clone())
    }

    /// Returns whether the job has ended, so that `wait` does not block.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks for the end of the job and returns at once. The job ends with [`JobError::Killed`] and this reason,
    /// and leaves no output; but a commit that has begun may be completed, and then the job succeeds.
    pub fn cancel(&self, reason: impl Into<String>) {
        // A job that has ended has no receiver.
        let _ = self.cancels.send(reason.into());
    }

    /// Blocks until the job has ended. When this returns, no process and no temporary file of it is left.
    ///
    /// # Errors
    /// Returns the error of the job.
    pub fn wait(mut self) -> Result<JobReport, JobError> {
        self.join();
        self.end
            .try_recv()
            .unwrap_or_else(|_| Err(no_result(self.job)))
    }

    /// Lets the job run to its end without this handle. An embedded job still ends with this process.
    pub fn detach(mut self) {
        self.thread.take();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic is reported by the missing result.
            let _ = thread.join();
        }
    }
}

impl Future for StartedJob {
    type Output = Result<JobReport, JobError>;

    /// # Panics
    /// Panics if it is polled after it has resolved.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let job = self.job;
        Pin::new(&mut self.end)
            .poll(context)
            .map(|end| end.unwrap_or_else(|_| Err(no_result(job))))
    }
}

impl Drop for StartedJob {
    fn drop(&mut self) {
        if self.thread.is_some() && !self.detaches {
            self.cancel(DROPPED);
            self.join();
        }
    }
}

fn no_result(job: JobId) -> JobError {
    JobError::Internal(format!("the thread of {job} ended without a result"))
}

/// A watch on the progress of a started job.
#[derive(Debug, Clone)]
pub struct ProgressWatch(watch::Receiver<JobProgress>);

impl ProgressWatch {
    /// Returns the progress so far.
    pub fn get(&self) -> JobProgress {
        *self.0.borrow()
    }

    /// Waits, in any async runtime, for progress that this watch has not returned; `None` if the job has ended,
    /// or a job of a cluster is detached.
    pub async fn next(&mut self) -> Option<JobProgress> {
        self.0.changed().await.ok()?;
        Some(*self.0.borrow_and_update())
    }
}
