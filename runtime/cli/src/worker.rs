//! `nap worker`: the daemon that runs tasks, and what operators ask about workers.
//!
//! Owns flags and listings. Does not own what the daemon does (live runtime).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use napreduce_live::{
    ByteSize, ClusterClient, PageOut, WorkerConfiguration, WorkerPhase, WorkerSummary, parse_time, run_worker,
};
use serde_json::{Value, json};

use crate::cluster::{ClusterArguments, PageOutName, WorkerTable, set};
use crate::format::{FormatArguments, moment, span, table};
use crate::ids::find_worker;
use crate::log::LogArguments;
use crate::parent::end_with_parent;

/// Between two looks at workers that are waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Run a worker, or list and drain workers
///
/// Without a command a worker runs here until it is interrupted or drained. A cluster may have any number of
/// them, on one host or several; inputs and outputs of jobs must be on storage that all of them see.
#[derive(Debug, Clone, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  nap worker                                             one more worker for the cluster of this machine
  nap worker --coordinator HOST:7000 --secret-file F --bind HERE:0   for the cluster of another
  nap worker list --wait 3                               when three are up
  nap worker drain worker_0001                           let it finish what it does, then leave"
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

    /// When memory of suspended tasks is moved to swap at once [default: when-short]
    #[arg(long, value_name = "WHEN", env = "NAPREDUCE_PAGE_OUT")]
    pub page_out: Option<PageOutName>,
}

#[derive(Debug, Clone, Args)]
struct ListArguments {
    /// Wait until so many are up
    #[arg(long, value_name = "N")]
    wait: Option<usize>,

    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    timeout: Duration,

    /// Also the last ones that were lost or have left, with when and why
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    format: FormatArguments,
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
    }
}

fn configuration(arguments: &DaemonArguments, cluster: &ClusterArguments) -> Result<WorkerConfiguration> {
    let WorkerTable {
        name,
        directory,
        map_slots,
        reduce_slots,
        bind,
        advertise,
        network_shuffle,
        encrypt_shuffle,
        blob_bytes_max,
        log_bytes_max,
        logs_bytes_max,
        disk_reserve,
        task_silence_max,
        suspend_grace,
        suspend_bytes_max,
        suspend_swap_percent,
        suspend_pressure_percent,
        page_out,
    } = cluster.configuration()?.worker;
    let bytes = |size: Option<ByteSize>| size.map(ByteSize::bytes);
    let mut chosen = WorkerConfiguration::new(cluster.place()?);
    chosen.name = arguments.name.clone().or(name);
    chosen.directory = arguments.directory.clone().or(directory);
    chosen.advertise = arguments.advertise.clone().or(advertise);
    set(&mut chosen.map_slots, arguments.map_slots, map_slots);
    set(&mut chosen.reduce_slots, arguments.reduce_slots, reduce_slots);
    set(&mut chosen.bind, arguments.bind.clone(), bind);
    chosen.network_shuffle = arguments.network_shuffle || network_shuffle.unwrap_or(false);
    chosen.encrypt_shuffle = arguments.encrypt_shuffle || encrypt_shuffle.unwrap_or(false);
    set(&mut chosen.blob_bytes_max, bytes(arguments.blob_bytes_max), blob_bytes_max);
    set(&mut chosen.log_bytes_max, bytes(arguments.log_bytes_max), log_bytes_max);
    set(&mut chosen.logs_bytes_max, bytes(arguments.logs_bytes_max), logs_bytes_max);
    chosen.disk_reserve = bytes(arguments.disk_reserve).or(disk_reserve);
    set(&mut chosen.task_silence_max, arguments.task_silence_max, task_silence_max);
    let suspend = &mut chosen.suspend;
    set(&mut suspend.grace, arguments.suspend_grace, suspend_grace);
    suspend.memory_max = bytes(arguments.suspend_bytes_max).or(suspend_bytes_max);
    set(&mut suspend.swap_share_percent, arguments.suspend_swap_percent, suspend_swap_percent);
    set(&mut suspend.pressure_max_percent, arguments.suspend_pressure_percent, suspend_pressure_percent);
    set(&mut suspend.page_out, arguments.page_out.map(when), page_out.map(when));
    if chosen.map_slots == 0 && chosen.reduce_slots == 0 {
        bail!("a worker without any slot would do nothing; give it --map-slots or --reduce-slots");
    }
    Ok(chosen)
}

fn when(name: PageOutName) -> PageOut {
    match name {
        PageOutName::WhenShort => PageOut::WhenShort,
        PageOutName::Always => PageOut::Always,
        PageOutName::Never => PageOut::Never,
    }
}

fn list(arguments: &ListArguments, client: &mut ClusterClient) -> Result<()> {
    let until = Instant::now() + arguments.timeout;
    let mut workers = client.workers()?;
    if let Some(wanted) = arguments.wait {
        loop {
            let up = workers.iter().filter(|worker| is_up(worker)).count();
            if up >= wanted {
                break;
            }
            if Instant::now() >= until {
                let are = if wanted == 1 { "worker is" } else { "workers are" };
                bail!("{up} of {wanted} {are} up after {:?}; start more with: nap worker", arguments.timeout);
            }
            std::thread::sleep(LOOK);
            workers = client.workers()?;
        }
    }
    workers.retain(|worker| arguments.all || !is_gone(worker));
    arguments.format.print(|| text(&workers), || workers.iter().map(json).collect())
}

/// Whether it may get tasks.
pub fn is_up(worker: &WorkerSummary) -> bool {
    worker.state == WorkerPhase::Up
}

/// Whether it will never be heard of again under this number.
fn is_gone(worker: &WorkerSummary) -> bool {
    matches!(worker.state, WorkerPhase::Lost | WorkerPhase::Left)
}

fn text(workers: &[WorkerSummary]) -> String {
    let row = |worker: &WorkerSummary| {
        let slots = |(slots, used): (u32, u32)| format!("{used}/{slots}");
        vec![
            worker.worker.to_string(),
            worker.name.clone(),
            worker.host.clone(),
            worker.state_in_words(),
            slots(worker.map_slots),
            slots(worker.reduce_slots),
            format!("{} ago", span(worker.silent_millis)),
            match (worker.gone_millis, worker.reason.as_deref()) {
                (Some(at), why) => {
                    format!("{} at {}: {}", worker.state, moment(at), why.unwrap_or("nobody knows why"))
                }
                (None, why) => why.unwrap_or_default().to_owned(),
            },
        ]
    };
    table(&["WORKER", "NAME", "HOST", "STATE", "MAPS", "REDUCES", "HEARD", "WHY"], workers.iter().map(row))
}

fn json(worker: &WorkerSummary) -> Value {
    let slots = |(slots, used): (u32, u32)| json!({ "slots": slots, "used": used });
    json!({
        "worker": worker.worker.to_string(),
        "name": worker.name,
        "host": worker.host,
        "state": worker.state_in_words(),
        "gone_millis": worker.gone_millis,
        "reason": worker.reason,
        "map": slots(worker.map_slots),
        "reduce": slots(worker.reduce_slots),
        "silent_millis": worker.silent_millis,
    })
}

fn drain(arguments: &DrainArguments, client: &mut ClusterClient) -> Result<()> {
    let workers = client.workers()?;
    let mut drained = Vec::new();
    for name in &arguments.workers {
        let worker = find_worker(name, &workers)?;
        client.drain(worker, arguments.hand_back)?;
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

#[cfg(test)]
mod tests {
    use napreduce_core::WorkerId;

    use super::*;

    fn worker() -> WorkerSummary {
        WorkerSummary {
            worker: WorkerId(1),
            name: "left-hand".to_owned(),
            host: "ada".to_owned(),
            state: WorkerPhase::Up,
            remarks: Vec::new(),
            gone_millis: None,
            reason: None,
            map_slots: (2, 1),
            reduce_slots: (1, 0),
            silent_millis: 150,
        }
    }

    #[test]
    fn workers_are_listed_with_their_slots() {
        assert_eq!(
            text(&[worker()]),
            "WORKER       NAME       HOST  STATE  MAPS  REDUCES  HEARD      WHY\n\
             worker_0001  left-hand  ada   up     1/2   0/1      0.1 s ago\n"
        );
        let (state, reason) = (WorkerPhase::Lost, Some("nothing was heard of it for 5.0 s".to_owned()));
        let lost = WorkerSummary { state, gone_millis: Some(1_790_000_000_000), reason, ..worker() };
        let told = text(&[lost]);
        assert!(
            told.ends_with("lost at 2026-09-21T14:13:20Z: nothing was heard of it for 5.0 s\n"),
            "{told}"
        );
        assert_eq!(
            json(&worker()).to_string(),
            r#"{"gone_millis":null,"host":"ada","map":{"slots":2,"used":1},"name":"left-hand","reason":null,"reduce":{"slots":1,"used":0},"silent_millis":150,"state":"up","worker":"worker_0001"}"#
        );
    }

    #[test]
    fn a_worker_is_found_by_number_or_name() {
        let again = WorkerSummary { worker: WorkerId(3), ..worker() };
        let workers = [worker(), again];
        for (text, id) in [("1", 1), ("worker_0001", 1), ("left-hand", 3)] {
            assert_eq!(find_worker(text, &workers).expect(text), WorkerId(id));
        }
        for text in ["2", "worker_", "", "right-hand"] {
            let error = find_worker(text, &workers).expect_err(text).to_string();
            assert_eq!(error, format!("there is no worker {text}; see: nap worker list"));
        }
    }
}
