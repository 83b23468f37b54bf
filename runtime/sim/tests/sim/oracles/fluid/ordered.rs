//! Preemptive service of one job at a time: by arrival, by a fixed key, or by remaining work.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FluidJob;
use super::number::{Key, Number};

/// First come, first served.
pub(super) fn first_come<N: Number>(jobs: &[FluidJob<N>]) -> Vec<N> {
    let mut free_at = N::whole(0);
    let end = |job: &FluidJob<N>| {
        let begins = if free_at.below(job.arrival) {
            job.arrival
        } else {
            free_at
        };
        free_at = begins + job.size;
        free_at
    };
    jobs.iter().map(end).collect()
}

/// Smallest key first.
pub(super) fn by_key<N: Number>(jobs: &[FluidJob<N>], key: impl Fn(usize) -> N) -> Vec<N> {
    serve(jobs, key, |key, _| key)
}

/// Smallest remaining estimate first.
pub(super) fn by_remaining<N: Number>(jobs: &[FluidJob<N>]) -> Vec<N> {
    serve(
        jobs,
        |index| jobs[index].estimate,
        |key, served| key - served,
    )
}

/// Serves the smallest key; `after` updates the key of the served job.
fn serve<N: Number>(
    jobs: &[FluidJob<N>],
    key: impl Fn(usize) -> N,
    after: impl Fn(N, N) -> N,
) -> Vec<N> {
    let mut left: Vec<N> = jobs.iter().map(|job| job.size).collect();
    let mut ends = vec![N::whole(0); jobs.len()];
    let mut waiting: BinaryHeap<Reverse<(Key<N>, usize)>> = BinaryHeap::new();
    let mut now = N::whole(0);
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.arrival);
        match (waiting.pop(), arrival) {
            (None, None) => return ends,
            (Some(Reverse((_, index))), arrival)
                if arrival.is_none_or(|at| !at.below(now + left[index])) =>
            {
                now = now + left[index];
                ends[index] = now;
            }
            (first, Some(at)) => {
                if let Some(Reverse((Key(key), index))) = first {
                    left[index] = left[index] - (at - now);
                    waiting.push(Reverse((Key(after(key, at - now)), index)));
                }
                now = at;
                waiting.push(Reverse((Key(key(next)), next)));
                next += 1;
            }
            (Some(_), None) => unreachable!("without arrivals the first job ends next"),
        }
    }
}
