//! Guests on `guest_runner`: outputs, violated frame rules, failures, exit statuses.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use napreduce_tests::{
    Ended, Folder, Process, assert_every_shape_is_as_embedded, assert_nothing_is_left, assert_same,
    counter, run, wait_until, without_cluster, write_input,
};
use rustix::process::{Pid, Signal, kill_process};

/// Returns the engine as a value of `--on`.
fn engine() -> String {
    let runner = without_cluster("guest_runner", &Folder::new())
        .get_program()
        .to_owned();
    format!("exec:{}", runner.display())
}

/// Counts the words of `in` in two reduces, with a frame for every few bytes.
fn wordcount(folder: &Folder, output: &str, engine: &[&str]) -> Command {
    let mut command = without_cluster("wordcount", folder);
    command
        .args([
            "in",
            "--output",
            output,
            "--reduces",
            "2",
            "--conf",
            "combine-files=false",
            "--quiet",
        ])
        .args(engine);
    command
}

#[test]
fn every_job_shape_equals_embedded_run() {
    let folder = Folder::new();
    write_input(&folder, 3, 400);
    assert_every_shape_is_as_embedded(
        &folder,
        &["--on", &engine(), "--on-conf", "chunk=700"],
        |_| {},
    );
    let killed = folder.path("other.killed-map");
    assert_eq!(counter(&killed, "NUM_FAILED_MAPS"), 3);
    assert_eq!(counter(&killed, "TOTAL_LAUNCHED_MAPS"), 6);
}

#[test]
fn ten_thousand_frames_in_random_order_make_same_parts() {
    let folder = Folder::new();
    write_input(&folder, 24, 2_000);
    run(&mut wordcount(&folder, "own", &[])).succeeded();
    for seed in ["seed=1", "seed=2"] {
        let settings = [
            "--on-conf",
            seed,
            "--on-conf",
            "chunk=8",
            "--on-conf",
            "frames=10000",
            "--overwrite",
        ];
        run(wordcount(&folder, "other", &["--on", &engine()]).args(settings)).succeeded();
        assert_same(&folder.path("own"), &folder.path("other"));
    }
}

/// The same on an engine that violates a rule.
fn broken_wordcount(folder: &Folder, broken: &str) -> Command {
    wordcount(
        folder,
        "out",
        &[
            "--on",
            &engine(),
            "--on-conf",
            "chunk=300",
            "--on-conf",
            broken,
        ],
    )
}

#[test]
fn broken_engine_rule_fails_job_by_name() {
    let folder = Folder::new();
    write_input(&folder, 3, 200);
    for rule in [
        "second extent",
        "missing extent",
        "missing frame",
        "frame after report",
        "second report",
        "missing report",
        "other report",
        "other partition",
        "unknown map",
        "bad block",
        "bad extent",
        "bad report",
        "cut short",
        "too long",
    ] {
        let broken = format!("break={rule}");
        let ended = run(&mut broken_wordcount(&folder, &broken));
        let says = [
            "_r_0000: exit status: 66",
            "invalid frames for this reduce: ",
            &format!("{rule}: "),
        ];
        ended.failed(1, &says);
        assert_nothing_is_left(&folder, "out");
    }
}

#[test]
fn missing_or_extra_guest_output_fails_job() {
    let folder = Folder::new();
    write_input(&folder, 3, 200);
    for (broken, says) in [
        ("missing end", "bad block: map "),
        (
            "lost",
            "the engine lost some, or a retried map emitted different output",
        ),
        (
            "reported twice",
            "the engine reported job_0001_r_0000 twice",
        ),
        (
            "unreported",
            "the engine completed the job without a report of job_0001_r_0000",
        ),
        (
            "foreign part",
            "reported the part /etc/hostname, which is outside the directory of this job's guests",
        ),
    ] {
        let broken = format!("break={broken}");
        let ended = run(&mut broken_wordcount(&folder, &broken));
        ended.failed(1, &[says]);
        assert_nothing_is_left(&folder, "out");
    }
}

#[test]
fn failing_engine_command_is_named() {
    let folder = Folder::new();
    write_input(&folder, 1, 10);
    let missing = run(&mut wordcount(
        &folder,
        "out",
        &["--on", "exec:/nowhere/engine"],
    ));
    missing.failed(1, &["cannot start the engine /nowhere/engine: "]);
    let ended = run(&mut wordcount(&folder, "out", &["--on", "exec:/bin/false"]));
    ended.failed(
        1,
        &["the engine ended (exit status: 1) before the job; its last output: no output"],
    );
    assert_nothing_is_left(&folder, "out");
    fs::create_dir(folder.path("taken")).expect("made");
    folder.write("taken/part-r-00000", "old");
    let taken = run(&mut wordcount(&folder, "taken", &["--on", &engine()]));
    taken.failed(
        2,
        &["output directory taken/ exists; pass --overwrite or choose another"],
    );
}

#[test]
fn fatal_error_fails_job_after_one_attempt() {
    let folder = Folder::new();
    let input = folder.write("in.txt", "good\nbad\n");
    let mut command = without_cluster("testjobs", &folder);
    command.args([
        "in.txt",
        "--job",
        "fatal-in-map",
        "--output",
        "out",
        "--on",
        &engine(),
    ]);
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
    let folder = Folder::new();
    folder.write("in.txt", "forever\n");
    let mut command = without_cluster("testjobs", &folder);
    command.args([
        "in.txt",
        "--job",
        "endless",
        "--output",
        "out",
        "--quiet",
        "--on",
        &engine(),
    ]);
    let program = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    wait_until("a guest runs", || folder.has("in.txt.running"));
    let said = fs::read_to_string(folder.path("in.txt.running")).expect("it said so");
    let guest = said
        .rsplit(' ')
        .next()
        .and_then(|number| Process::of(number.parse().ok()?))
        .expect("it runs");
    let own = Pid::from_raw(program.id().cast_signed()).expect("a process");
    kill_process(own, Signal::INT).expect("it runs");
    let ended = program.wait_with_output().expect("its end");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    let ended = Ended {
        status: ended.status,
        stdout: String::new(),
        stderr,
    };
    ended.failed(
        130,
        &["interrupted by signal 2; the job left no files in out"],
    );
    assert_nothing_is_left(&folder, "out");
    wait_until("the guest has ended", || {
        Process::of(guest.number.cast_unsigned()) != Some(guest)
    });
}

/// Runs a guest of a plan that was made by a job whose engine did nothing.
fn guest(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = without_cluster("wordcount", folder);
    command.arg("--napreduce-guest").args(arguments);
    command
}

fn plan(folder: &Folder, splits: &str) -> PathBuf {
    let settings = r#"{\"settings\":{},\"files\":{},\"parameters\":null}"#;
    let plan = format!(
        "{{\"format\":\"napreduce-guest-plan/1\",\"job\":\"job_0001\",\"name\":\"w\",\"definition\":\"wordcount\",\
         \"parameters\":\"{settings}\",\"reduces\":2,\"splits\":[{splits}],\"cuts\":[],\"compress\":false,\
         \"task_memory\":67108864,\"durable\":false}}"
    );
    folder.write("plan.json", plan)
}

#[test]
fn guest_exit_status_tells_retryable_errors() {
    let folder = Folder::new();
    plan(&folder, "");
    let map = [
        "map",
        "--plan",
        "plan.json",
        "--task",
        "0",
        "--scratch",
        "scratch",
    ];
    run(&mut guest(&folder, &["sort"])).failed(65, &["invalid value 'sort' for '<KIND>'"]);
    run(&mut guest(&folder, &map)).failed(65, &["--task 0: the plan has 0 maps"]);
    folder.write("plan.json", "{\"format\":\"napreduce-guest-plan/9\"}");
    run(&mut guest(&folder, &map)).failed(
        65,
        &["cannot use the plan plan.json: its format is", "plan/9"],
    );
    folder.write("plan.json", "{");
    run(&mut guest(&folder, &map)).failed(65, &["invalid JSON: "]);
    let split = "{\"parts\":[{\"path\":\"missing\",\"offset\":0,\"length\":5,\"file_length\":5}]}";
    plan(&folder, split);
    let ended = run(&mut guest(&folder, &map));
    assert!(matches!(ended.status.code(), Some(64 | 65)), "{ended:?}");
    assert!(ended.stderr.contains("missing"), "{ended:?}");
    let mut reduce = guest(
        &folder,
        &[
            "reduce",
            "--plan",
            "plan.json",
            "--task",
            "0",
            "--scratch",
            "s",
            "--part",
            "p",
        ],
    );
    run(&mut reduce).failed(66, &["missing report: map 0 sent none"]);
}

#[test]
fn terminated_guest_reports_signal() {
    let folder = Folder::new();
    plan(&folder, "");
    let mut reduce = guest(
        &folder,
        &[
            "reduce",
            "--plan",
            "plan.json",
            "--task",
            "1",
            "--scratch",
            "s",
            "--part",
            "p",
        ],
    );
    let mut running = reduce
        .stdin(Stdio::piped())
        .spawn()
        .expect("it can be started");
    // The guest creates its scratch directory when it is ready for messages.
    wait_until("the guest runs", || folder.has("s"));
    kill_process(
        Pid::from_raw(running.id().cast_signed()).expect("a process"),
        Signal::TERM,
    )
    .expect("it runs");
    let status = running.wait().expect("its end");
    assert_eq!((status.code(), status.signal()), (Some(143), None));
}

#[test]
fn help_hides_guest_options() {
    let ended = run(without_cluster("wordcount", &Folder::new()).arg("--help")).succeeded();
    assert!(
        !ended.stdout.contains("napreduce-guest"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("--on <ENGINE>"), "{}", ended.stdout);
}
