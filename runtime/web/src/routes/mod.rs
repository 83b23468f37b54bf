//! HTTP routes: one table that states the required role of each, and the code that runs a call.

mod call;
mod jobs;
mod links;
mod list;
mod metrics;
mod openapi;
mod orders;
mod preemptions;
mod recordings;
mod route;
mod search;
mod session;
mod shares;
mod stream;
mod table;
mod what_if;
mod whole;
mod window;
mod workers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use axum::http::{Method, Response, StatusCode};
use axum::routing::MethodFilter;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub use call::{Call, Reply, ReplyBody};
pub use table::all_routes;

use route::Route;

use crate::context::Web;
use crate::guard::{Credentials, WebRole};
use crate::problem::Problem;

/// Limit of a request body.
const BODY_BYTES_MAX: usize = 64 << 10;
const BODY_TIME: Duration = Duration::from_secs(5);
/// Slower requests are answered with 503.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Returns the OpenAPI 3.1 description of all routes.
pub fn openapi_json() -> String {
    format!("{:#}", openapi::description())
}

/// Returns a router with all routes of the table.
pub fn router() -> Router<Arc<Web>> {
    all_routes()
        .enumerate()
        .fold(Router::new(), |router, (index, route)| {
            let method = if route.method == Method::POST {
                MethodFilter::POST
            } else {
                MethodFilter::GET
            };
            let answer =
                move |State(web): State<Arc<Web>>, path: RawPathParams, request: Request| {
                    let path = path
                        .iter()
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect();
                    web.calls.count(index);
                    let begun = Instant::now();
                    async move {
                        let response = run(route, web.clone(), path, request).await;
                        web.tally
                            .answered(route.path, begun.elapsed().as_secs_f64());
                        response
                    }
                };
            router.route(route.path, axum::routing::on(method, answer))
        })
}

async fn run(
    route: &'static Route,
    web: Arc<Web>,
    path: Vec<(String, String)>,
    request: Request,
) -> Response<Body> {
    match timeout(ANSWER_TIME, answer(route, web, path, request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => {
            let late = format!("request timed out after {ANSWER_TIME:?}; try again");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, late).into_response()
        }
    }
}

async fn answer(
    route: &'static Route,
    web: Arc<Web>,
    path: Vec<(String, String)>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    // Set by the guard.
    let credentials = parts
        .extensions
        .get::<Credentials>()
        .cloned()
        .unwrap_or_else(Credentials::anonymous);
    authorize(route, &credentials)?;
    let body = timeout(BODY_TIME, to_bytes(body, BODY_BYTES_MAX))
        .await
        .map_err(|_| {
            Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("timed out reading the request body ({BODY_TIME:?})"),
            )
        })?;
    let body = body.map_err(|_| {
        let detail = format!("request body is incomplete or has more than {BODY_BYTES_MAX} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    })?;
    let query = parts.uri.query().unwrap_or_default();
    let query = list::parse_query(query, route)?;
    let known_tag = parts.headers.get(IF_NONE_MATCH).cloned();
    let headers = parts.headers;
    let call = move || {
        let shown = web.shown.clone();
        let mut call = Call {
            web: &web,
            route: route.path,
            shown,
            credentials,
            path,
            query,
            headers,
            body,
        };
        if let Some(name) = call.query_value::<String>(route::RECORDING.name)? {
            call.shown = call::recording(&web, &name)?;
        }
        if route.is_order() {
            orders::run_once(route, &call)
        } else {
            (route.answer)(&call)
        }
    };
    let reply = if route.is_instant {
        call()?
    } else {
        spawn_blocking(call).await.map_err(|error| {
            let detail = format!("internal error: {error}; please report it");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        })??
    };
    Ok(if route.method == Method::GET {
        tagged(reply, known_tag.as_ref())
    } else {
        reply.into_response()
    })
}

fn authorize(route: &Route, credentials: &Credentials) -> Result<(), Problem> {
    if credentials.role >= route.role {
        return Ok(());
    }
    Err(match credentials.role {
        WebRole::Nobody => Problem::new(StatusCode::UNAUTHORIZED, "not signed in")
            .remedy("open the link printed by nap up or nap web link"),
        _ => Problem::new(
            StatusCode::FORBIDDEN,
            format!("requires the role {}", route.role),
        )
        .remedy("sign in with a link created without --view; orders also need the token"),
    })
}

/// Adds an `ETag`; answers 304 without a body if the client already has it.
fn tagged(reply: Reply, known_tag: Option<&HeaderValue>) -> Response<Body> {
    let ReplyBody::Bytes(bytes) = &reply.body else {
        return reply.into_response();
    };
    let tag = format!("W/\"{:016x}\"", digest_without_moment(bytes));
    let mut response = reply.into_response();
    let Ok(tag) = HeaderValue::from_str(&tag) else {
        return response;
    };
    let is_known = known_tag == Some(&tag) && response.status() == StatusCode::OK;
    response.headers_mut().insert(ETAG, tag);
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
    }
    response
}

/// The moment of an answer, which a tag leaves out. Quotes in texts are escaped, so it is always a member.
const MOMENT: &[u8] = b"\"as_of_millis\":";

fn digest_without_moment(answer: &[u8]) -> u64 {
    let mut digest = xxhash_rust::xxh3::Xxh3::new();
    let mut rest = answer;
    while let Some(at) = memchr::memmem::find(rest, MOMENT) {
        let (before, moment) = rest.split_at(at + MOMENT.len());
        digest.update(before);
        let digits = moment
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        rest = &moment[digits..];
    }
    digest.update(rest);
    digest.digest()
}
