//! `nap demo`: what it shows, and that nothing is left of it.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use napreduce_tests::{Folder, is_ignored, program, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};

/// The number of steps that it shows.
const STEPS: u32 = 8;

/// Returns a demo whose temporary directory is in this folder.
fn demo(folder: &Folder) -> Command {
    let mut command = program("nap");
    command
        .args(["demo", "--no-wait"])
        .env("TMPDIR", folder.root());
    command
}

/// Returns the command lines of processes that have this folder in their arguments or environment.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.as_os_str().as_encoded_bytes();
    let names = |bytes: &[u8]| bytes.windows(folder.len()).any(|window| window == folder);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("processes").flatten() {
        let [line, environment] = ["cmdline", "environ"]
            .map(|name| fs::read(entry.path().join(name)).unwrap_or_default());
        if names(&line) || names(&environment) {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// Returns a step before the last, which may end before a signal arrives.
fn random_step() -> u32 {
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970");
    1 + now.subsec_micros() % (STEPS - 1)
}

/// Reads what it prints until it has begun a step.
fn read_until(step: u32, demo: &mut Child) -> String {
    let mut lines = BufReader::new(demo.stdout.as_mut().expect("its output"));
    let mut read = String::new();
    while !read.contains(&format!("\n{step}. ")) {
        assert!(
            lines.read_line(&mut read).expect("text") > 0,
            "step {step} never began: {read}"
        );
    }
    read
}

#[test]
fn two_demos_at_once_show_suspended_task_and_equal_outputs() {
    let folder = Folder::new();
    let both = std::thread::scope(|scope| {
        let demos = [(); 2].map(|()| scope.spawn(|| run(&mut demo(&folder)).succeeded()));
        demos.map(|demo| demo.join().expect("it succeeded"))
    });
    for shown in both.map(|ended| ended.stdout) {
        for step in 1..=STEPS {
            assert!(shown.contains(&format!("\n{step}. ")), "{step}: {shown}");
        }
        let (_, preempted) = shown
            .split_once(" the scheduler natjam preempts ")
            .expect(&shown);
        let (task, reason) = preempted.split_once(":\n   ").expect(&shown);
        assert!(task.starts_with("job_0001_r_000"), "{shown}");
        assert!(
            reason.starts_with("no reduce slot is free, and production job_0002 waits for 1"),
            "{shown}"
        );
        assert!(
            shown.contains(&format!("\n   {task} is suspended after ")),
            "{shown}"
        );
        assert!(
            shown.contains(&format!("\n   {task} continues ")),
            "{shown}"
        );
        assert!(
            shown.contains("2 attempts of 2 reduces; lost work: 0.0 s"),
            "{shown}"
        );
        assert!(
            shown.contains("job_0001: 2 part files, 2240 bytes, equal"),
            "{shown}"
        );
        assert!(
            shown.contains("job_0002: 1 part file, 456 bytes, equal"),
            "{shown}"
        );
    }
    assert_eq!(processes_in(folder.root()), [""; 0]);
    assert_eq!(fs::read_dir(folder.root()).expect("it is there").count(), 0);
}

#[test]
fn interrupted_demo_leaves_no_process_and_no_file() {
    let folder = Folder::new();
    let signals = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    for (signal, status) in signals {
        if is_ignored(signal) {
            println!("partly skipped: {signal:?} is ignored here");
            continue;
        }
        let step = random_step();
        let mut demo = demo(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        read_until(step, &mut demo);
        kill_process(Pid::from_child(&demo), signal).expect("it runs");
        let ended = demo.wait_with_output().expect("it ends");
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            (ended.status.code(), &*printed),
            (Some(status), "nap demo: interrupted\n"),
            "step {step}"
        );
        assert_eq!(processes_in(folder.root()), [""; 0], "step {step}");
        assert_eq!(
            fs::read_dir(folder.root()).expect("it is there").count(),
            0,
            "step {step}"
        );
    }
}

#[test]
fn killed_demo_leaves_no_process() {
    let folder = Folder::new();
    let mut demo = demo(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    read_until(3, &mut demo);
    assert!(processes_in(folder.root()).len() > 4, "a cluster and tasks");
    demo.kill().expect("it runs");
    demo.wait().expect("a child of this test");
    wait_until("the end of its cluster", || {
        processes_in(folder.root()).is_empty()
    });
}

/// A shell that ignores SIGINT, as under `&` in a script, starts the job and is killed while the job waits for a
/// coordinator that never answers.
#[test]
fn job_ends_with_its_parent_even_if_sigint_is_ignored() {
    let folder = Folder::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("an address").to_string();
    let input = folder.write("input", "word\n");
    let secret = folder.write("secret", "ab".repeat(32));
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("it is ours");
    let script = r#"trap "" INT; export NAPREDUCE_UP_PROCESS=$$; "$@" & wait"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]);
    shell
        .arg(program("nap").get_program())
        .arg("demo-job")
        .arg(&input)
        .args(["--pause", "0", "--cluster", &address, "--secret-file"])
        .arg(&secret)
        .arg("--output")
        .arg(folder.path("output"));
    let mut shell = shell.spawn().expect("it starts");
    let connected = silent.accept();
    assert!(!processes_in(folder.root()).is_empty(), "the job runs");
    shell.kill().expect("it runs");
    shell.wait().expect("a child of this test");
    let began = Instant::now();
    wait_until("the end of the job", || {
        processes_in(folder.root()).is_empty()
    });
    drop(connected);
    // A client waits for its coordinator for a minute.
    assert!(began.elapsed() < Duration::from_secs(30), "it gave up");
}

#[test]
fn kept_files_are_readable_by_other_commands() {
    let folder = Folder::new();
    let shown = run(demo(&folder).arg("--keep")).succeeded().stdout;
    let (_, command) = shown.split_once("nap history serve ").expect(&shown);
    let tables = folder.path("tables");
    run(program("nap")
        .args(["history", "export", command.trim(), "--output"])
        .arg(&tables))
    .succeeded();
    let jobs = fs::read_to_string(tables.join("jobs.csv")).expect("a table of jobs");
    assert!(
        jobs.contains("research") && jobs.contains("production"),
        "{jobs}"
    );
    assert_eq!(processes_in(folder.root()), [""; 0]);
}
