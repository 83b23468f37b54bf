//! The deadlines of requests, reservations and workers, in the order of their times.

use crate::ids::{AttemptId, JobId, WorkerId};
use crate::preemption::PreemptRequest;
use crate::settings::PreemptionSettings;
use crate::sorted::SortedSet;
use crate::time::Time;

/// An event that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// The grace of the request for this attempt is over.
    Grace(AttemptId),
    /// The delayed request for this attempt may be ordered; it followed an earlier one too closely.
    Earliest(AttemptId),
    /// This attempt, which was allowed to finish, should have ended.
    Overdue(AttemptId),
    /// A reservation on this worker expires.
    Reservation(WorkerId),
    /// The exclusion of this worker ends.
    Excluded(WorkerId),
    /// Tasks of this job may be retried on a worker that they avoided.
    AvoidanceOver(JobId),
    /// This worker leaves, and the time for its attempts to save their work is over.
    Drained(WorkerId),
}

impl Deadline {
    /// Returns the deadlines of an open request, which depend on the settings.
    pub fn for_request(
        request: &PreemptRequest,
        settings: &PreemptionSettings,
    ) -> impl Iterator<Item = (Time, Deadline)> + use<> {
        let attempt = request.attempt;
        let grace = settings
            .killed_at(request)
            .map(|due| (due, Deadline::Grace(attempt)));
        let earliest = request
            .earliest
            .map(|due| (due, Deadline::Earliest(attempt)));
        let overdue = request
            .overdue()
            .map(|due| (due, Deadline::Overdue(attempt)));
        [grace, earliest, overdue].into_iter().flatten()
    }
}

/// The pending deadlines.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    pending: SortedSet<(Time, Deadline)>,
}

impl Deadlines {
    pub fn set(&mut self, due: Time, deadline: Deadline) {
        self.pending.insert((due, deadline));
    }

    pub fn cancel(&mut self, due: Time, deadline: Deadline) {
        self.pending.remove(&(due, deadline));
    }

    pub fn contains(&self, due: Time, deadline: Deadline) -> bool {
        self.pending.contains(&(due, deadline))
    }

    /// Returns the earliest time at which a deadline is due.
    pub fn next(&self) -> Option<Time> {
        self.pending.first().map(|(due, _)| *due)
    }

    /// Removes the earliest deadline, if it is due.
    pub fn take_due(&mut self, now: Time) -> Option<Deadline> {
        if self.next()? > now {
            return None;
        }
        self.pending.pop_first().map(|(_, deadline)| deadline)
    }

    /// Returns the pending deadlines, earliest first.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Deadline)> + '_ {
        self.pending.iter().copied()
    }
}
