//! The fluid reference: one server of rate 1 shared in any proportions, and machines that run whole jobs.
//! Implements policies with known results in exact ratios or floats, in O(log n) per event. Completions
//! precede arrivals at equal times; ties go to the first job in the list. Used by tests only.

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
    /// Arrival time.
    pub arrival: N,
    /// Run time alone.
    pub size: N,
    /// The estimated size that the policy uses.
    pub estimate: N,
    /// The weight for weighted sharing.
    pub weight: N,
    /// The deadline, for deadline policies.
    pub deadline: N,
}

impl<N: Number> FluidJob<N> {
    /// Creates a job with known size and weight 1, whose deadline is its arrival.
    pub fn new(arrival: N, size: N) -> FluidJob<N> {
        FluidJob {
            arrival,
            size,
            estimate: size,
            weight: N::whole(1),
            deadline: arrival,
        }
    }
}

/// A policy for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FluidPolicy {
    /// First come, first served.
    Fifo,
    /// Processor sharing.
    Ps,
    /// Weighted processor sharing.
    Gps,
    /// Shortest remaining estimated size; underestimated sizes become negative.
    Srpt,
    /// Shortest estimated size, regardless of progress.
    Psjf,
    /// Least attained service.
    Las,
    /// Fair sojourn protocol: in the order of the ends under processor sharing by estimates, also for late
    /// jobs.
    FspFifo,
    /// Fair sojourn protocol where late jobs share the server and no other job is served.
    FspPs,
    /// Earliest deadline first.
    Edf,
    /// Least laxity first, in equal shares.
    Llf,
}

/// Returns the end of each job. Jobs must be in order of arrival.
///
/// ```
/// use crate::oracles::fluid::{FluidJob, FluidPolicy, completions};
///
/// let jobs = [FluidJob::new(0.0, 10.0), FluidJob::new(5.0, 10.0)];
/// assert_eq!(completions(&jobs, FluidPolicy::Ps), [15.0, 20.0]);
/// ```
///
/// # Panics
/// Panics if the jobs are not in order of arrival.
pub fn completions<N: Number>(jobs: &[FluidJob<N>], policy: FluidPolicy) -> Vec<N> {
    let ordered = jobs
        .windows(2)
        .all(|pair| !pair[1].arrival.below(pair[0].arrival));
    assert!(ordered, "jobs must be in order of arrival");
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
        FluidPolicy::FspPs => fair_sojourn::late_jobs_share(jobs),
    }
}

/// Returns the number of jobs in the system over time, as (time, number).
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
    fn weighted_shares_are_proportional() {
        // Rates 2/3 and 1/3 until 9, when the first has received 6; then the second alone.
        let ends = completions(&jobs(&[(0, 6, 2), (0, 6, 1)]), FluidPolicy::Gps);
        assert_eq!(ends, [Ratio::whole(9), Ratio::whole(12)]);
    }

    #[test]
    fn shortest_job_first_ignores_progress() {
        // At 9 the first job has 1 left, but its size is larger.
        let list = jobs(&[(0, 10, 1), (9, 5, 1)]);
        assert_eq!(
            completions(&list, FluidPolicy::Psjf),
            [Ratio::whole(15), Ratio::whole(14)]
        );
        assert_eq!(
            completions(&list, FluidPolicy::Srpt),
            [Ratio::whole(10), Ratio::whole(15)]
        );
    }

    #[test]
    fn jobs_over_time_ends_at_zero() {
        let list = jobs(&[(0, 4, 1), (4, 2, 1)]);
        let ends = completions(&list, FluidPolicy::Fifo);
        let expected = [(Ratio::ZERO, 1), (Ratio::whole(4), 1), (Ratio::whole(6), 0)];
        assert_eq!(jobs_over_time(&list, &ends), expected);
    }

    #[test]
    #[should_panic(expected = "in order of arrival")]
    fn unsorted_jobs_panic() {
        completions(&jobs(&[(5, 1, 1), (0, 1, 1)]), FluidPolicy::Ps);
    }
}
