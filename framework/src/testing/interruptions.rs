//! Schedules of interruptions: which attempt is interrupted where, and how.

use std::fmt;

/// A kind of interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// The attempt is suspended and resumed.
    Suspend,
    /// The attempt is checkpointed; the next one restores the checkpoint.
    Checkpoint,
    /// As `Checkpoint`, but the next attempt finds all files under another path, as on another worker.
    CheckpointElsewhere,
    /// The attempt is killed; the next one restores the last checkpoint or starts from scratch.
    Kill,
    /// The attempt is killed while it writes a checkpoint, of which some files exist already.
    KillWhileSaving,
}

impl Preemption {
    /// All kinds.
    pub const ALL: [Preemption; 5] = [
        Preemption::Suspend,
        Preemption::Checkpoint,
        Preemption::CheckpointElsewhere,
        Preemption::Kill,
        Preemption::KillWhileSaving,
    ];
}

/// One interruption of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interruption {
    /// The boundary, counted from 1 in the attempt: the first one is before its first record or group.
    pub boundary: u64,
    /// The kind of interruption.
    pub how: Preemption,
}

/// The interruptions of all tasks of a job.
#[derive(Debug, Clone)]
pub(super) enum Schedule {
    /// None; boundaries are not counted.
    Undisturbed,
    /// None; boundaries are counted.
    Counted,
    /// The first attempt of each task, at one boundary.
    Once(Interruption),
    /// Each attempt of one task, numbered in the job, is checkpointed at its own boundary.
    InTask { task: u64, checkpoints: Vec<u64> },
    /// The first attempt of each task is suspended at each of its boundaries.
    SuspendEverywhere,
    /// Each attempt is interrupted after this many units of work.
    Repeatedly { how: Preemption, after: u64 },
    /// Random interruptions.
    Random {
        seed: u64,
        /// Maximum distance of interruptions in boundaries.
        distance_max: u64,
    },
}

/// Limits kills without a checkpoint in between: each discards the work of earlier attempts.
const KILLS_MAX: u32 = 3;

impl Schedule {
    /// Returns the interruptions of one attempt, numbered from 1; `index` is that of the task in the job.
    pub(super) fn of_attempt(&self, index: u64, number: u32, boundaries: u64) -> Vec<Interruption> {
        let kills = |how| matches!(how, Preemption::Kill | Preemption::KillWhileSaving);
        match self {
            Schedule::Undisturbed | Schedule::Counted => Vec::new(),
            Schedule::Once(interruption) if number == 1 => vec![*interruption],
            Schedule::Once(_) => Vec::new(),
            Schedule::InTask { task, checkpoints } if *task == index => {
                let boundary = checkpoints.get(number as usize - 1);
                boundary
                    .map(|boundary| Interruption {
                        boundary: *boundary,
                        how: Preemption::Checkpoint,
                    })
                    .into_iter()
                    .collect()
            }
            Schedule::InTask { .. } => Vec::new(),
            Schedule::SuspendEverywhere => (1..=boundaries)
                .map(|boundary| Interruption {
                    boundary,
                    how: Preemption::Suspend,
                })
                .collect(),
            Schedule::Repeatedly { how, .. } if kills(*how) && number > KILLS_MAX => Vec::new(),
            // The first boundary of an attempt is before its first unit of work.
            Schedule::Repeatedly { how, after } => vec![Interruption {
                boundary: after + 1,
                how: *how,
            }],
            Schedule::Random { seed, distance_max } => random(*seed, *distance_max, index, number),
        }
    }

    /// Returns whether the schedule ends an attempt if the longest task has `most` boundaries.
    pub(super) fn ends_attempts(&self, most: Option<u64>) -> bool {
        let (how, boundary) = match self {
            Schedule::Once(Interruption { boundary, how }) => (*how, *boundary),
            Schedule::Repeatedly { how, after } => (*how, after + 1),
            Schedule::Undisturbed
            | Schedule::Counted
            | Schedule::InTask { .. }
            | Schedule::SuspendEverywhere
            | Schedule::Random { .. } => return false,
        };
        how != Preemption::Suspend && most.is_some_and(|most| boundary <= most)
    }
}

/// Returns random suspends, and sometimes an end.
fn random(seed: u64, distance_max: u64, index: u64, number: u32) -> Vec<Interruption> {
    let mut dice =
        Dice(seed ^ (index << 32) ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut boundary = 0;
    let mut interruptions = Vec::new();
    loop {
        // Each attempt makes at least one step, so the task ends.
        boundary += 1 + dice.below(distance_max) + u64::from(boundary == 0);
        let how = match dice.below(8) {
            0 if number <= KILLS_MAX => Preemption::Kill,
            1 if number <= KILLS_MAX => Preemption::KillWhileSaving,
            2 | 3 => Preemption::Checkpoint,
            4 => Preemption::CheckpointElsewhere,
            5 if interruptions.len() > 3 => return interruptions,
            _ => Preemption::Suspend,
        };
        interruptions.push(Interruption { boundary, how });
        if how != Preemption::Suspend {
            return interruptions;
        }
    }
}

/// splitmix64: the same everywhere for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Preemption::Suspend => "suspended",
            Preemption::Checkpoint => "checkpointed",
            Preemption::CheckpointElsewhere => "checkpointed and restored elsewhere",
            Preemption::Kill => "killed",
            Preemption::KillWhileSaving => "killed while it was checkpointed",
        })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Undisturbed => write!(f, "undisturbed"),
            Schedule::Counted => {
                write!(f, "each task asked at each of its boundaries, for nothing")
            }
            Schedule::Once(Interruption { boundary, how }) => {
                write!(f, "each task {how} at its boundary {boundary}")
            }
            Schedule::InTask { task, checkpoints } => {
                write!(
                    f,
                    "task {task} checkpointed at the boundaries {checkpoints:?} of its attempts"
                )
            }
            Schedule::SuspendEverywhere => {
                write!(f, "each task suspended at each of its boundaries")
            }
            Schedule::Repeatedly { how, after } => {
                write!(
                    f,
                    "each attempt {how} when it has done {after} records or groups"
                )
            }
            Schedule::Random { seed, distance_max } => {
                write!(
                    f,
                    "random preemptions, at most {distance_max} boundaries apart, of seed {seed}"
                )
            }
        }
    }
}
