//! The queueing baselines on one server, against the fluid reference and a naive loop. Random one-task jobs
//! on one slot.

use std::collections::BTreeMap;

use napreduce_engine::{Slots, Span, Time};
use napreduce_sim::{Baseline, SimulatedJob, SimulationSettings, Workload, run_baseline};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::oracles::fluid::{FluidJob, FluidPolicy, completions};

/// Arrival and length in microseconds, in order of arrival.
type Jobs = Vec<(u64, u64)>;

fn any_jobs() -> impl Strategy<Value = Jobs> {
    let sorted = |mut jobs: Jobs| {
        jobs.sort_unstable();
        jobs
    };
    vec((0..40_000_000_u64, 1..9_000_000_u64), 1..30).prop_map(sorted)
}

/// Returns the end of each job under the baseline, in seconds.
fn ends(jobs: &Jobs, baseline: Baseline) -> Vec<f64> {
    let plan = |(place, (at, length)): (usize, &(u64, u64))| {
        SimulatedJob::new(place.to_string(), Time(*at)).with_maps(1, Span(*length))
    };
    let workload = Workload::of(jobs.iter().enumerate().map(plan).collect());
    let run = run_baseline(
        workload,
        &SimulationSettings::new(1, Slots { map: 1, reduce: 1 }),
        baseline,
    );
    let by_name: BTreeMap<usize, f64> = run
        .jobs
        .iter()
        .map(|job| (job.name.parse().unwrap(), job.ended.0 as f64 / 1e6))
        .collect();
    by_name.into_values().collect()
}

fn fluid(jobs: &Jobs, policy: FluidPolicy) -> Vec<f64> {
    let seconds = |micros: u64| micros as f64 / 1e6;
    let jobs: Vec<FluidJob<f64>> = jobs
        .iter()
        .map(|(at, length)| FluidJob::new(seconds(*at), seconds(*length)))
        .collect();
    completions(&jobs, policy)
}

/// Serves the smallest waiting job, non-preemptively.
fn naive_sjf(jobs: &Jobs) -> Vec<f64> {
    let mut ends = vec![0; jobs.len()];
    let mut now = 0;
    let mut left: Vec<usize> = (0..jobs.len()).collect();
    while !left.is_empty() {
        now = now.max(left.iter().map(|place| jobs[*place].0).min().unwrap());
        let there = left.iter().copied().filter(|place| jobs[*place].0 <= now);
        let next = there.min_by_key(|place| (jobs[*place].1, *place)).unwrap();
        now += jobs[next].1;
        ends[next] = now;
        left.retain(|place| *place != next);
    }
    ends.into_iter().map(|end| end as f64 / 1e6).collect()
}

fn near(found: &[f64], expected: &[f64]) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        prop_assert!(
            (one - other).abs() < 1e-4,
            "{:?} is not {:?}",
            found,
            expected
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn baselines_match_fluid_reference(jobs in any_jobs()) {
        near(&ends(&jobs, Baseline::Ps), &fluid(&jobs, FluidPolicy::Ps))?;
        near(&ends(&jobs, Baseline::Sjf), &naive_sjf(&jobs))?;
        // Ties in remaining work may be served in either order; the sum of both ends is equal.
        let mean = |ends: Vec<f64>| ends.iter().sum::<f64>() / ends.len() as f64;
        let found = mean(ends(&jobs, Baseline::Srpt));
        let expected = mean(fluid(&jobs, FluidPolicy::Srpt));
        prop_assert!((found - expected).abs() < 1e-4, "{} is not {}", found, expected);
        for other in [Baseline::Ps, Baseline::Sjf] {
            prop_assert!(found <= mean(ends(&jobs, other)) + 1e-4, "SRPT is the best, also of {}", other);
        }
    }
}
