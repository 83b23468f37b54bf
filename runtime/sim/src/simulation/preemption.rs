//! How a virtual attempt obeys the orders that preempt it, and how it resumes.

use napreduce_engine::Report;

use super::Simulation;
use super::attempts::Phase;

impl Simulation {
    /// Suspends an attempt.
    pub(super) fn suspend(&mut self, place: u32) {
        self.charge_slot_time(place);
        let overheads = &self.settings.overheads;
        let attempt = self.attempts.at_mut(place);
        let job = self.jobs.at_mut(attempt.id.task.job);
        job.result.preemptions.suspend += 1;
        let worker = self.workers.at_mut(attempt.worker);
        let swapped = worker.suspend(job.plan.memory, overheads.spare_memory);
        attempt.swapped = swapped;
        attempt.pages.suspended_since = Some(self.clock.now());
        self.run.slot_time.saved += attempt.preserve();
        let lasts = overheads.suspend.of(swapped);
        self.start_phase(place, Phase::Suspending, lasts);
    }

    /// Completes a suspend.
    pub(super) fn suspended(&mut self, place: u32) {
        self.set_phase(place, Phase::Suspended);
        self.free_machine_slot(place);
        self.send_report(place, Report::Suspended);
    }

    /// Resumes a suspended attempt.
    pub(super) fn resume(&mut self, place: u32) {
        self.charge_slot_time(place);
        self.end_suspension(place);
        let swapped = self.attempts.at(place).swapped;
        let lasts = self.settings.overheads.resume.of(swapped) + self.page_for(place);
        self.start_phase(place, Phase::Resuming, lasts);
    }

    /// Checkpoints a running attempt: it saves its work and exits.
    pub(super) fn save(&mut self, place: u32) {
        self.charge_slot_time(place);
        let bytes = self.checkpoint_bytes(place);
        let lasts = self.settings.overheads.checkpoint_write.of(bytes);
        self.start_phase(place, Phase::Saving, lasts);
    }

    /// Checkpoints a suspended attempt: it is woken without a slot, saves its work and exits.
    pub(super) fn wake_to_save(&mut self, place: u32) {
        self.charge_slot_time(place);
        self.end_suspension(place);
        let swapped = self.attempts.at(place).swapped;
        let saved = self.checkpoint_bytes(place);
        let overheads = &self.settings.overheads;
        let lasts = overheads.resume.of(swapped) + overheads.checkpoint_write.of(saved);
        self.start_phase(place, Phase::Saving, lasts);
    }

    /// Kills an attempt, unless an earlier kill is being obeyed.
    pub(super) fn kill(&mut self, place: u32) {
        self.charge_slot_time(place);
        let phase = self.attempts.at(place).phase;
        if phase == Phase::Cleaning {
            return;
        }
        if matches!(
            phase,
            Phase::Suspending | Phase::Suspended | Phase::ResumeOrdered
        ) {
            self.end_suspension(place);
        }
        self.start_phase(place, Phase::Cleaning, self.settings.overheads.kill);
    }

    /// Returns the memory of a suspended attempt to its worker.
    fn end_suspension(&mut self, place: u32) {
        let attempt = self.attempts.at(place);
        let memory = self.jobs.at(attempt.id.task.job).plan.memory;
        self.workers.at_mut(attempt.worker).end_suspension(memory);
    }
}
