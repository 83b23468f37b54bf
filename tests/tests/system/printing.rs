//! Programs whose standard output and standard error cannot be written: they behave the same otherwise, and
//! never panic.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::process::{Command, Output, Stdio};

use napreduce_tests::{Folder, NapUp, OwnCluster, Process, joined, program, run, wait_until};
use rustix::process::Signal;

/// A reason why output cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sink {
    FullDisk,
    ClosedPipe,
    ClosedDescriptor,
}

const SINKS: [Sink; 3] = [Sink::FullDisk, Sink::ClosedPipe, Sink::ClosedDescriptor];

impl Sink {
    /// Redirects the standard output of a command, and its standard error unless it is captured.
    fn command(self, command: &Command, captures_errors: bool) -> Command {
        let line = if captures_errors {
            "exec \"$0\" \"$@\" >&-"
        } else {
            "exec \"$0\" \"$@\" >&- 2>&-"
        };
        let mut sunk = match self {
            Sink::ClosedDescriptor => Command::new("sh"),
            _ => Command::new(command.get_program()),
        };
        if self == Sink::ClosedDescriptor {
            sunk.args(["-c", line]).arg(command.get_program());
        }
        sunk.args(command.get_args())
            .stdin(Stdio::null())
            .stdout(self.stdio())
            .stderr(self.stdio());
        if captures_errors {
            sunk.stderr(Stdio::piped());
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => sunk.env(name, value),
                None => sunk.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            sunk.current_dir(directory);
        }
        sunk
    }

    fn stdio(self) -> Stdio {
        match self {
            Sink::FullDisk => File::create("/dev/full").expect("a full disk").into(),
            Sink::ClosedPipe => {
                let (_, writer) = io::pipe().expect("a pipe");
                writer.into()
            }
            Sink::ClosedDescriptor => Stdio::null(),
        }
    }

    /// Returns the expected status of a program that ends with `status` when it can print.
    fn status(self, status: Option<i32>, prints: bool) -> Option<i32> {
        match status {
            Some(0) if prints && self == Sink::FullDisk => Some(1),
            other => other,
        }
    }
}

/// Runs the command with each sink in turn and calls `is_same` after each run.
fn assert_same_status(
    what: &str,
    command: impl Fn() -> Command,
    expected: (Option<i32>, bool),
    mut is_same: impl FnMut(),
) {
    let (status, prints) = expected;
    for sink in SINKS {
        for captures_errors in [false, true] {
            let ended = sink
                .command(&command(), captures_errors)
                .output()
                .expect("it runs");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(
                ended.status.code(),
                sink.status(status, prints),
                "{what}, {sink:?}: {said}"
            );
            assert!(!said.contains("panicked"), "{what}, {sink:?}: {said}");
            is_same();
        }
    }
}

/// Every command of `nap`, with arguments for which it ends at once and changes nothing; `{}` is the folder
/// of the test.
const COMMANDS: &[(&str, &str)] = &[
    ("completions", "bash"),
    ("coordinator", ""),
    ("demo", "--unknown"),
    ("down", "--coordinator nowhere:1"),
    ("frames", "--help"),
    ("history export", "{}/cluster --output {}/cluster"),
    (
        "history report",
        "{}/cluster 1 --output {}/page.html --overwrite",
    ),
    ("history serve", "{}/nosuch"),
    ("job compare", "1 1"),
    ("job counters", "1"),
    ("job explain", "1"),
    ("job history", "1"),
    ("job hold", "1"),
    ("job kill", "1"),
    ("job list", ""),
    ("job logs", "1"),
    ("job release", "1"),
    ("job report", "1 --output {}/page.html --overwrite"),
    ("job rerun", "1"),
    ("job resume", "1"),
    ("job set", "1 --priority 3"),
    ("job status", "1"),
    ("job submitted", "1"),
    ("job suspend", "1"),
    ("job trace", "1 --output {}/trace.json --overwrite"),
    ("job wait", "1"),
    ("journal check", "{}/cluster"),
    ("journal repair", "{}/cluster --output {}/repaired"),
    ("lab", "--help"),
    ("man", "{}/man"),
    ("new", "1-begins-with-a-digit"),
    ("preemption flows", ""),
    ("preemption list", ""),
    ("preemption totals", ""),
    ("queue list", ""),
    ("sim", "--workload {}/nosuch"),
    ("status", ""),
    (
        "streaming",
        "--input {}/in --output {}/lines --overwrite --mapper cat --reducer cat --slots 1",
    ),
    ("task checkpoint", "job_0001_m_0000"),
    ("task explain", "job_0001_m_0000"),
    ("task kill", "job_0001_m_0000"),
    ("task list", "1"),
    ("task resume", "job_0001_m_0000"),
    ("task suspend", "job_0001_m_0000"),
    ("top", ""),
    ("up", "--workers 1"),
    ("web link", ""),
    ("web revoke", "somebody"),
    ("web serve", "--web nowhere"),
    ("web token", "--role view --name somebody"),
    ("worker drain", "nosuch"),
    ("worker list", ""),
    ("worker undrain", "nosuch"),
    ("worker", "--map-slots 0 --reduce-slots 0"),
];

/// Commands whose options differ from those of `nap`.
const APART: [&str; 2] = ["frames", "streaming"];

fn nap(folder: &Folder, name: &str, arguments: &str) -> Command {
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    if !APART.contains(&name) {
        command.arg("--dir").arg(folder.path("cluster"));
    }
    let root = folder.root().display().to_string();
    command.args(name.split(' ')).args(
        arguments
            .split_whitespace()
            .map(|word| word.replace("{}", &root)),
    );
    command
}

/// Returns the names of all commands without subcommands, from the manual.
fn command_names(folder: &Folder) -> BTreeSet<String> {
    run(program("nap").arg("man").arg(folder.path("pages"))).succeeded();
    let pages = fs::read_dir(folder.path("pages")).expect("pages");
    let names = pages.map(|page| {
        page.expect("a page")
            .file_name()
            .into_string()
            .expect("a name")
    });
    let all: BTreeSet<String> = names
        .map(|name| name.trim_end_matches(".1").replace('-', " "))
        .collect();
    let is_leaf = |name: &&String| {
        // `nap worker` is a daemon that also has subcommands.
        *name == "nap worker"
            || !all
                .iter()
                .any(|other| other.starts_with(&format!("{name} ")))
    };
    all.iter()
        .filter(is_leaf)
        .map(|name| name.trim_start_matches("nap ").to_owned())
        .collect()
}

#[test]
fn every_command_with_unwritable_output_ends_with_the_same_status() {
    let folder = Folder::new();
    folder.write("in", "one two\ntwo\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut wordcount = program("wordcount");
    wordcount
        .current_dir(folder.root())
        .args(["in", "--output", "out", "--cluster"])
        .arg(cluster.directory());
    run(&mut wordcount).succeeded();
    let named: BTreeSet<String> = COMMANDS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(named, command_names(&folder), "the table has all commands");
    for (name, arguments) in COMMANDS {
        let Output { status, stdout, .. } =
            nap(&folder, name, arguments).output().expect("it runs");
        let expected = (status.code(), !stdout.is_empty());
        assert_same_status(name, || nap(&folder, name, arguments), expected, || {});
        let help = || nap(&folder, name, "--help");
        let ended = Sink::FullDisk
            .command(&help(), true)
            .output()
            .expect("it runs");
        assert_eq!(ended.status.code(), Some(1), "nap {name} --help: {ended:?}");
    }
    assert_same_status(
        "nap --version",
        || nap(&folder, "--version", ""),
        (Some(0), true),
        || {},
    );
}

#[test]
fn job_program_with_unwritable_output_writes_the_same_output() {
    let folder = Folder::new();
    folder.write("in", "one two\n".repeat(1000));
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let wordcount = |more: &str, on_cluster: bool| {
        let mut command = program("wordcount");
        command
            .current_dir(folder.root())
            .args(["in", "--output", "out", "--overwrite"]);
        command
            .args(["--reduces", "1", "--progress", "always"])
            .args(more.split_whitespace());
        if on_cluster {
            command.arg("--cluster").arg(cluster.directory());
        }
        command
    };
    run(&mut wordcount("", false)).succeeded();
    let expected = joined(&folder.path("out"));
    for on_cluster in [false, true] {
        for (more, prints) in [("", false), ("--format json", true)] {
            assert_same_status(
                "wordcount",
                || wordcount(more, on_cluster),
                (Some(0), prints),
                || {
                    assert_eq!(joined(&folder.path("out")), expected);
                    assert!(folder.has("out/_SUCCESS") && !folder.has("out/_temporary"));
                    fs::remove_dir_all(folder.path("out")).expect("an output");
                },
            );
        }
        let missing = || {
            let mut command = wordcount("", on_cluster);
            command.args(["nosuch"]);
            command
        };
        assert_same_status("a missing input", missing, (Some(2), false), || {
            assert!(!folder.has("out"))
        });
    }
}

#[test]
fn datagen_with_unwritable_output_writes_the_same_files() {
    let folder = Folder::new();
    let datagen = |arguments: &str| {
        let mut command = program("datagen");
        command
            .current_dir(folder.root())
            .args(arguments.split(' '));
        command
    };
    let tera = || datagen("tera --records 10 --output out --overwrite");
    run(&mut tera()).succeeded();
    let expected = joined(&folder.path("out"));
    assert_same_status("datagen tera", tera, (Some(0), false), || {
        assert_eq!(joined(&folder.path("out")), expected);
        fs::remove_dir_all(folder.path("out")).expect("an output");
    });
    run(&mut tera()).succeeded();
    for prints in ["validate out", "--help", "--version"] {
        let status = run(&mut datagen(prints)).status.code();
        assert_same_status(prints, || datagen(prints), (status, true), || {});
    }
}

#[test]
fn kill_all_with_closed_pipe_kills_every_job() {
    let folder = Folder::new();
    folder.write("in", "one\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for sink in SINKS {
        let submit = |name: &str| {
            cluster.submit(
                &folder,
                &[
                    "in",
                    "--job",
                    "endless",
                    "--output",
                    &format!("{sink:?}-{name}"),
                ],
            )
        };
        let jobs = ["a", "b", "c"].map(submit);
        let ended = sink
            .command(cluster.nap().args(["job", "kill", "all"]), false)
            .status()
            .expect("it runs");
        assert_eq!(ended.code(), Some(0), "{sink:?}");
        for job in &jobs {
            wait_until("every job is killed", || {
                cluster.json(&["job", "status", job])[0]["state"] == "killed"
            });
        }
    }
}

#[test]
fn nap_up_with_unwritable_output_restarts_a_dead_worker() {
    for sink in SINKS {
        let folder = Folder::new();
        let up = nap(&folder, "up", "--workers 1 --web off");
        let mut up = NapUp::of(sink.command(&up, false).spawn().expect("nap up"));
        let number = up.number();
        let workers = || Process::children_of(number, "worker");
        let list = || run(&mut nap(&folder, "worker list", "--wait 1"));
        wait_until("a worker", || list().status.success());
        let first = workers()[0];
        assert!(first.signal(Signal::KILL));
        wait_until("another worker", || {
            workers()
                .first()
                .is_some_and(|worker| worker.number != first.number)
        });
        wait_until("it is up", || list().status.success());
        let status = up.end().code();
        assert_eq!(status, sink.status(Some(0), true), "{sink:?}");
    }
}
