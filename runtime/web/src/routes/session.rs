//! Handlers that sign in and out and describe the session.

use axum::http::StatusCode;
use axum::http::header::{HeaderValue, SET_COOKIE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Reply};
use crate::clock::now_millis;
use crate::guard::{BROWSER, SignIn, SignInError, WebRole};
use crate::problem::Problem;

/// The one-time code of a sign-in link.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInBody {
    pub code: String,
}

/// A new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignInAnswer {
    pub role: WebRole,
    pub until_millis: u64,
    /// Token for `Authorization: Bearer`, required for orders; null for a read-only session.
    pub token: Option<String>,
}

/// The session, and what this server offers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SessionAnswer {
    pub role: WebRole,
    pub name: String,
    pub until_millis: u64,
    /// Display name of the cluster.
    pub cluster: String,
    /// Whether the cluster is running: its state changes and it accepts orders.
    pub is_live: bool,
    /// Optional features: `stream` (events of a running cluster), `recordings` (several histories side by side),
    /// `what-if` (simulations).
    pub capabilities: Vec<&'static str>,
    pub version: &'static str,
}

impl From<&Call<'_>> for SessionAnswer {
    fn from(call: &Call<'_>) -> SessionAnswer {
        SessionAnswer {
            role: call.credentials.role,
            name: call.credentials.name.clone(),
            until_millis: call.credentials.until_millis,
            cluster: call.shown.source.name(),
            is_live: call.shown.source.is_live(),
            capabilities: capabilities(call),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

pub fn sign_in(call: &Call<'_>) -> Result<Reply, Problem> {
    let SignInBody { code } = call.json()?;
    let SignIn {
        role,
        name,
        until_millis,
        cookie,
        token,
    } = call
        .web
        .sessions
        .sign_in(&code, now_millis())
        .map_err(|error| {
            let status = match &error {
                SignInError::Wrong => StatusCode::UNAUTHORIZED,
                SignInError::TooMany => StatusCode::TOO_MANY_REQUESTS,
                SignInError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            Problem::new(status, error.to_string()).remedy("run: nap web link")
        })?;
    let reply = Reply::json(&SignInAnswer {
        role,
        until_millis,
        token,
    })?;
    // A shared link does not replace the longer session of a browser that is signed in.
    if name != BROWSER && call.credentials.name == BROWSER {
        return Ok(reply);
    }
    Ok(reply.header(SET_COOKIE, header(&cookie)?))
}

pub fn sign_out(call: &Call<'_>) -> Result<Reply, Problem> {
    let cookie = header(&call.web.sessions.clear_cookie())?;
    Ok(Reply::of("text/plain", b"signed out\n".to_vec()).header(SET_COOKIE, cookie))
}

fn header(cookie: &str) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(cookie).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot set the session cookie: {error}"),
        )
    })
}

pub fn session(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&SessionAnswer::from(call))
}

fn capabilities(call: &Call<'_>) -> Vec<&'static str> {
    let optional = [
        ("stream", call.web.events.is_some()),
        ("recordings", !call.web.recordings.is_empty()),
        ("what-if", call.web.what_ifs.is_ok()),
    ];
    optional
        .into_iter()
        .filter(|(_, is_present)| *is_present)
        .map(|(name, _)| name)
        .collect()
}
