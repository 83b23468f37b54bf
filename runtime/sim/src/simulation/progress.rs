//! Progress reports: periodic ones, and marks, which are points of progress reported exactly when reached.

use std::collections::BTreeMap;

use napreduce_engine::{Ratio, Report, TaskId, TaskKind};

use super::Simulation;
use super::attempts::Phase;
use super::clock::{TimedEvent, next_multiple};
use super::failures::factor_of;
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
            by_job
                .entry(mark.job.clone())
                .or_default()
                .push((mark.kind, mark.index, mark.share));
        }
        Marks { by_job }
    }

    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// Returns the work at which the marks of a task are reached, rounded up to microseconds.
    pub fn of(&self, job: &str, task: TaskId, total: u64) -> Vec<u64> {
        let all = self.by_job.get(job).map_or(&[][..], |marks| marks);
        let mine = all
            .iter()
            .filter(|(kind, index, _)| *kind == task.kind && *index == task.index);
        mine.map(|(_, _, share)| share.of_raised(total)).collect()
    }
}

impl Simulation {
    /// Schedules the next periodic report of an attempt that works or fetches, unless one is scheduled. Reports are due
    /// at multiples of the period.
    pub(super) fn schedule_report(&mut self, place: u32) {
        let Some(period) = self.settings.progress_period else {
            return;
        };
        let attempt = self.attempts.at_mut(place);
        if attempt.report_is_scheduled {
            return;
        }
        attempt.report_is_scheduled = true;
        let generation = attempt.generation;
        let due = attempt.next_report(self.clock.now());
        self.clock.schedule_at(
            next_multiple(due, period),
            TimedEvent::ProgressReport { place, generation },
        );
    }

    /// Handles a periodic report that is due.
    pub(super) fn periodic_report(&mut self, place: u32, generation: u32) {
        if self.attempts.at(place).generation != generation {
            return;
        }
        self.attempts.at_mut(place).report_is_scheduled = false;
        let phase = self.attempts.at(place).phase;
        // A suspended attempt schedules a report when it works again.
        if matches!(phase, Phase::Working | Phase::Fetching) {
            self.report_progress(place);
            self.schedule_report(place);
        }
    }

    /// Reports the progress of an attempt if it is running.
    pub(super) fn report_progress(&mut self, place: u32) {
        if self.attempts.at(place).phase == Phase::Fetching {
            self.charge_slot_time(place);
        }
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        if matches!(attempt.phase, Phase::Working | Phase::Fetching) {
            attempt.reported = now;
            let (bytes_done, bytes_total) = attempt.progress(self.clock.now());
            let drawn = factor_of(self.settings.seed, attempt.id);
            let bytes_done = self.settings.progress.of(bytes_done, bytes_total, drawn);
            self.send_report(
                place,
                Report::Progressed {
                    bytes_done,
                    bytes_total,
                },
            );
        }
    }
}
