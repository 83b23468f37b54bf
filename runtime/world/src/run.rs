//! One run: a cluster, its jobs and its faults from a seed, and the checks of what came of it.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use napreduce_cluster::{ClusterDirectory, ClusterPlace, FsyncPolicy};
use napreduce_engine::Slots;
use napreduce_local::world::disk::{Disk, SimDisk};
use napreduce_local::world::{LinkSettings, Node, SimNet, World};
use napreduce_schedulers::SchedulerName;
use tempfile::TempDir;
use thiserror::Error;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Instant;

use crate::chance::Chance;
use crate::client::SimClient;
use crate::daemon_log::DaemonLog;
use crate::facts::Facts;
use crate::faults::{Disturbance, FaultPlan, Target};
use crate::host::{BEGINNING_MICROS, Daemon, Host};
use crate::log::{Echo, Log};
use crate::machine::TaskFaults;
use crate::operator::Operator;
use crate::workload::SimJob;

/// The default interval at which the journal is synced.
const FSYNC_INTERVAL: Duration = Duration::from_millis(100);
/// The longest time with faults. Most runs are short, so that there can be many.
const FAULTS_MILLIS_MAX: [u64; 8] = [
    30_000, 30_000, 30_000, 30_000, 30_000, 30_000, 60_000, 300_000,
];
/// Intervals of heartbeats. The default, which is the shortest one, takes most of the time of a run.
const HEARTBEATS_MILLIS: [u64; 5] = [1_000, 1_000, 1_000, 1_000, 200];
/// Time in which all jobs must end after the faults have stopped.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// An ELF header of a program for x86-64; tasks are simulated, so there is nothing behind it.
const PROGRAM: [u8; 64] = {
    let mut bytes = [0; 64];
    bytes[0] = 0x7f;
    bytes[1] = b'E';
    bytes[2] = b'L';
    bytes[3] = b'F';
    bytes[4] = 2;
    bytes[5] = 1;
    bytes[18] = 62;
    bytes
};

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct RunSettings {
    pub seed: u64,
    pub echo: Echo,
    /// The number of the event at which the run stops.
    pub until: Option<u64>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// Number of events.
    pub events: u64,
    /// Hash of the log.
    pub hash: u64,
    /// What the oracles found.
    pub violations: Vec<String>,
}

/// Why a run could not be made.
#[derive(Debug, Error)]
pub enum RunError {
    /// A system call failed.
    #[error("cannot prepare a run: {0}")]
    Io(#[from] io::Error),
}

/// Makes a run.
///
/// # Errors
/// Fails if it cannot be prepared; violations are no errors.
pub fn run(settings: RunSettings) -> Result<RunReport, RunError> {
    let directory = TempDir::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let directory = directory.path();
    fs::File::create(directory.join("input"))?.set_len(1 << 20)?;
    fs::write(directory.join("program"), PROGRAM)?;
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        let log = Log::new(directory, settings.echo, settings.until);
        let _daemon_log = tracing::subscriber::set_default(DaemonLog::new(&log));
        let cluster = Simulation::new(settings.seed, directory, &log)?;
        tokio::select! {
            biased;
            () = log.full() => {}
            done = cluster.run() => done?,
        }
        Ok(RunReport {
            events: log.count(),
            hash: log.hash(),
            violations: log.violations(),
        })
    }))
}

/// A simulated cluster.
struct Simulation<'a> {
    seed: u64,
    directory: &'a Path,
    chance: Chance,
    net: Arc<SimNet>,
    /// The disk of the coordinator's host.
    disk: SimDisk,
    addresses: Vec<IpAddr>,
    facts: Facts,
    log: Log,
}

impl<'a> Simulation<'a> {
    fn new(seed: u64, directory: &'a Path, log: &Log) -> Result<Simulation<'a>, RunError> {
        let net = SimNet::new(seed, LinkSettings::default());
        let observer = log.clone();
        net.observe(move |line| observer.event("network", line));
        let disk = SimDisk::new(seed);
        disk.make_directories(directory, 0o700)?;
        for above in directory.ancestors() {
            disk.sync_directory(above)?;
        }
        Ok(Simulation {
            seed,
            directory,
            chance: Chance::new(seed, "cluster"),
            net: Arc::new(net),
            disk,
            addresses: Vec::new(),
            facts: Facts::default(),
            log: log.clone(),
        })
    }

    async fn run(mut self) -> Result<(), RunError> {
        let policies = SchedulerName::ALL;
        let policy = *self.chance.pick(&policies).unwrap_or(&SchedulerName::Fifo);
        let longest = *self.chance.pick(&FAULTS_MILLIS_MAX).unwrap_or(&30_000);
        let until = Instant::now() + self.chance.millis(10_000, longest);
        let faults = TaskFaults {
            permille: *self.chance.pick(&[0, 50, 200, 500]).unwrap_or(&0),
            until,
            chance: Chance::new(self.seed, "tasks"),
        };
        let disturbances = [
            Disturbance::Nothing,
            Disturbance::Coordinator,
            Disturbance::Network,
            Disturbance::Hosts,
            Disturbance::NetworkAndHosts,
        ];
        let disturbance = *self
            .chance
            .pick(&disturbances)
            .unwrap_or(&Disturbance::Nothing);
        let choices = [FsyncPolicy::Always, FsyncPolicy::Interval(FSYNC_INTERVAL)];
        let fsync = *self.chance.pick(&choices).unwrap_or(&FsyncPolicy::Always);
        let what = format!(
            "seed {}, policy {policy}, {fsync:?}, faults of tasks {}, {disturbance:?}",
            self.seed, faults.permille
        );
        self.log.event("run", what);
        let mut hosts = Vec::new();
        let mut targets = Vec::new();
        let heartbeat = *self.chance.pick(&HEARTBEATS_MILLIS).unwrap_or(&1_000);
        let coordinator = Daemon::Coordinator {
            policy,
            fsync,
            heartbeat: Duration::from_millis(heartbeat),
        };
        let (host, target) = self.start_host("coordinator", 1, coordinator);
        hosts.push(host);
        targets.push(target);
        for number in 1..=self.chance.count(1, 4) {
            let slots = Slots {
                map: self.chance.count(1, 3),
                reduce: self.chance.count(1, 3),
            };
            let worker = Daemon::Worker {
                slots,
                faults: faults.clone(),
            };
            let name = format!("worker-{number}");
            self.log.event("run", format_args!("{name} has {slots:?}"));
            let (host, target) = self.start_host(&name, 10 + number, worker);
            hosts.push(host);
            targets.push(target);
        }
        let mut clients = Vec::new();
        for number in 1..=self.chance.count(1, 4) {
            let client = SimClient {
                job: SimJob::draw(&mut self.chance, number, self.directory),
                world: self.client_world(&format!("client-{number}"), 100 + number),
                place: self.place(),
                program: self.directory.join("program"),
                facts: self.facts.clone(),
                log: self.log.clone(),
                disturbance,
                until,
                by: until + PATIENCE,
            };
            clients.push(spawn_local(client.run()));
        }
        let world = self.client_world("operator", 100);
        let operator = Operator {
            world,
            place: self.place(),
            chance: Chance::new(self.seed, "operator"),
            facts: self.facts.clone(),
            log: self.log.clone(),
            until,
        };
        let operator = spawn_local(operator.run());
        let faults = FaultPlan {
            disturbance,
            until,
            chance: Chance::new(self.seed, "faults"),
            targets,
            disk: self.disk.clone(),
            addresses: self.addresses.clone(),
            net: Arc::clone(&self.net),
            facts: self.facts.clone(),
            log: self.log.clone(),
        };
        let faults = spawn_local(faults.run());
        for client in clients {
            self.join(client).await;
        }
        operator.abort();
        // Every daemon ends when the sender of its faults is dropped: workers first, since they take their leave.
        let mut targets = self.join(faults).await.unwrap_or_default();
        while let Some(target) = targets.pop()
            && let Some(host) = hosts.pop()
        {
            drop(target);
            self.join(host).await;
        }
        self.log.event("run", "ended");
        Ok(())
    }

    fn start_host(&mut self, name: &str, last: u32, daemon: Daemon) -> (JoinHandle<()>, Target) {
        let address = self.address(last);
        let (faults, arriving) = unbounded_channel();
        let host = Host {
            name: name.to_owned(),
            address,
            daemon,
            directory: self.directory.join("cluster"),
            disk: self.disk.clone(),
            net: Arc::clone(&self.net),
            chance: Chance::new(self.seed, name),
            facts: self.facts.clone(),
            log: self.log.clone(),
        };
        let target = Target {
            name: name.to_owned(),
            faults,
        };
        (spawn_local(host.run(arriving)), target)
    }

    fn client_world(&mut self, name: &str, last: u32) -> World {
        let address = self.address(last);
        let node = Node::new(name, self.chance.between(0, u64::MAX), BEGINNING_MICROS);
        World {
            net: self.net.host(address),
            ..node.world()
        }
    }

    /// Returns the address of the next host.
    fn address(&mut self, last: u32) -> IpAddr {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + last));
        self.addresses.push(address);
        address
    }

    /// Returns the cluster directory as other hosts see it.
    fn place(&self) -> ClusterPlace {
        let disk = Arc::new(self.disk.shared());
        let directory = ClusterDirectory::on_disk(disk, self.directory.join("cluster"));
        ClusterPlace::Directory(directory)
    }

    /// Waits for a task; a panic is a violation.
    async fn join<T>(&self, task: JoinHandle<T>) -> Option<T> {
        match task.await {
            Ok(result) => Some(result),
            Err(error) => {
                self.log.violation("run", error);
                None
            }
        }
    }
}
