//! Clients and programs that follow jobs.

use std::collections::BTreeMap;

use napreduce_engine::JobId;
use napreduce_protocol::{JobEnd, JobProgress};
use tokio::sync::watch;

/// The progress of a job until its end is known.
#[derive(Debug)]
pub struct Following {
    pub progress: watch::Receiver<JobProgress>,
    /// `None` until the job has ended; the sender is dropped without an end only if the coordinator ends.
    pub end: watch::Receiver<Option<JobEnd>>,
}

/// The other side of [`Following`].
pub(super) struct Followed {
    progress: watch::Sender<JobProgress>,
    end: watch::Sender<Option<JobEnd>>,
}

impl Followed {
    /// Sends the last progress and the end of the job.
    pub fn end(self, progress: JobProgress, end: JobEnd) {
        self.progress.send_replace(progress);
        self.end.send_replace(Some(end));
    }
}

/// The followed jobs.
#[derive(Default)]
pub(super) struct Followers {
    by_job: BTreeMap<JobId, Followed>,
}

impl Followers {
    /// Subscribes to the progress and the end of a job.
    pub fn follow(&mut self, job: JobId) -> Following {
        let followed = self.by_job.entry(job).or_insert_with(|| Followed {
            progress: watch::Sender::new(JobProgress::default()),
            end: watch::Sender::new(None),
        });
        Following {
            progress: followed.progress.subscribe(),
            end: followed.end.subscribe(),
        }
    }

    /// Sends the progress of followed jobs.
    pub fn publish(&self, progress: impl Fn(JobId) -> Option<JobProgress>) {
        for (job, followed) in &self.by_job {
            if followed.progress.receiver_count() > 0
                && let Some(progress) = progress(*job)
            {
                followed.progress.send_replace(progress);
            }
        }
    }

    /// Removes a job that has ended.
    pub fn remove(&mut self, job: JobId) -> Option<Followed> {
        self.by_job.remove(&job)
    }
}
