//! One run: a cluster, its jobs and its faults from a seed, and the checks of what came of it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use napreduce_cluster::{ClusterDirectory, ClusterPlace};
use napreduce_local::world::disk::{Disk, FaultRates, SimDisk, UnsyncedFiles};
use napreduce_local::world::{LinkSettings, Node, Observer, Observing, SimNet, Situation, World};
use tempfile::TempDir;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Instant;

use crate::chance::Chance;
use crate::client::SimClient;
use crate::daemon_log::DaemonLog;
use crate::facts::Facts;
use crate::faults::{Faults, Target};
use crate::host::{BEGINNING_MICROS, Daemon, Host};
use crate::log::{AfterViolation, Echo, Log};
use crate::machine::TaskFaults;
use crate::observer::WorldObserver;
use crate::operator::Operator;
use crate::output::check_output;
use crate::plan::{
    COORDINATOR, Plan, client_address, coordinator_address, operator_address, worker_address,
};
use crate::reactions::{Reached, Reactions};
use crate::workload::SimJob;

/// Time in which all jobs must end after the faults have stopped.
const PATIENCE: Duration = Duration::from_secs(3600);
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
#[derive(Debug, Clone)]
pub struct RunSettings {
    pub plan: Plan,
    pub echo: Echo,
    /// The number of the event at which the run stops.
    pub until: Option<u64>,
    /// Whether the run goes on after a violation.
    pub after_violation: AfterViolation,
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
    /// How often each situation was reached, without those that were not.
    pub situations: BTreeMap<Situation, u64>,
}

/// Why a run could not be made.
#[derive(Debug, Error)]
pub enum RunError {
    /// A system call failed.
    #[error("cannot prepare a run: {0}")]
    Io(#[from] io::Error),
}

/// Where the directories of runs are created, if it exists: in memory, runs take half the time. It is the same on every
/// machine, since the length of a path changes how full a journal is, and so what happens at a seed.
const IN_MEMORY: &str = "/dev/shm";

/// Creates the directory of a run. Its path is in the journal, in which bytes are decimal numbers: its length there is the
/// same for every name that differs in digits only.
fn run_directory() -> io::Result<TempDir> {
    let mut number = 0;
    loop {
        let name = format!("{}{number:04}", directory_prefix());
        let created = tempfile::Builder::new()
            .prefix(&name)
            .rand_bytes(0)
            .tempdir_in(above_run_directories());
        match created {
            // A run that was killed has left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return created,
        }
    }
}

fn above_run_directories() -> PathBuf {
    let in_memory = PathBuf::from(IN_MEMORY);
    if in_memory.is_dir() {
        in_memory
    } else {
        env::temp_dir()
    }
}

/// Returns what begins the names of the directories of this process.
fn directory_prefix() -> String {
    format!("nap-world-{:010}-", std::process::id())
}

/// Removes the directories of runs of this process, for a process that ends before its run does.
pub fn remove_run_directories() {
    let Ok(entries) = fs::read_dir(above_run_directories()) else {
        return;
    };
    let prefix = directory_prefix();
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes a run.
///
/// # Errors
/// Fails if it cannot be prepared; violations are no errors.
pub fn run(settings: RunSettings) -> Result<RunReport, RunError> {
    run_and_look(settings, |_| ())
}

/// Makes a run, and looks at the cluster directory once all jobs have ended, before the daemons do.
///
/// # Errors
/// Fails if it cannot be prepared; violations are no errors.
pub fn run_and_look(
    settings: RunSettings,
    look: impl FnOnce(&ClusterDirectory),
) -> Result<RunReport, RunError> {
    let directory = run_directory()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let directory = directory.path();
    fs::File::create(directory.join("input"))?.set_len(1 << 20)?;
    fs::write(directory.join("program"), PROGRAM)?;
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        let log = Log::new(
            directory,
            settings.echo,
            settings.until,
            settings.after_violation,
        );
        let _daemon_log = tracing::subscriber::set_default(DaemonLog::new(&log));
        let facts = Facts::default();
        let (moments, reached) = unbounded_channel();
        let observer = Rc::new(WorldObserver::new(
            &facts,
            &log,
            moments.clone(),
            Instant::now() + settings.plan.until,
        ));
        let _observing = Observing::begin(Rc::clone(&observer) as Rc<dyn Observer>);
        let cluster = Simulation::new(settings.plan, directory, facts, &log)?;
        tokio::select! {
            biased;
            () = log.full() => {}
            done = cluster.run(moments, reached, &observer, look) => done?,
        }
        Ok(RunReport {
            events: log.count(),
            hash: log.hash(),
            violations: log.violations(),
            situations: observer.situations(),
        })
    }))
}

/// A simulated cluster.
struct Simulation<'a> {
    plan: Plan,
    directory: &'a Path,
    net: Arc<SimNet>,
    /// The disk of the coordinator's host.
    disk: SimDisk,
    /// The output directories, which lie on the same host.
    outputs: UnsyncedFiles,
    facts: Facts,
    log: Log,
}

impl<'a> Simulation<'a> {
    fn new(
        plan: Plan,
        directory: &'a Path,
        facts: Facts,
        log: &Log,
    ) -> Result<Simulation<'a>, RunError> {
        let net = SimNet::new(plan.seed, LinkSettings::default());
        let observer = log.clone();
        net.observe(move |line| observer.event("network", line));
        let disk = SimDisk::new(plan.seed);
        disk.make_directories(directory, 0o700)?;
        for above in directory.ancestors() {
            disk.sync_directory(above)?;
        }
        let outputs = UnsyncedFiles::new(plan.seed, directory.join("kept"));
        Ok(Simulation {
            plan,
            directory,
            net: Arc::new(net),
            disk,
            outputs,
            facts,
            log: log.clone(),
        })
    }

    async fn run(
        self,
        moments: UnboundedSender<Reached>,
        reached: UnboundedReceiver<Reached>,
        observer: &Rc<WorldObserver>,
        look: impl FnOnce(&ClusterDirectory),
    ) -> Result<(), RunError> {
        let began = Instant::now();
        let seed = self.plan.seed;
        let until = began + self.plan.until;
        let task_faults = TaskFaults {
            speed: self.plan.speed,
            permille: self.plan.task_faults_permille,
            storage_permille: self.plan.storage_faults_permille,
            until,
            chance: Chance::new(seed, "tasks"),
        };
        let what = format!(
            "seed {seed}, policy {}, {} faults of 1000 tasks, {} other faults, {} commands",
            self.plan.scheduler.scheduler,
            task_faults.permille,
            self.plan.faults.len(),
            self.plan.commands.len()
        );
        self.log.event("run", what);
        if self.plan.divides() {
            self.facts.divide();
        }
        let usual = FaultRates {
            sync: self.plan.sync,
            ..FaultRates::default()
        };
        self.disk.set_rates(usual);
        let coordinator = Daemon::Coordinator {
            scheduler: Arc::clone(&self.plan.scheduler),
            preemption: self.plan.preemption,
            queues: self.plan.queues.clone(),
            fsync: self.plan.fsync,
            heartbeat: self.plan.heartbeat,
            journal_bytes_max: self.plan.journal_bytes_max,
            speculation: self.plan.speculation,
        };
        let (host, target) = self.start_host(COORDINATOR, coordinator_address(), coordinator);
        let mut hosts = vec![host];
        let mut targets = vec![target];
        for planned in &self.plan.workers {
            let name = planned.name();
            let slots = planned.slots;
            self.log.event("run", format_args!("{name} has {slots:?}"));
            let worker = Daemon::Worker {
                slots,
                faults: task_faults.clone(),
            };
            let (host, target) = self.start_host(&name, worker_address(planned.number), worker);
            hosts.push(host);
            targets.push(target);
        }
        let mut clients = Vec::new();
        let mut outputs: BTreeMap<PathBuf, Vec<SimJob>> = BTreeMap::new();
        for planned in &self.plan.jobs {
            let number = planned.number;
            let mut chance = Chance::new(seed, &format!("job-{number}"));
            let job = SimJob::new(&mut chance, planned, self.directory);
            let output = job.plan.output.clone();
            outputs.entry(output).or_default().push(job.clone());
            let name = format!("client-{number}");
            let mut rivals = self.plan.jobs.iter().filter(|job| job.number != number);
            let client = SimClient {
                job,
                world: self.client_world(&name, client_address(number)),
                shares_output: rivals.any(|job| job.output == planned.output),
                place: self.place(),
                program: self.directory.join("program"),
                facts: self.facts.clone(),
                log: self.log.clone(),
                fails_disk: self.plan.fails_disk(),
                until,
                by: until + PATIENCE,
                moments: moments.clone(),
            };
            clients.push(spawn_local(client.run()));
        }
        let operator = |name, commands| Operator {
            world: self.client_world(name, operator_address()),
            place: self.place(),
            commands,
            seed,
            began,
            facts: self.facts.clone(),
            log: self.log.clone(),
            until,
        };
        let (commands, arriving) = unbounded_channel();
        let responder = operator("responder", Vec::new());
        let operator = operator("operator", self.plan.commands.clone());
        let operator = spawn_local(operator.run());
        let responder = spawn_local(responder.respond(arriving));
        let known = Rc::clone(observer);
        let reactions = Reactions {
            planned: self.plan.reactions.clone(),
            reached,
            until,
            targets: targets.clone(),
            commands,
            names: Box::new(move |worker| known.name_of(worker)),
            disk: self.disk.clone(),
            outputs: self.outputs.clone(),
            net: Arc::clone(&self.net),
            log: self.log.clone(),
        };
        let reactions = spawn_local(reactions.run());
        let faults = Faults {
            planned: self.plan.faults.clone(),
            began,
            until: self.plan.until,
            targets,
            disk: self.disk.clone(),
            outputs: self.outputs.clone(),
            usual,
            net: Arc::clone(&self.net),
            log: self.log.clone(),
        };
        let faults = spawn_local(faults.run());
        for client in clients {
            self.join(client).await;
        }
        operator.abort();
        responder.abort();
        reactions.abort();
        for (output, jobs) in &outputs {
            check_output(output, jobs, &self.facts, &self.log);
        }
        look(&self.cluster_directory());
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

    fn start_host(&self, name: &str, address: IpAddr, daemon: Daemon) -> (JoinHandle<()>, Target) {
        let (faults, arriving) = unbounded_channel();
        let host = Host {
            name: name.to_owned(),
            address,
            daemon,
            speed: self.plan.speed,
            directory: self.directory.join("cluster"),
            disk: self.disk.clone(),
            outputs: self.outputs.clone(),
            net: Arc::clone(&self.net),
            chance: Chance::new(self.plan.seed, name),
            facts: self.facts.clone(),
            log: self.log.clone(),
        };
        let target = Target {
            name: name.to_owned(),
            faults,
        };
        (spawn_local(host.run(arriving)), target)
    }

    fn client_world(&self, name: &str, address: IpAddr) -> World {
        let mut chance = Chance::new(self.plan.seed, name);
        let node = Node::new(name, chance.between(0, u64::MAX), BEGINNING_MICROS);
        World {
            net: self.net.host(address),
            ..node.world()
        }
    }

    /// Returns the cluster directory as other hosts see it.
    fn place(&self) -> ClusterPlace {
        ClusterPlace::Directory(self.cluster_directory())
    }

    fn cluster_directory(&self) -> ClusterDirectory {
        let disk = Arc::new(self.disk.shared());
        ClusterDirectory::on_disk(disk, self.directory.join("cluster"))
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
