//! What Spark is asked about stages and their tasks.
//!
//! Owns these answers. Does not own the objects (`crate::spark`).

use std::sync::Arc;

use axum::http::StatusCode;
use napreduce_engine::TaskKind;
use napreduce_protocol::JobDetail;

use super::super::call::{Call, Reply};
use super::super::foreign::words;
use super::applications::find_application;
use crate::clock::now_millis;
use crate::problem::Problem;
use crate::spark::{
    ATTEMPT, SparkStage, SparkStageStatus, SparkTask, SparkTaskStatus, SparkTaskSummary, TASKS_MAX, Tried,
    kinds_of, stage_id, tried_of,
};

const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
const QUANTILES_MAX: usize = 100;
const LENGTH: u64 = 20;
/// What tasks may be sorted by.
pub const SORTS: &[&str] = &["ID", "runtime", "-runtime", "INCREASING_RUNTIME", "DECREASING_RUNTIME"];

pub fn stages(call: &Call<'_>) -> Result<Reply, Problem> {
    let statuses = words::<SparkStageStatus>(call, "status")?;
    let with_details = call.asked::<bool>("details")?.unwrap_or(false);
    let job = find_application(call)?;
    let tried = tried_of(&job, now_millis());
    let mut kinds = kinds_of(&job);
    kinds.retain(|kind| {
        statuses.as_ref().is_none_or(|statuses| statuses.contains(&SparkStageStatus::of(&job, *kind)))
    });
    // As Spark does: the last one first.
    let stages = kinds.into_iter().rev().map(|kind| one_stage(&job, kind, &tried, with_details));
    Reply::json(&stages.collect::<Vec<_>>())
}

fn one_stage(job: &JobDetail, kind: TaskKind, tried: &[Tried<'_>], with_details: bool) -> SparkStage {
    if with_details { SparkStage::whole(job, kind, tried) } else { SparkStage::listed(job, kind, tried) }
}

/// The stage of the path, and what it is a part of.
fn find_stage(call: &Call<'_>) -> Result<(Arc<JobDetail>, TaskKind), Problem> {
    let job = find_application(call)?;
    let kinds = kinds_of(&job);
    let asked = call.part::<u32>("stage").ok();
    let found = kinds.iter().find(|kind| Some(stage_id(**kind)) == asked).copied();
    let found = found.ok_or_else(|| {
        let there: Vec<String> = kinds.iter().map(|kind| format!("{} ({kind})", stage_id(*kind))).collect();
        let (name, there) = (job.summary.job, there.join(" and "));
        Problem::new(StatusCode::NOT_FOUND, format!("there is no such stage of {name}; ask for {there}"))
    })?;
    Ok((job, found))
}

/// Likewise, where the path says which attempt at it.
fn find_attempt(call: &Call<'_>) -> Result<(Arc<JobDetail>, TaskKind), Problem> {
    let found = find_stage(call)?;
    if call.part::<u32>("stage_attempt").ok() != Some(ATTEMPT) {
        let detail = "there is no such attempt at the stage; each is tried once, ask for 0";
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    Ok(found)
}

fn told(call: &Call<'_>, job: &JobDetail, kind: TaskKind) -> Result<SparkStage, Problem> {
    let with_details = call.asked::<bool>("details")?.unwrap_or(true);
    Ok(one_stage(job, kind, &tried_of(job, now_millis()), with_details))
}

pub fn attempts(call: &Call<'_>) -> Result<Reply, Problem> {
    let (job, kind) = find_stage(call)?;
    Reply::json(&[told(call, &job, kind)?])
}

pub fn attempt(call: &Call<'_>) -> Result<Reply, Problem> {
    let (job, kind) = find_attempt(call)?;
    Reply::json(&told(call, &job, kind)?)
}

pub fn summary(call: &Call<'_>) -> Result<Reply, Problem> {
    let quantiles = match call.asked::<String>("quantiles")? {
        Some(said) => read_quantiles(&said)?,
        None => QUANTILES.to_vec(),
    };
    let (job, kind) = find_attempt(call)?;
    let tried = tried_of(&job, now_millis());
    let of_kind: Vec<&Tried<'_>> = tried.iter().filter(|one| one.kind() == kind).collect();
    let summary = SparkTaskSummary::of(&of_kind, &quantiles).ok_or_else(|| {
        let detail = format!("no {kind} of {} is done yet; see its taskList", job.summary.job);
        Problem::new(StatusCode::NOT_FOUND, detail)
    })?;
    Reply::json(&summary)
}

fn read_quantiles(said: &str) -> Result<Vec<f64>, Problem> {
    let one = |text: &str| match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(Problem::wrong(format!("quantiles: {text:?} is no number from 0 to 1"))),
    };
    let quantiles = said.split(',').take(QUANTILES_MAX + 1).map(one).collect::<Result<Vec<_>, _>>()?;
    if quantiles.len() > QUANTILES_MAX {
        return Err(Problem::wrong(format!("quantiles: at most {QUANTILES_MAX} may be asked for")));
    }
    Ok(quantiles)
}

/// What `sortBy` says: by how long they took or not, and whether the longest comes first.
fn read_sort(call: &Call<'_>) -> Result<(bool, bool), Problem> {
    let said = call.asked::<String>("sortBy")?.unwrap_or_else(|| "ID".to_owned());
    match said.to_ascii_uppercase().as_str() {
        "ID" => Ok((false, false)),
        "RUNTIME" | "INCREASING_RUNTIME" => Ok((true, false)),
        "-RUNTIME" | "DECREASING_RUNTIME" => Ok((true, true)),
        _ => Err(Problem::wrong(format!(
            "tasks are not sorted by {said:?}; there are ID, runtime and -runtime"
        ))),
    }
}

pub fn tasks(call: &Call<'_>) -> Result<Reply, Problem> {
    let offset = usize::try_from(call.asked::<u64>("offset")?.unwrap_or(0)).unwrap_or(usize::MAX);
    let length = call.asked::<u64>("length")?.unwrap_or(LENGTH).min(TASKS_MAX as u64);
    let length = usize::try_from(length).unwrap_or(TASKS_MAX);
    let (by_time, longest_first) = read_sort(call)?;
    let statuses = words::<SparkTaskStatus>(call, "status")?;
    let (job, kind) = find_attempt(call)?;
    let mut tried = tried_of(&job, now_millis());
    tried.retain(|one| {
        let status = SparkTaskStatus::from(one.state);
        one.kind() == kind && statuses.as_ref().is_none_or(|statuses| statuses.contains(&status))
    });
    if by_time {
        tried.sort_by_key(|one| one.spent.took);
    }
    if longest_first {
        tried.reverse();
    }
    let page = tried.iter().skip(offset).take(length).map(SparkTask::of);
    Reply::json(&page.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_shares() {
        assert_eq!(read_quantiles("0, 0.5,1").ok(), Some(vec![0.0, 0.5, 1.0]));
        for said in ["", "x", "0.5,", "-1", "-0.0001", "1.1", "NaN", "inf", "1e999"] {
            let refused = read_quantiles(said).expect_err(said);
            assert!(refused.detail.ends_with("is no number from 0 to 1"), "{said}: {}", refused.detail);
        }
        assert!(read_quantiles(&["0.5"; 100].join(",")).is_ok());
        assert!(read_quantiles(&["0.5"; 101].join(",")).is_err());
    }
}
