//! Progress of running tasks: within a batch of records, for hang detection, and as input of policies.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use napreduce_tests::{Ended, Folder, OwnCluster, counter, joined, program, run, wait_until};
use serde_json::Value;

/// Shorter than any task here, and longer than one record.
const TIMEOUT: &str = "task-timeout=1s";

fn job(folder: &Folder, name: &str, number: &str) -> Ended {
    let mut command = program("testjobs");
    command
        .current_dir(folder.root())
        .args(["in", "--job", name, "--number", number, "--output", "out"]);
    run(command.args([
        "--reduces",
        "1",
        "--conf",
        TIMEOUT,
        "--conf",
        "attempts-max=1",
        "--quiet",
    ]))
}

#[test]
fn slow_records_and_groups_are_not_hung() {
    for name in ["slow-records", "slow-groups", "slow-values"] {
        let folder = Folder::new();
        folder.write(
            "in",
            (100..130)
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        );
        job(&folder, name, "80").succeeded();
        assert_eq!(
            String::from_utf8_lossy(&joined(&folder.path("out")))
                .lines()
                .count(),
            30,
            "{name}"
        );
    }
}

#[test]
fn explicit_progress_prevents_hang_kill() {
    let folder = Folder::new();
    folder.write("in", "one\n");
    job(&folder, "busy-record", "2500").succeeded();
}

#[test]
fn hung_task_is_killed_at_any_progress() {
    let folder = Folder::new();
    let never = folder.path("never");
    folder.write(
        "in",
        format!("{}wait {}\n", "line\n".repeat(1_000), never.display()),
    );
    for name in ["gate-in-map", "gate-in-reduce"] {
        job(&folder, name, "0").failed(1, &["no progress for 1 s, at byte "]);
    }
}

/// Writes lines with a gate at this percentage, optionally compressed.
fn gated_lines(path: &Path, gate: &Path, percent: usize, compressed: bool) {
    let line = |number: usize| {
        format!(
            "{:016x}\n",
            (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        )
    };
    let lines = |from: usize, to: usize| (from..to).map(line).collect::<String>();
    let at = percent * 50;
    let text = format!(
        "{}wait {}\n{}",
        lines(0, at),
        gate.display(),
        lines(at, 5_000)
    );
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    if !compressed {
        return std::fs::write(path, text).expect("an input");
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("compressed text");
    std::fs::write(path, encoder.finish().expect("compressed text")).expect("an input");
}

/// Returns the progress of an attempt in percent.
fn percent(live: &Value) -> u64 {
    let bytes = |name: &str| live[name].as_u64().unwrap_or(0);
    bytes("bytes_done") * 100 / bytes("bytes_total").max(1)
}

/// Returns the live attempts at the tasks of a job, by task number.
fn live(cluster: &OwnCluster, job: &str) -> Vec<Value> {
    let tasks = cluster.json(&["task", "list", job]);
    let tasks = tasks.as_array().expect("an array");
    tasks
        .iter()
        .flat_map(|task| task["live"].as_array().expect("an array").clone())
        .collect()
}

#[test]
fn progress_is_reported_within_batch() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for (number, name, file) in [
        (1, "gate-in-map", "lines"),
        (2, "gate-in-map", "lines.gz"),
        (3, "gate-in-reduce", "lines"),
    ] {
        let gate = folder.path(&format!("gate-{number}"));
        gated_lines(
            &folder.path(&format!("in-{number}/{file}")),
            &gate,
            40,
            file.ends_with(".gz"),
        );
        let input = format!("in-{number}");
        let output = format!("out-{number}");
        let arguments = [
            &input,
            "--job",
            name,
            "--number",
            "500",
            "--output",
            &output,
            "--reduces",
            "1",
        ];
        let job = cluster.submit(&folder, &arguments);
        let kind = if name == "gate-in-map" { "_m_" } else { "_r_" };
        wait_until(&format!("{name} of {file} is shown at its gate"), || {
            let live = live(&cluster, &job);
            let at_work = live
                .iter()
                .find(|live| live["attempt"].as_str().is_some_and(|id| id.contains(kind)));
            at_work.is_some_and(|live| (30..=43).contains(&percent(live)))
        });
        std::fs::write(gate, "").expect("an open gate");
        cluster.wait(&[&job]).succeeded();
    }
}

/// A program with a pause per record, and a gate before the second half.
const SLOW: &str = r#"
import os, time
from napreduce import Job
job = Job.text()
@job.map
def wait(line):
    time.sleep(0.02)
    while line == "15" and not os.path.exists(job.parameters["gate"]):
        time.sleep(0.02)
    return [(line, 1)]
@job.reduce(keys=str, values=int)
def count(line, counts):
    yield line, sum(counts)
job.main()
"#;

#[test]
fn python_progress_counts_finished_records() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let folder = Folder::new();
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
    let cluster =
        OwnCluster::start_with(&folder, 1, "fifo", "", &[("PYTHONPATH", module.to_owned())]);
    folder.write(
        "in",
        (0..30)
            .map(|line| format!("{line:02}\n"))
            .collect::<String>(),
    );
    folder.write("slow.py", SLOW);
    let gate = folder.path("gate");
    let mut submit = program("nap");
    submit.current_dir(folder.root()).env("PYTHONPATH", module);
    submit.args([
        "frames",
        "--program",
        "slow.py",
        "in",
        "--output",
        "out",
        "--detach",
        "--parameter",
    ]);
    submit
        .arg(format!("gate={}", gate.display()))
        .arg("--cluster")
        .arg(cluster.directory());
    let job = run(&mut submit).succeeded().stdout.trim().to_owned();
    wait_until("half of the records are done and no more", || {
        live(&cluster, &job)
            .iter()
            .any(|live| (20..=50).contains(&percent(live)))
    });
    std::fs::write(gate, "").expect("an open gate");
    cluster.wait(&[&job]).succeeded();
}

#[test]
fn progress_rule_fires_within_batch() {
    let folder = Folder::new();
    let rules = "[scheduler.trigger]\nrules = \"\"\"\nwhen progress(low/m0) >= 1/3 do suspend(low/m0)\n\
                 when finished(high) do resume(low/m0)\n\"\"\"\n";
    let cluster = OwnCluster::start(&folder, 1, "trigger", rules);
    let gate = folder.path("gate");
    gated_lines(&folder.path("low/lines"), &gate, 40, false);
    folder.write("high", "one\n");
    let submit = |name: &str| {
        let output = format!("out-{name}");
        cluster.submit(
            &folder,
            &[
                name,
                "--job",
                "gate-in-map",
                "--output",
                &output,
                "--name",
                name,
            ],
        )
    };
    let low = submit("low");
    wait_until("it is suspended", || {
        live(&cluster, &low)
            .iter()
            .any(|live| live["state"] == "suspended")
    });
    let high = submit("high");
    std::fs::write(gate, "").expect("an open gate");
    cluster.wait(&[&low, &high]).succeeded();
    assert_eq!(counter(&folder.path("out-low"), "SUSPENDS"), 1);
}

/// Two maps of one job have different progress. The configuration determines which of them is preempted for a
/// production job.
#[test]
fn natjam_selects_victim_by_remaining_work() {
    for (eviction, victim) in [
        ("shortest-remaining", "_m_0000.1"),
        ("longest-remaining", "_m_0001.1"),
    ] {
        let folder = Folder::new();
        let tables = format!(
            "[preemption]\nprimitive = \"suspend\"\n[scheduler.natjam]\npreempt-maps = true\n\
             preemptor-interval = \"100ms\"\ntask-eviction = \"{eviction}\"\nprimitive = \"suspend\"\n"
        );
        let cluster = OwnCluster::start(&folder, 2, "natjam", &tables);
        let gate = folder.path("gate");
        for (file, percent) in [("large/0", 80), ("large/1", 20)] {
            gated_lines(&folder.path(file), &gate, percent, false);
        }
        folder.write("small", "one\n");
        let submit = |name: &str, queue: &str| {
            let output = format!("out-{name}");
            let all = [
                name,
                "--job",
                "gate-in-map",
                "--output",
                &output,
                "--name",
                name,
                "--queue",
                queue,
            ];
            cluster.submit(&folder, &all)
        };
        let large = submit("large", "research");
        wait_until("both are shown at their gates", || {
            let mut shown: Vec<u64> = live(&cluster, &large).iter().map(percent).collect();
            shown.sort_unstable();
            matches!(shown[..], [15..=25, 75..=85])
        });
        let small = submit("small", "production");
        cluster.wait(&[&small]).succeeded();
        std::fs::write(gate, "").expect("an open gate");
        cluster.wait(&[&large]).succeeded();
        let history = cluster.json(&["job", "history", &large]);
        let preemptions = history[0]["preemptions"].as_array().expect("an array");
        let attempt = preemptions
            .first()
            .map_or("", |first| first["attempt"].as_str().unwrap_or(""));
        assert!(attempt.ends_with(victim), "{eviction}: {preemptions:#?}");
    }
}
