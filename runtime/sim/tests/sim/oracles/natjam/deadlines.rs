//! Deadline kinds of family `natjam`: claimants, victims and matching pairs of choices.

use napreduce_engine::{Ratio, Span, Time};
use napreduce_schedulers::natjam::{
    Contender, DeadlineEviction, DeadlineSelection, Urgency, UrgencyKey, claimant, victim,
};
use serde_json::Value;

use super::{Names, count, same};
use crate::oracles::cases::exact;

/// Returns a unit in which every time of a case is whole.
fn units(values: &[&Value]) -> i128 {
    let known = values.iter().filter(|value| !value.is_null());
    known
        .map(|value| exact(value).denominator())
        .fold(1, |units, denominator| {
            let mut left = units;
            let mut right = denominator;
            while right != 0 {
                (left, right) = (right, left % right);
            }
            units / left * denominator
        })
}

fn whole(value: &Value, units: i128) -> Result<u64, String> {
    let scaled = exact(value) * Ratio::new(units, 1);
    u64::try_from(scaled.numerator()).map_err(|_| format!("{value} is before the start of time"))
}

/// Returns the jobs of a state in key order.
fn queue(
    state: &Value,
    names: &Names,
    units: i128,
    urgency: impl Fn(Option<Time>, Time, Span) -> Urgency,
) -> Result<Vec<Contender>, String> {
    let time = |value: &Value| {
        if value.is_null() {
            Ok(0)
        } else {
            whole(value, units)
        }
    };
    let now = Time(time(&state["now"])?);
    let mut queue = Vec::new();
    for asked in state["jobs"].as_array().ok_or("no jobs")? {
        let job = names.id(asked["id"].as_str().ok_or("a job without id")?)?;
        let deadline = &asked["deadline"];
        let deadline = if deadline.is_null() {
            None
        } else {
            Some(Time(whole(deadline, units)?))
        };
        let remaining = Span(time(&asked["remaining"])?);
        let part = |what: &str| {
            if asked[what].is_null() {
                Ok(0)
            } else {
                count(&asked[what])
            }
        };
        let allocated = part("allocated")?;
        let pending = part("pending")?;
        let submitted = Time(u64::from(job.0));
        queue.push(Contender {
            job,
            submitted,
            urgency: urgency(deadline, now, remaining),
            allocated,
            pending,
        });
    }
    queue.sort_by(Contender::order);
    Ok(queue)
}

fn by_deadline(deadline: Option<Time>, _: Time, _: Span) -> Urgency {
    Urgency::of_deadline(deadline)
}

fn names(state: &Value) -> Names {
    let jobs = state["jobs"].as_array().into_iter().flatten();
    Names::new(jobs.filter_map(|job| Some(job["id"].as_str()?.to_owned())))
}

fn units_of(state: &Value) -> i128 {
    let jobs = state["jobs"].as_array().into_iter().flatten();
    let mut values = vec![&state["now"]];
    values.extend(jobs.flat_map(|job| [&job["deadline"], &job["remaining"]]));
    units(&values)
}

/// Checks claimant and victim of a queue; `prefix` selects the expectations of one of two policies.
fn check_pair(
    queue: &[Contender],
    names: &Names,
    expect: &Value,
    prefix: &str,
) -> Result<(), String> {
    let name = |place: Option<usize>| place.map(|place| names.name(queue[place].job));
    let claims = claimant(queue);
    let gives = claims.and_then(|claims| victim(queue, claims, Span(0)));
    for (what, got) in [("claimant", claims), ("victim", gives)] {
        let what = format!("{prefix}{what}");
        if expect.get(&what).is_none() {
            return Err(format!("no {what} is expected, not even null"));
        }
        same(&what, name(got), expect[&what].as_str())?;
    }
    Ok(())
}

pub fn deadline_victim(case: &Value) -> Result<(), String> {
    for state in case["states"].as_array().ok_or("no states")? {
        let names = names(state);
        let queue = queue(state, &names, units_of(state), by_deadline)?;
        check_pair(&queue, &names, &state["expect"], "")?;
    }
    Ok(())
}

pub fn laxity_victim(case: &Value) -> Result<(), String> {
    for state in case["states"].as_array().ok_or("no states")? {
        let names = names(state);
        let units = units_of(state);
        let expect = &state["expect"];
        let by_laxity = queue(state, &names, units, Urgency::of_laxity)?;
        for job in &by_laxity {
            let name = names.name(job.job);
            let laxity = job.urgency.micros().map(|laxity| Ratio::new(laxity, units));
            let said = &expect["laxity"][name];
            let said = if said.is_null() {
                None
            } else {
                Some(exact(said))
            };
            same(&format!("laxity of {name}"), laxity, said)?;
        }
        for (prefix, queue) in [
            ("mlf_", by_laxity),
            ("mdf_", queue(state, &names, units, by_deadline)?),
        ] {
            let order: Vec<&str> = queue.iter().map(|job| names.name(job.job)).collect();
            let said = expect[format!("{prefix}order")]
                .as_array()
                .ok_or("no order is expected")?;
            same(
                &format!("{prefix}order"),
                order,
                said.iter().filter_map(Value::as_str).collect(),
            )?;
            check_pair(&queue, &names, expect, prefix)?;
        }
    }
    Ok(())
}

pub fn consistency(case: &Value) -> Result<(), String> {
    let names = names(case);
    let holder = case["initial_holder"]
        .as_str()
        .ok_or("nobody holds the slot")?;
    for (pair, expected) in case["expect"].as_object().ok_or("no expectation")? {
        let (eviction, selection) = pair.split_once('_').ok_or("a pair is written mdf_edf")?;
        let eviction = match eviction {
            "mdf" => DeadlineEviction::MaximumDeadlineFirst,
            "mlf" => DeadlineEviction::MaximumLaxityFirst,
            other => return Err(format!("unknown eviction {other}")),
        };
        let selection = match selection {
            "edf" => DeadlineSelection::EarliestDeadlineFirst,
            "llf" => DeadlineSelection::LeastLaxityFirst,
            other => return Err(format!("unknown selection {other}")),
        };
        let key = eviction.paired_with(selection);
        same(
            &format!("{pair} rejected"),
            Some(key.is_err()),
            expected["rejected"].as_bool(),
        )?;
        let Ok(key) = key else { continue };
        let (runs, swaps) = settle(case, &names, holder, key)?;
        same(
            &format!("{pair} runs"),
            Some(runs.as_str()),
            expected["runs"].as_str(),
        )?;
        same(
            &format!("{pair} swaps"),
            swaps,
            count(&expected["swaps_at_same_instant"])?,
        )?;
    }
    Ok(())
}

/// Swaps at one instant until no job loses its slot. Returns the final holder and the number of swaps.
fn settle(
    case: &Value,
    names: &Names,
    holder: &str,
    key: UrgencyKey,
) -> Result<(String, u32), String> {
    const SWAPS_MAX: u32 = 100;
    let urgency = match key {
        UrgencyKey::Deadline => by_deadline,
        UrgencyKey::Laxity => Urgency::of_laxity,
    };
    let mut holds = names.id(holder)?;
    let mut swaps = 0;
    loop {
        let mut queue = queue(case, names, units_of(case), urgency)?;
        for job in &mut queue {
            job.allocated = u32::from(job.job == holds);
            job.pending = u32::from(job.job != holds);
        }
        let claims = claimant(&queue);
        let gives = claims.filter(|&claims| victim(&queue, claims, Span(0)).is_some());
        let Some(claims) = gives else {
            return Ok((names.name(holds).to_owned(), swaps));
        };
        if swaps == SWAPS_MAX {
            return Err(format!("{swaps} swaps and no end under {key:?}"));
        }
        (holds, swaps) = (queue[claims].job, swaps + 1);
    }
}
