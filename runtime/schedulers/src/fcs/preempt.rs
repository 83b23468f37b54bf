//! Algorithm 1: whose reduces make room for a job that asks for slots.
//!
//! Owns the choice of jobs and how many tasks of each. Does not own which tasks may be preempted, nor the
//! order of those.

use crate::fcs::estimates::RemainingWork;

/// A job that runs reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningJob<I> {
    pub id: I,
    /// What is left of it.
    pub remaining: RemainingWork,
    /// How many of its reduces may be preempted.
    pub preemptable: u32,
}

/// How many slots a job lacks that wants `demand` when so many are free or being freed.
pub fn lacking(demand: u32, free: u32) -> u32 {
    demand.saturating_sub(free)
}

/// How many reduces each job gives to one with less work that lacks so many slots. The running jobs come by
/// decreasing remaining work; of equal ones, the one submitted last first.
pub fn select<I>(
    remaining: &RemainingWork,
    mut lacking: u32,
    running: impl IntoIterator<Item = RunningJob<I>>,
) -> Vec<(I, u32)> {
    let mut preempted = Vec::new();
    for job in running {
        if lacking == 0 || job.remaining <= *remaining {
            break;
        }
        let tasks = job.preemptable.min(lacking);
        if tasks > 0 {
            lacking -= tasks;
            preempted.push((job.id, tasks));
        }
    }
    preempted
}
