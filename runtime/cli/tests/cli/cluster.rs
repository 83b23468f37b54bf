//! Tests of `nap up`, `nap coordinator` and commands without jobs: processes, files, exit statuses.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
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
    let variables =
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NAPREDUCE_"));
    for (name, _) in variables {
        command.env_remove(name);
    }
    command
        .args(line.split_whitespace())
        .env("NAPREDUCE_DIR", folder.join("cluster"))
        .stdin(Stdio::null());
    command
}

/// Runs `nap`; returns its status, standard output and standard error.
fn ask(folder: &Path, line: &str) -> (i32, String, String) {
    let output = nap(folder, line).output().expect("nap runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A running `nap`, killed at the end of the test.
struct Running {
    child: Child,
}

impl Running {
    fn start(folder: &Path, line: &str) -> Running {
        let mut command = nap(folder, line);
        Running {
            child: command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("nap runs"),
        }
    }

    /// Starts `nap` as `nohup` and `&` in a script do: with SIGHUP and SIGINT ignored.
    fn start_in_background(folder: &Path, line: &str) -> Running {
        let mut command = nap(folder, line);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        command = shell;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running {
            child: command.spawn().expect("nap runs"),
        }
    }

    /// Returns whether it ignores a signal.
    fn ignores(&self, signal: Signal) -> bool {
        ignores(self.child.id(), signal)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the first line of standard error that contains the words; a thread reads the rest.
    fn wait_for_line(&mut self, words: &'static str) -> String {
        let stderr = self.child.stderr.take().expect("asked once");
        first_line(stderr, words)
    }

    fn first_line_of_stdout(&mut self) -> String {
        let mut stdout = BufReader::new(self.child.stdout.take().expect("asked once"));
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).map(|_| line);
            let _ = sender.send(read);
            let _ = stdout.read_to_end(&mut Vec::new());
        });
        receiver
            .recv_timeout(DEADLINE)
            .expect("a line in time")
            .expect("a readable line")
    }

    fn ends_after(mut self, signal: Signal) -> i32 {
        // These tests may run in the background themselves.
        let signal = if self.ignores(signal) {
            Signal::TERM
        } else {
            signal
        };
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
        // Fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_line(stderr: ChildStderr, words: &'static str) -> String {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains(words) {
                let _ = sender.send(line);
            }
        }
    });
    receiver
        .recv_timeout(DEADLINE)
        .unwrap_or_else(|_| panic!("no line contains {words:?}"))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn coordinator_answers_and_ends_on_sigterm() {
    let folder = folder();
    let folder = folder.path();
    let mut coordinator = Running::start(folder, "coordinator");
    coordinator.wait_for_line("listening at 127.0.0.1:");
    let (status, stdout, _) = ask(folder, "job list");
    assert_eq!((status, stdout.lines().count()), (0, 1), "{stdout}");
    assert!(stdout.starts_with("JOB"), "{stdout}");
    assert_eq!(ask(folder, "job list --format json").1.trim(), "[]");
    assert_eq!(ask(folder, "worker list --format json").1.trim(), "[]");
    assert_eq!(ask(folder, "task list --format json").1.trim(), "[]");
    let (status, _, stderr) = ask(folder, "worker list --wait 1 --timeout 50ms");
    assert_eq!(status, 1);
    assert!(
        stderr.contains("0 of 1 worker is up after 50ms; start more with: nap worker"),
        "{stderr}"
    );
    let (status, _, stderr) = ask(folder, "job status last");
    assert!(
        status == 2 && stderr.contains("no job yet"),
        "{status} {stderr}"
    );
    let (status, _, stderr) = ask(folder, "job status 9");
    assert!(
        status != 0 && stderr.contains("job_0009"),
        "{status} {stderr}"
    );
    let (status, _, stderr) = ask(folder, "coordinator");
    assert!(
        status == 1 && stderr.contains("is already running"),
        "{status} {stderr}"
    );
    assert_eq!(coordinator.ends_after(Signal::TERM), 0);
}

#[test]
fn missing_cluster_is_reported_with_remedy() {
    let folder = folder();
    let (status, _, stderr) = ask(folder.path(), "job list");
    let directory = folder.path().join("cluster").display().to_string();
    let expected = format!(
        "nap: there is no cluster directory {directory}; start a cluster with: nap up --dir {directory}\n"
    );
    assert_eq!(
        (status, stderr),
        (69, expected),
        "once, with a status of its own"
    );
    let (status, _, stderr) = ask(folder.path(), "job list --coordinator nowhere:1");
    assert!(
        status == 2 && stderr.contains("name it with --secret-file"),
        "{status} {stderr}"
    );
    std::fs::create_dir(folder.path().join("cluster")).expect("a directory");
    std::fs::write(
        folder.path().join("cluster/napreduce.toml"),
        "[up]\nworker = 3\n",
    )
    .expect("a file");
    let (status, _, stderr) = ask(folder.path(), "job list");
    assert!(
        status == 2 && stderr.contains("invalid configuration file"),
        "{status} {stderr}"
    );
}

#[test]
fn client_waits_for_absent_coordinator() {
    let folder = folder();
    let folder = folder.path();
    let mut coordinator = Running::start(folder, "coordinator");
    coordinator.wait_for_line("listening at 127.0.0.1:");
    // A killed coordinator leaves its address; a client waits for the next coordinator.
    assert_eq!(coordinator.ends_after(Signal::KILL), -1);
    let (status, _, stderr) = ask(folder, "job list --connect-timeout 3s");
    assert_eq!(status, 69, "{stderr}");
    assert!(
        stderr.contains("waiting for the coordinator of "),
        "{stderr}"
    );
    assert!(stderr.contains("; retrying for "), "{stderr}");
    assert!(stderr.contains("no coordinator answers for "), "{stderr}");
    let mut asking = Running::start(folder, "job list --format json");
    asking.wait_for_line("; retrying for 5");
    let mut coordinator = Running::start(folder, "coordinator");
    coordinator.wait_for_line("listening at 127.0.0.1:");
    assert_eq!(asking.first_line_of_stdout(), "[]\n");
    assert_eq!(coordinator.ends_after(Signal::TERM), 0);
}

#[test]
fn second_nap_up_fails_and_names_the_first() {
    let folder = folder();
    let folder = folder.path();
    // The files of a killed coordinator are no obstacle.
    ask(folder, "coordinator --bind nowhere");
    for file in ["up.lock", "coordinator.lock"] {
        std::fs::write(folder.join("cluster").join(file), "4194304\n").expect("a written file");
    }
    let mut first = Running::start(folder, "up --workers 1");
    let ready = first.first_line_of_stdout();
    assert!(
        ready.starts_with("ready: 1 worker with 2 map and 1 reduce slots in "),
        "{ready}"
    );
    let daemons = children(first.pid());
    let (status, stdout, stderr) = ask(folder, "up --workers 1");
    assert_eq!((status, stdout.as_str()), (1, ""), "{stderr}");
    assert!(
        stderr.contains(&format!(
            "(process {}) is already running",
            first.child.id()
        )),
        "{stderr}"
    );
    let (status, _, stderr) = ask(folder, "coordinator");
    assert!(
        status == 1 && stderr.contains("a coordinator (process "),
        "{status} {stderr}"
    );
    assert_eq!(
        children(first.pid()),
        daemons,
        "the first one is not disturbed"
    );
    assert_eq!(first.ends_after(Signal::INT), 0);
    // `nap up` does not join a coordinator that was started separately.
    let mut coordinator = Running::start(folder, "coordinator");
    coordinator.wait_for_line("listening at 127.0.0.1:");
    let (status, stdout, stderr) = ask(folder, "up --workers 1");
    assert_eq!((status, stdout.as_str()), (1, ""), "{stderr}");
    assert!(
        stderr.contains(&format!("(process {} at ", coordinator.child.id())),
        "{stderr}"
    );
}

#[test]
fn nap_down_ends_nap_up_or_reports_that_none_runs() {
    let folder = folder();
    let folder = folder.path();
    let (status, _, stderr) = ask(folder, "down");
    assert!(
        status == 69 && stderr.contains("there is no cluster directory"),
        "{status} {stderr}"
    );
    let mut up = Running::start(folder, "up --workers 1");
    assert!(up.first_line_of_stdout().starts_with("ready: "));
    let daemons = children(up.pid());
    let (status, stdout, stderr) = ask(folder, "down --now");
    assert_eq!(status, 0, "{stderr}");
    let begin = format!(
        " nap up (process {}), its coordinator, worker local-a\n",
        up.child.id()
    );
    assert!(stdout.ends_with(&begin), "{stdout}");
    for daemon in daemons {
        assert!(test_kill_process(daemon).is_err(), "{daemon:?} runs");
    }
    assert!(up.child.wait().expect("it can be waited for").success());
    let (status, stdout, stderr) = ask(folder, "down");
    assert_eq!((status, stdout.as_str()), (69, ""));
    assert!(
        stderr.contains("no nap up is running for ") && stderr.contains("--dir"),
        "{stderr}"
    );
    // The number of a killed `nap up` may belong to another process by now.
    std::fs::write(
        folder.join("cluster/up.lock"),
        std::process::id().to_string(),
    )
    .expect("a file");
    assert_eq!(ask(folder, "down").0, 69);
    let mut coordinator = Running::start(folder, "coordinator");
    coordinator.wait_for_line("listening at 127.0.0.1:");
    let (status, _, stderr) = ask(folder, "down");
    let without = format!(
        "its coordinator (process {}) was started without it",
        coordinator.child.id()
    );
    assert!(
        status == 69 && stderr.contains(&without),
        "{status} {stderr}"
    );
    assert_eq!(
        ask(folder, "job list").0,
        0,
        "the coordinator is not disturbed"
    );
    let (status, _, stderr) = ask(folder, "down --coordinator host:1");
    assert!(
        status == 2 && stderr.contains("on this machine"),
        "{status} {stderr}"
    );
}

#[test]
fn nap_down_ends_a_nap_up_that_ignores_interrupts() {
    let folder = folder();
    let folder = folder.path();
    let mut up = Running::start_in_background(folder, "up --workers 1");
    assert!(up.first_line_of_stdout().starts_with("ready: "));
    let (status, _, stderr) = ask(folder, "down --now");
    assert_eq!(status, 0, "{stderr}");
    assert!(
        stderr.contains("nap up ignores SIGINT and SIGHUP"),
        "{stderr}"
    );
    assert!(up.child.wait().expect("it can be waited for").success());
}

#[test]
fn usage_errors_do_not_list_options_of_the_environment_as_required() {
    let folder = folder();
    // NAPREDUCE_DIR is set.
    let (status, _, stderr) = ask(folder.path(), "job kill");
    assert_eq!(status, 2);
    assert!(
        stderr.contains("\nUsage: nap job kill [OPTIONS] <JOB>...\n"),
        "{stderr}"
    );
}

#[test]
fn second_coordinator_is_refused_by_the_journal_without_a_lock_file() {
    let folder = folder();
    let folder = folder.path();
    let mut first = Running::start(folder, "coordinator");
    first.wait_for_line("listening at 127.0.0.1:");
    std::fs::remove_file(folder.join("cluster/coordinator.lock")).expect("a lock file");
    let (status, _, stderr) = ask(folder, "coordinator");
    let holder = format!(
        "is in use by another coordinator (process {}); end that one",
        first.child.id()
    );
    assert!(status == 1 && stderr.contains(&holder), "{status} {stderr}");
    let (status, stdout, stderr) = ask(folder, "job list --format json");
    assert_eq!((status, stdout.as_str()), (0, "[]\n"), "{stderr}");
    // The lock ends with the process.
    assert_eq!(first.ends_after(Signal::KILL), -1);
    let mut next = Running::start(folder, "coordinator");
    next.wait_for_line("listening at 127.0.0.1:");
    assert_eq!(next.ends_after(Signal::TERM), 0);
}

/// Returns whether a process ignores a signal, as the kernel reports it.
fn ignores(process: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("its ignored signals");
    let mask = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    mask >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn ignored_signals_stay_ignored_by_long_running_commands() {
    let folder = folder();
    let folder = folder.path();
    let mut up = Running::start_in_background(folder, "up --workers 1");
    assert!(up.first_line_of_stdout().starts_with("ready: 1 worker "));
    let mut page = Running::start_in_background(folder, "web serve --web 127.0.0.1:0");
    assert!(page.first_line_of_stdout().contains("http://"));
    for running in [&up, &page] {
        for signal in [Signal::HUP, Signal::INT] {
            assert!(running.ignores(signal), "{signal:?}");
            kill_process(running.pid(), signal).expect("it runs");
        }
    }
    let (status, _, stderr) = ask(folder, "worker list --wait 1");
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(page.ends_after(Signal::TERM), 0);
    assert_eq!(up.ends_after(Signal::TERM), 0);
}

#[test]
fn empty_variable_counts_as_unset() {
    let folder = folder();
    for name in [
        "NAPREDUCE_DIR",
        "NAPREDUCE_COORDINATOR",
        "NAPREDUCE_SECRET_FILE",
        "NAPREDUCE_CONFIG",
        "NAPREDUCE_CONNECT_TIMEOUT",
    ] {
        let mut command = nap(folder.path(), "job list");
        let output = command
            .env(name, "")
            .env("XDG_STATE_HOME", folder.path())
            .output()
            .expect("nap runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(69), "{name}: {stderr}");
        assert!(
            stderr.contains("start a cluster with: nap up --dir "),
            "{name}: {stderr}"
        );
    }
}

#[test]
fn directory_of_another_user_is_rejected() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let folder = folder();
    ask(folder.path(), "coordinator --bind nowhere");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
        .expect("changed");
    // The other user may have no access to the original.
    let copy = folder.path().join("nap");
    std::fs::copy(env!("CARGO_BIN_EXE_nap"), &copy).expect("copied");
    for line in ["job list", "worker list", "coordinator", "up"] {
        let mut command = Command::new(&copy);
        command
            .args(line.split_whitespace())
            .arg("--dir")
            .arg(folder.path().join("cluster"));
        let output = command.uid(54_321).gid(54_321).output().expect("nap runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("belongs to root (user 0), not to you (user 54321)"),
            "{line}: {stderr}"
        );
    }
}

#[test]
fn missing_lab_is_reported_with_remedy() {
    let folder = folder();
    let copy = folder.path().join("nap");
    std::fs::copy(env!("CARGO_BIN_EXE_nap"), &copy).expect("copied");
    let mut command = Command::new(&copy);
    let output = command
        .args(["lab", "speed"])
        .env("PATH", folder.path())
        .output()
        .expect("nap runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("nap: cannot run nap-lab: "), "{stderr}");
    assert!(
        stderr.contains("`cargo build --release -p napreduce-lab` and put it next to nap"),
        "{stderr}"
    );
}

#[test]
fn nap_up_restarts_daemons_and_leaves_no_process() {
    let folder = folder();
    let folder = folder.path();
    let mut up = Running::start(folder, "up --workers 2 --map-slots 1 --network-shuffle");
    let ready = up.first_line_of_stdout();
    assert!(
        ready.starts_with("ready: 2 workers with 1 map and 1 reduce slots each in "),
        "{ready}"
    );
    let (status, stdout, stderr) = ask(folder, "worker list --wait 2 --format json");
    assert_eq!(status, 0, "{stderr}");
    let workers: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let mut names: Vec<&str> = workers
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|w| w["name"].as_str())
        .collect();
    // Workers join in any order.
    names.sort_unstable();
    assert_eq!(names, ["local-a", "local-b"]);
    let daemons = children(up.pid());
    assert_eq!(daemons.len(), 3);
    // The first process that ends may be the coordinator or a worker.
    let stderr = up.child.stderr.take().expect("asked once");
    kill_process(daemons[1], Signal::KILL).expect("it runs");
    let line = first_line(stderr, "restarting in");
    assert!(line.contains("ended (signal 9)"), "{line}");
    let (status, _, stderr) = ask(folder, "worker list --wait 2");
    assert_eq!(status, 0, "{stderr}");
    let daemons = [daemons, children(up.pid())].concat();
    assert_eq!(up.ends_after(Signal::INT), 0);
    for daemon in daemons {
        assert!(
            test_kill_process(daemon).is_err(),
            "{daemon:?} is still there"
        );
    }
}

/// Returns the running child processes.
fn children(of: Pid) -> Vec<Pid> {
    let path = format!("/proc/{pid}/task/{pid}/children", pid = of.as_raw_nonzero());
    let text = std::fs::read_to_string(path).expect("a running process");
    text.split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

#[test]
fn logs_are_json_files_and_invalid_levels_are_rejected() {
    let folder = TempDir::new().expect("a folder");
    let logs = folder.path().join("logs");
    let line = format!(
        "up --workers 1 --log-format json --log-directory {}",
        logs.display()
    );
    let mut running = Running::start(folder.path(), &line);
    assert!(running.first_line_of_stdout().starts_with("ready"));
    assert_eq!(running.ends_after(Signal::INT), 0);
    let files: Vec<_> = std::fs::read_dir(&logs)
        .expect("a directory")
        .flatten()
        .map(|file| file.path())
        .collect();
    assert_eq!(
        files.len(),
        2,
        "one of the coordinator, one of the worker: {files:?}"
    );
    let text: String = files
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("text"))
        .collect();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let is_logged = |target: &str, words: &str| {
        let about = |line: &&serde_json::Value| line["target"] == target;
        lines.iter().filter(about).any(|line| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains(words))
        })
    };
    assert!(
        is_logged("coordinator", "listening at")
            && is_logged("worker", "connected to the coordinator"),
        "{text}"
    );

    let refused = nap(folder.path(), "coordinator")
        .env("NAPREDUCE_LOG", "worker=loud")
        .output()
        .expect("nap runs");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("invalid NAPREDUCE_LOG=worker=loud"),
        "{stderr}"
    );
}
