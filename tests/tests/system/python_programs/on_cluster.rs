//! A Python job on a cluster whose tasks an operator suspends, checkpoints and kills.

use std::process::Command;

use napreduce_tests::{Ended, Folder, OwnCluster, counter, parts, run, wait_until};

use super::{frames, has_python, module, with_program};

/// Slow until a file exists, so that a task can be preempted while it runs; few records fit in a batch.
const SLOW: &str = r#"
import os, time
from napreduce import Job, counter
job = Job.text()
def pause(who):
    if not os.path.exists(job.parameters["folder"] + "/go." + who):
        time.sleep(0.02)
@job.map
def slow(line):
    pause("m")
    counter("lines of Python").add()
    yield line[:8], line
@job.reduce(keys=str, values=str)
class Numbered:
    def __init__(self):
        self.number = 0
    def __call__(self, key, lines):
        pause("r")
        self.number += 1
        for line in lines:
            yield self.number, key, len(line)
    def __getstate__(self):
        return self.number
    def __setstate__(self, number):
        self.number = number
job.main()
"#;

/// A job on a cluster whose worker has the Python module.
struct OnCluster {
    /// Dropped before its folder.
    cluster: OwnCluster,
    folder: Folder,
    job: String,
}

impl OnCluster {
    fn start() -> OnCluster {
        let line = |index: u32| format!("{:08}{}\n", index * 7 % 3_000, "x".repeat(4_000));
        let folder = with_program(SLOW, (0..3_000).map(line).collect::<String>());
        let variables = [("PYTHONPATH", module().display().to_string())];
        let cluster = OwnCluster::start_with(&folder, 1, "fifo", "", &variables);
        let mut command = slow(&folder, "out");
        command
            .args(["--conf", "slowstart=1", "--detach", "--cluster"])
            .arg(cluster.directory());
        let job = run(&mut command).succeeded().stdout.trim().to_owned();
        OnCluster {
            cluster,
            folder,
            job,
        }
    }

    fn nap(&self, command: &str, who: &str) -> Ended {
        run(self
            .cluster
            .nap()
            .args(["task", command, &format!("{}_{who}_0000", self.job)]))
    }

    fn until(&self, who: &str, state: &str) {
        let wanted = format!("{}_{who}_0000", self.job);
        wait_until(&format!("{who} is {state}"), || {
            let tasks = self.cluster.json(&["task", "list", &self.job]);
            let found = tasks
                .as_array()
                .expect("an array")
                .iter()
                .find(|task| task["task"] == wanted.as_str());
            let mut live = found
                .and_then(|task| task["live"].as_array())
                .into_iter()
                .flatten();
            live.any(|attempt| attempt["state"] == state)
        });
    }
}

fn slow(folder: &Folder, output: &str) -> Command {
    let parameter = format!("folder={}", folder.root().display());
    frames(
        folder,
        output,
        &["--reduces", "1", "--parameter", &parameter],
    )
}

#[test]
fn preempted_python_tasks_write_same_output() {
    if !has_python() {
        return;
    }
    let on = OnCluster::start();
    for who in ["m", "r"] {
        on.until(who, "running");
        on.nap("checkpoint", who).succeeded();
        on.until(who, "running");
        on.nap("suspend", who).succeeded();
        on.until(who, "suspended");
        on.nap("resume", who).succeeded();
        on.until(who, "running");
        on.nap("kill", who).succeeded();
        on.folder.write(&format!("go.{who}"), "");
    }
    on.cluster.wait(&[&on.job]).succeeded();
    run(&mut slow(&on.folder, "undisturbed")).succeeded();
    let out = on.folder.path("out");
    let undisturbed = on.folder.path("undisturbed");
    assert!(parts(&out) == parts(&undisturbed), "another output");
    assert_eq!(counter(&out, "lines of Python"), 3_000);
    for (name, times) in [
        ("CHECKPOINTS", 2),
        ("SUSPENDS", 2),
        ("NUM_FAILED_MAPS", 0),
        ("NUM_FAILED_REDUCES", 0),
    ] {
        assert_eq!(counter(&out, name), times, "{name}");
    }
    assert!(counter(&out, "CHECKPOINT_RESTORES") >= 2);
}
