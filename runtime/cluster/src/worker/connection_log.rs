//! Logs the state of a worker's connection to its coordinator: one line per change.

use napreduce_engine::WorkerId;

use super::introduction::Apart;

/// The last logged state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Together,
    Lost,
    Unreachable,
    Refused,
}

#[derive(Debug)]
pub(super) struct ConnectionLog {
    who: String,
    said: Said,
    /// Whether no coordinator has accepted this worker since it started.
    pub(super) is_stranger: bool,
}

impl ConnectionLog {
    pub(super) fn new(name: &str) -> ConnectionLog {
        ConnectionLog { who: name.to_owned(), said: Said::Nothing, is_stranger: true }
    }

    pub(super) fn on_together(&mut self, worker: WorkerId) {
        self.is_stranger = false;
        self.say(Said::Together, &format!("connected to the coordinator as {worker}"));
    }

    pub(super) fn on_anew(&self, superseded: bool) {
        if superseded {
            self.tell("had been given up and rejoined as a new worker; ending its attempts and removing their files");
        }
    }

    pub(super) fn on_apart(&mut self, apart: &Apart) {
        match apart {
            Apart::Lost(why) => {
                self.say(Said::Lost, &format!("lost the coordinator: {why}; attempts keep running"));
            }
            Apart::Starting => {}
            // Expected after a loss.
            Apart::Unreachable(_) if self.said == Said::Lost => {}
            Apart::Unreachable(why) => {
                self.say(Said::Unreachable, &format!("waiting for a coordinator: {why}"))
            }
            Apart::NotLetIn { reason: why, .. } | Apart::Refused(why) | Apart::NameTaken(why) => {
                self.say(Said::Refused, &format!("the coordinator refuses this worker: {why}; retrying"));
            }
        }
    }

    pub(super) fn on_stop(&self, why: &str, how: &str) {
        self.tell(&format!("stopping ({why}): {how}"));
    }

    pub(super) fn on_leave(&self) {
        self.tell("released by the coordinator; leaving");
    }

    pub(super) fn on_leave_unanswered(&self) {
        self.tell("the coordinator did not release this worker in time; leaving");
    }

    fn say(&mut self, what: Said, line: &str) {
        if self.said != what {
            self.said = what;
            self.tell(line);
        }
    }

    fn tell(&self, line: &str) {
        tracing::info!(target: "worker", worker = %self.who, "{line}");
    }
}
