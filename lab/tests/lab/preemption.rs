//! `nap lab preempt` and `nap lab latency` on real clusters, with tasks of a second: their output and files,
//! and that nothing is left, however they end.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;

use crate::stand_ins::Lab;

/// Longer than daemons take to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs the experiment `two-jobs` once, with tasks of a second.
fn two_jobs(lab: &Lab, more: &[&str]) -> Command {
    let mut command = lab.command(&["preempt", "--repetitions", "1", "--at", "50"]);
    if !more.contains(&"--task-time") {
        command.args(["--task-time", "1s"]);
    }
    command.arg("--report").arg(lab.path("report")).args(more);
    command
}

/// Waits until nothing is left of an experiment: no folder, and no process with a path in it as an argument.
fn assert_nothing_is_left(lab: &Lab) {
    let began = Instant::now();
    loop {
        let files = fs::read_dir(lab.path("work")).unwrap().count();
        let processes = processes_of(&lab.path("work"));
        if files == 0 && processes.is_empty() {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{files} files and {processes:?} are left"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the command lines of running processes that contain this folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let named = folder.to_str().unwrap();
    let lines = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
    // Excludes the experiment itself, which has the folder as its argument.
    lines
        .filter(|line| line.contains(named) && !line.contains(" lab "))
        .collect()
}

/// Reads the standard error of a program until a line contains `part`.
fn wait_for(child: &mut Child, part: &str) -> (String, BufReader<std::process::ChildStderr>) {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(
            lines.read_line(&mut line).unwrap(),
            0,
            "it ended without {part:?}:\n{said}"
        );
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
fn two_jobs_are_compared_and_nothing_else_is_left() {
    let lab = Lab::new();
    let output = two_jobs(&lab, &["--tasks", "light", "--primitives", "wait,kill"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("Makespan of both jobs") && table.contains("2 runs are byte-identical"),
        "{table}"
    );
    assert!(
        said.contains("light 2/2") && said.contains("outputs right"),
        "{said}"
    );
    let runs = lab.rows("report/raw.jsonl");
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert!(
            run["identical"] == true && run["used_only"] == true,
            "{run}"
        );
        // The high-priority job may or may not wait for the rest of the other one.
        assert!(
            run["sojourn_seconds"].as_f64() < run["makespan_seconds"].as_f64(),
            "{run}"
        );
    }
    for name in [
        "report.json",
        "report.txt",
        "light-sojourn.svg",
        "light-makespan.svg",
    ] {
        assert!(lab.path("report").join(name).is_file(), "{name}");
    }
    // The jobs before the runs and the two of each run are kept for the page.
    let kept = fs::read_dir(lab.path("report/recordings/two-jobs-light"))
        .unwrap()
        .flatten();
    let heads = kept
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
        .count();
    assert_eq!(heads, 2 + 2 * runs.len());
    assert_nothing_is_left(&lab);
}

#[test]
fn interrupted_experiment_leaves_its_measurements() {
    let lab = Lab::new();
    let mut nap = two_jobs(&lab, &["--tasks", "light", "--primitives", "wait,kill"])
        .spawn()
        .unwrap();
    let (_, mut rest) = wait_for(&mut nap, "light 1/2");
    send(&nap, Signal::INT);
    let mut errors = String::new();
    rest.read_to_string(&mut errors).unwrap();
    assert_eq!(nap.wait().unwrap().code(), Some(130), "{errors}");
    assert_nothing_is_left(&lab);
    assert_eq!(lab.rows("report/raw.jsonl").len(), 1);
}

#[test]
fn killed_experiment_leaves_nothing() {
    let lab = Lab::new();
    let mut nap = two_jobs(&lab, &["--tasks", "light", "--primitives", "kill"])
        .spawn()
        .unwrap();
    // The first job is running or has just ended.
    let (_, rest) = wait_for(&mut nap, "a task alone takes");
    assert!(
        !processes_of(&lab.path("work")).is_empty(),
        "its daemons have their folder as an argument"
    );
    send(&nap, Signal::KILL);
    nap.wait().unwrap();
    drop(rest);
    assert_nothing_is_left(&lab);
}

#[test]
fn killed_experiment_leaves_no_swap_and_no_control_group() {
    let lab = Lab::new();
    let sizes = [
        "--fill",
        "8MiB",
        "--memory-limit",
        "96MiB",
        "--swap",
        "16MiB",
    ];
    let mut command = two_jobs(&lab, &["--tasks", "hungry", "--primitives", "wait"]);
    let mut nap = command.args(sizes).spawn().unwrap();
    let (said, rest) = wait_for(&mut nap, "memory-hungry tasks: ");
    if !said.contains("own swap file") {
        // A machine that does not support them has nothing to clean up.
        assert!(
            said.contains("light-weight tasks only: ") || said.contains("user scope"),
            "{said}"
        );
        send(&nap, Signal::KILL);
        nap.wait().unwrap();
        return assert_nothing_is_left(&lab);
    }
    assert!(geteuid().is_root());
    let group = format!("nap-lab-{}", nap.id());
    assert!(
        is_swapping_below(&lab.path("work")) && find_group(&group).is_some(),
        "{said}"
    );
    nap.stderr = Some(rest.into_inner());
    let (_, rest) = wait_for(&mut nap, "a task alone takes");
    send(&nap, Signal::KILL);
    nap.wait().unwrap();
    drop(rest);
    assert_nothing_is_left(&lab);
    assert!(!is_swapping_below(&lab.path("work")));
    assert_eq!(find_group(&group), None);
}

fn is_swapping_below(folder: &Path) -> bool {
    fs::read_to_string("/proc/swaps")
        .unwrap()
        .contains(folder.to_str().unwrap())
}

/// Returns the path of a control group of this name, anywhere in the hierarchy.
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
fn wrong_usage_is_status_2_with_advice() {
    let lab = Lab::new();
    for (arguments, part) in [
        (
            &["preempt", "--primitives", "nap"][..],
            "possible values: wait, kill, suspend, checkpoint",
        ),
        (
            &["preempt", "--tasks", "heavy"],
            "possible values: light, hungry",
        ),
        (&["preempt", "--at", "0"], "1..=99"),
        (&["latency", "--samples", "0"], "1..=100000"),
        (
            &["latency", "--bin-dir", "/nowhere"],
            "no nap binary at /nowhere/nap",
        ),
    ] {
        let output = lab.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert_nothing_is_left(&lab);
}

#[test]
fn report_is_never_overwritten() {
    let lab = Lab::new();
    fs::create_dir(lab.path("report")).unwrap();
    let output = two_jobs(&lab, &["--tasks", "light"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot make the folder of the report"),
        "{said}"
    );
    assert_nothing_is_left(&lab);
}

#[test]
fn suspend_and_checkpoint_are_used_as_planned() {
    let lab = Lab::new();
    // On a busy machine half of a task remains when it is preempted.
    let mut command = two_jobs(
        &lab,
        &[
            "--task-time",
            "2s",
            "--tasks",
            "light",
            "--primitives",
            "suspend,checkpoint",
        ],
    );
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let runs = lab.rows("report/raw.jsonl");
    assert_eq!(runs.len(), 2, "{said}");
    for run in &runs {
        assert!(
            run["identical"] == true && run["used_only"] == true,
            "{run}"
        );
        assert!(run["freed_millis"].as_f64().unwrap() > 0.0, "{run}");
        let attempts = if run["primitive"] == "suspend" { 1 } else { 2 };
        assert_eq!(run["low_attempts"], attempts, "{run}");
    }
    assert_nothing_is_left(&lab);
}

#[test]
fn latencies_are_json() {
    let lab = Lab::new();
    let output = lab
        .command(&["latency", "--samples", "2", "--format", "json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    for kind in ["suspend", "resume", "checkpoint", "restore"] {
        assert_eq!(report[kind]["samples"], 2, "{kind}: {report}");
        assert_eq!(
            report[kind]["every_ms"].as_array().map(Vec::len),
            Some(2),
            "{kind}: {report}"
        );
        assert!(report[kind]["max_ms"].is_f64(), "{kind}: {report}");
        for quantile in ["p50_ms", "p99_ms"] {
            assert!(
                report[kind][quantile].is_null(),
                "two samples have no quantile: {report}"
            );
        }
    }
    assert_eq!(
        (&report["identical"], &report["otherwise"]),
        (&true.into(), &0.into()),
        "{report}"
    );
    assert_nothing_is_left(&lab);
}
