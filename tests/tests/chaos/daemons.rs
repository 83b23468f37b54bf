//! A coordinator and three workers, each behind a link, as processes that may be killed at any time.
//!
//! Owns their start, their logs and their end. Does not own when they are killed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use napreduce_tests::{Folder, program};
use rustix::process::Signal;

use crate::processes::{Process, wait_until};
use crate::proxy::Proxy;

/// A worker that is silent for so long is lost.
pub const LIVENESS: Duration = Duration::from_millis(1000);
/// A task that is silent for so long is ended.
pub const TASK_SILENCE: Duration = Duration::from_millis(1500);
/// A graceful end takes no longer.
const END: Duration = Duration::from_secs(30);

pub struct Daemons {
    directory: PathBuf,
    address: SocketAddr,
    pub coordinator: Child,
    pub workers: Vec<Worker>,
}

pub struct Worker {
    name: String,
    pub process: Child,
    pub link: Proxy,
}

impl Daemons {
    pub fn start(folder: &Folder) -> Daemons {
        let directory = folder.path("cluster");
        // Closed to others, or it would be refused.
        DirBuilder::new().mode(0o700).create(&directory).expect("a folder");
        // Let go of at once, and taken by the coordinator; it keeps its port over restarts.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|any| any.local_addr()).expect("a free port");
        let coordinator = start_coordinator(&directory, address);
        let secret = directory.join("secret");
        wait_until("the secret of the cluster", END, || secret.exists()).expect("a coordinator that starts");
        let workers = (1..=3).map(|number| {
            let link = Proxy::start(address);
            let name = format!("w{number}");
            let process = start_worker(&directory, &name, link.address());
            Worker { name, process, link }
        });
        let workers = workers.collect();
        Daemons { directory, address, coordinator, workers }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills the coordinator; true when it really ended by that.
    pub fn kill_coordinator(&mut self) -> bool {
        self.coordinator.kill().expect("a process of this test");
        self.coordinator.wait().expect("a process of this test").signal() == Some(Signal::KILL.as_raw())
    }

    pub fn restart_coordinator(&mut self) {
        self.coordinator = start_coordinator(&self.directory, self.address);
    }

    /// Kills a worker; true when it really ended by that.
    pub fn kill_worker(&mut self, index: usize) -> bool {
        let worker = &mut self.workers[index];
        worker.process.kill().expect("a process of this test");
        worker.process.wait().expect("a process of this test").signal() == Some(Signal::KILL.as_raw())
    }

    pub fn restart_worker(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        worker.process = start_worker(&self.directory, &worker.name, worker.link.address());
    }

    /// Nothing but what a test does may end a daemon.
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

    /// Lets everything pass and run again.
    pub fn heal(&self) {
        for worker in &self.workers {
            worker.link.silence(false);
            worker.link.delay(Duration::ZERO);
        }
    }

    /// How often the coordinator's log has said these words.
    pub fn said(&self, words: &str) -> usize {
        let log = std::fs::read_to_string(self.directory.join("coordinator.log")).unwrap_or_default();
        log.matches(words).count()
    }

    /// Ends all of them as an operator would; an error when one does not end, or leaves processes behind.
    pub fn stop(&mut self) -> Result<(), String> {
        let tasks: Vec<Process> =
            self.workers.iter().flat_map(|worker| Process::tasks_of(worker.process.id())).collect();
        let names = self.workers.iter_mut().map(|worker| (worker.name.as_str(), &mut worker.process));
        for (name, process) in names.chain([("coordinator", &mut self.coordinator)]) {
            if let Some(known) = Process::of(process.id()) {
                known.signal(Signal::TERM);
            }
            let ended =
                wait_until(&format!("the end of {name}"), END, || matches!(process.try_wait(), Ok(Some(_))));
            if ended.is_err() {
                process.kill().and_then(|()| process.wait()).expect("a process of this test");
                ended?;
            }
        }
        wait_until("the end of every task process", END, || tasks.iter().all(Process::is_gone))
    }

    /// The ends of all logs, for people.
    pub fn logs(&self) -> String {
        let names = self.workers.iter().map(|worker| worker.name.as_str()).chain(["coordinator"]);
        let logs = names.map(|name| {
            let text =
                std::fs::read_to_string(self.directory.join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(200)..].join("\n"))
        });
        logs.collect()
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        let processes = self.workers.iter_mut().map(|worker| &mut worker.process);
        for process in processes.chain([&mut self.coordinator]) {
            // Those that have ended are reaped already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn start_coordinator(directory: &Path, address: SocketAddr) -> Child {
    let mut command = program("nap");
    command.arg("coordinator").arg("--dir").arg(directory).args(["--bind", &address.to_string()]);
    command.args(["--heartbeat", "50ms", "--liveness", &format!("{}ms", LIVENESS.as_millis())]);
    // Small, so that runs go over snapshots too.
    command.args(["--journal-bytes-max", "64KiB"]);
    spawn(command, &directory.join("coordinator.log"))
}

fn start_worker(directory: &Path, name: &str, coordinator: SocketAddr) -> Child {
    let mut command = program("nap");
    command.arg("worker").args(["--name", name, "--directory"]).arg(directory.join(name));
    command.args(["--coordinator", &coordinator.to_string(), "--secret-file"]).arg(directory.join("secret"));
    command.args(["--map-slots", "2", "--reduce-slots", "2"]);
    command.args(["--task-silence-max", &format!("{}ms", TASK_SILENCE.as_millis())]);
    spawn(command, &directory.join(format!("{name}.log")))
}

fn spawn(mut command: Command, log: &Path) -> Child {
    let log: File = OpenOptions::new().create(true).append(true).open(log).expect("a log");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
    command.spawn().expect("a daemon")
}
