//! Handlers for operator commands.

use std::path::Path;

use axum::http::StatusCode;
use napreduce_engine::{AttemptId, JobChange, JobId, TaskId, WorkerId};
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, KillJob, UndrainWorker,
};
use napreduce_protocol::{JobCommand, TaskCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Reply, ReplyBody, job_of_task};
use super::route::Route;
use crate::clock::now_millis;
use crate::once::OtherOrder;
use crate::problem::Problem;
use crate::source::{PageSource, SourceError};

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

/// Returns the reason in the body of an order.
fn given_reason(call: &Call<'_>) -> Result<String, Problem> {
    let body: Reason = call.json()?;
    reason(call, body.reason)
}

fn accepted(about: impl ToString, attempts: &[AttemptId]) -> Result<Reply, Problem> {
    Ok(Reply::json(&Ordered {
        ordered: about.to_string(),
        attempts: attempts.iter().map(ToString::to_string).collect(),
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

/// Fails with `404` if a job does not exist.
fn find_job(source: &dyn PageSource, job: JobId) -> Result<(), Problem> {
    source.job(job)?;
    Ok(())
}

/// Fails with `404` if a task or its attempt of this number does not exist.
fn find_task(source: &dyn PageSource, task: TaskId, attempt: Option<u32>) -> Result<(), Problem> {
    let job = job_of_task(source, task)?;
    let Some(number) = attempt else {
        return Ok(());
    };
    let attempt = AttemptId { task, number };
    if job.attempts.iter().any(|known| known.attempt == attempt) {
        return Ok(());
    }
    Err(
        Problem::new(StatusCode::NOT_FOUND, format!("no such attempt: {attempt}"))
            .remedy(format!("run: nap task list {}", task.job)),
    )
}

/// Fails with `404` if a worker does not exist. The workers of a history are unknown.
fn find_worker(source: &dyn PageSource, worker: WorkerId) -> Result<(), Problem> {
    let workers = source.workers()?;
    if !source.is_live() || workers.iter().any(|known| known.worker == worker) {
        return Ok(());
    }
    Err(
        Problem::new(StatusCode::NOT_FOUND, format!("no such worker: {worker}"))
            .remedy("run: nap worker list"),
    )
}

fn command_job(call: &Call<'_>, command: JobCommand) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let source = &*call.shown.source;
    let request = CommandJob {
        job,
        command,
        reason: given_reason(call)?,
    };
    source
        .command_job(request)
        .map_err(|error| refusal(error, || find_job(source, job)))?;
    accepted(job, &[])
}

fn command_task(call: &Call<'_>, command: TaskCommand) -> Result<Reply, Problem> {
    let (task, attempt) = call.task()?;
    let source = &*call.shown.source;
    let request = CommandTask {
        task,
        attempt,
        command,
        reason: given_reason(call)?,
    };
    let attempts = source
        .command_task(request)
        .map_err(|error| refusal(error, || find_task(source, task, attempt)))?;
    match attempt {
        Some(number) => accepted(AttemptId { task, number }, &attempts),
        None => accepted(task, &attempts),
    }
}

pub fn kill_job(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let source = &*call.shown.source;
    let reason = given_reason(call)?;
    source
        .kill_job(KillJob { job, reason })
        .map_err(|error| refusal(error, || find_job(source, job)))?;
    accepted(job, &[])
}

pub fn suspend_job(call: &Call<'_>) -> Result<Reply, Problem> {
    command_job(call, JobCommand::Suspend)
}

pub fn resume_job(call: &Call<'_>) -> Result<Reply, Problem> {
    command_job(call, JobCommand::Resume)
}

pub fn hold_job(call: &Call<'_>) -> Result<Reply, Problem> {
    command_job(call, JobCommand::Hold)
}

pub fn release_job(call: &Call<'_>) -> Result<Reply, Problem> {
    command_job(call, JobCommand::Release)
}

pub fn suspend_task(call: &Call<'_>) -> Result<Reply, Problem> {
    command_task(call, TaskCommand::Suspend)
}

pub fn resume_task(call: &Call<'_>) -> Result<Reply, Problem> {
    command_task(call, TaskCommand::Resume)
}

pub fn checkpoint_task(call: &Call<'_>) -> Result<Reply, Problem> {
    command_task(call, TaskCommand::Checkpoint)
}

pub fn kill_task(call: &Call<'_>) -> Result<Reply, Problem> {
    command_task(call, TaskCommand::Kill)
}

pub fn drain(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.path_value::<WorkerId>("worker")?;
    let body: Drain = call.json()?;
    let source = &*call.shown.source;
    let request = DrainWorker {
        worker,
        hand_back: body.hand_back,
        reason: reason(call, body.reason)?,
    };
    source
        .drain_worker(request)
        .map_err(|error| refusal(error, || find_worker(source, worker)))?;
    accepted(worker, &[])
}

pub fn undrain(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.path_value::<WorkerId>("worker")?;
    let source = &*call.shown.source;
    let reason = given_reason(call)?;
    source
        .undrain_worker(UndrainWorker { worker, reason })
        .map_err(|error| refusal(error, || find_worker(source, worker)))?;
    accepted(worker, &[])
}

pub fn set_job(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let body: Change = call.json()?;
    if body.priority.is_none() && body.queue.is_none() {
        return Err(Problem::invalid(
            "nothing to change; give priority or queue",
        ));
    }
    let source = &*call.shown.source;
    let request = ChangeJob {
        job,
        change: JobChange {
            priority: body.priority,
            queue: body.queue,
        },
        reason: reason(call, body.reason)?,
    };
    source
        .change_job(request)
        .map_err(|error| refusal(error, || find_job(source, job)))?;
    accepted(job, &[])
}

pub fn rerun_job(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.path_value::<JobId>("job")?;
    let body: Rerun = call.json()?;
    let source = &*call.shown.source;
    let output = body.output.as_deref().map(Path::new);
    let new = source
        .rerun(job, output, &reason(call, body.reason)?)
        .map_err(|error| refusal(error, || find_job(source, job)))?;
    accepted(new, &[])
}
