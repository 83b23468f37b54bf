//! Progress reports: periodic ticks, and marks, which are points of progress reported exactly when reached.

use std::collections::BTreeMap;

use napreduce_engine::{Ratio, Report, TaskId, TaskKind};

use super::Simulation;
use super::attempts::Phase;
use super::failures::factor_of;
use super::queue::Due;
use crate::settings::ProgressMark;

/// The marks, by job name.
#[derive(Debug, Default)]
pub(super) struct Marks {
    by_job: BTreeMap<String, Vec<(TaskKind, u32, Ratio)>>,
}

impl Marks {
    pub fn new(marks: &[ProgressMark]) -> Marks {
        let mut by_job: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for mark in marks {
            by_job.entry(mark.job.clone()).or_default().push((mark.kind, mark.index, mark.share));
        }
        Marks { by_job }
    }

    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// Returns the work at which the marks of a task are reached, rounded up to microseconds.
    pub fn of(&self, job: &str, task: TaskId, total: u64) -> Vec<u64> {
        let all = self.by_job.get(job).map_or(&[][..], |marks| marks);
        let mine = all.iter().filter(|(kind, index, _)| *kind == task.kind && *index == task.index);
        mine.map(|(_, _, share)| share.of_raised(total)).collect()
    }
}

impl Simulation {
    /// Reports the progress of every running attempt.
    pub(super) fn tick(&mut self) {
        let Some(period) = self.settings.progress_period else { return };
        self.queue.push(self.now + period, Due::Tick);
        // Skip lost workers: a run may have thousands of them.
        for machine in 0..self.on_machine.len() {
            let worker = self.on_machine[machine] as usize;
            for position in 0..self.workers[worker].attempts.len() {
                let place = self.workers[worker].attempts[position];
                if self.attempts.at(place).is_due_to_report(self.now) {
                    self.report_progress(place);
                }
            }
        }
    }

    /// Reports the progress of an attempt if it is running.
    pub(super) fn report_progress(&mut self, place: u32) {
        if self.attempts.at(place).phase == Phase::Fetching {
            self.charge_slot_time(place);
        }
        let now = self.now;
        let attempt = self.attempts.at_mut(place);
        if matches!(attempt.phase, Phase::Working | Phase::Fetching) {
            attempt.reported = now;
            let (bytes_done, bytes_total) = attempt.progress(self.now);
            let drawn = factor_of(self.settings.seed, attempt.id);
            let bytes_done = self.settings.progress.of(bytes_done, bytes_total, drawn);
            self.send_report(place, Report::Progressed { bytes_done, bytes_total });
        }
    }
}
