//! Family `fcs`: the formulas and both algorithms, as pure decisions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use napreduce_engine::Ratio;
use napreduce_schedulers::fcs::estimates::{
    self, Bounds, RemainingWork, RunningReduce, ShuffleTime, remaining_shuffle,
};
use napreduce_schedulers::fcs::launch::{LaunchChoice, PreemptedTasks};
use napreduce_schedulers::larger::{LargerJob, select};
use serde_json::Value;

use crate::oracles::cases::{self, exact};

#[test]
fn oracle_fcs() {
    cases::check("fcs", |case| match text(&case["kind"]) {
        "migration-threshold" => threshold(case),
        "remaining-shuffle" => shuffle(case),
        "slackness" => slackness(case),
        "select-to-preempt" => select_to_preempt(case),
        "select-to-launch" => select_to_launch(case),
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

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found:?}, not {expected:?}"))
    }
}

/// Rounds to the millionths of the cases, halves up.
fn millionths(value: Ratio) -> u64 {
    value.of_rounded(1_000_000)
}

fn threshold(case: &Value) -> Result<(), String> {
    let found =
        estimates::migration_threshold(whole(&case["nodes"]), exact(&case["locality"]).to_f64());
    let expected = &case["expect"];
    equal(
        "D in millionths",
        (found * 1e6).round() as u64,
        millionths(exact(&expected["D"])),
    )?;
    equal(
        "D rounded",
        found.round() as u64,
        expected["rounded"].as_u64().unwrap(),
    )
}

fn shuffle(case: &Value) -> Result<(), String> {
    let left = u64::from(whole(&case["maps_left"]));
    let found = remaining_shuffle(left, exact(&case["map_rate"]), exact(&case["mean_map_s"]));
    equal(
        "the remaining shuffle time",
        found,
        shuffle_time(&case["expect"]),
    )
}

fn shuffle_time(value: &Value) -> ShuffleTime {
    if value == "infinity" {
        ShuffleTime::Infinite
    } else {
        ShuffleTime::Finite(exact(value))
    }
}

fn slackness(case: &Value) -> Result<(), String> {
    let bounds = Bounds {
        slackness: exact(&case["bound"]),
        progress_max: exact(&case["max_progress"]),
        service_min: exact(&case["min_service_s"]),
    };
    for task in list(&case["tasks"]) {
        let reduce = RunningReduce {
            total: exact(&task["total"]),
            service: exact(&task["service"]),
            progress: exact(&task["progress"]),
        };
        let found = millionths(estimates::slackness(&reduce));
        let expected = &task["expect"];
        equal(
            &format!("the slackness of {task}"),
            found,
            millionths(exact(&expected["slack"])),
        )?;
        let preemptable = estimates::is_preemptable(&reduce, &bounds);
        equal(
            &format!("whether to preempt {task}"),
            preemptable,
            expected["preemptable"].as_bool().unwrap(),
        )?;
    }
    Ok(())
}

fn remaining(job: &Value) -> RemainingWork {
    RemainingWork {
        shuffle: shuffle_time(&job["T_rs"]),
        reduce: exact(&job["R_left"]),
    }
}

fn select_to_preempt(case: &Value) -> Result<(), String> {
    let claimant = &case["claimant"];
    let running = |(position, job): (usize, &Value)| {
        let tasks = whole(&job["preemptable_reduces"]);
        (
            position,
            LargerJob {
                id: text(&job["id"]).to_owned(),
                remaining: remaining(job),
                tasks,
            },
        )
    };
    let mut jobs: Vec<_> = list(&case["running"])
        .iter()
        .enumerate()
        .map(running)
        .collect();
    jobs.sort_by_key(|(position, job)| Reverse((job.remaining, *position)));
    let lacking = whole(&claimant["demand"]).saturating_sub(whole(&case["free"]));
    let jobs = jobs.into_iter().map(|(_, job)| job);
    let found: BTreeMap<String, u32> = select(&remaining(claimant), lacking, jobs)
        .into_iter()
        .collect();
    let expected = case["expect"].as_object().unwrap();
    let expected = expected
        .iter()
        .map(|(name, tasks)| (name.clone(), whole(tasks)))
        .collect();
    equal("what is preempted", found, expected)
}

/// A job of a case of Algorithm 2.
struct Waiting<'a> {
    id: &'a str,
    preempted: PreemptedTasks<&'a str, &'a str>,
    unlaunched: u32,
}

fn select_to_launch(case: &Value) -> Result<(), String> {
    let patience = case["D"].as_u64().ok_or("D is no count")?;
    let mut jobs: Vec<Waiting<'_>> = list(&case["jobs"])
        .iter()
        .map(|job| {
            let mut preempted = PreemptedTasks::default();
            list(&job["preempted"])
                .iter()
                .for_each(|task| preempted.wait(text(&task["task"]), text(&task["node"])));
            Waiting {
                id: text(&job["id"]),
                preempted,
                unlaunched: whole(&job["unlaunched"]),
            }
        })
        .collect();
    let heartbeats = list(&case["heartbeats"]).iter().map(text);
    let found: Vec<_> = heartbeats
        .map(|node| heartbeat(&mut jobs, node, patience))
        .collect();
    let word = |entry: &Value, key| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let expected: Vec<_> = list(&case["expect"])
        .iter()
        .map(|entry| ["job", "action", "task"].map(|key| word(entry, key)))
        .collect();
    equal("what is launched", found, expected)
}

/// Offers a free slot of a node. Returns job, action and task; `None` if nothing is launched.
fn heartbeat<'a>(jobs: &mut [Waiting<'a>], node: &'a str, patience: u64) -> [Option<String>; 3] {
    for job in jobs {
        let action = match job
            .preempted
            .choose(node, job.unlaunched > 0, patience, true)
        {
            None => continue,
            Some(LaunchChoice::Fresh) => {
                job.unlaunched -= 1;
                ("launch", None)
            }
            Some(LaunchChoice::Return(task)) => ("resume", Some(task)),
            Some(LaunchChoice::Migrate(task)) => ("migrate", Some(task)),
        };
        if let Some(task) = action.1 {
            job.preempted.stop_waiting(task);
        }
        return [
            Some(job.id.to_owned()),
            Some(action.0.to_owned()),
            action.1.map(str::to_owned),
        ];
    }
    [None, None, None]
}
