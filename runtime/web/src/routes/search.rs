//! The handler for the search of jobs, tasks, workers, users and queues.

use std::sync::Arc;

use napreduce_answers::{SearchAnswer, Searched};
use napreduce_protocol::{JobSummary, QueueListing, WorkerSummary};

use super::call::{Call, Reply};
use crate::problem::Problem;
use crate::shown::Shown;
use crate::source::SourceError;

const LIMIT: usize = 10;
const LIMIT_MAX: usize = 100;

/// What is searched in one source.
struct Objects {
    recording: Option<String>,
    jobs: Arc<Vec<JobSummary>>,
    workers: Arc<Vec<WorkerSummary>>,
    queues: Arc<QueueListing>,
}

impl Objects {
    fn read(shown: &Shown, recording: Option<String>) -> Result<Objects, SourceError> {
        Ok(Objects {
            recording,
            jobs: shown.source.jobs()?,
            workers: shown.source.workers()?,
            queues: shown.source.queues()?,
        })
    }

    fn searched(&self) -> Searched<'_> {
        let queues = self.queues.queues.iter().flatten();
        Searched {
            recording: self.recording.as_deref(),
            jobs: &self.jobs,
            workers: &self.workers,
            queues: queues.map(|queue| queue.name.as_str()).collect(),
        }
    }
}

/// Searches all recordings of the server, the requested one first.
pub fn search(call: &Call<'_>) -> Result<Reply, Problem> {
    let limit = call.query_value::<usize>("limit")?.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(format!(
            "limit is {limit}; expected 1 to {LIMIT_MAX}"
        )));
    }
    let text = call.query_value::<String>("text")?.unwrap_or_default();
    let recordings = call.web.recordings();
    let is_recording = |shown: &Shown| recordings.iter().any(|known| known.name == shown.name);
    let name = Some(call.shown.name.clone()).filter(|_| is_recording(&call.shown));
    let mut all = vec![Objects::read(&call.shown, name)?];
    let mut remarks = Vec::new();
    for other in recordings
        .iter()
        .filter(|other| other.name != call.shown.name)
    {
        match Objects::read(other, Some(other.name.clone())) {
            Ok(objects) => all.push(objects),
            // An unreadable recording must not hide the others.
            Err(error) => remarks.push(format!("{}: {error}", other.name)),
        }
    }
    let searched: Vec<Searched<'_>> = all.iter().map(Objects::searched).collect();
    let answer = SearchAnswer::of(&text, &searched, limit);
    Reply::json(&SearchAnswer { remarks, ..answer })
}
