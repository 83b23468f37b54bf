//! A job that was started: to wait for, to watch and to cancel.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use napreduce_engine::JobId;
use napreduce_local::StartedJob;
use napreduce_protocol::{JobError, JobReport};

/// How many tasks and records of a job are done.
pub use napreduce_protocol::JobProgress as Progress;

/// The progress of a job as a stream.
pub use napreduce_local::ProgressWatch;

use crate::program::Error;
use crate::program::dataset::{Dataset, Files};

/// A job that was started and runs while the program does something else. As a future it ends with the job, in any
/// async runtime.
///
/// Dropping it cancels a job on this machine and waits until its tasks have ended. A job on a cluster runs on: it is
/// cancelled by [`cancel`](JobHandle::cancel) or `nap job kill`.
///
/// ```no_run
/// use napreduce::run::Local;
/// use napreduce::{Job, words};
///
/// async fn count(path: String) -> Result<Vec<(String, u64)>, napreduce::program::Error> {
///     let job = napreduce::job(|| Job::text().flat_map(words).count()).inputs([path]);
///     let handle = job.start(&Local::default())?;
///     let mut progress = handle.watch();
///     let shown = async {
///         while let Some(progress) = progress.next().await {
///             println!("{} of {} maps", progress.map.done, progress.map.tasks);
///         }
///     };
///     # let _ = shown;
///     handle.await?.collect()
/// }
/// # let _ = count;
/// ```
#[must_use = "dropping a handle cancels a job on this machine; call `wait`, or `detach` to let it run on"]
pub struct JobHandle<T> {
    /// Dropped first: it waits for the end of the job.
    started: StartedJob,
    output: Arc<Files>,
    /// The datasets that the job reads.
    inputs: Vec<Arc<Files>>,
    warnings: Vec<String>,
    item: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JobHandle")
            .field("job", &self.started.job())
            .finish_non_exhaustive()
    }
}

impl<T> JobHandle<T> {
    pub(super) fn new(
        started: StartedJob,
        output: Arc<Files>,
        inputs: Vec<Arc<Files>>,
        warnings: Vec<String>,
    ) -> JobHandle<T> {
        JobHandle {
            started,
            output,
            inputs,
            warnings,
            item: PhantomData,
        }
    }

    /// Returns the same handle, whose output is read back as another type.
    pub(super) fn with_item<U>(self) -> JobHandle<U> {
        let JobHandle {
            started,
            output,
            inputs,
            warnings,
            item: _,
        } = self;
        JobHandle {
            started,
            output,
            inputs,
            warnings,
            item: PhantomData,
        }
    }

    /// Returns the id of the job: on a cluster that of `nap job list`, else one of this program's own.
    pub fn id(&self) -> JobId {
        self.started.job()
    }

    /// Returns what may be wrong with the inputs, such as large files that one task has to read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the progress so far.
    pub fn progress(&self) -> Progress {
        self.started.progress()
    }

    /// Returns the progress as a stream that ends with the job.
    pub fn watch(&self) -> ProgressWatch {
        self.started.watch()
    }

    /// Returns whether the job has ended, so that [`wait`](JobHandle::wait) returns at once.
    pub fn has_ended(&self) -> bool {
        self.started.has_ended()
    }

    /// Asks for the end of the job and returns at once. The job then ends with
    /// [`JobError::Killed`](crate::program::JobError::Killed) and this reason, without an output, unless it is already
    /// committing its output.
    pub fn cancel(&self, reason: &str) {
        self.started.cancel(reason);
    }

    /// Blocks until the job has ended and returns its output.
    ///
    /// # Errors
    /// Returns why the job failed or was killed.
    pub fn wait(self) -> Result<Dataset<T>, Error> {
        let JobHandle {
            started, output, ..
        } = self;
        dataset(started.wait(), output)
    }

    /// Lets the job run to its end without this handle. A job on this machine still ends with this program.
    pub fn detach(self) {
        // The job writes to the one directory and reads from the others.
        std::mem::forget(self.output);
        self.inputs.into_iter().for_each(std::mem::forget);
        self.started.detach();
    }
}

impl<T> Future for JobHandle<T> {
    type Output = Result<Dataset<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let output = Arc::clone(&self.output);
        Pin::new(&mut self.started)
            .poll(context)
            .map(|ended| dataset(ended, output))
    }
}

fn dataset<T>(ended: Result<JobReport, JobError>, output: Arc<Files>) -> Result<Dataset<T>, Error> {
    Ok(Dataset::new(output, Some(ended?)))
}
