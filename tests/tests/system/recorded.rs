//! `nap sim --recorded`: the history of a real cluster replayed under its own policy and others, and damaged
//! histories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use napreduce_tests::{Ended, Folder, OwnCluster, program, run};
use serde_json::Value;

/// Lines of each of the four files; the other constant is the map's time per line.
const LINES: usize = 10;
const LINE_MICROS: &str = "50000";

/// Runs three jobs of four half-second maps and one short reduce, and one that is killed, on two workers.
fn run_jobs(folder: &Folder) -> OwnCluster {
    for file in 1..=4 {
        folder.write(&format!("lines/{file}"), "word\n".repeat(LINES));
    }
    let table = "[scheduler.fair.root.pools.production]\nweight = 3\n";
    let cluster = OwnCluster::start(folder, 2, "fair", table);
    let submit = |output: &str, more: &[&str]| {
        let job = [
            "lines",
            "--job",
            "slow",
            "--number",
            LINE_MICROS,
            "--reduces",
            "1",
            "--output",
            output,
        ];
        cluster.submit(folder, &[&job[..], more].concat())
    };
    let jobs = [
        submit("one", &["--name", "one"]),
        submit(
            "two",
            &["--name", "two", "--queue", "production", "--deadline", "1h"],
        ),
        submit("three", &["--name", "three", "--priority", "2"]),
    ];
    let killed = submit("killed", &[]);
    run(cluster.nap().args(["job", "kill", &killed])).succeeded();
    let ids: Vec<&str> = jobs.iter().map(String::as_str).collect();
    cluster.wait(&ids).succeeded();
    // The killed job ends asynchronously.
    cluster.wait(&[&killed]).failed(1, &[]);
    cluster
}

fn sim(folder: &Folder, arguments: &[&str]) -> Ended {
    run(program("nap")
        .current_dir(folder.root())
        .env_remove("NAPREDUCE_DIR")
        .arg("sim")
        .args(arguments))
}

fn json(folder: &Folder, arguments: &[&str]) -> Value {
    let said = sim(folder, &[arguments, &["--format", "json"]].concat())
        .succeeded()
        .stdout;
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Returns every file below a directory with its content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).expect("read"));
        }
    }
    all
}

#[test]
fn recorded_cluster_replays_under_its_and_other_policies() {
    let folder = Folder::new();
    let cluster = run_jobs(&folder);
    let beside = json(&folder, &["--recorded", "cluster"]);
    assert_eq!(beside["jobs"], 3, "also while the cluster runs: {beside}");
    drop(cluster);

    let before = contents(&folder.path("cluster"));
    let arguments = [
        "--recorded",
        "cluster",
        "--scheduler",
        "fair",
        "--scheduler",
        "fifo",
        "--nodes",
        "1",
    ];
    let Ended {
        stdout: text,
        stderr: notes,
        ..
    } = sim(&folder, &arguments).succeeded();
    assert!(
        notes.contains("fair does not use [scheduler.fair] of the recording"),
        "{notes}"
    );
    assert!(!notes.contains("fifo does not use"), "{notes}");
    assert_eq!(
        sim(&folder, &arguments).succeeded().stdout,
        text,
        "equal input gives equal bytes"
    );
    let said = json(
        &folder,
        &[&arguments[..], &["--results", "jobs.csv"]].concat(),
    );
    assert_eq!(
        contents(&folder.path("cluster")),
        before,
        "nothing is written there"
    );

    let labels: Vec<&str> = said["schedulers"]
        .as_array()
        .expect("three")
        .iter()
        .filter_map(|one| one["label"].as_str())
        .collect();
    assert_eq!(labels, ["fair as recorded", "fair", "fifo"]);
    for words in [
        "cluster: 3 jobs, submitted from 2",
        "- 1 job is left out, which failed or were killed",
        "Fidelity",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    check_fidelity(&said["recorded"]["fidelity"]);
    // Four maps of half a second each, plus the start-up time on a busy machine.
    let useful = said["schedulers"][0]["runs"][0]["useful"]
        .as_f64()
        .expect("a number");
    assert!((6.0..30.0).contains(&useful), "{useful}");
    let half = said["schedulers"][1]["paired"]["makespan"]["mean"]
        .as_f64()
        .expect("a ratio");
    assert!((1.2..2.5).contains(&half), "on half of the workers: {half}");

    let csv = fs::read_to_string(folder.path("jobs.csv")).expect("a table");
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = rows.next().expect("a heading");
    let place = |name: &str| {
        heading
            .iter()
            .position(|column| *column == name)
            .expect("a column")
    };
    let job = place("job");
    let class = place("class");
    let maps = place("maps");
    let reduces = place("reduces");
    let mut first: Vec<_> = rows
        .take(3)
        .map(|row| (row[job], row[class], row[maps], row[reduces]))
        .collect();
    first.sort_unstable();
    assert_eq!(
        first,
        [
            ("one", "default", "4", "1"),
            ("three", "default", "4", "1"),
            ("two", "production", "4", "1")
        ]
    );
    check_windows_and_copies(&folder);
}

/// The simulated lengths are those of the recording, so the same policy gives similar results.
fn check_fidelity(fidelity: &Value) {
    let ratio = fidelity["sojourn_mean"]["ratio"].as_f64().expect("a ratio");
    assert!((0.6..1.3).contains(&ratio), "{fidelity}");
    let names: Vec<&str> = fidelity["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .filter_map(|job| job["name"].as_str())
        .collect();
    assert_eq!(names.len(), 3, "{fidelity}");
    assert!(
        fidelity["deviation_median"].as_f64() <= fidelity["deviation_largest"].as_f64(),
        "{fidelity}"
    );
}

fn check_windows_and_copies(folder: &Folder) {
    fs::rename(
        folder.path("cluster/coordinator/history"),
        folder.path("copy"),
    )
    .expect("moved");
    fs::remove_file(folder.path("copy/index.jsonl")).expect("removed");
    assert_eq!(json(folder, &["--recorded", "copy"])["jobs"], 3);
    assert_eq!(
        json(folder, &["--recorded", "copy@..1ms"])["jobs"],
        1,
        "the first alone"
    );
    assert_eq!(
        json(folder, &["--recorded", "copy@2020-01-01..2199-01-01"])["jobs"],
        3
    );
    sim(folder, &["--recorded", "copy@2h.."]).failed(
        2,
        &[
            "none of the 4 jobs in copy was submitted in this window",
            "from 2",
        ],
    );
    sim(folder, &["--recorded", "copy@5m..1m"]).failed(2, &["FROM must be before UNTIL"]);
    sim(folder, &["--recorded", "copy@soon.."]).failed(2, &["invalid time \"soon\""]);
    let recording = fs::read(folder.path("copy/job_0002.jsonl.gz")).expect("a recording");
    fs::write(
        folder.path("copy/job_0002.jsonl.gz"),
        &recording[..recording.len() / 2],
    )
    .expect("written");
    let says = [
        "copy/job_0002.jsonl.gz is unusable",
        "copy the history without job_0002.json and job_0002.jsonl.gz",
    ];
    sim(folder, &["--recorded", "copy"]).failed(2, &says);
    fs::remove_file(folder.path("copy/job_0002.jsonl.gz")).expect("removed");
    fs::remove_file(folder.path("copy/job_0002.json")).expect("removed");
    assert_eq!(json(folder, &["--recorded", "copy"])["jobs"], 2);
}

#[test]
fn invalid_history_is_refused() {
    let folder = Folder::new();
    folder.write("notes/todo.txt", "nothing");
    sim(&folder, &["--recorded", "notes"]).failed(
        2,
        &["notes holds no history", "give the directory of a cluster"],
    );
    sim(&folder, &["--recorded", "nowhere"]).failed(2, &["cannot read nowhere"]);
    folder.write("foreign/job_0001.json", "{\"version\": 77}");
    sim(&folder, &["--recorded", "foreign"])
        .failed(2, &["foreign/job_0001.json is unusable", "version 77"]);
    sim(
        &folder,
        &["--recorded", "notes", "--workload", "hfsp-fb-dataset"],
    )
    .failed(2, &["cannot be used with"]);
}

#[test]
fn recorded_simulation_replays_like_cluster() {
    let folder = Folder::new();
    // Containers would be recorded as slots of two kinds.
    let slots = ["--map-slots", "8", "--reduce-slots", "8"];
    let workload = [&["--workload", "natjam-xl-s", "--seed", "0"], &slots[..]].concat();
    let record = [
        &workload[..],
        &[
            "--scheduler",
            "natjam,fifo",
            "--primitive",
            "suspend",
            "--record",
            "runs",
        ],
    ];
    let record = record.concat();
    json(&folder, &record);
    sim(&folder, &record).failed(2, &["runs: not empty; name another directory"]);

    let again = json(&folder, &["--recorded", "runs/natjam.0"]);
    assert_eq!(
        again["schedulers"][0]["label"], "natjam as recorded",
        "{again}"
    );
    let ratio = again["recorded"]["fidelity"]["sojourn_mean"]["ratio"]
        .as_f64()
        .expect("a ratio");
    assert!(
        (0.98..1.02).contains(&ratio),
        "equal lengths by an equal policy: {again}"
    );
    let suspends = again["schedulers"][0]["runs"][0]["preemptions"]["suspend"].as_u64();
    assert!(suspends.is_some_and(|suspends| suspends > 0), "{again}");

    let export = ["history", "export", "runs/natjam.0", "--output", "tables"];
    run(program("nap").current_dir(folder.root()).args(export)).succeeded();
    let ledger = fs::read_to_string(folder.path("tables/preemptions.csv")).expect("a table");
    let suspended = ledger
        .lines()
        .filter(|line| line.contains(",suspend,") && line.contains(",natjam,"))
        .count();
    assert!(suspended > 0, "{ledger}");
    let waits = ["history", "export", "runs/fifo.0", "--output", "others"];
    run(program("nap").current_dir(folder.root()).args(waits)).succeeded();
    let ledger = fs::read_to_string(folder.path("others/preemptions.csv")).expect("a table");
    assert_eq!(
        ledger.lines().skip(1).count(),
        0,
        "fifo takes no slot: {ledger}"
    );
}
