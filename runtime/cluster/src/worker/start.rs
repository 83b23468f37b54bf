//! Starts a worker's daemon: sets up its parts in order of dependence, and handles signals.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_engine::{AttemptId, Slots};
use napreduce_local::clock::now;
use napreduce_local::process::{
    ControlGroups, Interrupts, Processes, Spawner, check_kernel, raise_descriptors,
    survive_file_size_limit,
};
use napreduce_local::worker::{Isolation, SegmentMemory};
use napreduce_local::world::Route;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::{LogStream, Secret};
use napreduce_task::run_soon_when_woken;
use tokio::runtime::Builder;
use tokio::sync::Mutex;

use super::configuration::WorkerConfiguration;
use super::environment::WorkerEnvironment;
use super::error::WorkerError;
use super::introduction::Introduction;
use super::link::Link;
use super::logs::{LogBounds, LogShelf};
use super::registration::Resources;
use super::stop::Stop;
use super::worker_directory::{WorkerDirectory, clear_jobs, host_name};
use crate::blobs::BlobStore;
use crate::client::ClusterPlace;
use crate::cluster_directory::ClusterDirectory;
use crate::shuffle::{DataServer, DataServerSettings, ServedFiles};
use crate::transport::Listener;

/// Maximum number of prestarted processes of a program.
const PRESTARTED_MAX: usize = 4;

/// Runs a worker's daemon until it may leave its cluster, blocking.
///
/// SIGTERM drains it: its attempts save their work, and it exits within its grace. SIGINT and SIGHUP (and
/// SIGTERM, if configured) hand back its attempts, and it exits within some seconds. A second signal ends it
/// at once. In every case its attempts end with it. Must not be called from inside an async runtime.
///
/// # Errors
///
/// See [`WorkerError`]. An unreachable coordinator is not an error: the worker retries.
pub fn run_worker(configuration: &WorkerConfiguration) -> Result<(), WorkerError> {
    run_soon_when_woken();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(WorkerError::io("start the runtime"))?;
    runtime.block_on(async {
        check_kernel().map_err(WorkerError::io("run tasks on this machine"))?;
        let interrupts = Interrupts::install().map_err(WorkerError::io("handle signals"))?;
        survive_file_size_limit().map_err(WorkerError::io("handle signals"))?;
        // Processes are not used faster than one per slot.
        let slots = configuration.map_slots.max(configuration.reduce_slots);
        let ready = usize::try_from(slots).unwrap_or(usize::MAX);
        let ready = ready.clamp(1, PRESTARTED_MAX);
        let start_processes: StartProcesses = Box::new(move |groups, directory| {
            let spawner = Spawner::adopting(ready, groups, directory)?;
            Ok(Arc::new(spawner))
        });
        worker_daemon(configuration, interrupts, start_processes).await
    })
}

/// Creates the processes of a worker, from the control groups for attempts and the worker's directory.
pub type StartProcesses =
    Box<dyn FnOnce(Option<Arc<ControlGroups>>, &Path) -> io::Result<Arc<dyn Processes>> + Send>;

/// Runs a worker until it may leave its cluster. Its tasks are those of the configured world.
///
/// # Errors
/// As [`run_worker`].
pub async fn worker_daemon(
    configuration: &WorkerConfiguration,
    interrupts: Interrupts,
    start_processes: StartProcesses,
) -> Result<(), WorkerError> {
    let began = now();
    let secret = secret(&configuration.cluster)?;
    let directory = take_directory_of(configuration)?;
    let who = directory.name.clone();
    let environment = Arc::new(environment(configuration, &directory, secret)?);
    let server = start_data_server(configuration, &environment).await?;
    let data_address = advertised(configuration, server.address());
    let root = directory.paths.root().display();
    tracing::info!(target: "worker", worker = %who, "started in {root}, serving at {data_address}");
    if is_out_of_reach(&data_address, route(configuration)) {
        tracing::warn!(
            target: "worker", worker = %who,
            "workers on other machines cannot fetch map output from {data_address}; pass --bind THIS_HOST:0"
        );
    }
    let introduction = Introduction {
        incarnation: directory.incarnation,
        slots: Slots {
            map: configuration.map_slots,
            reduce: configuration.reduce_slots,
        },
        data_address,
    };
    let groups = environment.isolation.groups.clone();
    let processes = start_processes(groups, directory.paths.root())
        .map_err(WorkerError::io("adopt orphans of tasks"))?;
    let resources = Resources {
        segment_memory: SegmentMemory::new(configuration.segment_memory, Arc::clone(&processes)),
        processes,
        environment,
    };
    // Borrowed below, so that the handlers stay installed for a second signal.
    let mut stop = Stop::new(interrupts, configuration.leave, began);
    let ended = Link::new(resources, introduction, &mut stop).run().await;
    drop(server);
    // The worker has left, so its data is no longer needed.
    let cleared = clear_jobs(&directory.paths);
    ended.and(cleared)
}

fn secret(cluster: &ClusterPlace) -> Result<Secret, WorkerError> {
    match cluster {
        ClusterPlace::Directory(directory) => Ok(directory.secret()?),
        ClusterPlace::Address { secret, .. } => Ok(secret.clone()),
    }
}

fn take_directory_of(configuration: &WorkerConfiguration) -> Result<WorkerDirectory, WorkerError> {
    let workers = match (&configuration.cluster, &configuration.directory) {
        (ClusterPlace::Directory(directory), _) => workers_of(directory),
        // An explicit directory replaces the default one.
        (_, Some(directory)) => directory.clone(),
        (_, None) => workers_of(&ClusterDirectory::resolve(None)?),
    };
    WorkerDirectory::take(
        &configuration.world,
        configuration.name.as_deref(),
        configuration.directory.as_deref(),
        &workers,
    )
}

fn workers_of(directory: &ClusterDirectory) -> PathBuf {
    directory.path().join("workers")
}

fn environment(
    configuration: &WorkerConfiguration,
    directory: &WorkerDirectory,
    secret: Secret,
) -> Result<WorkerEnvironment, WorkerError> {
    let paths = directory.paths.clone();
    let bounds = LogBounds {
        jobs_max: configuration.logs_jobs_max,
        bytes_max: configuration.logs_bytes_max,
    };
    let listing = format!("list {}", paths.logs().display());
    Ok(WorkerEnvironment {
        name: directory.name.clone(),
        host: host_name(&configuration.world),
        configuration: configuration.clone(),
        secret,
        blobs: BlobStore::open(
            Arc::new(RealDisk),
            paths.blobs(),
            configuration.blob_bytes_max,
        )?,
        fetching: Mutex::new(()),
        isolation: Isolation::begin(&configuration.isolation, &directory.name)
            .map_err(|why| WorkerError::Isolation { why })?,
        logs: LogShelf::scan(configuration.world.tasks.clone(), &paths, bounds)
            .map_err(WorkerError::io(listing))?,
        paths,
    })
}

async fn start_data_server(
    configuration: &WorkerConfiguration,
    environment: &Arc<WorkerEnvironment>,
) -> Result<DataServer, WorkerError> {
    let refused = environment.name.clone();
    let log = environment.name.clone();
    let world = &configuration.world;
    let listener = Listener::bind(
        world,
        &configuration.bind,
        environment.secret.clone(),
        move |line| {
            tracing::info!(target: "worker", worker = %refused, "{line}");
        },
    )
    .await?;
    let settings = DataServerSettings {
        encrypt: configuration.encrypt_shuffle,
        ..Default::default()
    };
    let settings = settings.within(raise_descriptors());
    let files: Arc<dyn ServedFiles> = Arc::clone(environment) as _;
    Ok(DataServer::start(
        world.tasks.clone(),
        listener,
        files,
        settings,
        move |line| {
            tracing::info!(target: "worker", worker = %log, "{line}");
        },
    ))
}

impl ServedFiles for WorkerEnvironment {
    fn segment(&self, attempt: AttemptId) -> Option<PathBuf> {
        Some(self.paths.segment(attempt))
    }

    fn read_log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        most: u64,
    ) -> io::Result<(u64, Vec<u8>)> {
        self.logs.read(&self.paths, attempt, stream, |extent| {
            extent.read(offset, most)
        })
    }
}

/// Returns the data server's advertised address: the configured one, or where it listens. A wildcard is
/// replaced by this host's address towards the coordinator.
fn advertised(configuration: &WorkerConfiguration, bound: SocketAddr) -> String {
    match &configuration.advertise {
        Some(host) if host.parse::<IpAddr>().is_ok_and(|it| it.is_ipv6()) => {
            format!("[{host}]:{}", bound.port())
        }
        Some(address) if address.contains(':') => address.clone(),
        Some(host) => format!("{host}:{}", bound.port()),
        None if bound.ip().is_unspecified() => {
            let own = route(configuration).map_or(bound.ip(), |route| route.own);
            SocketAddr::new(own, bound.port()).to_string()
        }
        None => bound.to_string(),
    }
}

/// Returns whether the address is loopback although the coordinator is on another machine.
fn is_out_of_reach(data_address: &str, route: Option<Route>) -> bool {
    let host = data_address
        .rsplit_once(':')
        .map_or(data_address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    // Packets to a local address have that address as their source.
    is_loopback && route.is_some_and(|route| route.own != route.peer)
}

/// Returns the route to the coordinator.
fn route(configuration: &WorkerConfiguration) -> Option<Route> {
    let coordinator = match &configuration.cluster {
        ClusterPlace::Directory(directory) => directory.coordinator_address().ok()?,
        ClusterPlace::Address { address, .. } => address.clone(),
    };
    configuration.world.net.route_to(&coordinator).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advertised_address_is_reachable() {
        let secret = Secret::generate().expect("a secret");
        let cluster = ClusterPlace::Address {
            address: String::from("127.0.0.1:7070"),
            secret,
        };
        let mut configuration = WorkerConfiguration::new(cluster);
        let mut check = |advertise: Option<&str>, bound: &str, expected: &str| {
            configuration.advertise = advertise.map(str::to_owned);
            assert_eq!(
                advertised(&configuration, bound.parse().expect("an address")),
                expected
            );
        };
        check(None, "127.0.0.1:9", "127.0.0.1:9");
        check(None, "0.0.0.0:9", "127.0.0.1:9");
        check(Some("there"), "0.0.0.0:9", "there:9");
        check(Some("there:8"), "0.0.0.0:9", "there:8");
        check(Some("fe80::1"), "[::]:9", "[fe80::1]:9");
    }

    #[test]
    fn loopback_address_is_out_of_reach_of_other_machines() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let route = |own, peer| Route {
            own: ip(own),
            peer: ip(peer),
        };
        let elsewhere = Some(route("10.0.0.2", "10.0.0.1"));
        for address in ["127.0.0.1:9", "127.1.2.3:9", "[::1]:9", "localhost:9"] {
            assert!(is_out_of_reach(address, elsewhere), "{address}");
            for here in [
                None,
                Some(route("10.0.0.1", "10.0.0.1")),
                Some(route("127.0.0.1", "127.0.0.1")),
            ] {
                assert!(!is_out_of_reach(address, here), "{address}");
            }
        }
        for address in ["10.0.0.2:9", "there:9", "[fe80::1]:9"] {
            assert!(!is_out_of_reach(address, elsewhere), "{address}");
        }
    }
}
