//! Machines that run whole jobs by deadline or laxity, and periodic tasks on one machine. Decisions happen at
//! releases, completions and quantum ends. Preemption is free, and preempted jobs may continue on any
//! machine.

use super::number::Number;
use super::{FluidJob, FluidPolicy, completions};

/// A policy for whole jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachinePolicy {
    /// Earliest deadline first.
    Edf,
    /// Least laxity first: deadline minus now minus remaining work.
    Llf,
}

/// The running jobs between two decisions.
type Stretch = Vec<usize>;

/// Returns the end of each job on `machines` machines.
pub fn whole_tasks<N: Number>(
    jobs: &[FluidJob<N>],
    machines: usize,
    policy: MachinePolicy,
) -> Vec<N> {
    let mut ends = vec![N::whole(0); jobs.len()];
    run(jobs, machines, policy, None, |job, now| ends[job] = now);
    ends
}

/// Returns how often one machine switches between jobs.
pub fn switches<N: Number>(jobs: &[FluidJob<N>], policy: MachinePolicy) -> u64 {
    count_switches(&run(jobs, 1, policy, None, |_, _| {}))
}

/// Returns how often one machine switches between jobs under least laxity first with a quantum.
pub fn quantum_switches<N: Number>(jobs: &[FluidJob<N>], quantum: N) -> u64 {
    count_switches(&run(jobs, 1, MachinePolicy::Llf, Some(quantum), |_, _| {}))
}

fn count_switches(stretches: &[Stretch]) -> u64 {
    let runners: Vec<usize> = stretches
        .iter()
        .filter_map(|one| one.first().copied())
        .collect();
    runners.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

/// With a quantum, releases take effect at its end.
fn run<N: Number>(
    jobs: &[FluidJob<N>],
    machines: usize,
    policy: MachinePolicy,
    quantum: Option<N>,
    mut ended: impl FnMut(usize, N),
) -> Vec<Stretch> {
    let mut left: Vec<N> = jobs.iter().map(|job| job.size).collect();
    let mut open: Vec<usize> = Vec::new();
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut now = N::whole(0);
    let mut next = 0;
    loop {
        while jobs.get(next).is_some_and(|job| !now.below(job.arrival)) {
            open.push(next);
            next += 1;
        }
        let urgency = |job: usize| match policy {
            MachinePolicy::Edf => jobs[job].deadline,
            MachinePolicy::Llf => jobs[job].deadline - now - left[job],
        };
        open.sort_by(|&one, &other| urgency(one).order(urgency(other)).then(one.cmp(&other)));
        let running: Vec<usize> = open.iter().copied().take(machines).collect();
        let release = jobs.get(next).map(|job| job.arrival);
        let release = release.filter(|_| quantum.is_none() || running.is_empty());
        let end = running.iter().map(|&job| now + left[job]).reduce(N::least);
        let quantum_ends = quantum
            .filter(|_| !running.is_empty())
            .map(|quantum| now + quantum);
        let change = [release, end, quantum_ends]
            .into_iter()
            .flatten()
            .reduce(N::least);
        let Some(until) = change else {
            return stretches;
        };
        for &job in &running {
            left[job] = left[job] - (until - now);
        }
        now = until;
        for &job in running.iter().filter(|&&job| !N::whole(0).below(left[job])) {
            open.retain(|&other| other != job);
            ended(job, now);
        }
        stretches.push(running);
    }
}

/// Periodic tasks on one machine; each release is due at the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Periodic<N> {
    /// Execution time and period of each task.
    pub tasks: Vec<(N, N)>,
}

impl<N: Number> Periodic<N> {
    /// Whether EDF meets all deadlines before `until`.
    pub fn earliest_deadline_meets_all(&self, until: N) -> bool {
        let jobs = self.jobs(until, |job| job.deadline);
        all_met(&jobs, &completions(&jobs, FluidPolicy::Edf))
    }

    /// Whether rate-monotonic scheduling meets all deadlines before `until`.
    pub fn rate_monotonic_meets_all(&self, until: N) -> bool {
        let jobs = self.jobs(until, |job| job.estimate);
        all_met(&jobs, &completions(&jobs, FluidPolicy::Psjf))
    }

    /// Returns all releases before `until`, with the period as the estimate.
    fn jobs(&self, until: N, rank: impl Fn(&FluidJob<N>) -> N) -> Vec<FluidJob<N>> {
        let mut jobs = Vec::new();
        for &(size, period) in &self.tasks {
            let mut arrival = N::whole(0);
            while arrival.below(until) {
                let deadline = arrival + period;
                jobs.push(FluidJob {
                    estimate: period,
                    deadline,
                    ..FluidJob::new(arrival, size)
                });
                arrival = deadline;
            }
        }
        jobs.sort_by(|one, other| {
            one.arrival
                .order(other.arrival)
                .then(rank(one).order(rank(other)))
        });
        jobs
    }
}

fn all_met<N: Number>(jobs: &[FluidJob<N>], ends: &[N]) -> bool {
    jobs.iter()
        .zip(ends)
        .all(|(job, end)| !job.deadline.below(*end))
}
