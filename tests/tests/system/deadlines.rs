//! Deadlines on a real cluster: an infeasible job is refused, and a chain has one deadline.

use std::process::Command;

use napreduce_tests::{Folder, OwnCluster, program, run};

const NATJAM: &str = "[scheduler.natjam-deadline]\nadmission = \"refuse\"\ninterval = \"10ms\"\n";

/// A job whose map takes about two seconds, 100 ms per line, and whose reduce takes a tenth of a second.
fn submission(
    cluster: &OwnCluster,
    folder: &Folder,
    job: &str,
    output: &str,
    more: &[&str],
) -> Command {
    let mut command = program("testjobs");
    command
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command.args([
        "lines",
        "--job",
        job,
        "--output",
        output,
        "--number",
        "100000",
        "--reduces",
        "1",
    ]);
    // Jobs of the same name are assumed to have tasks of the same length.
    command
        .args(["--name", "report", "--quiet", "--cluster"])
        .arg(cluster.directory())
        .args(more);
    command
}

fn start(folder: &Folder) -> OwnCluster {
    folder.write("lines/1", "word\n".repeat(20));
    let cluster = OwnCluster::start(folder, 1, "natjam-deadline", NATJAM);
    // From here on, the length of the job's tasks is known.
    run(&mut submission(&cluster, folder, "slow", "first", &[])).succeeded();
    cluster
}

#[test]
fn infeasible_deadline_is_refused_before_start() {
    let folder = Folder::new();
    let cluster = start(&folder);
    let refused = run(&mut submission(
        &cluster,
        &folder,
        "slow",
        "late",
        &["--deadline", "1s"],
    ));
    let says = [
        "its tasks alone may take ",
        "longer than its deadline allows",
        "extend or remove its --deadline",
    ];
    refused.failed(2, &says);
    assert!(!folder.path("late").exists(), "nothing was claimed");
    run(&mut submission(
        &cluster,
        &folder,
        "slow",
        "in-time",
        &["--deadline", "10m"],
    ))
    .succeeded();
    run(&mut submission(&cluster, &folder, "slow", "whenever", &[])).succeeded();
}

#[test]
fn chain_deadline_is_shared_between_jobs() {
    let folder = Folder::new();
    let cluster = start(&folder);
    // A single job can meet a deadline of four seconds. Each job of the chain gets only half of that time.
    run(&mut submission(
        &cluster,
        &folder,
        "slow",
        "alone",
        &["--deadline", "4s"],
    ))
    .succeeded();
    let refused = run(&mut submission(
        &cluster,
        &folder,
        "chain",
        "chain",
        &["--deadline", "4s"],
    ));
    refused.failed(2, &["its tasks alone may take "]);
    run(&mut submission(
        &cluster,
        &folder,
        "chain",
        "chain",
        &["--deadline", "10m"],
    ))
    .succeeded();
}
