//! Theorem 2.1 of Natjam: which tasks a job gives up, by the engine's choice in a simulated run, against an
//! enumeration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use napreduce_engine::{
    Actions, AttemptState, ClusterView, Event, JobId, Primitive, Ratio, Release, Scheduler, Slots,
    Span, SuspendedMax, TaskEviction, TaskId, TaskKind, Time, serve,
};
use napreduce_sim::{SimulatedJob, SimulatedMap, Simulation, SimulationSettings, Workload};
use serde_json::Value;

use super::{count, same};
use crate::oracles::cases::exact;

const SECOND: u64 = 1_000_000;
/// Active time of all tasks when some are suspended.
const BEFORE: Span = Span::from_secs(10);
const JOB: JobId = JobId(1);

/// Launches everything, suspends some tasks of the job at one time, and resumes them at another.
struct StopSome {
    eviction: TaskEviction,
    evicted: u32,
    stop: Time,
    go_on: Time,
    asked: bool,
    stopped: Arc<Mutex<BTreeSet<TaskId>>>,
}

impl Scheduler for StopSome {
    fn on_event(&mut self, _: Time, _: &Event, _: &ClusterView<'_>) {}

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let Some(job) = view.job(JOB) else { return };
        if let Some(offer) = actions.offer() {
            let waits = self.stop <= now && now < self.go_on;
            if waits || !serve(job, offer, actions) {
                actions.decline("not now");
            }
            return;
        }
        let mut stopped = self.stopped.lock().unwrap();
        if now == self.stop && !self.asked {
            self.asked = true;
            actions.release(Release {
                job: JOB,
                kind: TaskKind::Map,
                count: self.evicted,
                eviction: self.eviction,
                primitive: Primitive::Suspend,
                grace: None,
                reason: "they are to go on later".to_owned(),
                beneficiary: None,
            });
        }
        let suspended = job.attempts().filter_map(|attempt| view.attempt(attempt));
        let suspended = suspended.filter(|attempt| attempt.state() == AttemptState::Suspended);
        stopped.extend(suspended.map(|attempt| attempt.id().task));
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        [self.stop, self.go_on].into_iter().find(|time| *time > now)
    }
}

pub fn theorem(case: &Value) -> Result<(), String> {
    let mut remaining: Vec<(&str, Ratio)> = Vec::new();
    for (name, seconds) in case["remaining"].as_object().ok_or("no remaining times")? {
        remaining.push((name, exact(seconds)));
    }
    remaining.sort();
    let evicted = count(&case["evict"])?;
    let resume_after = exact(&case["resume_after"]);
    let choices = choices(&remaining, evicted as usize, resume_after);
    let best = choices
        .values()
        .copied()
        .min()
        .ok_or("nothing can be chosen")?;
    for (what, expected) in case["expect"].as_object().ok_or("no expectation")? {
        let eviction = match what.as_str() {
            "SRT" => TaskEviction::ShortestRemaining,
            "LRT" => TaskEviction::LongestRemaining,
            "all_choices" => {
                let said = expected.as_object().ok_or("no choices")?;
                let said = said
                    .iter()
                    .map(|(set, end)| (set.clone(), exact(end)))
                    .collect();
                same(what, choices.clone(), said)?;
                continue;
            }
            other => return Err(format!("unknown expectation {other}")),
        };
        let (names, completion) = run(&remaining, evicted, resume_after, eviction)?;
        let said: BTreeSet<&str> = expected["evicted"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        same(&format!("evicted by {what}"), names, said)?;
        same(
            &format!("completion by {what}"),
            completion,
            exact(&expected["completion"]),
        )?;
        if eviction == TaskEviction::ShortestRemaining {
            same("the best completion", completion, best)?;
        }
    }
    Ok(())
}

/// Returns every set of tasks that can be suspended, and the end of the job with it.
fn choices(
    remaining: &[(&str, Ratio)],
    evicted: usize,
    resume_after: Ratio,
) -> BTreeMap<String, Ratio> {
    let sets = (0_u32..1 << remaining.len()).filter(|set| set.count_ones() as usize == evicted);
    let choice = |set: u32| {
        let stopped = |place: usize| set & (1 << place) != 0;
        let end = |(place, (_, left)): (usize, &(&str, Ratio))| {
            if stopped(place) {
                *left + resume_after
            } else {
                *left
            }
        };
        let names = remaining
            .iter()
            .enumerate()
            .filter(|(place, _)| stopped(*place));
        let names: Vec<&str> = names.map(|(_, (name, _))| *name).collect();
        (
            names.join("+"),
            remaining
                .iter()
                .enumerate()
                .map(end)
                .max()
                .unwrap_or(Ratio::ZERO),
        )
    };
    sets.map(choice).collect()
}

/// Returns the tasks that the engine suspends, and the time from then to the end of the job.
fn run<'a>(
    remaining: &[(&'a str, Ratio)],
    evicted: u32,
    resume_after: Ratio,
    eviction: TaskEviction,
) -> Result<(BTreeSet<&'a str>, Ratio), String> {
    let stop = Time(0) + BEFORE;
    let stopped = Arc::new(Mutex::new(BTreeSet::new()));
    let go_on = stop + Span(resume_after.of(SECOND));
    let policy = StopSome {
        eviction,
        evicted,
        stop,
        go_on,
        asked: false,
        stopped: Arc::clone(&stopped),
    };
    let mut plan = SimulatedJob::new("research", Time(0));
    let task = |left: &Ratio| SimulatedMap {
        work: BEFORE + Span(left.of(SECOND)),
        ..SimulatedMap::default()
    };
    plan.maps = remaining.iter().map(|(_, left)| task(left)).collect();
    let slots = Slots {
        map: remaining.len() as u32,
        reduce: 0,
    };
    let mut settings = SimulationSettings::new(1, slots);
    settings.engine.preemption.suspended_max = SuspendedMax::Unlimited;
    settings.progress_period = Some(Span::from_secs(1));
    let run = Simulation::new(Box::new(policy), settings, Workload::of(vec![plan])).run();
    let run = run.map_err(|error| error.to_string())?;
    let ended = run.job("research").ok_or("the job did not end")?.ended;
    let names = stopped
        .lock()
        .unwrap()
        .iter()
        .map(|task| remaining[task.index as usize].0)
        .collect();
    Ok((
        names,
        Ratio::new(i128::from(ended.since(stop).0), i128::from(SECOND)),
    ))
}
