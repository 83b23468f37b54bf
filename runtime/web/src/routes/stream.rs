//! Server-sent events (`text/event-stream`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::{Interval, interval};

use super::call::{Call, Reply};
use crate::clock::now_millis;
use crate::context::Web;
use crate::events::{PageEvent, SubscribeError, Subscription, Topics};
use crate::guard::WebRole;
use crate::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Interval of keep-alive comments. Proxies and clients drop connections that are silent for longer.
const ALIVE: Duration = Duration::from_secs(10);
/// Reconnection delay sent to the client.
const RETRY: Duration = Duration::from_secs(1);
/// Interval at which the credentials of an open stream are checked again.
const RECHECK: Duration = Duration::from_secs(1);

pub fn stream(call: &Call<'_>) -> Result<Reply, Problem> {
    let topics = call.query_value::<Topics>("topics")?.unwrap_or_default();
    let after = call.query_value::<String>("after")?;
    let last = call
        .headers
        .get(LAST_EVENT_ID)
        .and_then(|last| last.to_str().ok());
    let Some(events) = &call.web.events else {
        let detail = "a history has no events: it does not change";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    let subscription = events
        .hub
        .subscribe(topics, last.or(after.as_deref()))
        .map_err(|error| match error {
            SubscribeError::Full => Problem::new(StatusCode::TOO_MANY_REQUESTS, error.to_string())
                .remedy("poll every 3 seconds instead"),
            SubscribeError::Closed => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
        })?;
    let listener = Listener::new(subscription, call);
    let alive = KeepAlive::new().interval(ALIVE).text("alive");
    let body = Sse::new(listener.events())
        .keep_alive(alive)
        .into_response()
        .into_body();
    // Proxies such as nginx would buffer the stream.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    Ok(Reply::stream("text/event-stream", body).header(unbuffered, HeaderValue::from_static("no")))
}

/// An open stream, with the credentials that it was opened with.
struct Listener {
    subscription: Subscription,
    web: Arc<Web>,
    credentials: HeaderMap,
    recheck: Interval,
}

impl Listener {
    fn new(subscription: Subscription, call: &Call<'_>) -> Listener {
        let mut credentials = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE] {
            for value in call.headers.get_all(&name) {
                credentials.append(name.clone(), value.clone());
            }
        }
        Listener {
            subscription,
            web: call.web.clone(),
            credentials,
            recheck: interval(RECHECK),
        }
    }

    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let begin = Event::default().retry(RETRY).id(self.subscription.from());
        let following = stream::unfold(self, |mut listener| async move {
            let (id, event) = listener.next().await?;
            Some((encoded(&id, &event), listener))
        });
        stream::once(async { begin }).chain(following).map(Ok)
    }

    /// Waits for the next event; `None` once the credentials are no longer valid.
    async fn next(&mut self) -> Option<(String, Arc<PageEvent>)> {
        loop {
            tokio::select! {
                biased;
                _ = self.recheck.tick() => if !self.is_authorized() { return None },
                event = self.subscription.next() => return event,
            }
        }
    }

    fn is_authorized(&self) -> bool {
        let credentials = self
            .web
            .sessions
            .credentials(&self.credentials, now_millis());
        credentials.is_ok_and(|credentials| credentials.role >= WebRole::View)
    }
}

fn encoded(id: &str, event: &PageEvent) -> Event {
    Event::default()
        .id(id)
        .event(event.change.name)
        .data(&event.change.data)
}

/// Returns the number of open streams as OpenMetrics, without the final `# EOF`.
pub fn metrics(web: &Web) -> Result<String, Problem> {
    let readers = web.events.as_ref().map_or(0, |events| events.hub.readers());
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(readers).unwrap_or(i64::MAX));
    let mut registry = Registry::with_prefix("napreduce");
    registry.register("http_streams", "Open event streams", gauge);
    let mut text = String::new();
    encode_registry(&mut text, &registry).map_err(|error| {
        let detail = format!("cannot encode the metrics: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(text)
}
