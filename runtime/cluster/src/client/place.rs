//! The location of a cluster: its directory on this machine, or its coordinator's address and a copy of the
//! secret. Parses `DIR|HOST:PORT`.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use napreduce_local::world::Process;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::Secret;

use super::ClientError;
use crate::cluster_directory::{ClusterDirectory, ClusterDirectoryError};
use crate::transport::read_secret;

/// Environment variable with the secret file of a cluster given by address.
const SECRET_VARIABLE: &str = "NAPREDUCE_SECRET_FILE";

/// The location of a coordinator.
#[derive(Debug, Clone)]
pub enum ClusterPlace {
    /// A cluster directory, which records the coordinator's address; it may change on a restart.
    Directory(ClusterDirectory),
    /// A remote coordinator.
    Address {
        /// `HOST:PORT`.
        address: String,
        /// The cluster's secret.
        secret: Secret,
    },
}

impl ClusterPlace {
    /// Parses `DIR|HOST:PORT`. An address that is not an existing directory requires a secret file.
    pub fn parse(
        named: impl AsRef<OsStr>,
        secret_file: Option<&Path>,
    ) -> Result<ClusterPlace, ClientError> {
        let named = named.as_ref();
        if named.is_empty() {
            return Err(ClientError::Usage(
                "no cluster given; name its directory or HOST:PORT".to_owned(),
            ));
        }
        if let Some(text) = named
            .to_str()
            .filter(|text| is_address(text) && !Path::new(text).is_dir())
        {
            return ClusterPlace::at(text, secret_file);
        }
        if let Some(file) = secret_file {
            return Err(ClientError::Usage(format!(
                "secret file {} has no effect: cluster directory {} has its own; omit it, or give HOST:PORT",
                file.display(),
                named.display()
            )));
        }
        Ok(ClusterPlace::Directory(ClusterDirectory::resolve(Some(
            named.into(),
        ))?))
    }

    /// Returns the place of a coordinator at `HOST:PORT`, with the secret from a file.
    pub fn at(address: &str, secret_file: Option<&Path>) -> Result<ClusterPlace, ClientError> {
        if !is_address(address) {
            return Err(ClientError::Usage(format!(
                "invalid address {address:?}: expected HOST:PORT, such as 10.0.0.1:7000"
            )));
        }
        let named = std::env::var_os(SECRET_VARIABLE)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        let file = secret_file.map(Path::to_owned).or(named).ok_or_else(|| {
            ClientError::Usage(format!(
                "no secret for the coordinator at {address}; copy the file `secret` of its directory and name it with \
                 --secret-file or {SECRET_VARIABLE}"
            ))
        })?;
        let secret = read_secret(&RealDisk, &file).map_err(ClusterDirectoryError::from)?;
        Ok(ClusterPlace::Address {
            address: address.to_owned(),
            secret,
        })
    }

    /// Returns the current address and the secret.
    pub(crate) fn look_up(&self) -> Result<(String, Secret), ClusterDirectoryError> {
        match self {
            ClusterPlace::Directory(directory) => {
                // Report a foreign owner before an unreadable file.
                directory.check()?;
                Ok((directory.coordinator_address()?, directory.secret()?))
            }
            ClusterPlace::Address { address, secret } => Ok((address.clone(), secret.clone())),
        }
    }

    /// Returns whether a coordinator is running or starting there, as far as this machine can detect.
    pub(crate) fn is_starting(&self, process: &Process) -> bool {
        match self {
            ClusterPlace::Directory(directory) => directory.is_held(process),
            ClusterPlace::Address { .. } => false,
        }
    }

    /// Returns advice on how to start a coordinator there.
    pub(super) fn advice(&self) -> String {
        match self {
            ClusterPlace::Directory(directory) => {
                format!(
                    "start a cluster with: nap up --dir {}",
                    directory.path().display()
                )
            }
            ClusterPlace::Address { address, .. } => {
                format!("start one on its host with: nap coordinator --bind {address}")
            }
        }
    }
}

/// Formats the place for messages.
impl fmt::Display for ClusterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterPlace::Directory(directory) => write!(f, "{}", directory.path().display()),
            ClusterPlace::Address { address, .. } => f.write_str(address),
        }
    }
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_address_accepts_host_and_port_only() {
        for text in ["localhost:7000", "10.0.0.1:1", "[::1]:65535"] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "cluster",
            "/var/cluster",
            "a/b:7000",
            ":7000",
            "host:0",
            "host:70000",
            "host:",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn place_needs_secret_file_for_address_only() {
        let error = ClusterPlace::parse("host:7000", None)
            .expect_err("no secret")
            .to_string();
        assert!(error.contains("name it with --secret-file"), "{error}");
        let error = ClusterPlace::parse("here", Some(Path::new("s")))
            .expect_err("two secrets")
            .to_string();
        assert!(error.contains("has its own; omit it"), "{error}");
        let error = ClusterPlace::parse("", None)
            .expect_err("nothing")
            .to_string();
        assert!(error.contains("name its directory or HOST:PORT"), "{error}");
        let error = ClusterPlace::at("host", None)
            .expect_err("no port")
            .to_string();
        assert!(error.contains("expected HOST:PORT"), "{error}");
        let place = ClusterPlace::parse("/some/where", None).expect("a directory");
        assert_eq!(place.to_string(), "/some/where");
        assert_eq!(
            place.advice(),
            "start a cluster with: nap up --dir /some/where"
        );
    }
}
