//! Capacity's guarantees on a real cluster, with the random queues and jobs of the simulator's test: the coordinator's
//! journal tells for how long each queue held fewer slots than it was guaranteed and wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_engine::{AttemptId, Effect, Event, JobId, Order, Record, Slots, Span, Time};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration};
use napreduce_sim::fuzz::{LeafQueue, QueueRanges, QueueWorkload};
use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};
use napreduce_tests::{Folder, OwnCluster, program, run, wait_until};

/// The most time in which victims stop, beyond the bound: a suspend waits for a record for up to a second.
const STOP: Span = Span::from_secs(2);

/// So small that each file is a task of its own.
const SPLIT: [&str; 2] = ["--split-size", "20000"];

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

/// Returns how the monitor takes slots.
fn primitive(workload: &QueueWorkload) -> &'static str {
    let names = ["suspend", "kill", "checkpoint"];
    let is_set = |name: &&str| {
        workload
            .configuration
            .contains(&format!("primitive = \"{name}\""))
    };
    names.into_iter().find(is_set).expect("a primitive")
}

/// Submits a job with a task per file. Tasks are commands that sleep, or if they are checkpointed, records that take
/// 20 ms each: a command has no state to save.
fn submit(
    folder: &Folder,
    cluster: &OwnCluster,
    workload: &QueueWorkload,
    job: &SimulatedJob,
) -> String {
    let is_saved = primitive(workload) == "checkpoint";
    for (number, map) in job.maps.iter().enumerate() {
        let seconds = map.work.0 / 1_000_000;
        let text = if is_saved {
            "a record\n".repeat(seconds as usize * 50)
        } else {
            format!("{seconds}\n")
        };
        folder.write(&format!("{}/{number:02}", job.name), text);
    }
    let output = format!("out-{}", job.name);
    let common = [
        "--output", &output, "--name", &job.name, "--queue", &job.queue,
    ];
    if is_saved {
        let records = [&job.name, "--job", "slow-records", "--number", "20"];
        return cluster.submit(folder, &[&records[..], &common, &SPLIT].concat());
    }
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root())
        .arg("streaming");
    command.args([
        "--input",
        &job.name,
        "--mapper",
        "read seconds; sleep $seconds; echo $seconds",
    ]);
    command
        .args(common)
        .args(SPLIT)
        .arg("--detach")
        .arg("--cluster")
        .arg(cluster.directory());
    run(&mut command).succeeded().stdout.trim().to_owned()
}

/// Runs a workload on a cluster of its own, and returns what its journal tells.
fn run_live(workload: &QueueWorkload) -> Report {
    let folder = Folder::new();
    let tables = workload
        .configuration
        .replace("[[queue]]", "[[scheduler.capacity.queue]]")
        .replace("[monitor]", "[scheduler.capacity.monitor]");
    let file =
        format!("[preemption]\nsuspended-max = \"unlimited\"\n[scheduler.capacity]\n{tables}");
    let cluster = OwnCluster::start_with_slots(
        &folder,
        workload.machines,
        workload.slots_each,
        "capacity",
        &file,
    );
    let began = Instant::now();
    let mut ids = Vec::new();
    for job in &workload.jobs {
        let at = Duration::from_micros(job.submit.0);
        wait_until("the time of the next submission", || began.elapsed() >= at);
        ids.push(submit(&folder, &cluster, workload, job));
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    cluster.wait(&ids).succeeded();
    let directory =
        ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    let mut ledger = Ledger::new(workload);
    for batch in &batches {
        batch
            .events
            .iter()
            .for_each(|event| ledger.see_event(event));
        batch
            .effects
            .iter()
            .for_each(|effect| ledger.see_effect(effect));
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
    let slots = Slots {
        map: workload.slots_each,
        reduce: 0,
    };
    let settings = SimulationSettings::new(workload.machines, slots);
    let run = Simulation::new(
        Box::new(policy),
        settings,
        Workload::of(workload.jobs.clone()),
    )
    .run();
    let tally = run.expect("an end").tally;
    tally.requests_satisfied + tally.requests_forced > 0
}

/// Runs the first workloads in which the monitor takes slots, and prints a line for each; returns the violations.
fn run_all(count: usize) -> Vec<String> {
    let mut broken = Vec::new();
    let drawn = (0..).map(|seed| QueueWorkload::draw(seed, QueueRanges::LIVE));
    for workload in drawn.filter(preempts).take(count) {
        let report = run_live(&workload);
        println!(
            "seed {}, {}: {} slots, {} queues, {} jobs; {} preemptions, {} unused, below a guarantee {} times, for {:.2} s \
             at most (bound {:.0} s)",
            workload.seed,
            primitive(&workload),
            workload.slots(),
            workload.leaves.len(),
            workload.jobs.len(),
            report.preemptions,
            report.unused,
            report.times_below,
            report.longest.0 as f64 / 1e6,
            workload.bound().0 as f64 / 1e6,
        );
        for what in report.violations {
            broken.push(format!("{what}\n{}", workload.describe()));
        }
    }
    broken
}

/// Some seven minutes on a quiet machine:
/// `cargo test -p napreduce-tests --test system -- --ignored --nocapture guarantees`.
#[test]
#[ignore = "takes seven minutes"]
fn queues_of_ten_random_workloads_reach_their_guarantees_on_a_real_cluster() {
    let broken = run_all(10);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
