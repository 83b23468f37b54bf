//! Connections: their number and time limits. Idle connections cannot lock others out: when all places are taken, the
//! oldest connection without a request gives its place to the next one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use napreduce_protocol::lock;
use tokio::net::TcpListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// The most connections.
const CONNECTIONS_MAX: usize = 64;
/// Time limit for a request's head, also for further requests on a connection.
const HEAD_TIME: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Time that pending responses get when the server stops.
const ENDING_TIME: Duration = Duration::from_secs(2);
/// Pause when the system has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause when all connections are busy.
const EVICTION_PAUSE: Duration = Duration::from_millis(20);

/// Serves until the sender of `stopped` is dropped.
pub async fn serve(listener: TcpListener, service: Router, mut stopped: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = Arc::new(Connections::default());
    let graceful = GracefulShutdown::new();
    for number in 0.. {
        let accepted = async {
            let accepted = listener.accept().await;
            (accepted, connections.place(&places).await)
        };
        let (accepted, place) = tokio::select! {
            _ = &mut stopped => break,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(PAUSE).await;
                continue;
            }
        };
        let state = Arc::new(ConnectionState::default());
        lock(&connections.open).insert(number, state.clone());
        let service = service.clone();
        let answering = state.clone();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(
                TokioIo::new(stream),
                service_fn(move |request| answer(service.clone(), answering.clone(), request)),
            );
        let connection = graceful.watch(connection);
        let connections = connections.clone();
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            loop {
                tokio::select! {
                    ended = &mut connection => {
                        if let Err(error) = ended {
                            tracing::debug!(%error, "connection failed");
                        }
                        break;
                    }
                    () = state.evicted.notified() => {
                        // A request may have arrived meanwhile.
                        if !state.is_answered.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                }
            }
            lock(&connections.open).remove(&number);
            drop(place);
        });
    }
    // Unfinished responses are dropped after this time.
    let _ = timeout(ENDING_TIME, graceful.shutdown()).await;
}

/// The open connections, oldest first.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<BTreeMap<u64, Arc<ConnectionState>>>,
}

#[derive(Debug, Default)]
struct ConnectionState {
    /// Set from the end of a request until its response is sent.
    is_answered: AtomicBool,
    evicted: Notify,
}

impl Connections {
    /// Closes the oldest connection without a request, if there is one.
    fn evict(&self) {
        let open = lock(&self.open);
        if let Some(idle) = open
            .values()
            .find(|state| !state.is_answered.load(Ordering::SeqCst))
        {
            idle.evicted.notify_one();
        }
    }

    /// Waits for a place for the next connection.
    async fn place(&self, places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = places.clone().try_acquire_owned() {
            return Some(place);
        }
        loop {
            self.evict();
            if let Ok(place) = timeout(EVICTION_PAUSE, places.clone().acquire_owned()).await {
                return place.ok();
            }
        }
    }
}

async fn answer(
    service: Router,
    state: Arc<ConnectionState>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let whole = state.clone();
    let request = request.map(|body| {
        Body::new(AtEnd {
            body,
            state: whole,
            is_answered: true,
        })
    });
    let response = TowerToHyperService::new(service).call(request).await?;
    Ok(response.map(|body| {
        Body::new(AtEnd {
            body,
            state,
            is_answered: false,
        })
    }))
}

/// A body that updates its connection's state on drop: after it was read, sent or aborted.
struct AtEnd<B> {
    body: B,
    state: Arc<ConnectionState>,
    is_answered: bool,
}

impl<B> Drop for AtEnd<B> {
    fn drop(&mut self) {
        self.state
            .is_answered
            .store(self.is_answered, Ordering::SeqCst);
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for AtEnd<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
