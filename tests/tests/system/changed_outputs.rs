//! A map that is not deterministic and runs again after its worker was killed: the output of the job holds each record
//! once, or the job fails.

use std::collections::BTreeSet;

use napreduce_tests::{Folder, OwnCluster, joined, parts, sorted_lines, wait_until};
use rustix::process::Signal;

const RECORDS: usize = 20_000;

/// A job of four maps whose tasks wait for their gates.
struct ScatteredJob<'test> {
    folder: &'test Folder,
    cluster: OwnCluster,
    id: String,
}

impl ScatteredJob<'_> {
    /// A job whose maps are done, while both reduces wait for their gates.
    fn submit(folder: &Folder) -> ScatteredJob<'_> {
        let job = ScatteredJob::submit_job(folder, "scattered", &["--reduces", "2"]);
        for reduce in ["r_0000", "r_0001"] {
            wait_until("both reduces run", || job.attempt(reduce).ends_with(".1"));
        }
        job
    }

    fn submit_job<'test>(
        folder: &'test Folder,
        name: &str,
        reduces: &[&str],
    ) -> ScatteredJob<'test> {
        let gates = folder.path("gates");
        std::fs::create_dir(&gates).expect("a folder");
        let line = |number: usize| format!("{}\t{number}\n", gates.display());
        let text: String = (0..RECORDS).map(line).collect();
        let split = text.len().div_ceil(4).to_string();
        folder.write("in", text);
        let cluster = OwnCluster::start(folder, 2, "fifo", "");
        let arguments = [
            "in",
            "--job",
            name,
            "--output",
            "out",
            "--split-size",
            &split,
        ];
        let id = cluster.submit(folder, &[&arguments[..], reduces].concat());
        ScatteredJob {
            folder,
            cluster,
            id,
        }
    }

    /// Returns the live attempt of a task, if there is one.
    fn attempt(&self, task: &str) -> String {
        let tasks = self.cluster.json(&["task", "list", &self.id]);
        let wanted = format!("{}_{task}", self.id);
        let mut tasks = tasks.as_array().expect("a list").iter();
        let found = tasks
            .find(|task| task["task"] == wanted.as_str())
            .expect("a task of the job");
        let live = &found["live"][0];
        if live["state"] != "running" {
            return String::new();
        }
        live["attempt"].as_str().unwrap_or_default().to_owned()
    }

    fn open_gate(&self, task: &str) {
        self.folder.write(&format!("gates/{task}"), "");
    }

    fn kill_worker(&self) {
        assert!(self.cluster.workers()[0].signal(Signal::KILL));
    }
}

#[test]
fn changed_map_output_after_finished_reduce_fails_job() {
    let folder = Folder::new();
    let job = ScatteredJob::submit(&folder);
    job.open_gate("r_0000");
    wait_until("a reduce is done", || job.attempt("r_0000").is_empty());
    job.kill_worker();
    job.cluster.wait(&[&job.id]).failed(
        1,
        &["_m_", "is not deterministic", "_r_0000 has used", "HashMap"],
    );
    assert!(!folder.path("out").join("_SUCCESS").exists());
}

#[test]
fn changed_map_output_restarts_running_reduces() {
    let folder = Folder::new();
    let job = ScatteredJob::submit(&folder);
    job.kill_worker();
    for reduce in ["r_0000", "r_0001"] {
        wait_until("it starts again", || {
            let attempt = job.attempt(reduce);
            !attempt.is_empty() && !attempt.ends_with(".1")
        });
    }
    job.open_gate("r_0000");
    job.open_gate("r_0001");
    job.cluster.wait(&[&job.id]).succeeded();
    let mut numbers: Vec<String> = (0..RECORDS).map(|number| format!("{number}\n")).collect();
    numbers.sort();
    assert!(
        sorted_lines(&joined(&folder.path("out"))) == numbers.concat().into_bytes(),
        "records are lost or doubled"
    );
}

#[test]
fn part_of_map_only_job_is_of_one_attempt() {
    let folder = Folder::new();
    let job = ScatteredJob::submit_job(&folder, "scattered-lines", &[]);
    for map in ["m_0000", "m_0001"] {
        wait_until("both slots are used", || !job.attempt(map).is_empty());
        job.open_gate(map);
    }
    for map in ["m_0002", "m_0003"] {
        wait_until("two maps are done", || !job.attempt(map).is_empty());
    }
    job.kill_worker();
    wait_until("a map runs again", || {
        job.attempt("m_0002").ends_with(".2") || job.attempt("m_0003").ends_with(".2")
    });
    job.open_gate("m_0002");
    job.open_gate("m_0003");
    job.cluster.wait(&[&job.id]).succeeded();
    let mut numbers = BTreeSet::new();
    let mut processes = BTreeSet::new();
    for (_, part) in parts(&folder.path("out")) {
        let text = String::from_utf8(part).expect("text");
        let mut of_part = BTreeSet::new();
        for line in text.lines() {
            let (number, process) = line.split_once('\t').expect("two fields");
            assert!(numbers.insert(number.to_owned()), "{number} is doubled");
            of_part.insert(process.to_owned());
        }
        assert_eq!(of_part.len(), 1, "a part is of one attempt");
        processes.extend(of_part);
    }
    assert_eq!(numbers.len(), RECORDS, "records are lost");
    assert_eq!(processes.len(), 4);
}
