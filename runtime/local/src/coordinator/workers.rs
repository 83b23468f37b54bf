//! Reports, progress and memory of workers.

use std::path::{Path, PathBuf};

use napreduce_engine::{
    AttemptId, AttemptState, Event, FailureClass, JobId, Report, Time, WorkerId,
};
use napreduce_protocol::{AttemptProgress, WorkerNews, WorkerReport};

use super::Coordinator;
use super::entry::{Extra, TranslatedReport, translate_report};
use super::link::{HeldReport, Link};
use crate::clock::now;
use crate::output::Trouble;
#[cfg(feature = "simulated")]
use crate::world::{Fact, note};
use crate::world::{Situation, reached};

impl Coordinator {
    /// Handles a message of the worker in this process; messages arrive once and in order.
    pub(super) fn on_news(&mut self, worker: WorkerId, news: WorkerNews) {
        match news {
            WorkerNews::Report { at, report } => {
                let age = now().into_std().saturating_duration_since(at);
                let at = self.clock.before_now(age);
                self.on_report(worker, at, report);
            }
            WorkerNews::Progress(progress) => self.on_progress(worker, &progress),
            WorkerNews::Memory(memory) => {
                if let Some(link) = self.state.link_mut(worker) {
                    link.set_memory(memory);
                }
            }
        }
    }

    /// Handles the next report of a worker, about what happened at a time. Reports are applied in order: one that
    /// waits for the check of an output directory delays the later ones of its worker, and no others.
    pub fn on_report(&mut self, worker: WorkerId, at: Time, mut report: WorkerReport) {
        let waits_for = self.check_storage(&mut report);
        let Some(link) = self.state.link_mut(worker) else {
            return;
        };
        if waits_for.is_none() && !link.holds_reports() {
            return self.apply_report(worker, at, report);
        }
        reached(Situation::ReportHeld);
        link.hold(HeldReport {
            at,
            report,
            waits_for,
        });
    }

    /// Applies the reports that waited for the check of a job's output directory, and later ones of their workers.
    pub(super) fn release_reports(&mut self, job: JobId, trouble: Option<&Trouble>) {
        let output = match self.state.jobs().get(&job) {
            Some(known) => known.accepted.plan.output.clone(),
            None => PathBuf::new(),
        };
        let workers: Vec<WorkerId> = self.state.links().keys().copied().collect();
        for worker in workers {
            if let Some(link) = self.state.link_mut(worker) {
                link.end_wait(job, |report| {
                    if let Some(trouble) = trouble {
                        blame_storage(report, trouble, &output);
                    }
                });
            }
            while let Some(held) = self.state.link_mut(worker).and_then(Link::take_held) {
                self.apply_report(worker, held.at, held.report);
            }
        }
    }

    fn apply_report(&mut self, worker: WorkerId, at: Time, report: WorkerReport) {
        let Some(link) = self.state.links().get(&worker) else {
            return;
        };
        let number = link.received() + 1;
        #[cfg(feature = "simulated")]
        note(&Fact::ReportApplied {
            worker,
            number,
            report: &report,
        });
        let wants_suspension = match report {
            WorkerReport::SuspendWanted { attempt } => Some(attempt),
            _ => None,
        };
        let TranslatedReport { event, mut extra } = translate_report(worker, number, at, report);
        extra.retain(|extra| self.keeps(extra));
        self.add_to_batch(event, extra);
        if let Some(attempt) = wants_suspension
            && self.cluster.is_none()
        {
            self.resume_soon(attempt);
        }
    }

    /// Resumes a suspended attempt of an embedded run, which has no operator to do it: it gets the next free slot.
    fn resume_soon(&mut self, attempt: AttemptId) {
        self.decide();
        if self.state.engine().can_resume(attempt).is_ok() {
            let reason = "an embedded run has no operator to resume it".to_owned();
            self.enter(Event::AttemptResumeRequested { attempt, reason });
        }
    }

    /// Returns whether to keep an extra: the output of failed attempts is optional and limited per job.
    fn keeps(&self, extra: &Extra) -> bool {
        let Extra::Printed { attempt, .. } = extra else {
            return true;
        };
        if let Some(cluster) = &self.cluster
            && !cluster.keeps_failed_logs()
        {
            return false;
        }
        match self.state.jobs().get(&attempt.task.job) {
            Some(job) => job.has_room_for_logs(),
            None => false,
        }
    }

    pub fn on_progress(&mut self, worker: WorkerId, progress: &[AttemptProgress]) {
        for &AttemptProgress {
            attempt,
            bytes_done,
            bytes_total,
        } in progress
        {
            let Some(known) = self.state.view().attempt(attempt) else {
                continue;
            };
            // A heartbeat may overtake the report that the attempt has started, which is sent again after a restart of the
            // coordinator.
            let has_started = known.state() != AttemptState::Launching;
            let is_new = (known.bytes_done(), known.bytes_total()) != (bytes_done, bytes_total);
            if known.worker() == worker && has_started && is_new {
                let report = Report::Progressed {
                    bytes_done,
                    bytes_total,
                };
                let event = Event::Reported {
                    worker,
                    attempt,
                    report,
                };
                self.add_to_batch([event], Vec::new());
            }
        }
    }
}

/// Changes the error of an attempt that failed on shared storage because of the whole output directory.
fn blame_storage(report: &mut WorkerReport, trouble: &Trouble, output: &Path) {
    let WorkerReport::Failed { error, .. } = report else {
        return;
    };
    match trouble {
        Trouble::Passing { .. } => error.class = FailureClass::Excused,
        Trouble::Taken { .. } | Trouble::Final(_) => {
            error.class = FailureClass::Fatal;
            error.message = format!("{} ({})", trouble.in_words(output), error.message);
        }
    }
}
