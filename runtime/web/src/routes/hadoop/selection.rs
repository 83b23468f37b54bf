//! Which jobs of a list Hadoop's queries ask for.
//!
//! Owns what both dialects of it share. Does not own states, of which each has its own words.

use napreduce_protocol::JobSummary;

use super::super::call::Call;
use super::super::foreign::lies_in;
use crate::problem::Problem;

/// The jobs that a query asks for, newest first, and of them what `is_wanted` says.
///
/// # Errors
/// When something in it is no number, or said twice.
pub fn selected<'all>(
    call: &Call<'_>,
    jobs: &'all [JobSummary],
    is_wanted: impl Fn(&JobSummary) -> bool,
) -> Result<Vec<&'all JobSummary>, Problem> {
    let (user, queue) = (call.asked::<String>("user")?, call.asked::<String>("queue")?);
    let name = call.asked::<String>("name")?;
    let limit = call.asked::<usize>("limit")?.unwrap_or(usize::MAX);
    let started = (call.asked::<u64>("startedTimeBegin")?, call.asked::<u64>("startedTimeEnd")?);
    let finished = (call.asked::<u64>("finishedTimeBegin")?, call.asked::<u64>("finishedTimeEnd")?);
    let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
    let mut found: Vec<&JobSummary> = jobs
        .iter()
        .filter(|job| is(&user, &job.user) && is(&queue, &job.queue) && is(&name, &job.name))
        .filter(|job| lies_in(Some(job.submitted_millis), started) && lies_in(job.ended_millis, finished))
        .filter(|job| is_wanted(job))
        .collect();
    found.sort_by_key(|job| std::cmp::Reverse(job.job));
    found.truncate(limit);
    Ok(found)
}
