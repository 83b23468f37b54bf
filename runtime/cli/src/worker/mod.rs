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
use crate::worker::listing::{ListArguments, list};

pub use leaving::LeaveArguments;
pub use listing::{is_gone, is_up, text as workers_text};

/// Interval of listings while waiting for workers.
const LOOK: Duration = Duration::from_millis(100);

/// Run a worker, or list and drain workers
///
/// Without a subcommand a worker runs until it is interrupted or drained. All workers of a cluster must see
/// the inputs and outputs of its jobs. On SIGTERM it checkpoints its tasks and leaves (--on-terminate,
/// --grace).
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  nap worker                                 join the cluster of this machine
  nap worker --coordinator HOST:7000 --secret-file F --bind HERE:0
  nap worker list --wait 3                   wait until three are up
  nap worker drain worker_0001 --reason 'new disk'
  nap worker undrain worker_0001"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    pub daemon: DaemonArguments,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// List workers
    List(ListArguments),
    /// Stop workers after their running tasks
    Drain(DrainArguments),
    /// Cancel a drain, so that workers get tasks again
    Undrain(UndrainArguments),
}

/// The flags of the worker daemon.
#[derive(Debug, Clone, Default, Args)]
pub struct DaemonArguments {
    #[command(flatten)]
    pub options: WorkerOptions,

    #[command(flatten)]
    pub leave: LeaveArguments,

    /// Wall-time limit of the worker, which drains before it is reached [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_TIME_LIMIT")]
    pub time_limit: Option<Duration>,

    /// Last, since its help heading would apply to the flags after it.
    #[command(flatten)]
    pub log: LogArguments,
}

#[derive(Debug, Clone, Args)]
struct DrainArguments {
    /// worker_0001, 1, or the worker's name
    #[arg(value_name = "WORKER", required = true)]
    workers: Vec<String>,

    /// Kill running tasks, which start over elsewhere, instead of finishing them
    #[arg(long)]
    hand_back: bool,

    /// Wait until the workers have left
    #[arg(long)]
    wait: bool,

    /// Reason, shown in listings and the coordinator's log [default: requested by nap worker drain]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "requested by nap worker drain",
        hide_default_value = true
    )]
    reason: String,
}

#[derive(Debug, Clone, Args)]
struct UndrainArguments {
    /// worker_0001, 1, or the worker's name
    #[arg(value_name = "WORKER", required = true)]
    workers: Vec<String>,

    /// Reason, shown in the coordinator's log [default: requested by nap worker undrain]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "requested by nap worker undrain",
        hide_default_value = true
    )]
    reason: String,
}

/// Runs the daemon or a subcommand.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    match &arguments.command {
        None => {
            end_with_parent()?;
            let configuration = configuration(&arguments.daemon, cluster)?;
            arguments
                .daemon
                .log
                .start(configuration.name.as_deref().unwrap_or("worker"))?;
            Ok(run_worker(&configuration)?)
        }
        Some(Command::List(arguments)) => list(arguments, cluster),
        Some(Command::Drain(arguments)) => drain(arguments, &mut cluster.connect()?),
        Some(Command::Undrain(arguments)) => undrain(arguments, &mut cluster.connect()?),
    }
}

/// Returns the settings of the daemon. Errors are usage errors.
pub fn configuration(
    arguments: &DaemonArguments,
    cluster: &ClusterArguments,
) -> Result<WorkerConfiguration> {
    choose(arguments, cluster).map_err(usage)
}

fn choose(arguments: &DaemonArguments, cluster: &ClusterArguments) -> Result<WorkerConfiguration> {
    let file = cluster.configuration()?.worker;
    let leave = limited(
        arguments.leave.rules(&file)?,
        arguments.time_limit.or(file.time_limit),
    )?;
    let flags = arguments.options.clone();
    let bytes = |size: Option<ByteSize>| size.map(ByteSize::bytes);
    let mut chosen = WorkerConfiguration::new(cluster.place()?);
    chosen.leave = leave;
    chosen.name = flags.name.or(file.name);
    chosen.directory = flags.directory.or(file.directory);
    chosen.advertise = flags.advertise.or(file.advertise);
    set(&mut chosen.map_slots, flags.map_slots, file.map_slots);
    set(
        &mut chosen.reduce_slots,
        flags.reduce_slots,
        file.reduce_slots,
    );
    set(&mut chosen.bind, flags.bind, file.bind);
    set(&mut chosen.rack, flags.rack, file.rack);
    rack_name(&chosen.rack).map_err(|error| anyhow!("[worker] rack: {error}"))?;
    chosen.network_shuffle = flags.network_shuffle || file.network_shuffle;
    chosen.encrypt_shuffle = flags.encrypt_shuffle || file.encrypt_shuffle;
    set(
        &mut chosen.blob_bytes_max,
        bytes(flags.blob_bytes_max),
        bytes(file.blob_bytes_max),
    );
    set(
        &mut chosen.log_bytes_max,
        bytes(flags.log_bytes_max),
        bytes(file.log_bytes_max),
    );
    set(
        &mut chosen.logs_bytes_max,
        bytes(flags.logs_bytes_max),
        bytes(file.logs_bytes_max),
    );
    chosen.disk_reserve = bytes(flags.disk_reserve).or(bytes(file.disk_reserve));
    chosen.segment_memory = bytes(flags.segment_memory).or(bytes(file.segment_memory));
    set(
        &mut chosen.task_silence_max,
        flags.task_silence_max,
        file.task_silence_max,
    );
    let suspend = &mut chosen.suspend;
    set(&mut suspend.grace, flags.suspend_grace, file.suspend_grace);
    suspend.memory_max = bytes(flags.suspend_bytes_max).or(bytes(file.suspend_bytes_max));
    set(
        &mut suspend.swap_share_percent,
        flags.suspend_swap_percent,
        file.suspend_swap_percent,
    );
    set(
        &mut suspend.pressure_max_percent,
        flags.suspend_pressure_percent,
        file.suspend_pressure_percent,
    );
    set(
        &mut suspend.page_out,
        flags.page_out.map(when),
        file.page_out.map(when),
    );
    set(
        &mut chosen.isolation.mode,
        flags.isolation.map(mode),
        file.isolation.map(mode),
    );
    set(
        &mut chosen.isolation.memory_factor,
        flags.memory_factor,
        file.memory_factor,
    );
    set(
        &mut chosen.isolation.pass_environment,
        flags.pass_environment,
        file.pass_environment,
    );
    if chosen.isolation.memory_factor == 0 {
        bail!("memory-factor 0: must be at least 1; for no limit, set isolation = \"none\"");
    }
    if chosen.map_slots == 0 && chosen.reduce_slots == 0 {
        bail!("no slots: --map-slots and --reduce-slots are 0; give one of them 1 or more");
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
        if failures
            .check(client.ask(UndrainWorker { worker, reason }))?
            .is_some()
        {
            print_error(format_args!("{worker} is no longer draining"));
        }
    }
    failures.finish()
}

fn drain(arguments: &DrainArguments, client: &mut ClusterClient) -> Result<()> {
    let workers = client.ask(ListWorkers)?;
    let mut failures = Failures::default();
    let mut drained = Vec::new();
    for worker in chosen(&arguments.workers, &workers, &mut failures)? {
        let hand_back = arguments.hand_back;
        let reason = arguments.reason.clone();
        if failures
            .check(client.ask(DrainWorker {
                worker,
                hand_back,
                reason,
            }))?
            .is_some()
        {
            print_error(format_args!(
                "{worker} is draining: it gets no more tasks, and leaves when its output is no longer needed"
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

/// Finds the workers of these names, each once.
fn chosen(
    names: &[String],
    workers: &[WorkerSummary],
    failures: &mut Failures,
) -> Result<Vec<WorkerId>> {
    let mut chosen = Vec::new();
    for name in names {
        let worker = failures.check(find_worker(name, workers))?;
        chosen.extend(worker.filter(|worker| !chosen.contains(worker)));
    }
    Ok(chosen)
}
