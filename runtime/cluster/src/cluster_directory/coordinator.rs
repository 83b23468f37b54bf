//! The record of a cluster directory's coordinator, `coordinator.json`. It outlives a killed coordinator, and
//! the next one replaces it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use napreduce_local::world::World;
use napreduce_local::world::disk::Replacement;
use napreduce_protocol::IoResult;
use serde::{Deserialize, Serialize};

use super::error::ClusterDirectoryError;
use super::place::ClusterDirectory;

const RECORD_BYTES_MAX: u64 = 64 << 10;

/// The content of `coordinator.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorRecord {
    /// `HOST:PORT` to connect to.
    pub address: String,
    /// Its process id.
    pub pid: u32,
    /// Its version of napreduce.
    pub version: String,
    /// Its start time, in seconds since 1970.
    pub started: u64,
}

impl ClusterDirectory {
    /// Records this process, which holds the lock, as the coordinator. An unspecified address is recorded as
    /// loopback, since the record is for this machine.
    pub fn publish_coordinator(
        &self,
        mut address: SocketAddr,
        world: &World,
    ) -> Result<(), ClusterDirectoryError> {
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let path = self.coordinator_file();
        let record = CoordinatorRecord {
            address: address.to_string(),
            pid: world.process.id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: world.clock.unix_micros() / 1_000_000,
        };
        self.replace_record(&path, &record)
            .map_err(ClusterDirectoryError::io("write", path))
    }

    /// Removes the record when the coordinator ends normally.
    pub fn withdraw_coordinator(&self) -> Result<(), ClusterDirectoryError> {
        let path = self.coordinator_file();
        let removed = self.disk().remove_file(&path).if_there().map(drop);
        removed.map_err(ClusterDirectoryError::io("remove", path))
    }

    /// Returns the coordinator's address.
    pub fn coordinator_address(&self) -> Result<String, ClusterDirectoryError> {
        Ok(self.coordinator()?.address)
    }

    /// Returns the record of the last started coordinator.
    pub fn coordinator(&self) -> Result<CoordinatorRecord, ClusterDirectoryError> {
        let path = self.coordinator_file();
        let found = self
            .disk()
            .read(&path, RECORD_BYTES_MAX)
            .if_there()
            .map_err(ClusterDirectoryError::io("read", &path))?;
        let absent = || ClusterDirectoryError::NoCoordinator {
            path: self.path().to_owned(),
        };
        let bytes = found.ok_or_else(absent)?;
        let damaged = |error: serde_json::Error| ClusterDirectoryError::DamagedRecord {
            path,
            reason: error.to_string(),
        };
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    /// Replaces the record. Only the lock's holder writes, so one temporary name suffices.
    fn replace_record(&self, path: &Path, record: &CoordinatorRecord) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(record)?;
        text.push(b'\n');
        let replacement = Replacement {
            unfinished: &path.with_extension("json.new"),
            content: &text,
            mode: 0o600,
        };
        self.disk().replace(path, &replacement)
    }
}
