//! Runs the same small workload on a cluster and in the simulator. Under each policy but Fair, both must make the
//! same decisions in the same order.
//!
//! The simulated run comes first and determines the order in which tasks end. On the cluster, tasks wait for
//! gates, which the test opens in that order, so that only decisions are compared, never times.
//!
//! Fair decides by received slot time. So under Fair, tasks take as long on the cluster as in the simulated run, and
//! the slot time that each job has received is compared all along the run (see [`SERVICE_BOUND`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_engine::{
    Effect, Event, Order, PreemptionSettings, Record, Report, Slots, Span, Time,
};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerTables};
use napreduce_sim::{
    SimulatedJob, SimulatedMap, SimulatedReduce, Simulation, SimulationSettings, Workload,
};
use napreduce_tests::{Folder, OwnCluster, joined, wait_until};
use serde::Deserialize;

/// Deadline for a decision.
const DEADLINE: Duration = Duration::from_secs(60);

/// How much the slot time that a job has received may differ between cluster and simulator, whenever all jobs
/// together have received the same. What the tasks took longer on the cluster than simulated is added, since starting
/// a process takes time there, and the longest task: between jobs whose shares are nearly equal a decision may fall
/// either way, and then a whole task runs sooner or later.
const SERVICE_BOUND: Duration = Duration::from_millis(500);

/// A job: name, queue, user, priority, deadline in seconds, submission time, and work of its maps and reduces
/// in tenths of a second. No two events coincide, and no job reclaims two slots at once, since the order in
/// which two tasks are saved and resumed on a cluster depends on timing.
type Line = (
    &'static str,
    &'static str,
    &'static str,
    i32,
    u64,
    u64,
    &'static [u64],
    &'static [u64],
);

const JOBS: [Line; 4] = [
    (
        "a",
        "research",
        "ada",
        0,
        200,
        0,
        &[100, 113, 41, 57],
        &[91],
    ),
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
    (
        "fair",
        "[scheduler.fair.root.pools.production]\nweight = 3",
        &[],
    ),
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
    let plans = JOBS.iter().map(
        |(name, queue, user, priority, deadline, submit, maps, reduces)| {
            let mut plan = SimulatedJob::new(*name, Time(0) + tenths(submit));
            (plan.queue, plan.user, plan.priority) = ((*queue).into(), (*user).into(), *priority);
            plan.deadline = Some(Span::from_secs(*deadline));
            let map = |work| SimulatedMap {
                work: tenths(work),
                bytes: 20,
                output_bytes: 0,
                preferred: Vec::new(),
            };
            plan.maps = maps.iter().map(map).collect();
            let reduce = |work| SimulatedReduce {
                shuffle: Span(0),
                reduce: tenths(work),
                bytes: 0,
            };
            plan.reduces = reduces.iter().map(reduce).collect();
            plan
        },
    );
    let mut settings = SimulationSettings::new(2, Slots { map: 1, reduce: 1 });
    settings.engine.preemption = preemption;
    let log = Written::default();
    let simulation = Simulation::new(
        configuration.build().expect("a policy"),
        settings,
        Workload::of(plans.collect()),
    );
    simulation
        .with_log(Box::new(log.clone()))
        .run()
        .expect("an end");
    let text = String::from_utf8(log.0.lock().expect("one thread").clone()).expect("text");
    let mut now = Duration::ZERO;
    let mut steps = Vec::new();
    for line in text.lines() {
        // Effects are indented below their event, which starts with its time.
        if !line.starts_with(' ') {
            let seconds = line
                .split_once("s ")
                .and_then(|(seconds, _)| seconds.parse().ok());
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
        [
            worker,
            order @ ("launch" | "kill" | "suspend" | "resume" | "checkpoint"),
            attempt,
            ..,
        ] if worker.ends_with(':') => Some(Step::Decide(format!("{order} {attempt}"))),
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
    let directory =
        ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
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
    started_attempts(cluster)
        .iter()
        .any(|attempt| attempt == id)
}

/// Returns the tasks that have begun.
fn begun(cluster: &OwnCluster) -> Vec<String> {
    let attempts = started_attempts(cluster);
    attempts
        .iter()
        .filter_map(|attempt| Some(attempt.rsplit_once('.')?.0.to_owned()))
        .collect()
}

/// Returns the attempts whose processes were reported to have started.
fn started_attempts(cluster: &OwnCluster) -> Vec<String> {
    let directory =
        ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    let mut started = Vec::new();
    for event in batches.iter().flat_map(|batch| &batch.events) {
        if let Event::Reported {
            attempt,
            report: Report::Started,
            ..
        } = event
        {
            started.push(attempt.to_string());
        }
    }
    started
}

fn is_done(cluster: &OwnCluster, task: &str) -> bool {
    let directory =
        ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
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
    let priority = priority.to_string();
    let deadline = format!("{deadline}s");
    let reduces = reduces.len().to_string();
    let output = format!("out-{name}");
    let mut arguments = vec![
        name,
        "--job",
        "gated",
        "--output",
        &output,
        "--name",
        name,
        "--reduces",
        &reduces,
    ];
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
    assert!(
        text.lines().all(|line| line.ends_with(&ends)),
        "{what}: a record of {name} is lost or repeated"
    );
}

/// Repeats the simulated run on the cluster, step by step.
fn follow(folder: &Folder, cluster: &OwnCluster, steps: &[(Duration, Step)], what: &str) {
    let mut expected: Vec<&str> = Vec::new();
    for (_, step) in steps {
        match step {
            Step::Submit(number) => submit(folder, cluster, *number),
            Step::Decide(decision) => {
                expected.push(decision);
                let mut so_far = Vec::new();
                let began = Instant::now();
                while so_far.len() < expected.len() {
                    so_far = decided(cluster);
                    assert!(
                        so_far
                            .iter()
                            .zip(&expected)
                            .all(|(one, other)| one == other),
                        "{what}: {so_far:?}, not {expected:?}"
                    );
                    assert!(
                        began.elapsed() < DEADLINE,
                        "{what}: {so_far:?} does not become {expected:?}"
                    );
                    std::thread::sleep(Duration::from_millis(5));
                }
                // In the simulated run the attempt began at once.
                let words: Vec<&str> = decision.split(' ').collect();
                if let ["launch" | "restore", attempt, ..] = words[..] {
                    wait_until(&format!("{what}: the start of {attempt}"), || {
                        has_begun(cluster, attempt)
                    });
                }
            }
            Step::End(task) => {
                fs::write(gate(folder, task), "").expect("an open gate");
                wait_until(&format!("{what}: the end of {task}"), || {
                    is_done(cluster, task)
                });
            }
        }
    }
    assert_eq!(
        decided(cluster),
        expected,
        "{what}: nothing else was decided"
    );
}

/// The time from the launch of an attempt to the end of its task, in seconds since the first submission.
#[derive(Debug, Clone, Copy)]
struct Occupied {
    job: usize,
    from: f64,
    until: f64,
}

/// Returns the slot time that a job, or all jobs, have received by a moment.
fn received(occupied: &[Occupied], job: Option<usize>, moment: f64) -> f64 {
    let mut sum = 0.0;
    for slot in occupied {
        if job.is_none_or(|job| slot.job == job) {
            sum += (slot.until.min(moment) - slot.from).max(0.0);
        }
    }
    sum
}

/// Returns when all jobs together have received this much slot time.
fn moment_of(occupied: &[Occupied], total: f64) -> f64 {
    let mut before = 0.0;
    let mut after = occupied.iter().map(|slot| slot.until).fold(0.0, f64::max);
    for _ in 0..60 {
        let middle = (before + after) / 2.0;
        if received(occupied, None, middle) < total {
            before = middle;
        } else {
            after = middle;
        }
    }
    after
}

/// Returns the number of the job of a task or an attempt, from 0.
fn job_of(id: &str) -> usize {
    let number = id
        .strip_prefix("job_")
        .and_then(|rest| rest.split('_').next()?.parse::<usize>().ok());
    number.expect("the id of a task") - 1
}

/// Returns the slots that the simulated run occupied.
fn occupied_in_simulation(steps: &[(Duration, Step)]) -> Vec<Occupied> {
    let mut running: BTreeMap<String, f64> = BTreeMap::new();
    let mut occupied = Vec::new();
    for (at, step) in steps {
        match step {
            Step::Decide(decision) => {
                let attempt = decision
                    .strip_prefix("launch ")
                    .expect("Fair preempts nothing here");
                let (task, _) = attempt.rsplit_once('.').expect("an attempt");
                running.insert(task.to_owned(), at.as_secs_f64());
            }
            Step::End(task) => {
                let from = running.remove(task).expect("it runs");
                occupied.push(Occupied {
                    job: job_of(task),
                    from,
                    until: at.as_secs_f64(),
                });
            }
            Step::Submit(_) => {}
        }
    }
    occupied
}

/// Returns the slots that a cluster occupied, from its journal.
fn occupied_on(cluster: &OwnCluster) -> Vec<Occupied> {
    let directory =
        ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    let mut first = None;
    let mut running: BTreeMap<String, f64> = BTreeMap::new();
    let mut occupied = Vec::new();
    for batch in &batches {
        let seconds = batch.at.0 as f64 / 1e6;
        for effect in &batch.effects {
            match effect {
                Effect::Record(Record::JobAccepted(_)) => {
                    first.get_or_insert(seconds);
                }
                Effect::Send {
                    order: Order::Launch { attempt, .. },
                    ..
                } => {
                    running.insert(attempt.task.to_string(), seconds);
                }
                Effect::Record(Record::TaskDone(attempt)) => {
                    let task = attempt.task.to_string();
                    let from = running.remove(&task).expect("it runs") - first.expect("a job");
                    let until = seconds - first.expect("a job");
                    occupied.push(Occupied {
                        job: job_of(&task),
                        from,
                        until,
                    });
                }
                _ => {}
            }
        }
    }
    occupied
}

/// Returns the work of a task.
fn work_of(task: &str) -> Duration {
    let (_, _, _, _, _, _, maps, reduces) = JOBS[job_of(task)];
    let works = if task.contains("_m_") { maps } else { reduces };
    let index: usize = task
        .rsplit('_')
        .next()
        .and_then(|index| index.parse().ok())
        .expect("an index");
    Duration::from_millis(works[index] * 100)
}

/// Submits the jobs when the simulated run does, and ends each task after its work. The cluster decides alone.
fn run_by_the_clock(folder: &Folder, cluster: &OwnCluster) {
    let began = Instant::now();
    let tasks: usize = JOBS.iter().map(|job| job.6.len() + job.7.len()).sum();
    let mut submitted = 0;
    let mut started: BTreeMap<String, Instant> = BTreeMap::new();
    let mut ended: BTreeSet<String> = BTreeSet::new();
    wait_until("the end of all tasks", || {
        if submitted < JOBS.len()
            && began.elapsed() >= Duration::from_millis(JOBS[submitted].5 * 100)
        {
            submit(folder, cluster, submitted);
            submitted += 1;
        }
        for task in begun(cluster) {
            started.entry(task).or_insert_with(Instant::now);
        }
        for (task, since) in &started {
            if since.elapsed() >= work_of(task) && ended.insert(task.clone()) {
                fs::write(gate(folder, task), "").expect("an open gate");
            }
        }
        ended.len() == tasks
    });
}

/// Compares the slot time that each job has received at every launch and end of the simulated run.
fn check_service(simulated: &[Occupied], live: &[Occupied], what: &str) {
    assert_eq!(simulated.len(), live.len(), "{what}: tasks");
    let length = |slot: &Occupied| slot.until - slot.from;
    let longer: f64 =
        live.iter().map(length).sum::<f64>() - simulated.iter().map(length).sum::<f64>();
    let longest_task = simulated.iter().map(length).fold(0.0, f64::max);
    let bound = SERVICE_BOUND.as_secs_f64() + longer.max(0.0) + longest_task;
    let mut largest: f64 = 0.0;
    for moment in simulated.iter().flat_map(|slot| [slot.from, slot.until]) {
        let live_moment = moment_of(live, received(simulated, None, moment));
        for (number, job) in JOBS.iter().enumerate() {
            let expected = received(simulated, Some(number), moment);
            let found = received(live, Some(number), live_moment);
            largest = largest.max((expected - found).abs());
            assert!(
                (expected - found).abs() <= bound,
                "{what}: after {moment:.1} s of the simulated run, {} has received {expected:.2} s, and {found:.2} s \
                 on the cluster; bound {bound:.2} s",
                job.0
            );
        }
    }
    println!("{what}: received slot times differ by at most {largest:.2} s (bound {bound:.2} s)");
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
        let file = if tables.is_empty() {
            "[scheduler]\n"
        } else {
            tables
        };
        let read: File =
            toml::from_str(file).unwrap_or_else(|error| panic!("{scheduler}: {error}"));
        let name = scheduler.parse().expect("a known name");
        let configuration = SchedulerConfiguration {
            scheduler: name,
            tables: read.scheduler,
        };
        let steps = simulated(&configuration, read.preemption);
        assert!(steps.len() > 25, "{scheduler}: {steps:?}");
        let folder = Folder::new();
        fs::create_dir(folder.path("gates")).expect("a folder");
        let cluster = OwnCluster::start(&folder, 2, scheduler, file);
        let what = format!("{scheduler} with {file}");
        let by_service = scheduler == "fair";
        if by_service {
            run_by_the_clock(&folder, &cluster);
        } else {
            follow(&folder, &cluster, &steps, &what);
        }
        let ids: Vec<String> = (1..=JOBS.len())
            .map(|number| format!("job_{number:04}"))
            .collect();
        cluster
            .wait(&ids.iter().map(String::as_str).collect::<Vec<_>>())
            .succeeded();
        (0..JOBS.len()).for_each(|number| check_output(&folder, number, &what));
        if by_service {
            check_service(
                &occupied_in_simulation(&steps),
                &occupied_on(&cluster),
                &what,
            );
        }
        let times = |order: &str| {
            let ordered = |(_, step): &&(Duration, Step)| matches!(step, Step::Decide(text) if text.starts_with(order));
            steps.iter().filter(ordered).count()
        };
        for order in ["kill", "suspend", "checkpoint"] {
            assert_eq!(
                times(order) > 0,
                primitive.contains(&order),
                "{what}: {order}"
            );
        }
        // Preempted tasks have resumed.
        assert_eq!(
            (times("resume"), times("restore")),
            (times("suspend"), times("checkpoint")),
            "{what}"
        );
        println!(
            "{scheduler}: {} steps, {} suspends, {} checkpoints",
            steps.len(),
            times("suspend"),
            times("checkpoint")
        );
    }
}
