//! Termination: a finite workload ends under every policy, primitive and random configuration; a run that
//! cannot end is an error. Includes regression cases. `nap lab fuzz-policies` runs more random cases.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use napreduce_engine::{
    Actions, ClusterView, Event, Fifo, Preempt, Primitive, Scheduler, Slots, Span, TaskKind, Time,
};
use napreduce_schedulers::SchedulerName;
use napreduce_sim::fuzz::Case;
use napreduce_sim::{
    Failures, Run, SimulatedJob, Simulation, SimulationError, SimulationSettings, Workload,
};

/// `NAPREDUCE_SEEDS=N` runs N cases instead of 20; `.ci/run` runs 300, and `nap lab fuzz-policies` 5,000.
fn cases() -> u64 {
    let asked = std::env::var("NAPREDUCE_SEEDS").ok();
    asked.map_or(20, |count| {
        count.parse().expect("NAPREDUCE_SEEDS is a number")
    })
}

#[test]
fn random_cases_end() {
    all_end(cases(), Case::draw);
}

#[test]
fn random_container_cases_end_or_are_rejected() {
    all_end(cases(), Case::draw_containers);
}

/// Seeds of regressions: compositions in containers where a queue reached its maximum through the other
/// part's tasks, or a part preempted a container for the other part.
const COMPOSED_IN_CONTAINERS: [u64; 10] = [357, 688, 714, 870, 876, 1314, 1375, 1473, 1532, 1747];

#[test]
fn compositions_end_in_containers() {
    for seed in COMPOSED_IN_CONTAINERS {
        let scheduler = Case::draw_containers(seed).scheduler;
        assert!(
            matches!(scheduler, SchedulerName::Composed | SchedulerName::Fcs),
            "seed {seed}"
        );
        ends_in_containers(seed);
    }
}

/// Runs a container case.
fn ends_in_containers(seed: u64) {
    Case::draw_containers(seed)
        .run()
        .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
}

#[test]
fn reduce_finishing_is_preempted_for_own_maps() {
    ends_in_containers(4622);
}

#[test]
fn resumed_attempt_with_commit_grant_completes() {
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
                failed
                    .lock()
                    .unwrap()
                    .push(format!("{}: {why}", case.flags()));
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
    assert!(
        failed.is_empty(),
        "{} of {cases} cases:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// Runs a case from literal files.
fn ends(scheduler: SchedulerName, configuration: &str, workload: &str) -> Run {
    let configuration = configuration.to_owned();
    let workload = workload.to_owned();
    let case = Case {
        seed: 0,
        scheduler,
        configuration,
        workload,
        failures: Failures::default(),
    };
    case.run()
        .unwrap_or_else(|why| panic!("{scheduler}: {why}"))
}

fn preempted(run: &Run) -> u64 {
    run.jobs
        .iter()
        .map(|job| job.preemptions.suspend + job.preemptions.checkpoint + job.preemptions.kill)
        .sum()
}

/// Equal jobs of a pool on four map slots.
fn crowd(jobs: u32, queue: &str) -> String {
    let job = |number| {
        format!(
            "[[job]]\nname = \"{queue}-{number}\"\nqueue = \"{queue}\"\nmaps = {{ count = 3, seconds = 20 }}\n"
        )
    };
    (0..jobs).map(job).collect()
}

const FOUR_SLOTS: &str = "cluster = { machines = 2, map-slots = 2, reduce-slots = 1 }\n";

/// Fair that preempts as early as possible, with these pools.
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
fn fair_ignores_minimum_above_cluster_size() {
    let pools = "[scheduler.fair.root.pools.research]\nmin-maps = 8\n";
    let configuration = format!(
        "[preemption]\nprimitive = \"kill\"\n{}",
        fair_at_once(pools)
    );
    let alone = ends(
        SchedulerName::Fair,
        &configuration,
        &format!("{FOUR_SLOTS}{}", crowd(10, "research")),
    );
    assert_eq!(preempted(&alone), 0, "no other pool holds a slot");
    let workload = format!(
        "{FOUR_SLOTS}{}{}",
        crowd(10, "research"),
        crowd(10, "production")
    );
    assert!(preempted(&ends(SchedulerName::Fair, &configuration, &workload)) <= 4);
}

#[test]
fn pools_below_minimum_do_not_swap_slots() {
    let pool = |name: &str| format!("[scheduler.fair.root.pools.{name}]\nmin-maps = 3\n");
    let configuration = fair_at_once(&(pool("research") + &pool("production")));
    let workload = format!(
        "{FOUR_SLOTS}{}{}",
        crowd(10, "research"),
        crowd(10, "production")
    );
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
    assert!(
        preempted(&run) > 10,
        "jobs of equal laxity swap until the limit"
    );
}

#[test]
fn composition_wakes_for_own_slots_only() {
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
    let workload =
        format!("cluster = {{ machines = 4, map-slots = 2, reduce-slots = 1 }}\n{workload}");
    let run = ends(SchedulerName::Composed, configuration, &workload);
    assert!(run.events < 10_000, "{} events", run.events);
}

/// FIFO that kills all running tasks once per second, or requests wakeups in the present.
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
                let primitive = Primitive::Kill;
                let reason = "it likes to".to_owned();
                actions.preempt(Preempt {
                    attempt,
                    primitive,
                    grace: None,
                    reason,
                    beneficiary: None,
                });
            }
        }
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        Some(if self.kills { self.next } else { now })
    }
}

/// Runs two jobs of ten seconds under the unruly policy.
fn unruly(kills: bool, preemptions_without_progress_max: u32) -> Result<Run, SimulationError> {
    let mut settings = SimulationSettings::new(2, Slots { map: 2, reduce: 1 });
    settings.engine.preemption.preemptions_without_progress_max = preemptions_without_progress_max;
    let job = SimulatedJob::new("job", Time(0)).with_maps(6, Span::from_secs(10));
    assert_eq!(job.tasks(TaskKind::Map), 6);
    let policy = Unruly {
        giving: Fifo::default(),
        kills,
        next: Time(0),
    };
    Simulation::new(Box::new(policy), settings, Workload::of(vec![job])).run()
}

#[test]
fn engine_limits_policy_that_kills_constantly() {
    let run = unruly(true, 10).expect("the engine guarantees progress");
    assert_eq!(run.slot_time.useful, 60_000_000);
    assert!((60..200).contains(&preempted(&run)), "{}", preempted(&run));
}

#[test]
fn endless_run_reports_time_and_advice() {
    let error = unruly(true, u32::MAX)
        .expect_err("the run makes no progress")
        .to_string();
    for part in [
        "no progress at ",
        "1 jobs have not ended (the first is job_0001)",
        "--until",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn wakeup_in_the_past_is_an_error() {
    let error = unruly(false, 10)
        .expect_err("the wakeup is rejected")
        .to_string();
    assert!(
        error.contains("requested a wake-up at 0.000000s, which is not in the future"),
        "{error}"
    );
}
