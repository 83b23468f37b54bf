//! Family `natjam`: evictions and reclaim lists. Deadlines, the choice of tasks (`releaser`) and whole runs
//! (`scenarios`) are in submodules.

mod deadlines;
mod releaser;
mod scenarios;

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{JobId, Ratio, Span, Time};
use napreduce_schedulers::natjam::{
    Evictions, Holding, JobEviction, ReclaimLimits, ReclaimList, new_requests,
};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_natjam() {
    check("natjam", |case| match case["kind"].as_str() {
        Some("job-eviction") => job_eviction(case),
        Some("theorem-2.1") => releaser::theorem(case),
        Some("scenario") => scenarios::scenario(case),
        Some("reclaim") => reclaim(case),
        Some("kill-timeout") => kill_timeout(case),
        Some("deadline-victim") => deadlines::deadline_victim(case),
        Some("laxity-victim") => deadlines::laxity_victim(case),
        Some("consistency") => deadlines::consistency(case),
        other => Err(format!("unknown kind {other:?}")),
    });
}

/// The job names of a case in alphabetical order, which is their order of submission: the id of a job is its
/// index.
struct Names(Vec<String>);

impl Names {
    fn new(names: impl IntoIterator<Item = String>) -> Names {
        Names(
            names
                .into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        )
    }

    fn id(&self, name: &str) -> Result<JobId, String> {
        let place = self.0.iter().position(|known| known == name);
        place
            .map(|place| JobId(place as u32))
            .ok_or_else(|| format!("there is no job {name}"))
    }

    fn name(&self, job: JobId) -> &str {
        &self.0[job.0 as usize]
    }
}

fn count(value: &Value) -> Result<u32, String> {
    let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| format!("{value} is no count"))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what}: {got:?} instead of {expected:?}"))
    }
}

fn job_eviction(case: &Value) -> Result<(), String> {
    let usage = case["usage"].as_object().ok_or("no usage")?;
    let names = Names::new(usage.keys().cloned());
    let mut holdings = Vec::new();
    for (name, held) in usage {
        let job = names.id(name)?;
        holdings.push(Holding {
            job,
            submitted: Time(u64::from(job.0)),
            usage: count(held)?,
        });
    }
    let needed = count(&case["containers_needed"])?;
    for (policy, expected) in case["expect"].as_object().ok_or("no expectation")? {
        match policy.as_str() {
            "MR" => taken(
                JobEviction::MostResources,
                &holdings,
                needed,
                &names,
                expected,
            )?,
            "LR" => taken(
                JobEviction::LeastResources,
                &holdings,
                needed,
                &names,
                expected,
            )?,
            "PR" => probable(&holdings, needed, &names, expected)?,
            other => return Err(format!("unknown policy {other}")),
        }
    }
    Ok(())
}

/// Returns how many containers each job loses.
fn lost(
    choice: JobEviction,
    holdings: &[Holding],
    needed: u32,
    rng: &mut Pcg64,
) -> BTreeMap<JobId, u32> {
    let mut evictions = Evictions::new(choice, holdings.iter().copied());
    let mut lost = BTreeMap::new();
    for _ in 0..needed {
        evictions
            .choose(rng)
            .into_iter()
            .for_each(|job| *lost.entry(job).or_default() += 1);
    }
    lost
}

fn taken(
    choice: JobEviction,
    holdings: &[Holding],
    needed: u32,
    names: &Names,
    expected: &Value,
) -> Result<(), String> {
    let lost = lost(choice, holdings, needed, &mut Pcg64::seed_from_u64(0));
    let got: BTreeMap<&str, u32> = lost
        .iter()
        .map(|(job, count)| (names.name(*job), *count))
        .collect();
    let mut said = BTreeMap::new();
    for (name, lost) in expected.as_object().ok_or("no counts")? {
        said.insert(name.as_str(), count(lost)?);
    }
    same(&format!("{choice:?}"), got, said)
}

/// Checks the probabilistic choice: exact moments over all outcomes, and actual draws.
fn probable(
    holdings: &[Holding],
    needed: u32,
    names: &Names,
    expected: &Value,
) -> Result<(), String> {
    const RUNS: u32 = 20_000;
    let first = Evictions::new(JobEviction::Probabilistic, holdings.iter().copied()).odds();
    let first: BTreeMap<JobId, Ratio> = first.into_iter().collect();
    let outcomes = outcomes(holdings, needed);
    let mut rng = Pcg64::seed_from_u64(7);
    let mut drawn: BTreeMap<JobId, f64> = BTreeMap::new();
    for _ in 0..RUNS {
        for (job, count) in lost(JobEviction::Probabilistic, holdings, needed, &mut rng) {
            *drawn.entry(job).or_default() += f64::from(count);
        }
    }
    for (place, holding) in holdings.iter().enumerate() {
        let name = names.name(holding.job);
        let moment = |power: u32| {
            let term = |(left, odds): (&Vec<u32>, &Ratio)| {
                Ratio::whole(u64::from(holding.usage - left[place]).pow(power)) * *odds
            };
            outcomes
                .iter()
                .map(term)
                .fold(Ratio::ZERO, |sum, term| sum + term)
        };
        let mean = moment(1);
        let square = moment(2);
        let variance = square - mean * mean;
        same(
            &format!("expected number of {name}"),
            mean,
            exact(&expected["expected"][name]),
        )?;
        same(
            &format!("variance of {name}"),
            variance,
            exact(&expected["variance"][name]),
        )?;
        let odds = first.get(&holding.job).copied().unwrap_or(Ratio::ZERO);
        same(
            &format!("first pick of {name}"),
            odds,
            exact(&expected["first_pick_probability"][name]),
        )?;
        let average = drawn.get(&holding.job).copied().unwrap_or_default() / f64::from(RUNS);
        let tolerance = 5.0 * (variance.to_f64() / f64::from(RUNS)).sqrt() + 1e-9;
        if (average - mean.to_f64()).abs() > tolerance {
            return Err(format!(
                "{name} lost {average} on average of {RUNS} runs of seed 7, not {mean}"
            ));
        }
    }
    Ok(())
}

/// Returns all outcomes with their probability.
fn outcomes(holdings: &[Holding], needed: u32) -> BTreeMap<Vec<u32>, Ratio> {
    let start: Vec<u32> = holdings.iter().map(|holding| holding.usage).collect();
    let mut now = BTreeMap::from([(start, Ratio::ONE)]);
    for _ in 0..needed {
        let mut next: BTreeMap<Vec<u32>, Ratio> = BTreeMap::new();
        for (left, odds) in now {
            let held = holdings.iter().zip(&left).map(|(holding, usage)| Holding {
                usage: *usage,
                ..*holding
            });
            for (job, chance) in Evictions::new(JobEviction::Probabilistic, held).odds() {
                let mut after = left.clone();
                let place = holdings
                    .iter()
                    .position(|holding| holding.job == job)
                    .unwrap();
                after[place] -= 1;
                let sum = next.entry(after).or_insert(Ratio::ZERO);
                *sum = *sum + odds * chance;
            }
        }
        now = next;
    }
    now
}

fn reclaim(case: &Value) -> Result<(), String> {
    for run in case["runs"].as_array().ok_or("no runs")? {
        let full = run["full"]
            .as_bool()
            .ok_or("full is neither true nor false")?;
        let got = new_requests(full, count(&run["pending"])?, count(&run["listed"])?);
        same(
            &format!("t = {}", run["t"]),
            got,
            count(&run["expect_new"])?,
        )?;
    }
    Ok(())
}

fn kill_timeout(case: &Value) -> Result<(), String> {
    const SECOND: u64 = 1_000_000;
    let span = |what: &str| Span(exact(&case[what]).of(SECOND));
    let kill_timeout = span("kill_timeout_s");
    let expired_time = span("expired_time_s");
    let interval = span("run_interval_s");
    let limits = ReclaimLimits {
        kill_timeout,
        expired_time,
        interval,
    };
    let requested = Time(0) + span("requested_at");
    let expected = |what: &str| Time(0) + Span(exact(&case["expect"][what]).of(SECOND));
    let mut list = ReclaimList::default();
    let mut killed = None;
    let mut dropped = None;
    let mut now = Time(0);
    while dropped.is_none() && now < Time(1_000_000 * SECOND) {
        if now >= requested && killed.is_none() && list.is_empty() {
            list.append(requested, JobId(1));
        }
        let aged = list.age(now, &limits);
        killed = killed.or((!aged.killed.is_empty()).then_some(now));
        dropped = (!aged.dropped.is_empty()).then_some(now);
        now = now + interval;
    }
    same("kill_at", killed, Some(expected("kill_at")))?;
    same(
        "leaves_expired_at",
        dropped,
        Some(expected("leaves_expired_at")),
    )?;
    // The engine kills when the grace period of the request ends.
    let offset = Span(requested.0 % interval.0.max(1));
    if offset == Span(0) {
        same(
            "end of the grace",
            requested + limits.grace(),
            expected("kill_at"),
        )?;
    }
    Ok(())
}
