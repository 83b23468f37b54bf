//! Preparations of jobs that run beside the worker's loop.

use std::collections::HashMap;

use napreduce_engine::JobId;
use napreduce_protocol::TaskError;
use tokio::task::{Id, JoinError, JoinSet};

use super::environment::{Prepared, Preparing};
use crate::world::Tasks;

/// A job whose preparation has ended.
pub(super) struct EndedPreparation {
    pub(super) job: JobId,
    pub(super) result: Result<Prepared, TaskError>,
}

/// The running preparations.
#[derive(Default)]
pub(super) struct Preparations {
    running: JoinSet<Result<Prepared, TaskError>>,
    /// A panic identifies only the task.
    jobs: HashMap<Id, JobId>,
}

impl Preparations {
    pub(super) fn begin(&mut self, tasks: &Tasks, job: JobId, preparing: Preparing) {
        let task = tasks.spawn_in(&mut self.running, preparing);
        self.jobs.insert(task.id(), job);
    }

    /// Waits for the end of a preparation; `None` if none is running. Can be cancelled without loss.
    pub(super) async fn next(&mut self) -> Option<EndedPreparation> {
        loop {
            let ended = self.running.join_next_with_id().await?;
            let (task, result) = match ended {
                Ok((task, result)) => (task, result),
                Err(error) => (error.id(), Err(panicked(&error))),
            };
            // Missing if it was cancelled.
            if let Some(job) = self.jobs.remove(&task) {
                return Some(EndedPreparation { job, result });
            }
        }
    }

    /// Cancels all of them; none of them is returned any more.
    pub(super) fn cancel(&mut self) {
        self.jobs.clear();
        self.running.abort_all();
    }

    /// Cancels all of them and waits until they have ended.
    pub(super) async fn end(&mut self) {
        self.cancel();
        self.running.shutdown().await;
    }
}

/// The error of an attempt whose job was not prepared because of a panic, which has been printed.
fn panicked(error: &JoinError) -> TaskError {
    TaskError::retryable(format!("prepare the job: internal error: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    #[tokio::test]
    async fn panic_ends_the_preparation_of_its_job() {
        let tasks = World::real().tasks;
        let mut preparations = Preparations::default();
        assert!(preparations.next().await.is_none());
        let job = JobId(7);
        preparations.begin(&tasks, job, Box::pin(async { panic!("as the test wants") }));
        let ended = preparations.next().await.expect("one has ended");
        assert_eq!(ended.job, job);
        let error = ended.result.err().expect("it panicked").to_string();
        assert!(error.contains("as the test wants"), "{error}");
        assert!(preparations.next().await.is_none());
    }

    #[tokio::test]
    async fn cancelled_preparations_are_not_returned() {
        let tasks = World::real().tasks;
        let mut preparations = Preparations::default();
        preparations.begin(&tasks, JobId(7), Box::pin(std::future::pending()));
        preparations.cancel();
        assert!(preparations.next().await.is_none());
    }
}
