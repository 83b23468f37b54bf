//! What-ifs: asking for one, how far it is, and removing it.
//!
//! Owns what these routes take and answer. Does not own the runs (`what_if`).

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use super::call::{Call, Reply, named};
use super::orders::Ordered;
use crate::problem::Problem;
use crate::what_if::{RemoveError, RequestError, WhatIf, WhatIfRequest, WhatIfs, Window};

/// What is to be tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIfBody {
    /// Only jobs that were submitted then or later, in milliseconds since 1970.
    pub from: Option<u64>,
    /// Only those that were submitted before that.
    pub until: Option<u64>,
    /// Only these of them.
    pub jobs: Vec<String>,
    /// The policies to try beside the recorded one.
    pub schedulers: Vec<String>,
    /// Tables `[scheduler.NAME]` and `[preemption]` as TOML, at most 32 KiB, in the place of those
    /// of the cluster.
    pub configuration: Option<String>,
    /// Whose history, where several are shown; what is shown first unless said.
    pub recording: Option<String>,
}

/// The what-ifs of a server, and what can be tried.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhatIfsAnswer {
    /// Newest first.
    pub items: Vec<WhatIf>,
    /// The policies that can be tried.
    pub schedulers: Vec<String>,
    /// One that takes longer is ended.
    pub time_max_millis: u64,
}

impl From<&WhatIfs> for WhatIfsAnswer {
    fn from(known: &WhatIfs) -> WhatIfsAnswer {
        WhatIfsAnswer {
            items: known.queue.all(),
            schedulers: known.schedulers.clone(),
            time_max_millis: u64::try_from(known.time_max.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&WhatIfsAnswer::from(there(call)?))
}

pub fn one(call: &Call<'_>) -> Result<Reply, Problem> {
    let name = call.part::<String>("what_if")?;
    let known = there(call)?.queue.all().into_iter().find(|known| known.what_if == name);
    Reply::json(&known.ok_or_else(|| absent(format!("there is no {name:?}")))?)
}

pub fn ask(call: &Call<'_>) -> Result<Reply, Problem> {
    let what_ifs = there(call)?;
    let said: WhatIfBody = call.json()?;
    let shown = call.shown_as(said.recording.as_deref())?;
    let history = shown.source.history().ok_or_else(|| conflict("its history is not on this machine"))?;
    let history = history
        .canonicalize()
        .map_err(|error| conflict(format!("cannot use {}: {error}", history.display())))?;
    let window = Window { from_millis: said.from, until_millis: said.until };
    let asked = WhatIfRequest {
        history,
        window,
        jobs: said.jobs.iter().map(|job| named(job)).collect::<Result<_, _>>()?,
        schedulers: said.schedulers,
        configuration: said.configuration.filter(|text| !text.trim().is_empty()),
    };
    let asked = asked.checked(&what_ifs.schedulers, &shown.source.jobs()?)?;
    let queued = what_ifs.queue.add(asked, said.recording, &call.credentials.name).ok_or_else(|| {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many what-ifs wait for their turn")
            .remedy("try again when one has ended, or remove one")
    })?;
    Ok(Reply::json(&queued)?.status(StatusCode::ACCEPTED))
}

pub fn remove(call: &Call<'_>) -> Result<Reply, Problem> {
    let name = call.part::<String>("what_if")?;
    there(call)?.queue.remove(&name)?;
    Ok(Reply::json(&Ordered { ordered: name, attempts: Vec::new() })?.status(StatusCode::ACCEPTED))
}

fn there<'web>(call: &Call<'web>) -> Result<&'web WhatIfs, Problem> {
    call.web.what_ifs.as_ref().map_err(|why| conflict(format!("there are no what-ifs here: {why}")))
}

fn conflict(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::CONFLICT, detail)
}

fn absent(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, detail)
        .remedy("see /api/nap/v1/what-if; the oldest of more than eight go")
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Problem {
        if error.is_wrong() { Problem::wrong(error.to_string()) } else { conflict(error.to_string()) }
    }
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Problem {
        match error {
            RemoveError::Absent(_) => absent(error.to_string()),
            RemoveError::Io(..) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}
