//! Keeps a chain of jobs alive while the program runs. A thread holds a connection to the coordinator and
//! reconnects it; the open connection shows that the program lives, even while it is stopped.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use napreduce_local::chain::ChainKeeper;
use napreduce_local::world::World;
use napreduce_protocol::FromCoordinator;
use napreduce_protocol::requests::{EndChain, HoldChain};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::session::{Patience, Session, TryError, exchange};
use super::{ClientError, ClusterPlace};

/// Maximum wait for the coordinator's acknowledgement when the program ends.
const LAST_WORD: Duration = Duration::from_secs(10);

/// A chain registered with the coordinator. If it is dropped without `end`, the coordinator cleans up after a
/// grace period.
#[derive(Debug)]
struct ChainConnection {
    over: watch::Sender<bool>,
    ended: Receiver<Result<(), ClientError>>,
}

impl ChainConnection {
    /// Registers the chain; returns once the coordinator has journaled it. Blocking.
    fn start(
        place: ClusterPlace,
        chain: u128,
        root: PathBuf,
    ) -> Result<ChainConnection, ClientError> {
        let (over, done) = watch::channel(false);
        let (begun, known) = channel();
        let (ending, ended) = channel();
        let failed = |source| ClientError::Io {
            doing: "start the chain's thread",
            source,
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let keeping = move || {
            let kept = runtime.block_on(keep(place, chain, root, begun, done));
            // Fails if the program ends and no longer waits.
            let _ = ending.send(kept);
        };
        thread::Builder::new()
            .name("chain".to_owned())
            .spawn(keeping)
            .map_err(failed)?;
        match known.recv() {
            Ok(()) => Ok(ChainConnection { over, ended }),
            Err(_) => match ended.recv() {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) | Err(_) => {
                    Err(failed(std::io::Error::other("the connection has ended")))
                }
            },
        }
    }
}

impl ChainKeeper for ChainConnection {
    fn end(self: Box<Self>) -> Result<(), String> {
        // A thread that ended early returns its error.
        let _ = self.over.send(true);
        match self.ended.recv_timeout(LAST_WORD) {
            Ok(ended) => ended.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {LAST_WORD:?}")),
            Err(RecvTimeoutError::Disconnected) => {
                Err("the connection's thread has ended".to_owned())
            }
        }
    }
}

impl ClusterPlace {
    /// Registers a chain of jobs; returns once the coordinator has journaled it. Blocking.
    ///
    /// # Errors
    /// Fails if the coordinator is unreachable or refuses.
    pub fn keep_chain(
        &self,
        chain: u128,
        root: PathBuf,
    ) -> Result<Box<dyn ChainKeeper>, ClientError> {
        Ok(Box::new(ChainConnection::start(self.clone(), chain, root)?))
    }
}

/// Holds the chain until the program ends it, then reports its end.
async fn keep(
    place: ClusterPlace,
    chain: u128,
    root: PathBuf,
    begun: Sender<()>,
    mut over: watch::Receiver<bool>,
) -> Result<(), ClientError> {
    let mut begun = Some(begun);
    loop {
        let mut session = Session::new(World::real(), place.clone(), Patience::default());
        let kept = session.retry(async |connection| {
            exchange(connection, HoldChain { chain, root: root.clone() }).await?;
            if let Some(begun) = begun.take() {
                // Releases `start`, which waits for the registration.
                let _ = begun.send(());
            }
            tokio::select! {
                // A dropped sender means that the program exits without ending the chain.
                _ = over.wait_for(|over| *over) => {}
                received = connection.receive::<FromCoordinator>() => {
                    return Err(match received {
                        Ok(Some(other)) => ClientError::unexpected(&other).into(),
                        Ok(None) => TryError::Transient("the coordinator closed the connection".to_owned()),
                        Err(error) => TryError::new(error),
                    });
                }
            }
            if *over.borrow() {
                exchange(connection, EndChain { chain }).await?;
            }
            Ok(())
        });
        match kept.await {
            // Retry while the program runs: the coordinator may come back.
            Err(ClientError::Unreachable { .. }) if begun.is_none() && is_running(&over) => {}
            kept => return kept,
        }
    }
}

/// Returns whether the program is still running its chain.
fn is_running(over: &watch::Receiver<bool>) -> bool {
    over.has_changed().is_ok() && !*over.borrow()
}
