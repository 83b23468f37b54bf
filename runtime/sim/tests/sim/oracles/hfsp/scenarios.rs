//! Scenarios of family `hfsp`: the policy in the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use napreduce_engine::{
    Actions, ClusterView, Event, JobId, Primitive, Ratio, Scheduler, Slots, Span, SuspendedMax,
    TaskKind, Time,
};
use napreduce_schedulers::hfsp::ranking::RankingOrder;
use napreduce_schedulers::hfsp::size::{self, Confidence, Size};
use napreduce_schedulers::hfsp::{Hfsp, HfspConfiguration, KnownTime, KnownTimes};
use napreduce_sim::{Run, SimulatedJob, Simulation, SimulationSettings, Workload};
use serde_json::Value;

use super::{equal, exact, ids, job_id, list, span, whole};

/// HFSP whose order can be read during the run.
#[derive(Clone)]
struct Watched(Arc<Mutex<Hfsp>>);

impl Watched {
    fn new(configuration: HfspConfiguration) -> Watched {
        Watched(Arc::new(Mutex::new(Hfsp::new(configuration).unwrap())))
    }

    fn order(&self, kind: TaskKind) -> Vec<JobId> {
        self.0.lock().unwrap().order(kind)
    }
}

impl Scheduler for Watched {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        self.0.lock().unwrap().on_event(now, event, view);
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.0.lock().unwrap().job_changed(now, job, view);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        self.0.lock().unwrap().schedule(now, view, actions);
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.0.lock().unwrap().next_wakeup(now)
    }
}

/// A job of equal maps.
fn plan(job: &Value) -> SimulatedJob {
    let submit = Time(0) + job.get("submit").map_or(Span(0), span);
    let name = job["id"].as_str().unwrap();
    SimulatedJob::new(name, submit).with_maps(whole(&job["tasks"]), span(&job["task_seconds"]))
}

/// Returns the known task times of all jobs.
fn known_times(jobs: &[SimulatedJob]) -> BTreeMap<String, KnownTimes> {
    let times = |job: &SimulatedJob| KnownTimes {
        map: job.maps.iter().map(|map| KnownTime(map.work)).collect(),
        reduce: Vec::new(),
    };
    jobs.iter()
        .map(|job| (job.name.to_string(), times(job)))
        .collect()
}

/// HFSP's own thresholds are the only limit on suspended tasks.
fn machines(nodes: u32, slots: Slots) -> SimulationSettings {
    let mut settings = SimulationSettings::new(nodes, slots);
    settings.engine.preemption.suspended_max = SuspendedMax::Unlimited;
    settings
}

fn seconds(time: Time) -> Ratio {
    Ratio::new(i128::from(time.0), 1_000_000)
}

/// Returns an outcome of a run by its name in the cases.
fn outcome(run: &Run, word: &str) -> Result<Vec<Ratio>, String> {
    let ends = |wanted: &dyn Fn(&str) -> bool| -> Vec<Ratio> {
        run.jobs
            .iter()
            .filter(|job| wanted(&job.name))
            .map(|job| seconds(job.ended))
            .collect()
    };
    let sojourn: u64 = run.jobs.iter().map(|job| job.sojourn().0).sum();
    let (suspended, killed) = run.jobs.iter().fold((0, 0), |(suspended, killed), job| {
        (
            suspended + job.preemptions.suspend,
            killed + job.preemptions.kill,
        )
    });
    Ok(match word {
        "j1" => ends(&|name| name == "j1"),
        "short" => ends(&|name| name != "j1"),
        "mean_sojourn" => {
            vec![Ratio::new(i128::from(sojourn), 1_000_000) / Ratio::whole(run.jobs.len() as u64)]
        }
        "wasted_slot_seconds" => vec![Ratio::new(i128::from(run.slot_time.wasted), 1_000_000)],
        "tasks_suspended" => vec![Ratio::whole(suspended)],
        "tasks_killed" => vec![Ratio::whole(killed)],
        other => return Err(format!("{other} is no outcome of this kind")),
    })
}

pub fn slots(case: &Value) -> Result<(), String> {
    let jobs: Vec<SimulatedJob> = list(&case["jobs"]).iter().map(plan).collect();
    for (primitive, expected) in case["expect"].as_object().unwrap() {
        let primitive = match primitive.as_str() {
            "eager_suspend" => Primitive::Suspend,
            "wait" => Primitive::Wait,
            "kill" => Primitive::Kill,
            other => return Err(format!("{other} is no primitive of this kind")),
        };
        let known_times = known_times(&jobs);
        let configuration = HfspConfiguration {
            primitive,
            known_times,
            ..HfspConfiguration::default()
        };
        let settings = machines(
            whole(&case["nodes"]),
            Slots {
                map: whole(&case["slots_per_node"]),
                reduce: 0,
            },
        );
        let policy = Box::new(Hfsp::new(configuration).unwrap());
        let run = Simulation::new(policy, settings, Workload::of(jobs.clone())).run();
        let run = run.map_err(|error| error.to_string())?;
        for (word, wanted) in expected.as_object().unwrap() {
            for found in outcome(&run, word)? {
                equal(&format!("{word} with {primitive}"), found, exact(wanted))?;
            }
        }
    }
    Ok(())
}

pub fn ordering(case: &Value) -> Result<(), String> {
    let names = ids(&case["jobs"]);
    let jobs: Vec<SimulatedJob> = list(&case["jobs"]).iter().map(plan).collect();
    for (order, expected) in case["expect"].as_object().unwrap() {
        let by = match order.as_str() {
            "projected_finish" => RankingOrder::ProjectedFinish,
            "remaining_size" => RankingOrder::RemainingSize,
            other => return Err(format!("{other} is no order of this kind")),
        };
        let known_times = known_times(&jobs);
        let policy = Watched::new(HfspConfiguration {
            order: by,
            known_times,
            ..HfspConfiguration::default()
        });
        let settings = machines(
            1,
            Slots {
                map: whole(&case["slots"]),
                reduce: 0,
            },
        );
        let mut simulation = Simulation::new(
            Box::new(policy.clone()),
            settings,
            Workload::of(jobs.clone()),
        );
        simulation.step().map_err(|error| error.to_string())?;
        let found = policy
            .order(TaskKind::Map)
            .into_iter()
            .map(|id| names[id.0 as usize - 1].as_str());
        let wanted = list(&expected["order"])
            .iter()
            .map(|name| name.as_str().unwrap());
        equal(
            &format!("{order} at 0"),
            found.collect::<Vec<_>>(),
            wanted.collect(),
        )?;
        let run = simulation.run().map_err(|error| error.to_string())?;
        for (name, end) in expected["completion"].as_object().unwrap() {
            let found = run.job(name).map(|job| seconds(job.ended));
            equal(
                &format!("the completion of {name} by {order}"),
                found,
                Some(exact(end)),
            )?;
        }
    }
    Ok(())
}

pub fn initial_order(case: &Value) -> Result<(), String> {
    let names = ids(&case["jobs"]);
    let assumed = span(&case["default_task_seconds"]);
    let tasks = |job: &Value, kind| {
        whole(
            &job[if kind == TaskKind::Map {
                "maps"
            } else {
                "reduces"
            }],
        )
    };
    let jobs: Vec<SimulatedJob> = list(&case["jobs"])
        .iter()
        .map(|job| {
            let plan = SimulatedJob::new(job["id"].as_str().unwrap(), Time(0));
            let plan = plan.with_maps(tasks(job, TaskKind::Map), assumed);
            let plan = plan.with_reduces(tasks(job, TaskKind::Reduce), Span(0), assumed);
            let share = exact(&case["slowstart"]) * Ratio::whole(1000);
            SimulatedJob {
                slowstart_permille: u32::try_from(share.numerator()).unwrap(),
                ..plan
            }
        })
        .collect();
    let configuration = HfspConfiguration {
        assumed_task_time: assumed,
        ..HfspConfiguration::default()
    };
    let policy = Watched::new(configuration);
    let slots = Slots {
        map: whole(&case["map_slots"]),
        reduce: whole(&case["reduce_slots"]),
    };
    let mut simulation = Simulation::new(
        Box::new(policy.clone()),
        machines(1, slots),
        Workload::of(jobs),
    );
    simulation.step().map_err(|error| error.to_string())?;
    let expected = &case["expect"];
    for (kind, order, started) in [
        (TaskKind::Map, "map_order", "maps"),
        (TaskKind::Reduce, "reduce_order", "reduces"),
    ] {
        let found = policy
            .order(kind)
            .into_iter()
            .map(|id| names[id.0 as usize - 1].as_str());
        let wanted = list(&expected[order])
            .iter()
            .map(|name| name.as_str().unwrap());
        equal(order, found.collect::<Vec<_>>(), wanted.collect())?;
        let sizes: BTreeSet<Ratio> = list(&case["jobs"])
            .iter()
            .map(|job| {
                match size::initial(
                    tasks(job, kind),
                    None,
                    Ratio::whole(assumed.0),
                    Confidence::Factor(Ratio::ONE),
                ) {
                    Size::Finite(size) => size,
                    Size::Infinite => unreachable!("the confidence is finite"),
                }
            })
            .collect();
        let ratio = sizes
            .last()
            .zip(sizes.first())
            .map(|(large, small)| *large / *small);
        equal(
            &format!("the ratio of sizes of {started}"),
            ratio,
            Some(exact(&expected["size_ratio"])),
        )?;
        for (position, name) in names.iter().enumerate() {
            let held = simulation
                .view()
                .job(job_id(position))
                .map_or(0, |job| job.holding(kind));
            let wanted = expected["first_heartbeat"][started]
                .get(name)
                .map_or(0, whole);
            equal(
                &format!("{started} of {name} started at once"),
                held,
                wanted,
            )?;
        }
    }
    Ok(())
}
