//! The configuration file: TOML with one table for each part of a cluster.
//!
//! Owns its names and their types. Does not own defaults (the live runtime) nor precedence (each command).

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, Result};
use napreduce_core::PreemptionSettings;
use napreduce_live::{ByteSize, parse_time};
use napreduce_schedulers::{SchedulerName, SchedulerTables};
use serde::{Deserialize, Deserializer};

use super::{Fsync, WebAddress};

/// Everything a file may say; what it does not say is left to defaults.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Configuration {
    pub client: ClientTable,
    pub coordinator: CoordinatorTable,
    pub worker: WorkerTable,
    pub up: UpTable,
    pub web: WebTable,
    /// `[preemption]`: what becomes of a primitive that a scheduler prefers.
    pub preemption: Option<PreemptionSettings>,
    /// `[scheduler.fair]`, `[scheduler.capacity]` ...: the values of each scheduler.
    pub scheduler: SchedulerTables,
}

/// `[client]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClientTable {
    pub coordinator: Option<String>,
    pub secret_file: Option<PathBuf>,
}

/// `[coordinator]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CoordinatorTable {
    pub bind: Option<String>,
    #[serde(deserialize_with = "time")]
    pub heartbeat: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub liveness: Option<Duration>,
    #[serde(deserialize_with = "text")]
    pub fsync: Option<Fsync>,
    #[serde(deserialize_with = "size")]
    pub journal_bytes_max: Option<u64>,
    pub history_max: Option<usize>,
    #[serde(deserialize_with = "size")]
    pub history_bytes_max: Option<u64>,
    #[serde(deserialize_with = "size")]
    pub blob_bytes_max: Option<u64>,
    pub speculation: Option<bool>,
    pub crashes_max: Option<u32>,
    #[serde(deserialize_with = "text")]
    pub scheduler: Option<SchedulerName>,
    pub queues: Option<Vec<String>>,
}

/// `[worker]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WorkerTable {
    pub name: Option<String>,
    pub directory: Option<PathBuf>,
    pub map_slots: Option<u32>,
    pub reduce_slots: Option<u32>,
    pub bind: Option<String>,
    pub advertise: Option<String>,
    pub rack: Option<String>,
    pub network_shuffle: Option<bool>,
    pub encrypt_shuffle: Option<bool>,
    #[serde(deserialize_with = "size")]
    pub blob_bytes_max: Option<u64>,
    #[serde(deserialize_with = "size")]
    pub log_bytes_max: Option<u64>,
    #[serde(deserialize_with = "size")]
    pub logs_bytes_max: Option<u64>,
    #[serde(deserialize_with = "size")]
    pub disk_reserve: Option<u64>,
    #[serde(deserialize_with = "size")]
    pub segment_memory: Option<u64>,
    #[serde(deserialize_with = "time")]
    pub task_silence_max: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub suspend_grace: Option<Duration>,
    #[serde(deserialize_with = "size")]
    pub suspend_bytes_max: Option<u64>,
    pub suspend_swap_percent: Option<u32>,
    pub suspend_pressure_percent: Option<u32>,
    pub page_out: Option<PageOutName>,
    pub isolation: Option<IsolationName>,
    pub memory_factor: Option<u32>,
    pub pass_environment: Option<Vec<String>>,
    pub on_terminate: Option<OnTerminateName>,
    #[serde(deserialize_with = "time")]
    pub grace: Option<Duration>,
    #[serde(deserialize_with = "time")]
    pub time_limit: Option<Duration>,
}

/// What SIGTERM means to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum OnTerminateName {
    /// Save what runs, so that it goes on elsewhere, then leave
    Drain,
    /// Give back at once what runs, to be done again elsewhere
    Leave,
}

/// What keeps tasks from taking the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PageOutName {
    /// When less is available than a task may use
    WhenShort,
    /// Whenever there is swap
    Always,
    /// Never; the kernel does it when it has to
    Never,
}

/// `[up]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct UpTable {
    pub workers: Option<u32>,
    pub map_slots: Option<u32>,
    pub reduce_slots: Option<u32>,
}

/// `[web]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WebTable {
    pub bind: Option<WebAddress>,
    pub hosts: Vec<String>,
}

impl Configuration {
    pub fn read(path: &Path) -> Result<Configuration> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
    }

    pub fn read_if_there(path: &Path) -> Result<Configuration> {
        match path.try_exists() {
            Ok(true) => Configuration::read(path),
            Ok(false) => Ok(Configuration::default()),
            // The way to it is missing, or a file stands in it; whoever needs the directory will say so.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Configuration::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

fn text<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
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
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(deserializer)? {
        Size::Bytes(bytes) => Ok(Some(bytes)),
        Size::Text(text) => {
            text.parse().map(|size: ByteSize| Some(size.bytes())).map_err(serde::de::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Configuration, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let configuration = read(
            "[coordinator]\nbind = \"0.0.0.0:7000\"\nliveness = \"10s\"\nfsync = \"50ms\"\njournal-bytes-max = \"1MiB\"\n\
             blob-bytes-max = 512\nspeculation = false\nscheduler = \"fifo\"\n[worker]\nmap-slots = 4\n[up]\nworkers = 2\n",
        )
        .expect("it is understood");
        let coordinator = CoordinatorTable {
            bind: Some("0.0.0.0:7000".to_owned()),
            liveness: Some(Duration::from_secs(10)),
            fsync: Some("50ms".parse().expect("a time")),
            journal_bytes_max: Some(1 << 20),
            blob_bytes_max: Some(512),
            speculation: Some(false),
            scheduler: Some(SchedulerName::Fifo),
            ..CoordinatorTable::default()
        };
        assert_eq!(configuration.coordinator, coordinator);
        assert_eq!((configuration.worker.map_slots, configuration.up.workers), (Some(4), Some(2)));
    }

    #[test]
    fn what_is_not_known_is_named() {
        for (text, says) in [
            ("[coordinator]\nbinde = \"x\"", "unknown field `binde`"),
            ("[coordinator]\nliveness = \"soon\"", "\"soon\" is not a time"),
            ("[coordinator]\nscheduler = \"fare\"", "allowed: fifo"),
            ("[scheduler.fifo]\nignore = true", "unknown field `ignore`"),
            ("[preemption]\nsuspended-max = -1", "\"-1\" is neither a number of attempts nor \"unlimited\""),
            (
                "[preemption]\nsuspended-max = \"all\"",
                "\"all\" is neither a number of attempts nor \"unlimited\"",
            ),
            ("[worker]\nlog-bytes-max = \"many\"", "many"),
            ("[cluster]\n", "unknown field `cluster`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_says_nothing_unless_it_was_asked_for() {
        let path = Path::new("/nowhere/napreduce.toml");
        assert_eq!(Configuration::read_if_there(path).expect("nothing"), Configuration::default());
        let error = Configuration::read(path).expect_err("it is not there").to_string();
        assert_eq!(error, "cannot read /nowhere/napreduce.toml");
    }
}
