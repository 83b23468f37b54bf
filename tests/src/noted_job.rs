//! A job on another engine whose guests save checkpoints. Each task waits for a file, its gate. At the end
//! the output is compared with an undisturbed run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::engine_runs::{assert_same, without_cluster};
use crate::folder::Folder;
use crate::own_cluster::wait_until;
use crate::programs::run;

/// Lines of each map, and groups of the reduce: enough for more than a minute of work.
const LINES: usize = 6_000;
/// The number of records or groups to wait for.
const SOME: usize = 30;

/// The job `gated-noted` of the program `testjobs`: two maps and a reduce. The first map and the reduce wait
/// for their gates.
pub struct NotedJob {
    /// The folder of all files of the job.
    pub folder: Folder,
    /// The program that submits it.
    pub program: Child,
}

impl NotedJob {
    /// Lines of each map; the reduce has twice as many groups.
    pub const LINES: usize = LINES;

    /// Submits the job to an engine with these arguments. Guests save their work at this interval.
    pub fn start(
        interval: &str,
        engine: &[&str],
        set_up: impl FnOnce(&mut Command, &Folder),
    ) -> NotedJob {
        let folder = Folder::new();
        for name in ["gates", "saved/napreduce-checkpoints-of-another"] {
            fs::create_dir_all(folder.path(name)).expect("a folder");
        }
        folder.write("saved/napreduce-checkpoints-of-another/kept", "kept");
        for map in ["m_0000", "m_0001"] {
            let own = folder.path(&format!("gates/{map}"));
            let reduce = folder.path("gates/r_0000");
            let own = own.display();
            let reduce = reduce.display();
            let line = |line: usize| match line + 1 {
                LINES => format!("{own}\t{reduce}\t{map} last\n"),
                number => format!("{own}\t{reduce}\t{map} {number}\n"),
            };
            folder.write(
                &format!("in/{map}"),
                (0..LINES).map(line).collect::<String>(),
            );
        }
        folder.write("gates/m_0001", "");
        let mut command = NotedJob::command(&folder, "out");
        command
            .args(["--checkpoints", "saved", "--checkpoint-interval", interval])
            .args(engine);
        set_up(&mut command, &folder);
        let program = command
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it can be started");
        NotedJob { folder, program }
    }

    fn command(folder: &Folder, output: &str) -> Command {
        let mut command = without_cluster("testjobs", folder);
        command.args([
            "in",
            "--job",
            "gated-noted",
            "--output",
            output,
            "--reduces",
            "1",
            "--quiet",
        ]);
        command.args(["--conf", "combine-files=false"]);
        command
    }

    /// Returns the processes that finished the records or groups of a task, in order, including repeated
    /// ones.
    pub fn done(&self, task: &str) -> Vec<i32> {
        let text =
            fs::read_to_string(self.folder.path(&format!("gates/{task}.done"))).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Waits until a task has finished some more records.
    pub fn wait_for_some(&self, task: &str) {
        let before = self.done(task).len();
        wait_until(&format!("{task} does some"), || {
            self.done(task).len() >= before + SOME
        });
    }

    /// Returns the process of the guest that works on a task.
    pub fn guest(&self, task: &str) -> i32 {
        *self.done(task).last().expect("it has done some")
    }

    /// Sends a signal to that guest; returns its process.
    pub fn end(&self, task: &str, signal: Signal) -> i32 {
        let process = self.guest(task);
        kill_process(Pid::from_raw(process).expect("a process"), signal).expect("it runs");
        process
    }

    /// Waits until a different guest works on a task.
    pub fn wait_for_another(&self, task: &str, than: i32) {
        wait_until(&format!("another one goes on with {task}"), || {
            self.done(task)
                .last()
                .is_some_and(|process| *process != than)
        });
    }

    /// Opens the gate of a task.
    pub fn open(&self, task: &str) {
        self.folder.write(&format!("gates/{task}"), "");
    }

    /// Returns the checkpoint directories of a task, one for each state of its inputs.
    pub fn states(&self, task: &str) -> Vec<PathBuf> {
        let submissions = entries(&self.folder.path("saved"));
        let tasks = submissions
            .into_iter()
            .map(|submission| submission.join(format!("job_0001_{task}")));
        tasks.flat_map(|task| entries(&task)).collect()
    }

    /// Returns the files of this name in all checkpoints of a task.
    pub fn saved(&self, task: &str, name: &str) -> Vec<PathBuf> {
        let checkpoints = self
            .states(task)
            .into_iter()
            .flat_map(|state| entries(&state));
        checkpoints
            .map(|checkpoint| checkpoint.join(name))
            .filter(|path| path.exists())
            .collect()
    }

    /// Waits until a checkpoint of a task is complete.
    pub fn wait_for_checkpoint(&self, task: &str) {
        wait_until(&format!("{task} is saved"), || {
            !self.saved(task, "checkpoint").is_empty()
        });
    }

    /// Waits until the only checkpoint of a task is complete; returns its file of this name.
    pub fn wait_for_saved(&self, task: &str, name: &str) -> PathBuf {
        self.wait_for_checkpoint(task);
        self.saved(task, name).pop().expect("it is there")
    }

    /// Opens all gates. Checks that the output equals that of an embedded run and that no checkpoint is left.
    /// Returns how many records of the first map and groups of the reduce were done, including repeated ones.
    pub fn ends_as_undisturbed(&mut self) -> (usize, usize) {
        ["m_0000", "r_0000"]
            .into_iter()
            .for_each(|task| self.open(task));
        let status = self.program.wait().expect("its end");
        assert!(status.success(), "{status}");
        let done = (self.done("m_0000").len(), self.done("r_0000").len());
        run(&mut NotedJob::command(&self.folder, "own")).succeeded();
        assert_same(&self.folder.path("own"), &self.folder.path("out"));
        self.assert_only_others_are_left();
        done
    }

    /// Panics unless the checkpoint directory contains only the files of another job.
    pub fn assert_only_others_are_left(&self) {
        let others = self.folder.path("saved/napreduce-checkpoints-of-another");
        assert_eq!(entries(&self.folder.path("saved")), [others.as_path()]);
        assert!(others.join("kept").exists());
    }
}

/// Ends the program, and with it the engine and its guests, even if the test has failed.
impl Drop for NotedJob {
    fn drop(&mut self) {
        // Fails if it has ended, as it should.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}
