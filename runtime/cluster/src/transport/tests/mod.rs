//! Tests of connections with peers that have the secret (friends) and peers that do not (strangers).

mod bounds;
mod friends;
mod golden;
mod secrets;
mod silence;
mod simulated;
mod speed;
mod strangers;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::world::{Random, World};
use napreduce_protocol::{NETWORK_VERSION, Secret};
use tokio::runtime::Runtime;

use super::handshake::{Initiator, OPENING_BYTES};
use super::listener::Limits;
use super::*;

/// Long enough that only a hang exceeds it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test on a runtime, with a deadline.
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, test)
            .await
            .expect("the test hangs")
    })
}

/// The system's random numbers.
pub(super) fn random() -> Random {
    World::real().random
}

/// Connects over TCP.
pub(super) async fn connect(
    address: &str,
    role: Role,
    secret: &Secret,
    deadline: Duration,
) -> Result<Connection, TransportError> {
    super::connect(&World::real(), address, role, secret, deadline).await
}

/// The first bytes of a friend.
pub(super) fn opening(secret: &Secret) -> [u8; OPENING_BYTES] {
    Initiator::open(Role::Client, secret, &random()).unwrap().1
}

/// A server that sends back every message, a string.
pub(super) struct EchoServer {
    pub(super) address: SocketAddr,
    refused: Arc<Mutex<Vec<String>>>,
    changed: Arc<tokio::sync::Notify>,
    accepting: tokio::task::JoinHandle<()>,
}

impl EchoServer {
    pub(super) async fn start(secret: &Secret) -> EchoServer {
        let limits = Limits {
            pending_max: 256,
            deadline: HANDSHAKE_DEADLINE,
            crowded_deadline: HANDSHAKE_DEADLINE,
        };
        EchoServer::start_with(secret, limits).await
    }

    pub(super) async fn start_with(secret: &Secret, limits: Limits) -> EchoServer {
        let refused = Arc::new(Mutex::new(Vec::new()));
        let changed = Arc::new(tokio::sync::Notify::new());
        let lines = Arc::clone(&refused);
        let wake = Arc::clone(&changed);
        let say = move |line: &str| {
            lines.lock().unwrap().push(line.to_owned());
            wake.notify_one();
        };
        let drop_with = say.clone();
        let mut listener =
            Listener::bind_with(&World::real(), "127.0.0.1:0", secret.clone(), limits, say)
                .await
                .unwrap();
        let address = listener.address();
        let accepting = tokio::spawn(async move {
            loop {
                let Incoming {
                    mut connection,
                    peer,
                    ..
                } = listener.accept().await;
                let drop_with = drop_with.clone();
                tokio::spawn(async move {
                    if let Err(error) = echo(&mut connection).await {
                        drop_with(&format!("dropped {peer}: {error}"));
                    }
                });
            }
        });
        EchoServer {
            address,
            refused,
            changed,
            accepting,
        }
    }

    /// Checks that a friend's message is echoed.
    pub(super) async fn check_serves(&self, secret: &Secret) {
        let mut connection = connect(&self.address.to_string(), Role::Client, secret, PATIENCE)
            .await
            .unwrap();
        connection.send(&"hello").await.unwrap();
        assert_eq!(
            connection.receive::<String>().await.unwrap().as_deref(),
            Some("hello")
        );
    }

    /// Waits for this many log lines about refused or dropped peers.
    pub(super) async fn refusals(&self, count: usize) -> Vec<String> {
        loop {
            let lines = self.refused.lock().unwrap().clone();
            if lines.len() >= count {
                return lines;
            }
            self.changed.notified().await;
        }
    }
}

async fn echo(connection: &mut Connection) -> Result<(), TransportError> {
    while let Some(text) = connection.receive::<String>().await? {
        connection.send(&text).await?;
    }
    Ok(())
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
