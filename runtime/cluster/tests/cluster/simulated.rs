//! The real daemons of a coordinator and two workers, and a client, in simulated time over a simulated network.
//! There are no jobs: the tests are about connections.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use napreduce_cluster::{
    AsyncClient, ClusterDirectory, ClusterPlace, CoordinatorConfiguration, Patience,
    StartProcesses, WorkerConfiguration, coordinator_daemon, worker_daemon,
};
use napreduce_history::open_history;
use napreduce_local::process::{
    Interrupts, Launch, Pending, ProcessMemory, Processes, SpareMemory, TaskProcess,
};
use napreduce_local::world::{LinkSettings, NetFault, Node, SimNet, SplitMix, World};
use napreduce_local::{IsolationMode, IsolationRules};
use napreduce_protocol::requests::ListWorkers;
use napreduce_protocol::{Secret, WorkerPhase, WorkerSummary};
use napreduce_schedulers::SchedulerConfiguration;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const ADDRESS: &str = "10.0.0.1:7000";
const COORDINATOR: u8 = 1;
const WORKERS: [u8; 2] = [2, 3];
const CLIENT: u8 = 4;

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

/// A machine that cannot start processes.
#[derive(Debug)]
struct Bare;

impl Processes for Bare {
    fn start(&self, _launch: Launch) -> Pending<'_, Box<dyn TaskProcess>> {
        Box::pin(async { Err(std::io::ErrorKind::Unsupported.into()) })
    }

    fn sweep(&self, _marks: Vec<String>) {}

    fn memory_of(&self, _process: Pid) -> std::io::Result<ProcessMemory> {
        Ok(ProcessMemory::default())
    }

    fn spare_memory(&self) -> std::io::Result<SpareMemory> {
        Ok(SpareMemory {
            available: 1 << 40,
            swap_free: 0,
        })
    }

    fn stalled_micros(&self) -> Option<u64> {
        None
    }

    fn oom_kills(&self) -> u64 {
        0
    }
}

/// A daemon, on a host of its own.
struct Daemon {
    node: Node,
    signals: UnboundedSender<i32>,
    ended: JoinHandle<Result<(), String>>,
}

impl Daemon {
    /// Ends it with SIGINT, and its process with it.
    async fn stop(self) {
        self.signals.send(Signal::INT.as_raw()).unwrap();
        self.ended.await.unwrap().unwrap();
        self.node.crash();
    }
}

struct Cluster {
    folder: TempDir,
    net: SimNet,
    seed: u64,
    /// Number of processes so far.
    processes: Cell<u64>,
    secret: Secret,
}

impl Cluster {
    fn new(seed: u64, links: LinkSettings) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let cluster = ClusterDirectory::resolve(Some(folder.path().join("cluster"))).unwrap();
        Cluster {
            net: SimNet::new(seed, links),
            secret: cluster.create().unwrap(),
            folder,
            seed,
            processes: Cell::new(0),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a new process on a host, with its world.
    fn process(&self, host: u8) -> (Node, World) {
        let number = self.processes.get();
        self.processes.set(number + 1);
        let seed = self.seed * 1000 + number;
        let node = Node::new(&format!("host-{host}"), seed, 1_800_000_000_000_000);
        let mut world = node.world();
        world.net = self.net.host(ip(host));
        (node, world)
    }

    fn place(&self) -> ClusterPlace {
        ClusterPlace::Address {
            address: ADDRESS.to_owned(),
            secret: self.secret.clone(),
        }
    }

    fn start_coordinator(&self) -> Daemon {
        let directory = ClusterDirectory::resolve(Some(self.path("cluster"))).unwrap();
        let mut configuration = CoordinatorConfiguration::new(
            directory,
            Arc::new(SchedulerConfiguration::default()),
            SchedulerConfiguration::read,
        );
        let (node, world) = self.process(COORDINATOR);
        configuration.world = world;
        ADDRESS.clone_into(&mut configuration.bind);
        let tasks = configuration.world.tasks.clone();
        let (signals, arriving) = unbounded_channel();
        let interrupts = Interrupts::of_channel(arriving);
        let ended = tasks.spawn(async move {
            let ended = coordinator_daemon(configuration, open_history, interrupts).await;
            ended.map_err(|error| error.to_string())
        });
        Daemon {
            node,
            signals,
            ended,
        }
    }

    /// Starts the worker of a host.
    fn start_worker(&self, host: u8) -> Daemon {
        self.start_worker_called(host, &format!("worker-{host}"))
    }

    /// Starts a worker of this name in the directory of a host.
    fn start_worker_called(&self, host: u8, name: &str) -> Daemon {
        let directory = self.path(&format!("directory-{host}"));
        let mut configuration = WorkerConfiguration::new(self.place());
        let (node, world) = self.process(host);
        configuration.world = world;
        configuration.name = Some(name.to_owned());
        configuration.directory = Some(directory);
        configuration.bind = String::from("0.0.0.0:0");
        configuration.isolation = IsolationRules {
            mode: IsolationMode::None,
            ..IsolationRules::default()
        };
        let tasks = configuration.world.tasks.clone();
        let (signals, arriving) = unbounded_channel();
        let interrupts = Interrupts::of_channel(arriving);
        let processes: StartProcesses = Box::new(|_groups, _directory: &Path| Ok(Arc::new(Bare)));
        let ended = tasks.spawn(async move {
            let ended = worker_daemon(&configuration, interrupts, processes).await;
            ended.map_err(|error| error.to_string())
        });
        Daemon {
            node,
            signals,
            ended,
        }
    }

    async fn client(&self) -> AsyncClient {
        let patience = Patience {
            tell: false,
            ..Patience::default()
        };
        AsyncClient::connect(self.process(CLIENT).1, self.place(), patience)
            .await
            .unwrap()
    }
}

/// Waits until so many workers are up, and returns how long it took.
async fn until_up(client: &mut AsyncClient, count: usize) -> Duration {
    let began = Instant::now();
    loop {
        let workers = client.ask(ListWorkers).await.unwrap();
        let up = workers
            .iter()
            .filter(|worker| worker.state == WorkerPhase::Up);
        if up.count() == count {
            return began.elapsed();
        }
        sleep(SECOND / 4).await;
    }
}

/// Runs a test on a paused clock. Nothing takes longer than some hours.
fn simulate(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(300 * MINUTE, test)
            .await
            .expect("the cluster stands still");
    });
}

#[test]
fn idle_cluster_stays_together_and_leaves_nothing() {
    simulate(async {
        let cluster = Cluster::new(1, LinkSettings::default());
        let coordinator = cluster.start_coordinator();
        let workers = WORKERS.map(|host| cluster.start_worker(host));
        let mut client = cluster.client().await;
        until_up(&mut client, WORKERS.len()).await;
        let before = client.ask(ListWorkers).await.unwrap();
        sleep(5 * MINUTE).await;
        let after = client.ask(ListWorkers).await.unwrap();
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.worker, after.worker);
            assert_eq!(after.state, WorkerPhase::Up);
            assert!(after.silent_millis < 1_000, "{after:?}");
        }
        drop(client);
        for worker in workers {
            worker.stop().await;
        }
        coordinator.stop().await;
        sleep(MINUTE).await;
        assert_eq!(cluster.net.connections(), 0);
    });
}

#[test]
fn partitioned_worker_is_lost_and_returns() {
    simulate(async {
        let cluster = Cluster::new(1, LinkSettings::default());
        let _coordinator = cluster.start_coordinator();
        let _workers = WORKERS.map(|host| cluster.start_worker(host));
        let mut client = cluster.client().await;
        until_up(&mut client, 2).await;
        for one_way in [
            (ip(COORDINATOR), ip(WORKERS[0])),
            (ip(WORKERS[0]), ip(COORDINATOR)),
        ] {
            let (from, to) = one_way;
            cluster.net.block(from, to);
            let lost = until_up(&mut client, 1).await;
            assert!(lost < 20 * SECOND, "{from} -> {to}: {lost:?}");
            cluster.net.unblock(from, to);
            let returned = until_up(&mut client, 2).await;
            assert!(returned < 20 * SECOND, "{from} -> {to}: {returned:?}");
        }
    });
}

/// The connection of the predecessor is still open, so its name is free only when the coordinator counts it as lost.
#[test]
fn worker_back_after_power_loss_gets_its_name_again() {
    simulate(async {
        let cluster = Cluster::new(1, LinkSettings::default());
        let _coordinator = cluster.start_coordinator();
        let host = WORKERS[0];
        let mut worker = cluster.start_worker(host);
        let mut client = cluster.client().await;
        until_up(&mut client, 1).await;
        for down in [SECOND / 10, SECOND, 4 * SECOND, 7 * SECOND] {
            let before = client.ask(ListWorkers).await.unwrap();
            worker.node.crash();
            cluster.net.cut_power(ip(host));
            sleep(down).await;
            cluster.net.restore_power(ip(host));
            worker = cluster.start_worker(host);
            sleep(20 * SECOND).await;
            assert!(!worker.ended.is_finished(), "after {down:?}");
            let after = client.ask(ListWorkers).await.unwrap();
            let ids = |workers: &[WorkerSummary]| {
                let up = workers.iter().filter(|it| it.state == WorkerPhase::Up);
                up.map(|it| it.worker).collect::<Vec<_>>()
            };
            assert_eq!(ids(&after).len(), 1, "after {down:?}: {after:?}");
            assert_ne!(ids(&after), ids(&before), "after {down:?}");
        }
    });
}

#[test]
fn second_worker_of_one_name_gives_up() {
    simulate(async {
        let cluster = Cluster::new(1, LinkSettings::default());
        let _coordinator = cluster.start_coordinator();
        let first = cluster.start_worker_called(WORKERS[0], "twin");
        let mut client = cluster.client().await;
        until_up(&mut client, 1).await;
        let began = Instant::now();
        let second = cluster.start_worker_called(WORKERS[1], "twin");
        let error = second.ended.await.unwrap().unwrap_err();
        assert!(error.contains("choose another with --name"), "{error}");
        assert!(began.elapsed() < 12 * SECOND, "{:?}", began.elapsed());
        assert!(!first.ended.is_finished());
    });
}

#[test]
fn cluster_recovers_from_every_fault_of_its_network() {
    for seed in 0..5 {
        simulate(async {
            let mut numbers = SplitMix::new(seed);
            let cluster = Cluster::new(seed, LinkSettings::default());
            let mut coordinator = Some(cluster.start_coordinator());
            let workers = WORKERS.map(|host| cluster.start_worker(host));
            let mut client = cluster.client().await;
            let hosts = [COORDINATOR, WORKERS[0], WORKERS[1], CLIENT].map(ip);
            for _ in 0..10 {
                let fault = NetFault::draw(&mut numbers, &hosts);
                cluster.net.inject(&fault);
                if numbers.below(5) == 0
                    && let Some(running) = coordinator.take()
                {
                    running.stop().await;
                    sleep(SECOND).await;
                    coordinator = Some(cluster.start_coordinator());
                }
                sleep(numbers.duration(&(SECOND..=MINUTE))).await;
            }
            cluster.net.heal();
            // Repetitions of packets come up to a minute late, and a silent coordinator is noticed after some seconds.
            let again = until_up(&mut client, WORKERS.len()).await;
            assert!(again < 2 * MINUTE, "seed {seed}: {again:?}");
            drop(client);
            for worker in workers {
                worker.stop().await;
            }
            if let Some(running) = coordinator {
                running.stop().await;
            }
            // Half-open ends are noticed by probes.
            sleep(5 * MINUTE).await;
            assert_eq!(cluster.net.connections(), 0, "seed {seed}");
        });
    }
}
