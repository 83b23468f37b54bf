//! Error responses, `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;

use crate::guard::Stranger;
use crate::source::SourceError;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: the status is the kind of problem.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    pub detail: String,
    /// How to fix it.
    pub remedy: Option<String>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            remedy: None,
        }
    }
}

impl Problem {
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Problem {
        self.remedy = Some(remedy.into());
        self
    }

    /// The request is invalid.
    pub fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn into_response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Serializing cannot fail: there are only texts and numbers.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (
            status,
            [(CONTENT_TYPE, "application/problem+json")],
            Body::from(body),
        )
            .into_response()
    }
}

impl From<SourceError> for Problem {
    fn from(error: SourceError) -> Problem {
        let status = match &error {
            SourceError::Absent(_) => StatusCode::NOT_FOUND,
            SourceError::Refused(_) => StatusCode::CONFLICT,
            SourceError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            SourceError::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

impl From<Stranger> for Problem {
    fn from(stranger: Stranger) -> Problem {
        match stranger {
            Stranger::Host => Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this server is not configured for the requested host name",
            )
            .remedy("use the printed address, or start the server with --host NAME"),
            Stranger::Page => Problem::new(StatusCode::FORBIDDEN, "cross-site request"),
        }
    }
}
