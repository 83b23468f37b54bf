//! The phases of virtual attempts and their durations.

use napreduce_engine::{FailureClass, FaultPlace, Report, Span, TaskKind};

use super::Simulation;
use super::attempts::Phase;

use super::clock::TimedEvent;
use super::pace::Pace;

/// The report of an attempt that fails at random.
fn injected_failure() -> Report {
    Report::Failed {
        class: FailureClass::Task,
        place: FaultPlace::UserCode,
        reason: "simulated failure".to_owned(),
        lost_outputs: Vec::new(),
        disk_need: None,
    }
}

impl Simulation {
    /// Starts a phase with a fixed duration.
    pub(super) fn start_phase(&mut self, place: u32, phase: Phase, lasts: Span) {
        self.set_phase(place, phase);
        let stamp = self.attempts.at(place).stamp;
        if lasts.0 == 0 {
            self.phase_ends(place, stamp);
        } else {
            self.clock
                .schedule_after(lasts, TimedEvent::PhaseEnds { place, stamp });
        }
    }

    /// Starts a phase that an event ends.
    pub(super) fn set_phase(&mut self, place: u32, phase: Phase) {
        let attempt = self.attempts.at_mut(place);
        let worker = attempt.worker;
        let worked = attempt.phase == Phase::Working;
        attempt.enter(phase, self.clock.now());
        if worked {
            self.share_bandwidth(worker);
        }
    }

    /// Accounts the slot time of an attempt until now.
    pub(super) fn charge_slot_time(&mut self, place: u32) {
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        if attempt.phase != Phase::Fetching {
            attempt.charge(now, &mut self.run.slot_time);
            return;
        }
        let job = self.jobs.at_mut(attempt.id.task.job);
        let waited = attempt.fetch(now, &job.maps_done_history, job.maps());
        self.run.slot_time.waiting += waited;
        job.result.reduces_idle.0 += waited;
    }

    /// Handles the end of a phase, unless the attempt has left it.
    pub(super) fn phase_ends(&mut self, place: u32, stamp: u32) {
        if self.attempts.at(place).stamp != stamp {
            return;
        }
        self.charge_slot_time(place);
        match self.attempts.at(place).phase {
            Phase::Starting => {
                self.begin_work(place);
                self.send_report(place, Report::Started);
                self.master_started(place);
            }
            Phase::Working => self.work_ends(place),
            Phase::Suspending => self.suspended(place),
            Phase::Resuming => {
                self.send_report(place, Report::Resumed);
                self.begin_work(place);
            }
            Phase::Saving => self.exit(place, Report::Checkpointed),
            Phase::Cleaning => self.exit(place, Report::Killed),
            phase => unreachable!("{phase:?} does not end by time"),
        }
    }

    /// Handles the arrival of a launch order.
    pub(super) fn start(&mut self, place: u32) {
        self.charge_slot_time(place);
        if let Some(lasts) = self.start_of_master(place) {
            self.start_phase(place, Phase::Starting, lasts);
            return;
        }
        let lasts = self.settings.overheads.launch
            + self.time_to_input(place)
            + self.time_to_restore(place)
            + self.page_for(place);
        self.start_phase(place, Phase::Starting, lasts);
    }

    /// Returns the time that a map takes longer since its input is on another machine, and counts the launch.
    fn time_to_input(&mut self, place: u32) -> Span {
        let attempt = self.attempts.at(place);
        if attempt.kind() == TaskKind::Reduce {
            return Span(0);
        }
        let task = attempt.id.task;
        let preferred = &self.jobs.at(task.job).plan.maps[task.index as usize].preferred;
        if preferred.is_empty() {
            return Span(0);
        }
        self.run.placed_maps += 1;
        let machine = self.workers.at(attempt.worker).machine;
        if preferred.contains(&machine) {
            self.run.local_maps += 1;
            return Span(0);
        }
        let rack = self.settings.rack_of(machine);
        let mut racks = preferred.iter().map(|other| self.settings.rack_of(*other));
        if self.settings.racks > 1 && racks.any(|other| other == rack) {
            self.run.rack_maps += 1;
            return self.settings.overheads.rack_input;
        }
        self.settings.overheads.remote_input
    }

    /// Returns the time to read the checkpoint of an attempt, if it starts from one.
    fn time_to_restore(&self, place: u32) -> Span {
        let attempt = self.attempts.at(place);
        let Some(written_by) = attempt.restores else {
            return Span(0);
        };
        let overheads = &self.settings.overheads;
        let bytes = self.checkpoint_bytes(place);
        let mut lasts = overheads.checkpoint_read.of(bytes) + self.skip_time(place);
        if written_by != attempt.worker {
            lasts = lasts + overheads.restore_elsewhere;
            if overheads.restore_refetches {
                lasts = lasts + Span(attempt.done.min(attempt.shuffle));
            }
        }
        lasts
    }

    /// Starts the work of an attempt, or the fetching of map outputs.
    pub(super) fn begin_work(&mut self, place: u32) {
        self.charge_slot_time(place);
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        let worker = attempt.worker;
        let job = self.jobs.at_mut(attempt.id.task.job);
        if job.is_master() {
            attempt.enter(Phase::Managing, now);
            return;
        }
        job.worked(now);
        if attempt.kind() == TaskKind::Reduce && job.must_wait(attempt) {
            attempt.enter(Phase::Fetching, now);
            attempt.begin_fetching(&job.maps_done_history, job.maps_done);
            self.schedule_report(place);
            // While it waits for maps it uses no bandwidth; it may have used some before.
            self.share_bandwidth(worker);
            return;
        }
        if attempt.commit_requested {
            // It was suspended between its last work and its commit.
            attempt.enter(Phase::Ended, now);
            return;
        }
        attempt.enter(Phase::Working, now);
        self.schedule_report(place);
        if self.settings.overheads.machine_bandwidth.is_none() {
            self.schedule_end(place);
            return;
        }
        self.attempts.at_mut(place).pace = Pace::UNKNOWN;
        self.share_bandwidth(worker);
    }

    /// Schedules the end of an attempt's work or shuffle and its marks, at its current pace.
    pub(super) fn schedule_end(&mut self, place: u32) {
        let limited = self.settings.overheads.machine_bandwidth.is_some();
        let attempt = self.attempts.at(place);
        let stamp = attempt.stamp;
        let done = attempt.done;
        let pace = attempt.pace;
        let mut stops_at = attempt.stops_at();
        if limited && attempt.is_in_shuffle() {
            // After its shuffle it reads from disk.
            stops_at = stops_at.min(attempt.shuffle);
        }
        self.clock.schedule_after(
            pace.time_for(stops_at - done),
            TimedEvent::PhaseEnds { place, stamp },
        );
        if self.progress_marks.is_empty() {
            return;
        }
        let task = attempt.id.task;
        let job = &self.jobs.at(task.job).plan.name;
        for mark in self.progress_marks.of(job, task, attempt.total) {
            let is_ahead = mark > done;
            let is_at_start = mark == 0 && done == 0;
            if is_ahead || is_at_start {
                self.clock.schedule_after(
                    pace.time_for(mark - done),
                    TimedEvent::MarkReached { place, stamp },
                );
            }
        }
    }

    /// Handles the end of an attempt's work: success or failure. If only its shuffle has ended, it continues.
    fn work_ends(&mut self, place: u32) {
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        if attempt.done < attempt.stops_at() {
            self.begin_work(place);
            return;
        }
        if attempt.done >= attempt.fails_at {
            self.exit(place, injected_failure());
            return;
        }
        debug_assert_eq!(attempt.done, attempt.total);
        let job = self.jobs.at_mut(task.job);
        job.worked(self.clock.now());
        if task.kind == TaskKind::Map && job.has_reduces() {
            let output_bytes = job.plan.maps[task.index as usize].output_bytes;
            self.exit(
                place,
                Report::Done {
                    output_bytes,
                    output_digest: None,
                },
            );
            return;
        }
        self.request_commit(place);
    }

    /// Ends the work of an attempt and requests its commit.
    pub(super) fn request_commit(&mut self, place: u32) {
        self.set_phase(place, Phase::Ended);
        self.attempts.at_mut(place).commit_requested = true;
        self.send_report(place, Report::CommitRequested);
    }

    /// Commits an attempt.
    pub(super) fn attempt_commits(&mut self, place: u32) {
        if self.attempts.at(place).phase == Phase::Ended {
            self.charge_slot_time(place);
            self.exit(
                place,
                Report::Done {
                    output_bytes: 0,
                    output_digest: None,
                },
            );
        }
    }

    /// Ends the process of an attempt and reports it.
    pub(super) fn exit(&mut self, place: u32, report: Report) {
        self.set_phase(place, Phase::Gone);
        self.free_machine_slot(place);
        self.send_report(place, report);
    }

    /// Frees the machine slot of an attempt's process, if it occupies one.
    pub(super) fn free_machine_slot(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        if attempt.occupies_slot {
            attempt.occupies_slot = false;
            let worker = self.workers.at_mut(attempt.worker);
            worker.free_slot(attempt.kind());
        }
    }
}
