//! The cluster that the tests of one process share. In `on_cluster` reduces map segments of the same machine;
//! in `on_cluster_network` they fetch all segments. `cluster_keeper` starts and ends the cluster.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A cluster of three workers that runs as long as this process.
struct SharedCluster {
    directory: PathBuf,
    /// The keeper ends when this process ends, which closes the pipe to it.
    _keeper: Child,
}

/// Returns the directory of this process's cluster, if it has one. The first call starts the cluster.
pub(crate) fn shared_cluster(executables: &Path) -> Option<&'static Path> {
    static CLUSTER: OnceLock<Option<Result<SharedCluster, String>>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of this test");
        let name = test
            .file_name()
            .expect("a test has a name")
            .to_string_lossy()
            .into_owned();
        // Cargo appends a hash to the name of a test.
        match name
            .rsplit_once('-')
            .map_or(name.as_str(), |(name, _)| name)
        {
            "on_cluster" => Some(start(executables, &[])),
            "on_cluster_network" => Some(start(executables, &["--network-shuffle"])),
            _ => None,
        }
    });
    // If the start failed, all tests fail at once with the same reason.
    cluster.as_ref().map(|started| match started {
        Ok(cluster) => cluster.directory.as_path(),
        Err(why) => panic!("{why}"),
    })
}

fn start(executables: &Path, flags: &[&str]) -> Result<SharedCluster, String> {
    let mut keeper = Command::new(executables.join("cluster_keeper"))
        .args(["--workers", "3", "--map-slots", "2", "--reduce-slots", "2"])
        // Independent tests suspend tasks on the same workers.
        .args(["--suspended-max", "unlimited"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a keeper of a cluster");
    let stdout = keeper.stdout.take().expect("a pipe from the keeper");
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("a line from the keeper");
    if line.is_empty() {
        keeper.wait().expect("a process of this test");
        return Err("the cluster did not start; see the output of its keeper".to_owned());
    }
    Ok(SharedCluster {
        directory: PathBuf::from(line.trim_end()),
        _keeper: keeper,
    })
}
