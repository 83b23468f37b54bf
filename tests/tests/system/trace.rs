//! `nap job trace` of a suspended job: the bars of the trace equal its attempts.

use std::fs;
use std::process::Command;

use serde_json::Value;

use napreduce_tests::{Folder, GatedJob, OwnCluster, run};

fn trace(cluster: &OwnCluster, arguments: &[&str]) -> Command {
    let mut command = cluster.nap();
    command.args(["job", "trace"]).args(arguments);
    command
}

fn of<'t>(trace: &'t Value, kind: &str, category: &str) -> Vec<&'t Value> {
    let events = trace["traceEvents"].as_array().expect("an array");
    events
        .iter()
        .filter(|event| event["ph"] == kind && event["cat"] == category)
        .collect()
}

#[test]
fn trace_shows_suspend_during_and_after() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    job.command("suspend", "m_0000");
    job.until("m_0000.1", "suspended");
    let file = folder.path("trace.json");
    let name = file.to_str().expect("a path of letters");
    run(&mut trace(&cluster, &["last", "--output", name])).succeeded();
    let asleep: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    let stints = of(&asleep, "X", "stint");
    assert_eq!(stints.len(), 1, "{stints:?}");
    assert_eq!(stints[0]["name"], job.task("m_0000.1").as_str());
    assert_eq!(stints[0]["args"]["end"], "suspended");
    assert_eq!(stints[0]["args"]["by"], "operator");

    job.command("resume", "m_0000");
    job.until("m_0000.1", "running");
    job.ends_as_undisturbed();
    let says = ["already exists; name another file, or pass --overwrite"];
    run(&mut trace(&cluster, &["last", "--output", name])).failed(2, &says);
    run(&mut trace(
        &cluster,
        &["last", "--output", name, "--overwrite"],
    ))
    .succeeded();
    let over: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    let names = of(&over, "X", "stint").into_iter().map(|stint| {
        let end = stint["args"]["end"].as_str().expect("text").to_owned();
        (stint["name"].as_str().expect("text").to_owned(), end)
    });
    let map = job.task("m_0000.1");
    let reduce = job.task("r_0000.1");
    let expected = [
        (map.clone(), "suspended"),
        (map, "succeeded"),
        (reduce, "succeeded"),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(name, end)| (name, end.to_owned()))
        .collect();
    assert_eq!(names.collect::<Vec<_>>(), expected);
    // Trace and history agree on the time.
    let nap = of(&over, "e", "nap")[0]["ts"].as_u64().expect("a number")
        - of(&over, "b", "nap")[0]["ts"].as_u64().expect("a number");
    let suspended = job.history()["preemptions"][0]["suspended_millis"]
        .as_u64()
        .expect("a number");
    assert!(
        nap / 1_000 <= suspended + 1,
        "a nap of {nap} µs in {suspended} ms"
    );

    run(&mut trace(
        &cluster,
        &["1", "--output", &format!("{name}.gz")],
    ))
    .succeeded();
    let unpacked = Command::new("gzip")
        .args(["-dc", &format!("{name}.gz")])
        .output()
        .expect("gzip runs");
    assert!(
        unpacked.stdout == fs::read(&file).expect("a file"),
        "the packed one says something else"
    );
    let there = fs::read_dir(folder.root())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = there
        .filter(|name| name.to_string_lossy().contains("partial"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
