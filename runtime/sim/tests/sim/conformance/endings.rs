//! Everything ends: a finite workload under every policy, primitive and random configuration; and what does
//! not end is an error.
//!
//! Owns how many random configurations are run here, and the cases by which it was found that some did not
//! end. Does not own how a case is drawn (`napreduce_sim::fuzz`); `nap lab fuzz-policies` runs more of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use napreduce_engine::{
    Actions, ClusterView, Event, Fifo, Preempt, Primitive, Scheduler, Slots, Span, TaskKind, Time,
};
use napreduce_schedulers::SchedulerName;
use napreduce_sim::fuzz::Case;
use napreduce_sim::{Failures, Run, SimulatedJob, Simulation, SimulationError, SimulationSettings, Workload};

/// `NAPREDUCE_SEEDS=N` runs N cases instead; `nap lab fuzz-policies` runs 5,000.
fn cases() -> u64 {
    let asked = std::env::var("NAPREDUCE_SEEDS").ok();
    asked.map_or(300, |count| count.parse().expect("NAPREDUCE_SEEDS is a number"))
}

#[test]
fn a_finite_workload_ends_under_every_policy_primitive_and_configuration() {
    all_end(cases(), Case::draw);
}

#[test]
fn a_finite_workload_ends_in_containers_or_is_refused() {
    all_end(cases(), Case::draw_in_containers);
}

/// Seeds of compositions in containers, in which a queue had its maximum with tasks that another part gave
/// containers to, or a part took one for a task that another part gives containers to.
const COMPOSED_IN_CONTAINERS: [u64; 10] = [357, 688, 714, 870, 876, 1314, 1375, 1473, 1532, 1747];

#[test]
fn compositions_end_in_containers_whatever_the_other_part_gives() {
    for seed in COMPOSED_IN_CONTAINERS {
        let scheduler = Case::draw_in_containers(seed).scheduler;
        assert!(matches!(scheduler, SchedulerName::Composed | SchedulerName::Fcs), "seed {seed}");
        ends_in_containers(seed);
    }
}

/// A case in containers by its seed.
fn ends_in_containers(seed: u64) {
    Case::draw_in_containers(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
}

#[test]
fn a_reduce_that_is_let_finish_gives_way_to_maps_of_its_job() {
    ends_in_containers(4622);
}

#[test]
fn an_attempt_that_may_commit_when_it_is_resumed_is_done() {
    ends_in_containers(8468);
}

fn all_end(cases: u64, draw: fn(u64) -> Case) {
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= cases {
                return;
            }
            let case = draw(seed);
            if let Err(why) = case.run() {
                failed.lock().unwrap().push(format!("{}: {why}", case.flags()));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    assert!(failed.is_empty(), "{} of {cases} cases:\n{}", failed.len(), failed.join("\n"));
}

/// A case that is written out.
fn ends(scheduler: SchedulerName, configuration: &str, workload: &str) -> Run {
    let (configuration, workload) = (configuration.to_owned(), workload.to_owned());
    let case = Case { seed: 0, scheduler, configuration, workload, failures: Failures::default() };
    case.run().unwrap_or_else(|why| panic!("{scheduler}: {why}"))
}

fn preempted(run: &Run) -> u64 {
    run.jobs
        .iter()
        .map(|job| job.preemptions.suspend + job.preemptions.checkpoint + job.preemptions.kill)
        .sum()
}

/// Jobs of a pool on four map slots, alike.
fn crowd(jobs: u32, queue: &str) -> String {
    let job = |number| {
        format!(
            "[[job]]\nname = \"{queue}-{number}\"\nqueue = \"{queue}\"\nmaps = {{ count = 3, seconds = 20 }}\n"
        )
    };
    (0..jobs).map(job).collect()
}

const FOUR_SLOTS: &str = "cluster = { machines = 2, map-slots = 2, reduce-slots = 1 }\n";

/// Fair, which takes slots back as soon as it may, with these pools.
fn fair_at_once(pools: &str) -> String {
    format!(
        r#"
        [scheduler.fair]
        preemption = true
        utilization-gate = 0
        kill-wait = "0s"
        recheck-delay = "0s"
        heartbeat = "0s"
        [scheduler.fair.root]
        min-share-timeout = "1s"
        {pools}"#
    )
}

#[test]
fn fair_takes_nothing_for_a_minimum_above_what_the_cluster_has() {
    let pools = "[scheduler.fair.root.pools.research]\nmin-maps = 8\n";
    let configuration = format!("[preemption]\nprimitive = \"kill\"\n{}", fair_at_once(pools));
    let alone = ends(SchedulerName::Fair, &configuration, &format!("{FOUR_SLOTS}{}", crowd(10, "research")));
    assert_eq!(preempted(&alone), 0, "nobody else has a slot that the pool could get");
    let workload = format!("{FOUR_SLOTS}{}{}", crowd(10, "research"), crowd(10, "production"));
    assert!(preempted(&ends(SchedulerName::Fair, &configuration, &workload)) <= 4);
}

#[test]
fn two_pools_below_their_minima_do_not_take_from_each_other_in_turns() {
    let pool = |name: &str| format!("[scheduler.fair.root.pools.{name}]\nmin-maps = 3\n");
    let configuration = fair_at_once(&(pool("research") + &pool("production")));
    let workload = format!("{FOUR_SLOTS}{}{}", crowd(10, "research"), crowd(10, "production"));
    assert!(preempted(&ends(SchedulerName::Fair, &configuration, &workload)) <= 4);
}

#[test]
fn natjam_by_laxity_with_kill_ends() {
    let deadlines = include_str!("../../../workloads/natjam-deadlines.toml");
    let configuration = r#"
        [preemption]
        primitive = "kill"
        [scheduler.natjam-deadline]
        eviction = "MLF"
    "#;
    let run = ends(SchedulerName::NatjamDeadline, configuration, deadlines);
    assert!(preempted(&run) > 10, "jobs of equal laxity take from each other until they are stopped");
}

#[test]
fn a_composition_is_woken_for_its_own_slots_only() {
    let configuration = r#"
        [scheduler.hfsp]
        delta = "3s"
        [scheduler.composed]
        map = "hfsp"
    "#;
    let job = |number| {
        format!(
            "[[job]]\nname = \"job{number}\"\nsubmit = \"{number}s\"\nmaps = {{ count = 6, seconds = 9 }}\n\
             reduces = {{ count = 3, seconds = 12 }}\n"
        )
    };
    let workload: String = (0..8).map(job).collect();
    let workload = format!("cluster = {{ machines = 4, map-slots = 2, reduce-slots = 1 }}\n{workload}");
    let run = ends(SchedulerName::Composed, configuration, &workload);
    assert!(run.events < 10_000, "{} events", run.events);
}

/// FIFO, and once a second everything that runs is killed; or it wants to be woken for now.
struct Unruly {
    giving: Fifo,
    kills: bool,
    next: Time,
}

impl Scheduler for Unruly {
    fn on_event(&mut self, _: Time, _: &Event, _: &ClusterView<'_>) {}

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if actions.offer().is_some() {
            return self.giving.schedule(now, view, actions);
        }
        if self.kills && now >= self.next {
            self.next = now + Span::from_secs(1);
            for attempt in view.attempts().map(|attempt| attempt.id()) {
                let (primitive, reason) = (Primitive::Kill, "it likes to".to_owned());
                actions.preempt(Preempt { attempt, primitive, grace: None, reason, beneficiary: None });
            }
        }
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        Some(if self.kills { self.next } else { now })
    }
}

/// What comes of jobs of ten seconds under such a policy.
fn unruly(kills: bool, preemptions_without_progress_max: u32) -> Result<Run, SimulationError> {
    let mut settings = SimulationSettings::new(2, Slots { map: 2, reduce: 1 });
    settings.engine.preemption.preemptions_without_progress_max = preemptions_without_progress_max;
    let job = SimulatedJob::new("job", Time(0)).with_maps(6, Span::from_secs(10));
    assert_eq!(job.tasks(TaskKind::Map), 6);
    let policy = Unruly { giving: Fifo::default(), kills, next: Time(0) };
    Simulation::new(Box::new(policy), settings, Workload::of(vec![job])).run()
}

#[test]
fn a_policy_that_kills_all_the_time_is_kept_from_that() {
    let run = unruly(true, 10).expect("the engine sees to it that work gets done");
    assert_eq!(run.books.useful, 60_000_000);
    assert!((60..200).contains(&preempted(&run)), "{}", preempted(&run));
}

#[test]
fn a_run_without_end_is_an_error_that_says_when_and_how_to_see_it() {
    let error = unruly(true, u32::MAX).expect_err("nothing ever gets done").to_string();
    for part in ["no end is in sight at ", "1 jobs have not ended (the first is job_0001)", "--until"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_policy_that_wants_to_be_woken_for_a_time_that_is_over_is_an_error() {
    let error = unruly(false, 10).expect_err("it would stop the clock").to_string();
    assert!(error.contains("wants to be woken at 0.000000s, no later than now"), "{error}");
}
