//! `nap worker`: the daemon that runs tasks, and what operators ask about workers.
//!
//! Owns flags and listings. Does not own what the daemon does (live runtime).

mod leaving;
mod listing;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use napreduce_live::{
    ByteSize, ClusterClient, IsolationMode, PageOut, WorkerConfiguration, parse_time, run_worker,
};

use crate::cluster::{ClusterArguments, IsolationName, PageOutName, WorkerTable, set};
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

    /// Its name, unique in the cluster [default: the one its directory has, else one made from the host's]
    #[arg(long, value_name = "NAME", env = "NAPREDUCE_WORKER_NAME")]
    pub name: Option<String>,

    /// Its own directory [default: workers/NAME in the cluster directory]
    #[arg(long, value_name = "DIR", env = "NAPREDUCE_WORKER_DIRECTORY")]
    pub directory: Option<PathBuf>,

    /// Map tasks at a time; 0 for a worker that only reduces [default: the number of cores]
    #[arg(long, value_name = "N", env = "NAPREDUCE_MAP_SLOTS")]
    pub map_slots: Option<u32>,

    /// Reduce tasks at a time; 0 for one that only maps [default: the number of cores]
    #[arg(long, value_name = "N", env = "NAPREDUCE_REDUCE_SLOTS")]
    pub reduce_slots: Option<u32>,

    /// Where to serve map output and logs; port 0 means any [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT", env = "NAPREDUCE_WORKER_BIND")]
    pub bind: Option<String>,

    /// The host, or HOST:PORT, under which others reach that [default: what it binds to]
    #[arg(long, value_name = "HOST", env = "NAPREDUCE_WORKER_ADVERTISE")]
    pub advertise: Option<String>,

    /// The name of its rack: saved work goes on near where it was, before it goes on elsewhere [default:
    /// /default-rack]
    #[arg(long, value_name = "NAME", value_parser = rack_name, env = "NAPREDUCE_WORKER_RACK")]
    pub rack: Option<String>,

    /// Fetch map output through connections even where it could be read in place
    #[arg(long, env = "NAPREDUCE_NETWORK_SHUFFLE")]
    pub network_shuffle: bool,

    /// Encrypt map output on its way
    #[arg(long, env = "NAPREDUCE_ENCRYPT_SHUFFLE")]
    pub encrypt_shuffle: bool,

    /// Programs and side files that are kept for later jobs [default: 4GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_WORKER_BLOB_BYTES_MAX")]
    pub blob_bytes_max: Option<ByteSize>,

    /// What is kept of each log of an attempt [default: 16MiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_LOG_BYTES_MAX")]
    pub log_bytes_max: Option<ByteSize>,

    /// What is kept of the logs of ended jobs [default: 1GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_LOGS_BYTES_MAX")]
    pub logs_bytes_max: Option<ByteSize>,

    /// What must be free on its disk, or it takes no tasks [default: 64MiB, or a fiftieth of a small disk]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_DISK_RESERVE")]
    pub disk_reserve: Option<ByteSize>,

    /// Map output that stays in memory; 0 for none [default: half of what there is to spare]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_SEGMENT_MEMORY")]
    pub segment_memory: Option<ByteSize>,

    /// A task process that says nothing for so long is ended
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_TASK_SILENCE_MAX")]
    pub task_silence_max: Option<Duration>,

    /// How long a task may take to come to a record before it is suspended where it is [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_SUSPEND_GRACE")]
    pub suspend_grace: Option<Duration>,

    /// What suspended tasks may hold in any case [default: no such limit]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_SUSPEND_BYTES_MAX")]
    pub suspend_bytes_max: Option<ByteSize>,

    /// What share of free swap they may fill, beside spare memory [default: 80]
    #[arg(long, value_name = "PERCENT", env = "NAPREDUCE_SUSPEND_SWAP_PERCENT")]
    pub suspend_swap_percent: Option<u32>,

    /// Nothing is suspended while everything waits for memory for more than this part of the time [default:
    /// 10]
    #[arg(long, value_name = "PERCENT", env = "NAPREDUCE_SUSPEND_PRESSURE_PERCENT")]
    pub suspend_pressure_percent: Option<u32>,

    /// What keeps tasks from taking the machine [default: auto, control groups where they can be made]
    #[arg(long, value_name = "HOW", env = "NAPREDUCE_ISOLATION")]
    pub isolation: Option<IsolationName>,

    /// How many times its task memory an attempt may hold, beside 256 MiB for its program [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), env = "NAPREDUCE_MEMORY_FACTOR")]
    pub memory_factor: Option<u32>,

    /// Variables of this environment that tasks find in theirs, beside PATH, HOME, LANG and their like;
    /// AWS_* are all that begin so
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "NAPREDUCE_PASS_ENVIRONMENT")]
    pub pass_environment: Option<Vec<String>>,

    /// When memory of suspended tasks is moved to swap at once [default: when-short]
    #[arg(long, value_name = "WHEN", env = "NAPREDUCE_PAGE_OUT")]
    pub page_out: Option<PageOutName>,

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

fn configuration(arguments: &DaemonArguments, cluster: &ClusterArguments) -> Result<WorkerConfiguration> {
    let file = cluster.configuration()?.worker;
    let leave = limited(arguments.leave.rules(&file)?, arguments.time_limit.or(file.time_limit))?;
    let WorkerTable {
        name,
        directory,
        map_slots,
        reduce_slots,
        bind,
        advertise,
        rack,
        network_shuffle,
        encrypt_shuffle,
        blob_bytes_max,
        log_bytes_max,
        logs_bytes_max,
        disk_reserve,
        segment_memory,
        task_silence_max,
        suspend_grace,
        suspend_bytes_max,
        suspend_swap_percent,
        suspend_pressure_percent,
        page_out,
        isolation,
        memory_factor,
        pass_environment,
        on_terminate: _,
        grace: _,
        time_limit: _,
    } = file;
    let bytes = |size: Option<ByteSize>| size.map(ByteSize::bytes);
    let mut chosen = WorkerConfiguration::new(cluster.place()?);
    chosen.leave = leave;
    chosen.name = arguments.name.clone().or(name);
    chosen.directory = arguments.directory.clone().or(directory);
    chosen.advertise = arguments.advertise.clone().or(advertise);
    set(&mut chosen.map_slots, arguments.map_slots, map_slots);
    set(&mut chosen.reduce_slots, arguments.reduce_slots, reduce_slots);
    set(&mut chosen.bind, arguments.bind.clone(), bind);
    set(&mut chosen.rack, arguments.rack.clone(), rack);
    rack_name(&chosen.rack).map_err(|error| anyhow!("[worker] rack: {error}"))?;
    chosen.network_shuffle = arguments.network_shuffle || network_shuffle.unwrap_or(false);
    chosen.encrypt_shuffle = arguments.encrypt_shuffle || encrypt_shuffle.unwrap_or(false);
    set(&mut chosen.blob_bytes_max, bytes(arguments.blob_bytes_max), blob_bytes_max);
    set(&mut chosen.log_bytes_max, bytes(arguments.log_bytes_max), log_bytes_max);
    set(&mut chosen.logs_bytes_max, bytes(arguments.logs_bytes_max), logs_bytes_max);
    chosen.disk_reserve = bytes(arguments.disk_reserve).or(disk_reserve);
    chosen.segment_memory = bytes(arguments.segment_memory).or(segment_memory);
    set(&mut chosen.task_silence_max, arguments.task_silence_max, task_silence_max);
    let suspend = &mut chosen.suspend;
    set(&mut suspend.grace, arguments.suspend_grace, suspend_grace);
    suspend.memory_max = bytes(arguments.suspend_bytes_max).or(suspend_bytes_max);
    set(&mut suspend.swap_share_percent, arguments.suspend_swap_percent, suspend_swap_percent);
    set(&mut suspend.pressure_max_percent, arguments.suspend_pressure_percent, suspend_pressure_percent);
    set(&mut suspend.page_out, arguments.page_out.map(when), page_out.map(when));
    set(&mut chosen.isolation.mode, arguments.isolation.map(mode), isolation.map(mode));
    set(&mut chosen.isolation.memory_factor, arguments.memory_factor, memory_factor);
    set(&mut chosen.isolation.pass_environment, arguments.pass_environment.clone(), pass_environment);
    if chosen.isolation.memory_factor == 0 {
        bail!("memory-factor 0 leaves tasks nothing to hold; give it 1 or more, or isolation \"none\"");
    }
    if chosen.map_slots == 0 && chosen.reduce_slots == 0 {
        bail!("a worker without any slot would do nothing; give it --map-slots or --reduce-slots");
    }
    Ok(chosen)
}

/// A name that a listing can show.
fn rack_name(name: &str) -> Result<String, String> {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    if name.is_empty() || name.len() > 255 || name.contains(odd) {
        return Err(format!(
            "{name:?} is no name; give up to 255 bytes without blanks, such as /row-1/rack-3"
        ));
    }
    Ok(name.to_owned())
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
    let workers = client.workers()?;
    for name in &arguments.workers {
        let worker = find_worker(name, &workers)?;
        client.undrain(worker, &arguments.reason)?;
        eprintln!("{worker} stays, and gets tasks again");
    }
    Ok(())
}

fn drain(arguments: &DrainArguments, client: &mut ClusterClient) -> Result<()> {
    let workers = client.workers()?;
    let mut drained = Vec::new();
    for name in &arguments.workers {
        let worker = find_worker(name, &workers)?;
        client.drain(worker, arguments.hand_back, &arguments.reason)?;
        eprintln!("{worker} gets no more tasks and leaves when nothing of it is needed any more");
        drained.push(worker);
    }
    if arguments.wait {
        while client.workers()?.iter().any(|worker| drained.contains(&worker.worker) && !is_gone(worker)) {
            std::thread::sleep(LOOK);
        }
    }
    Ok(())
}
