//! Handlers for workers: the list, state changes, performance and failed attempts.

use std::cmp::Reverse;

use axum::http::StatusCode;
use napreduce_answers::{FailureAnswer, WorkerAnswer};
use napreduce_engine::WorkerId;

use super::call::{Call, Reply};
use super::list::{page, page_with};
use super::window::query_window;
use crate::per_job::{PERFORMANCE_MILLIS, Window};
use crate::problem::Problem;

/// Default window for changes and failures of workers, which are rare.
const CHANGES_MILLIS: u64 = 24 * 60 * 60_000;

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    page(call, call.shown.source.workers()?.iter())
}

pub fn one(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.path_value::<WorkerId>("worker")?;
    let workers = call.shown.source.workers()?;
    let known = workers
        .iter()
        .find(|known| known.worker == worker)
        .ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, format!("no such worker: {worker}"))
                .remedy("run: nap worker list")
        })?;
    Reply::json(&WorkerAnswer::from(known))
}

/// Answers with the state changes of workers in a window, newest first.
pub fn changes(call: &Call<'_>) -> Result<Reply, Problem> {
    let Window { from, until } = query_window(call, CHANGES_MILLIS)?;
    let window = call.shown.source.window(from, until)?;
    let worker = call.query_value::<WorkerId>("worker")?;
    let changes = window
        .workers
        .iter()
        .rev()
        .filter(|change| worker.is_none_or(|one| one == change.worker));
    page_with(call, changes, window.remarks)
}

pub fn performance(call: &Call<'_>) -> Result<Reply, Problem> {
    let window = query_window(call, PERFORMANCE_MILLIS)?;
    let (jobs, remarks) = call.shown.work.work(&*call.shown.source, window)?;
    page_with(call, window.performance(&jobs).iter(), remarks)
}

/// Answers with the attempts that failed in a window, newest first.
pub fn failures(call: &Call<'_>) -> Result<Reply, Problem> {
    let window = query_window(call, CHANGES_MILLIS)?;
    let worker = call.query_value::<WorkerId>("worker")?;
    let (jobs, remarks) = call.shown.work.work(&*call.shown.source, window)?;
    let is_meant = |failure: &&FailureAnswer| {
        window.contains(failure.ended_millis) && worker.is_none_or(|one| one == failure.worker_id)
    };
    let mut failures: Vec<&FailureAnswer> = jobs
        .iter()
        .flat_map(|job| job.failures())
        .filter(is_meant)
        .collect();
    failures.sort_by_key(|failure| Reverse(failure.ended_millis));
    page_with(call, failures.into_iter(), remarks)
}
