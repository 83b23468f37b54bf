//! Family `fluid-single-server`: exact completion times on one server with known sizes.

use crate::oracles::fluid::{FluidJob, FluidPolicy, completions};
use napreduce_engine::Ratio;
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_fluid_single_server() {
    check("fluid-single-server", |case| {
        let jobs = jobs(&case["jobs"]);
        for (policy, ends) in case["expect"].as_object().ok_or("no expect")? {
            expect_ends(&jobs, policy_of(policy)?, policy, ends)?;
        }
        Ok(())
    });
}

/// The names and jobs, in submit order.
pub struct Jobs {
    pub names: Vec<String>,
    pub jobs: Vec<FluidJob<Ratio>>,
}

/// Returns the jobs of a case, which may be listed in any order.
pub fn jobs(list: &Value) -> Jobs {
    let mut all: Vec<(String, FluidJob<Ratio>)> =
        list.as_array().unwrap().iter().map(job).collect();
    all.sort_by_key(|(_, job)| job.arrival);
    let (names, jobs) = all.into_iter().unzip();
    Jobs { names, jobs }
}

fn job(value: &Value) -> (String, FluidJob<Ratio>) {
    let arrival = if value["arrival"].is_null() {
        &value["release"]
    } else {
        &value["arrival"]
    };
    let mut job = FluidJob::new(exact(arrival), exact(&value["size"]));
    if !value["estimate"].is_null() {
        job.estimate = exact(&value["estimate"]);
    }
    if !value["deadline"].is_null() {
        job.deadline = exact(&value["deadline"]);
    }
    (value["id"].as_str().unwrap().to_owned(), job)
}

fn policy_of(name: &str) -> Result<FluidPolicy, String> {
    Ok(match name {
        "FIFO" => FluidPolicy::Fifo,
        "PS" => FluidPolicy::Ps,
        "SRPT" => FluidPolicy::Srpt,
        "PSJF" => FluidPolicy::Psjf,
        "FSP" => FluidPolicy::FspFifo,
        "LAS" => FluidPolicy::Las,
        other => return Err(format!("unknown policy {other}")),
    })
}

/// Checks the exact ends under a policy, and that the floating-point version agrees.
fn expect_ends(jobs: &Jobs, policy: FluidPolicy, name: &str, ends: &Value) -> Result<(), String> {
    let found = completions(&jobs.jobs, policy);
    let fast = completions(&jobs.jobs.iter().map(fast).collect::<Vec<_>>(), policy);
    for (position, job) in jobs.names.iter().enumerate() {
        let expected = &ends[job];
        if expected.is_null() {
            return Err(format!("{name}: no end is given for {job}"));
        }
        if found[position] != exact(expected) {
            return Err(format!(
                "{name}: {job} ends at {}, not at {expected}",
                found[position]
            ));
        }
        if (fast[position] - found[position].to_f64()).abs() > 1e-9 {
            return Err(format!(
                "{name}: {job} ends at {} in floats",
                fast[position]
            ));
        }
    }
    Ok(())
}

/// Converts a job to floats.
pub fn fast(job: &FluidJob<Ratio>) -> FluidJob<f64> {
    FluidJob {
        arrival: job.arrival.to_f64(),
        size: job.size.to_f64(),
        estimate: job.estimate.to_f64(),
        weight: job.weight.to_f64(),
        deadline: job.deadline.to_f64(),
    }
}
