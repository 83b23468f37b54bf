//! Suspended attempts that must move. An attempt can resume only on its worker. If other queues are due the slots
//! there, its queue may stay below its guarantee although slots of other workers are due to it. Its attempts
//! then save their work, and their tasks continue on those workers.

use napreduce_engine::{AttemptId, AttemptState, ClusterView, JobId, Ratio, TaskKind, Time};

use super::beneficiaries::Beneficiaries;

/// A suspended attempt that continues on another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub attempt: AttemptId,
    /// Its queue.
    pub queue: usize,
}

impl Beneficiaries<'_> {
    /// Returns attempts that should move, after a round over the victims: at most `slots`, the number of slots
    /// that other queues leave, and of each queue as many as it lacks beyond its dead zone. Attempts that were
    /// suspended after `latest` stay.
    pub fn moves(&mut self, mut slots: u64, dead_zone: Ratio, latest: Time) -> Vec<Move> {
        let mut moves = Vec::new();
        let leaves: Vec<usize> = self.tree.leaves().collect();
        for leaf in leaves {
            if slots == 0 {
                break;
            }
            let lacking = self.lacking_elsewhere(leaf, dead_zone).min(slots);
            if lacking == 0 {
                continue;
            }
            let moved = self.moves_of(leaf, lacking, latest);
            slots -= moved.len() as u64;
            moves.extend(moved.into_iter().map(|attempt| Move {
                attempt,
                queue: leaf,
            }));
        }
        moves
    }

    /// Returns how many slots of its guarantee a leaf lacks, beyond what it is promised and what the tasks that it
    /// can launch on other workers will get.
    fn lacking_elsewhere(&self, leaf: usize, dead_zone: Ratio) -> u64 {
        let queue = self.tree.queue(leaf);
        let guaranteed = queue.guaranteed.of(1);
        let tolerated = (queue.guaranteed * dead_zone).of(1);
        let on_their_way = self.allocated[leaf];
        if queue.pending == 0 || on_their_way + tolerated >= guaranteed {
            return 0;
        }
        let jobs = self.usage.leaf(self.kind, leaf).jobs.iter();
        let known = jobs.filter_map(|&job| self.view.job(job));
        let mut elsewhere = 0;
        for job in known {
            elsewhere += u64::from(job.eligible_count(self.kind));
            let moving = job
                .attempts_of_kind(self.kind)
                .filter(|&id| is_moving(&self.view, id));
            elsewhere += moving.count() as u64;
        }
        let wanted = guaranteed.min(queue.used + queue.pending + elsewhere);
        wanted.saturating_sub(on_their_way + tolerated + elsewhere)
    }

    /// Returns up to `most` attempts of a leaf that should move: of its first jobs, the longest suspended first.
    fn moves_of(&mut self, leaf: usize, most: u64, latest: Time) -> Vec<AttemptId> {
        let jobs: Vec<JobId> = self
            .usage
            .of(self.kind, leaf)
            .wanting
            .iter()
            .map(|&(.., job)| job)
            .collect();
        let mut moved = Vec::new();
        for job in jobs {
            let Some(known) = self.view.job(job) else {
                continue;
            };
            let mut waiting = Vec::new();
            for (worker, attempt) in known.suspended_attempts(self.kind) {
                if let Some(since) = waits_since(&self.view, attempt) {
                    waiting.push((since, attempt, worker));
                }
            }
            waiting.sort_unstable();
            for (since, attempt, worker) in waiting {
                if moved.len() as u64 == most {
                    return moved;
                }
                let may_have_more = self.may_have_more(leaf, job);
                if since <= latest && may_have_more && self.claims.wants_on(job, worker) {
                    self.assign(job, leaf, worker);
                    moved.push(attempt);
                }
            }
        }
        moved
    }
}

/// Returns since when an attempt is suspended; `None` if it is not, or already has a claim on the next slot of its
/// worker.
fn waits_since(view: &ClusterView<'_>, attempt: AttemptId) -> Option<Time> {
    let known = view.attempt(attempt)?;
    if known.state() != AttemptState::Suspended || known.is_held() || known.gets_next_slot() {
        return None;
    }
    known.suspension().map(|suspension| suspension.since)
}

/// Whether an attempt gives up its place on its worker, so that its task will continue on another one.
fn is_moving(view: &ClusterView<'_>, attempt: AttemptId) -> bool {
    view.attempt(attempt).is_some_and(|known| {
        let is_killed = known.state() == AttemptState::Killing && !known.holds_slot();
        is_killed || known.is_converting()
    })
}

/// Returns how many slots of a kind are free and kept for nobody.
pub(super) fn unused_slots(view: &ClusterView<'_>, kind: TaskKind) -> u64 {
    let mut unused = 0;
    for (worker, free) in view.free(kind) {
        let kept = view.worker(worker).map_or(0, |known| known.reserved(kind));
        unused += u64::from(free.saturating_sub(kept));
    }
    unused
}
