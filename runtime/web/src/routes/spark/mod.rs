//! Spark's dialect: `/api/v1` as its monitoring REST answers.
//!
//! Owns its routes, and how it refuses. Does not own the objects (`crate::spark`).

mod applications;
mod stages;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use schemars::JsonSchema;

use super::route::{Answering, Dialect, QueryField, Route, field, number, one_of, read, some_of};
use crate::problem::Problem;
use crate::spark::{
    SparkApplication, SparkApplicationStatus, SparkExecutor, SparkJob, SparkJobStatus, SparkStage,
    SparkStageStatus, SparkTask, SparkTaskStatus, SparkTaskSummary, SparkVersion,
};

/// Spark says why in a line of text.
pub fn in_a_line(problem: &Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let line = problem.in_a_line();
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from(line)).into_response()
}

const fn ask<Gives: JsonSchema>(path: &'static str, about: &'static str, answer: Answering) -> Route {
    read::<Gives>(Dialect::Spark, path, about, answer)
}

const APPLICATIONS: &[QueryField] = &[
    some_of("status", "only these, in any case", &SparkApplicationStatus::WORDS),
    field("minDate", "submitted then or later: a day, or 2026-11-22T01:29:01.000GMT"),
    field("maxDate", "submitted then or earlier"),
    field("minEndDate", "ended then or later; what runs is listed, too"),
    field("maxEndDate", "ended then or earlier; what runs is listed if that is yet to come"),
    number("limit", "how many, newest first", 0, u64::MAX),
];
const DETAILS: QueryField =
    one_of("details", "with its tasks and who ran them; false of a list unless said", &["true", "false"]);
const QUANTILES: &[QueryField] =
    &[field("quantiles", "numbers from 0 to 1, separated by commas; 0.05,0.25,0.5,0.75,0.95 unless said")];
const TASKS: &[QueryField] = &[
    number("offset", "how many are left out first; 0 unless said", 0, u64::MAX),
    number("length", "how many, 20 unless said; at most 3000 come", 0, u64::MAX),
    one_of("sortBy", "in any case; ID unless said", stages::SORTS),
    some_of("status", "only these, in any case", &SparkTaskStatus::WORDS),
];

/// All of them.
pub static ROUTES: &[Route] = &[
    ask::<SparkVersion>("/api/v1/version", "Spark: the version", applications::version),
    ask::<Vec<SparkApplication>>("/api/v1/applications", "Spark: the jobs", applications::applications)
        .asking(APPLICATIONS),
    ask::<SparkApplication>("/api/v1/applications/{job}", "Spark: a job", applications::application),
    ask::<Vec<SparkJob>>(
        "/api/v1/applications/{job}/jobs",
        "Spark: the one job of an application",
        applications::jobs,
    )
    .asking(&[some_of("status", "only in one of these, in any case", &SparkJobStatus::WORDS)]),
    ask::<SparkJob>("/api/v1/applications/{job}/jobs/{number}", "Spark: job 0", applications::job),
    ask::<Vec<SparkStage>>(
        "/api/v1/applications/{job}/stages",
        "Spark: the reduces of a job, then its maps",
        stages::stages,
    )
    .asking(&[some_of("status", "only in one of these, in any case", &SparkStageStatus::WORDS), DETAILS]),
    ask::<Vec<SparkStage>>(
        "/api/v1/applications/{job}/stages/{stage}",
        "Spark: the maps, 0, or the reduces, 1, as the one attempt at a stage",
        stages::attempts,
    )
    .asking(&[DETAILS]),
    ask::<SparkStage>(
        "/api/v1/applications/{job}/stages/{stage}/{stage_attempt}",
        "Spark: attempt 0 at a stage",
        stages::attempt,
    )
    .asking(&[DETAILS]),
    ask::<SparkTaskSummary>(
        "/api/v1/applications/{job}/stages/{stage}/{stage_attempt}/taskSummary",
        "Spark: how its tasks compare that were done",
        stages::summary,
    )
    .asking(QUANTILES),
    ask::<Vec<SparkTask>>(
        "/api/v1/applications/{job}/stages/{stage}/{stage_attempt}/taskList",
        "Spark: its tasks, which are attempts here",
        stages::tasks,
    )
    .asking(TASKS),
    ask::<Vec<SparkExecutor>>(
        "/api/v1/applications/{job}/executors",
        "Spark: the workers that are there, and what they have run of a job",
        applications::executors,
    ),
    ask::<Vec<SparkExecutor>>(
        "/api/v1/applications/{job}/allexecutors",
        "Spark: those that are gone, too",
        applications::all_executors,
    ),
];
