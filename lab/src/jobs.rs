//! The lab's own job program: steps of known length, and tasks that take as long as a plan says. It is the
//! binary of `nap-lab`, called by another name. Closures without state, so that every primitive can preempt
//! them, and outputs that do not depend on how the time passes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use napreduce::program::Error;
use napreduce::{Driver, Emit, Job, Program, TaskError};
use napreduce_engine::listed;
use napreduce_protocol::printing::print_error;
use napreduce_task::task_process_requested;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The name that makes a program the job program.
pub const JOB_PROGRAM: &str = "nap-lab-jobs";

/// Holds the number of the process that a daemon or a submitter ends with.
pub const PARENT_VARIABLE: &str = "NAPREDUCE_UP_PROCESS";

/// What a job of the lab does; every job takes from it what it needs.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct Work {
    /// Which job
    #[arg(long)]
    pub job: String,

    /// Rounds of arithmetic in one step
    #[arg(long, default_value_t = 0)]
    pub rounds: u64,

    /// MiB of memory that is filled before the first step and read back after the last
    #[arg(long, default_value_t = 0)]
    pub fill: u64,

    /// What the memory is filled with
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Whether this process is to be the job program: by its name, or as a task of one of its jobs.
pub fn job_program_requested() -> bool {
    task_process_requested() || called(JOB_PROGRAM)
}

/// The binary of this process, which becomes the job program or a guard when it is called so.
pub(crate) fn own_binary() -> PathBuf {
    // Without /proc nothing of this would run.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Whether this process was called by `name`.
pub(crate) fn called(name: &str) -> bool {
    let own = std::env::args_os().next().unwrap_or_default();
    Path::new(&own).file_name() == Some(OsStr::new(name))
}

/// The main function of the job program, which may have other jobs as well.
pub fn job_program(program: Program) -> ExitCode {
    if !task_process_requested() && !ends_with_parent() {
        print_error(format_args!("{JOB_PROGRAM}: the experiment that started this has ended"));
        return ExitCode::FAILURE;
    }
    let program = program.about("Jobs of nap lab").job("steps", by_map).job("steps-of-reduces", by_reduces);
    program.job(REPLAYED, with_reduces).job(REPLAYED_MAPS, maps_alone).drive(drive)
}

fn drive(driver: &mut Driver<'_>, work: &Work) -> Result<(), Error> {
    driver.job(&work.job).parameters(work).run().map(drop)
}

/// Has the kernel end this process when the experiment that started it ends; false when that has happened
/// already.
fn ends_with_parent() -> bool {
    let Some(parent) = std::env::var_os(PARENT_VARIABLE) else { return true };
    let parent = parent.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    // A kernel that refuses leaves a submitter that ends by itself, later.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    parent.is_some() && getppid() == parent
}

/// How many rounds the speed of this machine is measured with, and how often: the best counts, since others
/// can only slow it down.
const MEASURED_ROUNDS: u64 = 20_000_000;
const MEASUREMENTS: u32 = 7;

/// The last line of the steps of a map.
const END: &str = "end";
/// How long a line is: a map tells its progress each time it has read so many KiB, which are to be few steps.
const LINE_BYTES: usize = 4096;

/// The input of a map of so many steps: a line for each begins with its number.
pub fn lines(steps: u64) -> String {
    let line = |step| format!("{step:08} {}\n", "-".repeat(LINE_BYTES - 10));
    (0..steps).map(line).chain([format!("{END}\n")]).collect()
}

/// One map, without reduce: a step for each line.
pub fn by_map(work: &Work) -> Job {
    let rounds = work.rounds;
    let ballast = Arc::new(Ballast::new(work.fill, work.seed));
    Job::text().map_only(move |line: &str, out| -> Result<(), TaskError> {
        ballast.fill_once();
        if line == END {
            out.emit(END, format_args!("{:016x}", ballast.read_back()).to_string());
            return Ok(());
        }
        let number = number(line.split(' ').next().unwrap_or_default())?;
        out.emit(number, format!("{:016x}", turn(number, rounds)));
        Ok(())
    })
}

/// Reduces of as many groups as a line each says, `PARTITION GROUPS`: a step for each group.
pub fn by_reduces(work: &Work) -> Job {
    let rounds = work.rounds;
    let ballast = Arc::new(Ballast::new(work.fill, work.seed));
    Job::text()
        .map(|line: &str, out: &mut Emit<(u32, u64), ()>| -> Result<(), TaskError> {
            let (partition, groups) = line.split_once(' ').ok_or_else(|| unreadable(line))?;
            let partition = u32::try_from(number(partition)?).map_err(|_| unreadable(line))?;
            (0..number(groups)?).for_each(|group| out.emit((partition, group), ()));
            Ok(())
        })
        .partition_by(|(partition, _), partitions| partition % partitions)
        .reduce(move |(partition, group), values, out| {
            ballast.fill_once();
            let copies = values.count();
            out.emit((partition, group), format!("{:016x} {copies}", turn(group, rounds)));
        })
}

fn number(text: &str) -> Result<u64, TaskError> {
    text.parse().map_err(|_| unreadable(text))
}

fn unreadable(line: &str) -> TaskError {
    TaskError::task(format!("{line:?} is no step"))
}

/// So many rounds of arithmetic that no compiler foresees: each needs the one before.
pub fn turn(mut state: u64, rounds: u64) -> u64 {
    state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// How many rounds this machine does in a second of processor time.
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
/// A sleep that is late by more was one in which the process was stopped.
const LATE_MAX: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub struct Pace {
    /// Microseconds that are still to be slept; less than none after a sleep that was late.
    owed: Mutex<i64>,
}

impl Pace {
    /// Sleeps for so long, less what earlier sleeps were late.
    pub fn pass(&self, time: Duration) {
        let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
        *owed += micros(time);
        while *owed > 0 {
            let slice = SLICE.min(Duration::from_micros(owed.unsigned_abs()));
            let began = Instant::now();
            thread::sleep(slice);
            *owed -= counted(slice, began.elapsed());
        }
    }

    /// Time in which something else was done counts as slept.
    pub fn credit(&self, time: Duration) {
        *self.owed.lock().unwrap_or_else(PoisonError::into_inner) -= micros(time);
    }
}

fn counted(slice: Duration, passed: Duration) -> i64 {
    micros(passed.min(slice + LATE_MAX))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

const WORDS_OF_MIB: usize = (1 << 20) / 8;

/// The memory, empty until it is filled.
#[derive(Debug)]
pub struct Ballast {
    mib: u64,
    seed: u64,
    words: Mutex<Vec<u64>>,
}

impl Ballast {
    pub fn new(mib: u64, seed: u64) -> Ballast {
        Ballast { mib, seed, words: Mutex::new(Vec::new()) }
    }

    /// Fills it, unless that is done or there is none.
    pub fn fill_once(&self) {
        if self.mib == 0 {
            return;
        }
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.is_empty() {
            let length = usize::try_from(self.mib).unwrap_or(usize::MAX).saturating_mul(WORDS_OF_MIB);
            words.reserve_exact(length);
            let mut state = self.seed | 1;
            words.extend(std::iter::repeat_with(|| next(&mut state)).take(length));
        }
    }

    /// Reads all of it; the sum depends on every word and its place.
    pub fn read_back(&self) -> u64 {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter().fold(self.seed, |sum, word| sum.rotate_left(5).wrapping_add(*word))
    }
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_gives_the_same_each_time_and_another_step_something_else() {
        assert_eq!(turn(3, 1000), turn(3, 1000));
        assert_ne!(turn(3, 1000), turn(4, 1000));
        assert_ne!(turn(3, 1000), turn(3, 1001));
    }

    #[test]
    fn a_machine_has_a_speed() {
        assert!(rounds_per_second() > 1e6);
    }

    #[test]
    fn a_stop_counts_as_little_and_a_late_sleep_as_it_was() {
        let millis = Duration::from_millis;
        assert_eq!(counted(millis(5), millis(6)), 6_000);
        assert_eq!(counted(millis(5), millis(900)), 15_000);
    }

    #[test]
    fn many_short_sleeps_are_as_long_as_they_should_be() {
        let pace = Pace::default();
        let began = Instant::now();
        (0..100).for_each(|_| pace.pass(Duration::from_micros(300)));
        // Each sleep alone is late by some fifty microseconds; a stop of the test itself makes it longer.
        assert!(began.elapsed() >= Duration::from_millis(29), "{:?}", began.elapsed());
        assert!(*pace.owed.lock().unwrap() <= 0);
    }

    #[test]
    fn what_was_done_meanwhile_is_not_slept() {
        let pace = Pace::default();
        pace.credit(Duration::from_secs(3_600));
        let began = Instant::now();
        pace.pass(Duration::from_secs(3_599));
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn the_same_seed_fills_the_same_and_every_word_counts() {
        let sum = |seed, touch: Option<usize>| {
            let ballast = Ballast::new(1, seed);
            ballast.fill_once();
            if let Some(at) = touch {
                ballast.words.lock().unwrap()[at] ^= 1;
            }
            ballast.fill_once();
            ballast.read_back()
        };
        assert_eq!(sum(7, None), sum(7, None));
        assert_ne!(sum(7, None), sum(8, None));
        assert_ne!(sum(7, None), sum(7, Some(0)));
        assert_ne!(sum(7, None), sum(7, Some(WORDS_OF_MIB - 1)));
    }

    #[test]
    fn no_memory_is_nothing() {
        let ballast = Ballast::new(0, 5);
        ballast.fill_once();
        assert_eq!(ballast.read_back(), 5);
    }

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
