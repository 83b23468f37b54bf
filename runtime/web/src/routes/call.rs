//! The request that a route handler receives ([`Call`]) and the response that it returns ([`Reply`]).

use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use napreduce_answers::csv_of;
use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::JobDetail;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::context::Web;
use crate::guard::Credentials;
use crate::problem::Problem;
use crate::shown::Shown;
use crate::source::PageSource;

/// A request whose role and query parameters are checked.
#[derive(Debug)]
pub struct Call<'web> {
    pub web: &'web Arc<Web>,
    /// Path of the route, with `{NAME}` for variable parts.
    pub route: &'static str,
    /// The recording named by the query parameter `recording`; without it, the one that the server shows first.
    pub shown: Arc<Shown>,
    pub credentials: Credentials,
    /// Values of the `{NAME}` parts of the route's path.
    pub path: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Parses an identifier from the path or the body.
///
/// # Errors
/// `400` if `text` is invalid.
pub fn named<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|error: T::Err| Problem::invalid(error.to_string()))
}

impl Call<'_> {
    /// Returns the part `{name}` of the path.
    ///
    /// # Errors
    /// `400` if it does not parse.
    pub fn path_value<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<T, Problem> {
        let text = self
            .path
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, text)| text.as_str());
        named(text)
    }

    /// Returns the task in the path, and the attempt number if the path names an attempt.
    ///
    /// # Errors
    /// `400` if the path names neither.
    pub fn task(&self) -> Result<(TaskId, Option<u32>), Problem> {
        match self.path_value::<AttemptId>("task") {
            Ok(attempt) => Ok((attempt.task, Some(attempt.number))),
            Err(_) => Ok((self.path_value("task")?, None)),
        }
    }

    /// Returns the query parameter `name`, if it is present.
    ///
    /// # Errors
    /// `400` if it is repeated or does not parse.
    pub fn query_value<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let mut values = self.query.iter().filter(|(known, _)| known == name);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(Problem::invalid(format!(
                "query parameter {name} is repeated"
            ))),
            (Some((_, text)), None) => text.parse().map(Some).map_err(|error: T::Err| {
                Problem::invalid(format!("{name}={text}: {}", error.to_string()))
            }),
        }
    }

    /// Returns the comma-separated words of the query parameter `name`; empty if it is absent.
    ///
    /// # Errors
    /// `400` if a word is not one of `known`.
    pub fn query_words(&self, name: &str, known: &[&str]) -> Result<Vec<String>, Problem> {
        let Some(list) = self.query_value::<String>(name)? else {
            return Ok(Vec::new());
        };
        let words: Vec<String> = list.split(',').map(str::to_owned).collect();
        match words.iter().find(|word| !known.contains(&word.as_str())) {
            None => Ok(words),
            Some(word) => Err(Problem::invalid(format!(
                "{name}={word}: expected one of {}",
                known.join(", ")
            ))),
        }
    }

    /// Returns the job in the path.
    ///
    /// # Errors
    /// `404` if it is unknown.
    pub fn job(&self) -> Result<Arc<JobDetail>, Problem> {
        Ok(self.shown.source.job(self.path_value::<JobId>("job")?)?)
    }

    /// Returns the recording with this name, or the one that is shown first if `name` is `None`.
    ///
    /// # Errors
    /// `404` if there is no such recording.
    pub fn shown_as(&self, name: Option<&str>) -> Result<Arc<Shown>, Problem> {
        name.map_or(Ok(self.shown.clone()), |name| recording(self.web, name))
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// `415` if the content type is not `application/json`, `400` if the body does not parse.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let kind = self.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_json = kind.is_some_and(|kind| {
            kind.split(|byte| *byte == b';').next() == Some(b"application/json")
        });
        if !is_json {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Problem::invalid(format!("invalid request body: {error}")))
    }
}

/// Returns the job of a task.
///
/// # Errors
/// `404` if the job is unknown or has no such task.
pub fn job_of_task(source: &dyn PageSource, task: TaskId) -> Result<Arc<JobDetail>, Problem> {
    let job = source.job(task.job)?;
    let tasks = match task.kind {
        TaskKind::Map => job.summary.progress.map.tasks,
        TaskKind::Reduce => job.summary.progress.reduce.tasks,
    };
    if task.index >= tasks {
        let absent = format!(
            "no such task: {task} ({} has {tasks} {} tasks)",
            task.job, task.kind
        );
        return Err(Problem::new(StatusCode::NOT_FOUND, absent)
            .remedy(format!("run: nap task list {}", task.job)));
    }
    Ok(job)
}

/// Returns the recording with this name.
///
/// # Errors
/// `404` if there is no such recording.
pub fn recording(web: &Web, name: &str) -> Result<Arc<Shown>, Problem> {
    web.recordings()
        .into_iter()
        .find(|recording| recording.name == name)
        .ok_or_else(|| {
            Problem::new(
                StatusCode::NOT_FOUND,
                format!("no such recording: {name:?}"),
            )
            .remedy("see /api/nap/v1/recordings; to show several, run: nap history serve PATH...")
        })
}

/// Returns the field names of an object, from its schema.
pub fn names_of<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    let properties = schema["properties"].as_object();
    properties
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default()
}

/// Converts to a JSON object.
///
/// # Errors
/// `500` if it is not an object.
pub fn object_of(item: &impl Serialize) -> Result<Map<String, Value>, Problem> {
    match serde_json::to_value(item) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "cannot serialize the response as an object",
        )),
    }
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: ReplyBody,
}

#[derive(Debug)]
pub enum ReplyBody {
    Bytes(Vec<u8>),
    Stream(Body),
}

impl Reply {
    /// A JSON object.
    ///
    /// # Errors
    /// `500` if `value` cannot be serialized.
    pub fn json(value: &impl Serialize) -> Result<Reply, Problem> {
        let body = serde_json::to_vec(value).map_err(|error| {
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("cannot serialize the response: {error}"),
            )
        })?;
        Ok(Reply::of("application/json", body))
    }

    /// A body with the content type `kind`.
    pub fn of(kind: &'static str, body: Vec<u8>) -> Reply {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(kind))];
        Reply {
            status: StatusCode::OK,
            headers,
            body: ReplyBody::Bytes(body),
        }
    }

    /// A table as comma-separated values, which a browser saves under this name; `first` is its leftmost column.
    ///
    /// # Errors
    /// `500` if a row is not an object.
    pub fn csv<T: Serialize + JsonSchema>(
        name: &str,
        first: &str,
        rows: &[T],
    ) -> Result<Reply, Problem> {
        let objects = rows.iter().map(object_of).collect::<Result<Vec<_>, _>>()?;
        let text = csv_of(&names_of::<T>(), first, &objects);
        Ok(Reply::csv_text(name, text))
    }

    /// Comma-separated values, which a browser saves under this name.
    pub fn csv_text(name: &str, text: String) -> Reply {
        let saved = HeaderValue::from_str(&format!("attachment; filename=\"{name}.csv\""))
            .unwrap_or(HeaderValue::from_static("attachment"));
        Reply::of("text/csv; charset=utf-8", text.into_bytes()).header(CONTENT_DISPOSITION, saved)
    }

    /// A streamed body with the content type `kind`.
    pub fn stream(kind: &'static str, body: Body) -> Reply {
        Reply {
            body: ReplyBody::Stream(body),
            ..Reply::of(kind, Vec::new())
        }
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
