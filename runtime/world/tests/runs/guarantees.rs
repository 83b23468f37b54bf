//! Capacity's guarantees on simulated clusters, with the random queues and jobs of the simulator's test: the coordinator's
//! journal tells for how long each queue held fewer slots than it was guaranteed and wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use napreduce_engine::{AttemptId, Effect, Event, JobId, Order, Record, Slots, Span, Time};
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration};
use napreduce_sim::fuzz::{LeafQueue, QueueRanges, QueueWorkload};
use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};
use napreduce_world::{GivenJob, Plan};

use super::undisturbed::{configured, journal_of};

/// The most time in which victims stop, beyond the bound: they look for requests ten times a second.
const STOP: Span = Span::from_millis(200);

/// How many workloads in which the monitor takes slots are run.
const WORKLOADS: usize = 10;

/// The slots of each queue, as the journal of a coordinator tells them.
struct Ledger<'a> {
    workload: &'a QueueWorkload,
    /// The queue of each job that has not ended, and its tasks that are not done.
    jobs: BTreeMap<JobId, (String, u64)>,
    holding: BTreeSet<AttemptId>,
    /// Since when a queue holds less than it is guaranteed and wants.
    below: BTreeMap<String, Time>,
    report: Report,
}

#[derive(Debug, Default)]
struct Report {
    /// The longest time below a guarantee.
    longest: Span,
    /// How often a queue was below its guarantee.
    times_below: u64,
    /// Orders to suspend, kill or checkpoint.
    preemptions: u64,
    unused: u64,
    violations: Vec<String>,
}

impl<'a> Ledger<'a> {
    fn new(workload: &'a QueueWorkload) -> Ledger<'a> {
        Ledger {
            workload,
            jobs: BTreeMap::new(),
            holding: BTreeSet::new(),
            below: BTreeMap::new(),
            report: Report::default(),
        }
    }

    fn see_event(&mut self, event: &Event) {
        if let Event::JobSubmitted { job, spec } = event {
            self.jobs
                .insert(*job, (spec.queue.clone(), spec.maps.len() as u64));
        }
    }

    fn see_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Send {
                order: Order::Launch { attempt, .. } | Order::Resume { attempt },
                ..
            } => {
                self.holding.insert(*attempt);
            }
            Effect::Send {
                order: Order::Suspend { .. } | Order::Checkpoint { .. } | Order::Kill { .. },
                ..
            } => self.report.preemptions += 1,
            Effect::Record(
                Record::Suspended(attempt)
                | Record::Checkpointed(attempt)
                | Record::AttemptEnded(attempt, _),
            ) => {
                self.holding.remove(attempt);
            }
            Effect::Record(Record::TaskDone(attempt)) => {
                self.holding.remove(attempt);
                if let Some((_, left)) = self.jobs.get_mut(&attempt.task.job) {
                    *left -= 1;
                }
            }
            Effect::Record(Record::SlotUnused { .. }) => self.report.unused += 1,
            Effect::JobEnded { job, .. } => {
                self.jobs.remove(job);
            }
            _ => {}
        }
    }

    /// Compares each queue with its guarantee at the end of a batch.
    fn compare(&mut self, now: Time) {
        for leaf in &self.workload.leaves {
            self.compare_queue(leaf, now);
        }
    }

    fn compare_queue(&mut self, leaf: &LeafQueue, now: Time) {
        let of_leaf = |job: &JobId| {
            self.jobs
                .get(job)
                .is_some_and(|(queue, _)| *queue == leaf.name)
        };
        let held = self
            .holding
            .iter()
            .filter(|attempt| of_leaf(&attempt.task.job))
            .count() as u64;
        let own = self.jobs.values().filter(|(queue, _)| *queue == leaf.name);
        let wanted: u64 = own.map(|(_, left)| left).sum();
        let due = wanted.min(self.workload.guaranteed(leaf));
        let since = self.below.get(&leaf.name).copied();
        if let Some(since) = since {
            let waited = now.since(since);
            self.report.longest = self.report.longest.max(waited);
            let most = self.workload.bound() + STOP;
            if waited > most {
                let name = &leaf.name;
                self.report.violations.push(format!(
                    "{name}: {held} of {due} after {waited:?} ({most:?})"
                ));
            }
        }
        if held >= due {
            self.below.remove(&leaf.name);
        } else if since.is_none() {
            self.report.times_below += 1;
            self.below.insert(leaf.name.clone(), now);
        }
    }
}

/// Returns a job of the workload as one for a simulated cluster.
fn given(job: &SimulatedJob) -> GivenJob {
    let tenths = |work: Span| u32::try_from(work.0 / 100_000).expect("a short task");
    GivenJob {
        name: job.name.to_string(),
        queue: job.queue.to_string(),
        user: job.user.to_string(),
        priority: job.priority,
        deadline: None,
        submitted: Duration::from_micros(job.submit.0),
        maps: job.maps.iter().map(|map| tenths(map.work)).collect(),
        reduces: Vec::new(),
    }
}

/// Returns the slots of each worker of a workload.
fn slots(workload: &QueueWorkload) -> Slots {
    Slots {
        map: workload.slots_each,
        reduce: 0,
    }
}

/// Runs a workload on a simulated cluster, and returns what its journal tells.
fn run_live(workload: &QueueWorkload) -> Report {
    let tables = workload
        .configuration
        .replace("[[queue]]", "[[scheduler.capacity.queue]]")
        .replace("[monitor]", "[scheduler.capacity.monitor]");
    let file =
        format!("[preemption]\nsuspended-max = \"unlimited\"\n[scheduler.capacity]\n{tables}");
    let (scheduler, preemption) = configured("capacity", &file);
    let jobs = workload.jobs.iter().map(given).collect();
    let plan = Plan::undisturbed(
        scheduler,
        preemption,
        workload.machines,
        slots(workload),
        jobs,
    );
    let mut ledger = Ledger::new(workload);
    for batch in journal_of(plan) {
        for event in &batch.events {
            ledger.see_event(event);
        }
        for effect in &batch.effects {
            ledger.see_effect(effect);
        }
        ledger.compare(batch.at);
    }
    assert!(
        ledger.jobs.is_empty() && ledger.holding.is_empty(),
        "every job has ended"
    );
    ledger.report
}

/// Returns whether the monitor takes slots in a simulation of a workload.
fn preempts(workload: &QueueWorkload) -> bool {
    let configuration: CapacityConfiguration =
        toml::from_str(&workload.configuration).expect("a table");
    let policy = Capacity::new(&configuration).expect("a policy");
    let settings = SimulationSettings::new(workload.machines, slots(workload));
    let run = Simulation::new(
        Box::new(policy),
        settings,
        Workload::of(workload.jobs.clone()),
    )
    .run();
    let tally = run.expect("an end").tally;
    tally.requests_satisfied + tally.requests_forced > 0
}

#[test]
fn queues_of_random_workloads_reach_their_guarantees() {
    let mut broken = Vec::new();
    let mut preemptions = 0;
    let drawn = (0..).map(|seed| QueueWorkload::draw(seed, QueueRanges::LIVE));
    for workload in drawn.filter(preempts).take(WORKLOADS) {
        let report = run_live(&workload);
        println!(
            "seed {}: {} slots, {} queues, {} jobs; {} preemptions, {} unused, below a guarantee {} times, for {:.2} s \
             at most (bound {:.0} s)",
            workload.seed,
            workload.slots(),
            workload.leaves.len(),
            workload.jobs.len(),
            report.preemptions,
            report.unused,
            report.times_below,
            report.longest.0 as f64 / 1e6,
            workload.bound().0 as f64 / 1e6,
        );
        preemptions += report.preemptions;
        for what in report.violations {
            broken.push(format!("{what}\n{}", workload.describe()));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(preemptions > 10, "{preemptions}");
}
