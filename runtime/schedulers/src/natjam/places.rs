//! The workers on which jobs can give up slots.

use napreduce_engine::{AttemptState, Claims, ClusterView, JobId, SortedMap, TaskKind, WorkerId};

/// The workers of the preemptable attempts of each job that was asked for one.
pub(super) struct Places<'a> {
    view: ClusterView<'a>,
    kind: TaskKind,
    workers: SortedMap<JobId, Vec<WorkerId>>,
    taken: SortedMap<JobId, u32>,
}

impl<'a> Places<'a> {
    pub fn new(view: ClusterView<'a>, kind: TaskKind) -> Places<'a> {
        Places {
            view,
            kind,
            workers: SortedMap::new(),
            taken: SortedMap::new(),
        }
    }

    /// Returns how many slots a job holds that nobody requested and that were not taken here.
    pub fn held(&self, id: JobId) -> u32 {
        let Some(job) = self.view.job(id) else {
            return 0;
        };
        let taken = self.taken.get(&id).copied().unwrap_or_default();
        job.holding(self.kind)
            .saturating_sub(job.requested(self.kind))
            .saturating_sub(taken)
    }

    /// Takes an attempt of a job whose slot another job will use; returns whether there was one.
    pub fn take_for(&mut self, from: JobId, beneficiary: JobId, claims: &mut Claims<'_>) -> bool {
        let Places {
            view,
            kind,
            workers,
            taken,
        } = self;
        let workers = workers.get_or_insert_with(from, || preemptable(view, *kind, from));
        let Some(place) = workers
            .iter()
            .position(|worker| claims.wants_on(beneficiary, *worker))
        else {
            return false;
        };
        claims.add(beneficiary, workers.remove(place));
        *taken.get_or_default(from) += 1;
        true
    }
}

/// Returns the workers of the attempts of a job that can be preempted.
fn preemptable(view: &ClusterView<'_>, kind: TaskKind, job: JobId) -> Vec<WorkerId> {
    let mut workers = Vec::new();
    let Some(job) = view.job(job) else {
        return workers;
    };
    for attempt in job
        .attempts_of_kind(kind)
        .filter_map(|attempt| view.attempt(attempt))
    {
        let can_give = attempt.holds_slot()
            && attempt.state() != AttemptState::Killing
            && !attempt.is_spared(view.now())
            && view.request(attempt.id()).is_none();
        if can_give {
            workers.push(attempt.worker());
        }
    }
    workers
}
