//! Owns what is run, be it live or simulated: jobs, cluster, policy and settings at one scale. How that is
//! reached belongs to `scale`, how it runs to `bench` and to the simulator.

use std::collections::BTreeSet;

use napreduce_engine::{PreemptionSettings, Slots, Span};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{ClusterShape, Cost, Run, SimulatedJob, Simulation, SimulationSettings, Workload};
use serde::Serialize;

use super::scale::{Scale, check};
use crate::error::WorkloadReplayError;
use crate::jobs::{ReplayedTask, ReplayedTasks, TaskBody};

/// Bytes that the maps of a run write for reduces, in all: more would be a load of its own.
const OUTPUT_MAX: u64 = 64 << 20;
/// The shortest interval between reports of workers.
const HEARTBEAT_MIN: Span = Span::from_millis(20);
/// How often a task of a simulated workload tells its progress, before scaling.
const PROGRESS: Span = Span::from_secs(1);
const MIB: u64 = 1 << 20;

/// All of a run.
#[derive(Clone, Debug)]
pub struct LivePlan {
    /// At the live scale, in the order of their submission.
    pub jobs: Vec<SimulatedJob>,
    pub cluster: ClusterShape,
    /// How often workers report.
    pub heartbeat: Span,
    pub policy: SchedulerConfiguration,
    pub preemption: PreemptionSettings,
    /// Every interval that was divided, in words.
    pub intervals: Vec<String>,
    pub seed: u64,
}

/// What a plan is made of, at its own scale.
#[derive(Clone, Debug)]
pub struct FullPlan<'a> {
    pub jobs: &'a [SimulatedJob],
    pub cluster: ClusterShape,
    /// Of the workload; nothing when its workers speak whenever there is something to say.
    pub heartbeat: Span,
    pub policy: &'a SchedulerConfiguration,
    pub preemption: &'a PreemptionSettings,
    pub seed: u64,
}

/// What takes time besides work, as it was measured or given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// From the order to the first work of an attempt, and from its last work to the next order,
    /// both together.
    #[serde(with = "napreduce_engine::time::text")]
    pub launch: Span,
    #[serde(with = "napreduce_engine::time::text")]
    pub suspend: Span,
    #[serde(with = "napreduce_engine::time::text")]
    pub resume: Span,
    #[serde(with = "napreduce_engine::time::text")]
    pub checkpoint_write: Span,
    /// What a restore takes beyond a launch.
    #[serde(with = "napreduce_engine::time::text")]
    pub checkpoint_read: Span,
}

impl LivePlan {
    /// The plan at a scale, on a cluster that has it already.
    ///
    /// # Errors
    /// When a task would be too short, nothing could run, or the policy refuses its values.
    pub fn new(full: &FullPlan<'_>, scale: Scale) -> Result<LivePlan, WorkloadReplayError> {
        let mut jobs: Vec<SimulatedJob> = full.jobs.iter().map(|job| scale.job(job)).collect();
        jobs.sort_by_key(|job| job.submit);
        check(&jobs, scale)?;
        bound_outputs(&mut jobs);
        let (policy, mut intervals) = scale.policy(full.policy)?;
        let (preemption, more) = scale.preemption(full.preemption)?;
        intervals.extend(more);
        let before = if full.heartbeat.0 == 0 { PROGRESS } else { full.heartbeat };
        let heartbeat = scale.span(before).max(HEARTBEAT_MIN);
        intervals.push(format!("heartbeat = \"{}\" -> \"{}ms\"", before.to_text(), heartbeat.0 as f64 / 1e3));
        let (cluster, seed) = (full.cluster, full.seed);
        let plan = LivePlan { jobs, cluster, heartbeat, policy, preemption, intervals, seed };
        let (maps, reduces) = plan.settings(&Costs::default()).slots_in_all();
        if maps == 0 || (reduces == 0 && plan.jobs.iter().any(|job| !job.reduces.is_empty())) {
            return Err(WorkloadReplayError::NoSlots(maps as u32, reduces as u32));
        }
        Ok(plan)
    }

    /// The slots of each worker.
    pub fn workers(&self) -> Vec<Slots> {
        let settings = self.settings(&Costs::default());
        (0..self.cluster.machines).map(|machine| settings.slots_of(machine)).collect()
    }

    /// The configuration file of the cluster.
    ///
    /// # Errors
    /// When the values cannot be written so.
    pub fn configuration(&self) -> Result<String, WorkloadReplayError> {
        let refused = |error: toml::ser::Error| WorkloadReplayError::Policy(error.to_string());
        let queues: BTreeSet<&str> = self.jobs.iter().map(|job| &*job.queue).collect();
        let mut coordinator = toml::Table::new();
        coordinator.insert("scheduler".to_owned(), self.policy.scheduler.to_string().into());
        coordinator.insert("speculation".to_owned(), false.into());
        coordinator.insert("queues".to_owned(), queues.into_iter().collect::<Vec<_>>().into());
        let mut file = toml::Table::new();
        file.insert("coordinator".to_owned(), coordinator.into());
        let preemption = toml::Value::try_from(self.preemption).map_err(refused)?;
        file.insert("preemption".to_owned(), preemption);
        let tables = toml::Value::try_from(&self.policy.tables).map_err(refused)?;
        file.insert("scheduler".to_owned(), tables);
        toml::to_string(&file).map_err(refused)
    }

    /// The same cluster in the simulator.
    pub fn settings(&self, costs: &Costs) -> SimulationSettings {
        let mut settings = SimulationSettings::new(self.cluster.machines, self.cluster.slots());
        settings.map_machines = self.cluster.map_machines;
        (settings.seed, settings.engine.seed) = (self.seed, self.seed);
        settings.engine.preemption = self.preemption;
        settings.progress_period = Some(self.heartbeat);
        let overheads = &mut settings.overheads;
        overheads.launch = costs.launch;
        overheads.suspend = Cost::fixed(costs.suspend);
        overheads.resume = Cost::fixed(costs.resume);
        overheads.checkpoint_write = Cost::fixed(costs.checkpoint_write);
        overheads.checkpoint_read = Cost::fixed(costs.checkpoint_read);
        settings
    }

    /// The same jobs in simulated time.
    ///
    /// # Errors
    /// When they cannot be simulated.
    pub fn simulate(&self, costs: &Costs) -> Result<Run, WorkloadReplayError> {
        let failed = |error: String| WorkloadReplayError::Simulation(error);
        let policy = self.policy.build().map_err(|error| failed(error.to_string()))?;
        let workload = Workload::of(self.jobs.clone());
        let run = Simulation::new(policy, self.settings(costs), workload).run();
        run.map_err(|error| failed(error.to_string()))
    }

    /// The tasks of a job, as its processes get them.
    pub fn tasks(job: &SimulatedJob, body: Option<TaskBody>, rounds_per_second: u64) -> ReplayedTasks {
        let maps = job.maps.iter().map(|task| ReplayedTask {
            micros: task.work.0,
            bytes: task.bytes,
            output_bytes: task.output_bytes,
        });
        let reduces = job.reduces.iter().map(|task| ReplayedTask {
            micros: task.work().0,
            bytes: task.bytes,
            output_bytes: 0,
        });
        ReplayedTasks {
            body,
            rounds_per_second,
            fill_mib: job.memory.div_ceil(MIB),
            maps: maps.collect(),
            reduces: reduces.collect(),
        }
    }

    /// Slot time of all its work.
    pub fn work(&self) -> Span {
        let of = |job: &SimulatedJob| {
            let maps: u64 = job.maps.iter().map(|task| task.work.0).sum();
            maps + job.reduces.iter().map(|task| task.work().0).sum::<u64>()
        };
        Span(self.jobs.iter().map(of).sum())
    }

    /// The mean time between two submissions.
    pub fn mean_gap(&self) -> Span {
        let (first, last) = (self.jobs.first().map(|job| job.submit), self.jobs.last().map(|job| job.submit));
        let all = last.unwrap_or_default().since(first.unwrap_or_default());
        Span(all.0 / (self.jobs.len() as u64 - 1).max(1))
    }
}

/// Has all maps write less for reduces, in the same proportions, when it is too much in all.
fn bound_outputs(jobs: &mut [SimulatedJob]) {
    let total: u64 = jobs.iter().flat_map(|job| &job.maps).map(|task| task.output_bytes).sum();
    if total > OUTPUT_MAX {
        for task in jobs.iter_mut().flat_map(|job| &mut job.maps) {
            let bounded = u128::from(task.output_bytes) * u128::from(OUTPUT_MAX) / u128::from(total);
            task.output_bytes = u64::try_from(bounded).unwrap_or(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::Time;
    use napreduce_schedulers::SchedulerName;

    fn plan(jobs: &[SimulatedJob], scale: f64) -> Result<LivePlan, WorkloadReplayError> {
        let full = FullPlan {
            jobs,
            cluster: ClusterShape::of_slots(2, 2, 1),
            heartbeat: Span::from_secs(3),
            policy: &SchedulerConfiguration::named(SchedulerName::Natjam),
            preemption: &PreemptionSettings::default(),
            seed: 1,
        };
        LivePlan::new(&full, Scale::new(scale, 1.0)?)
    }

    #[test]
    fn what_is_simulated_is_what_runs() {
        let late = SimulatedJob::new("late", Time(40_000_000)).with_maps(3, Span::from_secs(20));
        let early = SimulatedJob::new("early", Time(0)).with_maps(1, Span::from_secs(10));
        let plan = plan(&[late, early], 20.0).unwrap();
        assert_eq!((&*plan.jobs[0].name, plan.mean_gap()), ("early", Span::from_secs(2)));
        assert_eq!((plan.heartbeat, plan.work()), (Span::from_millis(150), Span::from_millis(3_500)));
        assert_eq!(plan.workers(), [Slots { map: 2, reduce: 1 }; 2]);
        let costs = Costs { launch: Span::from_millis(10), ..Costs::default() };
        let run = plan.simulate(&costs).unwrap();
        assert_eq!(run.job("late").unwrap().sojourn(), Span::from_millis(1_010));
    }

    #[test]
    fn the_configuration_names_policy_queues_and_every_interval() {
        let mut job = SimulatedJob::new("job", Time(0)).with_maps(1, Span::from_secs(20));
        job.queue = "production".into();
        let plan = plan(&[job], 20.0).unwrap();
        let text = plan.configuration().unwrap();
        assert!(
            text.contains("scheduler = \"natjam\"") && text.contains("queues = [\"production\"]"),
            "{text}"
        );
        assert!(text.contains("preemptor-interval = \"50ms\""), "{text}");
        assert!(plan.intervals.iter().any(|line| line.contains("natjam.preemptor-interval")), "{plan:?}");
    }

    #[test]
    fn maps_write_no_more_than_a_run_can_bear_and_keep_their_proportions() {
        let mut jobs = vec![SimulatedJob::new("job", Time(0)).with_maps(2, Span::from_secs(1))];
        (jobs[0].maps[0].output_bytes, jobs[0].maps[1].output_bytes) = (300 << 20, 100 << 20);
        bound_outputs(&mut jobs);
        let bytes: Vec<u64> = jobs[0].maps.iter().map(|task| task.output_bytes).collect();
        assert_eq!(bytes, [48 << 20, 16 << 20]);
    }
}
