//! Telling the coordinator, for as long as a program runs, that more jobs of its chain may come.
//!
//! Owns a thread with a connection of its own, made again whenever it breaks: that it is open says that the
//! program is there, also while it is stopped. Does not own what the coordinator concludes from it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use napreduce_local::chain::ChainKeeper;
use napreduce_protocol::FromCoordinator;
use napreduce_protocol::requests::{EndChain, HoldChain};
use tokio::runtime::Builder;
use tokio::sync::watch;

use super::session::{Patience, Session, Trouble, exchange};
use super::{ClientError, ClusterPlace};

/// How long somebody waits at the end of a program for the coordinator to hear of it.
const LAST_WORD: Duration = Duration::from_secs(10);

/// A chain that the coordinator was told of. Dropped without `end` it is left to the
/// coordinator.
#[derive(Debug)]
struct ChainConnection {
    over: watch::Sender<bool>,
    ended: Receiver<Result<(), ClientError>>,
}

impl ChainConnection {
    /// Returns when the coordinator knows of the chain, and a restart of it will not change that. Blocking.
    fn start(place: ClusterPlace, chain: u128, root: PathBuf) -> Result<ChainConnection, ClientError> {
        let (over, done) = watch::channel(false);
        let (begun, known) = channel();
        let (ending, ended) = channel();
        let failed =
            |source| ClientError::Io { doing: "start the thread that speaks for this program", source };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let keeping = move || {
            let kept = runtime.block_on(keep(place, chain, root, begun, done));
            // Nobody waits for it any more when the program ends.
            let _ = ending.send(kept);
        };
        thread::Builder::new().name("chain".to_owned()).spawn(keeping).map_err(failed)?;
        match known.recv() {
            Ok(()) => Ok(ChainConnection { over, ended }),
            Err(_) => match ended.recv() {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) | Err(_) => Err(failed(std::io::Error::other("it has ended"))),
            },
        }
    }
}

impl ChainKeeper for ChainConnection {
    fn end(self: Box<Self>) -> Result<(), String> {
        // A thread that has ended before says why.
        let _ = self.over.send(true);
        match self.ended.recv_timeout(LAST_WORD) {
            Ok(ended) => ended.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer for {LAST_WORD:?}")),
            Err(RecvTimeoutError::Disconnected) => Err("its thread has ended".to_owned()),
        }
    }
}

impl ClusterPlace {
    /// Returns when the coordinator knows of a chain of jobs, and a restart of it will not change that.
    /// Blocking.
    ///
    /// # Errors
    /// When the coordinator cannot be told, or refuses.
    pub fn keep_chain(&self, chain: u128, root: PathBuf) -> Result<Box<dyn ChainKeeper>, ClientError> {
        Ok(Box::new(ChainConnection::start(self.clone(), chain, root)?))
    }
}

/// Holds the chain until it is over, and then says so.
async fn keep(
    place: ClusterPlace,
    chain: u128,
    root: PathBuf,
    begun: Sender<()>,
    mut over: watch::Receiver<bool>,
) -> Result<(), ClientError> {
    let mut begun = Some(begun);
    loop {
        let mut session = Session::new(place.clone(), Patience::default());
        let kept = session.persist(async |connection| {
            exchange(connection, HoldChain { chain, root: root.clone() }).await?;
            if let Some(begun) = begun.take() {
                // Whoever started this waits for it.
                let _ = begun.send(());
            }
            tokio::select! {
                // A sender that is gone was not told to end anything: the program is ending otherwise.
                _ = over.wait_for(|over| *over) => {}
                received = connection.receive::<FromCoordinator>() => {
                    return Err(match received {
                        Ok(Some(other)) => ClientError::nonsense(&other).into(),
                        Ok(None) => Trouble::Passing("the coordinator closed the connection".to_owned()),
                        Err(error) => Trouble::new(error),
                    });
                }
            }
            if *over.borrow() {
                exchange(connection, EndChain { chain }).await?;
            }
            Ok(())
        });
        match kept.await {
            // As long as the program goes on, the coordinator may come back.
            Err(ClientError::Unreachable { .. }) if begun.is_none() && goes_on(&over) => {}
            kept => return kept,
        }
    }
}

/// Whether the program neither is done nor was ended otherwise.
fn goes_on(over: &watch::Receiver<bool>) -> bool {
    over.has_changed().is_ok() && !*over.borrow()
}
