//! The cluster of a command (`--dir`, `--coordinator`, `--secret-file`, `--config`) and the client for it. A flag
//! overrides the environment, which overrides the configuration file.

mod configuration;
mod options;

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

pub use configuration::{Configuration, WebAddress, WebTable};
pub use options::{
    CoordinatorOptions, Fsync, IsolationName, OnTerminateName, PageOutName, WorkerOptions,
    rack_name,
};

/// Flags that name a cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArguments {
    /// Cluster directory [default: napreduce in the user's state directory]
    #[arg(long, global = true, value_name = "DIR", env = "NAPREDUCE_DIR")]
    pub dir: Option<PathBuf>,

    /// Address of a coordinator on another host; requires its secret
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT",
        env = "NAPREDUCE_COORDINATOR"
    )]
    pub coordinator: Option<String>,

    /// Copy of the file `secret` in the cluster directory of --coordinator
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "NAPREDUCE_SECRET_FILE"
    )]
    pub secret_file: Option<PathBuf>,

    /// How long to wait for a coordinator that does not answer [default: 1m]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_time, env = "NAPREDUCE_CONNECT_TIMEOUT")]
    pub connect_timeout: Option<Duration>,

    /// Configuration file [default: napreduce.toml in the cluster directory]
    #[arg(long, global = true, value_name = "FILE", env = "NAPREDUCE_CONFIG")]
    pub config: Option<PathBuf>,
}

impl ClusterArguments {
    /// Returns the cluster directory, which need not exist.
    pub fn directory(&self) -> Result<ClusterDirectory, ClientError> {
        let named = self.dir.clone().filter(|dir| !dir.as_os_str().is_empty());
        Ok(ClusterDirectory::resolve(named)?)
    }

    /// Reads the configuration file. Errors are usage errors.
    pub fn configuration(&self) -> Result<Configuration> {
        self.read_configuration().map_err(usage)
    }

    fn read_configuration(&self) -> Result<Configuration> {
        match &self.config {
            Some(file) => Configuration::read(file),
            None => {
                let directory = self.directory()?;
                let read = Configuration::read_if_there(&directory.path().join("napreduce.toml"));
                // Report the owner of the directory rather than that its file cannot be read.
                read.map_err(|error| match directory.check() {
                    Err(whose @ ClusterDirectoryError::OfAnother { .. }) => {
                        ClientError::from(whose).into()
                    }
                    _ => error,
                })
            }
        }
    }

    /// Returns the place of the cluster: an address if one is given, else the directory.
    pub fn place(&self) -> Result<ClusterPlace> {
        let file = self.configuration()?.client;
        // A directory flag overrides an address in the file.
        let in_file = file.coordinator.filter(|_| self.dir.is_none());
        let address = self
            .coordinator
            .clone()
            .filter(|address| !address.is_empty())
            .or(in_file);
        let secret_file = self.secret_file.clone().or(file.secret_file);
        Ok(match address {
            Some(address) => ClusterPlace::at(&address, secret_file.as_deref())?,
            None => ClusterPlace::Directory(self.directory()?),
        })
    }

    /// Connects to the coordinator; waits for one that does not answer.
    pub fn connect(&self) -> Result<ClusterClient> {
        let default = Patience::default();
        let first = self.connect_timeout.unwrap_or(default.first);
        Ok(ClusterClient::connect(
            self.place()?,
            Patience { first, ..default },
        )?)
    }
}

/// Replaces a default by the flag or environment, else by the file.
pub fn set<T>(value: &mut T, flag: Option<T>, in_file: Option<T>) {
    if let Some(chosen) = flag.or(in_file) {
        *value = chosen;
    }
}

/// Ignores environment variables that are empty.
pub fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| {
        if argument.get_env().is_some_and(is_empty) {
            argument.env(None)
        } else {
            argument
        }
    });
    command.mut_subcommands(without_empty_variables)
}
