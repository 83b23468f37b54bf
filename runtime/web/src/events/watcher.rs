//! Looks at a cluster while somebody listens, and tells what has changed.
//!
//! Owns how often: four times a second at most, which bounds the events of each object, and never so
//! often that asking takes more than a small share of the time. Does not own what a change is
//! (`changes`, `details`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::changes::{Lists, SeenLists, SeenShares};
use super::details::SeenDetails;
use super::event::Change;
use super::hub::Hub;
use super::topic::Topic;
use crate::source::{PageSource, SourceError, pause_after};

/// A cluster that does not answer is asked again after this.
const ABSENCE: Duration = Duration::from_millis(500);

/// Queues are sampled so often.
const SAMPLE: Duration = Duration::from_secs(1);

/// What was seen last, and whether the cluster answered.
#[derive(Debug, Default)]
struct Seen {
    lists: SeenLists,
    details: SeenDetails,
    shares: SeenShares,
    /// When queues were sampled last.
    sampled: Option<Instant>,
    is_away: bool,
}

/// Watches until the hub is closed.
pub fn watch(hub: &Arc<Hub>, source: &dyn PageSource) {
    // Whatever ends this: nobody may believe that nothing happens.
    let _end = End(hub);
    let mut seen = Seen::default();
    while hub.wait_for_readers() {
        let begun = Instant::now();
        hub.publish(seen.look(hub, source));
        hub.pause(if seen.is_away { ABSENCE } else { pause_after(begun.elapsed()) });
    }
}

struct End<'hub>(&'hub Arc<Hub>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Seen {
    /// What has changed. A cluster that is gone, and one that is back, has everything asked for anew: the
    /// answer to that says which.
    fn look(&mut self, hub: &Hub, source: &dyn PageSource) -> Vec<Change> {
        let mut changes = Vec::new();
        let looked = self
            .lists(source, &mut changes)
            .and_then(|()| self.details(hub, source, &mut changes))
            .and_then(|()| self.shares(hub, source, &mut changes));
        let was_away = std::mem::replace(&mut self.is_away, looked.is_err());
        if let (false, Err(error)) = (was_away, &looked) {
            tracing::debug!(%error, "it is not known what happens");
        }
        if was_away != self.is_away {
            changes.push(Change::reset());
        }
        changes
    }

    fn lists(&mut self, source: &dyn PageSource, changes: &mut Vec<Change>) -> Result<(), SourceError> {
        let lists = Lists { jobs: source.jobs()?, workers: source.workers()? };
        changes.extend(self.lists.compare(lists).map_err(unspeakable)?);
        Ok(())
    }

    fn details(
        &mut self,
        hub: &Hub,
        source: &dyn PageSource,
        changes: &mut Vec<Change>,
    ) -> Result<(), SourceError> {
        for job in self.details.wanted(&hub.topics(), self.lists.jobs()) {
            match source.job(job) {
                Ok(detail) => changes.extend(self.details.compare(&detail).map_err(unspeakable)?),
                Err(error @ SourceError::Unavailable(_)) => return Err(error),
                // Somebody asks for a job that is not there, or not any more; whoever looks at it is told.
                Err(error) => tracing::debug!(%job, %error, "a job is not watched"),
            }
        }
        Ok(())
    }

    /// A sample each second, if it is another one and somebody wants it.
    fn shares(
        &mut self,
        hub: &Hub,
        source: &dyn PageSource,
        changes: &mut Vec<Change>,
    ) -> Result<(), SourceError> {
        if !hub.topics().contains(&Topic::Shares) {
            (self.shares, self.sampled) = (SeenShares::default(), None);
            return Ok(());
        }
        if self.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
            return Ok(());
        }
        self.sampled = Some(Instant::now());
        changes.extend(self.shares.compare(&*source.queues()?).map_err(unspeakable)?);
        Ok(())
    }
}

fn unspeakable(error: serde_json::Error) -> SourceError {
    SourceError::Broken(format!("no JSON: {error}"))
}
