//! Family `preemption-primitives`: two tasks on one slot with the primitives by which the second preempts the
//! first; closed forms, exact. Runs the trigger scheduler in the simulator.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use napreduce_engine::{Ratio, Slots, Span, TaskKind, Time};
use napreduce_schedulers::trigger::{Trigger, TriggerSettings};
use napreduce_sim::{
    Cost, ProgressMark, Run, SimulatedJob, Simulation, SimulationSettings, Workload,
};
use serde_json::Value;

use crate::oracles::cases::{check, exact};

#[test]
fn oracle_preemption_primitives() {
    check("preemption-primitives", |case| {
        match case["kind"].as_str() {
            Some("two-task") => each_primitive(case, Span(0), Span(0)),
            Some("two-task-overheads") => {
                each_primitive(case, span(&case["suspend_s"]), span(&case["resume_s"]))
            }
            Some("heartbeat") => heartbeat(case),
            kind => Err(format!("unknown kind {kind:?}")),
        }
    });
}

/// Parses seconds.
fn span(value: &Value) -> Span {
    let micros = exact(value) * Ratio::whole(1_000_000);
    assert_eq!(
        micros.denominator(),
        1,
        "{value} is not a whole number of microseconds"
    );
    Span(u64::try_from(micros.numerator()).unwrap())
}

fn seconds(span: u64) -> Ratio {
    Ratio::new(i128::from(span), 1_000_000)
}

fn one_slot() -> SimulationSettings {
    SimulationSettings::new(1, Slots { map: 1, reduce: 1 })
}

/// Returns the actions that preempt and resume the low task.
fn actions(primitive: &str) -> Result<Option<(&'static str, &'static str)>, String> {
    Ok(match primitive {
        "wait" => None,
        "kill" => Some(("kill(low)", "launch(low)")),
        "suspend" => Some(("suspend(low)", "resume(low)")),
        "checkpoint_loss_1s" => Some(("checkpoint(low)", "launch(low)")),
        other => return Err(format!("unknown primitive {other}")),
    })
}

fn trigger(rules: &str) -> Result<Box<Trigger>, String> {
    let settings = TriggerSettings {
        rules: rules.to_owned(),
    };
    Ok(Box::new(
        Trigger::new(&settings).map_err(|error| error.to_string())?,
    ))
}

fn each_primitive(case: &Value, suspend: Span, resume: Span) -> Result<(), String> {
    for (primitive, expected) in case["expect"].as_object().ok_or("no expect")? {
        let run = two_tasks(case, primitive, suspend, resume)?;
        let high = run.job("high").ok_or("the high job never ended")?;
        let makespan = run.jobs.iter().map(|job| job.ended.0).max().unwrap_or(0);
        let found = [
            ("sojourn_high", seconds(high.sojourn().0)),
            ("makespan", seconds(makespan)),
            ("wasted", seconds(run.slot_time.wasted)),
        ];
        for (what, found) in found {
            if found != exact(&expected[what]) {
                return Err(format!(
                    "{primitive}: {what} is {found}, not {}",
                    expected[what]
                ));
            }
        }
    }
    Ok(())
}

fn two_tasks(case: &Value, primitive: &str, suspend: Span, resume: Span) -> Result<Run, String> {
    let share = exact(&case["progress_at_arrival"]);
    let rules = match actions(primitive)? {
        None => format!("when progress(low) >= {share} do submit(high)"),
        Some((away, back)) => {
            format!(
                "when progress(low) >= {share} do submit(high), {away}\nwhen finished(high) do {back}"
            )
        }
    };
    let mut settings = one_slot();
    settings.overheads.suspend = Cost::fixed(suspend);
    settings.overheads.resume = Cost::fixed(resume);
    settings.overheads.checkpoint_loss = Span::from_secs(1);
    settings.marks = vec![ProgressMark {
        job: "low".into(),
        kind: TaskKind::Map,
        index: 0,
        share,
    }];
    let low = SimulatedJob::new("low", Time(0)).with_maps(1, span(&case["low_seconds"]));
    let high = SimulatedJob::new("high", Time(0)).with_maps(1, span(&case["high_seconds"]));
    let workload = Workload::of(vec![low]).with_triggered(high);
    Simulation::new(trigger(&rules)?, settings, workload)
        .run()
        .map_err(|error| error.to_string())
}

fn heartbeat(case: &Value) -> Result<(), String> {
    let primitive = case["primitive"].as_str().ok_or("no primitive")?;
    let Some((away, back)) = actions(primitive)? else {
        return Err("nothing is preempted by wait".to_owned());
    };
    let rules = format!("when submitted(high) do {away}\nwhen finished(high) do {back}");
    for (mode, expected) in case["expect"].as_object().ok_or("no expect")? {
        let mut settings = one_slot();
        settings.overheads.heartbeat = span(&case["heartbeat_s"]);
        settings.overheads.checkpoint_loss = Span::from_secs(1);
        settings.overheads.out_of_band = match mode.as_str() {
            "period_only" => false,
            "out_of_band" => true,
            other => return Err(format!("unknown mode {other}")),
        };
        let arrival = Time(span(&case["high_arrival_s"]).0);
        let low = SimulatedJob::new("low", Time(0)).with_maps(1, span(&case["low_seconds"]));
        let high = SimulatedJob::new("high", arrival).with_maps(1, span(&case["high_seconds"]));
        let log = Shared::default();
        let simulation = Simulation::new(trigger(&rules)?, settings, Workload::of(vec![low, high]));
        let run = simulation
            .with_log(Box::new(log.clone()))
            .run()
            .map_err(|error| error.to_string())?;
        let worked = |name: &str| {
            run.job(name)
                .and_then(|job| job.worked)
                .ok_or("it never worked")
        };
        let (high_start, high_end) = worked("high")?;
        let (_, low_end) = worked("low")?;
        for (what, expected) in expected.as_object().ok_or("no expect of the mode")? {
            let found = match what.as_str() {
                "high_start" => seconds(high_start.0),
                "high_end" => seconds(high_end.0),
                "low_end" => seconds(low_end.0),
                "low_resumed" => {
                    log.time_of_last(&["resume job_0001", "launch job_0001", "restore job_0001"])
                }
                other => return Err(format!("unknown time {other}")),
            };
            if found != exact(expected) {
                return Err(format!("{mode}: {what} is {found}, not {expected}"));
            }
        }
    }
    Ok(())
}

/// A log in memory.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    /// Returns the time of the last event that led to one of these orders. Without latency an order given in
    /// reply to a heartbeat acts immediately.
    fn time_of_last(&self, orders: &[&str]) -> Ratio {
        let text = String::from_utf8(self.0.borrow().clone()).unwrap();
        let mut now = Ratio::ZERO;
        let mut last = Ratio::ZERO;
        for line in text.lines() {
            if !line.starts_with(' ') {
                now = line.split_once("s ").unwrap().0.parse().unwrap();
            } else if orders.iter().any(|order| line.contains(order)) {
                last = now;
            }
        }
        last
    }
}
