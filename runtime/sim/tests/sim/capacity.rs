//! The capacity policy in simulated time: legal under delayed orders and failures, and the effect of its
//! three modes on two jobs.

use napreduce_engine::{Slots, Span, Time};
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration};
use napreduce_sim::{
    Failures, Overheads, Run, SimulatedJob, Simulation, SimulationSettings, Workload,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

const QUEUES: &str = "
    [[queue]]
    name = \"production\"
    guaranteed-percent = 75
    [[queue]]
    name = \"research\"
    guaranteed-percent = 25
";

fn run(text: &str, settings: SimulationSettings, jobs: Vec<SimulatedJob>) -> Run {
    let configuration: CapacityConfiguration = toml::from_str(text).unwrap();
    let policy = Capacity::new(&configuration).unwrap();
    Simulation::new(Box::new(policy), settings, Workload::of(jobs))
        .run()
        .unwrap()
}

fn job(name: &str, queue: &str, submit: u64, maps: u32, seconds: u64) -> SimulatedJob {
    let plan =
        SimulatedJob::new(name, Time(submit * 1_000_000)).with_maps(maps, Span::from_secs(seconds));
    SimulatedJob {
        queue: queue.into(),
        ..plan
    }
}

fn sojourn(run: &Run, name: &str) -> u64 {
    let job = run.job(name).unwrap();
    job.ended.since(job.submitted).0 / 1_000_000
}

#[test]
fn preemption_delays_neither_job_unlike_caps() {
    let both = || {
        vec![
            job("long", "research", 0, 80, 60),
            job("short", "production", 30, 30, 10),
        ]
    };
    let settings = || SimulationSettings::new(10, Slots { map: 2, reduce: 1 });
    let prompt = "
        [monitor]
        interval = \"1s\"
        primitive = \"suspend\"
        total-per-round = 1
        natural-termination-factor = 1";
    let of = |mode: &str, jobs: Vec<SimulatedJob>| {
        run(
            &format!("mode = \"{mode}\"\n{QUEUES}{prompt}"),
            settings(),
            jobs,
        )
    };
    let alone = both().into_iter().map(|job| {
        let name = job.name.clone();
        sojourn(&of("soft-cap", vec![job]), &name)
    });
    let modes = ["hard-cap", "soft-cap", "preemptive"].map(|mode| of(mode, both()));
    let alone: Vec<u64> = alone.collect();
    assert_eq!(alone, [240, 20], "four waves of twenty, two waves");
    let [hard, soft, preemptive] = modes
        .each_ref()
        .map(|run| [sojourn(run, "long"), sojourn(run, "short")]);
    assert_eq!(hard, [960, 20], "research holds at most five slots");
    assert_eq!(
        soft[1], 50,
        "production waits for the first wave, then holds fifteen slots"
    );
    assert!(preemptive[1] <= 22, "{preemptive:?}");
    assert!(preemptive[0] <= 240 + 30, "{preemptive:?}");
}

#[test]
fn all_jobs_end_with_latency_and_failures() {
    let mut preempted = [0; 4];
    for seed in 0..36 {
        let mut random = Pcg32::seed_from_u64(seed);
        let primitive = ["kill", "suspend", "checkpoint", "wait"][seed as usize % 4];
        let text = format!(
            "mode = \"preemptive\"\n{QUEUES}app-order = \"fair\"\nuser-limit-percent = 30
             [monitor]\nprimitive = \"{primitive}\"\nintra-queue = {}\nbalance-beyond-guaranteed = {}
             max-wait-before-kill = \"5s\"\ninterval = \"1s\"\ndead-zone = 0",
            seed % 3 == 0,
            seed % 2 == 0,
        );
        let jobs: Vec<SimulatedJob> = (0..40)
            .map(|number| {
                let queue = ["production", "research"][random.random_range(0..2)];
                let plan = job(
                    &number.to_string(),
                    queue,
                    random.random_range(0..200),
                    random.random_range(1..20),
                    7,
                );
                let user = ["ada", "bob", "eve"][random.random_range(0..3)].into();
                let priority = random.random_range(0..3);
                let reduces = plan.with_reduces(
                    random.random_range(0..4),
                    Span::from_secs(2),
                    Span::from_secs(9),
                );
                SimulatedJob {
                    user,
                    priority,
                    attempts_max: 100,
                    slowstart_permille: 300,
                    ..reduces
                }
            })
            .collect();
        let settings = SimulationSettings {
            seed,
            overheads: Overheads {
                heartbeat: Span::from_millis([0, 300, 3000][seed as usize % 3]),
                launch: Span::from_millis(500),
                kill: Span::from_millis(700),
                ..Overheads::default()
            },
            failures: Failures {
                attempt: 0.02,
                ..Failures::default()
            },
            ..SimulationSettings::new(4, Slots { map: 2, reduce: 1 })
        };
        let run = run(&text, settings, jobs);
        assert_eq!(
            (run.jobs.len(), run.unfinished, run.warnings),
            (40, 0, 0),
            "seed {seed}"
        );
        preempted[seed as usize % 4] += run.tally.requests_satisfied + run.tally.requests_forced;
    }
    assert!(
        preempted.iter().all(|&count| count > 20),
        "each primitive was used: {preempted:?}"
    );
}
