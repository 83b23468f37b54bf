//! Which jobs of a list Hadoop's queries ask for.
//!
//! Owns what both dialects of it share. Does not own states, of which each has its own words.

use std::str::FromStr;

use napreduce_protocol::JobSummary;

use super::super::call::Call;
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

/// Whether a time lies between two others; what has not ended lies in no window of ends.
fn lies_in(at: Option<u64>, (begin, end): (Option<u64>, Option<u64>)) -> bool {
    match at {
        Some(at) => begin.is_none_or(|begin| at >= begin) && end.is_none_or(|end| at <= end),
        None => begin.is_none() && end.is_none(),
    }
}

/// Words that are separated by commas, if there are any.
///
/// # Errors
/// When one of them is none of these.
pub fn words<T: FromStr<Err = String>>(call: &Call<'_>, field: &str) -> Result<Option<Vec<T>>, Problem> {
    let Some(said) = call.asked::<String>(field)? else { return Ok(None) };
    let words = said.split(',').map(str::trim).filter(|word| !word.is_empty());
    let words: Vec<T> = words.map(|word| word.parse().map_err(Problem::wrong)).collect::<Result<_, _>>()?;
    Ok((!words.is_empty()).then_some(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_ends_and_nothing_that_goes_on() {
        assert!(lies_in(Some(5), (Some(5), Some(5))));
        assert!(!lies_in(Some(4), (Some(5), None)) && !lies_in(Some(6), (None, Some(5))));
        assert!(lies_in(None, (None, None)) && !lies_in(None, (Some(0), None)));
    }
}
