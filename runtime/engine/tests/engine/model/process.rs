//! The process of one attempt: it starts, reads, requests the commit grant, promotes its part, and may fail
//! or be killed at any point.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{
    AttemptId, FailureClass, FaultPlace, MapOutput, Report, TaskKind, WorkerId,
};
use rand::Rng;
use rand_pcg::Pcg32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Starting,
    Working,
    /// Waiting for the commit grant.
    Asking,
    Saving,
    Dying,
}

/// The operations of the world that a process uses.
pub trait Surroundings {
    /// Returns whether the process can read an output.
    fn can_read(&self, output: MapOutput) -> bool;
    /// Promotes the part of this attempt to its final name.
    fn promote(&mut self, attempt: AttemptId);
    /// Copies the output of this attempt to storage that outlives its worker.
    fn outlive(&mut self, attempt: AttemptId);
    /// Counts a fault.
    fn note(&mut self, what: &'static str);
    /// Returns whether faults have stopped.
    fn is_calm(&self) -> bool;
}

#[derive(Debug)]
pub struct Process {
    attempt: AttemptId,
    doing: Doing,
    /// Whether its part must be committed.
    commits: bool,
    granted: bool,
    promoted: bool,
    steps_left: u32,
    steps: u32,
    /// The outputs left to read, by map.
    inputs: BTreeMap<u32, MapOutput>,
    read: BTreeSet<u32>,
    maps: u32,
}

impl Process {
    pub fn new(
        attempt: AttemptId,
        inputs: &[MapOutput],
        commits: bool,
        maps: u32,
        steps: u32,
    ) -> Process {
        let maps = if attempt.task.kind == TaskKind::Reduce {
            maps
        } else {
            0
        };
        let doing = Doing::Starting;
        let granted = false;
        let promoted = false;
        let mut process = Process {
            attempt,
            doing,
            commits,
            granted,
            promoted,
            steps_left: steps,
            steps,
            inputs: BTreeMap::new(),
            read: BTreeSet::new(),
            maps,
        };
        process.feed(inputs);
        process
    }

    pub fn feed(&mut self, inputs: &[MapOutput]) {
        for input in inputs {
            assert_eq!(
                input.attempt.task.job, self.attempt.task.job,
                "{} is fed by another job",
                self.attempt
            );
            self.inputs.insert(input.attempt.task.index, *input);
        }
    }

    pub fn kill(&mut self) {
        self.doing = Doing::Dying;
    }

    /// Starts to save a checkpoint. A process that waits for a commit grant continues to wait.
    pub fn save(&mut self) {
        if self.doing == Doing::Working {
            self.doing = Doing::Saving;
        }
    }

    pub fn grant(&mut self) {
        self.granted = true;
    }

    /// Returns a progress report.
    pub fn progress(&self) -> Report {
        let left = u64::from(self.steps_left);
        let total = u64::from(self.steps);
        Report::Progressed {
            bytes_done: total - left,
            bytes_total: total,
        }
    }

    /// Advances the process by one step; returns whether it still exists, and its report.
    pub fn step(
        &mut self,
        rng: &mut Pcg32,
        world: &mut dyn Surroundings,
    ) -> (bool, Option<Report>) {
        if !world.is_calm() && rng.random_bool(0.02) {
            world.note("attempt failed");
            return (false, Some(self.failure(rng)));
        }
        match self.doing {
            Doing::Starting => {
                self.doing = Doing::Working;
                (true, Some(Report::Started))
            }
            Doing::Working if self.steps_left > 0 => {
                self.steps_left -= 1;
                (true, rng.random_bool(0.5).then(|| self.progress()))
            }
            Doing::Working if self.read.len() < self.maps as usize => self.fetch(rng, world),
            Doing::Working if self.commits => {
                self.doing = Doing::Asking;
                (true, Some(Report::CommitRequested))
            }
            Doing::Working => (
                false,
                Some(Report::Done {
                    output_bytes: 0,
                    output_digest: None,
                }),
            ),
            Doing::Asking if self.promoted => (
                false,
                Some(Report::Done {
                    output_bytes: 0,
                    output_digest: None,
                }),
            ),
            Doing::Asking if self.granted => {
                self.promoted = true;
                world.promote(self.attempt);
                (true, None)
            }
            Doing::Asking => (true, None),
            Doing::Saving => {
                world.note("work saved");
                (false, Some(Report::Checkpointed))
            }
            // The commit may have completed before the kill.
            Doing::Dying if self.promoted && rng.random_bool(0.5) => (
                false,
                Some(Report::Done {
                    output_bytes: 0,
                    output_digest: None,
                }),
            ),
            Doing::Dying => (false, Some(Report::Killed)),
        }
    }

    /// Reads one more map output, or reports that it cannot.
    fn fetch(&mut self, rng: &mut Pcg32, world: &mut dyn Surroundings) -> (bool, Option<Report>) {
        let Some((&map, &output)) = self.inputs.iter().find(|(map, _)| !self.read.contains(map))
        else {
            return (true, None);
        };
        if world.can_read(output) {
            if output.worker == WorkerId::STORAGE {
                world.note("moved output read");
            }
            self.read.insert(map);
            return (true, None);
        }
        world.note("input missed");
        let lost = vec![output.attempt];
        let reason = "no route".to_owned();
        if rng.random_bool(0.2) {
            let class = FailureClass::Retryable;
            let place = FaultPlace::Path;
            return (
                false,
                Some(Report::Failed {
                    class,
                    place,
                    reason,
                    lost_outputs: lost,
                    disk_need: None,
                }),
            );
        }
        self.inputs.remove(&map);
        (
            true,
            Some(Report::InputsLost {
                outputs: lost,
                place: FaultPlace::Path,
                reason,
            }),
        )
    }

    fn failure(&self, rng: &mut Pcg32) -> Report {
        let class = match rng.random_range(0..40) {
            0 => FailureClass::Fatal,
            1..20 => FailureClass::Task,
            _ => FailureClass::Retryable,
        };
        let place = FaultPlace::ALL[rng.random_range(0..FaultPlace::ALL.len())];
        Report::Failed {
            class,
            place,
            reason: "it happened".to_owned(),
            lost_outputs: Vec::new(),
            disk_need: None,
        }
    }
}
