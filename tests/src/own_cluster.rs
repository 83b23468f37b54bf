//! A cluster that one test has for itself, with a configuration of its own.
//!
//! Owns its start and its end. Does not own the cluster that tests share (`shared_cluster`).

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::folder::Folder;
use crate::processes::Process;
use crate::programs::{Ended, program, run};

/// How long anything on a cluster may take before a test gives up on it.
const DEADLINE: Duration = Duration::from_secs(60);

/// Workers with one slot of each kind and a coordinator; they end with the test.
pub struct OwnCluster {
    process: Child,
    directory: PathBuf,
}

impl OwnCluster {
    /// Starts it in the folder `cluster` of a test, with this configuration file, and waits for its workers.
    pub fn start(folder: &Folder, count: u32, scheduler: &str, file: &str) -> OwnCluster {
        let directory = folder.path("cluster");
        // A cluster directory holds a secret.
        fs::DirBuilder::new().mode(0o700).create(&directory).expect("a directory");
        fs::write(directory.join("napreduce.toml"), file).expect("a configuration");
        let workers = count.to_string();
        let mut command = nap(&directory);
        command.args(["up", "--workers", &workers, "--map-slots", "1", "--reduce-slots", "1"]);
        // Jobs name the same queues under every scheduler.
        command.args(["--queues", "production,research"]);
        command.args(["--no-speculation", "--scheduler", scheduler]).stdout(Stdio::null());
        let log = fs::File::create(folder.path("up.log")).expect("a log");
        let process = command.stderr(log).spawn().expect("nap up");
        let cluster = OwnCluster { process, directory };
        cluster.wait_for_workers(count);
        cluster
    }

    /// Waits until so many workers are there.
    pub fn wait_for_workers(&self, count: u32) {
        let count = count.to_string();
        wait_until("all workers", || {
            run(self.nap().args(["worker", "list", "--wait", &count])).status.success()
        });
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A command of `nap` about it.
    pub fn nap(&self) -> Command {
        nap(&self.directory)
    }

    /// The process of its coordinator; that of the next one, when it was killed.
    pub fn coordinator(&self) -> Process {
        let mut found = Vec::new();
        wait_until("a coordinator", || {
            found = Process::children_of(self.process.id(), "coordinator");
            !found.is_empty()
        });
        found[0]
    }

    /// The processes of its workers.
    pub fn workers(&self) -> Vec<Process> {
        Process::children_of(self.process.id(), "worker")
    }

    /// The processes of the tasks on all of its workers.
    pub fn tasks(&self) -> Vec<Process> {
        self.workers().iter().flat_map(|worker| Process::tasks_of(worker.number.unsigned_abs())).collect()
    }

    /// What a command of `nap` prints as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let said = run(self.nap().args(arguments).args(["--format", "json"])).succeeded().stdout;
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// Hands in a job of `testjobs` and leaves; its id.
    pub fn submit(&self, folder: &Folder, arguments: &[&str]) -> String {
        let mut command = program("testjobs");
        command.env_remove("NAPREDUCE_DIR").current_dir(folder.root()).args(arguments);
        let said = run(command.arg("--detach").arg("--cluster").arg(&self.directory)).succeeded().stdout;
        said.trim().to_owned()
    }

    /// Waits for the end of jobs.
    pub fn wait(&self, jobs: &[&str]) -> Ended {
        run(self.nap().args(["job", "wait", "--quiet"]).args(jobs))
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        let process = rustix::process::Pid::from_child(&self.process);
        if rustix::process::kill_process(process, rustix::process::Signal::INT).is_ok() {
            let _ = self.process.wait();
        }
    }
}

fn nap(directory: &Path) -> Command {
    let mut command = program("nap");
    command.env_remove("NAPREDUCE_CLUSTER").env_remove("NAPREDUCE_DIR").arg("--dir").arg(directory);
    command
}

/// Asks until the answer is yes.
pub fn wait_until(what: &str, mut come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !come() {
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
