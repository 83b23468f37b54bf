//! Stopping of the embedding program: its jobs are suspended before and resumed after it.

use napreduce_engine::{AttemptState, Event, Job, JobId, Pause, PauseKind};
use tokio::sync::oneshot;

use super::Coordinator;

const REASON: &str = "its program was sent SIGTSTP";

impl Coordinator {
    /// Holds every job; notifies `at_rest` when all attempts are stopped.
    pub(super) fn pause(&mut self, at_rest: oneshot::Sender<()>) {
        self.program.stop(at_rest);
        self.hold_while_paused();
    }

    /// Holds new jobs while paused.
    pub(super) fn hold_while_paused(&mut self) {
        if !self.program.is_stopped() {
            return;
        }
        let kind = PauseKind::Suspend;
        for job in self.jobs_that(|coordinator, job| {
            coordinator.state.engine().can_pause_job(job, kind).is_ok()
        }) {
            let pause = Pause {
                kind,
                reason: REASON.to_owned(),
            };
            self.enter(Event::JobPauseRequested { job, pause });
        }
    }

    /// Resumes everything that was held.
    pub(super) fn go_on(&mut self) {
        if !self.program.resume() {
            return;
        }
        // Tasks suspended by operators stay suspended.
        let is_paused = |coordinator: &Coordinator, job| {
            let known = coordinator.state.view().job(job);
            known.is_some_and(|known| known.pause().is_some())
                && coordinator.state.engine().can_resume_job(job).is_ok()
        };
        for job in self.jobs_that(is_paused) {
            self.enter(Event::JobResumeRequested {
                job,
                reason: "its program continues".to_owned(),
            });
        }
    }

    /// Notifies the waiting party when all tasks are at rest.
    pub(super) fn tell_rest(&mut self) {
        let mut attempts = self.state.view().attempts();
        if self.program.awaits_rest()
            && attempts.all(|attempt| attempt.state() == AttemptState::Suspended)
        {
            self.program.notify_rest();
        }
    }

    fn jobs_that(&self, are: impl Fn(&Coordinator, JobId) -> bool) -> Vec<JobId> {
        self.state
            .view()
            .jobs()
            .map(Job::id)
            .filter(|job| are(self, *job))
            .collect()
    }
}
