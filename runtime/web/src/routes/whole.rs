//! The cluster as a whole, and the server itself.
//!
//! Owns what these routes answer. Does not own the objects (`answers`).

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::ACCEPT;
use napreduce_engine::WorkerId;
use napreduce_protocol::JobDetail;

use super::call::{Call, Reply};
use super::list::{page, page_with};
use super::metrics::{self as formats, plain};
use super::window::{asked_columns, asked_window};
use super::{openapi, stream};
use crate::answers::{
    COLUMNS_KIND, QueuesAnswer, StatusAnswer, TimelineAnswer, TimelineWindow, WorkerAnswer, columns_of,
};
use crate::clock::now_micros;
use crate::per_job::Window;
use crate::problem::Problem;

/// A window is so long unless it is said.
const WINDOW_MILLIS: u64 = 10 * 60_000;
/// Jobs of one picture at most, the newest ones: it needs all attempts of each.
const DRAWN_JOBS_MAX: usize = 50;
/// Workers come and go seldom.
const CHANGES_MILLIS: u64 = 24 * 60 * 60_000;

pub fn health(_: &Call<'_>) -> Result<Reply, Problem> {
    Ok(Reply::of("text/plain", b"ok\n".to_vec()))
}

pub fn description(_: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&openapi::description())
}

pub fn metrics(call: &Call<'_>) -> Result<Reply, Problem> {
    let text = stream::metrics(call.web)? + &formats::text(call.web)?;
    let accepts = call.headers.get(ACCEPT).and_then(|accepts| accepts.to_str().ok());
    if accepts.is_some_and(plain::is_wanted) {
        return Ok(Reply::of(plain::CONTENT_TYPE, plain::of(&text).into_bytes()));
    }
    Ok(Reply::of(formats::CONTENT_TYPE, text.into_bytes()))
}

pub fn cluster(call: &Call<'_>) -> Result<Reply, Problem> {
    let source = &call.shown.source;
    // Jobs first: whoever else waits for a coordinator that does not answer waits for these, and one waits
    // for all.
    let (jobs, workers) = (source.jobs()?, source.workers()?);
    let mut status = StatusAnswer::of(&workers, &jobs, |job| source.explain(job, None))?;
    status.warnings.extend(formats::disk_warning(&**source));
    Reply::json(&status)
}

pub fn workers(call: &Call<'_>) -> Result<Reply, Problem> {
    page(call, call.shown.source.workers()?.iter())
}

pub fn worker(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.part::<WorkerId>("worker")?;
    let workers = call.shown.source.workers()?;
    let known = workers.iter().find(|known| known.worker == worker).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no {worker}")).remedy("see: nap worker list")
    })?;
    Reply::json(&WorkerAnswer::from(known))
}

/// What became of workers in a window, newest first.
pub fn worker_changes(call: &Call<'_>) -> Result<Reply, Problem> {
    let Window { from, until } = asked_window(call, CHANGES_MILLIS)?;
    let window = call.shown.source.window(from, until)?;
    let worker = call.asked::<WorkerId>("worker")?;
    let meant = window.workers.iter().rev().filter(|change| worker.is_none_or(|one| one == change.worker));
    page_with(call, meant, window.remarks)
}

pub fn queues(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&QueuesAnswer::from(&*call.shown.source.queues()?))
}

pub fn timeline(call: &Call<'_>) -> Result<Reply, Problem> {
    let Window { from, until } = asked_window(call, WINDOW_MILLIS)?;
    let until_micros = (until * 1_000).min(now_micros());
    let window = TimelineWindow { from_micros: from * 1_000, until_micros: until_micros.max(from * 1_000) };
    drawn(call, timeline_of(call, window, None)?)
}

/// What of a job was done there.
fn on(detail: &JobDetail, worker: WorkerId) -> JobDetail {
    let there = detail.attempts.iter().filter(|attempt| attempt.worker == worker);
    let there: HashSet<_> = there.map(|attempt| attempt.attempt).collect();
    detail.of_attempts(|attempt| there.contains(&attempt))
}

/// In columns for whoever asks for these, as a page does; else as JSON.
pub fn drawn(call: &Call<'_>, timeline: TimelineAnswer) -> Result<Reply, Problem> {
    let accepts = call.headers.get(ACCEPT).and_then(|accepts| accepts.to_str().ok());
    if !accepts.is_some_and(|accepts| accepts.contains(COLUMNS_KIND)) {
        return Reply::json(&timeline);
    }
    let bytes = columns_of(timeline)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no columns: {error}")))?;
    Ok(Reply::of(COLUMNS_KIND, bytes))
}

/// Who held which slot in a window: the job that it is about, if it is about one, and others as far as there
/// is room.
pub fn timeline_of(
    call: &Call<'_>,
    window: TimelineWindow,
    about: Option<&Arc<JobDetail>>,
) -> Result<TimelineAnswer, Problem> {
    let (from, until) = (window.from_micros / 1_000, window.until_micros / 1_000);
    let all = call.shown.source.jobs()?;
    let own = about.map(|about| about.summary.job);
    let mut jobs = Window { from, until }.jobs(&all);
    let jobs_left_out = jobs.len().saturating_sub(DRAWN_JOBS_MAX);
    jobs.truncate(DRAWN_JOBS_MAX);
    let mut details: Vec<_> = about.cloned().into_iter().collect();
    for job in jobs.into_iter().filter(|job| Some(job.job) != own) {
        details.push(call.shown.source.job(job.job)?);
    }
    if let Some(worker) = call.asked::<WorkerId>("worker")? {
        details.iter_mut().for_each(|detail| *detail = Arc::new(on(detail, worker)));
    }
    let columns = asked_columns(call)?;
    let timeline = TimelineAnswer::of(details.iter().map(|detail| &**detail), window, columns);
    Ok(TimelineAnswer { jobs_left_out, ..timeline })
}
