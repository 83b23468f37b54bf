//! The process of a cluster's coordinator: setup, access by role, and graceful shutdown.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use napreduce_history::OpenHistory;
use napreduce_local::process::{Interrupts, raise_descriptors, survive_file_size_limit};
use napreduce_local::world::Tasks;
use napreduce_protocol::Secret;
use napreduce_task::{run_soon_when_woken, signal_name};
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::clients::{ClientDesk, ClientLimits};
use super::configuration::CoordinatorConfiguration;
use super::worker_connection::serve_worker;
use super::{ClusterCoordinator, ClusterInput, LoopRequest};
use crate::blobs::BlobStore;
use crate::cluster_directory::ClusterDirectoryError;
use crate::journal::{Journal, JournalError};
use crate::transport::{Incoming, Listener, Role};

/// Threads for connections; the loop itself is one task.
const THREADS: usize = 2;
/// Time limit for blocking work (commits, claims) at shutdown; it is repeated after a restart.
const WIND_DOWN: Duration = Duration::from_secs(5);

/// An error that prevents a coordinator from starting or continuing.
#[derive(Debug, Error)]
pub enum CoordinatorError {
    /// The cluster directory cannot be used.
    #[error(transparent)]
    Directory(#[from] ClusterDirectoryError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An earlier coordinator's state or the listening address is unusable.
    #[error("{0}")]
    Start(String),
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// An invariant of the loop is broken: a bug.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

impl CoordinatorError {
    /// Returns the exit status: 2 if another directory has to be given, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            CoordinatorError::Directory(error) => error.exit_status(),
            _ => 1,
        }
    }

    fn io(doing: &'static str) -> impl FnOnce(io::Error) -> CoordinatorError {
        move |source| CoordinatorError::Io { doing, source }
    }

    fn start(error: impl Display) -> CoordinatorError {
        CoordinatorError::Start(error.to_string())
    }
}

/// Runs the coordinator of a cluster directory, blocking, until SIGINT, SIGTERM or SIGHUP. Jobs and workers
/// continue without it and under the next coordinator. Ended jobs go to the history that `open_history`
/// opens.
///
/// # Errors
/// See [`CoordinatorError`]. Jobs accepted before are in the journal.
pub fn run_coordinator(
    configuration: CoordinatorConfiguration,
    open_history: OpenHistory,
) -> Result<(), CoordinatorError> {
    run_soon_when_woken();
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .on_thread_start(run_soon_when_woken)
        .enable_all()
        .build()
        .map_err(CoordinatorError::io("start the runtime"))?;
    let ended = runtime.block_on(async {
        let interrupts = Interrupts::install().map_err(CoordinatorError::io("handle signals"))?;
        survive_file_size_limit().map_err(CoordinatorError::io("handle signals"))?;
        raise_descriptors();
        coordinator_daemon(configuration, open_history, interrupts).await
    });
    runtime.shutdown_timeout(WIND_DOWN);
    ended
}

/// Runs the coordinator of a cluster directory until a signal arrives. Its tasks and blocking work are those of the
/// configured world, and may outlast it.
///
/// # Errors
/// As [`run_coordinator`].
pub async fn coordinator_daemon(
    configuration: CoordinatorConfiguration,
    open_history: OpenHistory,
    mut interrupts: Interrupts,
) -> Result<(), CoordinatorError> {
    let directory = configuration.directory.clone();
    let secret = directory.create()?;
    let _lock = directory.lock_coordinator(&configuration.world.process)?;
    // Before anything of a coordinator whose lock file was removed is touched.
    Journal::check_unlocked(&**directory.disk(), &directory.coordinator_directory())?;
    let blobs = BlobStore::open(
        Arc::clone(directory.disk()),
        directory.coordinator_directory().join("blobs"),
        configuration.blob_bytes_max,
    )
    .map_err(CoordinatorError::start)?;
    let (inputs, inputs_of_loop) = unbounded_channel();
    let (requests, requests_of_loop) = unbounded_channel();
    let coordinator =
        ClusterCoordinator::recover(&configuration, &blobs, open_history, inputs.clone())
            .map_err(CoordinatorError::start)?;
    let running = coordinator.run(requests_of_loop, inputs_of_loop);
    let mut coordinator_loop = configuration.world.tasks.spawn(running);
    let opened = Intake::open(&configuration, secret, blobs, inputs, requests).await;
    let served = match opened {
        Ok(mut intake) => intake.serve(&mut coordinator_loop, &mut interrupts).await,
        Err(error) => Served::Failed(error),
    };
    let ended = match served {
        Served::LoopEnded(ended) => ended,
        Served::Failed(error) => {
            // The loop must not outlive the lock: it would keep the journal from the next coordinator.
            coordinator_loop.abort();
            let _ = coordinator_loop.await;
            return Err(error);
        }
    };
    let withdrawn = directory.withdraw_coordinator();
    // An error of the loop comes first: it may be the cause of the other one.
    ended?;
    withdrawn?;
    Ok(())
}

/// Why no more connections are accepted.
enum Served {
    LoopEnded(Result<(), CoordinatorError>),
    /// Connections cannot be accepted; the loop still runs.
    Failed(CoordinatorError),
}

/// Waits until the coordinator's loop has ended.
async fn end_of(
    coordinator_loop: &mut JoinHandle<Result<(), JournalError>>,
) -> Result<(), CoordinatorError> {
    match coordinator_loop.await {
        Ok(ended) => ended.map_err(CoordinatorError::Journal),
        Err(panicked) => Err(CoordinatorError::Internal(panicked.to_string())),
    }
}

fn log(line: &str) {
    tracing::info!(target: "coordinator", "{line}");
}

/// Accepts authenticated connections.
struct Intake {
    listener: Listener,
    tasks: Tasks,
    /// Connections of workers so far.
    workers: u64,
    inputs: UnboundedSender<ClusterInput>,
    desk: ClientDesk,
    liveness: Duration,
}

impl Intake {
    /// Listens, and publishes the address in the cluster directory.
    async fn open(
        configuration: &CoordinatorConfiguration,
        secret: Secret,
        blobs: Arc<BlobStore>,
        inputs: UnboundedSender<ClusterInput>,
        requests: UnboundedSender<LoopRequest>,
    ) -> Result<Intake, CoordinatorError> {
        let world = &configuration.world;
        let directory = &configuration.directory;
        let listener = Listener::bind(world, &configuration.bind, secret.clone(), log)
            .await
            .map_err(CoordinatorError::start)?;
        let address = listener.address();
        directory.publish_coordinator(address, world)?;
        log(&format!(
            "listening at {address} for {}",
            directory.path().display()
        ));
        let desk = ClientDesk::new(
            world.clone(),
            requests,
            blobs,
            secret,
            ClientLimits::default(),
            log,
        );
        Ok(Intake {
            listener,
            tasks: world.tasks.clone(),
            workers: 0,
            inputs,
            desk,
            liveness: configuration.liveness,
        })
    }

    /// Accepts connections until the loop has ended, which a signal requests.
    async fn serve(
        &mut self,
        coordinator_loop: &mut JoinHandle<Result<(), JournalError>>,
        interrupts: &mut Interrupts,
    ) -> Served {
        loop {
            tokio::select! {
                arrival = self.listener.accept() => self.admit(arrival),
                ended = end_of(coordinator_loop) => return Served::LoopEnded(ended),
                signal = interrupts.arrival() => {
                    let signal = match signal {
                        Ok(signal) => signal,
                        Err(error) => return Served::Failed(CoordinatorError::io("wait for signals")(error)),
                    };
                    log(&format!("ending after {}", signal_name(signal).unwrap_or("a signal")));
                    // Fails if the loop has ended.
                    let _ = self.inputs.send(ClusterInput::Stop);
                    return Served::LoopEnded(end_of(coordinator_loop).await);
                }
            }
        }
    }

    fn admit(&mut self, arrival: Incoming) {
        let Incoming {
            role,
            connection,
            peer,
        } = arrival;
        match role {
            Role::Worker => {
                self.workers += 1;
                self.tasks.spawn(serve_worker(
                    connection,
                    peer,
                    self.workers,
                    self.inputs.clone(),
                    self.liveness,
                ));
            }
            Role::Client => {
                self.tasks.spawn(self.desk.clone().serve(connection, peer));
            }
            Role::Data | Role::Task(_) => {
                tracing::info!(target: "coordinator", "refused {peer}: the coordinator serves no map output and no logs");
            }
        }
    }
}
