//! The errors for typical mistakes on the command line, with exit statuses.

use std::fs;
use std::path::Path;
use std::process::Command;

use napreduce_tests::{Folder, OwnCluster, run};

use super::{assert_snapshot, in_80_columns};

/// Command lines without a running cluster.
const WITHOUT_CLUSTER: &[&str] = &[
    "nap frobnicate",
    "nap jobs list",
    "nap job lst",
    "nap --dir none job list",
    "nap status",
    "nap --dir open status",
    "nap --dir file status",
    "nap --dir empty status",
    "nap --coordinator localhost job list",
    "nap --coordinator localhost:1 job list",
    "nap --coordinator localhost:1 --secret-file none job list",
    "nap --connect-timeout soon status",
    "nap --config bad.toml status",
    "nap --config unknown.toml status",
    "nap --config value.toml status",
    "nap --config none.toml status",
    "",
    "nap up --workers 0",
    "nap up --web nowhere",
    "nap up --coordinator localhost:1",
    "nap up --config slots.toml",
    "nap up --config name.toml",
    "",
    "nap coordinator --scheduler fare",
    "nap coordinator --liveness 100ms",
    "nap coordinator --heartbeat soon",
    "nap coordinator --fsync often",
    "nap coordinator --journal-bytes-max lots",
    "nap coordinator --suspended-max many",
    "nap coordinator --bind nowhere --dir empty",
    "NAPREDUCE_LOG=worker=loud nap coordinator",
    "",
    "nap worker --map-slots 0 --reduce-slots 0",
    "nap worker --memory-factor 0",
    "nap worker --rack 'row 1'",
    "nap worker --isolation some",
    "nap worker --grace 0s",
    "nap worker --time-limit 10s",
    "nap worker --log-bytes-max 10MX",
    "nap worker drain",
    "",
    "nap job status",
    "nap job status job_0",
    "nap job kill 7-3",
    "nap job list --since soon",
    "nap job list --since 1960-01-01",
    "nap job list --since 1h --until 2h",
    "nap job list --sort size",
    "nap job list --state done",
    "nap job list --limit 0",
    "nap job list --format xml",
    "nap job set 7",
    "nap job logs 7 --follow --format json",
    "nap task suspend 7",
    "nap task list --state gone",
    "nap task list --sort size",
    "nap worker list --state gone",
    "nap worker list --sort size",
    "nap queue list --state gone",
    "nap queue list --sort size",
    "nap top",
    "",
    "nap journal check none",
    "nap history export none --output tables",
    "nap history serve none",
    "nap history report none 7 --output page.html",
    "nap web link --dir empty",
    "nap web token --role admin --name x",
    "nap web revoke",
    "nap completions csh",
    "nap man file",
    "",
    "nap sim",
    "nap sim --workload none",
    "nap sim --workload bad.toml",
    "nap sim --workload fcs-map-heavy --scheduler fare",
    "nap sim --workload fcs-map-heavy --nodes 0",
    "nap sim --workload fcs-map-heavy --map-slots 0",
    "nap sim --workload fcs-map-heavy --racks 0",
    "nap sim --workload fcs-map-heavy --containers 0",
    "nap sim --workload fcs-map-heavy --runs 0",
    "nap sim --workload fcs-map-heavy --runs 1000000",
    "nap sim --workload fcs-map-heavy --failure-probability 2",
    "nap sim --workload fcs-map-heavy --worker-mean 1h",
    "nap sim --workload fcs-map-heavy --scheduler hfsp --configuration bad.toml",
    "nap sim --workload fcs-map-heavy --record tables-with-files",
    "nap sim --workload fcs-map-heavy --block lots",
    "nap sim --trace none",
    "nap sim --trace bad.toml",
    "nap sim --trace trace.tsv --block 0",
    "nap sim --trace trace.tsv --trace-nodes 0",
    "nap sim --recorded none",
    "nap sim --recorded none@x..y",
    "nap sim --recorded none@2h..1h",
    "nap sim --recorded empty",
    "",
    "nap streaming",
    "nap --dir x streaming --input x",
    "nap streaming --input none --output out --mapper cat",
    "nap frames --program none.py x --output out",
    "",
    "wordcount",
    "wordcount input",
    "wordcount none --output out",
    "wordcount 'x*.txt' --output out",
    "wordcount . --output out",
    "wordcount s3://bucket/x --output out",
    "wordcount input --output tables-with-files",
    "wordcount input --output input",
    "wordcount input --output input/x",
    "wordcount input --output /",
    "wordcount input --output out --frob",
    "wordcount input --output out --reduces 0",
    "wordcount input --output out --split-size 0",
    "wordcount input --output out --split-size lots",
    "wordcount input --output out --task-memory 1k",
    "wordcount input --output out --bad-input maybe",
    "wordcount input --output out --progress sometimes",
    "wordcount input --output out --conf fan-in",
    "wordcount input --output out --conf fan-out=2",
    "wordcount input --output out --conf fan-in=1",
    "wordcount input --output out --conf compression=zip",
    "wordcount input --output out --conf slowstart=2",
    "wordcount input --output out --conf task-timeout=soon",
    "wordcount input --output out --files none",
    "wordcount input --output out --cluster none",
    "wordcount input --output out --cluster empty",
    "wordcount input --output out --cluster localhost:1",
    "wordcount input --output out --queue nightly",
    "wordcount input --output out --priority high",
    "wordcount input --output out --deadline soon",
    "wordcount input --output out --detach",
];

/// Command lines on a cluster with one worker, on which job_0001 has succeeded.
const WITH_CLUSTER: &[&str] = &[
    "nap up",
    "nap coordinator",
    "nap job status 99",
    "nap job status 5-9",
    "nap job status 1 99",
    "nap job kill 1",
    "nap job suspend 1",
    "nap job resume 1",
    "nap job hold 1",
    "nap job release 1",
    "nap job set 1 --priority 5",
    "nap job logs 99",
    "nap job logs 1 m_0009",
    "nap job logs 1 job_0002_m_0000",
    "nap job rerun 1",
    "nap job trace 1 --output file",
    "nap job report 1 --output file",
    "nap job explain 99",
    "nap task suspend 1_m_0",
    "nap task resume 1_m_0.1",
    "nap task kill 1_m_99",
    "nap task checkpoint 99_m_0",
    "nap worker drain 9",
    "nap worker drain somebody",
    "nap worker undrain 1",
    "nap worker list --wait 5 --timeout 1s",
    "nap queue list",
    "wordcount input --output out",
    "wordcount input --output other --queue nightly",
    "wordcount input --output other --secret-file none",
];

/// Creates a folder with the files that the command lines name.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("file", "");
    folder.write("input", "a b\n");
    folder.write("bad.toml", "[coordinator\n");
    folder.write("unknown.toml", "[coordinator]\nheartbeet = \"1s\"\n");
    folder.write("value.toml", "[coordinator]\nheartbeat = \"soon\"\n");
    folder.write("slots.toml", "[worker]\nmap-slots = 5000\n");
    folder.write("name.toml", "[worker]\nname = \"w\"\n");
    folder.write("trace.tsv", "job0\t0\t0\t67108864\t0\t0\n");
    folder.write("tables-with-files/jobs.csv", "");
    folder.write("store/folder/input", "a\n");
    let private = |name: &str| {
        run(Command::new("mkdir")
            .args(["-m", "700"])
            .arg(folder.path(name)))
        .succeeded();
    };
    private("empty");
    run(Command::new("mkdir")
        .args(["-m", "777"])
        .arg(folder.path("open")))
    .succeeded();
    folder
}

/// Returns the command line, its exit status and its standard error, without common usage lines and hints.
fn answer(line: &str, folder: &Folder, cluster: &Path) -> String {
    if line.is_empty() {
        return String::new();
    }
    let nap = in_80_columns("nap");
    let programs = Path::new(nap.get_program())
        .parent()
        .expect("the folder of programs");
    // A command line that is accidentally valid could start a daemon.
    let mut shell = Command::new("timeout");
    shell
        .args(["30", "sh", "-c", line])
        .current_dir(folder.root())
        .env("HOME", folder.path("home"))
        .env("TZ", "UTC");
    for (name, value) in nap.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let path = std::env::var("PATH").unwrap_or_default();
    shell
        .env("PATH", format!("{}:{path}", programs.display()))
        .env_remove("XDG_STATE_HOME");
    if cluster.exists() {
        shell
            .env("NAPREDUCE_DIR", cluster)
            .env("NAPREDUCE_CLUSTER", cluster);
    }
    // `run` would renumber the jobs.
    let ended = shell.output().expect("a shell");
    let errors = String::from_utf8(ended.stderr).expect("text");
    let errors = errors.split("\nUsage: ").next().unwrap_or_default();
    let errors = errors.replace("For more information, try '--help'.\n", "");
    let root = fs::canonicalize(folder.root()).expect("the folder");
    let errors = without_run_numbers(&errors.replace(&root.display().to_string(), "DIR"));
    // Log lines begin with the time.
    let is_error = |line: &&str| !line.trim().is_empty() && !line.starts_with("20");
    let lines = errors
        .lines()
        .filter(is_error)
        .map(|line| format!("  {line}\n"));
    let status = ended.status.code().expect("an exit status");
    assert_ne!(status, 124, "{line}: does not end");
    format!("$ {line}\n  [{status}]\n{}", lines.collect::<String>())
}

/// Replaces process IDs and ports, which differ from run to run.
fn without_run_numbers(errors: &str) -> String {
    let mut text = errors.to_owned();
    for before in ["process ", "127.0.0.1:"] {
        let pieces = text.split(before).enumerate();
        text = pieces.fold(String::new(), |text, (index, piece)| {
            let rest = piece.trim_start_matches(|letter: char| letter.is_ascii_digit());
            match index {
                0 => piece.to_owned(),
                _ if rest.len() < piece.len() => format!("{text}{before}N{rest}"),
                _ => format!("{text}{before}{piece}"),
            }
        });
    }
    text
}

fn answers(lines: &[&str], folder: &Folder, cluster: &Path) -> String {
    lines
        .iter()
        .map(|line| answer(line, folder, cluster) + "\n")
        .collect()
}

#[test]
fn mistakes_without_cluster_equal_snapshot() {
    let folder = folder();
    let cluster = folder.path("no-cluster");
    assert_snapshot("mistakes", &answers(WITHOUT_CLUSTER, &folder, &cluster));
}

#[test]
fn mistakes_with_cluster_equal_snapshot() {
    let folder = folder();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = "wordcount input --output out";
    let first = answer(job, &folder, cluster.directory());
    assert!(first.contains("[0]"), "{first}");
    assert_snapshot(
        "mistakes-on-cluster",
        &answers(WITH_CLUSTER, &folder, cluster.directory()),
    );
}
