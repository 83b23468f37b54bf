//! Scenarios of family `natjam`: a research and a production job in the simulator under several policies.

use napreduce_engine::{Fifo, Primitive, Ratio, Scheduler, Slots, Span, SuspendedMax, Time};
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration, Mode, QueueConfiguration};
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_sim::{Run, SimulatedJob, Simulation, SimulationSettings, Workload};
use serde_json::Value;

use super::{count, same};
use crate::oracles::cases::exact;

const SECOND: u64 = 1_000_000;

pub fn scenario(case: &Value) -> Result<(), String> {
    let slots = count(&case["slots"])?;
    let research = plan(case, "research")?;
    let production = plan(case, "production")?;
    let both = vec![research.clone(), production.clone()];
    let expected = case["expect"].as_object().ok_or("no expectation")?;
    // The guarantees of the soft cap are those of the hard cap, if given.
    let caps = expected
        .keys()
        .find_map(|set_up| caps(set_up))
        .unwrap_or((1, 1));
    let one = || machines(1, slots);
    for (set_up, expected) in expected {
        let run = match set_up.as_str() {
            "alone" => {
                for job in [&research, &production] {
                    let run = run(Box::new(Fifo::default()), one(), vec![job.clone()])?;
                    check(set_up, &run, expected)?;
                }
                continue;
            }
            "soft_cap" => run(capacity(Mode::SoftCap, caps)?, one(), both.clone())?,
            "suspend" => run(natjam(Primitive::Suspend)?, one(), both.clone())?,
            "checkpoint" => run(natjam(Primitive::Checkpoint)?, one(), both.clone())?,
            "suspend_pinned_one_slot_per_node" => run(
                natjam(Primitive::Suspend)?,
                machines(slots, 1),
                both.clone(),
            )?,
            "kill" => run(natjam(Primitive::Kill)?, one(), both.clone())?,
            other => match self::caps(other) {
                Some(caps) => run(capacity(Mode::HardCap, caps)?, one(), both.clone())?,
                None => return Err(format!("unknown set-up {other}")),
            },
        };
        check(set_up, &run, expected)?;
    }
    Ok(())
}

fn plan(case: &Value, class: &str) -> Result<SimulatedJob, String> {
    let span = |what: &str| Span(exact(&case[class][what]).of(SECOND));
    let plan = SimulatedJob::new(class, Time(0) + span("submit"));
    let plan = plan.with_maps(count(&case[class]["tasks"])?, span("seconds"));
    Ok(SimulatedJob {
        queue: class.into(),
        ..plan
    })
}

/// Every task of a machine may be suspended, as in the source.
fn machines(machines: u32, slots: u32) -> SimulationSettings {
    let mut settings = SimulationSettings::new(
        machines,
        Slots {
            map: slots,
            reduce: 0,
        },
    );
    settings.engine.preemption.suspended_max = SuspendedMax::Unlimited;
    settings
}

/// Returns the slots of research and production in the name of a hard cap.
fn caps(set_up: &str) -> Option<(u64, u64)> {
    let (research, production) = set_up.strip_prefix("hard_cap_")?.split_once('_')?;
    Some((research.parse().ok()?, production.parse().ok()?))
}

fn capacity(mode: Mode, (research, production): (u64, u64)) -> Result<Box<dyn Scheduler>, String> {
    let percent = |slots| Ratio::whole(100 * slots) / Ratio::whole(research + production);
    let queue = |name, slots| QueueConfiguration::new(name, percent(slots));
    let queue = vec![queue("research", research), queue("production", production)];
    let policy = Capacity::new(&CapacityConfiguration {
        mode,
        queue,
        ..Default::default()
    });
    Ok(Box::new(policy.map_err(|error| error.to_string())?))
}

fn natjam(primitive: Primitive) -> Result<Box<dyn Scheduler>, String> {
    let configuration = NatjamConfiguration {
        primitive,
        preempt_maps: true,
        ..Default::default()
    };
    Ok(Box::new(
        Natjam::new(configuration).map_err(|error| error.to_string())?,
    ))
}

fn run(
    policy: Box<dyn Scheduler>,
    settings: SimulationSettings,
    jobs: Vec<SimulatedJob>,
) -> Result<Run, String> {
    Simulation::new(policy, settings, Workload::of(jobs))
        .run()
        .map_err(|error| error.to_string())
}

/// Checks the sojourns of the jobs and the counts; absent counts are 0.
fn check(set_up: &str, run: &Run, expected: &Value) -> Result<(), String> {
    let seconds = |micros: u64| Ratio::new(i128::from(micros), i128::from(SECOND));
    for job in &run.jobs {
        let what = format!("{set_up}: sojourn of {}", job.name);
        same(
            &what,
            seconds(job.sojourn().0),
            exact(&expected[&*job.name]),
        )?;
    }
    let sum = |of: fn(&napreduce_sim::Preemptions) -> u64| {
        Ratio::whole(run.jobs.iter().map(|job| of(&job.preemptions)).sum())
    };
    let counts = [
        ("suspended", sum(|preemptions| preemptions.suspend)),
        ("checkpointed", sum(|preemptions| preemptions.checkpoint)),
        ("killed", sum(|preemptions| preemptions.kill)),
        (
            "wasted_slot_seconds",
            Ratio::new(i128::from(run.slot_time.wasted), i128::from(SECOND)),
        ),
    ];
    for (what, got) in counts {
        let said = &expected[what];
        let said = if said.is_null() {
            Ratio::ZERO
        } else {
            exact(said)
        };
        same(&format!("{set_up}: {what}"), got, said)?;
    }
    Ok(())
}
