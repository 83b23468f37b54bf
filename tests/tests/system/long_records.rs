//! Tasks that an operator suspends inside a record that takes long, and that are then checkpointed, killed, or lost with
//! their worker: they work in slots only, and the output is that of an undisturbed run.

use std::fs;

use napreduce_tests::{Folder, OwnCluster, Process, counter, parts, run, wait_until};
use rustix::process::Signal;

use crate::python_programs::{driver, has_python, module};

/// Each record `wait PATH` takes until that file exists, and writes a byte to `PATH.working` every 10 ms.
const PYTHON: &str = r#"
import os, time
from napreduce import Job
job = Job.text()
@job.map
def hold(line):
    if line.startswith("wait "):
        while not os.path.exists(line[5:]):
            with open(line[5:] + ".working", "a") as working:
                working.write(".")
            time.sleep(0.01)
    yield line, 1
@job.reduce(keys=str, values=int)
def count(line, counts):
    yield line, sum(counts)
job.main()
"#;

#[derive(Clone, Copy)]
enum Language {
    Rust,
    Python,
}

/// A cluster with one map slot on each worker.
struct LongRecords {
    /// Dropped before its folder.
    cluster: OwnCluster,
    folder: Folder,
    language: Language,
}

impl LongRecords {
    fn start(language: Language, workers: u32) -> LongRecords {
        let folder = Folder::new();
        folder.write("job.py", PYTHON);
        let variables = [("PYTHONPATH", module().display().to_string())];
        let cluster = OwnCluster::start_with(&folder, workers, "fifo", "", &variables);
        LongRecords {
            cluster,
            folder,
            language,
        }
    }

    /// Submits a job with one map, whose second record takes until the gate of its name is open.
    fn submit(&self, output: &str, gate: &str) -> String {
        let path = self.folder.path(gate);
        let input = format!("{gate}.in");
        self.folder
            .write(&input, format!("first\nwait {}\nlast\n", path.display()));
        match self.language {
            Language::Rust => {
                let arguments = [&input, "--job", "gate-in-map", "--output", output];
                self.cluster.submit(&self.folder, &arguments)
            }
            Language::Python => {
                let mut command = driver(&self.folder);
                command.args(["job.py", &input, "--output", output, "--reduces", "1"]);
                command.args(["--detach", "--cluster"]);
                let submitted = run(command.arg(self.cluster.directory())).succeeded();
                submitted.stdout.trim().to_owned()
            }
        }
    }

    fn wait_for_record(&self, gate: &str) {
        let working = self.working(gate);
        wait_until("work on the record", || self.working(gate) > working);
    }

    /// Returns how much was worked on the record of a gate.
    fn working(&self, gate: &str) -> u64 {
        let path = self.folder.path(&format!("{gate}.working"));
        fs::metadata(path).map_or(0, |file| file.len())
    }

    fn open(&self, gate: &str) {
        self.folder.write(gate, "");
    }

    fn command(&self, command: &str, job: &str) -> String {
        let task = format!("{job}_m_0000");
        let ended = run(self.cluster.nap().args(["task", command, &task])).succeeded();
        ended.stdout + &ended.stderr
    }

    /// Submits a job, suspends its map inside the record, and returns its process.
    fn suspend_in_record(&self) -> (String, Process) {
        let job = self.submit("out", "gate");
        self.wait_for_record("gate");
        self.command("suspend", &job);
        let mut stopped = self.cluster.tasks();
        stopped.retain(Process::is_stopped);
        let [process] = stopped[..] else {
            panic!("one task is stopped: {stopped:?}");
        };
        (job, process)
    }

    fn ends_as_undisturbed(&self, job: &str) {
        self.open("gate");
        self.cluster.wait(&[job]).succeeded();
        let again = self.submit("again", "gate");
        self.cluster.wait(&[&again]).succeeded();
        let outputs = [self.folder.path("out"), self.folder.path("again")];
        assert!(!parts(&outputs[0]).is_empty());
        assert_eq!(parts(&outputs[0]), parts(&outputs[1]));
    }
}

fn languages() -> Vec<Language> {
    if has_python() {
        vec![Language::Rust, Language::Python]
    } else {
        vec![Language::Rust]
    }
}

#[test]
fn checkpoint_of_suspended_record_waits_for_a_slot() {
    for language in languages() {
        let records = LongRecords::start(language, 1);
        let (job, process) = records.suspend_in_record();
        let other = records.submit("other", "other-gate");
        records.wait_for_record("other-gate");
        let worked = records.working("gate");
        let answer = records.command("checkpoint", &job);
        assert!(answer.contains("free slot"), "{answer}");
        records.wait_for_record("other-gate");
        assert!(process.is_stopped(), "its slot is used by another task");
        assert_eq!(records.working("gate"), worked);
        records.open("other-gate");
        records.cluster.wait(&[&other]).succeeded();
        records.wait_for_record("gate");
        records.ends_as_undisturbed(&job);
        // Python works on several records at once, here on all of them.
        if matches!(language, Language::Rust) {
            assert_eq!(counter(&records.folder.path("out"), "CHECKPOINTS"), 1);
        }
    }
}

#[test]
fn killed_suspended_record_starts_again() {
    for language in languages() {
        let records = LongRecords::start(language, 1);
        let (job, process) = records.suspend_in_record();
        let worked = records.working("gate");
        records.command("kill", &job);
        wait_until("the end of the attempt", || process.is_gone());
        wait_until("another attempt", || records.working("gate") > worked);
        records.ends_as_undisturbed(&job);
    }
}

#[test]
fn suspended_record_of_lost_worker_starts_again() {
    for language in languages() {
        let records = LongRecords::start(language, 2);
        let (job, process) = records.suspend_in_record();
        let worked = records.working("gate");
        let worker = process.parent().expect("its worker");
        assert!(worker.signal(Signal::KILL));
        wait_until("the end of the attempt", || process.is_gone());
        assert_eq!(records.working("gate"), worked, "it worked without a slot");
        records.command("resume", &job);
        records.ends_as_undisturbed(&job);
    }
}
