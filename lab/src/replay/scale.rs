//! Owns what a plan of jobs becomes at the scale of one machine: times divided by one factor, numbers of
//! tasks, slots and bytes by another, and intervals of policies by the first. What is too short to be
//! measured is refused. Where jobs come from and where they run belongs to others.

use crate::error::WorkloadReplayError;
use napreduce_engine::{PreemptionSettings, Span, TaskKind, Time};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{ClusterShape, SimulatedJob, SimulatedMap, SimulatedReduce};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Starting a task takes a few milliseconds, which are to be a small part of it.
const TASK_MIN: Span = Span::from_millis(100);
/// Keys of tables that are no time, though a name may look like one.
const NAMES: [&str; 6] = ["name", "queue", "default-queue", "pool", "user", "rules"];

/// How much smaller a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scale {
    /// Times are divided by it.
    pub time: f64,
    /// Numbers of tasks, slots and bytes are.
    pub tasks: f64,
}

impl Scale {
    /// Both must be above zero.
    ///
    /// # Errors
    /// Names the one that is not.
    pub fn new(time: f64, tasks: f64) -> Result<Scale, WorkloadReplayError> {
        for (flag, value) in [("--time-scale", time), ("--task-scale", tasks)] {
            if !(value.is_finite() && (0.001..=1e6).contains(&value)) {
                return Err(WorkloadReplayError::Scale { flag, value });
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

    /// At least one of what there is any of.
    pub fn count(self, count: usize) -> usize {
        if count == 0 { 0 } else { ((count as f64 / self.tasks).round() as usize).max(1) }
    }

    /// The job at this scale: of its tasks as many as it has then, evenly chosen. Fetching takes no time of
    /// its own on one machine: a reduce works for as long as it fetched, besides. No machine is preferred.
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
            maps: chosen(&job.maps, self.count(job.maps.len())).map(map).collect(),
            reduces: chosen(&job.reduces, self.count(job.reduces.len())).map(reduce).collect(),
            memory: self.bytes(job.memory),
            ..job.clone()
        }
    }

    /// All slots divided, on so many workers, or on as many as the machines divided come to.
    pub fn cluster(self, shape: ClusterShape, workers: Option<u32>) -> ClusterShape {
        let shape = shape.of_two_kinds();
        let machines = workers.unwrap_or(self.count(shape.machines as usize) as u32).max(1);
        let each = |slots: u32, of: u32, on: u32| match slots {
            0 => 0,
            _ => ((f64::from(slots) * f64::from(of) / self.tasks / f64::from(on)).round() as u32).max(1),
        };
        let Some(apart) = shape.map_machines.filter(|_| machines > 1) else {
            let map_slots = each(shape.map_slots, shape.machines, machines);
            let reduce_slots = each(shape.reduce_slots, shape.machines, machines);
            return ClusterShape::of_slots(machines, map_slots, reduce_slots);
        };
        let share = f64::from(apart) / f64::from(shape.machines);
        let maps = ((f64::from(machines) * share).round() as u32).clamp(1, machines - 1);
        ClusterShape {
            map_machines: Some(maps),
            ..ClusterShape::of_slots(
                machines,
                each(shape.map_slots, apart, maps),
                each(shape.reduce_slots, shape.machines - apart, machines - maps),
            )
        }
    }

    /// The policy with every interval of its own divided, and those that were, as `table.key = "3s" ->
    /// "50ms"`.
    ///
    /// # Errors
    /// When the policy refuses its values then.
    pub fn policy(
        self,
        policy: &SchedulerConfiguration,
    ) -> Result<(SchedulerConfiguration, Vec<String>), WorkloadReplayError> {
        let (mut tables, mut told) = (as_table(&policy.tables)?, Vec::new());
        let own = policy.scheduler.to_string();
        for (name, table) in &mut tables {
            let mut changes = Vec::new();
            self.intervals(table, name, &mut changes);
            // The others are at their defaults, unless the policy consists of them.
            if *name == own || policy.scheduler.in_words() == "composed" {
                told.append(&mut changes);
            }
        }
        let scaled = SchedulerConfiguration { scheduler: policy.scheduler, tables: of_table(tables.into())? };
        scaled.build().map_err(|error| WorkloadReplayError::Policy(error.to_string()))?;
        Ok((scaled, told))
    }

    /// The same of the settings of preemption.
    ///
    /// # Errors
    /// When they cannot be written as a table.
    pub fn preemption(
        self,
        settings: &PreemptionSettings,
    ) -> Result<(PreemptionSettings, Vec<String>), WorkloadReplayError> {
        let (mut table, mut told) = (as_table(settings)?, Vec::new());
        // What this cluster takes is what it takes, however quickly its jobs come.
        let expected = table.remove("auto");
        let mut table = toml::Value::Table(table);
        self.intervals(&mut table, "preemption", &mut told);
        if let (Some(expected), Some(table)) = (expected, table.as_table_mut()) {
            table.insert("auto".to_owned(), expected);
        }
        Ok((of_table(table)?, told))
    }

    fn intervals(self, value: &mut toml::Value, place: &str, told: &mut Vec<String>) {
        match value {
            toml::Value::String(text) => {
                if let Ok(span) = text.parse::<Span>()
                    && span.0 > 0
                {
                    // Where there was an interval one of nothing may be refused.
                    let scaled = Span(self.span(span).0.max(1));
                    told.push(format!("{place} = {text:?} -> {:?}", shown(scaled)));
                    *text = format!("{}us", scaled.0);
                }
            }
            toml::Value::Array(all) => {
                all.iter_mut().for_each(|value| self.intervals(value, place, told));
            }
            toml::Value::Table(table) => {
                for (key, value) in table.iter_mut().filter(|(key, _)| !NAMES.contains(&key.as_str())) {
                    self.intervals(value, &format!("{place}.{key}"), told);
                }
            }
            _ => {}
        }
    }
}

/// A time for people: milliseconds where there are any.
fn shown(span: Span) -> String {
    if span.0 < 1_000_000 {
        format!("{}ms", span.0 as f64 / 1e3)
    } else {
        format!("{}s", span.0 as f64 / 1e6)
    }
}

/// So many of all, evenly.
fn chosen<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    let at = move |number: usize| (2 * number + 1) * all.len() / (2 * count.max(1));
    (0..count).filter_map(move |number| all.get(at(number)))
}

fn as_table(value: &impl Serialize) -> Result<toml::Table, WorkloadReplayError> {
    toml::Table::try_from(value).map_err(|error| WorkloadReplayError::Policy(error.to_string()))
}

fn of_table<T: DeserializeOwned>(table: toml::Value) -> Result<T, WorkloadReplayError> {
    table.try_into().map_err(|error: toml::de::Error| WorkloadReplayError::Policy(error.to_string()))
}

/// Refuses jobs without meaning here: tasks too short to be measured, and none at all. A task without any
/// work is allowed: it is no measurement.
///
/// # Errors
/// Names the job, and what to do.
pub fn check(jobs: &[SimulatedJob], scale: Scale) -> Result<(), WorkloadReplayError> {
    if jobs.is_empty() {
        return Err(WorkloadReplayError::NoJobs);
    }
    for job in jobs {
        if job.maps.is_empty() {
            return Err(WorkloadReplayError::NoMaps { job: job.name.to_string() });
        }
        let maps = job.maps.iter().map(|task| (TaskKind::Map, task.work));
        let all = maps.chain(job.reduces.iter().map(|task| (TaskKind::Reduce, task.work())));
        let short = all.filter(|(_, work)| work.0 > 0 && *work < TASK_MIN).min_by_key(|(_, work)| *work);
        if let Some((kind, work)) = short {
            let most = scale.time * work.0 as f64 / TASK_MIN.0 as f64;
            return Err(WorkloadReplayError::TooShort {
                job: job.name.to_string(),
                kind,
                micros: work.0,
                most,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_schedulers::SchedulerName;
    use proptest::prelude::*;

    fn scale(time: f64, tasks: f64) -> Scale {
        Scale::new(time, tasks).unwrap()
    }

    #[test]
    fn a_job_is_smaller_and_sooner() {
        let mut job = SimulatedJob::new("job", Time(60_000_000))
            .with_maps(100, Span::from_secs(10))
            .with_reduces(4, Span::from_secs(2), Span::from_secs(6));
        job.deadline = Some(Span::from_secs(600));
        job.memory = 3_000;
        let small = scale(20.0, 30.0).job(&job);
        assert_eq!((small.submit, small.deadline), (Time(3_000_000), Some(Span::from_secs(30))));
        assert_eq!((small.maps.len(), small.maps[0].work), (3, Span::from_millis(500)));
        let reduce = SimulatedReduce { shuffle: Span(0), reduce: Span::from_millis(400), bytes: 0 };
        assert_eq!((small.reduces, small.memory), (vec![reduce], 100));
    }

    #[test]
    fn tasks_are_chosen_evenly() {
        let all: Vec<u32> = (0..10).collect();
        let chosen = |count| chosen(&all, count).copied().collect::<Vec<_>>();
        assert_eq!((chosen(1), chosen(2), chosen(10)), (vec![5], vec![2, 7], all.clone()));
    }

    #[test]
    fn slots_are_divided_in_all() {
        let shape = |machines, map_slots, reduce_slots, map_machines| ClusterShape {
            map_machines,
            ..ClusterShape::of_slots(machines, map_slots, reduce_slots)
        };
        let published = shape(45, 8, 4, None);
        assert_eq!(scale(60.0, 30.0).cluster(published, Some(3)), shape(3, 4, 2, None));
        assert_eq!(scale(60.0, 30.0).cluster(published, None), shape(2, 6, 3, None));
        assert_eq!(scale(1.0, 1000.0).cluster(published, None), shape(1, 1, 1, None));
        let apart = shape(20, 4, 2, Some(10));
        assert_eq!(scale(20.0, 4.0).cluster(apart, Some(10)), shape(10, 2, 1, Some(5)));
    }

    #[test]
    fn intervals_of_policies_are_divided_and_told() {
        let fcs = SchedulerConfiguration::named(SchedulerName::Fcs);
        let (scaled, told) = scale(60.0, 30.0).policy(&fcs).unwrap();
        assert_eq!(scaled.tables.fcs.heartbeat, Span::from_millis(50));
        assert!(told.contains(&"fcs.heartbeat = \"3s\" -> \"50ms\"".to_owned()), "{told:?}");
        assert!(told.iter().all(|line| line.starts_with("fcs.")), "{told:?}");
        for scheduler in SchedulerName::ALL {
            let policy = SchedulerConfiguration::named(scheduler);
            assert_eq!(scale(1.0, 1.0).policy(&policy).unwrap().0, policy, "{scheduler}");
            scale(300.0, 10.0).policy(&policy).unwrap();
        }
        let settings = PreemptionSettings::default();
        assert_eq!(scale(7.0, 1.0).preemption(&settings).unwrap().0, settings);
    }

    #[test]
    fn what_is_too_short_is_refused_with_what_to_do() {
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
        assert!(check(&[], scale(1.0, 1.0)).unwrap_err().to_string().contains("no job"));
        let nothing = SimulatedJob::new("nothing", Time(0)).with_maps(1, Span(0));
        assert!(check(&[nothing], scale(1.0, 1.0)).is_ok());
    }

    #[test]
    fn a_scale_is_above_zero() {
        for (time, tasks, flag) in
            [(0.0, 1.0, "--time-scale"), (1.0, 0.0, "--task-scale"), (f64::NAN, 1.0, "--time")]
        {
            let error = Scale::new(time, tasks).unwrap_err().to_string();
            assert!(error.contains(flag), "{error}");
        }
    }

    proptest! {
        #[test]
        fn there_is_always_some_of_what_there_was(count in 0_usize..100_000, tasks in 0.5_f64..10_000.0) {
            let scaled = scale(1.0, tasks).count(count);
            prop_assert_eq!(scaled == 0, count == 0);
            prop_assert!((scaled as f64 - count as f64 / tasks).abs() <= 1.0);
        }
    }
}
