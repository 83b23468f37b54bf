//! The watcher: polls a cluster while there are streams, and publishes changes. It polls at most four times a second, and
//! less often if polling would take more than a small share of the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::changes::{LastLists, LastQueues, Lists};
use super::details::LastDetails;
use super::event::Change;
use super::hub::Hub;
use super::topic::Topic;
use crate::source::{PageSource, SourceError, pause_after};

/// Pause between polls while the cluster does not answer.
const ABSENCE: Duration = Duration::from_millis(500);

/// Interval of queue samples.
const SAMPLE: Duration = Duration::from_secs(1);

/// The state of the last poll.
#[derive(Debug, Default)]
struct LastPoll {
    lists: LastLists,
    details: LastDetails,
    queues: LastQueues,
    /// Time of the last queue sample.
    sampled: Option<Instant>,
    is_away: bool,
}

/// Polls until the hub is closed.
pub fn watch(hub: &Arc<Hub>, source: &dyn PageSource) {
    // Close the hub on a panic, too, so that streams do not stay silent.
    let _end = End(hub);
    let mut last = LastPoll::default();
    while hub.wait_for_readers() {
        let begun = Instant::now();
        hub.publish(last.poll(hub, source));
        hub.pause(if last.is_away {
            ABSENCE
        } else {
            pause_after(begun.elapsed())
        });
    }
}

struct End<'hub>(&'hub Arc<Hub>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl LastPoll {
    /// Returns the changes. When the cluster disappears or returns, a `reset` makes readers request everything, which
    /// shows them the state.
    fn poll(&mut self, hub: &Hub, source: &dyn PageSource) -> Vec<Change> {
        let mut changes = Vec::new();
        let polled = self
            .poll_lists(source, &mut changes)
            .and_then(|()| self.poll_details(hub, source, &mut changes))
            .and_then(|()| self.poll_queues(hub, source, &mut changes));
        let was_away = std::mem::replace(&mut self.is_away, polled.is_err());
        if let (false, Err(error)) = (was_away, &polled) {
            tracing::debug!(%error, "cannot poll the cluster");
        }
        if was_away != self.is_away {
            changes.push(Change::reset());
        }
        changes
    }

    fn poll_lists(
        &mut self,
        source: &dyn PageSource,
        changes: &mut Vec<Change>,
    ) -> Result<(), SourceError> {
        let lists = Lists {
            jobs: source.jobs()?,
            workers: source.workers()?,
        };
        changes.extend(self.lists.compare(lists).map_err(not_serializable)?);
        Ok(())
    }

    fn poll_details(
        &mut self,
        hub: &Hub,
        source: &dyn PageSource,
        changes: &mut Vec<Change>,
    ) -> Result<(), SourceError> {
        for job in self.details.wanted(&hub.topics(), self.lists.jobs()) {
            match source.job(job) {
                Ok(detail) => {
                    changes.extend(self.details.compare(&detail).map_err(not_serializable)?)
                }
                Err(error @ SourceError::Unavailable(_)) => return Err(error),
                // A reader wants a job that does not exist; its request for the job fails, too.
                Err(error) => tracing::debug!(%job, %error, "cannot poll a job"),
            }
        }
        Ok(())
    }

    /// Samples the queues once a second if a reader wants them.
    fn poll_queues(
        &mut self,
        hub: &Hub,
        source: &dyn PageSource,
        changes: &mut Vec<Change>,
    ) -> Result<(), SourceError> {
        if !hub.topics().contains(&Topic::Shares) {
            (self.queues, self.sampled) = (LastQueues::default(), None);
            return Ok(());
        }
        if self
            .sampled
            .is_some_and(|sampled| sampled.elapsed() < SAMPLE)
        {
            return Ok(());
        }
        self.sampled = Some(Instant::now());
        changes.extend(
            self.queues
                .compare(&*source.queues()?)
                .map_err(not_serializable)?,
        );
        Ok(())
    }
}

fn not_serializable(error: serde_json::Error) -> SourceError {
    SourceError::Broken(format!("cannot serialize: {error}"))
}
