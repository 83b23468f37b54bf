//! Owns jobs whose tasks take as long as a plan says, task by task: a map is one split of fixed records, a
//! reduce has a group for every few milliseconds. Closures without state, so that every primitive can preempt
//! them, and outputs that do not depend on how the time passes. Which lengths they have belongs to whoever
//! replays a workload.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use napreduce::{Emit, Job, Program, TaskError};
use napreduce_engine::listed;
use serde::{Deserialize, Serialize};

use super::ballast::Ballast;
use super::pace::Pace;
use super::steps::turn;

/// The definitions: with reduces, and without.
pub const REPLAYED: &str = "replayed";
pub const REPLAYED_MAPS: &str = "replayed-maps";

/// Records of a map, so that its progress has steps of 2 %.
pub const RECORDS: u64 = 50;
/// The number of a map, and that of the record in it.
pub const RECORD_BYTES: usize = 16;
/// How long a reduce takes for one group, about.
const GROUP: Duration = Duration::from_millis(5);
/// Rounds of the number that a step leaves in the output.
const MARK_ROUNDS: u64 = 16;

listed! {
    /// How the time of a task passes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum TaskBody {
        Sleep = "sleep",
        /// It calculates, as much as the machine did in that time before.
        Cpu = "cpu",
        /// It writes and reads back its bytes, and sleeps for the rest.
        Io = "io",
        /// It fills the memory of a task of its job, sleeps, and reads it back at its end.
        Fill = "fill",
    }
}

read_by_word!(TaskBody: "there is no body");

/// The tasks of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedTasks {
    /// Without, no time passes: the same output at once.
    pub body: Option<TaskBody>,
    /// Rounds of arithmetic that this machine does in a second.
    pub rounds_per_second: u64,
    /// MiB of memory of each task.
    pub fill_mib: u64,
    pub maps: Vec<ReplayedTask>,
    /// None makes it map-only.
    pub reduces: Vec<ReplayedTask>,
}

/// One of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedTask {
    pub micros: u64,
    /// Bytes that it reads and writes where its body is `io`.
    pub bytes: u64,
    /// Bytes that a map writes for the reduces.
    pub output_bytes: u64,
}

impl ReplayedTask {
    /// How many groups it has as a reduce.
    fn groups(self) -> u64 {
        (self.micros / GROUP.as_micros() as u64).max(1)
    }
}

/// The input of jobs of up to so many maps; each is one split of [`RECORDS`] records.
pub fn records(maps: u64) -> Vec<u8> {
    let record = |map: u64, step: u64| [map.to_be_bytes(), step.to_be_bytes()].concat();
    (0..maps).flat_map(|map| (0..RECORDS).flat_map(move |step| record(map, step))).collect()
}

pub fn add_to(program: Program) -> Program {
    program.job(REPLAYED, with_reduces).job(REPLAYED_MAPS, maps_alone)
}

fn with_reduces(tasks: &ReplayedTasks) -> Job {
    let (of_map, of_reduce) = (Passing::of(tasks), Passing::of(tasks));
    let (maps, reduces) = (tasks.clone(), tasks.clone());
    Job::fixed_records(RECORD_BYTES)
        .map(move |record: &[u8], out: &mut Emit<(u32, u64), String>| -> Result<(), TaskError> {
            let (number, step) = place(record)?;
            let map = task(&maps.maps, number)?;
            of_map.step(map, (step, RECORDS))?;
            if step + 1 == RECORDS {
                emit_groups(&maps, number, map, out);
            }
            Ok(())
        })
        .partition_by(|(partition, _), partitions| partition % partitions)
        .reduce(move |(partition, group), values, out| -> Result<(), TaskError> {
            let reduce = task(&reduces.reduces, u64::from(partition))?;
            let (mut count, mut bytes) = (0_u64, 0);
            while let Some(value) = values.next() {
                count += 1;
                bytes += value.len();
            }
            of_reduce.step(reduce, (group, reduce.groups()))?;
            out.emit((partition, group), format!("{:016x} {count} {bytes}", turn(group, MARK_ROUNDS)));
            Ok(())
        })
}

/// Every map has its bytes for every reduce; the first has the groups, which all come once.
fn emit_groups(tasks: &ReplayedTasks, map: u64, of: ReplayedTask, out: &mut Emit<(u32, u64), String>) {
    let share = of.output_bytes / (tasks.reduces.len() as u64).max(1);
    let filler = "-".repeat(usize::try_from(share).unwrap_or_default());
    for (partition, reduce) in (0..).zip(&tasks.reduces) {
        out.emit((partition, 0), &filler);
        if map == 0 {
            (1..reduce.groups()).for_each(|group| out.emit((partition, group), ""));
        }
    }
}

fn maps_alone(tasks: &ReplayedTasks) -> Job {
    let (passing, tasks) = (Passing::of(tasks), tasks.clone());
    Job::fixed_records(RECORD_BYTES).map_only(move |record: &[u8], out| -> Result<(), TaskError> {
        let (number, step) = place(record)?;
        passing.step(task(&tasks.maps, number)?, (step, RECORDS))?;
        out.emit((number, step), format!("{:016x}", turn(number * RECORDS + step, MARK_ROUNDS)));
        Ok(())
    })
}

fn place(record: &[u8]) -> Result<(u64, u64), TaskError> {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes);
    match (record.get(..8).map(number), record.get(8..).map(number)) {
        (Some(Ok(map)), Some(Ok(step))) => Ok((map, step)),
        _ => Err(TaskError::fatal(format!("{record:?} is no record of a replayed map"))),
    }
}

fn task(tasks: &[ReplayedTask], number: u64) -> Result<ReplayedTask, TaskError> {
    let found = usize::try_from(number).ok().and_then(|number| tasks.get(number));
    found.copied().ok_or_else(|| TaskError::fatal(format!("the plan has no task {number}")))
}

/// How time passes in one process, which runs one attempt.
struct Passing {
    body: Option<TaskBody>,
    rounds_per_second: u64,
    pace: Pace,
    ballast: Ballast,
    scratch: Mutex<Option<File>>,
}

impl Passing {
    fn of(tasks: &ReplayedTasks) -> Arc<Passing> {
        let fill = if tasks.body == Some(TaskBody::Fill) { tasks.fill_mib } else { 0 };
        Arc::new(Passing {
            body: tasks.body,
            rounds_per_second: tasks.rounds_per_second,
            pace: Pace::default(),
            ballast: Ballast::new(fill, fill),
            scratch: Mutex::new(None),
        })
    }

    /// One of so many equal steps of a task.
    fn step(&self, task: ReplayedTask, (number, steps): (u64, u64)) -> Result<(), TaskError> {
        let Some(body) = self.body else { return Ok(()) };
        let micros = part(task.micros, (number, steps));
        let time = Duration::from_micros(micros);
        match body {
            TaskBody::Sleep => self.pace.pass(time),
            TaskBody::Cpu => {
                let rounds = u128::from(self.rounds_per_second) * u128::from(micros) / 1_000_000;
                std::hint::black_box(turn(number, u64::try_from(rounds).unwrap_or(u64::MAX)));
            }
            TaskBody::Io => {
                let began = Instant::now();
                self.move_bytes(part(task.bytes, (number, steps)))
                    .map_err(|error| TaskError::task(format!("cannot write and read back: {error}")))?;
                self.pace.credit(began.elapsed());
                self.pace.pass(time);
            }
            TaskBody::Fill => {
                let began = Instant::now();
                self.ballast.fill_once();
                if number + 1 == steps {
                    std::hint::black_box(self.ballast.read_back());
                }
                self.pace.credit(began.elapsed());
                self.pace.pass(time);
            }
        }
        Ok(())
    }

    /// Writes so many bytes to a file that has no name, and reads them back.
    fn move_bytes(&self, bytes: u64) -> std::io::Result<()> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *scratch {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let mut block = vec![0x5a_u8; usize::try_from(bytes).unwrap_or_default()];
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&block)?;
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut block)
    }
}

/// One of so many parts, which add up.
fn part(total: u64, (number, parts): (u64, u64)) -> u64 {
    let until = |number: u64| u128::from(total) * u128::from(number) / u128::from(parts.max(1));
    u64::try_from(until(number + 1) - until(number)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_says_whose_it_is() {
        let all = records(3);
        assert_eq!(all.len(), 3 * RECORDS as usize * RECORD_BYTES);
        let places: Vec<_> = all.chunks(RECORD_BYTES).map(|record| place(record).unwrap()).collect();
        assert_eq!((places[0], places[49], places[50], places[149]), ((0, 0), (0, 49), (1, 0), (2, 49)));
        assert!(place(b"short").unwrap_err().to_string().contains("no record"));
    }

    proptest! {
        #[test]
        fn parts_add_up_and_differ_by_one_at_most(total in 0_u64..1_000_000_000, parts in 1_u64..500) {
            let all: Vec<u64> = (0..parts).map(|number| part(total, (number, parts))).collect();
            prop_assert_eq!(all.iter().sum::<u64>(), total);
            prop_assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn a_reduce_has_a_group_at_least() {
        let groups = |micros| ReplayedTask { micros, ..ReplayedTask::default() }.groups();
        assert_eq!([groups(0), groups(4_999), groups(10_000), groups(1_000_000)], [1, 1, 2, 200]);
    }

    #[test]
    fn bodies_are_words() {
        assert_eq!("fill".parse(), Ok(TaskBody::Fill));
        assert!("nap".parse::<TaskBody>().unwrap_err().to_string().contains("sleep, cpu, io, fill"));
    }
}
