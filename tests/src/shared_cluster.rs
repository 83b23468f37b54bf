//! The cluster that the tests of one process share: `on_cluster` maps segments of the same machine,
//! `on_cluster_network` fetches all of them. `cluster_keeper` starts and ends it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A cluster of three workers, up as long as this process.
struct SharedCluster {
    directory: PathBuf,
    /// Ends when this process ends, and with it the pipe to it.
    _keeper: Child,
}

/// The directory of the cluster of this process, if it has one; it is started with the first call.
pub(crate) fn shared_cluster(executables: &Path) -> Option<&'static Path> {
    static CLUSTER: OnceLock<Option<Result<SharedCluster, String>>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of this test");
        let name = test.file_name().expect("a test has a name").to_string_lossy().into_owned();
        // Cargo puts a hash behind the name of a test.
        match name.rsplit_once('-').map_or(name.as_str(), |(name, _)| name) {
            "on_cluster" => Some(start(executables, &[])),
            "on_cluster_network" => Some(start(executables, &["--network-shuffle"])),
            _ => None,
        }
    });
    // All tests fail for the same reason then, at once.
    cluster.as_ref().map(|started| match started {
        Ok(cluster) => cluster.directory.as_path(),
        Err(why) => panic!("{why}"),
    })
}

fn start(executables: &Path, flags: &[&str]) -> Result<SharedCluster, String> {
    let mut keeper = Command::new(executables.join("cluster_keeper"))
        .args(["--workers", "3", "--map-slots", "2", "--reduce-slots", "2"])
        // Tests that know nothing of each other suspend tasks there.
        .args(["--suspended-max", "unlimited"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a keeper of a cluster");
    let said = keeper.stdout.take().expect("a pipe from the keeper");
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).expect("a line from the keeper");
    if line.is_empty() {
        keeper.wait().expect("a process of this test");
        return Err("the cluster did not start; its keeper said why".to_owned());
    }
    Ok(SharedCluster { directory: PathBuf::from(line.trim_end()), _keeper: keeper })
}
