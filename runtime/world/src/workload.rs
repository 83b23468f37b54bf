//! The jobs of a run: what they compute is a function of their parameters, so that their output is known without running
//! them.

use std::path::Path;
use std::time::Duration;

use napreduce_engine::{TaskId, TaskKind};
use napreduce_protocol::{CheckpointSupport, JobPlan, Split};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::chance::Chance;
use crate::plan::{GivenJob, PlannedJob};

/// Bytes of each split; only the plan mentions them.
const SPLIT_BYTES: u64 = 1 << 20;

/// The parameters of a job, which its tasks decode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Distinguishes the values of this job from those of others.
    pub number: u32,
    pub maps: u32,
    pub reduces: u32,
    /// Maximum units of work of a task.
    pub units_max: u32,
    /// Time for one unit.
    pub unit_millis: u64,
    /// Units of work of each task; drawn if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<Units>,
}

/// Units of work of each task of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Units {
    pub maps: Vec<u32>,
    pub reduces: Vec<u32>,
}

/// A job to submit, and when.
#[derive(Debug, Clone)]
pub struct SimJob {
    pub parameters: Parameters,
    pub submitted: Duration,
    pub user: String,
    pub plan: JobPlan,
}

impl SimJob {
    /// Returns a planned job, whose output is in `directory`.
    pub fn new(chance: &mut Chance, planned: &PlannedJob, directory: &Path) -> SimJob {
        match &planned.given {
            Some(job) => SimJob::given(planned.number, job, directory),
            None => SimJob::draw(chance, planned, directory),
        }
    }

    fn given(number: u32, job: &GivenJob, directory: &Path) -> SimJob {
        let parameters = Parameters {
            number,
            maps: length(&job.maps),
            reduces: length(&job.reduces),
            units_max: 0,
            unit_millis: 100,
            units: Some(Units {
                maps: job.maps.clone(),
                reduces: job.reduces.clone(),
            }),
        };
        let mut plan = JobPlan::new("sim", directory.join(format!("output-{number}")));
        plan.name.clone_from(&job.name);
        plan.queue.clone_from(&job.queue);
        plan.priority = job.priority;
        plan.deadline = job.deadline;
        plan.slowstart_permille = 1_000;
        plan.checkpoint = CheckpointSupport {
            map: true,
            reduce: true,
        };
        add_tasks(&mut plan, &parameters, directory);
        SimJob {
            parameters,
            submitted: job.submitted,
            user: job.user.clone(),
            plan,
        }
    }

    fn draw(chance: &mut Chance, planned: &PlannedJob, directory: &Path) -> SimJob {
        let number = planned.number;
        let parameters = Parameters {
            number,
            maps: chance.count(0, 9),
            reduces: *chance.pick(&[0, 0, 1, 2, 3, 4]).unwrap_or(&1),
            units_max: chance.count(1, 8),
            unit_millis: chance.between(20, 3_000),
            units: None,
        };
        let mut plan = JobPlan::new("sim", directory.join(format!("output-{}", planned.output)));
        plan.overwrite = planned.overwrites;
        plan.name = format!("job-{number}");
        plan.priority = i32::from(chance.happens(300));
        plan.slowstart_permille = chance.count(0, 10) * 100;
        plan.task_timeout = Duration::from_secs(chance.between(20, 120));
        plan.checkpoint = CheckpointSupport {
            map: chance.happens(500),
            // Some policies refuse other jobs.
            reduce: true,
        };
        add_tasks(&mut plan, &parameters, directory);
        SimJob {
            parameters,
            submitted: chance.millis(0, 8_000),
            user: "user".to_owned(),
            plan,
        }
    }
}

/// Adds the tasks of a job to its plan, and the parameters for them.
fn add_tasks(plan: &mut JobPlan, parameters: &Parameters, directory: &Path) {
    let input = directory.join("input");
    for _ in 0..parameters.maps {
        plan.splits.push(Split::whole(&input, SPLIT_BYTES).into());
    }
    plan.reduces = parameters.reduces;
    plan.parameters = serde_json::to_vec(parameters).expect("numbers, which JSON can represent");
}

fn length(tasks: &[u32]) -> u32 {
    u32::try_from(tasks.len()).expect("as many tasks as a test has")
}

impl Parameters {
    /// Returns the units of work of a task.
    pub fn units(&self, kind: TaskKind, index: u32) -> u32 {
        if let Some(units) = &self.units {
            let of_kind = match kind {
                TaskKind::Map => &units.maps,
                TaskKind::Reduce => &units.reduces,
            };
            return of_kind[index as usize];
        }
        let drawn = self.mix(0x75, &[kind_number(kind), u64::from(index)]);
        1 + u32::try_from(drawn % u64::from(self.units_max)).unwrap_or_default()
    }

    /// Returns the value of a map before its first unit of work.
    pub fn map_start(&self, map: u32) -> u64 {
        self.mix(0x6d, &[u64::from(map)])
    }

    /// Returns the value of a reduce before its first unit of work, from what the maps emitted for it, in their order.
    pub fn reduce_start(&self, partition: u32, emitted: &[u64]) -> u64 {
        let mut values = vec![u64::from(partition)];
        values.extend(emitted);
        self.mix(0x72, &values)
    }

    /// Returns the value after a unit of work.
    pub fn advance(&self, value: u64, unit: u32) -> u64 {
        self.mix(0x61, &[value, u64::from(unit)])
    }

    /// Returns what a map emits for a partition.
    pub fn emitted(&self, value: u64, partition: u32) -> u64 {
        self.mix(0x65, &[value, u64::from(partition)])
    }

    /// Returns the text of a part.
    pub fn part(&self, task: TaskId, value: u64) -> String {
        format!("{} {} {value:016x}\n", self.number, task.index)
    }

    /// Returns the text of every part of the output, in order.
    pub fn parts(&self, task: impl Fn(TaskKind, u32) -> TaskId) -> Vec<String> {
        let mut maps = Vec::new();
        for map in 0..self.maps {
            maps.push(self.worked(TaskKind::Map, map, self.map_start(map)));
        }
        if self.reduces == 0 {
            let mut parts = Vec::new();
            for (map, value) in (0..).zip(maps) {
                parts.push(self.part(task(TaskKind::Map, map), value));
            }
            return parts;
        }
        let mut parts = Vec::new();
        for partition in 0..self.reduces {
            let emitted: Vec<u64> = maps
                .iter()
                .map(|value| self.emitted(*value, partition))
                .collect();
            let start = self.reduce_start(partition, &emitted);
            let value = self.worked(TaskKind::Reduce, partition, start);
            parts.push(self.part(task(TaskKind::Reduce, partition), value));
        }
        parts
    }

    /// Returns the bytes that all tasks write whose result counts.
    pub fn bytes(&self, task: impl Fn(TaskKind, u32) -> TaskId) -> u64 {
        let mut bytes = 0;
        for part in self.parts(task) {
            bytes += part.len() as u64;
        }
        if self.reduces == 0 {
            return bytes;
        }
        for map in 0..self.maps {
            let value = self.worked(TaskKind::Map, map, self.map_start(map));
            bytes += self.segment(value).len() as u64;
        }
        bytes
    }

    /// Returns the text of a map's output for reduces.
    pub fn segment(&self, value: u64) -> String {
        let mut emitted = Vec::new();
        for partition in 0..self.reduces {
            emitted.push(self.emitted(value, partition));
        }
        serde_json::to_string(&emitted).unwrap_or_default()
    }

    /// Returns the value of a task after all its work.
    fn worked(&self, kind: TaskKind, index: u32, start: u64) -> u64 {
        let mut value = start;
        for unit in 0..self.units(kind, index) {
            value = self.advance(value, unit);
        }
        value
    }

    fn mix(&self, purpose: u64, values: &[u64]) -> u64 {
        let mut mixed = purpose ^ u64::from(self.number) << 8;
        for value in values {
            mixed = xxh3_64_with_seed(&value.to_le_bytes(), mixed);
        }
        mixed
    }
}

fn kind_number(kind: TaskKind) -> u64 {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}
