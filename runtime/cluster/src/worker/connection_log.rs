//! Logs the state of a worker's connection to its coordinator: one line per change.

use napreduce_engine::WorkerId;

use super::introduction::Apart;

/// The last logged state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logged {
    Nothing,
    Together,
    Lost,
    Unreachable,
    Refused,
}

#[derive(Debug)]
pub(super) struct ConnectionLog {
    worker: String,
    logged: Logged,
    /// Whether no coordinator has accepted this worker since it started.
    pub(super) is_stranger: bool,
}

impl ConnectionLog {
    pub(super) fn new(name: &str) -> ConnectionLog {
        ConnectionLog {
            worker: name.to_owned(),
            logged: Logged::Nothing,
            is_stranger: true,
        }
    }

    pub(super) fn on_together(&mut self, worker: WorkerId) {
        self.is_stranger = false;
        self.log_once(
            Logged::Together,
            &format!("connected to the coordinator as {worker}"),
        );
    }

    pub(super) fn on_new_identity(&self, superseded: bool) {
        if superseded {
            self.log("had been given up and rejoined as a new worker; ending its attempts and removing their files");
        }
    }

    pub(super) fn on_apart(&mut self, apart: &Apart) {
        match apart {
            Apart::Lost(why) => {
                self.log_once(
                    Logged::Lost,
                    &format!("lost the coordinator: {why}; attempts keep running"),
                );
            }
            Apart::Starting => {}
            // Expected after a loss.
            Apart::Unreachable(_) if self.logged == Logged::Lost => {}
            Apart::Unreachable(why) => self.log_once(
                Logged::Unreachable,
                &format!("waiting for a coordinator: {why}"),
            ),
            Apart::NotLetIn { reason: why, .. }
            | Apart::Refused(why)
            | Apart::NameTaken { reason: why, .. } => {
                self.log_once(
                    Logged::Refused,
                    &format!("the coordinator refuses this worker: {why}; retrying"),
                );
            }
        }
    }

    pub(super) fn on_stop(&self, why: &str, how: &str) {
        self.log(&format!("stopping ({why}): {how}"));
    }

    pub(super) fn on_leave(&self) {
        self.log("released by the coordinator; leaving");
    }

    pub(super) fn on_leave_unanswered(&self) {
        self.log("the coordinator did not release this worker in time; leaving");
    }

    fn log_once(&mut self, state: Logged, line: &str) {
        if self.logged != state {
            self.logged = state;
            self.log(line);
        }
    }

    fn log(&self, line: &str) {
        tracing::info!(target: "worker", worker = %self.worker, "{line}");
    }
}
