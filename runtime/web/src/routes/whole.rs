//! Handlers for the cluster as a whole, and for the server itself.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::ACCEPT;
use napreduce_answers::{
    COLUMNS_KIND, QueueStatusAnswer, QueuesAnswer, StatusAnswer, TimelineAnswer, TimelineWindow,
    columns_of,
};
use napreduce_engine::WorkerId;
use napreduce_protocol::JobDetail;

use super::call::{Call, Reply};
use super::list::is_csv;
use super::metrics::{self as formats, plain};
use super::window::{query_columns, query_window};
use super::{openapi, stream};
use crate::clock::now_micros;
use crate::per_job::Window;
use crate::problem::Problem;

/// Default length of a window.
const WINDOW_MILLIS: u64 = 10 * 60_000;
/// Limit of drawn jobs, newest first: all attempts of each must be loaded.
const DRAWN_JOBS_MAX: usize = 50;

pub fn health(_: &Call<'_>) -> Result<Reply, Problem> {
    Ok(Reply::of("text/plain", b"ok\n".to_vec()))
}

pub fn description(_: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&openapi::description())
}

pub fn metrics(call: &Call<'_>) -> Result<Reply, Problem> {
    let text = stream::metrics(call.web)? + &formats::text(call.web)?;
    let accepts = call
        .headers
        .get(ACCEPT)
        .and_then(|accepts| accepts.to_str().ok());
    if accepts.is_some_and(plain::is_wanted) {
        return Ok(Reply::of(
            plain::CONTENT_TYPE,
            plain::of(&text).into_bytes(),
        ));
    }
    Ok(Reply::of(formats::CONTENT_TYPE, text.into_bytes()))
}

pub fn cluster(call: &Call<'_>) -> Result<Reply, Problem> {
    let source = &call.shown.source;
    // Jobs first: when the coordinator does not respond, all concurrent calls share the timeout of this
    // request.
    let jobs = source.jobs()?;
    let workers = source.workers()?;
    let mut status = StatusAnswer::of(&workers, &jobs, |job| source.explain(job, None))?;
    status.warnings.extend(formats::disk_warning(&**source));
    Reply::json(&status)
}

pub fn queues(call: &Call<'_>) -> Result<Reply, Problem> {
    let queues = QueuesAnswer::from(&*call.shown.source.queues()?);
    if is_csv(call)? {
        return Reply::csv(
            "queues",
            "queue",
            queues.queues.as_deref().unwrap_or_default(),
        );
    }
    Reply::json(&queues)
}

pub fn queue(call: &Call<'_>) -> Result<Reply, Problem> {
    let name = call.path_value::<String>("queue")?;
    let source = &call.shown.source;
    let found =
        QueueStatusAnswer::of(&name, &*source.queues()?, &source.jobs()?).ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, format!("no such queue: {name:?}"))
                .remedy("run: nap queue list")
        })?;
    Reply::json(&found)
}

pub fn timeline(call: &Call<'_>) -> Result<Reply, Problem> {
    let Window { from, until } = query_window(call, WINDOW_MILLIS)?;
    let until_micros = (until * 1_000).min(now_micros());
    let window = TimelineWindow {
        from_micros: from * 1_000,
        until_micros: until_micros.max(from * 1_000),
    };
    drawn(call, timeline_of(call, window, None)?)
}

/// Reduces a job to its attempts on this worker.
fn on(detail: &JobDetail, worker: WorkerId) -> JobDetail {
    let on_worker = detail
        .attempts
        .iter()
        .filter(|attempt| attempt.worker == worker);
    let on_worker: HashSet<_> = on_worker.map(|attempt| attempt.attempt).collect();
    detail.of_attempts(|attempt| on_worker.contains(&attempt))
}

/// Answers with Arrow columns if the client accepts them, as the page does, otherwise with JSON.
pub fn drawn(call: &Call<'_>, timeline: TimelineAnswer) -> Result<Reply, Problem> {
    let accepts = call
        .headers
        .get(ACCEPT)
        .and_then(|accepts| accepts.to_str().ok());
    if !accepts.is_some_and(|accepts| accepts.contains(COLUMNS_KIND)) {
        return Reply::json(&timeline);
    }
    let bytes = columns_of(timeline).map_err(|error| {
        let detail = format!("cannot encode the columns: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(Reply::of(COLUMNS_KIND, bytes))
}

/// Returns the slot occupancy in a window: that of the job `about`, if any, and of other jobs up to the limit.
pub fn timeline_of(
    call: &Call<'_>,
    window: TimelineWindow,
    about: Option<&Arc<JobDetail>>,
) -> Result<TimelineAnswer, Problem> {
    let from = window.from_micros / 1_000;
    let until = window.until_micros / 1_000;
    let all = call.shown.source.jobs()?;
    let own = about.map(|about| about.summary.job);
    let mut jobs = Window { from, until }.jobs(&all);
    let jobs_left_out = jobs.len().saturating_sub(DRAWN_JOBS_MAX);
    jobs.truncate(DRAWN_JOBS_MAX);
    let mut details: Vec<_> = about.cloned().into_iter().collect();
    for job in jobs.into_iter().filter(|job| Some(job.job) != own) {
        details.push(call.shown.source.job(job.job)?);
    }
    if let Some(worker) = call.query_value::<WorkerId>("worker")? {
        for detail in &mut details {
            *detail = Arc::new(on(detail, worker));
        }
    }
    let columns = query_columns(call)?;
    let timeline = TimelineAnswer::of(details.iter().map(|detail| &**detail), window, columns);
    Ok(TimelineAnswer {
        jobs_left_out,
        ..timeline
    })
}
