//! What goes wrong with a process: drawn when it starts.

use std::time::Duration;

use napreduce_engine::FaultPlace;
use napreduce_protocol::TaskError;

use crate::chance::Chance;

/// The wait status of a process that ended by itself with status 3.
const EXITED: i32 = 3 << 8;
/// The wait status of a process that SIGSEGV ended.
const SEGMENTATION_FAULT: i32 = 11;
/// The wait status of a process that SIGKILL ended.
const KILLED: i32 = 9;
/// Steps of most tasks: each unit of work is one, and there are some at the start and at the end.
const STEPS: u32 = 14;
/// The number of slow processes among 1000.
const SLOW_PERMILLE: u32 = 250;
/// The number of processes among 1000 that cannot read a checkpoint.
const REFUSED_RESTORES_PERMILLE: u32 = 100;
/// How many times longer the work of a slow process takes at most.
const PACE_MAX: u32 = 8;
/// The longest times from SIGSTOP to the stop.
const STOP_MILLIS_MAX: [u64; 4] = [3, 3, 3, 100];
/// The longest times from SIGKILL to the end.
const KILL_MILLIS_MAX: [u64; 3] = [5, 5, 100];
/// The longest times until a continued process works.
const WAKE_MILLIS_MAX: [u64; 3] = [3, 50, 1_000];
/// The longest times for each half of a commit.
const COMMIT_MILLIS_MAX: [u64; 4] = [3, 50, 1_500, 3_000];

/// How a process follows signals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reflexes {
    /// Time from SIGSTOP to the stop.
    pub(super) stop: Duration,
    /// Time from SIGKILL to the end.
    pub(super) kill: Duration,
    /// Time from SIGSTOP to a SIGKILL by the kernel, if the process is stopped then.
    pub(super) dies_stopped: Option<Duration>,
    /// Time from SIGSTOP until another program sends SIGCONT. A process that is not stopped then ignores it.
    pub(super) is_continued: Option<Duration>,
    /// Whether a descendant keeps running when the process stops.
    pub(super) leaves_descendant: bool,
}

/// What happens to a process at one of its steps.
#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// It ends with this wait status.
    Dies(i32),
    /// It reports an error.
    Fails(TaskError),
    /// It does and reads nothing any more.
    Hangs,
}

/// The fate of one process.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate {
    pub(super) reflexes: Reflexes,
    /// Whether anything is wrong with it.
    pub(super) is_troubled: bool,
    /// Time until it says hello.
    pub(super) start: Duration,
    /// How many times longer its work takes.
    pub(super) pace: u32,
    /// Time until it works again after it was continued.
    pub(super) wake: Duration,
    /// Time for the move of its part, and again from there to its end.
    pub(super) commit: Duration,
    /// Whether it cannot read the checkpoint with which it begins.
    pub(super) refuses_restore: bool,
    /// Whether its start fails.
    pub(super) is_stillborn: bool,
    /// The step at which something happens to it.
    pub(super) trouble: Option<(u32, Trouble)>,
    /// Whether it ignores requests to suspend.
    pub(super) is_deaf: bool,
}

impl Fate {
    /// The fate of a process that loses no time and with which nothing is wrong.
    pub(super) fn even() -> Fate {
        Fate {
            pace: 1,
            ..Fate::default()
        }
    }

    /// Draws the fate of a process; something is wrong with `permille` of 1000 processes.
    pub(super) fn draw(chance: &mut Chance, permille: u32) -> Fate {
        let stop_max = *chance.pick(&STOP_MILLIS_MAX).unwrap_or(&3);
        let kill_max = *chance.pick(&KILL_MILLIS_MAX).unwrap_or(&5);
        let wake_max = *chance.pick(&WAKE_MILLIS_MAX).unwrap_or(&3);
        let commit_max = *chance.pick(&COMMIT_MILLIS_MAX).unwrap_or(&3);
        let mut fate = Fate {
            reflexes: Reflexes {
                stop: chance.millis(0, stop_max),
                kill: chance.millis(0, kill_max),
                ..Reflexes::default()
            },
            start: chance.millis(5, 60),
            pace: if chance.happens(SLOW_PERMILLE) {
                chance.count(2, PACE_MAX)
            } else {
                1
            },
            wake: chance.millis(0, wake_max),
            commit: chance.millis(1, commit_max),
            refuses_restore: chance.happens(REFUSED_RESTORES_PERMILLE),
            ..Fate::default()
        };
        if !chance.happens(permille) {
            return fate;
        }
        fate.is_troubled = true;
        let step = chance.count(0, STEPS);
        match chance.count(0, 16) {
            0 => fate.trouble = Some((step, Trouble::Dies(EXITED))),
            1 => fate.trouble = Some((step, Trouble::Dies(SEGMENTATION_FAULT))),
            2 | 3 => fate.trouble = Some((step, Trouble::Dies(KILLED))),
            4 => {
                let error = TaskError::task("drawn: the mapper refused a record");
                fate.trouble = Some((step, Trouble::Fails(error)));
            }
            5 => {
                let error = TaskError::retryable("drawn: the disk was busy");
                let error = error.at(FaultPlace::LocalDisk);
                fate.trouble = Some((step, Trouble::Fails(error)));
            }
            6 => fate.trouble = Some((step, Trouble::Hangs)),
            7 => fate.is_stillborn = true,
            8 => fate.is_deaf = true,
            9 => fate.reflexes.kill = chance.millis(1_000, 120_000),
            10 => fate.reflexes.stop = chance.millis(500, 20_000),
            11 => fate.reflexes.dies_stopped = Some(chance.millis(0, 30_000)),
            12 => fate.reflexes.leaves_descendant = true,
            13 => fate.reflexes.is_continued = Some(chance.millis(0, 5_000)),
            14 | 15 => fate.trouble = Some((step, storage_failure())),
            _ => fate.start = chance.millis(1_000, 40_000),
        }
        fate
    }

    /// Draws the step at which a process without trouble fails on the storage of outputs.
    pub(super) fn fail_on_storage(&mut self, chance: &mut Chance) {
        if self.is_troubled {
            return;
        }
        self.is_troubled = true;
        let step = chance.count(0, STEPS);
        self.trouble = Some((step, storage_failure()));
    }
}

fn storage_failure() -> Trouble {
    let error = TaskError::retryable("drawn: the output storage did not answer");
    Trouble::Fails(error.at(FaultPlace::SharedStorage))
}
