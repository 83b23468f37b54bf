//! Named outputs are committed together with the parts, even if tasks fail or are preempted.

use std::fs;
use std::path::Path;

use napreduce_tests::{Folder, GatedJob, OwnCluster, program, report, run};

/// Returns the names of the files in an output directory that are not hidden.
fn names(output: &Path) -> Vec<String> {
    let names = fs::read_dir(output)
        .expect("an output")
        .map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn sorted_out(folder: &Folder, job: &str) {
    let mut command = program("testjobs");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    let job = [
        "in",
        "--job",
        job,
        "--output",
        "out",
        "--overwrite",
        "--quiet",
        "--reduces",
        "2",
    ];
    run(command.args(job)).succeeded();
}

#[test]
fn named_outputs_are_committed_and_replaced_with_parts() {
    let folder = Folder::new();
    folder.write("in", "1\nx\n2\n");
    sorted_out(&folder, "sorted-out");
    let output = folder.path("out");
    assert_eq!(
        names(&output),
        ["_SUCCESS", "errors-m-00000", "part-m-00000"]
    );
    assert_eq!(
        fs::read_to_string(output.join("errors-m-00000")).expect("text"),
        "x\n"
    );
    assert_eq!(
        fs::read_to_string(output.join("part-m-00000")).expect("text"),
        "1\n2\n"
    );
    let report = report(&output);
    let listed: Vec<&str> = report["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| part["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(listed, ["part-m-00000", "errors-m-00000"]);
    assert_eq!(report["parts"][1]["records"], 1);
    assert_eq!(report["counters"]["OUTPUT_RECORDS errors"], 1);
    // Foreign files stay, even with a similar name.
    folder.write("out/errors-m-00007.note", "mine");
    sorted_out(&folder, "words-without-combiner");
    assert_eq!(
        names(&output),
        [
            "_SUCCESS",
            "errors-m-00007.note",
            "part-r-00000",
            "part-r-00001"
        ]
    );
}

#[test]
fn preempted_tasks_write_same_named_outputs() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated-named", "named", 1, 1);
    job.open("m_0000");
    job.until("r_0000.1", "running");
    job.command("checkpoint", "r_0000");
    job.until("r_0000.2", "running");
    job.command("suspend", "r_0000");
    job.until("r_0000.2", "suspended");
    job.command("resume", "r_0000");
    job.until("r_0000.2", "running");
    job.command("kill", "r_0000");
    job.until("r_0000.3", "running");
    job.ends_as_undisturbed();
    let output = job.output();
    assert_eq!(
        names(&output),
        ["_SUCCESS", "lines-r-00000", "part-r-00000"]
    );
    let lines = fs::read(output.join("lines-r-00000")).expect("a file");
    assert!(!lines.is_empty());
    assert!(lines == fs::read(folder.path("undisturbed-named/lines-r-00000")).expect("a file"));
}
