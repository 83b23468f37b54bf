//! Plans, for live and for simulated runs: the jobs of a workload, a published mix or a trace, scaled down. Times and
//! intervals of policies are divided by one factor, numbers of tasks, slots and bytes by another. Tasks that become too
//! short to be measured are an error.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use anyhow::{Result, anyhow};
use napreduce_engine::{PreemptionSettings, Slots, Span, TaskKind, Time};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{
    ClusterShape, Cost, PUBLISHED, Run, SimulatedJob, SimulatedMap, SimulatedReduce, Simulation,
    SimulationSettings, SizeModel, SwimTrace, Workload, WorkloadFile, decompressed, published,
    read_workload_text,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::usage;
use crate::jobs::{GROUP, STEPS, TaskBody, TimedTask, TimedTasks};

/// Maximum output bytes of all maps of a run; more would be a significant load.
const OUTPUT_MAX: u64 = 64 << 20;
/// The shortest interval between reports of workers.
const HEARTBEAT_MIN: Span = Span::from_millis(20);
/// Interval of worker reports if the workload has none, before scaling.
const PROGRESS: Span = Span::from_secs(1);
const MIB: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub struct LivePlan {
    /// Scaled, in the order of submission.
    pub jobs: Vec<SimulatedJob>,
    pub cluster: ClusterShape,
    pub heartbeat: Span,
    pub policy: SchedulerConfiguration,
    pub preemption: PreemptionSettings,
    /// A line for each scaled interval.
    pub intervals: Vec<String>,
    pub seed: u64,
}

/// The content of a plan before scaling.
#[derive(Clone, Debug)]
pub struct FullPlan<'a> {
    pub jobs: &'a [SimulatedJob],
    pub cluster: ClusterShape,
    /// That of the workload; 0 if it has none.
    pub heartbeat: Span,
    pub policy: &'a SchedulerConfiguration,
    pub preemption: &'a PreemptionSettings,
    pub seed: u64,
}

/// Costs besides work.
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
    /// Beyond a launch.
    #[serde(with = "napreduce_engine::time::text")]
    pub checkpoint_read: Span,
}

impl LivePlan {
    /// Scales everything but the cluster.
    pub fn new(full: &FullPlan<'_>, scale: Scale) -> Result<LivePlan> {
        let mut jobs: Vec<SimulatedJob> = full.jobs.iter().map(|job| scale.job(job)).collect();
        jobs.sort_by_key(|job| job.submit);
        check(&jobs, scale)?;
        bound_outputs(&mut jobs);
        let (policy, mut intervals) = scale.policy(full.policy)?;
        let (preemption, more) = scale.preemption(full.preemption)?;
        intervals.extend(more);
        let before = if full.heartbeat.0 == 0 {
            PROGRESS
        } else {
            full.heartbeat
        };
        let heartbeat = scale.span(before).max(HEARTBEAT_MIN);
        intervals.push(format!(
            "heartbeat = \"{}\" -> \"{}ms\"",
            before.to_text(),
            heartbeat.0 as f64 / 1e3
        ));
        let cluster = full.cluster;
        let seed = full.seed;
        let plan = LivePlan {
            jobs,
            cluster,
            heartbeat,
            policy,
            preemption,
            intervals,
            seed,
        };
        let (maps, reduces) = plan.settings(&Costs::default()).total_slots();
        if maps == 0 || (reduces == 0 && plan.jobs.iter().any(|job| !job.reduces.is_empty())) {
            return Err(usage(format_args!(
                "{maps} map slots and {reduces} reduce slots do not run these jobs; give more with --map-slots and --reduce-slots"
            )));
        }
        Ok(plan)
    }

    pub fn workers(&self) -> Vec<Slots> {
        let settings = self.settings(&Costs::default());
        (0..self.cluster.machines)
            .map(|machine| settings.slots_of(machine))
            .collect()
    }

    /// The configuration file of the cluster.
    pub fn configuration(&self) -> Result<String> {
        let refused =
            |error: toml::ser::Error| anyhow!("the policy cannot be set up at this scale: {error}");
        let queues: BTreeSet<&str> = self.jobs.iter().map(|job| &*job.queue).collect();
        let mut coordinator = toml::Table::new();
        coordinator.insert(
            "scheduler".to_owned(),
            self.policy.scheduler.to_string().into(),
        );
        coordinator.insert("speculation".to_owned(), false.into());
        coordinator.insert(
            "queues".to_owned(),
            queues.into_iter().collect::<Vec<_>>().into(),
        );
        let mut file = toml::Table::new();
        file.insert("coordinator".to_owned(), coordinator.into());
        let preemption = toml::Value::try_from(self.preemption).map_err(refused)?;
        file.insert("preemption".to_owned(), preemption);
        let tables = toml::Value::try_from(&self.policy.tables).map_err(refused)?;
        file.insert("scheduler".to_owned(), tables);
        toml::to_string(&file).map_err(refused)
    }

    /// The cluster in the simulator.
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

    /// Runs the jobs in simulated time.
    pub fn simulate(&self, costs: &Costs) -> Result<Run> {
        let failed = |error: String| {
            usage(format_args!(
                "the plan cannot be simulated at its scale: {error}"
            ))
        };
        let policy = self
            .policy
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let workload = Workload::of(self.jobs.clone());
        let run = Simulation::new(policy, self.settings(costs), workload).run();
        run.map_err(|error| failed(error.to_string()))
    }

    pub fn tasks(job: &SimulatedJob, body: Option<TaskBody>, rounds_per_second: u64) -> TimedTasks {
        let map = |task: &SimulatedMap| TimedTask {
            micros: task.work.0,
            bytes: task.bytes,
            output_bytes: task.output_bytes,
        };
        let reduce = |task: &SimulatedReduce| TimedTask {
            micros: task.work().0,
            bytes: task.bytes,
            output_bytes: 0,
        };
        TimedTasks {
            body,
            rounds_per_second,
            fill_mib: if body == Some(TaskBody::Fill) {
                job.memory.div_ceil(MIB)
            } else {
                0
            },
            steps: STEPS,
            group_micros: GROUP.as_micros() as u64,
            maps: job.maps.iter().map(map).collect(),
            reduces: job.reduces.iter().map(reduce).collect(),
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
        let first = self.jobs.first().map(|job| job.submit);
        let last = self.jobs.last().map(|job| job.submit);
        let all = last.unwrap_or_default().since(first.unwrap_or_default());
        Span(all.0 / (self.jobs.len() as u64 - 1).max(1))
    }
}

/// Reduces the output bytes of all maps proportionally if their sum is too large.
fn bound_outputs(jobs: &mut [SimulatedJob]) {
    let total: u64 = jobs
        .iter()
        .flat_map(|job| &job.maps)
        .map(|task| task.output_bytes)
        .sum();
    if total > OUTPUT_MAX {
        for task in jobs.iter_mut().flat_map(|job| &mut job.maps) {
            let bounded =
                u128::from(task.output_bytes) * u128::from(OUTPUT_MAX) / u128::from(total);
            task.output_bytes = u64::try_from(bounded).unwrap_or(u64::MAX);
        }
    }
}

/// The shortest task: its start, some milliseconds, must be a small part of it.
const TASK_MIN: Span = Span::from_millis(100);
/// Keys whose values are never times, even if they look like one.
const NAMES: [&str; 6] = ["name", "queue", "default-queue", "pool", "user", "rules"];

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scale {
    /// Divides times.
    pub time: f64,
    /// Divides numbers of tasks, slots and bytes.
    pub tasks: f64,
}

impl Scale {
    pub fn new(time: f64, tasks: f64) -> Result<Scale> {
        for (flag, value) in [("--time-scale", time), ("--task-scale", tasks)] {
            if !(value.is_finite() && (0.001..=1e6).contains(&value)) {
                return Err(usage(format_args!(
                    "invalid {flag} {value}; give a number from 0.001 to 1000000, such as 20"
                )));
            }
        }
        Ok(Scale { time, tasks })
    }

    pub fn span(self, span: Span) -> Span {
        Span((span.0 as f64 / self.time).round() as u64)
    }

    fn bytes(self, bytes: u64) -> u64 {
        (bytes as f64 / self.tasks).round() as u64
    }

    /// At least 1, unless `count` is 0.
    pub fn count(self, count: usize) -> usize {
        if count == 0 {
            0
        } else {
            ((count as f64 / self.tasks).round() as usize).max(1)
        }
    }

    /// The scaled job, with evenly chosen tasks. Fetching takes no time on one machine, so a reduce works for that time,
    /// too. No map prefers a machine.
    pub fn job(self, job: &SimulatedJob) -> SimulatedJob {
        let map = |task: &SimulatedMap| SimulatedMap {
            work: self.span(task.work),
            bytes: self.bytes(task.bytes),
            output_bytes: self.bytes(task.output_bytes),
            preferred: Vec::new(),
        };
        let reduce = |task: &SimulatedReduce| SimulatedReduce {
            shuffle: Span(0),
            reduce: self.span(task.work()),
            bytes: self.bytes(task.bytes),
        };
        SimulatedJob {
            submit: Time(self.span(Span(job.submit.0)).0),
            deadline: job.deadline.map(|deadline| self.span(deadline)),
            maps: chosen(&job.maps, self.count(job.maps.len()))
                .map(map)
                .collect(),
            reduces: chosen(&job.reduces, self.count(job.reduces.len()))
                .map(reduce)
                .collect(),
            memory: self.bytes(job.memory),
            ..job.clone()
        }
    }

    /// The scaled cluster, on this many workers or on the scaled number of machines.
    pub fn cluster(self, shape: ClusterShape, workers: Option<u32>) -> ClusterShape {
        let shape = shape.without_containers();
        let machines = workers
            .unwrap_or(self.count(shape.machines as usize) as u32)
            .max(1);
        let each = |slots: u32, of: u32, on: u32| match slots {
            0 => 0,
            _ => ((f64::from(slots) * f64::from(of) / self.tasks / f64::from(on)).round() as u32)
                .max(1),
        };
        let Some(apart) = shape.map_machines.filter(|_| machines > 1) else {
            let map_slots = each(shape.map_slots, shape.machines, machines);
            let reduce_slots = each(shape.reduce_slots, shape.machines, machines);
            return ClusterShape::with_slots(machines, map_slots, reduce_slots);
        };
        let share = f64::from(apart) / f64::from(shape.machines);
        let maps = ((f64::from(machines) * share).round() as u32).clamp(1, machines - 1);
        ClusterShape {
            map_machines: Some(maps),
            ..ClusterShape::with_slots(
                machines,
                each(shape.map_slots, apart, maps),
                each(shape.reduce_slots, shape.machines - apart, machines - maps),
            )
        }
    }

    /// The policy with scaled intervals, and a line for each: `table.key = "3s" -> "50ms"`.
    pub fn policy(
        self,
        policy: &SchedulerConfiguration,
    ) -> Result<(SchedulerConfiguration, Vec<String>)> {
        let mut tables = as_table(&policy.tables)?;
        let mut adjusted = Vec::new();
        let own = policy.scheduler.to_string();
        for (name, table) in &mut tables {
            let mut changes = Vec::new();
            self.intervals(table, name, &mut changes);
            // Other tables have default values, unless the policy is composed of them.
            if *name == own || policy.scheduler.in_words() == "composed" {
                adjusted.append(&mut changes);
            }
        }
        let scaled = SchedulerConfiguration {
            scheduler: policy.scheduler,
            tables: of_table(tables.into())?,
        };
        scaled.build().map_err(refused)?;
        Ok((scaled, adjusted))
    }

    /// The settings of preemption with scaled intervals, and a line for each.
    pub fn preemption(
        self,
        settings: &PreemptionSettings,
    ) -> Result<(PreemptionSettings, Vec<String>)> {
        let mut table = as_table(settings)?;
        let mut adjusted = Vec::new();
        // Costs of this cluster do not scale.
        let expected = table.remove("auto");
        let mut table = toml::Value::Table(table);
        self.intervals(&mut table, "preemption", &mut adjusted);
        if let (Some(expected), Some(table)) = (expected, table.as_table_mut()) {
            table.insert("auto".to_owned(), expected);
        }
        Ok((of_table(table)?, adjusted))
    }

    fn intervals(self, value: &mut toml::Value, place: &str, adjusted: &mut Vec<String>) {
        match value {
            toml::Value::String(text) => {
                if let Ok(span) = text.parse::<Span>()
                    && span.0 > 0
                {
                    // An interval of 0 may be invalid.
                    let scaled = Span(self.span(span).0.max(1));
                    adjusted.push(format!("{place} = {text:?} -> {:?}", shown(scaled)));
                    *text = format!("{}us", scaled.0);
                }
            }
            toml::Value::Array(all) => {
                all.iter_mut()
                    .for_each(|value| self.intervals(value, place, adjusted));
            }
            toml::Value::Table(table) => {
                for (key, value) in table
                    .iter_mut()
                    .filter(|(key, _)| !NAMES.contains(&key.as_str()))
                {
                    self.intervals(value, &format!("{place}.{key}"), adjusted);
                }
            }
            _ => {}
        }
    }
}

/// A time in milliseconds below a second, otherwise in seconds.
fn shown(span: Span) -> String {
    if span.0 < 1_000_000 {
        format!("{}ms", span.0 as f64 / 1e3)
    } else {
        format!("{}s", span.0 as f64 / 1e6)
    }
}

fn chosen<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    let at = move |number: usize| (2 * number + 1) * all.len() / (2 * count.max(1));
    (0..count).filter_map(move |number| all.get(at(number)))
}

fn refused<E: std::fmt::Display>(error: E) -> anyhow::Error {
    usage(format_args!(
        "the policy cannot be set up at this scale: {error}"
    ))
}

fn as_table(value: &impl Serialize) -> Result<toml::Table> {
    toml::Table::try_from(value).map_err(refused)
}

fn of_table<T: DeserializeOwned>(table: toml::Value) -> Result<T> {
    table.try_into().map_err(refused::<toml::de::Error>)
}

/// Fails for tasks that are too short to be measured, and for jobs without maps. A task without work is allowed.
pub fn check(jobs: &[SimulatedJob], scale: Scale) -> Result<()> {
    if jobs.is_empty() {
        return Err(usage("the workload has no job"));
    }
    for job in jobs {
        if job.maps.is_empty() {
            return Err(usage(format_args!(
                "job {} has no map, which a cluster requires; add one without work: maps = {{ count = 1, seconds = 0 }}",
                job.name
            )));
        }
        let maps = job.maps.iter().map(|task| (TaskKind::Map, task.work));
        let all = maps.chain(
            job.reduces
                .iter()
                .map(|task| (TaskKind::Reduce, task.work())),
        );
        let short = all
            .filter(|(_, work)| work.0 > 0 && *work < TASK_MIN)
            .min_by_key(|(_, work)| *work);
        if let Some((kind, work)) = short {
            let most = scale.time * work.0 as f64 / TASK_MIN.0 as f64;
            let most = if most >= 10.0 {
                format!("{}", most.floor())
            } else {
                format!("{most:.2}")
            };
            return Err(usage(format_args!(
                "job {} has a {kind} of {} ms at this scale, which is too short to be measured (100 ms); choose a --time-scale of at \
                 most {most}",
                job.name,
                work.0 as f64 / 1e3
            )));
        }
    }
    Ok(())
}

/// The cluster of a trace.
const TRACE_CLUSTER: ClusterShape = ClusterShape::with_slots(10, 4, 2);

#[derive(Clone, Debug)]
pub enum ReplaySource {
    /// Its jobs depend on the seed.
    Workload {
        name: String,
        file: Box<WorkloadFile>,
    },
    /// Its jobs do not depend on the seed.
    Trace {
        name: String,
        trace: SwimTrace,
        model: SizeModel,
    },
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let published = PUBLISHED.map(|known| known.name).join(", ");
    usage(format_args!(
        "cannot read {}: {error}; give a file, or one of {published}",
        path.display()
    ))
}

impl ReplaySource {
    /// The published mix or the workload file of this name.
    pub fn workload(name: &str) -> Result<ReplaySource> {
        let file = match published(name) {
            Some(file) => file.map_err(usage)?,
            None => {
                let text = read_workload_text(Path::new(name))
                    .map_err(|error| unreadable(Path::new(name), &error))?;
                WorkloadFile::read(name, &text).map_err(usage)?
            }
        };
        if let Some(job) = file
            .jobs
            .iter()
            .find(|job| job.submit.as_deref() == Some("trigger"))
        {
            return Err(usage(format_args!(
                "job {} is submitted by a trigger, which only the simulator supports; give it a time",
                job.name
            )));
        }
        Ok(ReplaySource::Workload {
            name: name.to_owned(),
            file: Box::new(file),
        })
    }

    /// The first jobs of a trace in the format of SWIM; all without `jobs`.
    pub fn trace(path: &Path, jobs: Option<usize>) -> Result<ReplaySource> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let text = decompressed(file).map_err(|error| unreadable(path, &error))?;
        let mut trace = SwimTrace::read(&name, text).map_err(usage)?;
        trace.jobs.truncate(jobs.unwrap_or(usize::MAX));
        // A trace is an excerpt of a day; its first job is submitted at once.
        let first = trace.jobs.first().map_or(0, |job| job.submit);
        trace.jobs.iter_mut().for_each(|job| job.submit -= first);
        let model = SizeModel {
            reduces_max: Some(TRACE_CLUSTER.machines),
            ..SizeModel::default()
        };
        Ok(ReplaySource::Trace { name, trace, model })
    }

    pub fn name(&self) -> &str {
        match self {
            ReplaySource::Workload { name, .. } | ReplaySource::Trace { name, .. } => name,
        }
    }

    /// The default seed.
    pub fn seed(&self) -> u64 {
        match self {
            ReplaySource::Workload { file, .. } => file.seed,
            ReplaySource::Trace { .. } => 0,
        }
    }

    pub fn jobs(&self, seed: u64) -> Vec<SimulatedJob> {
        match self {
            ReplaySource::Workload { file, .. } => file.workload(seed).into_jobs(),
            ReplaySource::Trace { trace, model, .. } => trace.clone().workload(*model).into_jobs(),
        }
    }

    pub fn cluster(&self) -> Option<ClusterShape> {
        match self {
            ReplaySource::Workload { file, .. } => file.cluster,
            ReplaySource::Trace { .. } => Some(TRACE_CLUSTER),
        }
    }

    /// 0 if the source has none.
    pub fn heartbeat(&self) -> Span {
        match self {
            ReplaySource::Workload { file, .. } => file.overheads.heartbeat,
            ReplaySource::Trace { .. } => Span(0),
        }
    }

    /// Whether a job with reduces has output bytes of its maps.
    pub fn has_output_bytes(&self) -> bool {
        match self {
            ReplaySource::Workload { file, .. } => file.has_output_bytes(),
            ReplaySource::Trace { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use napreduce_engine::Time;
    use napreduce_schedulers::SchedulerName;
    use proptest::prelude::*;

    use super::*;

    fn plan(jobs: &[SimulatedJob], scale: f64) -> Result<LivePlan> {
        let full = FullPlan {
            jobs,
            cluster: ClusterShape::with_slots(2, 2, 1),
            heartbeat: Span::from_secs(3),
            policy: &SchedulerConfiguration::named(SchedulerName::Natjam),
            preemption: &PreemptionSettings::default(),
            seed: 1,
        };
        LivePlan::new(&full, Scale::new(scale, 1.0)?)
    }

    #[test]
    fn simulated_jobs_are_scaled() {
        let late = SimulatedJob::new("late", Time(40_000_000)).with_maps(3, Span::from_secs(20));
        let early = SimulatedJob::new("early", Time(0)).with_maps(1, Span::from_secs(10));
        let plan = plan(&[late, early], 20.0).unwrap();
        assert_eq!(
            (&*plan.jobs[0].name, plan.mean_gap()),
            ("early", Span::from_secs(2))
        );
        assert_eq!(
            (plan.heartbeat, plan.work()),
            (Span::from_millis(150), Span::from_millis(3_500))
        );
        assert_eq!(plan.workers(), [Slots { map: 2, reduce: 1 }; 2]);
        let costs = Costs {
            launch: Span::from_millis(10),
            ..Costs::default()
        };
        let run = plan.simulate(&costs).unwrap();
        assert_eq!(run.job("late").unwrap().sojourn(), Span::from_millis(1_010));
    }

    #[test]
    fn configuration_has_policy_queues_and_intervals() {
        let mut job = SimulatedJob::new("job", Time(0)).with_maps(1, Span::from_secs(20));
        job.queue = "production".into();
        let plan = plan(&[job], 20.0).unwrap();
        let text = plan.configuration().unwrap();
        assert!(
            text.contains("scheduler = \"natjam\"") && text.contains("queues = [\"production\"]"),
            "{text}"
        );
        assert!(text.contains("preemptor-interval = \"50ms\""), "{text}");
        assert!(
            plan.intervals
                .iter()
                .any(|line| line.contains("natjam.preemptor-interval")),
            "{plan:?}"
        );
    }

    #[test]
    fn output_bytes_are_bounded_proportionally() {
        let mut jobs = vec![SimulatedJob::new("job", Time(0)).with_maps(2, Span::from_secs(1))];
        (jobs[0].maps[0].output_bytes, jobs[0].maps[1].output_bytes) = (300 << 20, 100 << 20);
        bound_outputs(&mut jobs);
        let bytes: Vec<u64> = jobs[0].maps.iter().map(|task| task.output_bytes).collect();
        assert_eq!(bytes, [48 << 20, 16 << 20]);
    }

    fn scale(time: f64, tasks: f64) -> Scale {
        Scale::new(time, tasks).unwrap()
    }

    #[test]
    fn job_is_scaled() {
        let mut job = SimulatedJob::new("job", Time(60_000_000))
            .with_maps(100, Span::from_secs(10))
            .with_reduces(4, Span::from_secs(2), Span::from_secs(6));
        job.deadline = Some(Span::from_secs(600));
        job.memory = 3_000;
        let small = scale(20.0, 30.0).job(&job);
        assert_eq!(
            (small.submit, small.deadline),
            (Time(3_000_000), Some(Span::from_secs(30)))
        );
        assert_eq!(
            (small.maps.len(), small.maps[0].work),
            (3, Span::from_millis(500))
        );
        let reduce = SimulatedReduce {
            shuffle: Span(0),
            reduce: Span::from_millis(400),
            bytes: 0,
        };
        assert_eq!((small.reduces, small.memory), (vec![reduce], 100));
    }

    #[test]
    fn tasks_are_chosen_evenly() {
        let all: Vec<u32> = (0..10).collect();
        let chosen = |count| chosen(&all, count).copied().collect::<Vec<_>>();
        assert_eq!(
            (chosen(1), chosen(2), chosen(10)),
            (vec![5], vec![2, 7], all.clone())
        );
    }

    #[test]
    fn slots_are_scaled_over_the_cluster() {
        let shape = |machines, map_slots, reduce_slots, map_machines| ClusterShape {
            map_machines,
            ..ClusterShape::with_slots(machines, map_slots, reduce_slots)
        };
        let published = shape(45, 8, 4, None);
        assert_eq!(
            scale(60.0, 30.0).cluster(published, Some(3)),
            shape(3, 4, 2, None)
        );
        assert_eq!(
            scale(60.0, 30.0).cluster(published, None),
            shape(2, 6, 3, None)
        );
        assert_eq!(
            scale(1.0, 1000.0).cluster(published, None),
            shape(1, 1, 1, None)
        );
        let apart = shape(20, 4, 2, Some(10));
        assert_eq!(
            scale(20.0, 4.0).cluster(apart, Some(10)),
            shape(10, 2, 1, Some(5))
        );
    }

    #[test]
    fn intervals_of_policies_are_scaled_and_listed() {
        let fcs = SchedulerConfiguration::named(SchedulerName::Fcs);
        let (scaled, adjusted) = scale(60.0, 30.0).policy(&fcs).unwrap();
        assert_eq!(scaled.tables.fcs.heartbeat, Span::from_millis(50));
        assert!(
            adjusted.contains(&"fcs.heartbeat = \"3s\" -> \"50ms\"".to_owned()),
            "{adjusted:?}"
        );
        assert!(
            adjusted.iter().all(|line| line.starts_with("fcs.")),
            "{adjusted:?}"
        );
        for scheduler in SchedulerName::ALL {
            let policy = SchedulerConfiguration::named(scheduler);
            assert_eq!(
                scale(1.0, 1.0).policy(&policy).unwrap().0,
                policy,
                "{scheduler}"
            );
            scale(300.0, 10.0).policy(&policy).unwrap();
        }
        let settings = PreemptionSettings::default();
        assert_eq!(scale(7.0, 1.0).preemption(&settings).unwrap().0, settings);
    }

    #[test]
    fn short_tasks_are_an_error_with_a_scale_to_choose() {
        let job = SimulatedJob::new("quick", Time(0)).with_maps(2, Span::from_secs(5));
        let at = |time| {
            let scale = scale(time, 1.0);
            check(&[scale.job(&job)], scale)
        };
        assert!(at(50.0).is_ok());
        let error = at(100.0).unwrap_err().to_string();
        assert!(
            error.contains("quick") && error.contains("50 ms") && error.contains("at most 50"),
            "{error}"
        );
        assert!(
            check(&[], scale(1.0, 1.0))
                .unwrap_err()
                .to_string()
                .contains("no job")
        );
        let nothing = SimulatedJob::new("nothing", Time(0)).with_maps(1, Span(0));
        assert!(check(&[nothing], scale(1.0, 1.0)).is_ok());
    }

    #[test]
    fn scale_is_positive() {
        for (time, tasks, flag) in [
            (0.0, 1.0, "--time-scale"),
            (1.0, 0.0, "--task-scale"),
            (f64::NAN, 1.0, "--time"),
        ] {
            let error = Scale::new(time, tasks).unwrap_err().to_string();
            assert!(error.contains(flag), "{error}");
        }
    }

    proptest! {
        #[test]
        fn scaled_count_is_zero_only_for_zero(count in 0_usize..100_000, tasks in 0.5_f64..10_000.0) {
            let scaled = scale(1.0, tasks).count(count);
            prop_assert_eq!(scaled == 0, count == 0);
            prop_assert!((scaled as f64 - count as f64 / tasks).abs() <= 1.0);
        }
    }

    #[test]
    fn workload_is_published_or_a_file() {
        let source = ReplaySource::workload("fcs-map-heavy").unwrap();
        assert_eq!(
            (source.name(), source.seed(), source.jobs(1).len()),
            ("fcs-map-heavy", 1, 171)
        );
        assert!(source.has_output_bytes() && source.cluster().is_some());
        let error = ReplaySource::workload("no-such-mix")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cannot read no-such-mix") && error.contains("fcs-map-heavy"),
            "{error}"
        );
    }

    #[test]
    fn jobs_of_triggers_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.toml");
        let text =
            "[[job]]\nname = \"later\"\nsubmit = \"trigger\"\nmaps = { count = 1, seconds = 1 }\n";
        fs::write(&path, text).unwrap();
        let error = ReplaySource::workload(path.to_str().unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("job later is submitted by a trigger"),
            "{error}"
        );
    }

    #[test]
    fn trace_begins_at_once_and_may_be_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.tsv");
        fs::write(
            &path,
            "a\t100\t0\t1\t0\t0\nb\t130\t30\t1\t0\t0\nc\t190\t60\t1\t0\t0\n",
        )
        .unwrap();
        let source = ReplaySource::trace(&path, Some(2)).unwrap();
        let times: Vec<u64> = source
            .jobs(0)
            .iter()
            .map(|job| job.submit.0 / 1_000_000)
            .collect();
        assert_eq!(times, [0, 30]);
        let error = ReplaySource::trace(Path::new("/nowhere"), None)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot read /nowhere"), "{error}");
    }
}
