//! The lab's own job program: tasks that take as long as a plan says. It is the binary of `nap-lab`, which a worker
//! starts as a task process. Closures have no state, so that every primitive can preempt them, and outputs do not
//! depend on how the time passes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use napreduce::program::{Error, encode_parameters};
use napreduce::{Driver, Emit, Job, Program, TaskError};
use napreduce_engine::listed;
use napreduce_protocol::{CheckpointSupport, JobPlan, Split, lock};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::workspace::write;

/// The binary of this process; called by another name, it is the job program, a guard or the bare sort.
pub(crate) fn own_binary() -> PathBuf {
    // The experiment does not run without /proc.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Whether this process was called by `name`.
pub(crate) fn called(name: &str) -> bool {
    let own = std::env::args_os().next().unwrap_or_default();
    Path::new(&own).file_name() == Some(OsStr::new(name))
}

/// The main function of a task process. Jobs are submitted by experiments, not by this program.
pub fn job_program() -> ExitCode {
    Program::new()
        .about("Jobs of nap lab")
        .job(WITH_REDUCES, with_reduces)
        .job(MAPS_ALONE, maps_alone)
        .drive(|_: &mut Driver<'_>, _: &()| Ok::<(), Error>(()))
}

/// Rounds and repetitions of the speed measurement: the best result counts, because other load only slows it
/// down.
const MEASURED_ROUNDS: u64 = 20_000_000;
const MEASUREMENTS: u32 = 7;

/// Rounds of arithmetic that a compiler cannot shorten: each depends on the previous one.
fn turn(mut state: u64, rounds: u64) -> u64 {
    state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// Rounds that this machine computes in a second of processor time.
pub fn rounds_per_second() -> f64 {
    let processor_seconds = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let speed = |number| {
        let began = processor_seconds();
        std::hint::black_box(turn(number, MEASURED_ROUNDS));
        MEASURED_ROUNDS as f64 / (processor_seconds() - began).max(1e-6)
    };
    (0..u64::from(MEASUREMENTS)).map(speed).fold(1.0, f64::max)
}

/// The longest single sleep: a process that is stopped in one does not sleep the rest of it afterwards.
const SLICE: Duration = Duration::from_millis(5);
/// After a longer delay, the process was stopped during the sleep.
const LATE_MAX: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct Pace {
    /// Remaining microseconds to sleep; negative after a late sleep.
    owed: Mutex<i64>,
}

impl Pace {
    /// Sleeps for this time minus the lateness of earlier sleeps.
    fn pass(&self, time: Duration) {
        let mut owed = lock(&self.owed);
        *owed += micros(time);
        while *owed > 0 {
            let slice = SLICE.min(Duration::from_micros(owed.unsigned_abs()));
            let began = Instant::now();
            thread::sleep(slice);
            *owed -= counted(slice, began.elapsed());
        }
    }

    /// Counts time spent on other work as slept.
    fn credit(&self, time: Duration) {
        *lock(&self.owed) -= micros(time);
    }
}

fn counted(slice: Duration, passed: Duration) -> i64 {
    micros(passed.min(slice + LATE_MAX))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

const WORDS_OF_MIB: usize = (1 << 20) / 8;

/// Memory with pseudo-random contents, empty until it is filled.
#[derive(Debug)]
struct Ballast {
    mib: u64,
    words: Mutex<Vec<u64>>,
}

impl Ballast {
    fn new(mib: u64) -> Ballast {
        Ballast {
            mib,
            words: Mutex::new(Vec::new()),
        }
    }

    fn contents(&self) -> impl Iterator<Item = u64> {
        let mut state = self.mib | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    /// Fills the memory the first time.
    fn fill_once(&self) {
        let mut words = lock(&self.words);
        if words.is_empty() && self.mib > 0 {
            let length = usize::try_from(self.mib)
                .unwrap_or(usize::MAX)
                .saturating_mul(WORDS_OF_MIB);
            words.reserve_exact(length);
            words.extend(self.contents().take(length));
        }
    }

    /// Whether every filled word reads back unchanged.
    fn reads_back(&self) -> bool {
        let words = lock(&self.words);
        words
            .iter()
            .zip(self.contents())
            .all(|(word, expected)| *word == expected)
    }
}

/// The names of the definitions.
const WITH_REDUCES: &str = "replayed";
const MAPS_ALONE: &str = "replayed-maps";

/// Records of a map in a replay: steps of 2 % of its progress.
pub const STEPS: u64 = 50;
/// Time of a group of a reduce in a replay.
pub const GROUP: Duration = Duration::from_millis(5);
/// A record is the number of its map and that of the step.
const RECORD_BYTES: u64 = 16;
/// Rounds for the number that a step writes to the output.
const MARK_ROUNDS: u64 = 16;

listed! {
    /// The work of a task.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
    #[serde(rename_all = "kebab-case")]
    pub enum TaskBody {
        /// Sleep
        Sleep = "sleep",
        /// Arithmetic, as much as this machine did in that time before
        Cpu = "cpu",
        /// Write the task's bytes and read them back, and sleep for the rest
        Io = "io",
        /// Fill the memory of the task, sleep, and read it back at the end
        Fill = "fill",
    }
}

/// The tasks of a job: the parameters of its definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedTasks {
    /// `None` makes the same output at once.
    pub body: Option<TaskBody>,
    /// Rounds of arithmetic per second on this machine.
    pub rounds_per_second: u64,
    /// Memory that each task fills before its first step and reads back in its last.
    pub fill_mib: u64,
    /// Records of each map.
    pub steps: u64,
    pub group_micros: u64,
    pub maps: Vec<TimedTask>,
    /// Empty for a job without reduces.
    pub reduces: Vec<TimedTask>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedTask {
    pub micros: u64,
    /// Bytes that body `io` writes and reads.
    pub bytes: u64,
    /// Bytes that a map writes for the reduces.
    pub output_bytes: u64,
}

/// The input of all jobs of a cluster: each map reads one split, of equally many records.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    maps: u64,
    steps: u64,
}

impl RecordFile {
    /// Writes the input of jobs with up to this many maps.
    pub fn write(path: PathBuf, maps: u64, steps: u64) -> Result<RecordFile> {
        write(&path, records(maps, steps))?;
        Ok(RecordFile { path, maps, steps })
    }

    fn split(&self, map: u64) -> Split {
        let length = self.steps * RECORD_BYTES;
        let path = self.path.clone();
        let file_length = self.maps * length;
        Split {
            path,
            offset: map * length,
            length,
            file_length,
            version: None,
        }
    }
}

fn records(maps: u64, steps: u64) -> Vec<u8> {
    let record = |map: u64, step: u64| [map.to_be_bytes(), step.to_be_bytes()].concat();
    (0..maps)
        .flat_map(|map| (0..steps).flat_map(move |step| record(map, step)))
        .collect()
}

impl TimedTasks {
    /// The plan of a job with these tasks. Its memory is at least the memory that they fill.
    pub fn plan(&self, name: &str, records: &RecordFile, output: PathBuf) -> Result<JobPlan> {
        let parameters = encode_parameters(self).map_err(|error| anyhow!("job {name}: {error}"))?;
        let definition = if self.reduces.is_empty() {
            MAPS_ALONE
        } else {
            WITH_REDUCES
        };
        Ok(JobPlan {
            name: name.to_owned(),
            parameters,
            splits: (0..self.maps.len() as u64)
                .map(|map| records.split(map).into())
                .collect(),
            reduces: self.reduces.len() as u32,
            task_memory: TASK_MEMORY.max(self.fill_mib << 20),
            // The closures keep no state.
            checkpoint: CheckpointSupport {
                map: true,
                reduce: true,
            },
            ..JobPlan::new(definition, output)
        })
    }

    /// How many groups a reduce has.
    fn groups(&self, reduce: TimedTask) -> u64 {
        (reduce.micros / self.group_micros.max(1)).max(1)
    }
}

/// Memory of a task for its records, which are few.
const TASK_MEMORY: u64 = 16 << 20;

fn with_reduces(tasks: &TimedTasks) -> Job {
    let of_map = Passing::of(tasks);
    let of_reduce = Passing::of(tasks);
    let maps = tasks.clone();
    let reduces = tasks.clone();
    Job::fixed_records(RECORD_BYTES as usize)
        .map(
            move |record: &[u8], out: &mut Emit<(u32, u64), String>| -> Result<(), TaskError> {
                let (number, step) = place(record)?;
                let map = task(&maps.maps, number)?;
                of_map.step(
                    map,
                    Step {
                        number: step,
                        of: maps.steps,
                    },
                )?;
                if step + 1 == maps.steps {
                    emit_groups(&maps, number, map, out);
                }
                Ok(())
            },
        )
        .partition_by(|(partition, _), partitions| partition % partitions)
        .reduce(
            move |(partition, group), values, out| -> Result<(), TaskError> {
                let reduce = task(&reduces.reduces, u64::from(partition))?;
                let mut count = 0_u64;
                let mut bytes = 0;
                while let Some(value) = values.next() {
                    count += 1;
                    bytes += value.len();
                }
                of_reduce.step(
                    reduce,
                    Step {
                        number: group,
                        of: reduces.groups(reduce),
                    },
                )?;
                out.emit(
                    (partition, group),
                    format!("{:016x} {count} {bytes}", turn(group, MARK_ROUNDS)),
                );
                Ok(())
            },
        )
}

/// Every map has its bytes for every reduce; the first map has the groups, one value each.
fn emit_groups(tasks: &TimedTasks, map: u64, of: TimedTask, out: &mut Emit<(u32, u64), String>) {
    let share = of.output_bytes / (tasks.reduces.len() as u64).max(1);
    let filler = "-".repeat(usize::try_from(share).unwrap_or_default());
    for (partition, reduce) in (0..).zip(&tasks.reduces) {
        out.emit((partition, 0), &filler);
        if map == 0 {
            (1..tasks.groups(*reduce)).for_each(|group| out.emit((partition, group), ""));
        }
    }
}

fn maps_alone(tasks: &TimedTasks) -> Job {
    let passing = Passing::of(tasks);
    let tasks = tasks.clone();
    Job::fixed_records(RECORD_BYTES as usize).map_only(
        move |record: &[u8], out| -> Result<(), TaskError> {
            let (number, step) = place(record)?;
            passing.step(
                task(&tasks.maps, number)?,
                Step {
                    number: step,
                    of: tasks.steps,
                },
            )?;
            out.emit(
                (number, step),
                format!("{:016x}", turn(number * tasks.steps + step, MARK_ROUNDS)),
            );
            Ok(())
        },
    )
}

fn place(record: &[u8]) -> Result<(u64, u64), TaskError> {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes);
    match (record.get(..8).map(number), record.get(8..).map(number)) {
        (Some(Ok(map)), Some(Ok(step))) => Ok((map, step)),
        _ => Err(TaskError::fatal(format!(
            "{record:?} is not a record of a map"
        ))),
    }
}

fn task(tasks: &[TimedTask], number: u64) -> Result<TimedTask, TaskError> {
    let found = usize::try_from(number)
        .ok()
        .and_then(|number| tasks.get(number));
    found
        .copied()
        .ok_or_else(|| TaskError::fatal(format!("the plan has no task {number}")))
}

/// How time passes in one task process.
struct Passing {
    body: Option<TaskBody>,
    rounds_per_second: u64,
    pace: Pace,
    ballast: Ballast,
    scratch: Mutex<Option<File>>,
}

impl Passing {
    fn of(tasks: &TimedTasks) -> Arc<Passing> {
        Arc::new(Passing {
            body: tasks.body,
            rounds_per_second: tasks.rounds_per_second,
            pace: Pace::default(),
            ballast: Ballast::new(tasks.fill_mib),
            scratch: Mutex::new(None),
        })
    }

    fn step(&self, task: TimedTask, step: Step) -> Result<(), TaskError> {
        let Some(body) = self.body else { return Ok(()) };
        let began = Instant::now();
        // A task without work needs no memory.
        if task.micros > 0 {
            self.ballast.fill_once();
        }
        if step.is_last() && !self.ballast.reads_back() {
            return Err(TaskError::fatal(
                "memory does not read back as it was filled",
            ));
        }
        let micros = step.part(task.micros);
        if body == TaskBody::Cpu {
            let rounds = u128::from(self.rounds_per_second) * u128::from(micros) / 1_000_000;
            std::hint::black_box(turn(step.number, u64::try_from(rounds).unwrap_or(u64::MAX)));
            return Ok(());
        }
        if body == TaskBody::Io {
            self.move_bytes(step.part(task.bytes))
                .map_err(|error| TaskError::task(format!("cannot write and read back: {error}")))?;
        }
        self.pace.credit(began.elapsed());
        self.pace.pass(Duration::from_micros(micros));
        Ok(())
    }

    /// Writes this many bytes to an unnamed file, and reads them back.
    fn move_bytes(&self, bytes: u64) -> std::io::Result<()> {
        let mut scratch = lock(&self.scratch);
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

/// One of the equal steps of a task, from 0.
#[derive(Clone, Copy)]
struct Step {
    number: u64,
    of: u64,
}

impl Step {
    fn is_last(self) -> bool {
        self.number + 1 == self.of
    }

    /// Its part of a total. The parts of all steps add up.
    fn part(self, total: u64) -> u64 {
        let until =
            |number: u64| u128::from(total) * u128::from(number) / u128::from(self.of.max(1));
        u64::try_from(until(self.number + 1) - until(self.number)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn turn_depends_on_state_and_rounds_alone() {
        assert_eq!(turn(3, 1000), turn(3, 1000));
        assert_ne!(turn(3, 1000), turn(4, 1000));
        assert_ne!(turn(3, 1000), turn(3, 1001));
    }

    #[test]
    fn machine_speed_is_plausible() {
        assert!(rounds_per_second() > 1e6);
    }

    #[test]
    fn stop_during_a_sleep_counts_only_briefly() {
        let millis = Duration::from_millis;
        assert_eq!(counted(millis(5), millis(6)), 6_000);
        assert_eq!(counted(millis(5), millis(900)), 15_000);
    }

    #[test]
    fn many_short_sleeps_add_up() {
        let pace = Pace::default();
        let began = Instant::now();
        (0..100).for_each(|_| pace.pass(Duration::from_micros(300)));
        // Each sleep alone is late by some fifty microseconds; a stop of the test itself makes it longer.
        assert!(
            began.elapsed() >= Duration::from_millis(29),
            "{:?}",
            began.elapsed()
        );
        assert!(*pace.owed.lock().unwrap() <= 0);
    }

    #[test]
    fn credited_time_is_not_slept() {
        let pace = Pace::default();
        pace.credit(Duration::from_secs(3_600));
        let began = Instant::now();
        pace.pass(Duration::from_secs(3_599));
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn ballast_with_a_changed_word_does_not_read_back() {
        let ballast = Ballast::new(1);
        ballast.fill_once();
        ballast.fill_once();
        assert_eq!(ballast.words.lock().unwrap().len(), WORDS_OF_MIB);
        assert!(ballast.reads_back());
        for at in [0, WORDS_OF_MIB - 1] {
            ballast.words.lock().unwrap()[at] ^= 1;
            assert!(!ballast.reads_back(), "word {at}");
            ballast.words.lock().unwrap()[at] ^= 1;
        }
        let none = Ballast::new(0);
        none.fill_once();
        assert!(none.words.lock().unwrap().is_empty() && none.reads_back());
    }

    #[test]
    fn records_name_their_map_and_step() {
        let all = records(3, 50);
        assert_eq!(all.len() as u64, 3 * 50 * RECORD_BYTES);
        let places: Vec<_> = all
            .chunks(RECORD_BYTES as usize)
            .map(|record| place(record).unwrap())
            .collect();
        assert_eq!(
            (places[0], places[49], places[50], places[149]),
            ((0, 0), (0, 49), (1, 0), (2, 49))
        );
        assert!(
            place(b"short")
                .unwrap_err()
                .to_string()
                .contains("not a record")
        );
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_equal_up_to_one(total in 0_u64..1_000_000_000, parts in 1_u64..500) {
            let all: Vec<u64> = (0..parts).map(|number| Step { number, of: parts }.part(total)).collect();
            prop_assert_eq!(all.iter().sum::<u64>(), total);
            prop_assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1);
        }
    }

    fn tasks(body: TaskBody) -> TimedTasks {
        let group_micros = GROUP.as_micros() as u64;
        let steps = STEPS;
        let maps = vec![TimedTask::default(); 2];
        TimedTasks {
            body: Some(body),
            rounds_per_second: 1,
            fill_mib: 20,
            steps,
            group_micros,
            maps,
            reduces: Vec::new(),
        }
    }

    #[test]
    fn reduce_has_at_least_one_group() {
        let tasks = tasks(TaskBody::Sleep);
        let groups = |micros| {
            tasks.groups(TimedTask {
                micros,
                ..TimedTask::default()
            })
        };
        assert_eq!(
            [groups(0), groups(4_999), groups(10_000), groups(1_000_000)],
            [1, 1, 2, 200]
        );
    }

    #[test]
    fn plan_has_a_split_for_each_map_and_the_memory_they_fill() {
        let folder = tempfile::tempdir().unwrap();
        let records = RecordFile::write(folder.path().join("records"), 3, STEPS).unwrap();
        let plan = tasks(TaskBody::Fill)
            .plan("job", &records, "out".into())
            .unwrap();
        let offsets: Vec<u64> = plan
            .splits
            .iter()
            .map(|split| split.parts[0].offset)
            .collect();
        assert_eq!(
            (offsets, plan.reduces, plan.task_memory),
            (vec![0, 800], 0, 20 << 20)
        );
        assert_eq!(
            std::fs::metadata(folder.path().join("records"))
                .unwrap()
                .len(),
            2_400
        );
    }
}
