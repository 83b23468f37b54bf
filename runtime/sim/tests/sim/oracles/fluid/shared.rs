//! Processor sharing, plain or weighted. The virtual clock runs at one over the total weight; a job ends when
//! it reaches the job's tag: its value at the arrival plus size over weight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FluidJob;
use super::number::{Key, Number};

/// Returns the end of each job.
pub(super) fn shared<N: Number>(
    jobs: &[FluidJob<N>],
    size: impl Fn(&FluidJob<N>) -> N,
    weight: impl Fn(&FluidJob<N>) -> N,
) -> Vec<N> {
    let zero = N::whole(0);
    let mut ends = vec![zero; jobs.len()];
    let mut here: BinaryHeap<Reverse<(Key<N>, usize)>> = BinaryHeap::new();
    let mut now = zero;
    let mut shown = zero;
    let mut total = zero;
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.arrival);
        let first = here.peek().map(|Reverse((tag, index))| (tag.0, *index));
        let ends_at = first.map(|(tag, _)| now + (tag - shown) * total);
        match (first, ends_at, arrival) {
            (None, _, None) => return ends,
            (Some((tag, index)), Some(end), arrival) if arrival.is_none_or(|at| !at.below(end)) => {
                here.pop();
                ends[index] = end;
                total = total - weight(&jobs[index]);
                (now, shown) = (end, tag);
            }
            (first, _, Some(at)) => {
                if first.is_some() {
                    shown = shown + (at - now) / total;
                } else {
                    // An idle server may reset the clock, which keeps the numbers small.
                    (shown, total) = (zero, zero);
                }
                now = at;
                let job = &jobs[next];
                total = total + weight(job);
                here.push(Reverse((Key(shown + size(job) / weight(job)), next)));
                next += 1;
            }
            (Some(_), _, None) => unreachable!("a job that is there has an end"),
        }
    }
}
