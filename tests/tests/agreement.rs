//! The same small workload on a cluster and in the simulator: under each policy the same decisions in the same order.
//!
//! Owns the workload and the policies. The simulated run comes first and says what ends when; on the cluster tasks end
//! when they are told to, in that order, so that only decisions are compared, never times.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_core::{
    Effect, Instead, KindPreemption, Order, PreemptionSettings, SchedulerConfiguration, SchedulerTables,
    Slots, Span, Time,
};
use napreduce_live::{ClusterDirectory, replay_journal};
use napreduce_sim::{JobPlan, MapTask, ReduceTask, Simulation, SimulationSettings, Workload};
use napreduce_tests::{Folder, program, run};
use serde::Deserialize;

/// How long a decision may take before the test gives up on it.
const DEADLINE: Duration = Duration::from_secs(60);

/// A job: name, queue, user, priority, deadline in seconds, submission and work of its maps and reduces in tenths of a
/// second. No two things end together.
type Line = (&'static str, &'static str, &'static str, i32, u64, u64, &'static [u64], &'static [u64]);

const JOBS: [Line; 4] = [
    ("a", "research", "ada", 0, 200, 0, &[100, 113, 41, 57], &[91]),
    ("b", "production", "bob", 2, 60, 32, &[63, 78], &[57]),
    ("c", "research", "eve", 0, 100, 52, &[34, 29, 88], &[66]),
    ("d", "production", "ada", 1, 90, 207, &[72], &[36]),
];

/// The policies with tables in which every one of them has something to do here. What cannot be saved on a cluster yet
/// is killed in both.
const POLICIES: [(&str, &str); 11] = [
    ("fifo", ""),
    ("fifo", "[scheduler.fifo]\nignore-priority = true"),
    ("fair", ""),
    ("fair", "[scheduler.fair.root.pools.production]\nweight = 3"),
    ("capacity", QUEUES),
    ("capacity", HARD_CAP),
    ("natjam", "[scheduler.natjam]\npreempt-maps = true"),
    ("natjam-deadline", "[scheduler.natjam-deadline]\npreempt-maps = true"),
    ("fcs", ""),
    ("hfsp", ""),
    ("trigger", RULES),
];

const QUEUES: &str = "[[scheduler.capacity.queue]]\nname = \"production\"\nguaranteed-percent = 50\n\
                      [[scheduler.capacity.queue]]\nname = \"research\"\nguaranteed-percent = 50\n";

const HARD_CAP: &str = "[scheduler.capacity]\nmode = \"hard-cap\"\n\
                        [[scheduler.capacity.queue]]\nname = \"production\"\nguaranteed-percent = 50\n\
                        [[scheduler.capacity.queue]]\nname = \"research\"\nguaranteed-percent = 50\n";

const RULES: &str = "[scheduler.trigger]\nrules = \"\"\"\nwhen submitted(b) do kill(a/m0)\n\
                     when finished(b) do launch(a)\n\"\"\"\n";

/// Those that preempt in this workload.
const PREEMPTING: [&str; 3] = ["natjam", "natjam-deadline", "trigger"];

/// What happens in the simulated run, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A job is handed in.
    Submit(usize),
    /// The engine orders this.
    Decide(String),
    /// A task ends.
    End(String),
}

/// Collects what is written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn preemption() -> PreemptionSettings {
    let cannot = KindPreemption { suspend: false, checkpoint: false, otherwise: Instead::Kill };
    PreemptionSettings { map: cannot, reduce: cannot, ..PreemptionSettings::default() }
}

fn simulated(configuration: &SchedulerConfiguration) -> Vec<Step> {
    let tenths = |tenths: &u64| Span::from_millis(tenths * 100);
    let plans = JOBS.iter().map(|(name, queue, user, priority, deadline, submit, maps, reduces)| {
        let mut plan = JobPlan::new(*name, Time(0) + tenths(submit));
        (plan.queue, plan.user, plan.priority) = ((*queue).into(), (*user).into(), *priority);
        plan.deadline = Some(Span::from_secs(*deadline));
        let map = |work| MapTask { work: tenths(work), bytes: 20, output_bytes: 0, preferred: Vec::new() };
        plan.maps = maps.iter().map(map).collect();
        let reduce = |work| ReduceTask { shuffle: Span(0), reduce: tenths(work), bytes: 0 };
        plan.reduces = reduces.iter().map(reduce).collect();
        plan
    });
    let mut settings = SimulationSettings::new(2, Slots { map: 1, reduce: 1 });
    settings.engine.preemption = preemption();
    let log = Written::default();
    let simulation =
        Simulation::new(configuration.build().expect("a policy"), settings, Workload::of(plans.collect()));
    simulation.with_log(Box::new(log.clone())).run().expect("an end");
    let text = String::from_utf8(log.0.lock().expect("one thread").clone()).expect("text");
    text.lines().filter_map(step).collect()
}

/// A line of the simulator's log, if it is about a submission, an order or an end.
fn step(line: &str) -> Option<Step> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [worker, order @ ("launch" | "kill"), attempt, ..] if worker.ends_with(':') => {
            Some(Step::Decide(format!("{order} {attempt}")))
        }
        [_, job, _, "submitted", ..] => {
            let number: usize = job.strip_prefix("job_")?.parse().ok()?;
            Some(Step::Submit(number - 1))
        }
        [task, "done", "by", _] => Some(Step::End(task.to_owned())),
        _ => None,
    }
}

/// A cluster of two workers with a slot of each kind; ends with the test.
struct Cluster {
    process: Child,
    directory: PathBuf,
}

impl Cluster {
    fn start(folder: &Folder, scheduler: &str, file: &str) -> Cluster {
        let directory = folder.path("cluster");
        // A cluster directory holds a secret.
        fs::DirBuilder::new().mode(0o700).create(&directory).expect("a directory");
        fs::write(directory.join("napreduce.toml"), file).expect("a configuration");
        let mut command = nap(&directory);
        command.args(["up", "--workers", "2", "--map-slots", "1", "--reduce-slots", "1", "--no-speculation"]);
        command.args(["--scheduler", scheduler]).stdout(Stdio::null());
        let log = fs::File::create(folder.path("up.log")).expect("a log");
        let process = command.stderr(log).spawn().expect("nap up");
        let cluster = Cluster { process, directory };
        let there = || run(nap(&cluster.directory).args(["worker", "list", "--wait", "2"])).status.success();
        wait_until("two workers", there);
        cluster
    }

    /// The orders so far that are decisions, as the simulator writes them.
    fn decided(&self) -> Vec<String> {
        let directory = ClusterDirectory::resolve(Some(self.directory.clone())).expect("a directory");
        let events = replay_journal(&directory).expect("a journal");
        let effects = events.iter().flat_map(|event| &event.effects);
        let orders = effects.filter_map(|effect| match effect {
            Effect::Send { order: Order::Launch { attempt, .. }, .. } => Some(format!("launch {attempt}")),
            Effect::Send { order: Order::Kill { attempt }, .. } => Some(format!("kill {attempt}")),
            _ => None,
        });
        orders.collect()
    }

    fn is_done(&self, task: &str) -> bool {
        let directory = ClusterDirectory::resolve(Some(self.directory.clone())).expect("a directory");
        let events = replay_journal(&directory).expect("a journal");
        events.iter().flat_map(|event| &event.effects).any(|effect| {
            matches!(effect, Effect::Record(napreduce_core::Record::TaskDone(attempt)) if attempt.task.to_string() == task)
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let process = rustix::process::Pid::from_child(&self.process);
        if rustix::process::kill_process(process, rustix::process::Signal::INT).is_ok() {
            let _ = self.process.wait();
        }
    }
}

fn nap(directory: &Path) -> Command {
    let mut command = program("nap");
    command.env_remove("NAPREDUCE_CLUSTER").env_remove("NAPREDUCE_DIR").arg("--dir").arg(directory);
    command
}

fn wait_until(what: &str, mut come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !come() {
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The gate of a task, whose path has the same length for all.
fn gate(folder: &Folder, task: &str) -> PathBuf {
    folder.path(&format!("gates/{task}"))
}

/// Hands in a job: a file of input for each map, which names its gate and that of the reduce.
fn submit(folder: &Folder, cluster: &Cluster, number: usize) {
    let (name, queue, _, priority, deadline, _, maps, reduces) = JOBS[number];
    let job = format!("job_{:04}", number + 1);
    for index in 0..maps.len() {
        let own = gate(folder, &format!("{job}_m_{index:04}"));
        let reduce = gate(folder, &format!("{job}_r_0000"));
        folder.write(&format!("{name}/{index:04}"), format!("{}\t{}\n", own.display(), reduce.display()));
    }
    let mut command = program("testjobs");
    command.env_remove("NAPREDUCE_DIR").current_dir(folder.root());
    command.args([name, "--job", "gated", "--output", &format!("out-{name}"), "--detach", "--name", name]);
    command.args(["--reduces", &reduces.len().to_string(), "--conf", "slowstart=1", "--queue", queue]);
    command.args(["--priority", &priority.to_string(), "--deadline", &format!("{deadline}s")]);
    let said = run(command.arg("--cluster").arg(&cluster.directory)).succeeded().stdout;
    assert_eq!(said.trim(), job);
}

/// Does on the cluster what happened in the simulated run, step by step.
fn follow(folder: &Folder, cluster: &Cluster, steps: &[Step], what: &str) {
    let mut expected: Vec<&str> = Vec::new();
    for step in steps {
        match step {
            Step::Submit(number) => submit(folder, cluster, *number),
            Step::Decide(decision) => {
                expected.push(decision);
                let mut decided = Vec::new();
                let began = Instant::now();
                while decided.len() < expected.len() {
                    decided = cluster.decided();
                    assert!(
                        decided.iter().zip(&expected).all(|(one, other)| one == other),
                        "{what}: {decided:?}, not {expected:?}"
                    );
                    assert!(began.elapsed() < DEADLINE, "{what}: {decided:?} does not become {expected:?}");
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            Step::End(task) => {
                fs::write(gate(folder, task), "").expect("an open gate");
                wait_until(&format!("{what}: the end of {task}"), || cluster.is_done(task));
            }
        }
    }
    assert_eq!(cluster.decided(), expected, "{what}: nothing else was decided");
}

#[derive(Deserialize)]
struct File {
    scheduler: SchedulerTables,
}

#[test]
fn a_cluster_decides_as_the_simulator_under_every_policy() {
    for (scheduler, tables) in POLICIES {
        let file = if tables.is_empty() { "[scheduler]\n" } else { tables };
        let read: File = toml::from_str(file).unwrap_or_else(|error| panic!("{scheduler}: {error}"));
        let name = scheduler.parse().expect("a known name");
        let steps = simulated(&SchedulerConfiguration { scheduler: name, tables: read.scheduler });
        assert!(steps.len() > 25, "{scheduler}: {steps:?}");
        let folder = Folder::new();
        fs::create_dir(folder.path("gates")).expect("a folder");
        let cluster = Cluster::start(&folder, scheduler, file);
        follow(&folder, &cluster, &steps, &format!("{scheduler} with {file}"));
        let kills = steps
            .iter()
            .filter(|step| matches!(step, Step::Decide(text) if text.starts_with("kill")))
            .count();
        assert_eq!(kills > 0, PREEMPTING.contains(&scheduler), "{scheduler}: {kills} kills");
        println!("{scheduler}: {} steps, {kills} kills", steps.len());
    }
}
