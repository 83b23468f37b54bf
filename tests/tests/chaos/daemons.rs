//! A coordinator and three workers as processes, each behind a proxy that can fail.

use std::fs::{DirBuilder, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use napreduce_tests::{Folder, free_address, program, run};
use rustix::process::Signal;
use serde_json::Value;

use crate::mounts::{Disk, can_mount};
use crate::processes::{Process, wait_until};
use crate::proxy::Proxy;

/// The liveness limit of workers.
pub const LIVENESS: Duration = Duration::from_millis(1000);
/// The liveness limit of tasks.
pub const TASK_SILENCE: Duration = Duration::from_millis(1500);
/// Deadline of a graceful shutdown.
const END: Duration = Duration::from_secs(30);

pub struct Daemons {
    directory: PathBuf,
    /// Log files; a cluster directory must not contain foreign files.
    logs: PathBuf,
    address: SocketAddr,
    pub coordinator: Child,
    pub workers: Vec<Worker>,
    /// The disk of the first worker, if file systems can be mounted.
    pub disk: Option<Disk>,
    /// Whether reduces fetch all map output through connections, even if they could read it in place.
    pub network: bool,
}

pub struct Worker {
    name: String,
    pub process: Child,
    /// The proxy in front of the coordinator.
    pub link: Proxy,
    /// The proxy in front of the worker's data server, and its address.
    pub data: Proxy,
    data_address: SocketAddr,
}

impl Daemons {
    pub fn start(folder: &Folder, network: bool) -> Daemons {
        let directory = folder.path("cluster");
        // A directory that other users can access would be refused.
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .expect("a folder");
        let address = free_address();
        let logs = folder.path("logs");
        std::fs::create_dir(&logs).expect("a folder");
        let coordinator = start_coordinator(&directory, &logs, address);
        let secret = directory.join("secret");
        wait_until("the secret of the cluster", END, || secret.exists())
            .expect("a coordinator that starts");
        let disk = can_mount().then(|| Disk::mount(&directory.join("w1")));
        let mut daemons = Daemons {
            directory,
            logs,
            address,
            coordinator,
            workers: Vec::new(),
            disk,
            network,
        };
        for number in 1..=3 {
            let link = Proxy::start(address);
            let data_address = free_address();
            let name = format!("w{number}");
            let data = Proxy::start(data_address);
            let process = daemons.start_worker(&name, &name, &link, data_address, &data);
            daemons.workers.push(Worker {
                name,
                process,
                link,
                data,
                data_address,
            });
        }
        daemons
    }

    fn start_worker(
        &self,
        name: &str,
        folder: &str,
        link: &Proxy,
        data_address: SocketAddr,
        data: &Proxy,
    ) -> Child {
        let mut command = program("nap");
        command
            .args(["worker", "--name", name, "--directory"])
            .arg(self.directory.join(folder));
        command.args([
            "--coordinator",
            &link.address().to_string(),
            "--secret-file",
        ]);
        command.arg(self.directory.join("secret")).args([
            "--map-slots",
            "2",
            "--reduce-slots",
            "2",
        ]);
        command.args([
            "--bind",
            &data_address.to_string(),
            "--advertise",
            &data.address().to_string(),
        ]);
        command.args([
            "--task-silence-max",
            &format!("{}ms", TASK_SILENCE.as_millis()),
        ]);
        if self.network {
            command.arg("--network-shuffle");
        }
        spawn(command, &self.logs.join(format!("{folder}.log")))
    }

    /// Starts a second worker with the name of the victim. It must end with an error, and the first one must
    /// stay.
    pub fn start_twin(&mut self, victim: usize) -> Result<(), String> {
        let worker = &self.workers[victim];
        wait_until("the first worker of a name", END, || {
            self.worker_state(victim).as_deref() == Some("up")
        })?;
        let folder = format!("{}-twin", worker.name);
        let data_address = free_address();
        let mut twin = self.start_worker(
            &worker.name,
            &folder,
            &worker.link,
            data_address,
            &worker.data,
        );
        let mut status = None;
        let ended = wait_until("the end of a second worker of one name", END, || {
            status = twin.try_wait().expect("a process of this test");
            status.is_some()
        });
        if ended.is_err() {
            twin.kill()
                .and_then(|()| twin.wait())
                .expect("a process of this test");
        }
        ended?;
        std::fs::remove_dir_all(self.directory.join(&folder))
            .map_err(|error| format!("{folder}: {error}"))?;
        let code = status.and_then(|status| status.code());
        match code {
            Some(2) => self.check(),
            _ => Err(format!(
                "a second worker of one name ended with {status:?} instead of 2"
            )),
        }
    }

    /// Returns the state of a worker as the coordinator lists it; `None` if the coordinator does not answer
    /// or does not list the worker.
    pub fn worker_state(&self, index: usize) -> Option<String> {
        let mut command = program("nap");
        command
            .arg("--dir")
            .arg(&self.directory)
            .args(["worker", "list", "--format", "json"]);
        let listed: Value = serde_json::from_str(&run(&mut command).stdout).ok()?;
        let named = |worker: &&Value| worker["name"] == self.workers[index].name.as_str();
        Some(
            listed.as_array()?.iter().find(named)?["state"]
                .as_str()?
                .to_owned(),
        )
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills the coordinator; returns whether the kill ended it.
    pub fn kill_coordinator(&mut self) -> bool {
        self.coordinator.kill().expect("a process of this test");
        self.coordinator
            .wait()
            .expect("a process of this test")
            .signal()
            == Some(Signal::KILL.as_raw())
    }

    pub fn restart_coordinator(&mut self) {
        self.coordinator = start_coordinator(&self.directory, &self.logs, self.address);
    }

    /// Kills a worker; returns whether the kill ended it.
    pub fn kill_worker(&mut self, index: usize) -> bool {
        let worker = &mut self.workers[index];
        worker.process.kill().expect("a process of this test");
        worker
            .process
            .wait()
            .expect("a process of this test")
            .signal()
            == Some(Signal::KILL.as_raw())
    }

    pub fn restart_worker(&mut self, index: usize) {
        let worker = &self.workers[index];
        let process = self.start_worker(
            &worker.name,
            &worker.name,
            &worker.link,
            worker.data_address,
            &worker.data,
        );
        self.workers[index].process = process;
    }

    /// Fails if a daemon has ended by itself.
    pub fn check(&mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.coordinator.try_wait() {
            return Err(format!("the coordinator ended by itself: {status}"));
        }
        for worker in &mut self.workers {
            if let Ok(Some(status)) = worker.process.try_wait() {
                return Err(format!("worker {} ended by itself: {status}", worker.name));
            }
        }
        Ok(())
    }

    /// Undoes all faults.
    pub fn heal(&self) {
        for worker in &self.workers {
            worker.link.silence(false);
            worker.link.delay(Duration::ZERO);
            worker.data.refuse(None);
        }
        if let Some(disk) = &self.disk {
            disk.free();
        }
    }

    /// Returns how often the coordinator's log contains these words.
    pub fn said(&self, words: &str) -> usize {
        let log = std::fs::read_to_string(self.logs.join("coordinator.log")).unwrap_or_default();
        log.matches(words).count()
    }

    /// Returns why jobs make no progress.
    pub fn explain(&self) -> String {
        let nap = |words: &[&str]| {
            run(program("nap").arg("--dir").arg(&self.directory).args(words)).stdout
        };
        let jobs: Value =
            serde_json::from_str(&nap(&["job", "list", "--format", "json"])).unwrap_or_default();
        let open = jobs
            .as_array()
            .into_iter()
            .flatten()
            .filter(|job| job["ended_millis"].is_null());
        let mut why = nap(&["worker", "list"]);
        for job in open.filter_map(|job| job["job"].as_str()) {
            why += &nap(&["job", "explain", job]);
            why += &nap(&["task", "list", job]);
        }
        why
    }

    /// Shuts all daemons down as an operator would; fails if one does not end or leaves processes behind.
    pub fn stop(&mut self) -> Result<(), String> {
        let tasks: Vec<Process> = self
            .workers
            .iter()
            .flat_map(|worker| Process::tasks_of(worker.process.id()))
            .collect();
        let names = self
            .workers
            .iter_mut()
            .map(|worker| (worker.name.as_str(), &mut worker.process));
        for (name, process) in names.chain([("coordinator", &mut self.coordinator)]) {
            if let Some(known) = Process::of(process.id()) {
                known.signal(Signal::TERM);
            }
            let ended = wait_until(&format!("the end of {name}"), END, || {
                matches!(process.try_wait(), Ok(Some(_)))
            });
            if ended.is_err() {
                process
                    .kill()
                    .and_then(|()| process.wait())
                    .expect("a process of this test");
                ended?;
            }
        }
        wait_until("the end of every task process", END, || {
            tasks.iter().all(Process::is_gone)
        })
    }

    /// Returns the tails of all logs.
    pub fn logs(&self) -> String {
        let names = self
            .workers
            .iter()
            .map(|worker| worker.name.as_str())
            .chain(["coordinator"]);
        let logs = names.map(|name| {
            let text =
                std::fs::read_to_string(self.logs.join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!(
                "--- {name}\n{}\n",
                lines[lines.len().saturating_sub(200)..].join("\n")
            )
        });
        logs.collect()
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        let processes = self.workers.iter_mut().map(|worker| &mut worker.process);
        for process in processes.chain([&mut self.coordinator]) {
            // Fails if the process has ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn start_coordinator(directory: &Path, logs: &Path, address: SocketAddr) -> Child {
    let mut command = program("nap");
    command
        .arg("coordinator")
        .arg("--dir")
        .arg(directory)
        .args(["--bind", &address.to_string()]);
    command.args([
        "--heartbeat",
        "50ms",
        "--liveness",
        &format!("{}ms", LIVENESS.as_millis()),
    ]);
    // Small, so that the runs include snapshots.
    command.args(["--journal-bytes-max", "64KiB"]);
    spawn(command, &logs.join("coordinator.log"))
}

fn spawn(mut command: Command, log: &Path) -> Child {
    let log: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log");
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a descriptor"))
        .stderr(log);
    command.spawn().expect("a daemon")
}
