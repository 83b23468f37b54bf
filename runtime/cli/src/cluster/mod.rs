//! Which cluster a command is about, and the client for it.
//!
//! Owns `--dir`, `--coordinator`, `--secret-file`, `--config` and who wins among flag, environment, file and
//! default. Does not own what commands ask.

mod configuration;
mod fsync;
mod options;
mod web_address;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use napreduce_cluster::{
    ClientError, ClusterClient, ClusterDirectory, ClusterDirectoryError, ClusterPlace, Patience,
};
use napreduce_protocol::parse_time;

use crate::failure::usage;

pub use configuration::{Configuration, WebTable};
pub use fsync::Fsync;
pub use options::{
    CoordinatorOptions, IsolationName, OnTerminateName, PageOutName, WorkerOptions, rack_name,
};
pub use web_address::WebAddress;

/// Where a cluster is.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which cluster")]
pub struct ClusterArguments {
    /// Cluster directory of this machine [default: napreduce in the user's directory for state]
    #[arg(long, global = true, value_name = "DIR", env = "NAPREDUCE_DIR")]
    pub dir: Option<PathBuf>,

    /// Coordinator elsewhere; needs a copy of its cluster's secret
    #[arg(long, global = true, value_name = "HOST:PORT", env = "NAPREDUCE_COORDINATOR")]
    pub coordinator: Option<String>,

    /// The copy of the secret
    #[arg(long, global = true, value_name = "FILE", env = "NAPREDUCE_SECRET_FILE")]
    pub secret_file: Option<PathBuf>,

    /// How long to wait for a coordinator that does not answer; a cluster that is not up is said at once
    /// [default: 1m]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_CONNECT_TIMEOUT")]
    pub connect_timeout: Option<Duration>,

    /// Configuration file [default: napreduce.toml in the cluster directory, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "NAPREDUCE_CONFIG")]
    pub config: Option<PathBuf>,
}

impl ClusterArguments {
    /// The cluster directory of this machine, which need not exist.
    pub fn directory(&self) -> Result<ClusterDirectory, ClientError> {
        let named = self.dir.clone().filter(|dir| !dir.as_os_str().is_empty());
        Ok(ClusterDirectory::resolve(named)?)
    }

    /// What the configuration file says. An error is one of usage.
    pub fn configuration(&self) -> Result<Configuration> {
        self.read_configuration().map_err(usage)
    }

    fn read_configuration(&self) -> Result<Configuration> {
        match &self.config {
            Some(file) => Configuration::read(file),
            None => {
                let directory = self.directory()?;
                let read = Configuration::read_if_there(&directory.path().join("napreduce.toml"));
                // A file that cannot be read in somebody else's directory is not what is wrong.
                read.map_err(|error| match directory.check() {
                    Err(whose @ ClusterDirectoryError::OfAnother { .. }) => ClientError::from(whose).into(),
                    _ => error,
                })
            }
        }
    }

    /// The cluster: a coordinator that is named by address, else the one of the directory.
    pub fn place(&self) -> Result<ClusterPlace> {
        let file = self.configuration()?.client;
        // A directory that is named outright is meant, whatever a file says.
        let filed = file.coordinator.filter(|_| self.dir.is_none());
        let address = self.coordinator.clone().filter(|address| !address.is_empty()).or(filed);
        let secret_file = self.secret_file.clone().or(file.secret_file);
        Ok(match address {
            Some(address) => ClusterPlace::at(&address, secret_file.as_deref())?,
            None => ClusterPlace::Directory(self.directory()?),
        })
    }

    /// Connects to the coordinator; one that is away is waited for.
    pub fn connect(&self) -> Result<ClusterClient> {
        let default = Patience::default();
        let first = self.connect_timeout.unwrap_or(default.first);
        Ok(ClusterClient::connect(self.place()?, Patience { first, ..default })?)
    }
}

/// Flag or environment first, then file; else the default stays.
pub fn set<T>(value: &mut T, said: Option<T>, filed: Option<T>) {
    if let Some(said) = said.or(filed) {
        *value = said;
    }
}

/// A variable that is set to nothing is as one that is not set.
pub fn without_empty_variables(command: clap::Command) -> clap::Command {
    let says_nothing = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| {
        if argument.get_env().is_some_and(says_nothing) { argument.env(None) } else { argument }
    });
    command.mut_subcommands(without_empty_variables)
}
