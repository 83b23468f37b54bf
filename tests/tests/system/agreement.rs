//! Runs the same small workload on a cluster and in the simulator. Under each policy, both must make the same
//! decisions in the same order.
//!
//! The simulated run comes first and determines the order in which tasks end. On the cluster, tasks wait for
//! gates, which the test opens in that order, so that only decisions are compared, never times. Fair decides by
//! received slot time, so its steps are also as far apart as in the simulated run.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_engine::{Effect, Event, Order, PreemptionSettings, Record, Report, Slots, Span, Time};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerTables};
use napreduce_sim::{SimulatedJob, SimulatedMap, SimulatedReduce, Simulation, SimulationSettings, Workload};
use napreduce_tests::{Folder, OwnCluster, joined, wait_until};
use serde::Deserialize;

/// Deadline for a decision.
const DEADLINE: Duration = Duration::from_secs(60);

/// A job: name, queue, user, priority, deadline in seconds, submission time, and work of its maps and reduces
/// in tenths of a second. No two events coincide, and no job reclaims two slots at once, since the order in
/// which two tasks are saved and resumed on a cluster depends on timing.
type Line = (&'static str, &'static str, &'static str, i32, u64, u64, &'static [u64], &'static [u64]);

const JOBS: [Line; 4] = [
    ("a", "research", "ada", 0, 200, 0, &[100, 113, 41, 57], &[91]),
    ("b", "production", "bob", 2, 60, 32, &[64], &[57]),
    ("c", "research", "eve", 0, 100, 52, &[34, 29, 88], &[66]),
    ("d", "production", "ada", 1, 90, 207, &[72], &[36]),
];

/// The policies, each with a configuration that affects these jobs, and the kinds of preemption to expect.
/// The choice between two attempts must not depend on their progress, which differs between cluster and
/// simulator.
const POLICIES: [(&str, &str, &[&str]); 14] = [
    ("fifo", "", &[]),
    ("fifo", "[scheduler.fifo]\nignore-priority = true", &[]),
    ("fair", "", &[]),
    ("fair", "[scheduler.fair.root.pools.production]\nweight = 3", &[]),
    ("capacity", QUEUES, &[]),
    ("capacity", HARD_CAP, &[]),
    ("natjam", NATJAM, &["checkpoint"]),
    ("natjam", NATJAM_SUSPENDS, &["suspend"]),
    ("natjam", NATJAM_KILLS, &["kill"]),
    ("natjam-deadline", NATJAM_DEADLINE, &["checkpoint"]),
    ("natjam-deadline", NATJAM_DEADLINE_SUSPENDS, &["suspend"]),
    ("fcs", "", &[]),
    ("hfsp", "", &[]),
    ("trigger", RULES, &["checkpoint", "suspend"]),
];

const NATJAM: &str = "[scheduler.natjam]\npreempt-maps = true\ntask-eviction = \"youngest\"\n";

const NATJAM_SUSPENDS: &str = "[preemption]\nprimitive = \"suspend\"\n\
                               [scheduler.natjam]\npreempt-maps = true\ntask-eviction = \"youngest\"\n";

const NATJAM_KILLS: &str = "[preemption]\nprimitive = \"kill\"\n\
                            [scheduler.natjam]\npreempt-maps = true\ntask-eviction = \"youngest\"\n";

const NATJAM_DEADLINE: &str =
    "[scheduler.natjam-deadline]\npreempt-maps = true\ntask-eviction = \"youngest\"\n";

const NATJAM_DEADLINE_SUSPENDS: &str = "[preemption]\nprimitive = \"suspend\"\n\
                                        [scheduler.natjam-deadline]\npreempt-maps = true\n\
                                        task-eviction = \"youngest\"\n";

const QUEUES: &str = "[[scheduler.capacity.queue]]\nname = \"production\"\nguaranteed-percent = 50\n\
                      [[scheduler.capacity.queue]]\nname = \"research\"\nguaranteed-percent = 50\n";

const HARD_CAP: &str = "[scheduler.capacity]\nmode = \"hard-cap\"\n\
                        [[scheduler.capacity.queue]]\nname = \"production\"\nguaranteed-percent = 50\n\
                        [[scheduler.capacity.queue]]\nname = \"research\"\nguaranteed-percent = 50\n";

const RULES: &str = "[scheduler.trigger]\nrules = \"\"\"\nwhen submitted(b) do suspend(a/m0)\n\
                     when submitted(c) do checkpoint(a/m1)\n\
                     when finished(b) do resume(a/m0)\n\
                     when finished(c) do launch(a)\n\"\"\"\n";

/// A step of the simulated run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A job is submitted.
    Submit(usize),
    /// The engine sends an order.
    Decide(String),
    /// A task ends.
    End(String),
}

/// A writer into memory.
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

/// Returns the steps of the simulated run and their times.
fn simulated(
    configuration: &SchedulerConfiguration,
    preemption: PreemptionSettings,
) -> Vec<(Duration, Step)> {
    let tenths = |tenths: &u64| Span::from_millis(tenths * 100);
    let plans = JOBS.iter().map(|(name, queue, user, priority, deadline, submit, maps, reduces)| {
        let mut plan = SimulatedJob::new(*name, Time(0) + tenths(submit));
        (plan.queue, plan.user, plan.priority) = ((*queue).into(), (*user).into(), *priority);
        plan.deadline = Some(Span::from_secs(*deadline));
        let map =
            |work| SimulatedMap { work: tenths(work), bytes: 20, output_bytes: 0, preferred: Vec::new() };
        plan.maps = maps.iter().map(map).collect();
        let reduce = |work| SimulatedReduce { shuffle: Span(0), reduce: tenths(work), bytes: 0 };
        plan.reduces = reduces.iter().map(reduce).collect();
        plan
    });
    let mut settings = SimulationSettings::new(2, Slots { map: 1, reduce: 1 });
    settings.engine.preemption = preemption;
    let log = Written::default();
    let simulation =
        Simulation::new(configuration.build().expect("a policy"), settings, Workload::of(plans.collect()));
    simulation.with_log(Box::new(log.clone())).run().expect("an end");
    let text = String::from_utf8(log.0.lock().expect("one thread").clone()).expect("text");
    let mut now = Duration::ZERO;
    let mut steps = Vec::new();
    for line in text.lines() {
        // Effects are indented below their event, which starts with its time.
        if !line.starts_with(' ') {
            let seconds = line.split_once("s ").and_then(|(seconds, _)| seconds.parse().ok());
            now = Duration::from_secs_f64(seconds.expect("an event starts with its time"));
        }
        steps.extend(step(line).map(|step| (now, step)));
    }
    steps
}

/// Parses a line of the simulator's log; `None` if it is not about a submission, an order or an end.
fn step(line: &str) -> Option<Step> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [worker, "restore", attempt, "from", of] if worker.ends_with(':') => {
            Some(Step::Decide(format!("restore {attempt} from {of}")))
        }
        [worker, order @ ("launch" | "kill" | "suspend" | "resume" | "checkpoint"), attempt, ..]
            if worker.ends_with(':') =>
        {
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

/// Returns the decisions of a cluster so far, in the format of the simulator.
fn decided(cluster: &OwnCluster) -> Vec<String> {
    let directory = ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    let effects = batches.iter().flat_map(|batch| &batch.effects);
    let orders = effects.filter_map(|effect| match effect {
        Effect::Send { order, .. } => Some(order),
        _ => None,
    });
    let decision = |order: &Order| match order {
        Order::Commit { .. } | Order::MoreInputs { .. } => None,
        order => Some(order.to_string()),
    };
    orders.filter_map(decision).collect()
}

fn has_begun(cluster: &OwnCluster, id: &str) -> bool {
    let directory = ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    batches.iter().flat_map(|batch| &batch.events).any(
        |one| matches!(one, Event::Reported { attempt, report: Report::Started, .. } if attempt.to_string() == id),
    )
}

fn is_done(cluster: &OwnCluster, task: &str) -> bool {
    let directory = ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    batches.iter().flat_map(|batch| &batch.effects).any(
        |effect| matches!(effect, Effect::Record(Record::TaskDone(attempt)) if attempt.task.to_string() == task),
    )
}

/// Returns the gate of a task; all gates have paths of the same length.
fn gate(folder: &Folder, task: &str) -> PathBuf {
    folder.path(&format!("gates/{task}"))
}

/// Records of each map, and groups of each reduce: enough work to outlast any decision.
const LINES: usize = 4000;

/// Submits a job: one input file per map, which names the gates of the map and the reduce.
fn submit(folder: &Folder, cluster: &OwnCluster, number: usize) {
    let (name, queue, _, priority, deadline, _, maps, reduces) = JOBS[number];
    let job = format!("job_{:04}", number + 1);
    for index in 0..maps.len() {
        let own = gate(folder, &format!("{job}_m_{index:04}"));
        let reduce = gate(folder, &format!("{job}_r_0000"));
        let (own, reduce) = (own.display(), reduce.display());
        let line = |line: usize| match line + 1 {
            LINES => format!("{own}\t{reduce}\tlast\n"),
            number => format!("{own}\t{reduce}\t{number}\n"),
        };
        folder.write(&format!("{name}/{index:04}"), (0..LINES).map(line).collect::<String>());
    }
    let (priority, deadline, reduces) =
        (priority.to_string(), format!("{deadline}s"), reduces.len().to_string());
    let output = format!("out-{name}");
    let mut arguments =
        vec![name, "--job", "gated", "--output", &output, "--name", name, "--reduces", &reduces];
    arguments.extend(["--conf", "slowstart=1", "--queue", queue]);
    arguments.extend(["--priority", &priority, "--deadline", &deadline]);
    assert_eq!(cluster.submit(folder, &arguments), job);
}

/// Checks that each line was counted once, although the tasks were preempted.
fn check_output(folder: &Folder, number: usize, what: &str) {
    let (name, _, _, _, _, _, maps, _) = JOBS[number];
    let text = String::from_utf8(joined(&folder.path(&format!("out-{name}")))).expect("text");
    assert_eq!(text.lines().count(), LINES, "{what}: groups of {name}");
    let ends = format!("\t{}", maps.len());
    assert!(text.lines().all(|line| line.ends_with(&ends)), "{what}: a record of {name} is lost or repeated");
}

/// Repeats the simulated run on the cluster, step by step. If `paced`, steps are at least as far apart as in the
/// simulated run. A slow step delays those after it and takes no time from them: Fair decides the same as long
/// as no step is more than seven seconds late.
fn follow(folder: &Folder, cluster: &OwnCluster, steps: &[(Duration, Step)], paced: bool, what: &str) {
    let mut expected: Vec<&str> = Vec::new();
    let (mut last, mut last_done) = (Duration::ZERO, Instant::now());
    for (at, step) in steps {
        if paced {
            wait_until("the time of the next step", || last_done.elapsed() >= *at - last);
        }
        match step {
            Step::Submit(number) => submit(folder, cluster, *number),
            Step::Decide(decision) => {
                expected.push(decision);
                let mut so_far = Vec::new();
                let began = Instant::now();
                while so_far.len() < expected.len() {
                    so_far = decided(cluster);
                    assert!(
                        so_far.iter().zip(&expected).all(|(one, other)| one == other),
                        "{what}: {so_far:?}, not {expected:?}"
                    );
                    assert!(began.elapsed() < DEADLINE, "{what}: {so_far:?} does not become {expected:?}");
                    std::thread::sleep(Duration::from_millis(5));
                }
                // In the simulated run the attempt began at once.
                let words: Vec<&str> = decision.split(' ').collect();
                if let ["launch" | "restore", attempt, ..] = words[..] {
                    wait_until(&format!("{what}: the start of {attempt}"), || has_begun(cluster, attempt));
                }
            }
            Step::End(task) => {
                fs::write(gate(folder, task), "").expect("an open gate");
                wait_until(&format!("{what}: the end of {task}"), || is_done(cluster, task));
            }
        }
        (last, last_done) = (*at, Instant::now());
    }
    assert_eq!(decided(cluster), expected, "{what}: nothing else was decided");
}

#[derive(Deserialize)]
struct File {
    scheduler: SchedulerTables,
    #[serde(default)]
    preemption: PreemptionSettings,
}

#[test]
fn cluster_under_every_policy_decides_as_simulator() {
    for (scheduler, tables, primitive) in POLICIES {
        let file = if tables.is_empty() { "[scheduler]\n" } else { tables };
        let read: File = toml::from_str(file).unwrap_or_else(|error| panic!("{scheduler}: {error}"));
        let name = scheduler.parse().expect("a known name");
        let configuration = SchedulerConfiguration { scheduler: name, tables: read.scheduler };
        let steps = simulated(&configuration, read.preemption);
        assert!(steps.len() > 25, "{scheduler}: {steps:?}");
        let folder = Folder::new();
        fs::create_dir(folder.path("gates")).expect("a folder");
        let cluster = OwnCluster::start(&folder, 2, scheduler, file);
        let what = format!("{scheduler} with {file}");
        follow(&folder, &cluster, &steps, scheduler == "fair", &what);
        let ids: Vec<String> = (1..=JOBS.len()).map(|number| format!("job_{number:04}")).collect();
        cluster.wait(&ids.iter().map(String::as_str).collect::<Vec<_>>()).succeeded();
        (0..JOBS.len()).for_each(|number| check_output(&folder, number, &what));
        let times = |order: &str| {
            let ordered =
                |(_, step): &&(Duration, Step)| matches!(step, Step::Decide(text) if text.starts_with(order));
            steps.iter().filter(ordered).count()
        };
        for order in ["kill", "suspend", "checkpoint"] {
            assert_eq!(times(order) > 0, primitive.contains(&order), "{what}: {order}");
        }
        // Preempted tasks have resumed.
        assert_eq!((times("resume"), times("restore")), (times("suspend"), times("checkpoint")), "{what}");
        println!(
            "{scheduler}: {} steps, {} suspends, {} checkpoints",
            steps.len(),
            times("suspend"),
            times("checkpoint")
        );
    }
}
