//! Handlers for operator commands.

use std::path::Path;

use axum::http::StatusCode;
use napreduce_engine::{AttemptId, JobChange, JobId, WorkerId};
use napreduce_protocol::{JobCommand, TaskCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Reply, ReplyBody, job_of_task};
use super::route::Route;
use crate::clock::now_millis;
use crate::once::OtherOrder;
use crate::problem::Problem;
use crate::source::{OperatorCommand, PageSource, SourceError};

const REASON_CHARACTERS_MAX: usize = 500;
/// Header that identifies a repeated order.
pub const KEY_HEADER: &str = "Idempotency-Key";
pub const KEY_CHARACTERS_MAX: usize = 200;

/// The body of an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Recorded in the history together with the name of the token; at most 500 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The body of an order to drain a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Hand running attempts back instead of finishing them.
    #[serde(default)]
    pub hand_back: bool,
    /// Shown in the list of workers together with the name of the token; at most 500 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The body of an order to change a job; at least one of `priority` and `queue`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Higher ones go first.
    #[serde(default)]
    pub priority: Option<i32>,
    #[serde(default)]
    pub queue: Option<String>,
    /// Recorded in the history together with the name of the token; at most 500 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A job to submit again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// Another output: an absolute path, or the address of an object store. Default: that of the job.
    #[serde(default)]
    pub output: Option<String>,
    /// Recorded in the history together with the name of the token; at most 500 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// An accepted order. Acceptance does not mean that the order has taken effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ordered {
    /// ID of the job, task, worker or what-if, or name of the link; of a rerun, the new job.
    pub ordered: String,
    /// The affected attempts of an order about a task.
    pub attempts: Vec<String>,
}

/// Runs an order; a repeated one with the same key returns the first answer.
pub fn run_once(route: &Route, call: &Call<'_>) -> Result<Reply, Problem> {
    let Some(key) = call.headers.get(KEY_HEADER) else {
        return (route.answer)(call);
    };
    let is_key = (1..=KEY_CHARACTERS_MAX).contains(&key.len())
        && key.as_bytes().iter().all(u8::is_ascii_graphic);
    let Some(key) = key.to_str().ok().filter(|_| is_key) else {
        let expected = format!("1 to {KEY_CHARACTERS_MAX} visible ASCII characters");
        return Err(Problem::invalid(format!(
            "invalid {KEY_HEADER}; expected {expected}"
        )));
    };
    let parts: Vec<&str> = call.path.iter().map(|(_, part)| part.as_str()).collect();
    let order = [
        route.path.as_bytes(),
        parts.join("/").as_bytes(),
        &call.body[..],
    ]
    .join(&b'\n');
    let digest = xxhash_rust::xxh3::xxh3_128(&order);
    let answer = || {
        let Reply { status, body, .. } = (route.answer)(call)?;
        match body {
            ReplyBody::Bytes(body) => Ok((status, body)),
            ReplyBody::Stream(_) => Err(Problem::invalid(format!(
                "a stream does not support {KEY_HEADER}"
            ))),
        }
    };
    let given = call.web.once.run_once(
        (call.credentials.name.clone(), key.to_owned()),
        digest,
        now_millis(),
        answer,
    );
    let (status, body) = given.map_err(|OtherOrder| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("key {key} was already used for another order"),
        )
        .remedy("use a new key for each order")
    })??;
    Ok(Reply::of("application/json", body).status(status))
}

fn reason(call: &Call<'_>, reason: Option<String>) -> Result<String, Problem> {
    let reason = reason.unwrap_or_default();
    if reason.chars().count() > REASON_CHARACTERS_MAX {
        let detail = format!("the reason has more than {REASON_CHARACTERS_MAX} characters");
        return Err(Problem::invalid(detail));
    }
    let by = format!("requested on the dashboard by {}", call.credentials.name);
    Ok(if reason.trim().is_empty() {
        by
    } else {
        format!("{}: {by}", reason.trim())
    })
}

fn order(
    call: &Call<'_>,
    order: &OperatorCommand,
    about: impl ToString,
    reason: &str,
) -> Result<Reply, Problem> {
    let source = &*call.shown.source;
    let ordered = source.order(order, reason);
    let attempts = ordered.map_err(|error| refusal(error, || object_of(source, order)))?;
    let attempts = attempts.iter().map(ToString::to_string).collect();
    Ok(Reply::json(&Ordered {
        ordered: about.to_string(),
        attempts,
    })?
    .status(StatusCode::ACCEPTED))
}

/// Converts the error of an order: 404 if the object of a refused order does not exist. `find` fails if it does not.
fn refusal(error: SourceError, find: impl FnOnce() -> Result<(), Problem>) -> Problem {
    if !matches!(error, SourceError::Refused(_)) {
        return error.into();
    }
    match find() {
        Err(absent) if absent.status == StatusCode::NOT_FOUND.as_u16() => absent,
        _ => error.into(),
    }
}

/// Looks up the object that an order names.
///
/// # Errors
/// `404` if it does not exist. The workers of a history are unknown.
fn object_of(source: &dyn PageSource, order: &OperatorCommand) -> Result<(), Problem> {
    match *order {
        OperatorCommand::KillJob(job)
        | OperatorCommand::Job(job, _)
        | OperatorCommand::ChangeJob(job, _) => {
            source.job(job)?;
        }
        OperatorCommand::Task {
            task,
            attempt: None,
            ..
        } => {
            job_of_task(source, task)?;
        }
        OperatorCommand::Task {
            task,
            attempt: Some(number),
            ..
        } => {
            let job = job_of_task(source, task)?;
            let attempt = AttemptId { task, number };
            if !job.attempts.iter().any(|known| known.attempt == attempt) {
                return Err(Problem::new(
                    StatusCode::NOT_FOUND,
                    format!("no such attempt: {attempt}"),
                )
                .remedy(format!("run: nap task list {}", task.job)));
            }
        }
        OperatorCommand::Drain { worker, .. } | OperatorCommand::Undrain(worker) => {
            let workers = source.workers()?;
            if source.is_live() && !workers.iter().any(|known| known.worker == worker) {
                return Err(Problem::new(
                    StatusCode::NOT_FOUND,
                    format!("no such worker: {worker}"),
                )
                .remedy("run: nap worker list"));
            }
        }
    }
    Ok(())
}

fn of_job(call: &Call<'_>, what: fn(JobId) -> OperatorCommand) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let body: Reason = call.json()?;
    order(call, &what(job), job, &reason(call, body.reason)?)
}

fn of_task(call: &Call<'_>, command: TaskCommand) -> Result<Reply, Problem> {
    let (task, attempt) = call.task()?;
    let named = attempt.map_or_else(
        || task.to_string(),
        |number| AttemptId { task, number }.to_string(),
    );
    let body: Reason = call.json()?;
    order(
        call,
        &OperatorCommand::Task {
            task,
            attempt,
            command,
        },
        named,
        &reason(call, body.reason)?,
    )
}

pub fn kill_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, OperatorCommand::KillJob)
}

pub fn suspend_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, |job| OperatorCommand::Job(job, JobCommand::Suspend))
}

pub fn resume_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, |job| OperatorCommand::Job(job, JobCommand::Resume))
}

pub fn suspend_task(call: &Call<'_>) -> Result<Reply, Problem> {
    of_task(call, TaskCommand::Suspend)
}

pub fn resume_task(call: &Call<'_>) -> Result<Reply, Problem> {
    of_task(call, TaskCommand::Resume)
}

pub fn checkpoint_task(call: &Call<'_>) -> Result<Reply, Problem> {
    of_task(call, TaskCommand::Checkpoint)
}

pub fn kill_task(call: &Call<'_>) -> Result<Reply, Problem> {
    of_task(call, TaskCommand::Kill)
}

pub fn drain(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.path_value::<WorkerId>("worker")?;
    let body: Drain = call.json()?;
    let command = OperatorCommand::Drain {
        worker,
        hand_back: body.hand_back,
    };
    order(call, &command, worker, &reason(call, body.reason)?)
}

pub fn undrain(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.path_value::<WorkerId>("worker")?;
    let body: Reason = call.json()?;
    order(
        call,
        &OperatorCommand::Undrain(worker),
        worker,
        &reason(call, body.reason)?,
    )
}

pub fn set_job(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let Change {
        priority,
        queue,
        reason: given,
    } = call.json()?;
    if priority.is_none() && queue.is_none() {
        return Err(Problem::invalid(
            "nothing to change; give priority or queue",
        ));
    }
    let command = OperatorCommand::ChangeJob(job, JobChange { priority, queue });
    order(call, &command, job, &reason(call, given)?)
}

pub fn rerun_job(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let Rerun {
        output,
        reason: given,
    } = call.json()?;
    let source = &*call.shown.source;
    let new = source
        .rerun(job, output.as_deref().map(Path::new), &reason(call, given)?)
        .map_err(|error| refusal(error, || object_of(source, &OperatorCommand::KillJob(job))))?;
    Ok(Reply::json(&Ordered {
        ordered: new.to_string(),
        attempts: Vec::new(),
    })?
    .status(StatusCode::ACCEPTED))
}

pub fn hold_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, |job| OperatorCommand::Job(job, JobCommand::Hold))
}

pub fn release_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, |job| OperatorCommand::Job(job, JobCommand::Release))
}
