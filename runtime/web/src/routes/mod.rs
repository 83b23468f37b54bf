//! What can be asked for: one table of routes, each with the role it needs.
//!
//! Owns that there is no other way to add one, and how calls are run. Does not own what is known (`source`)
//! nor who asks (`guard`).

mod call;
mod jobs;
mod list;
mod metrics;
mod openapi;
mod orders;
mod preemptions;
mod recordings;
mod route;
mod session;
mod shares;
mod stream;
mod table;
mod what_if;
mod whole;
mod window;

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

/// Nothing that is sent here is longer.
const BODY_BYTES_MAX: usize = 64 << 10;
const BODY_TIME: Duration = Duration::from_secs(5);
/// Answers that take longer are given up.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The description of all routes, OpenAPI 3.1.
pub fn openapi_json() -> String {
    format!("{:#}", openapi::description())
}

/// All routes of the table.
pub fn router() -> Router<Arc<Web>> {
    all_routes().enumerate().fold(Router::new(), |router, (index, route)| {
        let method = if route.method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
        let answer = move |State(web): State<Arc<Web>>, path: RawPathParams, request: Request| {
            let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            web.calls.count(index);
            let begun = Instant::now();
            async move {
                let response = run(route, web.clone(), path, request).await;
                web.tally.answered(route.path, begun.elapsed().as_secs_f64());
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
            let late = format!("no answer within {ANSWER_TIME:?}; try again");
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
    // The guard has put them there.
    let credentials = parts.extensions.get::<Credentials>().cloned().unwrap_or_else(Credentials::nobody);
    may(route, &credentials)?;
    let body = timeout(BODY_TIME, to_bytes(body, BODY_BYTES_MAX)).await.map_err(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, format!("the body was not there after {BODY_TIME:?}"))
    })?;
    let body = body.map_err(|_| {
        let detail = format!("the body is not whole, or has more than {BODY_BYTES_MAX} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    })?;
    let query = parts.uri.query().unwrap_or_default();
    let query = list::parse_query(query, route)?;
    let wanted = parts.headers.get(IF_NONE_MATCH).cloned();
    let headers = parts.headers;
    let call = move || {
        let shown = web.shown.clone();
        let mut call = Call { web: &web, shown, credentials, path, query, headers, body };
        if let Some(name) = call.asked::<String>(route::RECORDING.name)? {
            call.shown = call::recording(&web, &name)?;
        }
        if route.is_order() { orders::given_once(route, &call) } else { (route.answer)(&call) }
    };
    let reply = if route.is_instant {
        call()?
    } else {
        spawn_blocking(call).await.map_err(|error| {
            let detail = format!("internal error: {error}; please report it");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        })??
    };
    Ok(if route.method == Method::GET { tagged(reply, wanted.as_ref()) } else { reply.into_response() })
}

fn may(route: &Route, credentials: &Credentials) -> Result<(), Problem> {
    if credentials.role >= route.role {
        return Ok(());
    }
    Err(match credentials.role {
        WebRole::Nobody => Problem::new(StatusCode::UNAUTHORIZED, "nobody is signed in")
            .remedy("open the link that nap up printed, or that nap web link prints"),
        _ => Problem::new(StatusCode::FORBIDDEN, format!("this needs the role {}", route.role))
            .remedy("sign in by a link without --view; a page sends its token with each order"),
    })
}

/// With a tag by its bytes; nothing of it is sent to whoever has it.
fn tagged(reply: Reply, wanted: Option<&HeaderValue>) -> Response<Body> {
    let ReplyBody::Bytes(bytes) = &reply.body else { return reply.into_response() };
    let tag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(bytes));
    let mut response = reply.into_response();
    let Ok(tag) = HeaderValue::from_str(&tag) else { return response };
    let is_known = wanted == Some(&tag) && response.status() == StatusCode::OK;
    response.headers_mut().insert(ETAG, tag);
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
    }
    response
}
