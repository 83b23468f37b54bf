//! Family `queueing-theory`: long-run averages and identities. One server is simulated by the fluid
//! reference, several slots and preemption by the simulator.

mod fluid;
mod policy;
mod properties;
mod slots;

use napreduce_sim::Distribution;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_queueing_theory() {
    check("queueing-theory", |case| match case["kind"].as_str() {
        Some("mm1" | "mg1") => fluid::one_server(case),
        Some("mmc") => slots::several_slots(case),
        Some("priority") => slots::two_classes(case),
        Some("mmc-priority") => slots::two_classes_on_several_slots(case),
        Some("repeat") => slots::repeat(case),
        Some("property") => properties::holds(case),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

fn number(value: &Value) -> f64 {
    exact(value).to_f64()
}

fn random() -> Pcg64 {
    Pcg64::seed_from_u64(20_070_211)
}

/// A quarter of the suggested count: the tolerances still hold, and a million jobs take a minute and a half.
fn count(case: &Value) -> Result<usize, String> {
    case["suggested_jobs"]
        .as_u64()
        .map(|jobs| jobs as usize / 4)
        .ok_or_else(|| "no suggested_jobs".to_owned())
}

/// Returns the size distribution of a case.
fn service(params: &Value) -> Result<Distribution, String> {
    let mean = number(&params["mean"]);
    Ok(match params["service"].as_str() {
        Some("exponential") => Distribution::Exponential(mean),
        Some("deterministic") => Distribution::Fixed(mean),
        Some("uniform") => Distribution::Uniform([0.0, 2.0 * mean]),
        Some("hyperexponential") => Distribution::Hyperexponential {
            means: vec![mean / 2.0, mean * 1.5],
            shares: vec![1.0, 1.0],
        },
        service => return Err(format!("unknown service {service:?}")),
    })
}

/// Checks a mean against the tolerance of a case.
fn near(case: &Value, what: &str, found: f64, expected: &Value) -> Result<(), String> {
    let expected = number(expected);
    let tolerance = number(&case["relative_tolerance"]);
    if (found - expected).abs() <= tolerance * expected {
        Ok(())
    } else {
        Err(format!(
            "{what} is {found}, not {expected} within {tolerance}"
        ))
    }
}

/// Returns the mean without the first 5 %.
fn after_warmup(numbers: &[f64]) -> f64 {
    let rest = &numbers[numbers.len() / 20..];
    rest.iter().sum::<f64>() / rest.len() as f64
}
