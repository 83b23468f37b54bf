//! Settings of coordinators and workers. Flags and tables of the configuration file have the same names.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use napreduce_cluster::FsyncPolicy;
use napreduce_protocol::{ByteSize, parse_time};
use napreduce_schedulers::SchedulerName;
use serde::{Deserialize, Deserializer};

/// The table `[coordinator]`, and flags of the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CoordinatorOptions {
    /// Address to listen on; port 0 for any free port [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT", env = "NAPREDUCE_COORDINATOR_BIND")]
    pub bind: Option<String>,

    /// Interval of heartbeats of workers [default: 200ms]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_HEARTBEAT")]
    #[serde(deserialize_with = "time")]
    pub heartbeat: Option<Duration>,

    /// Time without a heartbeat after which a worker is lost [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_LIVENESS")]
    #[serde(deserialize_with = "time")]
    pub liveness: Option<Duration>,

    /// When to sync the journal to disk: always, never, or an interval [default: 100ms]
    #[arg(long, value_name = "WHEN", env = "NAPREDUCE_FSYNC")]
    #[serde(deserialize_with = "text")]
    pub fsync: Option<Fsync>,

    /// Journal size at which a snapshot replaces it [default: 64MiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_JOURNAL_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub journal_bytes_max: Option<ByteSize>,

    /// Maximum ended jobs in the history [default: 10000]
    #[arg(long, value_name = "N", env = "NAPREDUCE_HISTORY_MAX")]
    pub history_max: Option<usize>,

    /// Maximum size of the history; the oldest jobs are removed first [default: 8GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_HISTORY_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub history_bytes_max: Option<ByteSize>,

    /// Cache size for programs and side files of jobs [default: 4GiB]
    #[arg(
        long,
        value_name = "SIZE",
        env = "NAPREDUCE_COORDINATOR_BLOB_BYTES_MAX"
    )]
    #[serde(deserialize_with = "size")]
    pub blob_bytes_max: Option<ByteSize>,

    /// Disable speculative attempts of slow tasks
    #[arg(long, env = "NAPREDUCE_NO_SPECULATION")]
    #[serde(skip)]
    pub no_speculation: bool,

    #[arg(skip)]
    pub speculation: Option<bool>,

    /// Do not keep the last output of failed attempts on the coordinator
    #[arg(long, env = "NAPREDUCE_NO_FAILED_LOGS")]
    #[serde(skip)]
    pub no_failed_logs: bool,

    #[arg(skip)]
    pub failed_logs: Option<bool>,

    /// Worker crashes after which a task fails for good; 0 for never [default: 3]
    #[arg(long, value_name = "N", env = "NAPREDUCE_CRASHES_MAX")]
    pub crashes_max: Option<u32>,

    #[arg(long, value_name = "NAME", env = "NAPREDUCE_SCHEDULER", help = scheduler_help())]
    #[serde(deserialize_with = "text")]
    pub scheduler: Option<SchedulerName>,

    /// Queue names to accept under a scheduler without queues
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "NAPREDUCE_QUEUES"
    )]
    pub queues: Option<Vec<String>>,
}

/// The table `[worker]`, and flags of the same names.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Args)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WorkerOptions {
    /// Name, unique in the cluster [default: that of its last start, else derived from the host name]
    #[arg(long, value_name = "NAME", env = "NAPREDUCE_WORKER_NAME")]
    pub name: Option<String>,

    /// Directory of the worker [default: workers/NAME in the cluster directory]
    #[arg(long, value_name = "DIR", env = "NAPREDUCE_WORKER_DIRECTORY")]
    pub directory: Option<PathBuf>,

    /// Concurrent map tasks; 0 for none [default: the number of cores]
    #[arg(long, value_name = "N", env = "NAPREDUCE_MAP_SLOTS")]
    pub map_slots: Option<u32>,

    /// Concurrent reduce tasks; 0 for none [default: the number of cores]
    #[arg(long, value_name = "N", env = "NAPREDUCE_REDUCE_SLOTS")]
    pub reduce_slots: Option<u32>,

    /// Address to serve map output and logs on; port 0 for any free port [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT", env = "NAPREDUCE_WORKER_BIND")]
    pub bind: Option<String>,

    /// Address under which others reach it [default: the one of --bind]
    #[arg(long, value_name = "HOST[:PORT]", env = "NAPREDUCE_WORKER_ADVERTISE")]
    pub advertise: Option<String>,

    /// Rack; a checkpoint is restored in its rack if possible [default: /default-rack]
    #[arg(long, value_name = "NAME", value_parser = rack_name, env = "NAPREDUCE_WORKER_RACK")]
    pub rack: Option<String>,

    /// Fetch map output over the network even if it is on the same machine
    #[arg(long, env = "NAPREDUCE_NETWORK_SHUFFLE")]
    pub network_shuffle: bool,

    /// Encrypt map output on the network
    #[arg(long, env = "NAPREDUCE_ENCRYPT_SHUFFLE")]
    pub encrypt_shuffle: bool,

    /// Cache size for programs and side files of jobs [default: 4GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_WORKER_BLOB_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub blob_bytes_max: Option<ByteSize>,

    /// Maximum size of one log of an attempt [default: 16MiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_LOG_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub log_bytes_max: Option<ByteSize>,

    /// Maximum size of all logs of ended jobs [default: 1GiB]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_LOGS_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub logs_bytes_max: Option<ByteSize>,

    /// Free disk space below which it receives no tasks [default: 64MiB, or 2 % of a small disk]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_DISK_RESERVE")]
    #[serde(deserialize_with = "size")]
    pub disk_reserve: Option<ByteSize>,

    /// Memory for map output; 0 for none [default: half of the spare memory]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_SEGMENT_MEMORY")]
    #[serde(deserialize_with = "size")]
    pub segment_memory: Option<ByteSize>,

    /// Time without a message after which a task process is killed [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_TASK_SILENCE_MAX")]
    #[serde(deserialize_with = "time")]
    pub task_silence_max: Option<Duration>,

    /// Time for a task to reach a record boundary; after it, the task is stopped where it is [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_SUSPEND_GRACE")]
    #[serde(deserialize_with = "time")]
    pub suspend_grace: Option<Duration>,

    /// Maximum memory of all suspended tasks [default: unlimited]
    #[arg(long, value_name = "SIZE", env = "NAPREDUCE_SUSPEND_BYTES_MAX")]
    #[serde(deserialize_with = "size")]
    pub suspend_bytes_max: Option<ByteSize>,

    /// Share of free swap that suspended tasks may use [default: 80]
    #[arg(long, value_name = "PERCENT", env = "NAPREDUCE_SUSPEND_SWAP_PERCENT")]
    pub suspend_swap_percent: Option<u32>,

    /// Memory pressure above which nothing is suspended [default: 10]
    #[arg(
        long,
        value_name = "PERCENT",
        env = "NAPREDUCE_SUSPEND_PRESSURE_PERCENT"
    )]
    pub suspend_pressure_percent: Option<u32>,

    /// How to limit the memory of tasks [default: auto]
    #[arg(long, value_name = "HOW", env = "NAPREDUCE_ISOLATION")]
    pub isolation: Option<IsolationName>,

    /// Memory limit of an attempt: 256 MiB plus this many times its task memory [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), env = "NAPREDUCE_MEMORY_FACTOR")]
    pub memory_factor: Option<u32>,

    /// Environment variables to pass to tasks besides PATH, HOME, LANG and the like; AWS_* for a prefix
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "NAPREDUCE_PASS_ENVIRONMENT"
    )]
    pub pass_environment: Option<Vec<String>>,

    /// When to move the memory of a suspended task to swap [default: when-short]
    #[arg(long, value_name = "WHEN", env = "NAPREDUCE_PAGE_OUT")]
    pub page_out: Option<PageOutName>,

    /// The flags of this and the next two are in `LeaveArguments`, which other commands have as well.
    #[arg(skip)]
    pub on_terminate: Option<OnTerminateName>,

    #[arg(skip)]
    #[serde(deserialize_with = "time")]
    pub grace: Option<Duration>,

    #[arg(skip)]
    #[serde(deserialize_with = "time")]
    pub time_limit: Option<Duration>,
}

/// When the journal is synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fsync(pub FsyncPolicy);

impl FromStr for Fsync {
    type Err = String;

    fn from_str(text: &str) -> Result<Fsync, String> {
        Ok(Fsync(match text {
            "always" => FsyncPolicy::Always,
            "never" => FsyncPolicy::Never,
            interval => FsyncPolicy::Interval(parse_time(interval).map_err(|_| {
                format!("invalid value {text:?}: expected always, never or a time such as 100ms")
            })?),
        }))
    }
}

impl Display for Fsync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FsyncPolicy::Always => f.write_str("always"),
            FsyncPolicy::Never => f.write_str("never"),
            FsyncPolicy::Interval(interval) => write!(f, "{}us", interval.as_micros()),
        }
    }
}

/// The effect of SIGTERM on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum OnTerminateName {
    /// Checkpoint running tasks, which continue elsewhere, then leave
    Drain,
    /// Leave at once; running tasks start over elsewhere
    Leave,
}

/// How the memory of tasks is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationName {
    /// cgroup if available, else watchdog
    Auto,
    /// Control groups; without them the worker does not start
    Cgroup,
    /// Checks by the worker, several times per second
    Watchdog,
    /// No limit
    None,
}

/// When the memory of a suspended task is moved to swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PageOutName {
    /// If less memory is available than a task may use
    WhenShort,
    /// Always, if there is swap
    Always,
    /// Never; leave it to the kernel
    Never,
}

fn scheduler_help() -> String {
    format!(
        "Scheduler: {}; parameters are in the configuration file [default: {}]",
        SchedulerName::listed(),
        SchedulerName::default()
    )
}

/// Parses the name of a rack, which must fit into a listing.
pub fn rack_name(name: &str) -> Result<String, String> {
    let odd = |letter: char| letter.is_whitespace() || letter.is_control();
    if name.is_empty() || name.len() > 255 || name.contains(odd) {
        return Err(format!(
            "invalid rack {name:?}: expected 1 to 255 bytes without spaces, such as /row-1/rack-3"
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
    parse_time(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// Reads a number of bytes, or text with a unit.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fsync_reads_words_and_intervals() {
        assert_eq!("always".parse(), Ok(Fsync(FsyncPolicy::Always)));
        assert_eq!("never".parse(), Ok(Fsync(FsyncPolicy::Never)));
        assert_eq!(
            "100ms".parse(),
            Ok(Fsync(FsyncPolicy::Interval(Duration::from_millis(100))))
        );
        assert!(
            "often"
                .parse::<Fsync>()
                .expect_err("no time")
                .contains("always, never or a time")
        );
    }
}
