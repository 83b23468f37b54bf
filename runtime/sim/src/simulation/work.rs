//! The phases of virtual attempts and their durations.

use napreduce_engine::{Report, Span, TaskKind};

use super::Simulation;
use super::attempts::Phase;
use super::clock::TimedEvent;
use super::pace::Pace;

impl Simulation {
    /// Starts a phase with a fixed duration.
    fn start_phase(&mut self, place: u32, phase: Phase, lasts: Span) {
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
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        let worker = attempt.worker;
        let worked = attempt.phase == Phase::Working;
        attempt.phase = phase;
        attempt.phase_began = now;
        attempt.stamp = attempt.stamp.wrapping_add(1);
        if worked {
            self.share_bandwidth(worker);
        }
    }

    /// Accounts the slot time of an attempt until now.
    pub(super) fn charge_slot_time(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        if attempt.phase == Phase::Fetching {
            let job = self.jobs.at_mut(attempt.id.task.job);
            let before = self.run.slot_time.waiting;
            attempt.fetch(
                self.clock.now(),
                &job.maps_done_history,
                job.plan.maps.len() as u32,
                &mut self.run.slot_time,
            );
            job.result.reduces_idle.0 += self.run.slot_time.waiting - before;
        } else {
            attempt.charge(self.clock.now(), &mut self.run.slot_time);
        }
    }

    /// Handles the end of a phase.
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
            Phase::Working if self.attempts.at(place).done < self.attempts.at(place).stops_at() => {
                self.begin_work(place);
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
            return self.start_phase(place, Phase::Starting, lasts);
        }
        let overheads = self.settings.overheads;
        let attempt = self.attempts.at(place);
        let mut lasts = overheads.launch;
        if attempt.kind() == TaskKind::Map {
            let machine = self.workers.at(attempt.worker).machine;
            let task = attempt.id.task;
            let preferred = &self.jobs.at_mut(task.job).plan.maps[task.index as usize].preferred;
            let placed = !preferred.is_empty();
            let local = preferred.contains(&machine);
            let same_rack =
                |other: &u32| self.settings.rack_of(*other) == self.settings.rack_of(machine);
            let on_rack = !local && self.settings.racks > 1 && preferred.iter().any(same_rack);
            self.run.placed_maps += u64::from(placed);
            self.run.local_maps += u64::from(local);
            self.run.rack_maps += u64::from(on_rack);
            lasts = match (placed && !local, on_rack) {
                (true, true) => lasts + overheads.rack_input,
                (true, false) => lasts + overheads.remote_input,
                (false, _) => lasts,
            };
        }
        if let Some(written_by) = attempt.restores {
            let worker = attempt.worker;
            let bytes = self.checkpoint_bytes(place);
            lasts = lasts + overheads.checkpoint_read.of(bytes) + self.skip_time(place);
            if written_by != worker {
                lasts = lasts + overheads.restore_elsewhere;
                if overheads.restore_refetches {
                    let attempt = self.attempts.at(place);
                    lasts = lasts + Span(attempt.done.min(attempt.shuffle));
                }
            }
        }
        lasts = lasts + self.page_for(place);
        self.start_phase(place, Phase::Starting, lasts);
    }

    /// Starts the work of an attempt, or the fetching of map outputs.
    pub(super) fn begin_work(&mut self, place: u32) {
        self.charge_slot_time(place);
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        attempt.stamp = attempt.stamp.wrapping_add(1);
        attempt.phase_began = now;
        let job = self.jobs.at_mut(attempt.id.task.job);
        if job.is_master() {
            attempt.phase = Phase::Managing;
            return;
        }
        job.worked(now);
        // A reduce without shuffle time still waits for the last map.
        let fetches = attempt.done < attempt.shuffle
            || (attempt.done == attempt.shuffle && !job.has_completed_every_map());
        if attempt.kind() == TaskKind::Reduce && fetches && !job.maps_complete() {
            attempt.phase = Phase::Fetching;
            attempt.history_position = job.maps_done_history.len();
            attempt.maps_seen = job.maps_done;
            let worker = attempt.worker;
            self.schedule_report(place);
            // While it waits for maps it uses no bandwidth; it may have used some before.
            return self.share_bandwidth(worker);
        }
        if attempt.commit_requested {
            // It was suspended between its last work and its commit.
            attempt.phase = Phase::Ended;
            return;
        }
        attempt.phase = Phase::Working;
        self.schedule_report(place);
        if self.settings.overheads.machine_bandwidth.is_none() {
            return self.schedule_end(place);
        }
        let attempt = self.attempts.at_mut(place);
        let worker = attempt.worker;
        attempt.pace = Pace::UNKNOWN;
        self.share_bandwidth(worker);
    }

    /// Schedules the end of an attempt's work or shuffle and its marks, at its current pace.
    pub(super) fn schedule_end(&mut self, place: u32) {
        let limited = self.settings.overheads.machine_bandwidth.is_some();
        let attempt = self.attempts.at(place);
        let stamp = attempt.stamp;
        let id = attempt.id;
        let done = attempt.done;
        let pace = attempt.pace;
        let total = attempt.total;
        // After its shuffle it reads from disk.
        let changes_resource = limited && done < attempt.shuffle;
        let stops = if changes_resource {
            attempt.stops_at().min(attempt.shuffle)
        } else {
            attempt.stops_at()
        };
        self.clock.schedule_after(
            pace.time_for(stops - done),
            TimedEvent::PhaseEnds { place, stamp },
        );
        if !self.marks.is_empty() {
            for at in self
                .marks
                .of(&self.jobs.at_mut(id.task.job).plan.name, id.task, total)
            {
                if at > done || (at == done && done == 0) {
                    self.clock.schedule_after(
                        pace.time_for(at - done),
                        TimedEvent::MarkReached { place, stamp },
                    );
                }
            }
        }
    }

    /// Ends the work of an attempt: success or failure.
    fn work_ends(&mut self, place: u32) {
        let attempt = self.attempts.at(place);
        let id = attempt.id;
        if attempt.done >= attempt.fails_at {
            return self.exit(place, Simulation::injected_failure());
        }
        debug_assert_eq!(attempt.done, attempt.total);
        let now = self.clock.now();
        let job = self.jobs.at_mut(id.task.job);
        job.worked(now);
        let feeds_reduces = id.task.kind == TaskKind::Map && !job.plan.reduces.is_empty();
        if feeds_reduces {
            let output_bytes = job.plan.maps[id.task.index as usize].output_bytes;
            self.exit(
                place,
                Report::Done {
                    output_bytes,
                    output_digest: None,
                },
            );
        } else {
            self.set_phase(place, Phase::Ended);
            self.attempts.at_mut(place).commit_requested = true;
            self.send_report(place, Report::CommitRequested);
        }
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
    fn exit(&mut self, place: u32, report: Report) {
        self.set_phase(place, Phase::Gone);
        self.free_machine_slot(place);
        self.send_report(place, report);
    }

    /// Frees the machine slot of an attempt's process.
    pub(super) fn free_machine_slot(&mut self, place: u32) {
        let attempt = self.attempts.at_mut(place);
        if std::mem::take(&mut attempt.occupies_slot) {
            self.workers
                .at_mut(attempt.worker)
                .free_slot(attempt.id.task.kind);
        }
    }

    pub(super) fn suspend(&mut self, place: u32) {
        self.charge_slot_time(place);
        let overheads = self.settings.overheads;
        let attempt = self.attempts.at(place);
        let id = attempt.id;
        let worker = attempt.worker;
        let job = self.jobs.at_mut(id.task.job);
        job.result.preemptions.suspend += 1;
        let memory = job.plan.memory;
        let swapped = self
            .workers
            .at_mut(worker)
            .suspend(memory, overheads.spare_memory);
        let now = self.clock.now();
        let attempt = self.attempts.at_mut(place);
        attempt.swapped = swapped;
        attempt.pages.suspended_since = Some(now);
        self.run.slot_time.saved += attempt.done - attempt.preserved;
        attempt.preserved = attempt.done;
        self.start_phase(place, Phase::Suspending, overheads.suspend.of(swapped));
    }

    /// Completes a suspend.
    fn suspended(&mut self, place: u32) {
        self.set_phase(place, Phase::Suspended);
        self.free_machine_slot(place);
        self.send_report(place, Report::Suspended);
    }

    pub(super) fn resume(&mut self, place: u32) {
        self.charge_slot_time(place);
        let attempt = self.attempts.at(place);
        let swapped = attempt.swapped;
        let worker = attempt.worker;
        let job = attempt.id.task.job;
        let memory = self.jobs.at_mut(job).plan.memory;
        self.workers.at_mut(worker).end_suspension(memory);
        let lasts = self.settings.overheads.resume.of(swapped) + self.page_for(place);
        self.start_phase(place, Phase::Resuming, lasts);
    }

    pub(super) fn save(&mut self, place: u32) {
        self.charge_slot_time(place);
        let bytes = self.checkpoint_bytes(place);
        let lasts = self.settings.overheads.checkpoint_write.of(bytes);
        self.start_phase(place, Phase::Saving, lasts);
    }

    /// Checkpoints a suspended attempt: it is woken without a slot, saves its work and exits.
    pub(super) fn wake_to_save(&mut self, place: u32) {
        self.charge_slot_time(place);
        let attempt = self.attempts.at(place);
        let swapped = attempt.swapped;
        let worker = attempt.worker;
        let job = attempt.id.task.job;
        let memory = self.jobs.at_mut(job).plan.memory;
        self.workers.at_mut(worker).end_suspension(memory);
        let overheads = self.settings.overheads;
        let saved = self.checkpoint_bytes(place);
        let lasts = overheads.resume.of(swapped) + overheads.checkpoint_write.of(saved);
        self.start_phase(place, Phase::Saving, lasts);
    }

    pub(super) fn kill(&mut self, place: u32) {
        self.charge_slot_time(place);
        let attempt = self.attempts.at(place);
        let phase = attempt.phase;
        let worker = attempt.worker;
        let job = attempt.id.task.job;
        if phase == Phase::Cleaning {
            return;
        }
        if matches!(
            phase,
            Phase::Suspending | Phase::Suspended | Phase::ResumeOrdered
        ) {
            let memory = self.jobs.at_mut(job).plan.memory;
            self.workers.at_mut(worker).end_suspension(memory);
        }
        self.start_phase(place, Phase::Cleaning, self.settings.overheads.kill);
    }
}
