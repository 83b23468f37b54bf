//! A cluster for one test, with its own configuration.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folder::Folder;
use crate::processes::{Process, ending_signal};
use crate::programs::{Ended, program, run};

/// The time after which a test gives up waiting; far longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(180);

/// A coordinator and workers with one slot of each kind; they end with the test.
pub struct OwnCluster {
    process: Mutex<Child>,
    directory: PathBuf,
    /// Arguments and environment of `nap up`.
    options: Vec<String>,
    variables: Vec<(String, String)>,
    log: PathBuf,
    /// The `nap` that starts the cluster.
    nap: PathBuf,
}

impl OwnCluster {
    /// Starts a cluster in the folder `cluster` of a test with this configuration file, and waits for its
    /// workers.
    pub fn start(folder: &Folder, count: u32, scheduler: &str, file: &str) -> OwnCluster {
        OwnCluster::start_with(folder, count, scheduler, file, &[])
    }

    /// The same, with these environment variables for its daemons.
    pub fn start_with(
        folder: &Folder,
        count: u32,
        scheduler: &str,
        file: &str,
        variables: &[(&str, String)],
    ) -> OwnCluster {
        let plain = program("nap");
        OwnCluster::start_program(
            Path::new(plain.get_program()),
            folder,
            count,
            scheduler,
            file,
            variables,
        )
    }

    /// The same, with this many map slots on each worker.
    pub fn start_with_slots(
        folder: &Folder,
        count: u32,
        map_slots: u32,
        scheduler: &str,
        file: &str,
    ) -> OwnCluster {
        let plain = program("nap");
        OwnCluster::start_shaped(
            Path::new(plain.get_program()),
            folder,
            [count, map_slots],
            scheduler,
            file,
            &[],
        )
    }

    /// The same, with another `nap`.
    pub fn start_program(
        nap: &Path,
        folder: &Folder,
        count: u32,
        scheduler: &str,
        file: &str,
        variables: &[(&str, String)],
    ) -> OwnCluster {
        OwnCluster::start_shaped(nap, folder, [count, 1], scheduler, file, variables)
    }

    fn start_shaped(
        nap: &Path,
        folder: &Folder,
        [count, map_slots]: [u32; 2],
        scheduler: &str,
        file: &str,
        variables: &[(&str, String)],
    ) -> OwnCluster {
        let directory = folder.path("cluster");
        // The cluster directory contains a secret.
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .expect("a directory");
        fs::write(directory.join("napreduce.toml"), file).expect("a configuration");
        let workers = count.to_string();
        let map_slots = map_slots.to_string();
        let slots = ["--map-slots", &map_slots, "--reduce-slots", "1"];
        // Jobs use the same queues under every scheduler.
        let more = [
            "--queues",
            "production,research",
            "--no-speculation",
            "--scheduler",
            scheduler,
        ];
        let options = [&["up", "--workers", &workers], &slots[..], &more].concat();
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let log = folder.path("up.log");
        let nap = nap.to_owned();
        let process = Mutex::new(up(&nap, &directory, &options, &variables, &log));
        let cluster = OwnCluster {
            process,
            directory,
            options,
            variables,
            log,
            nap,
        };
        cluster.wait_for_workers(count);
        cluster
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to `nap up`, checks that it ends successfully, and starts it again in the same
    /// directory.
    pub fn end_and_start_again(&self, signal: Signal, count: u32) {
        kill_process(Pid::from_child(&self.process()), signal).expect("it runs");
        self.start_again(count);
    }

    /// Waits for the end of `nap up`, which must succeed, and starts it again in the same directory.
    pub fn start_again(&self, count: u32) {
        let mut process = self.process();
        assert!(process.wait().expect("a child of this test").success());
        *process = up(
            &self.nap,
            &self.directory,
            &self.options,
            &self.variables,
            &self.log,
        );
        drop(process);
        self.wait_for_workers(count);
    }

    /// Waits for this many workers.
    pub fn wait_for_workers(&self, count: u32) {
        let count = count.to_string();
        wait_until("all workers", || {
            run(self.nap().args(["worker", "list", "--wait", &count]))
                .status
                .success()
        });
    }

    /// Returns the cluster directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a `nap` command for this cluster.
    pub fn nap(&self) -> Command {
        nap(&self.directory)
    }

    /// Returns the process of the coordinator; after a kill, waits for the next one.
    pub fn coordinator(&self) -> Process {
        let mut found = Vec::new();
        wait_until("a coordinator", || {
            found = Process::children_of(self.process().id(), "coordinator");
            !found.is_empty()
        });
        found[0]
    }

    /// Kills the coordinator; `nap up` starts the next one.
    pub fn kill_coordinator(&self) {
        let coordinator = self.coordinator();
        assert!(coordinator.signal(Signal::KILL));
        wait_until("the end of the coordinator", || coordinator.is_gone());
    }

    /// Returns the processes of the workers.
    pub fn workers(&self) -> Vec<Process> {
        Process::children_of(self.process().id(), "worker")
    }

    /// Returns the task processes of all workers.
    pub fn tasks(&self) -> Vec<Process> {
        self.workers()
            .iter()
            .flat_map(|worker| Process::tasks_of(worker.number.unsigned_abs()))
            .collect()
    }

    /// Runs a command of `nap` with `--format json`; returns the value it prints.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = run(self.nap().args(arguments).args(["--format", "json"]))
            .succeeded()
            .stdout;
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    }

    /// Moves the first map of a job to another worker: suspends it, drains its worker, calls `drained`, and
    /// resumes it.
    pub fn move_first_map(&self, job: &str, drained: impl FnOnce()) {
        let map = format!("{job}_m_0000");
        run(self.nap().args(["task", "suspend", &map])).succeeded();
        let live = || self.json(&["task", "list", job])[0]["live"][0].clone();
        let worker = live()["worker"]
            .as_str()
            .expect("it is somewhere")
            .to_owned();
        run(self.nap().args(["worker", "drain", &worker])).succeeded();
        drained();
        wait_until("nothing of it is suspended", || {
            live()["state"] != "suspended"
        });
        // A task that an operator suspended stays held until an operator resumes it.
        run(self.nap().args(["task", "resume", &map])).succeeded();
    }

    /// Submits a job of `testjobs` with `--detach`; returns its id.
    pub fn submit(&self, folder: &Folder, arguments: &[&str]) -> String {
        let mut command = program("testjobs");
        command
            .env_remove("NAPREDUCE_DIR")
            .current_dir(folder.root())
            .args(arguments);
        let output = run(command
            .arg("--detach")
            .arg("--cluster")
            .arg(&self.directory))
        .succeeded()
        .stdout;
        output.trim().to_owned()
    }

    /// Waits for the end of jobs.
    pub fn wait(&self, jobs: &[&str]) -> Ended {
        run(self.nap().args(["job", "wait", "--quiet"]).args(jobs))
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        let mut process = self.process();
        // The process ID of an ended child may be reused.
        if let Ok(None) = process.try_wait()
            && kill_process(Pid::from_child(&process), ending_signal()).is_ok()
        {
            let _ = process.wait();
        }
    }
}

/// A `nap up` that a test has started; it ends with the test.
pub struct NapUp(Child);

impl NapUp {
    /// Takes over a started `nap up`.
    pub fn of(child: Child) -> NapUp {
        NapUp(child)
    }

    /// Returns its process ID.
    pub fn number(&self) -> u32 {
        self.0.id()
    }

    /// Ends it with [`ending_signal`] unless it has ended; returns its exit status.
    pub fn end(&mut self) -> ExitStatus {
        if let Ok(None) = self.0.try_wait() {
            kill_process(Pid::from_child(&self.0), ending_signal()).expect("it runs");
        }
        self.0.wait().expect("a child of this test")
    }
}

impl Drop for NapUp {
    fn drop(&mut self) {
        self.end();
    }
}

fn up(
    nap: &Path,
    directory: &Path,
    options: &[String],
    variables: &[(String, String)],
    log: &Path,
) -> Child {
    let mut command = about(Command::new(nap), directory);
    command.stdin(Stdio::null());
    command
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .args(options)
        .stdout(Stdio::null());
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log");
    command.stderr(log).spawn().expect("nap up")
}

fn nap(directory: &Path) -> Command {
    about(program("nap"), directory)
}

/// Adds the options for the cluster of a directory to a command.
fn about(mut command: Command, directory: &Path) -> Command {
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .arg("--dir")
        .arg(directory);
    command
}

/// Polls until the condition holds.
pub fn wait_until(what: &str, mut come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !come() {
        assert!(
            began.elapsed() < DEADLINE,
            "{what}: not within {DEADLINE:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
