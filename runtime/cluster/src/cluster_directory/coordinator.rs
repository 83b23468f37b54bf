//! Which coordinator runs for a cluster directory: its record for others to read.
//!
//! Owns that file. Does not own whether that coordinator still answers: its record outlives a kill, and the
//! next coordinator of the directory replaces it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use napreduce_protocol::{IoResult, read_regular};
use serde::{Deserialize, Serialize};

use super::error::ClusterDirectoryError;
use super::place::ClusterDirectory;

const RECORD_BYTES_MAX: u64 = 64 << 10;

/// What a coordinator says about itself in `coordinator.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorRecord {
    /// `HOST:PORT` to connect to.
    pub address: String,
    /// Its process.
    pub pid: u32,
    /// The version of napreduce it is.
    pub version: String,
    /// When it started, in seconds since 1970.
    pub started: u64,
}

impl ClusterDirectory {
    /// Says where this process, which holds the lock, listens. The record is for this machine: of all its
    /// addresses it names the loopback one.
    pub fn publish_coordinator(&self, mut address: SocketAddr) -> Result<(), ClusterDirectoryError> {
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let path = self.coordinator_file();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = CoordinatorRecord {
            address: address.to_string(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: since_1970.as_secs(),
        };
        replace(&path, &record).map_err(ClusterDirectoryError::io("write", path))
    }

    /// Takes the record away when the coordinator ends by itself.
    pub fn withdraw_coordinator(&self) -> Result<(), ClusterDirectoryError> {
        let path = self.coordinator_file();
        let removed = fs::remove_file(&path).if_there().map(drop);
        removed.map_err(ClusterDirectoryError::io("remove", path))
    }

    /// Where to connect to.
    pub fn coordinator_address(&self) -> Result<String, ClusterDirectoryError> {
        Ok(self.coordinator()?.address)
    }

    /// What the coordinator that was started last has said about itself.
    pub fn coordinator(&self) -> Result<CoordinatorRecord, ClusterDirectoryError> {
        let path = self.coordinator_file();
        let found = read_regular(&path, RECORD_BYTES_MAX)
            .if_there()
            .map_err(ClusterDirectoryError::io("read", &path))?;
        let absent = || ClusterDirectoryError::NoCoordinator { path: self.path().to_owned() };
        let bytes = found.ok_or_else(absent)?;
        let damaged = |error: serde_json::Error| ClusterDirectoryError::DamagedRecord {
            path,
            reason: error.to_string(),
        };
        serde_json::from_slice(&bytes).map_err(damaged)
    }
}

/// Readers see the old record or the new one. Only the holder of the lock writes, so one name for the new
/// will do.
fn replace(path: &Path, record: &CoordinatorRecord) -> io::Result<()> {
    let unfinished = path.with_extension("json.new");
    let mut text = serde_json::to_vec_pretty(record)?;
    text.push(b'\n');
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
