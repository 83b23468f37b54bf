//! Runs the same jobs on a simulated cluster, whose daemons are the real ones, and in the simulator. Under each policy but
//! Fair, both must make the same decisions in the same order.
//!
//! Fair decides by received slot time, which differs slightly: messages and starts of processes take time on the cluster.
//! So under Fair, the slot time that each job has received is compared all along the run (see [`SERVICE_BOUND`]).

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_engine::{Effect, Order, PreemptionSettings, Record, Slots, Span, Time};
use napreduce_local::coordinator::ReplayedBatch;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{
    SimulatedJob, SimulatedMap, SimulatedReduce, Simulation, SimulationSettings, Workload,
};
use napreduce_world::{GivenJob, Plan};

use super::undisturbed::{configured, journal_of};

const WORKERS: u32 = 2;
const SLOTS: Slots = Slots { map: 1, reduce: 1 };

/// How much the slot time that a job has received may differ between cluster and simulator, whenever all jobs
/// together have received the same, in seconds. What the tasks took longer on the cluster than simulated is added.
const SERVICE_BOUND: f64 = 0.1;

/// How much the times of a decision may differ between cluster and simulator, in seconds: tasks end later on the cluster,
/// since messages and starts of processes take time there.
const DECISION_BOUND: f64 = 0.5;

/// Returns the jobs. No two events coincide, and no job reclaims two slots at once, since the order in which two tasks are
/// saved and resumed on a cluster depends on timing.
fn jobs() -> Vec<GivenJob> {
    let job = |name: &str, queue: &str, user: &str| GivenJob {
        name: name.to_owned(),
        queue: queue.to_owned(),
        user: user.to_owned(),
        priority: 0,
        deadline: None,
        submitted: Duration::ZERO,
        maps: Vec::new(),
        reduces: Vec::new(),
    };
    vec![
        GivenJob {
            deadline: Some(Duration::from_secs(200)),
            maps: vec![100, 113, 41, 57],
            reduces: vec![91],
            ..job("a", "research", "ada")
        },
        GivenJob {
            priority: 2,
            deadline: Some(Duration::from_secs(60)),
            submitted: Duration::from_millis(3_200),
            maps: vec![64],
            reduces: vec![57],
            ..job("b", "production", "bob")
        },
        GivenJob {
            deadline: Some(Duration::from_secs(100)),
            submitted: Duration::from_millis(5_200),
            maps: vec![34, 29, 88],
            reduces: vec![66],
            ..job("c", "research", "eve")
        },
        GivenJob {
            priority: 1,
            deadline: Some(Duration::from_secs(90)),
            submitted: Duration::from_millis(20_700),
            maps: vec![72],
            reduces: vec![36],
            ..job("d", "production", "ada")
        },
    ]
}

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

/// The decisions of a run and the ends of its tasks.
#[derive(Debug, Default)]
struct Course {
    decisions: Vec<Moment>,
    /// Tasks that have ended.
    ends: Vec<Moment>,
}

#[derive(Debug)]
struct Moment {
    /// Seconds since the first submission.
    at: f64,
    /// A decision such as `launch job_0001_m_0000.1`, or a task.
    what: String,
}

/// Returns the course of the simulated run.
fn simulated(scheduler: &SchedulerConfiguration, preemption: PreemptionSettings) -> Course {
    let mut plans = Vec::new();
    for job in jobs() {
        let submitted = u64::try_from(job.submitted.as_micros()).expect("a minute");
        let mut plan = SimulatedJob::new(job.name, Time(submitted));
        plan.queue = job.queue.into();
        plan.user = job.user.into();
        plan.priority = job.priority;
        plan.deadline = job
            .deadline
            .map(|deadline| Span::from_secs(deadline.as_secs()));
        for tenths in job.maps {
            plan.maps.push(SimulatedMap {
                work: Span::from_millis(u64::from(tenths) * 100),
                bytes: 20,
                output_bytes: 0,
                preferred: Vec::new(),
            });
        }
        for tenths in job.reduces {
            plan.reduces.push(SimulatedReduce {
                shuffle: Span(0),
                reduce: Span::from_millis(u64::from(tenths) * 100),
                bytes: 0,
            });
        }
        plans.push(plan);
    }
    let mut settings = SimulationSettings::new(WORKERS, SLOTS);
    settings.engine.preemption = preemption;
    let policy = scheduler.build().expect("a policy");
    let log = Written::default();
    Simulation::new(policy, settings, Workload::of(plans))
        .with_log(Box::new(log.clone()))
        .run()
        .expect("an end");
    let written = log.0.lock().expect("one thread").clone();
    course_of_log(&String::from_utf8(written).expect("text"))
}

/// Reads the simulator's log. Decisions are indented below their event, which starts with its time.
fn course_of_log(text: &str) -> Course {
    let mut course = Course::default();
    let mut at = 0.0;
    for line in text.lines() {
        if !line.starts_with(' ') {
            let seconds = line.split_once("s ").map(|(seconds, _)| seconds.parse());
            at = seconds.expect("a time").expect("a number");
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [worker, "restore", attempt, "from", of] if worker.ends_with(':') => {
                let what = format!("restore {attempt} from {of}");
                course.decisions.push(Moment { at, what });
            }
            [
                worker,
                order @ ("launch" | "kill" | "suspend" | "resume" | "checkpoint"),
                attempt,
                ..,
            ] if worker.ends_with(':') => {
                let what = format!("{order} {attempt}");
                course.decisions.push(Moment { at, what });
            }
            [task, "done", "by", _] => {
                let what = task.to_owned();
                course.ends.push(Moment { at, what });
            }
            _ => {}
        }
    }
    course
}

/// Returns the course of a run on a simulated cluster.
fn on_cluster(scheduler: &SchedulerConfiguration, preemption: PreemptionSettings) -> Course {
    let plan = Plan::undisturbed(scheduler.clone(), preemption, WORKERS, SLOTS, jobs());
    course_of_journal(&journal_of(plan))
}

fn course_of_journal(batches: &[ReplayedBatch]) -> Course {
    let mut course = Course::default();
    let mut first = None;
    for batch in batches {
        for effect in &batch.effects {
            if let Effect::Record(Record::JobAccepted(_)) = effect {
                first.get_or_insert(batch.at);
            }
            let Some(first) = first else {
                continue;
            };
            let at = batch.at.since(first).0 as f64 / 1e6;
            match effect {
                Effect::Send {
                    order: Order::Commit { .. } | Order::MoreInputs { .. },
                    ..
                } => {}
                Effect::Send { order, .. } => {
                    let what = order.to_string();
                    course.decisions.push(Moment { at, what });
                }
                Effect::Record(Record::TaskDone(attempt)) => {
                    let what = attempt.task.to_string();
                    course.ends.push(Moment { at, what });
                }
                _ => {}
            }
        }
    }
    course
}

/// A slot that a task held from its launch to its end.
#[derive(Debug, Clone, Copy)]
struct Occupied {
    job: usize,
    from: f64,
    until: f64,
}

/// Returns the slots that tasks held without preemption.
fn occupied(course: &Course) -> Vec<Occupied> {
    let mut launched: BTreeMap<&str, f64> = BTreeMap::new();
    for decision in &course.decisions {
        let attempt = decision.what.strip_prefix("launch ");
        let attempt = attempt.expect("Fair preempts nothing here");
        let (task, _) = attempt.rsplit_once('.').expect("an attempt");
        launched.insert(task, decision.at);
    }
    let mut occupied = Vec::new();
    for end in &course.ends {
        occupied.push(Occupied {
            job: job_of(&end.what),
            from: launched[end.what.as_str()],
            until: end.at,
        });
    }
    occupied
}

/// Returns the number of the job of a task, from 0.
fn job_of(task: &str) -> usize {
    let number = task
        .strip_prefix("job_")
        .and_then(|rest| rest.split('_').next()?.parse::<usize>().ok());
    number.expect("the id of a task") - 1
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

/// Compares the slot time that each job has received at every launch and end of the simulated run.
fn check_service(simulated: &[Occupied], live: &[Occupied], what: &str) {
    assert_eq!(simulated.len(), live.len(), "{what}: tasks");
    let length = |slot: &Occupied| slot.until - slot.from;
    let longer: f64 =
        live.iter().map(length).sum::<f64>() - simulated.iter().map(length).sum::<f64>();
    let bound = SERVICE_BOUND + longer.max(0.0);
    let mut largest: f64 = 0.0;
    for moment in simulated.iter().flat_map(|slot| [slot.from, slot.until]) {
        let live_moment = moment_of(live, received(simulated, None, moment));
        for (number, job) in jobs().iter().enumerate() {
            let expected = received(simulated, Some(number), moment);
            let found = received(live, Some(number), live_moment);
            largest = largest.max((expected - found).abs());
            assert!(
                (expected - found).abs() <= bound,
                "{what}: after {moment:.1} s of the simulated run, {} has received {expected:.2} s, and {found:.2} s \
                 on the cluster; bound {bound:.2} s",
                job.name
            );
        }
    }
    println!("{what}: received slot times differ by at most {largest:.2} s (bound {bound:.2} s)");
}

/// Compares the decisions, in their order.
fn check_decisions(simulated: &Course, live: &Course, what: &str) {
    let orders = |course: &Course| -> Vec<String> {
        let decisions = course.decisions.iter();
        decisions.map(|decision| decision.what.clone()).collect()
    };
    assert_eq!(orders(simulated), orders(live), "{what}");
    let mut latest: f64 = 0.0;
    for (expected, found) in simulated.decisions.iter().zip(&live.decisions) {
        latest = latest.max((found.at - expected.at).abs());
    }
    assert!(latest <= DECISION_BOUND, "{what}: {latest:.2} s");
    println!("{what}: times of decisions differ by at most {latest:.2} s");
}

/// Checks that the run preempted as expected, and that all preempted tasks resumed.
fn check_preemptions(course: &Course, expected: &[&str], what: &str) {
    let times = |order: &str| {
        let decisions = course.decisions.iter();
        decisions
            .filter(|decision| decision.what.starts_with(order))
            .count()
    };
    for order in ["kill", "suspend", "checkpoint"] {
        let is_expected = expected.contains(&order);
        assert_eq!(times(order) > 0, is_expected, "{what}: {order}");
    }
    assert_eq!(times("resume"), times("suspend"), "{what}");
    assert_eq!(times("restore"), times("checkpoint"), "{what}");
}

#[test]
fn cluster_under_every_policy_decides_as_simulator() {
    for (name, tables, preemptions) in POLICIES {
        let what = format!("{name} with {tables}");
        let (scheduler, preemption) = configured(name, tables);
        let simulated = simulated(&scheduler, preemption);
        assert!(simulated.decisions.len() > 12, "{what}: {simulated:?}");
        let live = on_cluster(&scheduler, preemption);
        check_preemptions(&simulated, preemptions, &what);
        if scheduler.scheduler == SchedulerName::Fair {
            check_service(&occupied(&simulated), &occupied(&live), &what);
        } else {
            check_decisions(&simulated, &live, &what);
        }
    }
}
