//! Progress reports: periodic ones, and marks, which are points of progress reported exactly when reached.

use std::collections::BTreeMap;

use napreduce_engine::{Ratio, Report, TaskId, TaskKind};

use super::Simulation;
use super::attempts::Phase;
use super::clock::{TimedEvent, next_multiple};
use super::failures::drawn_for_progress;
use crate::settings::ProgressMark;

/// The progress marks, by job name.
#[derive(Debug, Default)]
pub(super) struct ProgressMarks {
    by_job: BTreeMap<String, Vec<Mark>>,
}

/// A mark of one task of a job.
#[derive(Debug)]
struct Mark {
    kind: TaskKind,
    index: u32,
    share: Ratio,
}

impl ProgressMarks {
    pub fn new(marks: &[ProgressMark]) -> ProgressMarks {
        let mut by_job: BTreeMap<String, Vec<Mark>> = BTreeMap::new();
        for mark in marks {
            let of_job = by_job.entry(mark.job.clone()).or_default();
            of_job.push(Mark {
                kind: mark.kind,
                index: mark.index,
                share: mark.share,
            });
        }
        ProgressMarks { by_job }
    }

    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    /// Returns the work at which the marks of a task are reached, rounded up to microseconds.
    pub fn of(&self, job: &str, task: TaskId, total: u64) -> Vec<u64> {
        let mut reached_at = Vec::new();
        let Some(marks) = self.by_job.get(job) else {
            return reached_at;
        };
        for mark in marks {
            if mark.kind == task.kind && mark.index == task.index {
                reached_at.push(mark.share.of_raised(total));
            }
        }
        reached_at
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
        let earliest = attempt.next_report(self.clock.now());
        let report = TimedEvent::ProgressReport {
            place,
            generation: attempt.generation,
        };
        self.clock
            .schedule_at(next_multiple(earliest, period), report);
    }

    /// Handles a periodic report that is due.
    pub(super) fn periodic_report(&mut self, place: u32, generation: u32) {
        let attempt = self.attempts.at_mut(place);
        if attempt.generation != generation {
            return;
        }
        attempt.report_is_scheduled = false;
        // A suspended attempt schedules a report when it works again.
        if attempt.is_running() {
            self.report_progress(place);
            self.schedule_report(place);
        }
    }

    /// Handles a progress mark that is due, if the attempt is still in the phase that reaches it then.
    pub(super) fn mark_reached(&mut self, place: u32, stamp: u32) {
        if self.attempts.at(place).stamp == stamp {
            self.report_progress(place);
        }
    }

    /// Reports the progress of an attempt if it is running.
    fn report_progress(&mut self, place: u32) {
        if self.attempts.at(place).phase == Phase::Fetching {
            self.charge_slot_time(place);
        }
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        if !attempt.is_running() {
            return;
        }
        attempt.reported = now;
        let progress = attempt.progress(now);
        let drawn = drawn_for_progress(self.settings.seed, attempt.id);
        let model = self.settings.progress;
        self.send_report(
            place,
            Report::Progressed {
                bytes_done: model.of(progress.done, progress.total, drawn),
                bytes_total: progress.total,
            },
        );
    }
}
