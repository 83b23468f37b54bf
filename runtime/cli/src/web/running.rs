//! A running web server: `web.json` in the directory of a cluster, readable by the owner only, lets `nap web
//! link` find it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use napreduce_cluster::{ClusterDirectory, ClusterPlace};
use napreduce_protocol::{Secret, read_regular};
use napreduce_schedulers::SchedulerName;
use napreduce_web::{
    ClusterSource, DEFAULT_ADDRESS, WebRole, WebServer, WebSettings, WhatIfSettings,
};
use serde::{Deserialize, Serialize};

use crate::cluster::{ClusterArguments, WebAddress};
use crate::parent::PARENT_VARIABLE;
use crate::whole_file::write_private;

/// Maximum length of the file that names a server.
const RECORD_BYTES_MAX: u64 = 64 << 10;

/// The content of `web.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WebRecord {
    address: SocketAddr,
    process: u32,
}

/// A dashboard that is served until this is dropped.
#[derive(Debug)]
pub struct Dashboard {
    server: WebServer,
    record: Option<(PathBuf, WebRecord)>,
}

impl Dashboard {
    /// Serves the dashboard of a cluster, even if the cluster is not up yet.
    pub fn start(
        place: ClusterPlace,
        address: WebAddress,
        hosts: Vec<String>,
        cluster: &ClusterArguments,
    ) -> Result<Dashboard> {
        let secret = secret_of(&place)?;
        let directory = match &place {
            ClusterPlace::Directory(directory) => Some(directory.clone()),
            ClusterPlace::Address { .. } => None,
        };
        let revocations = directory.as_ref().map(revocations_file);
        let links = directory
            .as_ref()
            .map(|directory| directory.path().join("web-links.json"));
        let what_if = directory.as_ref().map(|directory| {
            let folder = directory.path().join("what-if");
            what_if_settings(folder, directory.path(), cluster.config.as_deref())
        });
        let settings = WebSettings {
            hosts,
            revocations,
            links,
            what_if,
            ..settings(secret, address)
        };
        let server = WebServer::start(&settings, Arc::new(ClusterSource::new(place)))?;
        let mut running = Dashboard {
            server,
            record: None,
        };
        if let Some(directory) = directory {
            let record = WebRecord {
                address: running.server.address(),
                process: std::process::id(),
            };
            let file = record_file(&directory);
            write_private(&file, &serde_json::to_vec(&record)?)?;
            running.record = Some((file, record));
        }
        Ok(running)
    }

    /// A server for something other than a cluster.
    pub fn new(server: WebServer) -> Dashboard {
        Dashboard {
            server,
            record: None,
        }
    }

    /// Returns the line to print, with a link.
    pub fn line(&self) -> Result<String> {
        let link = self.server.link(WebRole::Operate)?;
        // `nap web link` finds servers of clusters only.
        let another = self
            .record
            .as_ref()
            .map_or("", |_| "; another: nap web link");
        Ok(format!(
            "web: {link}      (one sign-in, within 15 minutes{another})\n"
        ))
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let Some((file, ours)) = &self.record else {
            return;
        };
        let is_ours = read_regular(file, RECORD_BYTES_MAX)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if is_ours.is_some_and(|record: WebRecord| record == *ours) {
            // A file that stays names a dead process, which readers detect.
            let _ = fs::remove_file(file);
        }
    }
}

/// Returns the settings of a server at an address.
pub fn settings(secret: Secret, address: WebAddress) -> WebSettings {
    let usual = WebSettings::new(secret);
    match address {
        WebAddress::At(address) => WebSettings {
            address,
            any_port: false,
            ..usual
        },
        WebAddress::Off | WebAddress::Usual => WebSettings {
            address: DEFAULT_ADDRESS,
            ..usual
        },
    }
}

/// Returns the secret of a cluster.
pub fn secret_of(place: &ClusterPlace) -> Result<Secret> {
    Ok(match place {
        ClusterPlace::Directory(directory) => directory.secret()?,
        ClusterPlace::Address { secret, .. } => secret.clone(),
    })
}

/// Returns the address where the dashboard of a cluster is served.
pub fn address_in(directory: &ClusterDirectory) -> Result<SocketAddr> {
    let file = record_file(directory);
    let bytes = match read_regular(&file, RECORD_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!(
                "{}: no dashboard is served; serve it with: nap web serve",
                directory.path().display()
            )
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    let record: WebRecord = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is damaged; remove it", file.display()))?;
    let alive = rustix::process::Pid::from_raw(record.process as i32)
        .is_some_and(|process| rustix::process::test_kill_process(process).is_ok());
    if !alive {
        bail!(
            "{}: no dashboard is served, its process {} has ended; serve it with: nap web serve",
            directory.path().display(),
            record.process
        );
    }
    Ok(record.address)
}

/// Returns the path of the revocations.
pub fn revocations_file(directory: &ClusterDirectory) -> PathBuf {
    directory.path().join("web.toml")
}

fn record_file(directory: &ClusterDirectory) -> PathBuf {
    directory.path().join("web.json")
}

/// Returns the settings of simulations: `nap sim` in a process that ends with the server. Results are kept in
/// `folder`; scheduler parameters are read from the directory `tables`, or from `file`.
pub fn what_if_settings(folder: PathBuf, tables: &Path, file: Option<&Path>) -> WhatIfSettings {
    // This very program, even if its file was replaced.
    let mut settings = WhatIfSettings::new("/proc/self/exe".into(), folder);
    settings.begin = vec!["sim".into(), "--dir".into(), tables.into()];
    settings.begin.extend(
        file.into_iter()
            .flat_map(|file| ["--config".into(), file.into()]),
    );
    settings.environment = vec![(PARENT_VARIABLE.to_owned(), std::process::id().to_string())];
    settings.schedulers = SchedulerName::ALL.map(|name| name.to_string()).to_vec();
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_in_without_live_server_fails_with_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory =
            ClusterDirectory::resolve(Some(folder.path().join("cluster"))).expect("a path");
        directory.create().expect("a cluster directory");
        let error = || {
            address_in(&directory)
                .expect_err("it cannot be found")
                .to_string()
        };
        assert!(
            error().ends_with("; serve it with: nap web serve"),
            "{}",
            error()
        );
        fs::write(record_file(&directory), "{}").expect("written");
        assert!(
            error().ends_with("web.json is damaged; remove it"),
            "{}",
            error()
        );
        let address = "127.0.0.1:9".parse().expect("an address");
        // No process has this PID.
        let gone = serde_json::to_vec(&WebRecord {
            address,
            process: i32::MAX as u32,
        })
        .expect("JSON");
        fs::write(record_file(&directory), gone).expect("written");
        assert!(error().contains("has ended"), "{}", error());
    }

    #[test]
    fn dropped_server_removes_its_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory =
            ClusterDirectory::resolve(Some(folder.path().join("cluster"))).expect("a path");
        directory.create().expect("a cluster directory");
        let place = ClusterPlace::Directory(directory.clone());
        let address = WebAddress::At("127.0.0.1:0".parse().expect("an address"));
        let running = Dashboard::start(place, address, Vec::new(), &ClusterArguments::default())
            .expect("a page");
        assert_eq!(
            address_in(&directory).expect("it runs"),
            running.server.address()
        );
        assert!(
            running
                .line()
                .expect("a link")
                .contains(&format!("http://{}/#code=", running.server.address()))
        );
        drop(running);
        assert!(!record_file(&directory).exists());
    }
}
