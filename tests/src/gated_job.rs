//! A job on the cluster of one test. Each task waits for a file, its gate. At the end the output is compared
//! with an undisturbed run.

use std::path::PathBuf;

use serde_json::Value;

use crate::folder::Folder;
use crate::output::{counter, parts};
use crate::own_cluster::{OwnCluster, wait_until};
use crate::programs::{program, run};

/// Lines of each map, and groups of each reduce: enough for a minute of work.
const LINES: usize = 6000;

/// Counters of records, which do not depend on preemptions.
pub const COUNTERS_OF_RECORDS: [&str; 6] = [
    "MAP_INPUT_RECORDS",
    "MAP_OUTPUT_RECORDS",
    "REDUCE_INPUT_RECORDS",
    "REDUCE_INPUT_GROUPS",
    "REDUCE_OUTPUT_RECORDS",
    "BYTES_WRITTEN",
];

/// A job `gated...` of the program `testjobs`, with some maps and one reduce.
pub struct GatedJob<'test> {
    folder: &'test Folder,
    cluster: &'test OwnCluster,
    definition: &'static str,
    name: &'static str,
    maps: usize,
    id: String,
}

impl<'test> GatedJob<'test> {
    /// Submits the job, which must get this number on its cluster. The gates of its tasks are closed.
    pub fn submit(
        folder: &'test Folder,
        cluster: &'test OwnCluster,
        definition: &'static str,
        name: &'static str,
        number: usize,
        maps: usize,
    ) -> GatedJob<'test> {
        let id = format!("job_{number:04}");
        let job = GatedJob {
            folder,
            cluster,
            definition,
            name,
            maps,
            id,
        };
        std::fs::create_dir_all(folder.path("gates")).expect("a folder");
        for index in 0..maps {
            let own = job.gate(&format!("m_{index:04}"));
            let reduce = job.gate("r_0000");
            let own = own.display();
            let reduce = reduce.display();
            let line = |line: usize| match line + 1 {
                LINES => format!("{own}\t{reduce}\tlast\n"),
                number => format!("{own}\t{reduce}\t{number}\n"),
            };
            folder.write(
                &format!("{name}/{index:04}"),
                (0..LINES).map(line).collect::<String>(),
            );
        }
        let arguments = job.arguments(&format!("out-{name}"));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        assert_eq!(cluster.submit(folder, &arguments), job.id);
        job
    }

    fn arguments(&self, output: &str) -> Vec<String> {
        let all = [
            self.name,
            "--job",
            self.definition,
            "--output",
            output,
            "--name",
            self.name,
        ];
        all.into_iter()
            .chain(["--reduces", "1", "--conf", "slowstart=1"])
            .map(str::to_owned)
            .collect()
    }

    /// Returns the job ID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the ID of a task, such as `m_0000`, or of an attempt, such as `m_0000.1`.
    pub fn task(&self, name: &str) -> String {
        format!("{}_{name}", self.id)
    }

    /// Returns the path of a task's gate.
    pub fn gate(&self, task: &str) -> PathBuf {
        self.folder.path(&format!("gates/{}_{task}", self.id))
    }

    /// Opens the gate of a task.
    pub fn open(&self, task: &str) {
        std::fs::write(self.gate(task), "").expect("an open gate");
    }

    /// Returns the output directory.
    pub fn output(&self) -> PathBuf {
        self.folder.path(&format!("out-{}", self.name))
    }

    /// Returns the listed live attempt at a task, or null.
    pub fn live(&self, task: &str) -> Value {
        let tasks = self.cluster.json(&["task", "list", &self.id]);
        let wanted = self.task(task);
        let found = tasks
            .as_array()
            .expect("an array")
            .iter()
            .find(|task| task["task"] == wanted.as_str());
        found.unwrap_or_else(|| panic!("no {wanted} in {tasks}"))["live"][0].clone()
    }

    /// Waits until an attempt, such as `m_0000.2`, is in a state; returns the listed attempt.
    pub fn until(&self, attempt: &str, state: &str) -> Value {
        let (task, _) = attempt.split_once('.').unwrap_or((attempt, ""));
        let mut live = Value::Null;
        wait_until(&format!("{attempt} becomes {state}"), || {
            live = self.live(task);
            live["attempt"] == self.task(attempt).as_str() && live["state"] == state
        });
        live
    }

    /// Runs `nap task COMMAND` on a task.
    pub fn command(&self, command: &str, task: &str) {
        run(self
            .cluster
            .nap()
            .args(["task", command, &self.task(task), "--no-wait"]))
        .succeeded();
    }

    /// Returns the job's history.
    pub fn history(&self) -> Value {
        self.cluster.json(&["job", "history", &self.id])[0].clone()
    }

    /// Opens every gate and waits for the job. Checks that output and record counters equal those of an
    /// undisturbed run.
    pub fn ends_as_undisturbed(&self) {
        (0..self.maps).for_each(|index| self.open(&format!("m_{index:04}")));
        self.open("r_0000");
        self.cluster.wait(&[&self.id]).succeeded();
        let alone = format!("undisturbed-{}", self.name);
        let mut command = program("testjobs");
        command
            .env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR")
            .current_dir(self.folder.root());
        run(command.args(self.arguments(&alone)).arg("--quiet")).succeeded();
        let out = self.output();
        let alone = self.folder.path(&alone);
        assert!(
            parts(&out) == parts(&alone),
            "{}: its output differs",
            self.id
        );
        for name in COUNTERS_OF_RECORDS {
            assert_eq!(counter(&out, name), counter(&alone, name), "{name}");
        }
        for kind in ["NUM_FAILED_MAPS", "NUM_FAILED_REDUCES"] {
            assert_eq!(counter(&out, kind), 0, "{kind}");
        }
        assert!(
            !out.join("_temporary").exists(),
            "nothing is left of its checkpoints"
        );
    }
}
