//! Identities and dominance relations on generated instances with fixed seeds. Small integers make ties
//! likely, and exact ratios make them real.

use crate::oracles::fluid::{FluidJob, FluidPolicy, completions, jobs_over_time};
use napreduce_engine::{Primitive, Ratio, Slots, Span, SuspendedMax, Time};
use napreduce_sim::{Cost, Run, SimulatedJob, Simulation, SimulationSettings, Workload};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;

use super::fluid;
use super::policy::PriorityFirst;

const INSTANCES: u64 = 300;
const POLICIES: [FluidPolicy; 8] = [
    FluidPolicy::Fifo,
    FluidPolicy::Ps,
    FluidPolicy::Srpt,
    FluidPolicy::Psjf,
    FluidPolicy::Las,
    FluidPolicy::FspFifo,
    FluidPolicy::FspPs,
    FluidPolicy::Edf,
];

pub fn holds(case: &Value) -> Result<(), String> {
    let id = case["id"].as_str().ok_or("no id")?;
    let found = PROPERTIES.iter().find(|(known, _)| *known == id);
    let (_, properties) = found.ok_or_else(|| format!("unknown property {id}"))?;
    properties.iter().try_for_each(|property| match property {
        Property::OfInstances(holds) => (0..INSTANCES).try_for_each(|seed| {
            holds(&instance(seed)).map_err(|why| format!("with seed {seed}: {why}"))
        }),
        Property::OnSlots => (0..INSTANCES / 10).try_for_each(on_slots),
        Property::OfLongStreams(holds) => holds(),
    })
}

/// The property of a case, by id.
enum Property {
    /// On small instances in exact numbers.
    OfInstances(fn(&[FluidJob<Ratio>]) -> Result<(), String>),
    /// On simulated runs.
    OnSlots,
    /// On long-run means.
    OfLongStreams(fn() -> Result<(), String>),
}

const PROPERTIES: [(&str, &[Property]); 6] = [
    (
        "q-littles-law",
        &[Property::OfInstances(little), Property::OnSlots],
    ),
    ("q-fsp-dominance", &[Property::OfInstances(dominance)]),
    ("q-srpt-optimal", &[Property::OfInstances(srpt_optimal)]),
    (
        "q-work-conservation",
        &[Property::OfInstances(work_conservation), Property::OnSlots],
    ),
    (
        "q-fsp-bound",
        &[
            Property::OfInstances(dominance),
            Property::OfLongStreams(fluid::fsp_bound),
        ],
    ),
    (
        "q-ps-insensitivity",
        &[Property::OfLongStreams(fluid::ps_insensitivity)],
    ),
];

/// Includes properties that no case names.
#[test]
fn all_properties_hold() {
    for (id, _) in PROPERTIES {
        holds(&serde_json::json!({ "id": id })).unwrap_or_else(|why| panic!("{id}: {why}"));
    }
}

fn instance(seed: u64) -> Vec<FluidJob<Ratio>> {
    let mut random = Pcg64::seed_from_u64(seed);
    let count = random.random_range(1..=9);
    let span = random.random_range(1..=40);
    let mut arrivals: Vec<u64> = (0..count).map(|_| random.random_range(0..=span)).collect();
    arrivals.sort_unstable();
    let job = |arrival| {
        FluidJob::new(
            Ratio::whole(arrival),
            Ratio::whole(random.random_range(1..=15)),
        )
    };
    arrivals.into_iter().map(job).collect()
}

fn little(jobs: &[FluidJob<Ratio>]) -> Result<(), String> {
    for policy in POLICIES {
        let ends = completions(jobs, policy);
        let sojourns = jobs
            .iter()
            .zip(&ends)
            .fold(Ratio::ZERO, |sum, (job, end)| sum + *end - job.arrival);
        let over_time = jobs_over_time(jobs, &ends);
        let integral = over_time.windows(2).fold(Ratio::ZERO, |sum, pair| {
            sum + (pair[1].0 - pair[0].0) * Ratio::new(i128::from(pair[0].1), 1)
        });
        if sojourns != integral {
            return Err(format!(
                "{policy:?}: sojourns {sojourns}, integral {integral}"
            ));
        }
    }
    Ok(())
}

fn dominance(jobs: &[FluidJob<Ratio>]) -> Result<(), String> {
    let fair = completions(jobs, FluidPolicy::FspFifo);
    let shared = completions(jobs, FluidPolicy::Ps);
    match fair
        .iter()
        .zip(&shared)
        .position(|(fair, shared)| fair > shared)
    {
        Some(job) => Err(format!(
            "job {job} ends at {} under FSP and {} under PS",
            fair[job], shared[job]
        )),
        None => Ok(()),
    }
}

fn srpt_optimal(jobs: &[FluidJob<Ratio>]) -> Result<(), String> {
    let number = |over_time: &[(Ratio, i64)], at: Ratio| {
        over_time
            .iter()
            .rev()
            .find(|(time, _)| *time <= at)
            .map_or(0, |(_, number)| *number)
    };
    let best = jobs_over_time(jobs, &completions(jobs, FluidPolicy::Srpt));
    for policy in POLICIES {
        let other = jobs_over_time(jobs, &completions(jobs, policy));
        for &(at, _) in best.iter().chain(&other) {
            if number(&best, at) > number(&other, at) {
                return Err(format!(
                    "at {at} there are more jobs under SRPT than under {policy:?}"
                ));
            }
        }
    }
    Ok(())
}

fn work_conservation(jobs: &[FluidJob<Ratio>]) -> Result<(), String> {
    let empty_at = |policy| -> Vec<Ratio> {
        let over_time = jobs_over_time(jobs, &completions(jobs, policy));
        over_time
            .into_iter()
            .filter(|(_, number)| *number == 0)
            .map(|(time, _)| time)
            .collect()
    };
    let expected = empty_at(FluidPolicy::Fifo);
    match POLICIES
        .into_iter()
        .find(|policy| empty_at(*policy) != expected)
    {
        Some(policy) => Err(format!(
            "busy periods under {policy:?} end at other times than under FIFO"
        )),
        None => Ok(()),
    }
}

/// Identities on slots: every run checks its accounting; this checks the totals.
fn on_slots(seed: u64) -> Result<(), String> {
    let work: u64 = one_slot_jobs(seed)
        .iter()
        .map(|job| job.maps[0].work.0)
        .sum();
    for (primitive, cost) in [
        (Primitive::Wait, 0),
        (Primitive::Suspend, 250),
        (Primitive::Kill, 0),
    ] {
        let run = run_on_slots(seed, primitive, Span::from_millis(cost))?;
        let busy = run.slot_time.busy[0];
        let suspends: u64 = run.jobs.iter().map(|job| job.preemptions.suspend).sum();
        let expected = match primitive {
            Primitive::Kill => work + run.slot_time.wasted,
            _ => work + suspends * 2 * cost * 1000,
        };
        if busy != expected || (primitive != Primitive::Kill && run.slot_time.wasted > 0) {
            return Err(format!(
                "seed {seed}, {primitive:?}: busy {busy}, not {expected}"
            ));
        }
    }
    Ok(())
}

fn one_slot_jobs(seed: u64) -> Vec<SimulatedJob> {
    let mut random = Pcg64::seed_from_u64(seed);
    let job = |number: u64| {
        let mut job = SimulatedJob::new(
            format!("job{number}"),
            Time(random.random_range(0..60_000_000)),
        );
        job = job.with_maps(1, Span(random.random_range(1..10_000_000)));
        job.priority = random.random_range(0..3);
        job
    };
    (0..15).map(job).collect()
}

fn run_on_slots(seed: u64, primitive: Primitive, cost: Span) -> Result<Run, String> {
    let mut settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
    settings.engine.preemption.suspended_max = SuspendedMax::Unlimited;
    settings.overheads.suspend = Cost::fixed(cost);
    settings.overheads.resume = Cost::fixed(cost);
    let policy: Box<dyn napreduce_engine::Scheduler> = match primitive {
        Primitive::Wait => Box::new(napreduce_engine::Fifo::default()),
        _ => Box::new(PriorityFirst::new(primitive)),
    };
    let run = Simulation::new(policy, settings, Workload::of(one_slot_jobs(seed))).run();
    run.map_err(|error| error.to_string())
}
