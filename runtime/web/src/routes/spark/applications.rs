//! What Spark is asked about applications, their jobs and executors.
//!
//! Owns these answers. Does not own the objects (`crate::spark`), nor stages (`stages`).

use std::cmp::Reverse;
use std::sync::Arc;

use axum::http::StatusCode;
use napreduce_protocol::{JobDetail, JobSummary};

use super::super::call::{Call, Reply};
use super::super::foreign::{lies_in, words};
use crate::clock::now_millis;
use crate::problem::Problem;
use crate::spark::{
    MomentAsked, SparkApplication, SparkApplicationStatus, SparkExecutor, SparkJob, SparkJobStatus,
    SparkVersion, executors_of, tried_of,
};

pub fn version(_: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&SparkVersion::default())
}

pub fn applications(call: &Call<'_>) -> Result<Reply, Problem> {
    let statuses = words::<SparkApplicationStatus>(call, "status")?;
    let at = |name: &str| Ok::<_, Problem>(call.asked::<MomentAsked>(name)?.map(|MomentAsked(at)| at));
    let submitted = (at("minDate")?, at("maxDate")?);
    let ended = (at("minEndDate")?, at("maxEndDate")?);
    let limit =
        call.asked::<u64>("limit")?.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let (now, jobs) = (now_millis(), call.shown.source.jobs()?);
    let of_status = |job: &&JobSummary| {
        statuses.as_ref().is_none_or(|statuses| statuses.contains(&SparkApplicationStatus::of(job)))
    };
    let of_time = |job: &&JobSummary| {
        lies_in(Some(job.submitted_millis), submitted)
            && match job.ended_millis {
                Some(at) => lies_in(Some(at), ended),
                // As Spark does: what runs ends later than whatever has ended.
                None => ended.1.is_none_or(|latest| latest > now),
            }
    };
    let mut found: Vec<&JobSummary> = jobs.iter().filter(of_status).filter(of_time).collect();
    found.sort_by_key(|job| Reverse(job.job));
    found.truncate(limit);
    Reply::json(&found.into_iter().map(|job| SparkApplication::of(job, now)).collect::<Vec<_>>())
}

/// The application of the path; to Spark an ID of another form is an unknown one.
pub fn find_application(call: &Call<'_>) -> Result<Arc<JobDetail>, Problem> {
    call.job().map_err(|problem| match StatusCode::from_u16(problem.status) {
        Ok(StatusCode::BAD_REQUEST) => Problem::new(StatusCode::NOT_FOUND, problem.detail),
        _ => problem,
    })
}

pub fn application(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&SparkApplication::of(&find_application(call)?.summary, now_millis()))
}

pub fn jobs(call: &Call<'_>) -> Result<Reply, Problem> {
    let statuses = words::<SparkJobStatus>(call, "status")?;
    let job = find_application(call)?;
    let is_wanted = statuses.is_none_or(|statuses| statuses.contains(&SparkJobStatus::of(&job.summary)));
    let listed = is_wanted.then(|| SparkJob::of(&job, &tried_of(&job, now_millis())));
    Reply::json(&Vec::from_iter(listed))
}

pub fn job(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = find_application(call)?;
    if call.part::<u32>("number").ok() != Some(0) {
        let detail = "there is no such job of an application; each has one, ask for 0";
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    Reply::json(&SparkJob::of(&job, &tried_of(&job, now_millis())))
}

fn every_executor(call: &Call<'_>) -> Result<Vec<SparkExecutor>, Problem> {
    let job = find_application(call)?;
    Ok(executors_of(&job, &tried_of(&job, now_millis()), &call.shown.source.workers()?))
}

pub fn executors(call: &Call<'_>) -> Result<Reply, Problem> {
    let mut executors = every_executor(call)?;
    executors.retain(|executor| executor.is_active);
    Reply::json(&executors)
}

pub fn all_executors(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&every_executor(call)?)
}
