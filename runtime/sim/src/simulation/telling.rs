//! What attempts tell of their progress, and when.
//!
//! Owns the ticks. Does not own how far an attempt is, nor what it makes of that (`ToldProgress`).

use napreduce_engine::Report;

use super::Simulation;
use super::attempts::Phase;
use super::failures::factor_of;
use super::queue::Due;

impl Simulation {
    /// Every attempt at work tells how far it is.
    pub(super) fn tick(&mut self) {
        let Some(period) = self.settings.progress_period else { return };
        self.queue.push(self.now + period, Due::Tick);
        // Workers that were lost are not visited: a run may have thousands of them.
        for machine in 0..self.on_machine.len() {
            let worker = self.on_machine[machine] as usize;
            for position in 0..self.workers[worker].attempts.len() {
                let place = self.workers[worker].attempts[position];
                self.tell_progress(place);
            }
        }
    }

    /// An attempt tells how far it is, if it is at work.
    pub(super) fn tell_progress(&mut self, place: u32) {
        if self.attempts.at(place).phase == Phase::Fetching {
            self.bring_up_to_date(place);
        }
        let attempt = self.attempts.at(place);
        if matches!(attempt.phase, Phase::Working | Phase::Fetching) {
            let (bytes_done, bytes_total) = attempt.progress(self.now);
            let drawn = factor_of(self.settings.seed, attempt.id);
            let bytes_done = self.settings.progress.of(bytes_done, bytes_total, drawn);
            self.tell(place, Report::Progressed { bytes_done, bytes_total });
        }
    }
}
