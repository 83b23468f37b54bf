//! The same jobs on a real Spark, that of the Python module pyspark. Each start takes many seconds, so there
//! are few tests. Skipped without it, unless `NAPREDUCE_REQUIRE` lists `spark`. Tests that need no Spark are
//! in `guests`.
//!
//! ```text
//! NAPREDUCE_SPARK_MASTER='local-cluster[2,1,1024]' cargo test -p napreduce-tests --test system -- spark:: --test-threads 1
//! NAPREDUCE_SPARK_MASTER=standalone cargo test -p napreduce-tests --test system -- spark:: --test-threads 1
//! ```

mod master;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use napreduce_tests::{
    Folder, NotedJob, assert_every_shape_is_as_embedded, assert_interrupted_leaves_nothing,
    assert_nothing_is_left, assert_same, counter, run, skipped, without_cluster, write_input,
};
use rustix::process::Signal;

use master::{executor_of, master};

/// Spark takes many seconds to start, and longer if other tests start it at the same time.
const START_MAX: Duration = Duration::from_secs(240);

/// Returns a Python with the module, if there is one.
fn python() -> Option<String> {
    let named = std::env::var("NAPREDUCE_PYSPARK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut ask = Command::new(&named);
    ask.args(["-c", "import pyspark"]).stderr(Stdio::null());
    if ask.status().is_ok_and(|status| status.success()) {
        return Some(named);
    }
    skipped(
        "spark",
        &format!("{named} has no module pyspark; install it with: pip install pyspark"),
    );
    None
}

/// Options of Spark: no web page, and only local addresses.
fn on(master: &str) -> [&str; 4] {
    ["--on", master, "--on-conf", "spark.ui.enabled=false"]
}

fn with_spark(command: &mut Command, python: &str) {
    command
        .env("PYSPARK_PYTHON", python)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env_remove("SPARK_HOME");
}

fn on_spark(name: &str, folder: &Folder, python: &str) -> Command {
    let mut command = without_cluster(name, folder);
    with_spark(&mut command, python);
    command.args(on(&master(python)));
    command
}

fn wait_for_start(mut come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !come() {
        assert!(
            began.elapsed() < START_MAX,
            "no guest runs within {START_MAX:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Combiner, ordered groups, map-only, named outputs, side files, a chain with a total order, and killed
/// attempts of maps and reduces, in one start of Spark.
#[test]
fn every_job_shape_equals_embedded_run() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    write_input(&folder, 3, 400);
    assert_every_shape_is_as_embedded(&folder, &on(&master(&python)), |command| {
        with_spark(command, &python)
    });
    let killed = folder.path("other.killed-reduce");
    assert!(!killed.join("_temporary").exists());
    assert_eq!(counter(&killed, "NUM_FAILED_REDUCES"), 3);
}

#[test]
fn terasort_by_pyspark_shuffle_is_totally_ordered() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let mut state = 1_u64;
    let mut row = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{:010}{:088}\r\n", state >> 31, state >> 7)
    };
    folder.write("rows", (0..30_000).map(&mut row).collect::<String>());
    let sort = |command: &mut Command, output: &str| {
        command.args([
            "rows",
            "--output",
            output,
            "--reduces",
            "3",
            "--split-size",
            "700000",
            "--quiet",
        ]);
        run(command).succeeded();
    };
    sort(&mut without_cluster("terasort", &folder), "own");
    let mut elsewhere = on_spark("terasort", &folder, &python);
    sort(
        elsewhere.args(["--on-conf", "spark.napreduce.pickled=true"]),
        "other",
    );
    assert_same(&folder.path("own"), &folder.path("other"));
}

#[test]
fn fatal_error_fails_job_after_one_attempt() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let input = folder.write("in.txt", "good\nbad\n");
    let mut command = on_spark("testjobs", &folder, &python);
    command.args(["in.txt", "--job", "fatal-in-map", "--output", "out"]);
    run(&mut command).failed(
        1,
        &["job_0001_m_0000: ", "in.txt line 2: this line is invalid"],
    );
    assert_eq!(
        fs::read_to_string(input.with_extension("txt.attempts")).expect("one was made"),
        "one\n"
    );
    assert_nothing_is_left(&folder, "out");
}

#[test]
fn interrupted_job_leaves_nothing() {
    let Some(python) = python() else { return };
    let folder = Folder::new();
    let command = on_spark("testjobs", &folder, &python);
    assert_interrupted_leaves_nothing(&folder, command, |runs| wait_for_start(runs));
}

#[test]
fn missing_spark_reports_what_to_install() {
    let folder = Folder::new();
    folder.write("in.txt", "a b\n");
    let mut command = without_cluster("wordcount", &folder);
    command
        .env("PATH", "/nowhere")
        .env_remove("SPARK_HOME")
        .env_remove("PYSPARK_PYTHON")
        .args(on("local[2]"));
    let ended = run(command.args(["in.txt", "--output", "out"]));
    ended.failed(2, &["Spark not found: ", "pip install pyspark"]);
    assert!(!Path::new(&folder.path("out")).exists());
}

#[test]
fn task_of_killed_guest_resumes_from_checkpoint() {
    let Some(python) = python() else { return };
    let mut job = NotedJob::start("1s", &on(&master(&python)), |command, _| {
        with_spark(command, &python)
    });
    wait_for_start(|| !job.done("m_0000").is_empty());
    for (task, signal) in [("m_0000", Signal::TERM), ("r_0000", Signal::KILL)] {
        job.wait_for_some(task);
        job.wait_for_checkpoint(task);
        let ended = job.end(task, signal);
        job.wait_for_another(task, ended);
        job.open(task);
    }
    let (records, groups) = job.ends_as_undisturbed();
    assert_eq!(records, NotedJob::LINES);
    assert!(groups < 3 * NotedJob::LINES, "{groups}");
    assert_eq!(counter(&job.folder.path("out"), "CHECKPOINT_RESTORES"), 2);
}

#[test]
fn task_of_lost_executor_resumes_from_checkpoint() {
    let Some(python) = python() else { return };
    let master = master(&python);
    if master.starts_with("local[") {
        eprintln!(
            "skipped: {master} has no executors of its own; name another one in NAPREDUCE_SPARK_MASTER"
        );
        return;
    }
    let mut job = NotedJob::start("1s", &on(&master), |command, _| {
        with_spark(command, &python)
    });
    wait_for_start(|| !job.done("m_0000").is_empty());
    for (task, signal) in [("m_0000", Signal::TERM), ("r_0000", Signal::KILL)] {
        job.wait_for_some(task);
        job.wait_for_checkpoint(task);
        let guest = job.guest(task);
        let executor = executor_of(guest).expect("it runs in one");
        assert!(executor.signal(signal), "{task}");
        job.wait_for_another(task, guest);
        job.open(task);
    }
    // Lines of a map that runs again after its output was lost are not counted twice.
    let (_, groups) = job.ends_as_undisturbed();
    assert!(groups < 3 * NotedJob::LINES, "{groups}");
    assert!(counter(&job.folder.path("out"), "CHECKPOINT_RESTORES") >= 1);
}
