//! Several slots, and priorities with preemption: one-task jobs in the simulator, one second per unit of
//! time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use napreduce_engine::{
    ClusterView, Event, Fifo, JobId, Primitive, Report, Scheduler, Slots, Span, SuspendedMax,
    TaskId, Time,
};
use napreduce_sim::{Distribution, Run, SimulatedJob, Simulation, SimulationSettings, Workload};
use rand_pcg::Pcg64;
use serde_json::Value;

use super::policy::PriorityFirst;
use super::{after_warmup, count, near, number, random, service};

fn time(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// The theory has no limit on suspended jobs.
fn one_machine(slots: u32) -> SimulationSettings {
    let mut settings = SimulationSettings::new(
        1,
        Slots {
            map: slots,
            reduce: 1,
        },
    );
    settings.engine.preemption.suspended_max = SuspendedMax::Unlimited;
    settings
}

fn run(
    policy: Box<dyn Scheduler>,
    slots: u32,
    jobs: impl Iterator<Item = SimulatedJob> + 'static,
) -> Run {
    Simulation::new(policy, one_machine(slots), Workload::stream(jobs))
        .run()
        .unwrap()
}

/// A stream of one-task jobs.
fn stream(
    name: &'static str,
    priority: i32,
    rate: f64,
    sizes: Distribution,
) -> impl FnMut(&mut Pcg64) -> SimulatedJob {
    let (gaps, name): (_, Arc<str>) = (Distribution::Exponential(1.0 / rate), name.into());
    let mut now = 0.0;
    move |random| {
        now += gaps.draw(random);
        let mut job = SimulatedJob::new(name.clone(), Time(time(now)));
        job = job.with_maps(1, Span(time(sizes.draw(random))));
        job.priority = priority;
        job
    }
}

pub fn several_slots(case: &Value) -> Result<(), String> {
    let params = &case["params"];
    let mut random = random();
    let mut next = stream("job", 0, number(&params["lam"]), service(params)?);
    let jobs = (0..count(case)?).map(move |_| next(&mut random));
    let slots = params["servers"].as_u64().ok_or("no servers")? as u32;
    let run = run(Box::new(Fifo::default()), slots, jobs);
    let mut by_arrival: Vec<_> = run.jobs.iter().collect();
    by_arrival.sort_unstable_by_key(|job| job.job);
    for (what, expected) in case["expect"].as_object().ok_or("no expect")? {
        let found = match what.as_str() {
            "mean_response" => {
                let sojourns: Vec<f64> = by_arrival
                    .iter()
                    .map(|job| job.sojourn().0 as f64 / 1e6)
                    .collect();
                after_warmup(&sojourns)
            }
            "probability_of_waiting" => {
                let waited = |job: &&napreduce_sim::JobResult| {
                    let began = job.worked.map_or(job.submitted, |(first, _)| first);
                    f64::from(u8::from(began > job.submitted))
                };
                after_warmup(&by_arrival.iter().map(waited).collect::<Vec<f64>>())
            }
            "utilisation" => run.slot_time.busy[0] as f64 / run.slot_time.capacity[0] as f64,
            other => return Err(format!("unknown mean {other}")),
        };
        near(case, what, found, expected)?;
    }
    Ok(())
}

/// Returns high and low jobs in order of arrival, `count` in total.
fn two_streams(case: &Value) -> Result<impl Iterator<Item = SimulatedJob> + use<>, String> {
    let class = |name: &'static str, priority| {
        let params = &case["params"][name];
        let sizes = Distribution::Exponential(number(&params["mean"]));
        stream(name, priority, number(&params["lam"]), sizes)
    };
    let mut random = random();
    let mut high = class("high", 1);
    let mut low = class("low", 0);
    let mut next_high = high(&mut random);
    let mut next_low = low(&mut random);
    Ok((0..count(case)?).map(move |_| {
        if next_high.submit <= next_low.submit {
            std::mem::replace(&mut next_high, high(&mut random))
        } else {
            std::mem::replace(&mut next_low, low(&mut random))
        }
    }))
}

/// Returns the mean responses of high, low and all jobs.
fn responses(run: &Run) -> [f64; 3] {
    let mut by_arrival: Vec<_> = run.jobs.iter().collect();
    by_arrival.sort_unstable_by_key(|job| job.job);
    let of = |name: Option<&str>| {
        let jobs = by_arrival
            .iter()
            .filter(|job| name.is_none_or(|name| &*job.name == name));
        after_warmup(
            &jobs
                .map(|job| job.sojourn().0 as f64 / 1e6)
                .collect::<Vec<f64>>(),
        )
    };
    [of(Some("high")), of(Some("low")), of(None)]
}

pub fn two_classes(case: &Value) -> Result<(), String> {
    let expect = &case["expect"];
    for (primitive, policy) in policies() {
        let [high, low, _] = responses(&run(policy, 1, two_streams(case)?));
        for (class, found) in [("high", high), ("low", low)] {
            let what = format!("{primitive}_{class}");
            near(case, &what, found, &expect[&what])?;
        }
    }
    Ok(())
}

fn policies() -> [(&'static str, Box<dyn Scheduler>); 2] {
    [
        ("suspend", Box::new(PriorityFirst::new(Primitive::Suspend))),
        ("wait", Box::new(Fifo::default())),
    ]
}

pub fn two_classes_on_several_slots(case: &Value) -> Result<(), String> {
    let slots = case["params"]["servers"].as_u64().ok_or("no servers")? as u32;
    let policy = Box::new(PriorityFirst::new(Primitive::Suspend));
    let [high, low, overall] = responses(&run(policy, slots, two_streams(case)?));
    for (what, expected) in case["expect"].as_object().ok_or("no expect")? {
        let found = match what.as_str() {
            "suspend_high" => high,
            "suspend_low" => low,
            "overall" => overall,
            other => return Err(format!("unknown mean {other}")),
        };
        near(case, what, found, expected)?;
    }
    Ok(())
}

/// Observations of low tasks: number of starts, and time from first start to end.
#[derive(Default)]
struct Watched {
    first: BTreeMap<TaskId, Time>,
    starts: u64,
    interruptions: u64,
    done: u64,
    completion: f64,
}

/// The test policy with observations; low tasks are those of the first job.
struct Watching {
    policy: PriorityFirst,
    seen: Arc<Mutex<Watched>>,
}

impl Scheduler for Watching {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        if let Event::Reported {
            attempt, report, ..
        } = event
            && attempt.task.job == JobId(1)
        {
            let mut seen = self.seen.lock().unwrap();
            match report {
                Report::Started => {
                    seen.starts += 1;
                    seen.first.entry(attempt.task).or_insert(now);
                }
                Report::Suspended => seen.interruptions += 1,
                Report::Done { .. } => {
                    let first = seen
                        .first
                        .remove(&attempt.task)
                        .expect("the task has started");
                    seen.completion += now.since(first).0 as f64 / 1e6;
                    seen.done += 1;
                }
                _ => {}
            }
        }
        self.policy.on_event(now, event, view);
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.policy.job_changed(now, job, view);
    }

    fn schedule(
        &mut self,
        now: Time,
        view: &ClusterView<'_>,
        actions: &mut napreduce_engine::Actions,
    ) {
        self.policy.schedule(now, view, actions);
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.policy.next_wakeup(now)
    }
}

pub fn repeat(case: &Value) -> Result<(), String> {
    for primitive in [Primitive::Kill, Primitive::Suspend] {
        let name = if primitive == Primitive::Kill {
            "kill"
        } else {
            "suspend"
        };
        let (seen, wasted) = low_tasks(case, primitive)?;
        let tasks = seen.done as f64;
        let found = BTreeMap::from([
            (format!("{name}_completion"), seen.completion / tasks),
            (format!("{name}_mean_starts"), seen.starts as f64 / tasks),
            (format!("{name}_mean_wasted"), wasted / tasks),
            (
                format!("{name}_mean_interruptions"),
                seen.interruptions as f64 / tasks,
            ),
        ]);
        for (what, expected) in case["expect"].as_object().ok_or("no expect")? {
            match found.get(what) {
                Some(found) => near(case, what, *found, expected)?,
                None if what.starts_with("kill_") || what.starts_with("suspend_") => {}
                None => return Err(format!("unknown mean {what}")),
            }
        }
    }
    Ok(())
}

/// A low job of many tasks in sequence, and an endless stream of high jobs.
fn low_tasks(case: &Value, primitive: Primitive) -> Result<(Watched, f64), String> {
    let params = &case["params"];
    let mut random = random();
    let tasks = count(case)?;
    let low =
        SimulatedJob::new("low", Time(0)).with_maps(tasks as u32, Span(time(number(&params["s"]))));
    let sizes = Distribution::Exponential(number(&params["mean_high"]));
    let mut next = stream("high", 1, number(&params["lam_high"]), sizes);
    let jobs = std::iter::once(low).chain(std::iter::from_fn(move || Some(next(&mut random))));
    let seen = Arc::new(Mutex::new(Watched::default()));
    let policy = Watching {
        policy: PriorityFirst::new(primitive),
        seen: seen.clone(),
    };
    let mut simulation = Simulation::new(Box::new(policy), one_machine(1), Workload::stream(jobs));
    while seen.lock().unwrap().done < tasks as u64 {
        if !simulation.step().map_err(|error| error.to_string())? {
            return Err("it ended before its tasks".to_owned());
        }
    }
    let wasted = simulation.so_far().slot_time.wasted as f64 / 1e6;
    drop(simulation);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    Ok((seen, wasted))
}
