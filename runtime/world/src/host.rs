//! A host of the simulated cluster: runs a daemon as a service manager does, and suffers its faults.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napreduce_cluster::{
    ClusterDirectory, ClusterPlace, CoordinatorConfiguration, FsyncPolicy, StartProcesses,
    WorkerConfiguration, WorkerError, coordinator_daemon, worker_daemon,
};
use napreduce_engine::{PreemptionSettings, Slots, SpeculationSettings};
use napreduce_history::open_history;
use napreduce_local::process::{Interrupts, Processes};
use napreduce_local::worker::IsolationMode;
use napreduce_local::world::disk::{SimDisk, UnsyncedFiles};
use napreduce_local::world::{Node, SimNet, World};
use napreduce_schedulers::SchedulerConfiguration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::chance::Chance;
use crate::facts::Facts;
use crate::log::Log;
use crate::machine::{SimMachine, TaskFaults};
use crate::plan::{HostFault, Speed};

/// Time after which a service manager starts an ended daemon again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
const SIGTERM: i32 = 15;
/// The longest times that blocking work of a daemon takes, such as looking at an output directory.
const BLOCKING_MILLIS_MAX: [u64; 5] = [2, 2, 20, 200, 2_000];
/// The longest time without power after a loss in a call to the disk.
const DOWN_MILLIS_MAX: u64 = 20_000;
/// The wall clock of every host when a run begins: a day in 2026, in microseconds since 1970.
pub const BEGINNING_MICROS: u64 = 1_780_000_000_000_000;

/// The daemon of a host.
#[derive(Debug, Clone)]
pub enum Daemon {
    Coordinator {
        scheduler: Arc<SchedulerConfiguration>,
        preemption: PreemptionSettings,
        queues: Vec<String>,
        fsync: FsyncPolicy,
        heartbeat: Duration,
        journal_bytes_max: u64,
        speculation: Option<SpeculationSettings>,
    },
    Worker {
        slots: Slots,
        faults: TaskFaults,
    },
}

/// A host and what it needs to start its daemon.
pub struct Host {
    pub name: String,
    pub address: IpAddr,
    pub daemon: Daemon,
    pub speed: Speed,
    /// The cluster directory.
    pub directory: PathBuf,
    /// The disk of the coordinator's host, which contains the cluster directory.
    pub disk: SimDisk,
    /// The output directories, which lie on the coordinator's host.
    pub outputs: UnsyncedFiles,
    pub net: Arc<SimNet>,
    pub chance: Chance,
    pub facts: Facts,
    pub log: Log,
}

/// A daemon that runs.
struct Running {
    node: Node,
    signals: UnboundedSender<i32>,
    ended: JoinHandle<String>,
    machine: Option<Arc<SimMachine>>,
}

/// Why a daemon has stopped.
enum Stopped {
    /// It has ended, or its host has crashed.
    Restart,
    /// The run is over.
    Over,
}

impl Host {
    /// Runs the daemon until the sender of faults is dropped, and then ends it by SIGTERM.
    pub async fn run(mut self, mut faults: UnboundedReceiver<HostFault>) {
        loop {
            let mut running = self.start();
            if let Stopped::Over = self.watch(&mut running, &mut faults).await {
                return self.finish(running).await;
            }
        }
    }

    fn start(&mut self) -> Running {
        let seed = self.chance.between(0, u64::MAX);
        let node = Node::new(&self.name, seed, self.unix_micros());
        let world = World {
            net: self.net.host(self.address),
            ..node.world()
        };
        let drawn = *self.chance.pick(&BLOCKING_MILLIS_MAX).unwrap_or(&2);
        let slowest = match self.speed {
            Speed::Drawn => drawn,
            Speed::Even => 0,
        };
        node.set_latency(Duration::ZERO..=Duration::from_millis(slowest));
        let (signals, arriving) = unbounded_channel();
        let interrupts = Interrupts::of_channel(arriving);
        let daemon = self.daemon.clone();
        let (ended, machine) = match daemon {
            Daemon::Coordinator {
                scheduler,
                preemption,
                queues,
                fsync,
                heartbeat,
                journal_bytes_max,
                speculation,
            } => {
                node.use_disk(self.disk.clone());
                self.end_with_last_call(&node);
                self.outputs.restart_process();
                let mut configuration = self.coordinator_configuration(scheduler);
                configuration.preemption = preemption;
                configuration.queues = queues;
                configuration.fsync = fsync;
                configuration.heartbeat = heartbeat;
                configuration.journal_bytes_max = journal_bytes_max;
                configuration.speculation = speculation;
                configuration.world = World {
                    outputs: Some(self.outputs.clone()),
                    ..world
                };
                (start_coordinator(configuration, interrupts), None)
            }
            Daemon::Worker { slots, faults } => {
                let faults = TaskFaults {
                    chance: self.chance.split(),
                    ..faults
                };
                let tasks = world.tasks.clone();
                let machine =
                    SimMachine::new(&self.name, tasks, slots, faults, &self.facts, &self.log);
                let machine = Arc::new(machine);
                let ended = self.start_worker(world, interrupts, slots, &machine);
                (ended, Some(machine))
            }
        };
        Running {
            node,
            signals,
            ended,
            machine,
        }
    }

    fn unix_micros(&self) -> u64 {
        let passed = self.log.elapsed().as_micros();
        BEGINNING_MICROS.saturating_add(u64::try_from(passed).unwrap_or_default())
    }

    /// Makes the host lose its power in the call to its disk that is drawn to be the last one.
    fn end_with_last_call(&self, node: &Node) {
        self.disk.at_last_call(self.power_cut(node));
        self.outputs.at_last_call(self.power_cut(node));
    }

    fn power_cut(&self, node: &Node) -> impl FnOnce() + Send + 'static {
        let node = node.clone();
        let net = Arc::clone(&self.net);
        let address = self.address;
        move || {
            node.crash();
            net.cut_power(address);
        }
    }

    fn coordinator_configuration(
        &self,
        scheduler: Arc<SchedulerConfiguration>,
    ) -> CoordinatorConfiguration {
        let disk = Arc::new(self.disk.clone());
        let directory = ClusterDirectory::on_disk(disk, self.directory.clone());
        let mut configuration =
            CoordinatorConfiguration::new(directory, scheduler, SchedulerConfiguration::read);
        configuration.bind = format!("{}:7000", self.address);
        configuration
    }

    fn start_worker(
        &self,
        world: World,
        interrupts: Interrupts,
        slots: Slots,
        machine: &Arc<SimMachine>,
    ) -> JoinHandle<String> {
        let disk = Arc::new(self.disk.shared());
        let directory = ClusterDirectory::on_disk(disk, self.directory.clone());
        let tasks = world.tasks.clone();
        let name = self.name.clone();
        let log = self.log.clone();
        let bind = format!("{}:0", self.address);
        let machine = Arc::clone(machine) as Arc<dyn Processes>;
        tasks.spawn(async move {
            let mut configuration = WorkerConfiguration::new(ClusterPlace::Directory(directory));
            configuration.name = Some(name.clone());
            configuration.map_slots = slots.map;
            configuration.reduce_slots = slots.reduce;
            configuration.bind = bind;
            configuration.disk_reserve = Some(0);
            configuration.segment_memory = Some(0);
            configuration.isolation.mode = IsolationMode::None;
            configuration.world = world;
            let start_processes: StartProcesses = Box::new(move |_, _| Ok(machine));
            let ended = worker_daemon(&configuration, interrupts, start_processes).await;
            if let Err(WorkerError::NameTaken { reason }) = &ended {
                log.violation(name, format_args!("gives up its name: {reason}"));
            }
            in_words(ended)
        })
    }

    /// Watches a daemon, and lets faults happen to it.
    async fn watch(
        &mut self,
        running: &mut Running,
        faults: &mut UnboundedReceiver<HostFault>,
    ) -> Stopped {
        loop {
            let fault = tokio::select! {
                biased;
                ended = &mut running.ended => {
                    if !running.node.has_crashed() {
                        self.note_end(ended);
                        self.check_processes(running.machine.as_deref());
                        sleep(RESTART_PAUSE).await;
                    }
                    if running.node.has_crashed() {
                        self.log.event(&self.name, "loses its power in a call to its disk");
                        let down = self.chance.millis(1, DOWN_MILLIS_MAX);
                        self.stay_down(down).await;
                    }
                    // Tasks that outlast the daemon end with its process.
                    running.node.crash();
                    if let Daemon::Coordinator { .. } = self.daemon {
                        self.disk.kill_processes();
                    }
                    drop_waiting(faults);
                    return Stopped::Restart;
                }
                fault = faults.recv() => fault,
            };
            let Some(fault) = fault else {
                return Stopped::Over;
            };
            self.log.event(&self.name, format_args!("{fault:?}"));
            match fault {
                HostFault::Crash(down) => {
                    running.node.crash();
                    self.net.cut_power(self.address);
                    self.stay_down(down).await;
                    drop_waiting(faults);
                    return Stopped::Restart;
                }
                HostFault::Sleep(asleep) => {
                    running.node.fall_asleep();
                    sleep(asleep).await;
                    running.node.wake_up();
                    self.log.event(&self.name, "wakes up");
                }
                HostFault::Jump(micros) => {
                    let shown = self.unix_micros().saturating_add_signed(micros);
                    running.node.set_unix_micros(shown);
                }
                HostFault::Slow { slowest, lasting } => {
                    let until = Instant::now() + lasting;
                    running.node.slow_down(slowest / 2..=slowest, until);
                }
                HostFault::Terminate => {
                    self.release_attempts(running.machine.as_deref());
                    // Fails if the daemon has ended.
                    let _ = running.signals.send(SIGTERM);
                }
            }
        }
    }

    /// Lets a host that has lost its power have it again after this time.
    async fn stay_down(&self, down: Duration) {
        match &self.daemon {
            Daemon::Coordinator { fsync, .. } => {
                if *fsync != FsyncPolicy::Always {
                    self.facts.note_forgotten();
                }
                self.disk.lose_power();
                self.outputs.lose_power();
            }
            Daemon::Worker { .. } => self.facts.note_crash(),
        }
        sleep(down).await;
        self.net.restore_power(self.address);
        self.log.event(&self.name, "has power again");
    }

    /// Lets the attempts of a worker that leaves run: one that was stopped at work must continue to save it.
    fn release_attempts(&self, machine: Option<&SimMachine>) {
        let Some(machine) = machine else {
            return;
        };
        for attempt in machine.attempts() {
            self.facts.release(attempt);
        }
    }

    fn note_end(&self, ended: Result<String, tokio::task::JoinError>) {
        match ended {
            Ok(what) => self.log.event(&self.name, format_args!("ended: {what}")),
            Err(error) => self
                .log
                .violation(&self.name, format_args!("panicked: {error}")),
        }
    }

    fn check_processes(&self, machine: Option<&SimMachine>) {
        let Some(machine) = machine else {
            return;
        };
        for attempt in machine.attempts() {
            let what = format!("the daemon has ended, the process of {attempt} has not");
            self.log.violation(&self.name, what);
        }
    }

    async fn finish(&self, running: Running) {
        // Fails if the daemon has ended.
        let _ = running.signals.send(SIGTERM);
        let Running { ended, machine, .. } = running;
        self.note_end(ended.await);
        self.check_processes(machine.as_deref());
        self.check_files();
    }

    /// Checks that a worker that has left its cluster keeps no data of jobs.
    fn check_files(&self) {
        let jobs = self.directory.join("workers").join(&self.name).join("jobs");
        let Ok(entries) = fs::read_dir(jobs) else {
            return;
        };
        for entry in entries.flatten() {
            let what = format!("{} is left", entry.path().display());
            self.log.violation(&self.name, what);
        }
    }
}

/// Starts a coordinator as a task of its world.
fn start_coordinator(
    configuration: CoordinatorConfiguration,
    interrupts: Interrupts,
) -> JoinHandle<String> {
    let tasks = configuration.world.tasks.clone();
    tasks.spawn(async move {
        in_words(coordinator_daemon(configuration, open_history, interrupts).await)
    })
}

/// Drops the faults that a host was spared while it was down.
fn drop_waiting(faults: &mut UnboundedReceiver<HostFault>) {
    while faults.try_recv().is_ok() {}
}

fn in_words(ended: Result<(), impl std::fmt::Display>) -> String {
    match ended {
        Ok(()) => "as told".to_owned(),
        Err(error) => error.to_string(),
    }
}
