//! The job size model of traces: derives tasks and their times from bytes. A trace has no rates; the defaults
//! are our own.

use std::sync::Arc;

use napreduce_engine::{Span, Time};
use rand::Rng;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::Workload;
use super::file::{ALL_TASKS_MAX, TASKS_MAX};
use super::swim::{SwimJob, SwimTrace};
use crate::job::{SimulatedJob, SimulatedMap, SimulatedReduce};
use crate::settings::LimitError;

/// The parameters of the model. By default all rates are 10 MB/s, which corresponds to slots of the
/// traces' time and gives the original clusters a load of about one fifth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SizeModel {
    /// Bytes per map; at least one map per job.
    pub block: u64,
    /// Shuffle plus output bytes per reduce, rounded; at least one reduce.
    pub bytes_per_reduce: u64,
    /// Maximum reduces. Above it a job gets a fifth of the maximum, as in SWIM's replay tool.
    pub reduces_max: Option<u32>,
    /// Bytes per second that a map reads and processes.
    pub map_rate: u64,
    /// Bytes per second that a reduce fetches.
    pub shuffle_rate: u64,
    /// Bytes per second that a reduce merges and processes.
    pub reduce_rate: u64,
    /// Bytes per second that tasks write.
    pub write_rate: u64,
    /// Minimum task time, including startup and commit.
    pub task_minimum: Span,
    /// Fraction of maps, in thousandths, that must be done before reduces start.
    pub slowstart_permille: u32,
    /// Placement of the splits, if any.
    pub replicas: Option<Replicas>,
    /// Maximum tasks of small and medium jobs.
    pub small_max: u32,
    pub medium_max: u32,
    /// Memory of a task in bytes, for swapping and checkpoints.
    pub memory: u64,
}

impl Default for SizeModel {
    fn default() -> SizeModel {
        SizeModel {
            block: 128 << 20,
            bytes_per_reduce: 1 << 30,
            reduces_max: None,
            map_rate: 10_000_000,
            shuffle_rate: 10_000_000,
            reduce_rate: 10_000_000,
            write_rate: 10_000_000,
            task_minimum: Span::from_secs(2),
            slowstart_permille: 1000,
            replicas: None,
            small_max: 10,
            medium_max: 150,
            memory: 0,
        }
    }
}

/// The placement of splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicas {
    /// Copies per split.
    pub count: u32,
    pub machines: u32,
    /// Number of racks; machines are assigned round-robin. With several racks, the second and third copy
    /// share a rack other than the first's, as in HDFS; further copies are anywhere.
    pub racks: u32,
    pub seed: u64,
}

impl SizeModel {
    pub fn maps(&self, job: &SwimJob) -> u64 {
        job.map_input.div_ceil(self.block.max(1)).max(1)
    }

    /// Returns the number of reduces; zero without a shuffle.
    pub fn reduces(&self, job: &SwimJob) -> u64 {
        if job.shuffle == 0 {
            return 0;
        }
        let bytes = u128::from(job.shuffle) + u128::from(job.output);
        let per = u128::from(self.bytes_per_reduce.max(1));
        let wanted = u64::try_from((bytes * 2 + per) / (2 * per))
            .unwrap_or(u64::MAX)
            .max(1);
        match self.reduces_max {
            Some(most) if wanted > u64::from(most) => u64::from(most / 5).max(1),
            _ => wanted,
        }
    }

    /// Checks the numbers of tasks against the limits.
    ///
    /// # Errors
    /// Names the first job with too many tasks.
    pub fn check(&self, trace: &SwimTrace) -> Result<(), LimitError> {
        let mut all = 0_u64;
        for job in &trace.jobs {
            let tasks = [
                ("map", "block", self.maps(job)),
                ("reduce", "bytes-per-reduce", self.reduces(job)),
            ];
            for (kind, size, count) in tasks {
                if count > u64::from(TASKS_MAX) {
                    let error = format!(
                        "job {:?}: too many {kind} tasks: {count} (limit {TASKS_MAX}); increase {size}, or scale the trace",
                        job.name
                    );
                    return Err(LimitError(error));
                }
                all += count;
            }
        }
        if all > ALL_TASKS_MAX {
            let error = format!(
                "too many tasks: {all} (limit {ALL_TASKS_MAX}); use fewer jobs, or scale the trace"
            );
            return Err(LimitError(error));
        }
        Ok(())
    }

    /// Creates the job with its tasks.
    pub fn plan(&self, job: &SwimJob) -> SimulatedJob {
        let mut plan = SimulatedJob::new(
            Arc::from(&*job.name),
            Time(job.submit.saturating_mul(1_000_000)),
        );
        let maps = self.maps(job);
        let reduces = self.reduces(job);
        let written = if reduces == 0 {
            job.output
        } else {
            job.shuffle
        };
        let mut random = self
            .replicas
            .map(|replicas| Pcg64::seed_from_u64(replicas.seed ^ name_hash(&job.name)));
        plan.maps = (0..maps)
            .map(|index| {
                let bytes = share(job.map_input, self.block, index);
                let output_bytes = part(written, maps, index);
                let work = span(bytes, self.map_rate) + span(output_bytes, self.write_rate);
                let preferred = match (self.replicas, &mut random) {
                    (Some(replicas), Some(random)) => draw_replicas(replicas, random),
                    _ => Vec::new(),
                };
                SimulatedMap {
                    work: work.max(self.task_minimum),
                    bytes,
                    output_bytes,
                    preferred,
                }
            })
            .collect();
        plan.reduces = (0..reduces)
            .map(|index| {
                let bytes = part(job.shuffle, reduces, index);
                let output = part(job.output, reduces, index);
                let shuffle = span(bytes, self.shuffle_rate);
                let reduce = span(bytes, self.reduce_rate) + span(output, self.write_rate);
                let rest = Span(self.task_minimum.0.saturating_sub(shuffle.0));
                SimulatedReduce {
                    shuffle,
                    reduce: reduce.max(rest),
                    bytes,
                }
            })
            .collect();
        plan.slowstart_permille = self.slowstart_permille;
        plan.memory = self.memory;
        plan.class = match maps + reduces {
            tasks if tasks <= u64::from(self.small_max) => "small".into(),
            tasks if tasks <= u64::from(self.medium_max) => "medium".into(),
            _ => "large".into(),
        };
        plan
    }
}

impl SwimTrace {
    /// Converts the trace to a workload. The tasks of a job are created when it is submitted.
    pub fn workload(self, model: SizeModel) -> Workload {
        Workload::stream(self.jobs.into_iter().map(move |job| model.plan(&job)))
    }

    /// Returns (arrival, size) pairs in seconds for one server, as schedsim does. A size is input + (1 +
    /// `d_over_n`) * shuffle + output; sizes are scaled to add up to `load` times the last submit time.
    pub fn schedsim(&self, d_over_n: f64, load: f64) -> Vec<(f64, f64)> {
        let size = |job: &SwimJob| {
            job.map_input as f64 + (1.0 + d_over_n) * job.shuffle as f64 + job.output as f64
        };
        let total: f64 = self.jobs.iter().map(size).sum();
        let last = self.jobs.last().map_or(0, |job| job.submit) as f64;
        let scale = if total > 0.0 {
            load * last / total
        } else {
            0.0
        };
        self.jobs
            .iter()
            .map(|job| (job.submit as f64, size(job) * scale))
            .collect()
    }
}

/// Returns the bytes of one split.
fn share(total: u64, block: u64, index: u64) -> u64 {
    total.saturating_sub(index.saturating_mul(block)).min(block)
}

/// Returns one of `parts` equal parts; the first parts take the remainder.
fn part(total: u64, parts: u64, index: u64) -> u64 {
    total / parts + u64::from(index < total % parts)
}

fn span(bytes: u64, rate: u64) -> Span {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(rate.max(1));
    Span(u64::try_from(micros).unwrap_or(u64::MAX))
}

pub(super) fn draw_replicas(replicas: Replicas, random: &mut Pcg64) -> Vec<u32> {
    let mut machines: Vec<u32> = Vec::new();
    while machines.len() < replicas.count.min(replicas.machines) as usize {
        let machine = random.random_range(0..replicas.machines);
        if !machines.contains(&machine) && replicas.may_follow(&machines, machine) {
            machines.push(machine);
        }
    }
    machines
}

impl Replicas {
    /// Whether the next copy may be placed on a machine, given the racks of the previous ones.
    fn may_follow(self, before: &[u32], machine: u32) -> bool {
        let rack = |machine: u32| machine % self.racks.max(1);
        match *before {
            [first] if self.racks > 1 => rack(machine) != rack(first),
            // A rack with one machine has no place for the third copy.
            [_, second] if self.racks > 1 && self.on_rack(rack(second)) > 1 => {
                rack(machine) == rack(second)
            }
            _ => true,
        }
    }

    /// Returns the number of machines of a rack.
    fn on_rack(self, rack: u32) -> u32 {
        (self.machines.saturating_sub(rack)).div_ceil(self.racks.max(1))
    }
}

/// FNV-1a. The placement of a job's splits depends on its name and the seed only.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(map_input: u64, shuffle: u64, output: u64) -> SwimJob {
        let name = "job".into();
        SwimJob {
            name,
            submit: 3,
            gap: 0,
            map_input,
            shuffle,
            output,
            input_path: None,
            fields: 6,
        }
    }

    #[test]
    fn model_creates_map_per_block() {
        let model = SizeModel {
            block: 100,
            ..SizeModel::default()
        };
        let maps = |bytes| model.maps(&job(bytes, 0, 0));
        assert_eq!([maps(0), maps(1), maps(100), maps(101)], [1, 1, 1, 2]);
        assert_eq!(model.reduces(&job(9, 0, 9_000_000_000)), 0);
    }

    #[test]
    fn reduces_are_rounded_and_bounded_as_in_swim() {
        let model = SizeModel {
            bytes_per_reduce: 100,
            reduces_max: Some(50),
            ..SizeModel::default()
        };
        let reduces = |bytes| model.reduces(&job(0, bytes, 0));
        assert_eq!(
            [
                reduces(1),
                reduces(149),
                reduces(150),
                reduces(5_000),
                reduces(5_100)
            ],
            [1, 1, 2, 50, 10]
        );
    }

    #[test]
    fn times_follow_bytes_and_rates() {
        let model = SizeModel {
            block: 100,
            bytes_per_reduce: 200,
            map_rate: 10,
            shuffle_rate: 20,
            reduce_rate: 40,
            write_rate: 50,
            task_minimum: Span::from_secs(1),
            ..SizeModel::default()
        };
        let plan = model.plan(&job(150, 200, 200));
        let maps: Vec<u64> = plan.maps.iter().map(|task| task.work.0 / 1000).collect();
        assert_eq!(maps, [12_000, 7_000]);
        let reduces: Vec<_> = plan
            .reduces
            .iter()
            .map(|task| (task.shuffle.0, task.reduce.0))
            .collect();
        assert_eq!(reduces, [(5_000_000, 4_500_000), (5_000_000, 4_500_000)]);
        assert_eq!((&*plan.class, plan.submit), ("small", Time(3_000_000)));
    }

    #[test]
    fn replicas_are_distinct_and_reproducible() {
        let replicas = Some(Replicas {
            count: 3,
            machines: 5,
            racks: 1,
            seed: 9,
        });
        let model = SizeModel {
            block: 1,
            replicas,
            ..SizeModel::default()
        };
        let plan = model.plan(&job(50, 0, 0));
        assert_eq!(plan, model.plan(&job(50, 0, 0)));
        for task in &plan.maps {
            let mut machines = task.preferred.clone();
            machines.sort_unstable();
            machines.dedup();
            assert!(
                machines.len() == 3 && machines[2] < 5,
                "{:?}",
                task.preferred
            );
        }
    }

    #[test]
    fn second_and_third_replica_share_another_rack() {
        let mut random = Pcg64::seed_from_u64(3);
        for (machines, racks) in [(4, 2), (9, 3), (40, 4), (100, 7)] {
            let replicas = Replicas {
                count: 4,
                machines,
                racks,
                seed: 0,
            };
            for _ in 0..200 {
                let copies = draw_replicas(replicas, &mut random);
                let of: Vec<u32> = copies.iter().map(|machine| machine % racks).collect();
                assert!(
                    of[0] != of[1] && of[1] == of[2],
                    "{copies:?} on {racks} racks"
                );
                assert!(
                    (1..4).all(|at| !copies[..at].contains(&copies[at])),
                    "{copies:?}"
                );
            }
        }
        let alone = Replicas {
            count: 3,
            machines: 3,
            racks: 3,
            seed: 0,
        };
        assert_eq!(
            draw_replicas(alone, &mut random).len(),
            3,
            "racks of one machine each"
        );
    }

    #[test]
    fn schedsim_sizes_match_load() {
        let trace = SwimTrace {
            jobs: vec![
                job(1, 0, 0),
                SwimJob {
                    submit: 100,
                    ..job(0, 1, 3)
                },
            ],
        };
        let jobs = trace.schedsim(4.0, 0.9);
        assert_eq!(jobs[0], (3.0, 10.0));
        assert_eq!(jobs[1], (100.0, 80.0));
    }
}
