//! Handlers that list, start and remove what-if simulations.

use axum::http::StatusCode;
use napreduce_protocol::whole_millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Reply, named};
use super::orders::Ordered;
use crate::problem::Problem;
use crate::what_if::{RemoveError, RequestError, WhatIf, WhatIfRequest, WhatIfs, Window};

/// The simulation to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WhatIfBody {
    /// Only jobs submitted at or after this time, in milliseconds since 1970.
    pub from: Option<u64>,
    /// Only jobs submitted before this time, in milliseconds since 1970.
    pub until: Option<u64>,
    /// Only these jobs; empty for all.
    pub jobs: Vec<String>,
    /// Schedulers to simulate in addition to the recorded one.
    pub schedulers: Vec<String>,
    /// Tables `[scheduler.NAME]` and `[preemption]` in TOML, at most 32 KiB, used instead of those of the
    /// cluster.
    pub configuration: Option<String>,
    /// The recording to simulate if the server shows several; default: the one shown first.
    pub recording: Option<String>,
}

/// The simulations of a server, and the choices for another one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhatIfsAnswer {
    /// Newest first.
    pub items: Vec<WhatIf>,
    /// Schedulers that can be simulated.
    pub schedulers: Vec<String>,
    /// A simulation that runs for longer is stopped.
    pub time_max_millis: u64,
}

impl From<&WhatIfs> for WhatIfsAnswer {
    fn from(known: &WhatIfs) -> WhatIfsAnswer {
        WhatIfsAnswer {
            items: known.queue.all(),
            schedulers: known.schedulers.clone(),
            time_max_millis: whole_millis(known.time_max),
        }
    }
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&WhatIfsAnswer::from(what_ifs(call)?))
}

pub fn one(call: &Call<'_>) -> Result<Reply, Problem> {
    let name = call.path_value::<String>("what_if")?;
    let known = what_ifs(call)?
        .queue
        .all()
        .into_iter()
        .find(|known| known.what_if == name);
    Reply::json(&known.ok_or_else(|| absent(format!("no such what-if: {name:?}")))?)
}

pub fn ask(call: &Call<'_>) -> Result<Reply, Problem> {
    let what_ifs = what_ifs(call)?;
    let body: WhatIfBody = call.json()?;
    let shown = call.shown_as(body.recording.as_deref())?;
    let history = shown
        .source
        .history()
        .ok_or_else(|| conflict("the history of the cluster is on another host"))?;
    let history = history
        .canonicalize()
        .map_err(|error| conflict(format!("{}: cannot open: {error}", history.display())))?;
    let window = Window {
        from_millis: body.from,
        until_millis: body.until,
    };
    let request = WhatIfRequest {
        history,
        window,
        jobs: body
            .jobs
            .iter()
            .map(|job| named(job))
            .collect::<Result<_, _>>()?,
        schedulers: body.schedulers,
        configuration: body.configuration.filter(|text| !text.trim().is_empty()),
    };
    let request = request.checked(&what_ifs.schedulers, &shown.source.jobs()?)?;
    let queued = what_ifs
        .queue
        .add(request, body.recording, &call.credentials.name)
        .ok_or_else(|| {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many what-ifs are queued",
            )
            .remedy("try again later, or remove one")
        })?;
    Ok(Reply::json(&queued)?.status(StatusCode::ACCEPTED))
}

pub fn remove(call: &Call<'_>) -> Result<Reply, Problem> {
    let name = call.path_value::<String>("what_if")?;
    what_ifs(call)?.queue.remove(&name)?;
    Ok(Reply::json(&Ordered {
        ordered: name,
        attempts: Vec::new(),
    })?
    .status(StatusCode::ACCEPTED))
}

fn what_ifs<'web>(call: &Call<'web>) -> Result<&'web WhatIfs, Problem> {
    call.web
        .what_ifs
        .as_ref()
        .map_err(|why| conflict(format!("what-ifs are not available: {why}")))
}

fn conflict(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::CONFLICT, detail)
}

fn absent(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, detail)
        .remedy("see /api/nap/v1/what-if; only the newest eight are kept")
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Problem {
        if error.is_bad_request() {
            Problem::invalid(error.to_string())
        } else {
            conflict(error.to_string())
        }
    }
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Problem {
        match error {
            RemoveError::Absent(_) => absent(error.to_string()),
            RemoveError::Io(..) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
        }
    }
}
