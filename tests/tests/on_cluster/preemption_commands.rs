//! `nap task` and `nap job` preempt running attempts, and the output stays the same.

use napreduce_tests::{
    COUNTERS_OF_RECORDS, Ended, Folder, cluster, counter, parts, program, run, wait_until,
};
use serde_json::Value;

fn nap(arguments: &[&str]) -> Ended {
    run(program("nap")
        .env_remove("NAPREDUCE_CLUSTER")
        .args(arguments))
}

fn json(arguments: &[&str]) -> Value {
    let said = nap(&[arguments, &["--format", "json"]].concat())
        .succeeded()
        .stdout;
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A job of four maps and two reduces of some seconds each, with small records and groups.
struct SlowJob {
    folder: Folder,
    id: String,
}

const PAUSE: &str = "8000";

impl SlowJob {
    fn start() -> SlowJob {
        let folder = Folder::new();
        let line = |index: u32| format!("word{:03} other{:03}\n", index % 450, index * 7 % 150);
        folder.write("in", (0..1800).map(line).collect::<String>());
        let directory = cluster()
            .expect("these tests have a cluster")
            .display()
            .to_string();
        let mut command = program("testjobs");
        command
            .env_remove("NAPREDUCE_CLUSTER")
            .current_dir(folder.root());
        command
            .args(arguments("out", PAUSE))
            .args(["--cluster", &directory, "--detach"]);
        let id = run(&mut command).succeeded().stdout.trim().to_owned();
        SlowJob { folder, id }
    }

    fn task(&self, name: &str) -> String {
        format!("{}_{name}", self.id)
    }

    /// Returns the listed state of a task.
    fn listed(&self, name: &str) -> Value {
        let tasks = json(&["task", "list", &self.id]);
        let wanted = self.task(name);
        let found = tasks
            .as_array()
            .expect("an array")
            .iter()
            .find(|task| task["task"] == wanted.as_str());
        found
            .unwrap_or_else(|| panic!("no {wanted} in {tasks}"))
            .clone()
    }

    /// Waits until an attempt at a task is in a state.
    fn until(&self, name: &str, state: &str) {
        wait_until(&format!("{name} becomes {state}"), || {
            let live = &self.listed(name)["live"];
            live.as_array()
                .expect("an array")
                .iter()
                .any(|live| live["state"] == state)
        });
    }

    fn history(&self) -> Value {
        json(&["job", "history", &self.id])[0].clone()
    }

    /// Waits for the job. Checks that output and record counters equal those of an undisturbed run.
    fn ends_as_undisturbed(&self) {
        nap(&["job", "wait", "--quiet", &self.id]).succeeded();
        let mut command = program("testjobs");
        command
            .env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR")
            .current_dir(self.folder.root());
        run(command.args(arguments("undisturbed", "0")).arg("--quiet")).succeeded();
        let out = self.folder.path("out");
        let undisturbed = self.folder.path("undisturbed");
        assert_eq!(parts(&out).len(), 2);
        assert!(
            parts(&out) == parts(&undisturbed),
            "{}: its output differs",
            self.id
        );
        for name in COUNTERS_OF_RECORDS {
            assert_eq!(counter(&out, name), counter(&undisturbed, name), "{name}");
        }
        assert!(
            !out.join("_temporary").exists(),
            "nothing is left of the checkpoints"
        );
    }
}

fn arguments(output: &str, pause: &str) -> Vec<String> {
    let all = [
        "in",
        "--job",
        "slow",
        "--output",
        output,
        "--number",
        pause,
        "--reduces",
        "2",
    ];
    let all = all
        .into_iter()
        .chain(["--split-size", "8100", "--conf", "slowstart=1"]);
    all.map(str::to_owned).collect()
}

#[test]
fn preempted_tasks_make_same_output() {
    let job = SlowJob::start();
    for name in ["m_0000", "m_0001", "m_0002"] {
        job.until(name, "running");
    }
    nap(&["task", "suspend", &job.task("m_0000")]).succeeded();
    let checkpoint = [
        "task",
        "checkpoint",
        &job.task("m_0001"),
        "--no-wait",
        "--reason",
        "to see it move",
    ];
    nap(&checkpoint).succeeded();
    nap(&["task", "kill", "--no-wait", &job.task("m_0002.1")]).succeeded();
    // The command returns after the suspend.
    let listed = job.listed("m_0000");
    assert_eq!(listed["state"], "suspended");
    assert_eq!(
        listed["reason"],
        "suspend by operator: requested by nap task suspend"
    );
    let why = nap(&["task", "explain", &job.task("m_0000")])
        .succeeded()
        .stdout;
    assert!(
        why.contains("is suspended") && why.contains("suspend by operator"),
        "{why}"
    );
    let job_says = nap(&["job", "explain", &job.id]).succeeded().stdout;
    let way_on = format!("resume it with: nap task resume {}", job.task("m_0000.1"));
    assert!(
        job_says.contains(&way_on) && why.contains(&way_on),
        "{job_says} {why}"
    );
    // It stays suspended until all others are done.
    wait_until("the other maps are done", || {
        json(&["job", "status", &job.id])[0]["map"]["done"] == 3
    });
    assert_eq!(job.listed("m_0000")["state"], "suspended");
    nap(&["task", "resume", &job.task("m_0000")]).succeeded();
    for name in ["r_0000", "r_0001"] {
        job.until(name, "running");
    }
    nap(&["task", "suspend", &job.task("r_0000")]).succeeded();
    nap(&["task", "checkpoint", &job.task("r_0001")]).succeeded();
    job.until("r_0000", "suspended");
    nap(&["task", "resume", &job.task("r_0000")]).succeeded();
    job.ends_as_undisturbed();
    let out = job.folder.path("out");
    for (name, times) in [
        ("SUSPENDS", 2),
        ("RESUMES", 2),
        ("CHECKPOINTS", 2),
        ("CHECKPOINT_RESTORES", 2),
        ("NUM_KILLED_MAPS", 1),
        ("NUM_FAILED_MAPS", 0),
    ] {
        assert_eq!(counter(&out, name), times, "{name}");
    }
    for name in [
        "SUSPENDED_MILLIS",
        "CHECKPOINT_BYTES",
        "WORK_SAVED_MILLIS",
        "WORK_LOST_MILLIS",
    ] {
        assert!(counter(&out, name) > 0, "{name}");
    }
    let history = job.history();
    let preemptions = history["preemptions"].as_array().expect("an array");
    assert_eq!(preemptions.len(), 5, "{preemptions:?}");
    for known in preemptions {
        assert_eq!(known["by"], "operator");
        assert!(
            known["worker_micros"].is_u64() && known["end"].is_string(),
            "{known}"
        );
        let times = ["requested_micros", "ordered_micros", "freed_micros"];
        let times = times.map(|name| {
            known[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {known}"))
        });
        assert!(times.is_sorted(), "{known}");
    }
    assert_eq!(history["resumes"].as_array().expect("an array").len(), 2);
    let restores = history["restores"].as_array().expect("an array");
    assert!(
        restores
            .iter()
            .all(|known| known["restored_micros"].is_u64()),
        "{restores:?}"
    );
}

#[test]
fn suspended_attempt_is_checkpointed_or_killed() {
    let job = SlowJob::start();
    for name in ["m_0000", "m_0001"] {
        job.until(name, "running");
        nap(&["task", "suspend", &job.task(name)]).succeeded();
        job.until(name, "suspended");
    }
    nap(&["task", "checkpoint", &job.task("m_0000")]).succeeded();
    nap(&["task", "kill", &job.task("m_0001")]).succeeded();
    job.ends_as_undisturbed();
    let ends: Vec<String> = job.history()["preemptions"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|known| known["end"].as_str().expect("an end").to_owned())
        .collect();
    assert_eq!(ends, ["suspended", "suspended", "checkpointed", "killed"]);
    assert_eq!(counter(&job.folder.path("out"), "CHECKPOINT_RESTORES"), 1);
}

#[test]
fn suspended_job_stops_and_resumes() {
    let job = SlowJob::start();
    job.until("m_0000", "running");
    nap(&["job", "suspend", &job.id, "--reason", "it is day"]).succeeded();
    // The command returns after the last attempt stopped.
    let tasks = json(&["task", "list", &job.id]);
    let live: Vec<&Value> = tasks
        .as_array()
        .expect("an array")
        .iter()
        .flat_map(|task| task["live"].as_array().expect("an array"))
        .collect();
    assert!(
        !live.is_empty() && live.iter().all(|live| live["state"] == "suspended"),
        "{tasks}"
    );
    let status = json(&["job", "status", &job.id]);
    assert_eq!(
        (&status[0]["map"]["running"], &status[0]["state"]),
        (&0.into(), &"suspended".into())
    );
    let listed = json(&["job", "list"]);
    let listed = listed
        .as_array()
        .expect("an array")
        .iter()
        .find(|one| one["job"] == job.id.as_str());
    assert_eq!(listed.expect("it is listed")["state"], "suspended");
    assert!(status[0]["map"]["suspended"].as_u64() > Some(0), "{status}");
    let why = nap(&["job", "explain", &job.id]).succeeded().stdout;
    assert!(
        why.contains("it is day") && why.contains(&format!("nap job resume {}", job.id)),
        "{why}"
    );
    nap(&["job", "suspend", &job.id]).failed(2, &["already suspended"]);
    nap(&["task", "resume", &job.task("m_0000")])
        .failed(2, &[&format!("{} is suspended; resume the job", job.id)]);
    nap(&["job", "resume", &job.id]).succeeded();
    job.ends_as_undisturbed();
}

#[test]
fn impossible_command_is_refused_by_name() {
    let job = SlowJob::start();
    job.until("m_0000", "running");
    let map = job.task("m_0000");
    let attempt = job.task("m_0000.1");
    nap(&["task", "resume", &map]).failed(
        2,
        &[&format!("cannot resume {attempt}: it is not suspended")],
    );
    nap(&["task", "suspend", &job.task("m_0077")]).failed(2, &[&format!("{} has no task", job.id)]);
    let reduce = job.task("r_0000");
    nap(&["task", "checkpoint", &reduce]).failed(
        2,
        &[&format!(
            "no attempt at {reduce} is live; see: nap task list"
        )],
    );
    nap(&["task", "suspend", &job.task("m_0000.9")]).failed(2, &["m_0000.9 is not live"]);
    nap(&["task", "suspend", "job_99999_m_0000"]).failed(2, &["there is no job_99999"]);
    nap(&["job", "resume", &job.id]).failed(
        2,
        &[&format!("cannot resume {}: it is not suspended", job.id)],
    );
    let reason = "x".repeat(2_000);
    nap(&["job", "suspend", &job.id, "--reason", &reason]).failed(2, &["limit 1000 characters"]);
    nap(&["task", "suspend", "all"]).failed(2, &["invalid task"]);
    nap(&["job", "kill", &job.id]).succeeded();
    nap(&["job", "wait", "--quiet", &job.id]).failed(1, &["killed"]);
    nap(&["job", "suspend", &job.id]).failed(2, &["has ended"]);
}

#[test]
fn killed_job_ends_suspended_attempts() {
    let job = SlowJob::start();
    job.until("m_0000", "running");
    nap(&["job", "suspend", &job.id]).succeeded();
    job.until("m_0000", "suspended");
    nap(&["job", "kill", &job.id]).succeeded();
    nap(&["job", "wait", "--quiet", &job.id]).failed(1, &["killed"]);
    assert!(!job.folder.has("out"));
}
