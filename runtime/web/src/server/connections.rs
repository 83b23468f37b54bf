//! Connections: how many, and how long they may take to ask.
//!
//! Owns these limits, so that nobody who dribbles or never asks keeps others out. Does not own what is asked.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Connections at a time; the next one waits.
const CONNECTIONS_MAX: usize = 64;
/// A head has to be there within this time, the next one on the same connection, too.
const HEAD_TIME: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 16 << 10;
/// What is being answered may be answered when the server ends.
const ENDING_TIME: Duration = Duration::from_secs(2);
/// When the system has no file descriptor left, one may be free soon.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the sender of `stopped` is gone.
pub async fn serve(listener: TcpListener, service: Router, mut stopped: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let (accepted, place) = tokio::select! {
            _ = &mut stopped => break,
            accepted = accepted => match accepted {
                Some(accepted) => accepted,
                None => break,
            },
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service.clone()));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection has ended");
            }
            drop(place);
        });
    }
    // Whoever has not got its answer by then gets none.
    let _ = timeout(ENDING_TIME, graceful.shutdown()).await;
}
