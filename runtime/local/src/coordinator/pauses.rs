//! Stopping of the embedding program: its jobs are suspended before and resumed after it.

use napreduce_engine::{self as engine, AttemptState, Event, Job, JobId, PauseKind};
use tokio::sync::oneshot;

use super::{Coordinator, Pause};

const REASON: &str = "its program was sent SIGTSTP";

impl Coordinator {
    /// Holds every job; notifies `at_rest` when all attempts are stopped.
    pub(super) fn pause(&mut self, at_rest: oneshot::Sender<()>) {
        self.pause = Some(Pause { at_rest: Some(at_rest) });
        self.hold_while_paused();
    }

    /// Holds new jobs while paused.
    pub(super) fn hold_while_paused(&mut self) {
        if self.pause.is_none() {
            return;
        }
        let kind = PauseKind::Suspend;
        for job in
            self.jobs_that(|coordinator, job| coordinator.state.engine.can_pause_job(job, kind).is_ok())
        {
            let pause = engine::Pause { kind, reason: REASON.to_owned() };
            self.enter(Event::JobPauseRequested { job, pause });
        }
    }

    /// Resumes everything that was held.
    pub(super) fn go_on(&mut self) {
        if self.pause.take().is_none() {
            return;
        }
        // Tasks suspended by operators stay suspended.
        let is_paused = |coordinator: &Coordinator, job| {
            let known = coordinator.state.view().job(job);
            known.is_some_and(|known| known.pause().is_some())
                && coordinator.state.engine.can_resume_job(job).is_ok()
        };
        for job in self.jobs_that(is_paused) {
            self.enter(Event::JobResumeRequested { job, reason: "its program goes on".to_owned() });
        }
    }

    /// Notifies the waiting party when all tasks are at rest.
    pub(super) fn tell_rest(&mut self) {
        let stopped = self.state.view().attempts().all(|attempt| attempt.state() == AttemptState::Suspended);
        if let Some(pause) = &mut self.pause
            && stopped
            && let Some(at_rest) = pause.at_rest.take()
        {
            // The receiver may have timed out.
            let _ = at_rest.send(());
        }
    }

    fn jobs_that(&self, are: impl Fn(&Coordinator, JobId) -> bool) -> Vec<JobId> {
        self.state.view().jobs().map(Job::id).filter(|job| are(self, *job)).collect()
    }
}
