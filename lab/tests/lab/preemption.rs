//! What `nap lab preempt` and its relatives leave behind, however they end, and what they say and write. They
//! run real jobs on real clusters of their own, with tasks of a second; no figure is judged here.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// Longer than daemons may take to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder for the work and the report of an experiment.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nap-lab"));
        command.args(arguments).arg("--work").arg(self.path("work"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Two jobs once, with tasks of a second, and as much memory as is said.
    fn two_jobs(&self, more: &[&str]) -> Command {
        self.two_jobs_of("1s", more)
    }

    /// Tasks so long that on a busy machine, too, half of one is left when it is to be preempted.
    fn two_long_jobs(&self, more: &[&str]) -> Command {
        self.two_jobs_of("2s", more)
    }

    fn two_jobs_of(&self, task_time: &str, more: &[&str]) -> Command {
        let mut command =
            self.command(&["preempt", "--repetitions", "1", "--task-time", task_time, "--at", "50"]);
        command.arg("--report").arg(self.path("report")).args(more);
        command
    }

    /// Waits until nothing is left of an experiment: no folder, no process that was started with a path in
    /// it.
    fn assert_nothing_is_left(&self) {
        let began = Instant::now();
        loop {
            let files = fs::read_dir(self.path("work")).unwrap().count();
            let processes = processes_of(&self.path("work"));
            if files == 0 && processes.is_empty() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{files} files and {processes:?} are left");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Command lines that name this folder, of processes that run.
fn processes_of(folder: &Path) -> Vec<String> {
    let named = folder.to_str().unwrap();
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    // The experiment itself has no process any more, or is the one that has the folder as its argument.
    lines.filter(|line| line.contains(named) && !line.contains(" lab ")).collect()
}

/// Reads what a program says until a line holds `part`, and then leaves it running.
fn wait_for(child: &mut Child, part: &str) -> (String, BufReader<std::process::ChildStderr>) {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended without {part:?}:\n{said}");
        said.push_str(&line);
        if line.contains(part) {
            return (said, lines);
        }
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn two_jobs_are_compared_and_everything_else_is_gone() {
    let bench = Bench::new();
    let output = bench.two_jobs(&["--tasks", "light", "--primitives", "wait,kill"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("Makespan of both jobs") && table.contains("2 runs are byte-identical"),
        "{table}"
    );
    assert!(said.contains("light 2/2") && said.contains("outputs right"), "{said}");
    let raw = fs::read_to_string(bench.path("report/raw.jsonl")).unwrap();
    let runs: Vec<serde_json::Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert!(run["identical"] == true && run["as_asked"] == true, "{run}");
        // The high job waits for the rest of the low one, or does not.
        assert!(run["sojourn_seconds"].as_f64() < run["makespan_seconds"].as_f64(), "{run}");
    }
    for name in ["report.json", "report.txt", "light-sojourn.svg", "light-makespan.svg"] {
        assert!(bench.path("report").join(name).is_file(), "{name}");
    }
    // The jobs before and the two of each run, for the page.
    let kept = fs::read_dir(bench.path("report/recordings/two-jobs-light")).unwrap().flatten();
    let heads = kept.filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count();
    assert_eq!(heads, 2 + 2 * runs.len());
    bench.assert_nothing_is_left();
}

#[test]
fn an_interrupted_experiment_leaves_what_it_measured_and_nothing_else() {
    let bench = Bench::new();
    let mut nap = bench.two_jobs(&["--tasks", "light", "--primitives", "wait,kill"]).spawn().unwrap();
    let (_, mut rest) = wait_for(&mut nap, "light 1/2");
    send(&nap, Signal::INT);
    let mut errors = String::new();
    rest.read_to_string(&mut errors).unwrap();
    assert_eq!(nap.wait().unwrap().code(), Some(130), "{errors}");
    bench.assert_nothing_is_left();
    assert_eq!(fs::read_to_string(bench.path("report/raw.jsonl")).unwrap().lines().count(), 1);
}

#[test]
fn an_experiment_that_is_killed_leaves_nothing_behind() {
    let bench = Bench::new();
    let mut nap = bench.two_jobs(&["--tasks", "light", "--primitives", "kill"]).spawn().unwrap();
    // The first job runs, or just ended.
    let (_, rest) = wait_for(&mut nap, "a task alone takes");
    assert!(!processes_of(&bench.path("work")).is_empty(), "its daemons have their folder as an argument");
    send(&nap, Signal::KILL);
    nap.wait().unwrap();
    drop(rest);
    bench.assert_nothing_is_left();
}

#[test]
fn swap_and_control_group_go_with_an_experiment_that_is_killed() {
    let bench = Bench::new();
    let sizes = ["--fill", "8MiB", "--memory-limit", "96MiB", "--swap", "16MiB"];
    let mut command = bench.two_jobs(&["--tasks", "hungry", "--primitives", "wait"]);
    let mut nap = command.args(sizes).spawn().unwrap();
    let (said, rest) = wait_for(&mut nap, "memory-hungry tasks: ");
    if !said.contains("own swap file") {
        // Whoever cannot have them is told, and has nothing to clean up.
        assert!(said.contains("light-weight tasks only: ") || said.contains("user scope"), "{said}");
        send(&nap, Signal::KILL);
        nap.wait().unwrap();
        return bench.assert_nothing_is_left();
    }
    assert!(geteuid().is_root());
    let group = format!("nap-lab-{}", nap.id());
    assert!(is_swapping_below(&bench.path("work")) && find_group(&group).is_some(), "{said}");
    nap.stderr = Some(rest.into_inner());
    let (_, rest) = wait_for(&mut nap, "a task alone takes");
    send(&nap, Signal::KILL);
    nap.wait().unwrap();
    drop(rest);
    bench.assert_nothing_is_left();
    assert!(!is_swapping_below(&bench.path("work")));
    assert_eq!(find_group(&group), None);
}

fn is_swapping_below(folder: &Path) -> bool {
    fs::read_to_string("/proc/swaps").unwrap().contains(folder.to_str().unwrap())
}

/// A control group of this name, wherever it may have been made.
fn find_group(name: &str) -> Option<PathBuf> {
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() == name {
                return Some(entry.path());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    None
}

#[test]
fn wrong_usage_is_status_2_and_says_what_to_do() {
    let bench = Bench::new();
    for (arguments, part) in [
        (&["preempt", "--primitives", "nap"][..], "choose from wait, kill, suspend, checkpoint"),
        (&["preempt", "--tasks", "heavy"], "choose from light, hungry"),
        (&["preempt", "--at", "0"], "1..=99"),
        (&["latency", "--samples", "0"], "1..=100000"),
        (&["latency", "--bin-dir", "/nowhere"], "no nap binary at /nowhere/nap"),
    ] {
        let output = bench.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    bench.assert_nothing_is_left();
}

#[test]
fn a_report_is_never_written_over_another_one() {
    let bench = Bench::new();
    fs::create_dir(bench.path("report")).unwrap();
    let output = bench.two_jobs(&["--tasks", "light"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot make the folder of the report"), "{said}");
    bench.assert_nothing_is_left();
}

#[test]
fn suspend_and_checkpoint_are_compared_as_they_were_asked_for() {
    let bench = Bench::new();
    let mut command = bench.two_long_jobs(&["--tasks", "light", "--primitives", "suspend,checkpoint"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let raw = fs::read_to_string(bench.path("report/raw.jsonl")).unwrap_or_default();
    let runs: Vec<serde_json::Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2, "{said}");
    for run in &runs {
        assert!(run["identical"] == true && run["as_asked"] == true, "{run}");
        assert!(run["freed_millis"].as_f64().unwrap() > 0.0, "{run}");
        let attempts = if run["primitive"] == "suspend" { 1 } else { 2 };
        assert_eq!(run["low_attempts"], attempts, "{run}");
    }
    bench.assert_nothing_is_left();
}

#[test]
fn latencies_are_an_object_for_programs() {
    let bench = Bench::new();
    let output = bench.command(&["latency", "--samples", "2", "--format", "json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    for kind in ["suspend", "resume", "checkpoint", "restore"] {
        assert_eq!(report[kind]["samples"], 2, "{kind}: {report}");
        assert_eq!(report[kind]["every_ms"].as_array().map(Vec::len), Some(2), "{kind}: {report}");
        assert!(report[kind]["max_ms"].is_f64(), "{kind}: {report}");
        for quantile in ["p50_ms", "p99_ms"] {
            assert!(report[kind][quantile].is_null(), "two samples have no quantile: {report}");
        }
    }
    assert_eq!((&report["identical"], &report["otherwise"]), (&true.into(), &0.into()), "{report}");
    bench.assert_nothing_is_left();
}
