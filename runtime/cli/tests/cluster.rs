//! Daemons and the operator's commands as a person meets them: processes, files, exit statuses.
//!
//! Owns `nap up`, `nap coordinator` and what is asked of them. Jobs are the whole-system tests' business.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// Long enough for a machine under load.
const DEADLINE: Duration = Duration::from_secs(60);

fn nap(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nap"));
    let variables = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NAPREDUCE_"));
    for (name, _) in variables {
        command.env_remove(name);
    }
    command.args(line.split_whitespace()).env("NAPREDUCE_DIR", folder.join("cluster")).stdin(Stdio::null());
    command
}

/// Status, standard output and standard error.
fn ask(folder: &Path, line: &str) -> (i32, String, String) {
    let output = nap(folder, line).output().expect("nap runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// A running nap, ended with the test.
struct Running {
    child: Child,
}

impl Running {
    fn start(folder: &Path, line: &str) -> Running {
        let mut command = nap(folder, line);
        Running { child: command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("nap runs") }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The first line of standard error that contains the words; the rest is read by a thread.
    fn says(&mut self, words: &'static str) -> String {
        let stderr = self.child.stderr.take().expect("asked once");
        first_line(stderr, words)
    }

    fn first_line_of_stdout(&mut self) -> String {
        let mut stdout = BufReader::new(self.child.stdout.take().expect("asked once"));
        let (tell, told) = channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).map(|_| line);
            let _ = tell.send(read);
            let _ = stdout.read_to_end(&mut Vec::new());
        });
        told.recv_timeout(DEADLINE).expect("a line in time").expect("a readable line")
    }

    fn ends_after(mut self, signal: Signal) -> i32 {
        kill_process(self.pid(), signal).expect("it runs");
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < until, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, or to be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_line(stderr: ChildStderr, words: &'static str) -> String {
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains(words) {
                let _ = tell.send(line);
            }
        }
    });
    told.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("nobody said {words:?}"))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_coordinator_answers_and_ends_when_asked_to() {
    let folder = folder();
    let folder = folder.path();
    let mut coordinator = Running::start(folder, "coordinator");
    coordinator.says("listening at 127.0.0.1:");
    let (status, stdout, _) = ask(folder, "job list");
    assert_eq!((status, stdout.lines().count()), (0, 1), "{stdout}");
    assert!(stdout.starts_with("JOB"), "{stdout}");
    assert_eq!(ask(folder, "job list --format json").1.trim(), "[]");
    assert_eq!(ask(folder, "worker list --format json").1.trim(), "[]");
    assert_eq!(ask(folder, "task list --format json").1.trim(), "[]");
    let (status, _, stderr) = ask(folder, "worker list --wait 1 --timeout 50ms");
    assert_eq!(status, 1);
    assert!(stderr.contains("0 of 1 workers are up after 50ms; start more with: nap worker"), "{stderr}");
    let (status, _, stderr) = ask(folder, "job status last");
    assert!(status == 1 && stderr.contains("there is no job yet"), "{status} {stderr}");
    let (status, _, stderr) = ask(folder, "job status 9");
    assert!(status != 0 && stderr.contains("job_0009"), "{status} {stderr}");
    let (status, _, stderr) = ask(folder, "coordinator");
    assert!(status == 1 && stderr.contains("is already running"), "{status} {stderr}");
    assert_eq!(coordinator.ends_after(Signal::TERM), 0);
}

#[test]
fn without_a_cluster_it_is_said_how_to_get_one() {
    let folder = folder();
    let (status, _, stderr) = ask(folder.path(), "job list");
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("start a cluster with: nap up --dir "), "{stderr}");
    let (status, _, stderr) = ask(folder.path(), "job list --coordinator nowhere:1");
    assert!(status == 2 && stderr.contains("name it with --secret-file"), "{status} {stderr}");
    std::fs::create_dir(folder.path().join("cluster")).expect("a directory");
    std::fs::write(folder.path().join("cluster/napreduce.toml"), "[up]\nworker = 3\n").expect("a file");
    let (status, _, stderr) = ask(folder.path(), "job list");
    assert!(status == 1 && stderr.contains("napreduce.toml is not understood"), "{status} {stderr}");
}

#[test]
fn a_cluster_comes_up_mends_itself_and_leaves_no_process() {
    let folder = folder();
    let folder = folder.path();
    let mut up = Running::start(folder, "up --workers 2 --map-slots 1 --network-shuffle");
    let ready = up.first_line_of_stdout();
    assert!(ready.starts_with("ready: 2 workers with 1 map and 1 reduce slots each in "), "{ready}");
    let (status, stdout, stderr) = ask(folder, "worker list --wait 2 --format json");
    assert_eq!(status, 0, "{stderr}");
    let workers: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let mut names: Vec<&str> =
        workers.as_array().expect("a list").iter().filter_map(|w| w["name"].as_str()).collect();
    // They join in any order.
    names.sort_unstable();
    assert_eq!(names, ["worker-1", "worker-2"]);
    let daemons = children(up.pid());
    assert_eq!(daemons.len(), 3);
    // Whichever it is: the coordinator or a worker.
    let stderr = up.child.stderr.take().expect("asked once");
    kill_process(daemons[1], Signal::KILL).expect("it runs");
    let line = first_line(stderr, "it is started again in");
    assert!(line.contains("ended (signal 9)"), "{line}");
    let (status, _, stderr) = ask(folder, "worker list --wait 2");
    assert_eq!(status, 0, "{stderr}");
    let daemons = [daemons, children(up.pid())].concat();
    assert_eq!(up.ends_after(Signal::INT), 0);
    for daemon in daemons {
        assert!(test_kill_process(daemon).is_err(), "{daemon:?} is still there");
    }
}

/// The processes that a process has started and that still run.
fn children(of: Pid) -> Vec<Pid> {
    let path = format!("/proc/{pid}/task/{pid}/children", pid = of.as_raw_nonzero());
    let text = std::fs::read_to_string(path).expect("a running process");
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}
