//! Family `swim-trace-facts`: exact facts of the SWIM traces. Traces come from the repository (an excerpt) or
//! from the directory in `NAPREDUCE_TRACES`. Missing traces are reported and skipped.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;

use napreduce_sim::{SizeModel, SwimJob, SwimTrace};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::oracles::cases::check;

#[test]
fn oracle_swim_trace_facts() {
    check("swim-trace-facts", |case| {
        let name = case["file"].as_str().ok_or("no file")?;
        let Some(bytes) = trace(name) else {
            println!(
                "swim-trace-facts: {name} is not here and was not checked; set NAPREDUCE_TRACES to its folder"
            );
            return Ok(());
        };
        let digest: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if case["sha256"] != json!(digest) {
            return Err(format!("the digest is {digest}"));
        }
        let trace = SwimTrace::read(name, &bytes[..]).map_err(|error| error.to_string())?;
        for (what, expected) in case["expect"].as_object().ok_or("no expect")? {
            let found = fact(&trace.jobs, what)?;
            if found != *expected {
                return Err(format!("{what} is {found}, not {expected}"));
            }
        }
        Ok(())
    });
}

/// Returns the bytes of a trace, if it exists.
fn trace(name: &str) -> Option<Vec<u8>> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let folder = env::var_os("NAPREDUCE_TRACES").map_or(own, PathBuf::from);
    fs::read(folder.join(name)).ok()
}

fn fact(jobs: &[SwimJob], what: &str) -> Result<Value, String> {
    let sum = |of: fn(&SwimJob) -> u64| json!(jobs.iter().map(of).sum::<u64>());
    let zeros = |of: fn(&SwimJob) -> u64| json!(jobs.iter().filter(|job| of(job) == 0).count());
    let most = |of: fn(&SwimJob) -> u64| json!(jobs.iter().map(of).max().unwrap_or(0));
    let maps = |block: u64| {
        let model = SizeModel {
            block,
            ..SizeModel::default()
        };
        json!(jobs.iter().map(|job| model.maps(job)).sum::<u64>())
    };
    Ok(match what {
        "jobs" => json!(jobs.len()),
        "fields" => json!(jobs.iter().map(|job| job.fields).collect::<BTreeSet<u8>>()),
        "first_submit" => json!(jobs.first().map(|job| job.submit)),
        "last_submit" => json!(jobs.last().map(|job| job.submit)),
        "sum_of_gaps" => sum(|job| job.gap),
        "submit_nondecreasing" => json!(jobs.is_sorted_by_key(|job| job.submit)),
        "map_input_bytes" => sum(|job| job.map_input),
        "shuffle_bytes" => sum(|job| job.shuffle),
        "reduce_output_bytes" => sum(|job| job.output),
        "zero_map_input" => zeros(|job| job.map_input),
        "zero_shuffle" => zeros(|job| job.shuffle),
        "zero_output" => zeros(|job| job.output),
        "max_map_input" => most(|job| job.map_input),
        "max_shuffle" => most(|job| job.shuffle),
        "max_reduce_output" => most(|job| job.output),
        "upper_median_map_input" => {
            let mut sorted: Vec<u64> = jobs.iter().map(|job| job.map_input).collect();
            sorted.sort_unstable();
            json!(sorted.get(sorted.len() / 2))
        }
        "jobs_with_map_input_over_64MiB" => {
            json!(jobs.iter().filter(|job| job.map_input > 64 << 20).count())
        }
        "maps_at_64MiB_blocks" => maps(64 << 20),
        "maps_at_128MiB_blocks" => maps(128 << 20),
        other => return Err(format!("unknown fact {other}")),
    })
}
