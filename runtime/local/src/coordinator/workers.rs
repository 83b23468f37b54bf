//! Reports, progress and memory of workers.

use napreduce_engine::{Event, Report, WorkerId};
use napreduce_protocol::{AttemptProgress, WorkerNews, WorkerReport};

use super::Coordinator;
use super::entry::of_report;
use crate::clock::now;

impl Coordinator {
    /// Handles a message of the worker in this process; messages arrive once and in order.
    pub(super) fn on_news(&mut self, worker: WorkerId, news: WorkerNews) {
        match news {
            WorkerNews::Report { at, report } => {
                let at = self
                    .clock
                    .before_now(now().into_std().saturating_duration_since(at));
                let number = self
                    .state
                    .links()
                    .get(&worker)
                    .map_or(0, |link| link.received() + 1);
                let stopped = match report {
                    WorkerReport::SuspendWanted { attempt } => Some(attempt),
                    _ => None,
                };
                let report = self.look_at_storage(report);
                let (event, extra) = of_report(worker, number, at, report);
                self.add_to_batch(event, extra);
                if stopped.is_some() {
                    self.decide();
                }
                // There is no operator to resume it: it gets the next free slot.
                if let Some(attempt) =
                    stopped.filter(|id| self.state.engine().can_resume(*id).is_ok())
                {
                    let reason = "an embedded run has no operator to resume it".to_owned();
                    self.enter(Event::AttemptResumeRequested { attempt, reason });
                }
            }
            WorkerNews::Progress(progress) => self.on_progress(worker, &progress),
            WorkerNews::Memory(memory) => {
                if let Some(link) = self.state.link_mut(worker) {
                    link.set_memory(memory);
                }
            }
        }
    }

    pub fn on_progress(&mut self, worker: WorkerId, progress: &[AttemptProgress]) {
        for &AttemptProgress {
            attempt,
            bytes_done,
            bytes_total,
        } in progress
        {
            let known = self.state.view().attempt(attempt);
            let news = known.is_some_and(|known| {
                known.worker() == worker
                    && (known.bytes_done(), known.bytes_total()) != (bytes_done, bytes_total)
            });
            if news {
                let report = Report::Progressed {
                    bytes_done,
                    bytes_total,
                };
                self.add_to_batch(
                    [Event::Reported {
                        worker,
                        attempt,
                        report,
                    }],
                    Vec::new(),
                );
            }
        }
    }
}
