//! `nap worker`: the daemon that runs tasks, and commands about workers.

mod leaving;
mod listing;

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use napreduce_cluster::{ClusterClient, WorkerConfiguration, run_worker};
use napreduce_engine::WorkerId;
use napreduce_local::{IsolationMode, PageOut};
use napreduce_protocol::requests::{DrainWorker, ListWorkers, UndrainWorker};
use napreduce_protocol::{ByteSize, WorkerSummary, parse_time, printing::print_error};

use crate::cluster::{ClusterArguments, IsolationName, PageOutName, WorkerOptions, rack_name, set};
use crate::failure::{Failures, usage};
use crate::ids::find_worker;
use crate::log::LogArguments;
use crate::parent::end_with_parent;
use crate::worker::leaving::limited;
use crate::worker::listing::{ListArguments, is_gone, list};

pub use leaving::LeaveArguments;
pub use listing::is_up;

/// Between two looks at workers that are waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Run a worker, or list and drain workers
///
/// Without a command a worker runs here until it is interrupted or drained. A cluster may have any number of
/// them, on one host or several; inputs and outputs of jobs must be on storage that all of them see. SIGTERM
/// has it save what it runs and leave (--on-terminate, --grace).
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  nap worker                                             one more worker for the cluster of this machine
  nap worker --coordinator HOST:7000 --secret-file F --bind HERE:0   for the cluster of another
  nap worker list --wait 3                               when three are up
  nap worker drain worker_0001 --reason 'a new disk'      let it finish what it does, then leave
  nap worker undrain worker_0001                         let it stay after all"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    pub daemon: DaemonArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// The workers of a cluster
    List(ListArguments),
    /// Let workers finish what they do, then leave
    Drain(DrainArguments),
    /// Let workers that drain stay, and get tasks again
    Undrain(UndrainArguments),
}

/// What can be said of a worker's daemon.
#[derive(Debug, Clone, Default, Args)]
pub struct DaemonArguments {
    #[command(flatten)]
    pub log: LogArguments,

    #[command(flatten)]
    pub options: WorkerOptions,

    #[command(flatten)]
    pub leave: LeaveArguments,

    /// After so long it is killed by whoever started it: it drains by itself before that
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_TIME_LIMIT")]
    pub time_limit: Option<Duration>,
}

#[derive(Debug, Clone, Args)]
struct DrainArguments {
    /// worker_0001, 1, or the worker's name
    #[arg(value_name = "WORKER", required = true)]
    workers: Vec<String>,

    /// Hand running tasks back at once, to be run elsewhere, instead of finishing them
    #[arg(long)]
    hand_back: bool,

    /// Wait until they have left
    #[arg(long)]
    wait: bool,

    /// Shown in the list of workers and in the coordinator's log [default: asked for by nap worker drain]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "asked for by nap worker drain",
        hide_default_value = true
    )]
    reason: String,
}

#[derive(Debug, Clone, Args)]
struct UndrainArguments {
    /// worker_0001, 1, or the worker's name
    #[arg(value_name = "WORKER", required = true)]
    workers: Vec<String>,

    /// Said in the coordinator's log [default: asked for by nap worker undrain]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "asked for by nap worker undrain",
        hide_default_value = true
    )]
    reason: String,
}

/// Runs a daemon or answers.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    match &arguments.command {
        None => {
            end_with_parent()?;
            let configuration = configuration(&arguments.daemon, cluster)?;
            arguments.daemon.log.start(configuration.name.as_deref().unwrap_or("worker"))?;
            Ok(run_worker(&configuration)?)
        }
        Some(Command::List(arguments)) => list(arguments, &mut cluster.connect()?),
        Some(Command::Drain(arguments)) => drain(arguments, &mut cluster.connect()?),
        Some(Command::Undrain(arguments)) => undrain(arguments, &mut cluster.connect()?),
    }
}

/// What the daemon runs with. An error is one of usage.
pub fn configuration(arguments: &DaemonArguments, cluster: &ClusterArguments) -> Result<WorkerConfiguration> {
    choose(arguments, cluster).map_err(usage)
}

fn choose(arguments: &DaemonArguments, cluster: &ClusterArguments) -> Result<WorkerConfiguration> {
    let file = cluster.configuration()?.worker;
    let leave = limited(arguments.leave.rules(&file)?, arguments.time_limit.or(file.time_limit))?;
    let said = arguments.options.clone();
    let bytes = |size: Option<ByteSize>| size.map(ByteSize::bytes);
    let mut chosen = WorkerConfiguration::new(cluster.place()?);
    chosen.leave = leave;
    chosen.name = said.name.or(file.name);
    chosen.directory = said.directory.or(file.directory);
    chosen.advertise = said.advertise.or(file.advertise);
    set(&mut chosen.map_slots, said.map_slots, file.map_slots);
    set(&mut chosen.reduce_slots, said.reduce_slots, file.reduce_slots);
    set(&mut chosen.bind, said.bind, file.bind);
    set(&mut chosen.rack, said.rack, file.rack);
    rack_name(&chosen.rack).map_err(|error| anyhow!("[worker] rack: {error}"))?;
    chosen.network_shuffle = said.network_shuffle || file.network_shuffle;
    chosen.encrypt_shuffle = said.encrypt_shuffle || file.encrypt_shuffle;
    set(&mut chosen.blob_bytes_max, bytes(said.blob_bytes_max), bytes(file.blob_bytes_max));
    set(&mut chosen.log_bytes_max, bytes(said.log_bytes_max), bytes(file.log_bytes_max));
    set(&mut chosen.logs_bytes_max, bytes(said.logs_bytes_max), bytes(file.logs_bytes_max));
    chosen.disk_reserve = bytes(said.disk_reserve).or(bytes(file.disk_reserve));
    chosen.segment_memory = bytes(said.segment_memory).or(bytes(file.segment_memory));
    set(&mut chosen.task_silence_max, said.task_silence_max, file.task_silence_max);
    let suspend = &mut chosen.suspend;
    set(&mut suspend.grace, said.suspend_grace, file.suspend_grace);
    suspend.memory_max = bytes(said.suspend_bytes_max).or(bytes(file.suspend_bytes_max));
    set(&mut suspend.swap_share_percent, said.suspend_swap_percent, file.suspend_swap_percent);
    set(&mut suspend.pressure_max_percent, said.suspend_pressure_percent, file.suspend_pressure_percent);
    set(&mut suspend.page_out, said.page_out.map(when), file.page_out.map(when));
    set(&mut chosen.isolation.mode, said.isolation.map(mode), file.isolation.map(mode));
    set(&mut chosen.isolation.memory_factor, said.memory_factor, file.memory_factor);
    set(&mut chosen.isolation.pass_environment, said.pass_environment, file.pass_environment);
    if chosen.isolation.memory_factor == 0 {
        bail!("memory-factor 0 leaves tasks nothing to hold; give it 1 or more, or isolation \"none\"");
    }
    if chosen.map_slots == 0 && chosen.reduce_slots == 0 {
        bail!("a worker without any slot would do nothing; give it --map-slots or --reduce-slots");
    }
    Ok(chosen)
}

fn mode(name: IsolationName) -> IsolationMode {
    match name {
        IsolationName::Auto => IsolationMode::Auto,
        IsolationName::Cgroup => IsolationMode::Cgroup,
        IsolationName::Watchdog => IsolationMode::Watchdog,
        IsolationName::None => IsolationMode::None,
    }
}

fn when(name: PageOutName) -> PageOut {
    match name {
        PageOutName::WhenShort => PageOut::WhenShort,
        PageOutName::Always => PageOut::Always,
        PageOutName::Never => PageOut::Never,
    }
}

fn undrain(arguments: &UndrainArguments, client: &mut ClusterClient) -> Result<()> {
    let workers = client.ask(ListWorkers)?;
    let mut failures = Failures::default();
    for worker in chosen(&arguments.workers, &workers, &mut failures)? {
        let reason = arguments.reason.clone();
        if failures.check(client.ask(UndrainWorker { worker, reason }))?.is_some() {
            print_error(format_args!("{worker} stays, and gets tasks again"));
        }
    }
    failures.finish()
}

fn drain(arguments: &DrainArguments, client: &mut ClusterClient) -> Result<()> {
    let workers = client.ask(ListWorkers)?;
    let mut failures = Failures::default();
    let mut drained = Vec::new();
    for worker in chosen(&arguments.workers, &workers, &mut failures)? {
        let (hand_back, reason) = (arguments.hand_back, arguments.reason.clone());
        if failures.check(client.ask(DrainWorker { worker, hand_back, reason }))?.is_some() {
            print_error(format_args!(
                "{worker} gets no more tasks and leaves when nothing of it is needed any more"
            ));
            drained.push(worker);
        }
    }
    if arguments.wait {
        while client
            .ask(ListWorkers)?
            .iter()
            .any(|worker| drained.contains(&worker.worker) && !is_gone(worker))
        {
            std::thread::sleep(LOOK);
        }
    }
    failures.finish()
}

/// The workers of these names, each once.
fn chosen(names: &[String], workers: &[WorkerSummary], failures: &mut Failures) -> Result<Vec<WorkerId>> {
    let mut chosen = Vec::new();
    for name in names {
        let worker = failures.check(find_worker(name, workers))?;
        chosen.extend(worker.filter(|worker| !chosen.contains(worker)));
    }
    Ok(chosen)
}
