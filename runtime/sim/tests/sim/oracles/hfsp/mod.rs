//! Family `hfsp`: sizes, virtual cluster, victims and hysteresis as pure decisions; orders and scenarios.

mod divisible;
mod scenarios;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use napreduce_engine::{JobId, Ratio, Span, Time};
use napreduce_schedulers::hfsp::hysteresis::{Hysteresis, Mode};
use napreduce_schedulers::hfsp::size::{self, Confidence, Sample, Size};
use napreduce_schedulers::hfsp::{VirtualCluster, shares::Shares};
use napreduce_schedulers::larger::{LargerJob, select};
use serde_json::Value;

use self::divisible::{Course, DivisibleJob};
use crate::oracles::cases::{self, exact};

#[test]
fn oracle_hfsp() {
    cases::check("hfsp", |case| match text(&case["kind"]) {
        "fluid-capped" => fluid_capped(case),
        "virtual-allocation" => virtual_allocation(case),
        "aging" => aging(case),
        "map-estimate" => map_estimate(case),
        "reduce-estimate" => reduce_estimate(case),
        "initial-estimate" => initial_estimate(case),
        "hysteresis" => hysteresis(case),
        "victims" => victims(case),
        "slots" => scenarios::slots(case),
        "ordering" => scenarios::ordering(case),
        "initial-order" => scenarios::initial_order(case),
        kind => Err(format!("{kind} is no kind of this family")),
    });
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is not a string"))
}

fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is not an array"))
}

fn whole(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or_else(|| panic!("{value} is not a count"))
}

fn ids(jobs: &Value) -> Vec<String> {
    list(jobs)
        .iter()
        .map(|job| text(&job["id"]).to_owned())
        .collect()
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found:?}, not {expected:?}"))
    }
}

fn span(value: &Value) -> Span {
    let micros = exact(value) * Ratio::whole(1_000_000);
    assert_eq!(
        micros.denominator(),
        1,
        "{value} s is not a whole number of microseconds"
    );
    Span(u64::try_from(micros.numerator()).unwrap())
}

/// The id of a job is its position, which is its order of submission.
fn job_id(position: usize) -> JobId {
    JobId(u32::try_from(position).unwrap() + 1)
}

fn fluid_capped(case: &Value) -> Result<(), String> {
    let capacity = exact(&case["capacity"]);
    let job = |job: &Value| DivisibleJob {
        arrival: exact(&job["arrival"]),
        work: exact(&job["work"]),
        rate_max: exact(&job["max_rate"]),
    };
    let jobs: Vec<DivisibleJob> = list(&case["jobs"]).iter().map(job).collect();
    let names = ids(&case["jobs"]);
    for (policy, expected) in case["expect"].as_object().unwrap() {
        let course = match policy.as_str() {
            "PS" => divisible::fair_shares(capacity, &jobs),
            "FSP" => divisible::fair_sojourn(capacity, &jobs),
            other => return Err(format!("{other} is no policy of this kind")),
        };
        same_course(&names, &course, expected).map_err(|why| format!("{policy}: {why}"))?;
    }
    Ok(())
}

/// Checks completions, and rates at every time at which either list changes.
fn same_course(names: &[String], course: &Course, expected: &Value) -> Result<(), String> {
    let mut completions = Vec::new();
    for (name, completion) in names.iter().zip(&course.completions) {
        let completion = completion.ok_or_else(|| format!("{name} never completes"))?;
        equal(
            &format!("the completion of {name}"),
            completion,
            exact(&expected["completion"][name]),
        )?;
        completions.push(completion);
    }
    let entries: Vec<(Ratio, Vec<Ratio>)> = list(&expected["allocation"])
        .iter()
        .map(|entry| {
            let rate = |name: &String| entry["rate"].get(name).map_or(Ratio::ZERO, exact);
            (exact(&entry["from_time"]), names.iter().map(rate).collect())
        })
        .collect();
    let rate_at = |rates: &[(Ratio, Vec<Ratio>)], time: Ratio, job: usize| {
        let entry = rates.iter().rev().find(|(from, _)| *from <= time);
        if completions[job] <= time {
            Ratio::ZERO
        } else {
            entry.map_or(Ratio::ZERO, |(_, rates)| rates[job])
        }
    };
    let times = entries
        .iter()
        .chain(&course.rates)
        .map(|(from, _)| *from)
        .chain(completions.iter().copied());
    for time in times {
        for (job, name) in names.iter().enumerate() {
            let found = rate_at(&course.rates, time, job);
            let wanted = rate_at(&entries, time, job);
            equal(&format!("the rate of {name} at {time}"), found, wanted)?;
        }
    }
    Ok(())
}

fn virtual_allocation(case: &Value) -> Result<(), String> {
    let mut shares = Shares::new(whole(&case["virtual_slots"]));
    let jobs = list(&case["remaining_tasks"]);
    for (position, job) in jobs.iter().enumerate() {
        let weight = job.get("weight").map_or(1, whole);
        shares.enter(
            job_id(position),
            Time(position as u64),
            weight,
            whole(&job["tasks"]),
        );
    }
    shares.settle();
    for (position, name) in ids(&case["remaining_tasks"]).iter().enumerate() {
        equal(
            &format!("the share of {name}"),
            shares.allotted(job_id(position)),
            whole(&case["expect"][name]),
        )?;
    }
    Ok(())
}

fn aging(case: &Value) -> Result<(), String> {
    let mut cluster = VirtualCluster::new(whole(&case["virtual_slots"]));
    for (position, job) in list(&case["jobs"]).iter().enumerate() {
        let group = (span(&job["task_seconds"]), whole(&job["tasks"]));
        cluster.enter(job_id(position), Time(0), 1, &[group]);
    }
    let mut moments: Vec<(Span, &Value)> = Vec::new();
    for (key, expected) in case["expect"].as_object().unwrap() {
        let time = key
            .strip_prefix("at_")
            .ok_or_else(|| format!("{key} is no time"))?;
        moments.push((span(&Value::from(time)), expected));
    }
    moments.sort_by_key(|(time, _)| *time);
    for (time, expected) in moments {
        cluster.age(Time(0) + time);
        for (position, name) in ids(&case["jobs"]).iter().enumerate() {
            let left = cluster.remaining(job_id(position));
            equal(
                &format!("what is left of {name} at {time}"),
                left,
                span(&expected[name]),
            )?;
        }
    }
    Ok(())
}

fn map_estimate(case: &Value) -> Result<(), String> {
    let sample: Sample = list(&case["sample_s"]).iter().map(exact).collect();
    let tasks = whole(&case["tasks"]);
    let expected = &case["expect"];
    equal(
        "the mean",
        sample.mean(),
        Some(exact(&expected["task_mean"])),
    )?;
    equal(
        "the total",
        sample.size_of(tasks, Ratio::ZERO),
        Some(exact(&expected["phase_total"])),
    )?;
    let left = tasks
        .checked_sub(sample.count())
        .ok_or("the sample is larger than the job")?;
    equal(
        "the rest",
        sample.size_of(left, Ratio::ZERO),
        Some(exact(&expected["remaining"])),
    )
}

fn reduce_estimate(case: &Value) -> Result<(), String> {
    let delta = exact(&case["delta_s"]);
    for one in list(&case["samples"]) {
        let progress = exact(&one["progress"]);
        let found = size::reduce_time(delta, progress);
        equal(
            &format!("the time with progress {progress}"),
            found,
            Some(exact(&one["expect"])),
        )?;
    }
    Ok(())
}

fn initial_estimate(case: &Value) -> Result<(), String> {
    let assumed = Ratio::whole(60);
    for one in list(&case["cases"]) {
        let recent = Some(&one["recent_mean_s"])
            .filter(|mean| !mean.is_null())
            .map(exact);
        let confidence: Confidence =
            serde_json::from_value(one["confidence"].clone()).map_err(|error| error.to_string())?;
        let expected = match one["expect"].as_str() {
            Some("infinity") => Size::Infinite,
            _ => Size::Finite(exact(&one["expect"])),
        };
        let found = size::initial(whole(&one["tasks"]), recent, assumed, confidence);
        equal(&format!("the size of {one}"), found, expected)?;
    }
    Ok(())
}

fn hysteresis(case: &Value) -> Result<(), String> {
    let high = whole(&case["high"]);
    let low = whole(&case["low"]);
    let mut hysteresis = Hysteresis::default();
    let mode = |count: &Value| match hysteresis.decide(whole(count), high, low) {
        Mode::Eager => "eager",
        Mode::Wait => "wait",
    };
    let found: Vec<&str> = list(&case["suspended_counts"]).iter().map(mode).collect();
    equal(
        "the modes",
        found,
        list(&case["expect"]).iter().map(text).collect(),
    )
}

fn victims(case: &Value) -> Result<(), String> {
    let names = ids(&case["running"]);
    let holder = |(position, job): (usize, &Value)| LargerJob {
        id: position,
        remaining: exact(&job["remaining"]),
        tasks: whole(&job["tasks"]),
    };
    let mut holders: Vec<_> = list(&case["running"])
        .iter()
        .enumerate()
        .map(holder)
        .collect();
    holders.sort_by_key(|holder| Reverse((holder.remaining, holder.id)));
    for claim in list(&case["claims"]) {
        let taken = select(
            &exact(&claim["remaining"]),
            whole(&claim["tasks"]),
            holders.clone(),
        );
        let found: BTreeMap<&str, u32> = taken
            .into_iter()
            .map(|(id, tasks)| (names[id].as_str(), tasks))
            .collect();
        let expected = claim["expect"].as_object().unwrap();
        let expected = expected
            .iter()
            .map(|(name, tasks)| (name.as_str(), whole(tasks)))
            .collect();
        equal(&format!("what {claim} takes"), found, expected)?;
    }
    Ok(())
}
