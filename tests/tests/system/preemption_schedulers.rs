//! Every preempting scheduler with every primitive on a real cluster: tasks give up their slots, and the
//! outputs equal those of undisturbed runs.

use std::fs;
use std::sync::OnceLock;

use napreduce_tests::{Folder, OwnCluster, counter, parts, program, run, wait_until};
use serde_json::Value;

/// Policies and their configurations. There are two workers with one slot of each kind; the small job comes
/// second and takes slots of the large one. Policies that preempt only reduces wait until the large job
/// reduces.
const POLICIES: [(&str, &str, Phase); 8] = [
    ("fair", FAIR, Phase::Map),
    ("capacity", CAPACITY, Phase::Map),
    (
        "natjam",
        "[scheduler.natjam]\npreempt-maps = true\npreemptor-interval = \"100ms\"\n",
        Phase::Map,
    ),
    (
        "natjam-deadline",
        "[scheduler.natjam-deadline]\npreempt-maps = true\ninterval = \"100ms\"\n",
        Phase::Map,
    ),
    (
        "fcs",
        "[scheduler.fcs]\nservice-min = \"0s\"\nheartbeat = \"100ms\"\n",
        Phase::Reduce,
    ),
    ("hfsp", HFSP, Phase::Map),
    ("composed", COMPOSED, Phase::Reduce),
    ("trigger", "", Phase::Map),
];

const FAIR: &str = "[scheduler.fair]\npreemption = true\nutilization-gate = 0\nkill-wait = \"1500ms\"\nrecheck-delay = \"1s\"\n\
                    update-interval = \"100ms\"\n\
                    [scheduler.fair.root.pools.production]\nmin-maps = 1\nmin-reduces = 1\n\
                    min-share-timeout = \"200ms\"\n";

const CAPACITY: &str = "[scheduler.capacity]\nmode = \"preemptive\"\n\
                        [scheduler.capacity.monitor]\ninterval = \"200ms\"\nmax-wait-before-kill = \"1500ms\"\ntotal-per-round = 1\ndead-zone = 0\n\
                        natural-termination-factor = 1\n\
                        [[scheduler.capacity.queue]]\nname = \"production\"\nguaranteed-percent = 50\n\
                        [[scheduler.capacity.queue]]\nname = \"research\"\nguaranteed-percent = 50\n";

const HFSP: &str = "[scheduler.hfsp]\nupdate-interval = \"200ms\"\n\
                    [scheduler.hfsp.known-times.large]\nmap = [\"60s\"]\nreduce = [\"60s\"]\n\
                    [scheduler.hfsp.known-times.small]\nmap = [\"1s\"]\nreduce = [\"1s\"]\n";

const COMPOSED: &str = "[scheduler.composed]\nmap = \"fifo\"\nreduce = \"natjam\"\n\
                        [scheduler.natjam]\npreemptor-interval = \"100ms\"\n";

/// When the small job is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// While the maps of the large one run.
    Map,
    /// While its reduces do.
    Reduce,
}

/// Arguments of a word count whose maps and reduces take some seconds, or almost no time.
fn arguments(name: &str, pause: &str) -> Vec<String> {
    let reduces = if name == "small" { "1" } else { "2" };
    let output = format!("out-{name}");
    let all = [
        name, "--job", "slow", "--output", &output, "--number", pause, "--name", name,
    ];
    let more = ["--reduces", reduces, "--conf", "slowstart=1"];
    all.into_iter().chain(more).map(str::to_owned).collect()
}

/// Submits a job; returns its ID. The small one is more urgent by every criterion.
fn submit(cluster: &OwnCluster, folder: &Folder, name: &str, pause: &str) -> String {
    let (queue, priority, deadline) = match name {
        "small" => ("production", "5", "20s"),
        _ => ("research", "0", "600s"),
    };
    let wanted = [
        "--queue",
        queue,
        "--priority",
        priority,
        "--deadline",
        deadline,
    ]
    .map(str::to_owned);
    let all: Vec<String> = arguments(name, pause).into_iter().chain(wanted).collect();
    cluster.submit(folder, &all.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Writes the inputs: two files for the large job and one for the small one, each for its own map.
fn inputs(folder: &Folder) {
    let lines = |count: u32| {
        let line = |index: u32| format!("word{:03} other{:03}\n", index % 350, index * 7 % 150);
        (0..count).map(line).collect::<String>()
    };
    folder.write("large/1", lines(500));
    folder.write("large/2", lines(500));
    folder.write("small/1", lines(30));
}

const PAUSE: &str = "6000";

/// Part files by name.
type Parts = Vec<(String, Vec<u8>)>;

/// The outputs of undisturbed runs of the large and the small job.
fn undisturbed() -> &'static [(&'static str, Parts); 2] {
    static OUTPUTS: OnceLock<[(&str, Parts); 2]> = OnceLock::new();
    OUTPUTS.get_or_init(|| {
        ["large", "small"].map(|name| {
            let folder = Folder::new();
            inputs(&folder);
            let mut command = program("testjobs");
            command
                .current_dir(folder.root())
                .args(arguments(name, "0"))
                .arg("--quiet");
            run(&mut command).succeeded();
            (name, parts(&folder.path(&format!("out-{name}"))))
        })
    })
}

/// Returns the number of running tasks of the job that can be preempted.
fn running(cluster: &OwnCluster, job: &str, phase: Phase) -> usize {
    let kind = if phase == Phase::Map { "_m_" } else { "_r_" };
    let tasks = cluster.json(&["task", "list", job]);
    let live = tasks
        .as_array()
        .expect("an array")
        .iter()
        .flat_map(|task| task["live"].as_array().expect("an array"));
    let runs = |live: &&Value| {
        live["state"] == "running"
            && live["attempt"]
                .as_str()
                .is_some_and(|attempt| attempt.contains(kind))
    };
    live.filter(runs).count()
}

/// Runs both jobs under a policy; returns the preemptions of the large one.
fn run_preempted(scheduler: &str, tables: &str, phase: Phase, primitive: &str) -> Vec<Value> {
    let what = format!("{scheduler} by {primitive}");
    let folder = Folder::new();
    inputs(&folder);
    let rule = format!(
        "[scheduler.trigger]\nrules = \"\"\"\nwhen submitted(small) do {primitive}(large/m0)\n\
         when finished(small) do {}(large/m0)\n\"\"\"\n",
        if primitive == "suspend" {
            "resume"
        } else {
            "launch"
        }
    );
    let tables = if scheduler == "trigger" {
        rule.as_str()
    } else {
        tables
    };
    let file = format!("[preemption]\nprimitive = \"{primitive}\"\n{tables}");
    let cluster = OwnCluster::start(&folder, 2, scheduler, &file);
    let large = submit(&cluster, &folder, "large", PAUSE);
    wait_until(&format!("{what}: two tasks run"), || {
        running(&cluster, &large, phase) == 2
    });
    let small = submit(&cluster, &folder, "small", "1000");
    cluster.wait(&[&large, &small]).succeeded();
    for (name, undisturbed) in undisturbed() {
        let out = folder.path(&format!("out-{name}"));
        assert!(
            parts(&out) == *undisturbed,
            "{what}: the output of {name} differs"
        );
        assert_eq!(
            counter(&out, "NUM_FAILED_MAPS") + counter(&out, "NUM_FAILED_REDUCES"),
            0,
            "{what}"
        );
    }
    let history = cluster.json(&["job", "history", &large]);
    let preemptions = history[0]["preemptions"]
        .as_array()
        .expect("an array")
        .clone();
    for known in &preemptions {
        assert_eq!(known["by"], scheduler, "{what}: {known}");
        assert!(
            known["reason"]
                .as_str()
                .is_some_and(|reason| !reason.is_empty()),
            "{what}: {known}"
        );
    }
    preemptions
}

/// Runs every policy with a primitive; at least one preemption must end like this.
fn check_every_policy(primitive: &str, end: &str) {
    for (scheduler, tables, phase) in POLICIES {
        let preemptions = run_preempted(scheduler, tables, phase, primitive);
        let ended = preemptions
            .iter()
            .filter(|known| known["end"] == end)
            .count();
        assert!(ended > 0, "{scheduler} by {primitive}: {preemptions:#?}");
        println!(
            "{scheduler} by {primitive}: {} requests, {ended} {end}",
            preemptions.len()
        );
    }
}

#[test]
fn every_policy_suspends_tasks() {
    check_every_policy("suspend", "suspended");
}

#[test]
fn every_policy_checkpoints_tasks() {
    check_every_policy("checkpoint", "checkpointed");
}

#[test]
fn every_policy_kills_tasks() {
    check_every_policy("kill", "killed");
}

#[test]
fn policy_with_wait_primitive_preempts_nothing() {
    let (scheduler, tables, phase) = POLICIES[2];
    let preemptions = run_preempted(scheduler, tables, phase, "wait");
    assert!(
        preemptions
            .iter()
            .all(|known| known["end"] == "finished" || known["end"] == "withdrawn"),
        "{preemptions:#?}"
    );
}

#[test]
fn auto_primitive_keeps_outputs_and_gives_reason() {
    for (scheduler, tables, phase) in [POLICIES[2], POLICIES[0]] {
        let preemptions = run_preempted(scheduler, tables, phase, "auto");
        let chosen = |known: &&Value| {
            let reason = known["reason"].as_str().unwrap_or_default();
            reason.contains("cheapest of ") || reason.contains("measures the cost")
        };
        assert!(
            preemptions.iter().any(|known| chosen(&known)),
            "{scheduler}: {preemptions:#?}"
        );
    }
}

/// Rules with every action, each for the tasks of one job.
const RULES: &str = r#"
[scheduler.trigger]
rules = """
when submitted(large) do hold(large/m2)
when started(large/m0) and started(large/m1) do suspend(large/m0), kill(large/m1)
when suspended(large/m0) do resume(large/m0)
when finished(large/m0) do launch(large/m1), release(large/m2)
when started(large/m2) do checkpoint(large/m2)
when finished(large/m1) do launch(large/m2)
when started(large/r0) do checkpoint(large/r0)
when started(large/r1) do suspend(large/r1)
when suspended(large/r1) do resume(large/r1)
when finished(large/r1) do launch(large/r0)
"""
"#;

#[test]
fn trigger_rules_apply_every_action() {
    let folder = Folder::new();
    inputs(&folder);
    let third = fs::read(folder.path("large/1")).expect("an input");
    folder.write("large/3", third);
    let cluster = OwnCluster::start(&folder, 2, "trigger", RULES);
    let id = submit(&cluster, &folder, "large", PAUSE);
    cluster.wait(&[&id]).succeeded();
    let alone = Folder::new();
    inputs(&alone);
    alone.write(
        "large/3",
        fs::read(folder.path("large/3")).expect("an input"),
    );
    let mut command = program("testjobs");
    command
        .current_dir(alone.root())
        .args(arguments("large", "0"))
        .arg("--quiet");
    run(&mut command).succeeded();
    assert!(
        parts(&folder.path("out-large")) == parts(&alone.path("out-large")),
        "the same output"
    );
    let history = cluster.json(&["job", "history", &id]);
    let done = |known: &Value| {
        let attempt = known["attempt"].as_str().expect("an id");
        let end = known["end"].as_str().unwrap_or("open");
        format!("{} {end}", attempt.trim_start_matches("job_0001_"))
    };
    let mut done: Vec<String> = history[0]["preemptions"]
        .as_array()
        .expect("an array")
        .iter()
        .map(done)
        .collect();
    done.sort();
    assert_eq!(
        done,
        [
            "m_0000.1 suspended",
            "m_0001.1 killed",
            "m_0002.1 checkpointed",
            "r_0000.1 checkpointed",
            "r_0001.1 suspended"
        ]
    );
    assert_eq!(history[0]["resumes"].as_array().expect("an array").len(), 2);
    let restored = |known: &Value| {
        known["attempt"]
            .as_str()
            .is_some_and(|attempt| attempt.ends_with(".2"))
    };
    let restores = history[0]["restores"].as_array().expect("an array");
    assert!(
        restores.len() == 2 && restores.iter().all(restored),
        "{restores:?}"
    );
}
