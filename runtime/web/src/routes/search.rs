//! The handler for the search of jobs, tasks, workers, users and queues.

use super::call::{Call, Reply};
use crate::answers::{SearchAnswer, Searched};
use crate::problem::Problem;

const LIMIT: usize = 10;
const LIMIT_MAX: usize = 100;

pub fn search(call: &Call<'_>) -> Result<Reply, Problem> {
    let limit = call.query_value::<usize>("limit")?.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("limit is {limit}; expected 1 to {LIMIT_MAX}")));
    }
    let text = call.query_value::<String>("text")?.unwrap_or_default();
    let source = &call.shown.source;
    let (jobs, workers, queues) = (source.jobs()?, source.workers()?, source.queues()?);
    let queues = queues.queues.iter().flatten().map(|queue| queue.name.as_str()).collect();
    let searched = Searched { jobs: &jobs, workers: &workers, queues };
    Reply::json(&SearchAnswer::of(&text, &searched, limit))
}
