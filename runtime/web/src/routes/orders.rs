//! Orders of operators.
//!
//! Owns what they say and what is said of them. Does not own what they do (the coordinator).

use axum::http::StatusCode;
use napreduce_engine::{AttemptId, JobId, WorkerId};
use napreduce_protocol::{JobCommand, TaskCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Reply, ReplyBody};
use super::route::Route;
use crate::clock::now_millis;
use crate::once::OtherOrder;
use crate::problem::Problem;
use crate::source::OperatorCommand;

const REASON_CHARACTERS_MAX: usize = 500;
/// The header by which an order that is sent again is known.
pub const KEY_HEADER: &str = "Idempotency-Key";
pub const KEY_CHARACTERS_MAX: usize = 200;

/// What an order says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Recorded in the history, with the name of the token; at most 500 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What the order to drain a worker says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Give back what runs, rather than finish it.
    #[serde(default)]
    pub hand_back: bool,
    /// Shown in the list of workers, with the name of the token; at most 500 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What was ordered; that it is done is another thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ordered {
    /// A job, a task, a worker or a what-if.
    pub ordered: String,
    /// The attempts that it is about, of an order about a task.
    pub attempts: Vec<String>,
}

/// Gives an order; one with a key that was given before is answered as it was then.
pub fn given_once(route: &Route, call: &Call<'_>) -> Result<Reply, Problem> {
    let Some(key) = call.headers.get(KEY_HEADER) else { return (route.answer)(call) };
    let is_key =
        (1..=KEY_CHARACTERS_MAX).contains(&key.len()) && key.as_bytes().iter().all(u8::is_ascii_graphic);
    let Some(key) = key.to_str().ok().filter(|_| is_key) else {
        let allowed = format!("1 to {KEY_CHARACTERS_MAX} visible ASCII characters");
        return Err(Problem::wrong(format!("{KEY_HEADER} may have {allowed}")));
    };
    let parts: Vec<&str> = call.path.iter().map(|(_, part)| part.as_str()).collect();
    let what = [route.path.as_bytes(), parts.join("/").as_bytes(), &call.body[..]].join(&b'\n');
    let what = xxhash_rust::xxh3::xxh3_128(&what);
    let answer = || {
        let Reply { status, body, .. } = (route.answer)(call)?;
        match body {
            ReplyBody::Bytes(body) => Ok((status, body)),
            ReplyBody::Stream(_) => Err(Problem::wrong(format!("what goes on takes no {KEY_HEADER}"))),
        }
    };
    let given =
        call.web.once.give((call.credentials.name.clone(), key.to_owned()), what, now_millis(), answer);
    let (status, body) = given.map_err(|OtherOrder| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the key {key} was sent with another order"))
            .remedy("make a new key for each order")
    })??;
    Ok(Reply::of("application/json", body).status(status))
}

fn reason(call: &Call<'_>, said: Option<String>) -> Result<String, Problem> {
    let said = said.unwrap_or_default();
    if said.chars().count() > REASON_CHARACTERS_MAX {
        return Err(Problem::wrong(format!("a reason may have {REASON_CHARACTERS_MAX} characters")));
    }
    let by = format!("asked for on the page ({})", call.credentials.name);
    Ok(if said.trim().is_empty() { by } else { format!("{}: {by}", said.trim()) })
}

fn order(
    call: &Call<'_>,
    order: &OperatorCommand,
    about: impl ToString,
    reason: &str,
) -> Result<Reply, Problem> {
    let attempts = call.shown.source.order(order, reason)?;
    let attempts = attempts.iter().map(ToString::to_string).collect();
    Ok(Reply::json(&Ordered { ordered: about.to_string(), attempts })?.status(StatusCode::ACCEPTED))
}

fn of_job(call: &Call<'_>, what: fn(JobId) -> OperatorCommand) -> Result<Reply, Problem> {
    let job = call.part::<JobId>("job")?;
    let said: Reason = call.json()?;
    order(call, &what(job), job, &reason(call, said.reason)?)
}

fn of_task(call: &Call<'_>, command: TaskCommand) -> Result<Reply, Problem> {
    let (task, attempt) = call.task()?;
    let named = attempt.map_or_else(|| task.to_string(), |number| AttemptId { task, number }.to_string());
    let said: Reason = call.json()?;
    order(call, &OperatorCommand::Task { task, attempt, command }, named, &reason(call, said.reason)?)
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
    let worker = call.part::<WorkerId>("worker")?;
    let Drain { hand_back, reason: said } = call.json()?;
    order(call, &OperatorCommand::Drain { worker, hand_back }, worker, &reason(call, said)?)
}

pub fn undrain(call: &Call<'_>) -> Result<Reply, Problem> {
    let worker = call.part::<WorkerId>("worker")?;
    let said: Reason = call.json()?;
    order(call, &OperatorCommand::Undrain(worker), worker, &reason(call, said.reason)?)
}

pub fn hold_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, |job| OperatorCommand::Job(job, JobCommand::Hold))
}

pub fn release_job(call: &Call<'_>) -> Result<Reply, Problem> {
    of_job(call, |job| OperatorCommand::Job(job, JobCommand::Release))
}
