//! Owns jobs that are nothing but steps of known length: one map over a file of steps, or reduces with a
//! group for each. Closures without state, so that every primitive can preempt them; memory, if any, is
//! `ballast`.

use std::sync::Arc;
use std::time::Duration;

use napreduce::{Emit, Job, TaskError};
use rustix::time::{ClockId, clock_gettime};

use super::Work;
use super::ballast::Ballast;

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
    let step = Step::of(work);
    let ballast = Arc::new(Ballast::new(work.fill, work.seed));
    Job::text().map_only(move |line: &str, out| -> Result<(), TaskError> {
        ballast.fill_once();
        if line == END {
            out.emit(END, format_args!("{:016x}", ballast.read_back()).to_string());
            return Ok(());
        }
        let number = number(line.split(' ').next().unwrap_or_default())?;
        out.emit(number, format!("{:016x}", step.take(number)));
        Ok(())
    })
}

/// Reduces of as many groups as a line each says, `PARTITION GROUPS`: a step for each group.
pub fn by_reduces(work: &Work) -> Job {
    let step = Step::of(work);
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
            out.emit((partition, group), format!("{:016x} {copies}", step.take(group)));
        })
}

fn number(text: &str) -> Result<u64, TaskError> {
    text.parse().map_err(|_| unreadable(text))
}

fn unreadable(line: &str) -> TaskError {
    TaskError::task(format!("{line:?} is no step"))
}

/// What every step costs.
#[derive(Clone, Copy, Debug)]
struct Step {
    rounds: u64,
    pause: Duration,
}

impl Step {
    fn of(work: &Work) -> Step {
        Step { rounds: work.rounds, pause: Duration::from_micros(work.pause) }
    }

    /// Does the work of a step; its result depends on nothing but the step.
    fn take(self, number: u64) -> u64 {
        std::thread::sleep(self.pause);
        turn(number, self.rounds)
    }
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

#[cfg(test)]
mod tests {
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
}
