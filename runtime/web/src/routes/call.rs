//! What a route is called with, and what it gives back.
//!
//! Owns reading of paths, queries and bodies. Does not own what is done with them.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use napreduce_engine::{AttemptId, JobId, TaskId};
use napreduce_protocol::JobDetail;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Web;
use crate::guard::Credentials;
use crate::problem::Problem;
use crate::shown::Shown;

/// A request that may be answered.
#[derive(Debug)]
pub struct Call<'web> {
    pub web: &'web Arc<Web>,
    /// What it is about: the cluster or history that is shown first, or the recording that the query names.
    pub shown: Arc<Shown>,
    pub credentials: Credentials,
    /// What stands in the place of `{NAME}` in the pattern.
    pub path: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Parses an identifier or another name.
///
/// # Errors
/// When it is invalid.
pub fn named<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| Problem::wrong(error.to_string()))
}

impl Call<'_> {
    /// A part of the path.
    ///
    /// # Errors
    /// When it is not one of these.
    pub fn part<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<T, Problem> {
        let text = self.path.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text.as_str());
        named(text)
    }

    /// The task of the path, and the number of its attempt if an attempt is named.
    ///
    /// # Errors
    /// When it is neither.
    pub fn task(&self) -> Result<(TaskId, Option<u32>), Problem> {
        match self.part::<AttemptId>("task") {
            Ok(attempt) => Ok((attempt.task, Some(attempt.number))),
            Err(_) => Ok((self.part("task")?, None)),
        }
    }

    /// Something of the query, if it is there.
    ///
    /// # Errors
    /// When it is said twice, or is not one of these.
    pub fn asked<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let mut said = self.query.iter().filter(|(known, _)| known == name);
        match (said.next(), said.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(Problem::wrong(format!("{name} is said twice"))),
            (Some((_, text)), None) => text
                .parse()
                .map(Some)
                .map_err(|error: T::Err| Problem::wrong(format!("{name}={text}: {}", error.to_string()))),
        }
    }

    /// The job of the path, with all that is known of it.
    ///
    /// # Errors
    /// When there is none.
    pub fn job(&self) -> Result<Arc<JobDetail>, Problem> {
        Ok(self.shown.source.job(self.part::<JobId>("job")?)?)
    }

    /// What is shown by a name that is said; what is shown first if none is.
    ///
    /// # Errors
    /// When nothing is.
    pub fn shown_as(&self, name: Option<&str>) -> Result<Arc<Shown>, Problem> {
        name.map_or(Ok(self.shown.clone()), |name| recording(self.web, name))
    }

    /// The body, as JSON.
    ///
    /// # Errors
    /// When it is something else.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let kind = self.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_json =
            kind.is_some_and(|kind| kind.split(|byte| *byte == b';').next() == Some(b"application/json"));
        if !is_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body has to be application/json",
            ));
        }
        serde_json::from_slice(&self.body).map_err(|error| Problem::wrong(format!("the body: {error}")))
    }
}

/// What is shown by this name.
///
/// # Errors
/// When nothing is.
pub fn recording(web: &Web, name: &str) -> Result<Arc<Shown>, Problem> {
    web.recordings().into_iter().find(|recording| recording.name == name).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, format!("there is no recording {name:?} here"))
            .remedy("see /api/nap/v1/recordings; nap history serve PATH... shows several")
    })
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: ReplyBody,
}

/// What an answer says.
#[derive(Debug)]
pub enum ReplyBody {
    Bytes(Vec<u8>),
    /// It comes bit by bit, for as long as it takes.
    Stream(Body),
}

impl Reply {
    /// An object.
    ///
    /// # Errors
    /// When JSON cannot say it.
    pub fn json(value: &impl Serialize) -> Result<Reply, Problem> {
        let body = serde_json::to_vec(value)
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no JSON: {error}")))?;
        Ok(Reply::of("application/json", body))
    }

    /// Bytes of a kind.
    pub fn of(kind: &'static str, body: Vec<u8>) -> Reply {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(kind))];
        Reply { status: StatusCode::OK, headers, body: ReplyBody::Bytes(body) }
    }

    /// What comes bit by bit, of a kind.
    pub fn stream(kind: &'static str, body: Body) -> Reply {
        Reply { body: ReplyBody::Stream(body), ..Reply::of(kind, Vec::new()) }
    }

    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Reply {
        self.status = status;
        self
    }

    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Reply {
        self.headers.push((name, value));
        self
    }

    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(match self.body {
            ReplyBody::Bytes(bytes) => Body::from(bytes),
            ReplyBody::Stream(body) => body,
        });
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}
