//! Whose tasks make room for a job that lacks slots: those of jobs of which more is left.
//!
//! Owns the choice of jobs and how many tasks of each. Does not own what is left of a job, nor which of its
//! tasks may be taken and in which order.

/// A job that may have to give tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargerJob<I, S> {
    pub id: I,
    /// What is left of it.
    pub remaining: S,
    /// How many of its tasks can be taken.
    pub tasks: u32,
}

/// How many tasks each job gives to a job that lacks so many slots and has so much left: the largest first,
/// and nobody who is not larger than the claimant. The jobs come largest first; of equal ones, the one
/// submitted last.
pub fn select<I, S: Ord>(
    remaining: &S,
    mut lacking: u32,
    jobs: impl IntoIterator<Item = LargerJob<I, S>>,
) -> Vec<(I, u32)> {
    let mut taken = Vec::new();
    for job in jobs {
        if lacking == 0 || job.remaining <= *remaining {
            break;
        }
        let tasks = job.tasks.min(lacking);
        if tasks > 0 {
            lacking -= tasks;
            taken.push((job.id, tasks));
        }
    }
    taken
}
