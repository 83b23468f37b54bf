//! Family `edf-llf`: earliest deadline and least laxity first, by the fluid reference.

use std::cmp::Ordering;

use crate::oracles::fluid::{
    FluidJob, FluidPolicy, MachinePolicy, Periodic, completions, quantum_switches, switches,
    whole_tasks,
};
use napreduce_engine::Ratio;
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_edf_llf() {
    check("edf-llf", |case| match case["kind"].as_str() {
        Some("fluid") => expect_each(case, |jobs, name| {
            let policy = match name {
                "EDF" => FluidPolicy::Edf,
                "LLF" => FluidPolicy::Llf,
                other => return Err(format!("unknown policy {other}")),
            };
            Ok(completions(jobs, policy))
        }),
        Some("whole-tasks") => {
            let machines = case["machines"].as_u64().ok_or("no machines")? as usize;
            expect_each(case, |jobs, name| {
                Ok(whole_tasks(jobs, machines, on_machines(name)?))
            })
        }
        Some("switch-count") => switch_count(case),
        Some("periodic") => case["periodic"]
            .as_array()
            .ok_or("no sets")?
            .iter()
            .try_for_each(periodic),
        kind => Err(format!("unknown kind {kind:?}")),
    });
}

fn on_machines(name: &str) -> Result<MachinePolicy, String> {
    match name {
        "EDF" => Ok(MachinePolicy::Edf),
        "LLF" => Ok(MachinePolicy::Llf),
        other => Err(format!("unknown policy {other}")),
    }
}

/// Returns the jobs by release time, then by id: ties go to the smaller id.
fn jobs(case: &Value) -> (Vec<String>, Vec<FluidJob<Ratio>>) {
    let job = |value: &Value| {
        let job = FluidJob::new(exact(&value["release"]), exact(&value["size"]));
        (
            value["id"].as_str().unwrap().to_owned(),
            FluidJob {
                deadline: exact(&value["deadline"]),
                ..job
            },
        )
    };
    let mut all: Vec<_> = case["jobs"].as_array().unwrap().iter().map(job).collect();
    all.sort_by(|(one_id, one), (other_id, other)| {
        one.arrival
            .cmp(&other.arrival)
            .then_with(|| by_id(one_id, other_id))
    });
    all.into_iter().unzip()
}

/// Natural order of ids: the text, then the number at its end.
fn by_id(one: &str, other: &str) -> Ordering {
    let parts = |id: &str| {
        let text = id.trim_end_matches(|character: char| character.is_ascii_digit());
        (
            text.to_owned(),
            id[text.len()..].parse::<u64>().unwrap_or(0),
        )
    };
    parts(one).cmp(&parts(other))
}

fn expect_each(
    case: &Value,
    ends: impl Fn(&[FluidJob<Ratio>], &str) -> Result<Vec<Ratio>, String>,
) -> Result<(), String> {
    let (names, jobs) = jobs(case);
    for (policy, expected) in case["expect"].as_object().ok_or("no expect")? {
        let ends = ends(&jobs, policy)?;
        let lateness = jobs.iter().zip(&ends).map(|(job, end)| *end - job.deadline);
        let max_lateness = lateness.clone().max().ok_or("no jobs")?;
        let mut missed: Vec<&str> = names
            .iter()
            .zip(lateness)
            .filter(|(_, late)| *late > Ratio::ZERO)
            .map(|(id, _)| &**id)
            .collect();
        missed.sort_unstable();
        for (id, end) in names.iter().zip(&ends) {
            if *end != exact(&expected["completion"][id]) {
                return Err(format!("{policy}: {id} ends at {end}"));
            }
        }
        let mut given: Vec<&str> = expected["missed"]
            .as_array()
            .ok_or("no missed")?
            .iter()
            .filter_map(Value::as_str)
            .collect();
        given.sort_unstable();
        if missed != given || max_lateness != exact(&expected["max_lateness"]) {
            return Err(format!(
                "{policy}: misses {missed:?}, largest lateness {max_lateness}"
            ));
        }
    }
    Ok(())
}

fn switch_count(case: &Value) -> Result<(), String> {
    let (_, jobs) = jobs(case);
    for (what, expected) in case["expect"].as_object().ok_or("no expect")? {
        let counted = match what.as_str() {
            "EDF_switches" => switches(&jobs, MachinePolicy::Edf),
            "LLF_switches" => quantum_switches(&jobs, exact(&case["quantum"])),
            other => return Err(format!("unknown count {other}")),
        };
        if Some(counted) != expected.as_u64() {
            return Err(format!("{what} is {counted}"));
        }
    }
    Ok(())
}

fn periodic(set: &Value) -> Result<(), String> {
    let task = |task: &Value| (exact(&task[0]), exact(&task[1]));
    let tasks: Vec<(Ratio, Ratio)> = set["set"]
        .as_array()
        .ok_or("no set")?
        .iter()
        .map(task)
        .collect();
    let utilisation = tasks
        .iter()
        .fold(Ratio::ZERO, |sum, (size, period)| sum + *size / *period);
    if utilisation != exact(&set["utilisation"]) {
        return Err(format!("the utilisation is {utilisation}"));
    }
    let periodic = Periodic { tasks };
    let until = exact(&set["hyperperiod"]);
    for (what, expected) in set["expect"].as_object().ok_or("no expect")? {
        let met = match what.as_str() {
            "edf_feasible" => periodic.earliest_deadline_meets_all(until),
            "rate_monotonic_feasible" => periodic.rate_monotonic_meets_all(until),
            other => return Err(format!("unknown question {other}")),
        };
        if Some(met) != expected.as_bool() {
            return Err(format!("{what} of {} is {met}", set["set"]));
        }
    }
    Ok(())
}
