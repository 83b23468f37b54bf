//! Handlers for recordings shown side by side, and their comparison.

use std::sync::Arc;

use napreduce_answers::{ComparisonAnswer, Recorded, RecordingAnswer, differing_settings};
use napreduce_history::JobOverview;
use schemars::JsonSchema;
use serde::Serialize;

use super::call::{Call, Reply};
use super::list::is_csv;
use crate::problem::Problem;
use crate::shown::Shown;

/// The recordings of the server; empty if it shows a single cluster or history.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecordingsAnswer {
    pub items: Vec<RecordingAnswer>,
    /// Names of the `settings` that differ between them.
    pub differing: Vec<String>,
    /// Recordings that cannot be read.
    pub remarks: Vec<String>,
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let mut answer = RecordingsAnswer {
        items: Vec::new(),
        differing: Vec::new(),
        remarks: Vec::new(),
    };
    for recording in call.web.recordings() {
        match read(&recording) {
            Ok((item, _)) => answer.items.push(item),
            // An unreadable recording must not hide the others.
            Err(problem) => answer.remarks.push(problem.detail),
        }
        let remarks = recording.source.remarks().into_iter();
        answer
            .remarks
            .extend(remarks.map(|remark| format!("{}: {remark}", recording.name)));
    }
    if is_csv(call)? {
        return Reply::csv("recordings", "recording", &answer.items);
    }
    answer.differing = differing_settings(answer.items.iter());
    Reply::json(&answer)
}

pub fn compare(call: &Call<'_>) -> Result<Reply, Problem> {
    let side = |side| read(&*call.shown_as(call.query_value::<String>(side)?.as_deref())?);
    let (left, left_jobs) = side("left")?;
    let (right, right_jobs) = side("right")?;
    Reply::json(&ComparisonAnswer::of(
        Recorded {
            answer: left,
            jobs: &left_jobs,
        },
        Recorded {
            answer: right,
            jobs: &right_jobs,
        },
    ))
}

fn read(recording: &Shown) -> Result<(RecordingAnswer, Arc<Vec<JobOverview>>), Problem> {
    let jobs = recording.source.overviews()?;
    Ok((
        RecordingAnswer::of(
            &recording.name,
            recording.kind,
            recording.source.name(),
            &jobs,
        ),
        jobs,
    ))
}
