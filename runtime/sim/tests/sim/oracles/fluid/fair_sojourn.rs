//! Fair sojourn protocol with sharing among late jobs, those that finished in the virtual system but not in
//! reality. The virtual system is processor sharing by estimated sizes (`shared`). Jobs that are not late are
//! served one at a time in the order of their virtual ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FluidJob;
use super::number::{Key, Number};
use super::shared::shared;

/// Returns the end of each job.
pub(super) fn late_jobs_share<N: Number>(jobs: &[FluidJob<N>]) -> Vec<N> {
    let fair = shared(jobs, |job| job.estimate, |_| N::whole(1));
    let mut becomes_late: Vec<usize> = (0..jobs.len()).collect();
    becomes_late.sort_by(|&one, &other| fair[one].order(fair[other]).then(one.cmp(&other)));
    let zero = N::whole(0);
    let mut server = Server {
        now: zero,
        left: jobs.iter().map(|job| job.size).collect(),
        ends: vec![None; jobs.len()],
        on_time: BinaryHeap::new(),
        late: BinaryHeap::new(),
        is_late: vec![false; jobs.len()],
        shown: zero,
    };
    let mut next = 0;
    let mut next_late = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.arrival);
        let lateness = becomes_late.get(next_late).map(|&index| fair[index]);
        let change = [arrival, lateness].into_iter().flatten().reduce(N::least);
        match (server.next_end(), change) {
            (None, None) => break,
            (Some(end), change) if change.is_none_or(|at| !at.below(end)) => server.end_first(end),
            (_, Some(at)) => {
                server.advance(at);
                // Virtual ends precede arrivals at the same instant.
                if lateness.is_some_and(|late| !at.below(late)) {
                    server.make_late(becomes_late[next_late]);
                    next_late += 1;
                } else {
                    server.on_time.push(Reverse((Key(fair[next]), next)));
                    next += 1;
                }
            }
            (Some(_), None) => unreachable!("without changes the first job ends next"),
        }
    }
    server
        .ends
        .into_iter()
        .map(|end| end.unwrap_or(zero))
        .collect()
}

struct Server<N> {
    now: N,
    /// Remaining work of jobs that were never late. Late jobs are stored by the sharing clock at their end.
    left: Vec<N>,
    ends: Vec<Option<N>>,
    /// Jobs that are not late, by virtual end; may contain jobs that became late or ended since.
    on_time: BinaryHeap<Reverse<(Key<N>, usize)>>,
    late: BinaryHeap<Reverse<(Key<N>, usize)>>,
    is_late: Vec<bool>,
    shown: N,
}

impl<N: Number> Server<N> {
    /// Returns the first job that is not late.
    fn first_on_time(&mut self) -> Option<usize> {
        while let Some(&Reverse((_, index))) = self.on_time.peek() {
            if !self.is_late[index] && self.ends[index].is_none() {
                return Some(index);
            }
            self.on_time.pop();
        }
        None
    }

    fn next_end(&mut self) -> Option<N> {
        if let Some(Reverse((Key(tag), _))) = self.late.peek() {
            return Some(self.now + (*tag - self.shown) * N::whole(self.late.len() as u64));
        }
        self.first_on_time()
            .map(|index| self.now + self.left[index])
    }

    fn end_first(&mut self, end: N) {
        self.now = end;
        if let Some(Reverse((Key(tag), index))) = self.late.pop() {
            self.shown = tag;
            self.ends[index] = Some(end);
        } else if let Some(index) = self.first_on_time() {
            self.ends[index] = Some(end);
        }
    }

    fn advance(&mut self, to: N) {
        let span = to - self.now;
        self.now = to;
        if !self.late.is_empty() {
            self.shown = self.shown + span / N::whole(self.late.len() as u64);
        } else if let Some(index) = self.first_on_time() {
            self.left[index] = self.left[index] - span;
        }
    }

    fn make_late(&mut self, index: usize) {
        if self.ends[index].is_some() {
            return;
        }
        if self.late.is_empty() {
            self.shown = N::whole(0);
        }
        self.is_late[index] = true;
        self.late
            .push(Reverse((Key(self.shown + self.left[index]), index)));
    }
}
