//! Level-based sharing: serves the jobs on the lowest level in equal shares while they rise to the next
//! level.
//!
//! Two policies use it. Least attained service: the level is the attained service, from 0 to the size. Least
//! laxity: the level is deadline minus remaining work, which is constant while a job waits and rises to the
//! deadline as it is served.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::FluidJob;
use super::number::{Key, Number};

/// Jobs on one level, by the level at which they end.
type Group<N> = BinaryHeap<Reverse<(Key<N>, usize)>>;

/// `span` returns the first and last level of a job.
pub(super) fn levels<N: Number>(
    jobs: &[FluidJob<N>],
    span: impl Fn(&FluidJob<N>) -> (N, N),
) -> Vec<N> {
    let mut ends = vec![N::whole(0); jobs.len()];
    let mut groups: BTreeMap<Key<N>, Group<N>> = BTreeMap::new();
    let mut now = N::whole(0);
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.arrival);
        let Some((Key(level), mut group)) = groups.pop_first() else {
            let Some(at) = arrival else { return ends };
            now = at;
            join(&mut groups, span(&jobs[next]), next);
            next += 1;
            continue;
        };
        let share = N::whole(group.len() as u64);
        let ending = group.peek().map(|Reverse((end, _))| end.0);
        let above = groups.first_key_value().map(|(level, _)| level.0);
        let target = [ending, above]
            .into_iter()
            .flatten()
            .reduce(N::least)
            .unwrap_or(level);
        let reached_at = now + (target - level) * share;
        if let Some(at) = arrival.filter(|at| at.below(reached_at)) {
            let risen = level + (at - now) / share;
            put(&mut groups, risen, group);
            now = at;
            join(&mut groups, span(&jobs[next]), next);
            next += 1;
            continue;
        }
        now = reached_at;
        while let Some(&Reverse((end, index))) = group.peek()
            && !target.below(end.0)
        {
            group.pop();
            ends[index] = now;
        }
        if !group.is_empty() {
            put(&mut groups, target, group);
        }
    }
}

fn join<N: Number>(groups: &mut BTreeMap<Key<N>, Group<N>>, (from, to): (N, N), index: usize) {
    put(groups, from, BinaryHeap::from([Reverse((Key(to), index))]));
}

/// Adds jobs to a level; moves the smaller group into the larger.
fn put<N: Number>(groups: &mut BTreeMap<Key<N>, Group<N>>, level: N, mut jobs: Group<N>) {
    let there = groups.entry(Key(level)).or_default();
    if there.len() < jobs.len() {
        std::mem::swap(there, &mut jobs);
    }
    there.extend(jobs);
}
