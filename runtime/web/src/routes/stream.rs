//! Events as they happen, for as long as somebody listens (`text/event-stream`).
//!
//! Owns their form on the wire, and that a stream ends when what opened it counts no more. Does not own what
//! has changed (`events`).

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
/// A reader that hears nothing for longer may take the server for gone.
const ALIVE: Duration = Duration::from_secs(10);
/// A reader comes back after so long.
const RETRY: Duration = Duration::from_secs(1);
/// How often it is looked whether the reader may still listen.
const PROOF: Duration = Duration::from_secs(1);

pub fn stream(call: &Call<'_>) -> Result<Reply, Problem> {
    let topics = call.asked::<Topics>("topics")?.unwrap_or_default();
    let after = call.asked::<String>("after")?;
    let last = call.headers.get(LAST_EVENT_ID).and_then(|last| last.to_str().ok());
    let Some(events) = &call.web.events else {
        let detail = "this is the history of a cluster, not a cluster: nothing in it happens";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    let subscription =
        events.hub.subscribe(topics, last.or(after.as_deref())).map_err(|error| match error {
            SubscribeError::Full => Problem::new(StatusCode::TOO_MANY_REQUESTS, error.to_string())
                .remedy("ask for what is wanted each 3 seconds instead"),
            SubscribeError::Closed => Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        })?;
    let listener = Listener::new(subscription, call);
    let alive = KeepAlive::new().interval(ALIVE).text("alive");
    let body = Sse::new(listener.events()).keep_alive(alive).into_response().into_body();
    // A proxy that collects before it passes on would keep everything.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    Ok(Reply::stream("text/event-stream", body).header(unbuffered, HeaderValue::from_static("no")))
}

/// Somebody who listens, and by what right.
struct Listener {
    subscription: Subscription,
    web: Arc<Web>,
    proof: HeaderMap,
    looked: Interval,
}

impl Listener {
    fn new(subscription: Subscription, call: &Call<'_>) -> Listener {
        let mut proof = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE] {
            for value in call.headers.get_all(&name) {
                proof.append(name.clone(), value.clone());
            }
        }
        Listener { subscription, web: call.web.clone(), proof, looked: interval(PROOF) }
    }

    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        let begin = Event::default().retry(RETRY).id(self.subscription.from());
        let following = stream::unfold(self, |mut listener| async move {
            let (id, event) = listener.next().await?;
            Some((written(&id, &event), listener))
        });
        stream::once(async { begin }).chain(following).map(Ok)
    }

    /// The next event, while it may be told.
    async fn next(&mut self) -> Option<(String, Arc<PageEvent>)> {
        loop {
            tokio::select! {
                biased;
                _ = self.looked.tick() => if !self.may() { return None },
                event = self.subscription.next() => return event,
            }
        }
    }

    fn may(&self) -> bool {
        let credentials = self.web.sessions.credentials(&self.proof, now_millis());
        credentials.is_ok_and(|credentials| credentials.role >= WebRole::View)
    }
}

fn written(id: &str, event: &PageEvent) -> Event {
    Event::default().id(id).event(event.change.name).data(&event.change.data)
}

/// How many listen, in the text form of OpenMetrics, without an end.
pub fn metrics(web: &Web) -> Result<String, Problem> {
    let readers = web.events.as_ref().map_or(0, |events| events.hub.readers());
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(readers).unwrap_or(i64::MAX));
    let mut registry = Registry::with_prefix("napreduce");
    registry.register("http_streams", "Streams of events that are open", gauge);
    let mut text = String::new();
    encode_registry(&mut text, &registry)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no metrics: {error}")))?;
    Ok(text)
}
