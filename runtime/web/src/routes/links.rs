//! Handlers for shared links.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Call, Reply};
use super::orders::Ordered;
use crate::clock::now_millis;
use crate::guard::{LinkAnswer, LinkError};
use crate::problem::Problem;

const MINUTES_MIN: u64 = 5;
const MINUTES_MAX: u64 = 30 * 24 * 60;
const ADDRESS_CHARACTERS_MAX: usize = 2_000;

/// A link to share.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkBody {
    /// For the list of links and for `nap web revoke`: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// Until it ends: 5 minutes to 30 days.
    pub minutes: u64,
    /// The page that it opens, with its query, such as `/jobs?state=failed`.
    #[serde(default = "first_page")]
    pub address: String,
}

fn first_page() -> String {
    "/".to_owned()
}

/// A new link.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NewLinkAnswer {
    #[serde(flatten)]
    pub link: LinkAnswer,
    /// The address with the code that signs in; it follows the origin of the server and is not stored.
    pub path: String,
}

/// The shared links that are valid.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LinksAnswer {
    pub items: Vec<LinkAnswer>,
    pub total: usize,
}

impl From<LinkError> for Problem {
    fn from(error: LinkError) -> Problem {
        let status = match error {
            LinkError::Invalid(_) => StatusCode::BAD_REQUEST,
            LinkError::Unknown(_) => StatusCode::NOT_FOUND,
            LinkError::Taken(_) | LinkError::TooMany => StatusCode::CONFLICT,
            LinkError::Io { .. } | LinkError::Malformed { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error.to_string())
    }
}

pub fn share(call: &Call<'_>) -> Result<Reply, Problem> {
    let LinkBody {
        name,
        minutes,
        address,
    } = call.json()?;
    if !(MINUTES_MIN..=MINUTES_MAX).contains(&minutes) {
        return Err(Problem::invalid(format!(
            "minutes is {minutes}; expected {MINUTES_MIN} to {MINUTES_MAX}"
        )));
    }
    let is_address = address.starts_with('/')
        && !address.starts_with("//")
        && address.len() <= ADDRESS_CHARACTERS_MAX
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"#\\".contains(&byte));
    if !is_address {
        let expected =
            format!("a page of this server, at most {ADDRESS_CHARACTERS_MAX} characters");
        return Err(Problem::invalid(format!(
            "invalid address; expected {expected}"
        )));
    }
    let (link, code) = call
        .web
        .sessions
        .share(&name, &address, now_millis(), minutes * 60_000)?;
    let path = format!("{address}#code={code}");
    Ok(Reply::json(&NewLinkAnswer {
        link: (&link).into(),
        path,
    })?
    .status(StatusCode::ACCEPTED))
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let links = call.web.sessions.links(now_millis())?;
    let items: Vec<LinkAnswer> = links.iter().map(LinkAnswer::from).collect();
    Reply::json(&LinksAnswer {
        total: items.len(),
        items,
    })
}

pub fn revoke(call: &Call<'_>) -> Result<Reply, Problem> {
    let ordered: String = call.path_value("link")?;
    call.web.sessions.revoke_link(&ordered, now_millis())?;
    Ok(Reply::json(&Ordered {
        ordered,
        attempts: Vec::new(),
    })?
    .status(StatusCode::ACCEPTED))
}
