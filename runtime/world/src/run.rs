//! One run: a cluster, its jobs and its faults from a seed, and the checks of what came of it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{JobId, Slots, TaskId, WorkerId};
use napreduce_local::coordinator::{Following, Input};
use napreduce_local::worker::{SegmentMemory, SuspendRules, Worker, WorkerSettings};
use napreduce_local::world::{Node, World};
use napreduce_protocol::{JobEnd, ToWorker};
use napreduce_schedulers::{SchedulerError, SchedulerName};
use tempfile::TempDir;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::chance::Chance;
use crate::coordinator::{Arrival, Joining, SimCoordinator};
use crate::facts::Facts;
use crate::log::{Echo, Log};
use crate::machine::{SimMachine, TaskFaults};
use crate::workload::SimJob;

/// Time in which all jobs must end after the faults have stopped.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// About when a run begins by the wall clocks, in microseconds since 1970.
const BEGINNING_MICROS: u64 = 1_780_000_000_000_000;

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
    /// A policy's published values are invalid.
    #[error("cannot prepare a run: {0}")]
    Scheduler(#[from] SchedulerError),
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
    runtime.block_on(async {
        let log = Log::new(directory, settings.echo, settings.until);
        let simulated = simulate(settings.seed, directory, &log);
        tokio::select! {
            biased;
            () = log.full() => {}
            done = simulated => done?,
        }
        Ok(RunReport {
            events: log.count(),
            hash: log.hash(),
            violations: log.violations(),
        })
    })
}

async fn simulate(seed: u64, directory: &Path, log: &Log) -> Result<(), RunError> {
    let mut chance = Chance::new(seed, "cluster");
    let policies = SchedulerName::ALL;
    let policy = *chance.pick(&policies).unwrap_or(&SchedulerName::Fifo);
    let faults = TaskFaults {
        permille: *chance.pick(&[0, 50, 200, 500]).unwrap_or(&0),
        until: Instant::now() + chance.millis(10_000, 300_000),
        chance: Chance::new(seed, "tasks"),
    };
    let facts = Facts::default();
    let (arrivals, arriving) = unbounded_channel();
    let own = arrivals.clone();
    // Fails after the coordinator has ended.
    let send_back = Arc::new(move |input| drop(own.send(Arrival::Input(Box::new(input)))));
    let operator = Chance::new(seed, "operator");
    let world = node("coordinator", &mut chance).world();
    let tasks = world.tasks.clone();
    let mut coordinator = SimCoordinator::new(world, policy, send_back, operator, &facts, log)?;
    log.event(
        "run",
        format_args!("seed {seed}, policy {policy}, faults {}", faults.permille),
    );
    let mut workers = Vec::new();
    for number in 1..=chance.count(1, 4) {
        let slots = Slots {
            map: chance.count(1, 3),
            reduce: chance.count(1, 3),
        };
        let worker = WorkerId(number);
        log.event("run", format_args!("{worker} has {slots:?}"));
        let name = worker.to_string();
        let world = node(&name, &mut chance).world();
        let machine = SimMachine::new(
            &name,
            world.tasks.clone(),
            slots,
            TaskFaults {
                chance: Chance::new(seed, &name),
                ..faults.clone()
            },
            &facts,
            log,
        );
        let latency = chance.millis(0, 20);
        workers.push(SimWorker::start(
            world,
            worker,
            Arc::new(machine),
            latency,
            arrivals.clone(),
            |messages| {
                coordinator.join(Joining {
                    worker,
                    slots,
                    messages,
                });
            },
        ));
    }
    let coordinator = tasks.spawn(coordinator.run(arriving));
    let operator = tokio::spawn(operate(
        arrivals.clone(),
        Chance::new(seed, "commands"),
        faults.until,
    ));
    let mut clients = Vec::new();
    for number in 1..=chance.count(1, 4) {
        let job = SimJob::draw(&mut chance, number, directory);
        let client = SimClient {
            job,
            arrivals: arrivals.clone(),
            facts: facts.clone(),
            log: log.clone(),
            by: faults.until + PATIENCE,
        };
        clients.push(tokio::spawn(client.run()));
    }
    for client in clients {
        join(client, log).await;
    }
    // The operator has nothing to do any more.
    operator.abort();
    let _ = arrivals.send(Arrival::Finish);
    if join(coordinator, log).await == Some(false) {
        log.violation("coordinator", "jobs are left");
    }
    for worker in workers {
        worker.finish(log).await;
    }
    log.event("run", "ended");
    Ok(())
}

/// Creates a host whose wall clock shows some time of 2026.
fn node(name: &str, chance: &mut Chance) -> Node {
    let unix_micros = BEGINNING_MICROS + chance.between(0, 1_000_000);
    Node::new(name, chance.between(0, u64::MAX), unix_micros)
}

/// Waits for a task; a panic is a violation.
async fn join<T>(task: JoinHandle<T>, log: &Log) -> Option<T> {
    match task.await {
        Ok(result) => Some(result),
        Err(error) => {
            log.violation("run", error);
            None
        }
    }
}

/// Sends the operator's commands while there are faults; then lets everything run.
async fn operate(arrivals: UnboundedSender<Arrival>, mut chance: Chance, until: Instant) {
    let commands = *chance.pick(&[0, 3, 10, 40]).unwrap_or(&0);
    for _ in 0..commands {
        sleep(chance.millis(100, 20_000)).await;
        if Instant::now() >= until {
            break;
        }
        let _ = arrivals.send(Arrival::Operate);
    }
    sleep_until(until).await;
    loop {
        // Jobs that were submitted late, or suspends that were under way.
        let _ = arrivals.send(Arrival::LetRun);
        sleep(Duration::from_secs(30)).await;
    }
}

/// A worker with its machine and its links.
struct SimWorker {
    worker: WorkerId,
    machine: Arc<SimMachine>,
    running: JoinHandle<()>,
}

impl SimWorker {
    /// Starts a worker; `join` gets the sender of messages to it.
    fn start(
        world: World,
        worker: WorkerId,
        machine: Arc<SimMachine>,
        latency: Duration,
        arrivals: UnboundedSender<Arrival>,
        join: impl FnOnce(UnboundedSender<ToWorker>),
    ) -> SimWorker {
        let processes = Arc::clone(&machine) as Arc<dyn napreduce_local::process::Processes>;
        let tasks = world.tasks.clone();
        let settings = WorkerSettings {
            world,
            heartbeat: Duration::from_millis(200),
            task_silence_max: Duration::from_secs(30),
            environment: None,
            segment_memory: SegmentMemory::new(None, Arc::clone(&processes)),
            processes,
            suspend: SuspendRules::default(),
            running: Arc::default(),
        };
        let (messages, sent) = unbounded_channel();
        let (deliver, orders) = unbounded_channel();
        let (report, mut reports) = unbounded_channel();
        let own = arrivals.clone();
        tokio::spawn(deliver_messages(worker, sent, deliver, latency, own));
        tokio::spawn(async move {
            while let Some(news) = reports.recv().await {
                sleep(latency).await;
                // Fails after the coordinator has ended.
                let _ = arrivals.send(Arrival::Input(Box::new(Input::News { worker, news })));
            }
        });
        join(messages);
        SimWorker {
            worker,
            machine,
            running: tasks.spawn(Worker::run(settings, orders, report)),
        }
    }

    /// Waits for the end of the worker, whose coordinator has ended.
    async fn finish(self, log: &Log) {
        join(self.running, log).await;
        for attempt in self.machine.attempts() {
            log.violation(
                self.worker,
                format_args!("the process of {attempt} is left"),
            );
        }
    }
}

async fn deliver_messages(
    worker: WorkerId,
    mut sent: UnboundedReceiver<ToWorker>,
    deliver: UnboundedSender<ToWorker>,
    latency: Duration,
    arrivals: UnboundedSender<Arrival>,
) {
    while let Some(message) = sent.recv().await {
        sleep(latency).await;
        let number = message.number();
        if deliver.send(message).is_err() {
            return;
        }
        if let Some(through) = number {
            let _ = arrivals.send(Arrival::Delivered { worker, through });
        }
    }
}

/// The client that submits one job and checks its end.
struct SimClient {
    job: SimJob,
    arrivals: UnboundedSender<Arrival>,
    facts: Facts,
    log: Log,
    /// When the job must have ended.
    by: Instant,
}

impl SimClient {
    async fn run(self) {
        sleep(self.job.submitted).await;
        let plan = Box::new(self.job.plan.clone());
        let (reply, accepted) = oneshot::channel();
        let _ = self
            .arrivals
            .send(Arrival::Input(Box::new(Input::Submit { plan, reply })));
        let Ok(accepted) = accepted.await else {
            return self.log.violation(self.name(), "is not answered");
        };
        match accepted {
            Ok((job, following)) => self.follow(job, following).await,
            Err(error) => self
                .log
                .violation(self.name(), format_args!("is refused: {error}")),
        }
    }

    fn name(&self) -> &str {
        &self.job.plan.name
    }

    async fn follow(&self, job: JobId, mut following: Following) {
        self.log.event(self.name(), format_args!("is {job}"));
        let end = match timeout_at(self.by, following.end.wait_for(Option::is_some)).await {
            Ok(Ok(end)) => end.clone(),
            Ok(Err(_)) => None,
            Err(_) => return self.log.violation(self.name(), "does not end"),
        };
        let Some(end) = end else {
            return self
                .log
                .violation(self.name(), "has no end: the coordinator has ended");
        };
        self.check(job, end);
    }

    fn check(&self, job: JobId, end: JobEnd) {
        match &end {
            JobEnd::Succeeded(_) => {
                self.log.event(self.name(), "succeeded");
                self.check_output(job);
            }
            JobEnd::Failed { reason, .. } => {
                self.log
                    .event(self.name(), format_args!("failed: {reason}"));
                if self.facts.most_troubles(job) < self.job.plan.attempts_max {
                    self.log
                        .violation(self.name(), "failed without enough trouble");
                }
                self.check_removed();
            }
            JobEnd::Killed { reason, .. } => {
                self.log
                    .event(self.name(), format_args!("was killed: {reason}"));
                if !self.facts.is_killed(job) {
                    self.log.violation(self.name(), "was killed by nobody");
                }
                self.check_removed();
            }
        }
    }

    /// Checks that the output is that of an undisturbed run, and that nothing else is left.
    fn check_output(&self, job: JobId) {
        let task = |kind, index| TaskId { job, kind, index };
        let expected = self.job.parameters.parts(task);
        let letter = if self.job.parameters.reduces == 0 {
            'm'
        } else {
            'r'
        };
        let mut names = BTreeSet::from(["_SUCCESS".to_owned()]);
        for (index, text) in expected.iter().enumerate() {
            let name = format!("part-{letter}-{index:05}");
            match fs::read_to_string(self.job.plan.output.join(&name)) {
                Ok(found) if found == *text => {}
                Ok(found) => self.log.violation(
                    self.name(),
                    format_args!("{name} is {found:?}, not {text:?}"),
                ),
                Err(error) => self
                    .log
                    .violation(self.name(), format_args!("{name}: {error}")),
            }
            names.insert(name);
        }
        for name in self.names() {
            if !names.contains(&name) {
                self.log
                    .violation(self.name(), format_args!("{name} is left"));
            }
        }
    }

    /// Checks that nothing is left of a job without output.
    fn check_removed(&self) {
        for name in self.names() {
            self.log
                .violation(self.name(), format_args!("{name} is left"));
        }
    }

    /// Returns the names in the output directory, sorted.
    fn names(&self) -> BTreeSet<String> {
        let Ok(entries) = fs::read_dir(&self.job.plan.output) else {
            return BTreeSet::new();
        };
        let mut names = BTreeSet::new();
        for entry in entries.flatten() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
        names
    }
}
