//! The configuration file: TOML with one table for each part of a cluster. Settings of daemons are flags as well
//! (`options`).

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use napreduce_engine::PreemptionSettings;
use napreduce_protocol::read_named_text;
use napreduce_schedulers::SchedulerTables;
use serde::Deserialize;

use super::options::{CoordinatorOptions, WorkerOptions, text};

/// Maximum length of a configuration file.
const BYTES_MAX: u64 = 16 << 20;

/// The content of the file; missing settings have defaults.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Configuration {
    pub client: ClientTable,
    pub coordinator: CoordinatorOptions,
    pub worker: WorkerOptions,
    pub up: UpTable,
    pub web: WebTable,
    /// `[preemption]`: limits and replacements of the primitives of a scheduler.
    pub preemption: Option<PreemptionSettings>,
    /// `[scheduler.fair]`, `[scheduler.capacity]` ...: the parameters of each scheduler.
    pub scheduler: SchedulerTables,
}

/// `[client]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClientTable {
    pub coordinator: Option<String>,
    pub secret_file: Option<PathBuf>,
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
    #[serde(deserialize_with = "text")]
    pub bind: Option<WebAddress>,
    pub hosts: Vec<String>,
}

impl Configuration {
    pub fn read(path: &Path) -> Result<Configuration> {
        let text = read_named_text(path, BYTES_MAX)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("invalid configuration file {}", path.display()))
    }

    pub fn read_if_there(path: &Path) -> Result<Configuration> {
        match path.try_exists() {
            Ok(true) => Configuration::read(path),
            Ok(false) => Ok(Configuration::default()),
            // A parent is a file; opening the directory will report it.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Ok(Configuration::default())
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

/// Whether and where to serve the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebAddress {
    Off,
    /// The default address, or another port if it is taken.
    Usual,
    At(SocketAddr),
}

impl WebAddress {
    /// Returns the flag, else the setting of the file, else the default.
    pub fn chosen(flag: Option<SocketAddr>, in_file: Option<WebAddress>) -> WebAddress {
        // A command that serves the dashboard ignores `off` in the file.
        let in_file = in_file
            .filter(|in_file| *in_file != WebAddress::Off)
            .unwrap_or(WebAddress::Usual);
        flag.map_or(in_file, WebAddress::At)
    }
}

impl FromStr for WebAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<WebAddress, String> {
        if text == "off" {
            return Ok(WebAddress::Off);
        }
        let address = text.parse().map(WebAddress::At);
        address.map_err(|_| {
            format!(
                "invalid address {text:?}: expected ADDRESS:PORT, such as 127.0.0.1:8088, or off"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use napreduce_protocol::ByteSize;
    use napreduce_schedulers::SchedulerName;

    use super::*;

    fn read(text: &str) -> Result<Configuration, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn file_with_every_kind_of_value_is_read() {
        let configuration = read(
            "[coordinator]\nbind = \"0.0.0.0:7000\"\nliveness = \"10s\"\nfsync = \"50ms\"\njournal-bytes-max = \"1MiB\"\n\
             blob-bytes-max = 512\nspeculation = false\nscheduler = \"fifo\"\n[worker]\nmap-slots = 4\n[up]\nworkers = 2\n",
        )
        .expect("it is understood");
        let coordinator = CoordinatorOptions {
            bind: Some("0.0.0.0:7000".to_owned()),
            liveness: Some(Duration::from_secs(10)),
            fsync: Some("50ms".parse().expect("a time")),
            journal_bytes_max: Some(ByteSize::new(1 << 20)),
            blob_bytes_max: Some(ByteSize::new(512)),
            speculation: Some(false),
            scheduler: Some(SchedulerName::Fifo),
            ..CoordinatorOptions::default()
        };
        assert_eq!(configuration.coordinator, coordinator);
        assert_eq!(
            (configuration.worker.map_slots, configuration.up.workers),
            (Some(4), Some(2))
        );
    }

    #[test]
    fn invalid_setting_is_rejected_by_name() {
        for (text, expected) in [
            ("[coordinator]\nbinde = \"x\"", "unknown field `binde`"),
            (
                "[coordinator]\nliveness = \"soon\"",
                "\"soon\" is not a time",
            ),
            ("[coordinator]\nscheduler = \"fare\"", "allowed: fifo"),
            ("[scheduler.fifo]\nignore = true", "unknown field `ignore`"),
            (
                "[preemption]\nsuspended-max = -1",
                "\"-1\" is neither a number of attempts nor \"unlimited\"",
            ),
            (
                "[preemption]\nsuspended-max = \"all\"",
                "\"all\" is neither a number of attempts nor \"unlimited\"",
            ),
            ("[worker]\nlog-bytes-max = \"many\"", "many"),
            ("[cluster]\n", "unknown field `cluster`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn missing_file_is_an_error_only_if_named() {
        let path = Path::new("/nowhere/napreduce.toml");
        assert_eq!(
            Configuration::read_if_there(path).expect("nothing"),
            Configuration::default()
        );
        let error = Configuration::read(path)
            .expect_err("it is not there")
            .to_string();
        assert_eq!(error, "cannot read /nowhere/napreduce.toml");
    }

    #[test]
    fn web_address_is_read_and_chosen() {
        let at = |text: &str| WebAddress::At(text.parse().expect("an address"));
        assert_eq!("off".parse(), Ok(WebAddress::Off));
        assert_eq!("127.0.0.1:80".parse(), Ok(at("127.0.0.1:80")));
        for text in ["", "on", "localhost:80", "127.0.0.1"] {
            let error = text.parse::<WebAddress>().expect_err(text);
            assert!(
                error.ends_with("expected ADDRESS:PORT, such as 127.0.0.1:8088, or off"),
                "{error}"
            );
        }
        let flag = Some("127.0.0.1:80".parse().expect("an address"));
        assert_eq!(
            WebAddress::chosen(flag, Some(WebAddress::Off)),
            at("127.0.0.1:80")
        );
        assert_eq!(
            WebAddress::chosen(None, Some(at("127.0.0.1:81"))),
            at("127.0.0.1:81")
        );
        assert_eq!(
            WebAddress::chosen(None, Some(WebAddress::Off)),
            WebAddress::Usual
        );
    }
}
