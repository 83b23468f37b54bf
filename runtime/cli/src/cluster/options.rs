//! What can be said of a coordinator and of a worker: flags and a table of the configuration file have the
//! same names.
//!
//! Owns names, types and help of both. Does not own defaults (the live runtime) nor precedence (each
//! command).

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use napreduce_protocol::{ByteSize, parse_time};
use napreduce_schedulers::SchedulerName;
use serde::{Deserialize, Deserializer};

use super::Fsync;

/// What `[coordinator]` says, and flags of the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CoordinatorOptions {
    /// Where to listen; port 0 means any [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT", env = "NAPREDUCE_COORDINATOR_BIND")]
    pub bind: Option<String>,

    /// How often workers say that they are there [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_HEARTBEAT")]
    #[serde(deserialize_with = "time")]
    pub heartbeat: Option<Duration>,

    /// A worker that is silent for so long is lost [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_LIVENESS")]
    #[serde(deserialize_with = "time")]
    pub liveness: Option<Duration>,

    /// When the journal is forced to the disk: always, never, or at an interval such as 100ms [default:
    /// 100ms]
    #[arg(long, value_name = "WHEN", env = "NAPREDUCE_FSYNC")]
    #[serde(deserialize_with = "text")]
    pub fsync: Option<Fsync>,

    /// Growth of the journal after which a snapshot replaces it [default: 64MiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_JOURNAL_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub journal_bytes_max: Option<ByteSize>,

    /// Ended jobs that are kept in history [default: 10000]
    #[arg(long, value_name = "N", env = "NAPREDUCE_HISTORY_MAX")]
    pub history_max: Option<usize>,

    /// Bytes of their files that are kept; the oldest jobs go first [default: 8GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_HISTORY_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub history_bytes_max: Option<ByteSize>,

    /// Programs and side files that are kept for later jobs [default: 4GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_COORDINATOR_BLOB_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub blob_bytes_max: Option<ByteSize>,

    /// Give no straggler a second attempt that races it
    #[arg(long, env = "NAPREDUCE_NO_SPECULATION")]
    #[serde(skip)]
    pub no_speculation: bool,

    /// The file's word for it.
    #[arg(skip)]
    pub speculation: Option<bool>,

    /// Keep nothing of what failed attempts have printed; else its end is there when their worker is not
    #[arg(long, env = "NAPREDUCE_NO_FAILED_LOGS")]
    #[serde(skip)]
    pub no_failed_logs: bool,

    /// The file's word for it.
    #[arg(skip)]
    pub failed_logs: Option<bool>,

    /// A task fails for good when so many workers died while it ran there alone; 0 for never [default: 3]
    #[arg(long, value_name = "N", env = "NAPREDUCE_CRASHES_MAX")]
    pub crashes_max: Option<u32>,

    #[arg(long, value_name = "NAME", env = "NAPREDUCE_SCHEDULER", help = scheduler_help())]
    #[serde(deserialize_with = "text")]
    pub scheduler: Option<SchedulerName>,

    /// Queues that jobs may name although the scheduler makes no difference between them, beside `default`
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "NAPREDUCE_QUEUES")]
    pub queues: Option<Vec<String>>,
}

/// What `[worker]` says, and flags of the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WorkerOptions {
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
    #[serde(deserialize_with = "size")]
    pub blob_bytes_max: Option<ByteSize>,

    /// What is kept of each log of an attempt [default: 16MiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_LOG_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub log_bytes_max: Option<ByteSize>,

    /// What is kept of the logs of ended jobs [default: 1GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_LOGS_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub logs_bytes_max: Option<ByteSize>,

    /// What must be free on its disk, or it takes no tasks [default: 64MiB, or a fiftieth of a small disk]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_DISK_RESERVE")]
    #[serde(deserialize_with = "size")]
    pub disk_reserve: Option<ByteSize>,

    /// Map output that stays in memory; 0 for none [default: half of what there is to spare]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_SEGMENT_MEMORY")]
    #[serde(deserialize_with = "size")]
    pub segment_memory: Option<ByteSize>,

    /// A task process that says nothing for so long is ended
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_TASK_SILENCE_MAX")]
    #[serde(deserialize_with = "time")]
    pub task_silence_max: Option<Duration>,

    /// How long a task may take to come to a record before it is suspended where it is [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_SUSPEND_GRACE")]
    #[serde(deserialize_with = "time")]
    pub suspend_grace: Option<Duration>,

    /// What suspended tasks may hold in any case [default: no such limit]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_SUSPEND_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
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

    /// This and the rest are flags of the commands: some have them without the others.
    #[arg(skip)]
    pub on_terminate: Option<OnTerminateName>,

    #[arg(skip)]
    #[serde(deserialize_with = "time")]
    pub grace: Option<Duration>,

    #[arg(skip)]
    #[serde(deserialize_with = "time")]
    pub time_limit: Option<Duration>,
}

/// What SIGTERM means to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum OnTerminateName {
    /// Save what runs, so that it goes on elsewhere, then leave
    Drain,
    /// Give back at once what runs, to be done again elsewhere
    Leave,
}

/// What keeps tasks from taking the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationName {
    /// Control groups where they can be made, else the watchdog
    Auto,
    /// Control groups, or the worker does not start
    Cgroup,
    /// The worker looks several times a second at what each task holds
    Watchdog,
    /// Nothing
    None,
}

/// When memory of suspended tasks is moved to swap at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PageOutName {
    /// When less is available than a task may use
    WhenShort,
    /// Whenever there is swap
    Always,
    /// Never; the kernel does it when it has to
    Never,
}

fn scheduler_help() -> String {
    format!(
        "Who gets a free slot: {}; its values are in its table of the configuration file [default: {}]",
        SchedulerName::listed(),
        SchedulerName::default()
    )
}

/// A name that a listing can show.
pub fn rack_name(name: &str) -> Result<String, String> {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    if name.is_empty() || name.len() > 255 || name.contains(odd) {
        return Err(format!(
            "{name:?} is no name; give up to 255 bytes without blanks, such as /row-1/rack-3"
        ));
    }
    Ok(name.to_owned())
}

pub fn text<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_time(&text).map(Some).map_err(serde::de::Error::custom)
}

/// A number of bytes, or text with a unit.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(deserializer)? {
        Size::Bytes(bytes) => Ok(Some(ByteSize::new(bytes))),
        Size::Text(text) => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}
