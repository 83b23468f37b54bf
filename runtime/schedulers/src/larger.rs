//! Selects the jobs that give tasks to a smaller job: those with more remaining work, largest first.

/// A job that may give up tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargerJob<I, S> {
    pub id: I,
    pub remaining: S,
    /// Number of tasks that can be preempted.
    pub tasks: u32,
}

/// Returns how many tasks each job gives to a job with `remaining` work that lacks `lacking` slots. Only jobs
/// with more remaining work give tasks.
///
/// `jobs` must be sorted by remaining work, largest first; ties by submission, latest first.
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
