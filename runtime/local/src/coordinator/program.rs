//! The program that embeds a coordinator: whether it submits more jobs, is interrupted or stopped.

use tokio::sync::oneshot;

/// The announcements of an embedding program; empty in a cluster.
#[derive(Default)]
pub(super) struct Program {
    /// It has submitted its last job.
    is_finishing: bool,
    interrupted: Option<String>,
    stop: Option<Stop>,
}

/// The program is stopped or about to be.
struct Stop {
    /// Notified when all tasks are at rest; `None` after that.
    at_rest: Option<oneshot::Sender<()>>,
}

impl Program {
    pub fn finish(&mut self) {
        self.is_finishing = true;
    }

    pub fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    pub fn interrupt(&mut self, reason: String) {
        self.interrupted = Some(reason);
    }

    /// Returns the reason for which its jobs are killed.
    pub fn interrupted(&self) -> Option<&str> {
        self.interrupted.as_deref()
    }

    pub fn stop(&mut self, at_rest: oneshot::Sender<()>) {
        self.stop = Some(Stop {
            at_rest: Some(at_rest),
        });
    }

    /// Records that it continues; returns false if it was not stopped.
    pub fn resume(&mut self) -> bool {
        self.stop.take().is_some()
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Notifies the party that waits for the tasks to be at rest.
    pub fn notify_rest(&mut self) {
        if let Some(at_rest) = self.stop.as_mut().and_then(|stop| stop.at_rest.take()) {
            // The receiver may have timed out.
            let _ = at_rest.send(());
        }
    }

    /// Returns whether a party waits for the tasks to be at rest.
    pub fn awaits_rest(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| stop.at_rest.is_some())
    }
}
