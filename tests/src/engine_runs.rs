//! Runs jobs of every shape embedded and on another engine, and compares the outputs.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folder::Folder;
use crate::output::{parts, report};
use crate::own_cluster::wait_until;
use crate::processes::Process;
use crate::programs::{Ended, program, run};

/// Jobs: with a combiner, with ordered groups, map-only with a second output, map-only with a side file, with
/// killed attempts of maps and of reduces, and a chain of two jobs.
const SHAPES: [&str; 8] = [
    "words-of-bytes",
    "visits",
    "sorted-out",
    "known-lines",
    "killed-map",
    "killed-reduce",
    "count-to-records",
    "by-remainder",
];
/// Counters of records, which do not depend on the engine or on failed attempts.
const RECORDS: [&str; 9] = [
    "MAP_INPUT_RECORDS",
    "MAP_OUTPUT_RECORDS",
    "MAP_OUTPUT_BYTES",
    "COMBINE_INPUT_RECORDS",
    "COMBINE_OUTPUT_RECORDS",
    "REDUCE_INPUT_GROUPS",
    "REDUCE_INPUT_RECORDS",
    "REDUCE_OUTPUT_RECORDS",
    "bad lines",
];

/// Returns a program that does not use the cluster of the tests.
pub fn without_cluster(name: &str, folder: &Folder) -> Command {
    let mut command = program(name);
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command
}

/// Writes the input of all shapes: words, visits, numbers and lines of a side file.
pub fn write_input(folder: &Folder, files: u32, lines: u32) {
    for file in 0..files {
        let line = |index: u32| match index % 4 {
            0 => format!("user{}\t{}\n", index % 13, index * 7 % 101),
            1 => format!("{}\n", index * 31 % 997),
            2 => format!("known {}\n", index % 5),
            _ => format!(
                "w{} the of w{} the\n",
                (index + file) % 97,
                index * 11 % 331
            ),
        };
        folder.write(
            &format!("in/{file:02}.txt"),
            (0..lines).map(line).collect::<String>(),
        );
    }
    folder.write("side/known lines.txt", "known 1\nknown 3\n");
}

/// Returns a program that runs all shapes, with outputs `NAME` and its siblings.
fn shapes(folder: &Folder, name: &str, engine: &[&str]) -> Command {
    let mut command = without_cluster("testjobs", folder);
    let jobs = format!("several:{},chain", SHAPES.join(","));
    command.args([
        "in",
        "--job",
        &jobs,
        "--output",
        name,
        "--reduces",
        "3",
        "--conf",
        "combine-files=false",
    ]);
    command
        .args(["--files", "side/known lines.txt#known", "--quiet"])
        .args(engine);
    command
}

/// Runs all shapes embedded and on an engine, and compares the outputs.
pub fn assert_every_shape_is_as_embedded(
    folder: &Folder,
    engine: &[&str],
    set_up: impl Fn(&mut Command),
) {
    run(&mut shapes(folder, "own", &[])).succeeded();
    let mut elsewhere = shapes(folder, "other", engine);
    set_up(&mut elsewhere);
    run(&mut elsewhere).succeeded();
    for shape in SHAPES {
        assert_same(
            &folder.path(&format!("own.{shape}")),
            &folder.path(&format!("other.{shape}")),
        );
    }
    assert_same(&folder.path("own"), &folder.path("other"));
}

/// Panics unless both directories contain the same files with the same bytes, and the same counters of
/// records.
pub fn assert_same(own: &Path, other: &Path) {
    let shown = other.display();
    assert!(!parts(own).is_empty(), "{} has no parts", own.display());
    assert!(parts(own) == parts(other), "{shown} has other parts");
    let [own, other] = [report(own), report(other)];
    let digests = |report: &Value| report["parts"].clone();
    assert_eq!(digests(&own), digests(&other), "{shown}");
    for name in RECORDS {
        assert_eq!(
            own["counters"][name], other["counters"][name],
            "{name} of {shown}"
        );
    }
}

/// Panics if a job without output has left any files.
pub fn assert_nothing_is_left(folder: &Folder, output: &str) {
    let left: Vec<_> = std::fs::read_dir(folder.root())
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.starts_with(output))
        .collect();
    assert!(left.is_empty(), "{left:?} is left");
}

/// Interrupts an endless job after its guest has started; panics if the guest survives or files are left.
/// `wait` polls until the guest runs.
pub fn assert_interrupted_leaves_nothing(
    folder: &Folder,
    mut command: Command,
    wait: impl Fn(&dyn Fn() -> bool),
) {
    folder.write("in.txt", "forever\n");
    command.args(["in.txt", "--job", "endless", "--output", "out", "--quiet"]);
    let program = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    wait(&|| folder.has("in.txt.running"));
    let running = std::fs::read_to_string(folder.path("in.txt.running"))
        .expect("the file of the running task");
    let guest = running
        .rsplit(' ')
        .next()
        .and_then(|number| Process::of(number.parse().ok()?))
        .expect("it runs");
    kill_process(
        Pid::from_raw(program.id().cast_signed()).expect("a process"),
        Signal::INT,
    )
    .expect("it runs");
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
    assert_nothing_is_left(folder, "out");
    let runs = || Process::of(guest.number.cast_unsigned()) == Some(guest);
    wait_until("the guest has ended", || !runs());
}
