//! The fluid reference: one server of rate 1 that jobs may share in any proportions, and machines that run
//! whole jobs.
//!
//! Owns reference policies whose results are known, in exact ratios or fast floats: each takes O(log n) for
//! an event. At equal times completions come before arrivals; ties go to the job that comes first in the
//! list. Does not own slots, tasks or overheads: the simulation does. Not part of a program: the published
//! cases are held against it.

mod fair_sojourn;
mod levels;
mod machines;
mod number;
mod ordered;
mod shared;

pub use machines::{MachinePolicy, Periodic, quantum_switches, switches, whole_tasks};
pub use number::Number;

/// A job for a server of rate 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FluidJob<N> {
    /// When it comes.
    pub arrival: N,
    /// How long it takes alone.
    pub size: N,
    /// What the policy believes its size to be.
    pub estimate: N,
    /// Its share among others, where shares are weighted.
    pub weight: N,
    /// When it should be done, for policies that look at that.
    pub deadline: N,
}

impl<N: Number> FluidJob<N> {
    /// A job whose size is known, with weight 1 and its deadline at its arrival.
    pub fn new(arrival: N, size: N) -> FluidJob<N> {
        FluidJob { arrival, size, estimate: size, weight: N::whole(1), deadline: arrival }
    }
}

/// How the server is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FluidPolicy {
    /// One after the other.
    Fifo,
    /// In equal shares.
    Ps,
    /// In shares by weight.
    Gps,
    /// The least remaining estimate first; an estimate that was too low goes below zero.
    Srpt,
    /// The least estimate first, whatever was done of it.
    Psjf,
    /// Equal shares among those that have had least.
    Las,
    /// In the order in which they would end under processor sharing by their estimates; late ones in that
    /// order, too.
    FspFifo,
    /// The same, but late ones share the server equally and nobody else is served.
    FspPs,
    /// The earliest deadline first.
    Edf,
    /// Equal shares among those with the least laxity.
    Llf,
}

/// When each job ends. Jobs must come in the order of their arrivals.
///
/// ```
/// use crate::oracles::fluid::{FluidJob, FluidPolicy, completions};
///
/// let jobs = [FluidJob::new(0.0, 10.0), FluidJob::new(5.0, 10.0)];
/// assert_eq!(completions(&jobs, FluidPolicy::Ps), [15.0, 20.0]);
/// ```
///
/// # Panics
/// When a job arrives before the one before it.
pub fn completions<N: Number>(jobs: &[FluidJob<N>], policy: FluidPolicy) -> Vec<N> {
    let ordered = jobs.windows(2).all(|pair| !pair[1].arrival.below(pair[0].arrival));
    assert!(ordered, "jobs must come in the order of their arrivals");
    match policy {
        FluidPolicy::Fifo => ordered::first_come(jobs),
        FluidPolicy::Ps => shared::shared(jobs, |job| job.size, |_| N::whole(1)),
        FluidPolicy::Gps => shared::shared(jobs, |job| job.size, |job| job.weight),
        FluidPolicy::Srpt => ordered::by_remaining(jobs),
        FluidPolicy::Psjf => ordered::by_key(jobs, |index| jobs[index].estimate),
        FluidPolicy::Edf => ordered::by_key(jobs, |index| jobs[index].deadline),
        FluidPolicy::Las => levels::levels(jobs, |job| (N::whole(0), job.size)),
        FluidPolicy::Llf => levels::levels(jobs, |job| (job.deadline - job.size, job.deadline)),
        FluidPolicy::FspFifo => {
            let fair = shared::shared(jobs, |job| job.estimate, |_| N::whole(1));
            ordered::by_key(jobs, |index| fair[index])
        }
        FluidPolicy::FspPs => fair_sojourn::late_ones_share(jobs),
    }
}

/// The number of jobs in the system over time: the times at which it changes and what it is then.
pub fn jobs_over_time<N: Number>(jobs: &[FluidJob<N>], ends: &[N]) -> Vec<(N, i64)> {
    let come = jobs.iter().map(|job| (job.arrival, 1));
    let mut changes: Vec<(N, i64)> = come.chain(ends.iter().map(|end| (*end, -1))).collect();
    changes.sort_by(|(one, _), (other, _)| one.order(*other));
    let mut number = 0;
    let mut over_time: Vec<(N, i64)> = Vec::new();
    for (time, change) in changes {
        number += change;
        match over_time.last_mut() {
            Some((last, at)) if last.order(time).is_eq() => *at = number,
            _ => over_time.push((time, number)),
        }
    }
    over_time
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::Ratio;

    /// Arrival, size, weight.
    fn jobs(list: &[(u64, u64, u64)]) -> Vec<FluidJob<Ratio>> {
        let whole = Ratio::whole;
        let job = |&(arrival, size, weight): &(u64, u64, u64)| FluidJob {
            weight: whole(weight),
            ..FluidJob::new(whole(arrival), whole(size))
        };
        list.iter().map(job).collect()
    }

    #[test]
    fn shares_by_weight_are_served_in_proportion() {
        // 2/3 and 1/3 until 9, when the first has had 6; then the second alone.
        let ends = completions(&jobs(&[(0, 6, 2), (0, 6, 1)]), FluidPolicy::Gps);
        assert_eq!(ends, [Ratio::whole(9), Ratio::whole(12)]);
    }

    #[test]
    fn the_smallest_job_keeps_its_rank_whatever_was_done_of_it() {
        // At 9 the first has 1 left, but was larger.
        let list = jobs(&[(0, 10, 1), (9, 5, 1)]);
        assert_eq!(completions(&list, FluidPolicy::Psjf), [Ratio::whole(15), Ratio::whole(14)]);
        assert_eq!(completions(&list, FluidPolicy::Srpt), [Ratio::whole(10), Ratio::whole(15)]);
    }

    #[test]
    fn the_number_of_jobs_over_time_ends_at_none() {
        let list = jobs(&[(0, 4, 1), (4, 2, 1)]);
        let ends = completions(&list, FluidPolicy::Fifo);
        let expected = [(Ratio::ZERO, 1), (Ratio::whole(4), 1), (Ratio::whole(6), 0)];
        assert_eq!(jobs_over_time(&list, &ends), expected);
    }

    #[test]
    #[should_panic(expected = "in the order of their arrivals")]
    fn jobs_out_of_order_are_refused() {
        completions(&jobs(&[(5, 1, 1), (0, 1, 1)]), FluidPolicy::Ps);
    }
}
