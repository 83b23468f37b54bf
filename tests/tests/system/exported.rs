//! Exports of a cluster: a job as a page, a history as tables, with and without a running cluster.

use std::fs;
use std::path::Path;
use std::process::Command;

use napreduce_tests::{Folder, GatedJob, OwnCluster, program, run};
use serde_json::Value;

fn history(arguments: &[&str]) -> Command {
    let mut command = program("nap");
    command.arg("history").args(arguments);
    command
}

fn rows(tables: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(tables.join(format!("{name}.jsonl"))).expect("a table");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Its reports of a start and an end usually arrive together.
#[test]
fn short_attempts_start_before_they_end() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for number in 0..40 {
        folder.write(&format!("many/{number:02}"), "a line\n");
    }
    let arguments = [
        "many",
        "--job",
        "slow-records",
        "--number",
        "0",
        "--output",
        "out",
    ];
    let job = cluster.submit(
        &folder,
        &[&arguments[..], &["--conf", "combine-files=false"]].concat(),
    );
    cluster.wait(&[&job]).succeeded();
    let history = cluster.json(&["job", "history", &job])[0].clone();
    let attempts = history["attempts"].as_array().expect("attempts");
    assert!(attempts.len() >= 40, "{history}");
    for attempt in attempts {
        let moment = |name: &str| attempt[name].as_u64().expect("a moment");
        let started = moment("started_micros");
        assert!(moment("launched_micros") <= started, "{attempt}");
        assert!(started < moment("ended_micros"), "{attempt}");
    }
}

#[test]
fn suspended_job_is_exported_as_page_and_tables() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    job.command("suspend", "m_0000");
    job.until("m_0000.1", "suspended");
    job.command("resume", "m_0000");
    job.until("m_0000.1", "running");
    job.ends_as_undisturbed();

    let page = folder.path("report.html");
    let report =
        |command: &mut Command| run(command.args(["--output", page.to_str().expect("letters")]));
    report(cluster.nap().args(["job", "report", "last"])).succeeded();
    let told = fs::read_to_string(&page).expect("a page");
    for said in [
        &job.task("m_0000.1"),
        &job.task("r_0000.1"),
        "SUSPENDED_MILLIS",
        "operator",
        "class=\"suspended\"",
    ] {
        assert!(told.contains(said), "no {said} in {told}");
    }
    report(cluster.nap().args(["job", "report", "last"])).failed(2, &["already exists"]);
    let directory = cluster.directory().to_str().expect("letters").to_owned();
    report(&mut history(&["report", &directory, "last", "--overwrite"])).succeeded();
    let same = |page: &str| page.split("<footer>").next().expect("a page").to_owned();
    assert_eq!(
        same(&fs::read_to_string(&page).expect("a page")),
        same(&told)
    );

    let tables = folder.path("tables");
    let export = |path: &str, extra: &[&str]| {
        run(history(&["export", path])
            .args(extra)
            .arg("--output")
            .arg(&tables))
    };
    export(&directory, &["--format", "json"]).succeeded();
    let known = job.history();
    let attempts = rows(&tables, "attempts");
    let names = |rows: &[Value]| {
        rows.iter()
            .map(|row| row["attempt"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&attempts),
        names(known["attempts"].as_array().expect("attempts"))
    );
    let mut preemption = rows(&tables, "preemptions").remove(0);
    let id = preemption.as_object_mut().expect("an object").remove("job");
    assert_eq!(preemption, known["preemptions"][0]);
    assert_eq!(rows(&tables, "jobs")[0]["job"], id.expect("a column"));
    assert_eq!(rows(&tables, "jobs")[0]["state"], "succeeded");
    let counters = rows(&tables, "counters");
    assert!(
        counters
            .iter()
            .any(|row| row["counter"] == "SUSPENDS" && row["value"] == 1),
        "{counters:?}"
    );
    export(&directory, &[]).failed(2, &["not empty; name another directory"]);

    fs::remove_dir_all(&tables).expect("it was made here");
    export(&directory, &["all"]).succeeded();
    let text = fs::read_to_string(tables.join("attempts.csv")).expect("a table");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with(
            "job,attempt,worker,worker_name,launched_millis,ended_millis,launched_micros,started_micros,ended_micros,end,outcome,input_bytes,"
        ),
        "{text}"
    );
    // The row of the map that was suspended.
    let cells: Vec<&str> = lines[1].split(',').collect();
    let moments: Vec<u64> = cells[6..9]
        .iter()
        .filter_map(|cell| cell.parse().ok())
        .collect();
    assert!(
        moments.len() == 3 && moments.is_sorted(),
        "launched, started, ended: {text}"
    );
    assert_eq!(cells[9..11], ["succeeded", "succeeded"]);
    assert!(
        cells[11].parse::<u64>().is_ok_and(|bytes| bytes > 0),
        "{text}"
    );
    assert_eq!(lines.len(), 1 + attempts.len(), "{text}");
    export("/nowhere", &[]).failed(2, &["/nowhere"]);
}
