//! Histories that a server shows side by side.
//!
//! Owns what these routes answer. Does not own the sums (`answers`).

use std::sync::Arc;

use napreduce_history::JobOverview;
use schemars::JsonSchema;
use serde::Serialize;

use super::call::{Call, Reply};
use crate::answers::{ComparisonAnswer, RecordingAnswer};
use crate::problem::Problem;
use crate::shown::Shown;

/// The recordings there are; what a server shows alone is none.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecordingsAnswer {
    pub items: Vec<RecordingAnswer>,
    /// What cannot be read.
    pub remarks: Vec<String>,
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let mut answer = RecordingsAnswer { items: Vec::new(), remarks: Vec::new() };
    for recording in call.web.recordings() {
        match read(&recording) {
            Ok((item, _)) => answer.items.push(item),
            // The others are to be seen all the same.
            Err(problem) => answer.remarks.push(problem.detail),
        }
        let said = recording.source.remarks().into_iter();
        answer.remarks.extend(said.map(|remark| format!("{}: {remark}", recording.name)));
    }
    Reply::json(&answer)
}

pub fn compare(call: &Call<'_>) -> Result<Reply, Problem> {
    let side = |side| read(&*call.shown_as(call.asked::<String>(side)?.as_deref())?);
    let ((left, left_jobs), (right, right_jobs)) = (side("left")?, side("right")?);
    Reply::json(&ComparisonAnswer::of((left, &left_jobs), (right, &right_jobs)))
}

fn read(recording: &Shown) -> Result<(RecordingAnswer, Arc<Vec<JobOverview>>), Problem> {
    let jobs = recording.source.overviews()?;
    Ok((RecordingAnswer::of(&recording.name, recording.kind, recording.source.name(), &jobs), jobs))
}
