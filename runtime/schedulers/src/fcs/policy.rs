//! FCS as a scheduler of reduce slots.
//!
//! Owns what passes between the engine and the two algorithms. Does not own map slots: another policy gives
//! those, beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, AttemptId, ClusterView, Event, JobId, Report, Scheduler, TaskKind, Time, WorkerId,
};

use crate::fcs::configuration::{FcsConfiguration, FcsError};
use crate::fcs::estimates::Bounds;
use crate::fcs::jobs::Jobs;

/// So many jobs are looked at anew at an event though nothing happened to them.
const REFRESHED_PER_EVENT: usize = 2;

/// The fair completion scheduler: see `docs/schedulers/fcs.md`.
#[derive(Debug)]
pub struct Fcs {
    pub(super) configuration: FcsConfiguration,
    pub(super) bounds: Bounds,
    pub(super) state: FcsState,
}

/// What it remembers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FcsState {
    pub jobs: Jobs,
    pub workers: u32,
    /// When a free slot of each worker was last an opportunity.
    pub last_counted: BTreeMap<WorkerId, Time>,
    /// When slots were last taken for everybody.
    pub last_round: Time,
    /// A preempted task declined the slot that is on offer.
    pub declined: bool,
    /// When slots that were declined are to be offered again.
    pub offer_at: Option<Time>,
}

impl Fcs {
    /// The policy with these choices.
    ///
    /// # Errors
    /// Says which choice makes no sense.
    pub fn new(configuration: FcsConfiguration) -> Result<Fcs, FcsError> {
        configuration.check()?;
        Ok(Fcs { bounds: configuration.bounds(), configuration, state: FcsState::default() })
    }

    fn reported(
        &mut self,
        now: Time,
        worker: WorkerId,
        id: AttemptId,
        report: &Report,
        view: &ClusterView<'_>,
    ) {
        let (job, index) = (view.job(id.task.job), id.task.index);
        let Some(member) = self.state.jobs.members.get_mut(&id.task.job) else { return };
        match report {
            Report::Progressed { .. } => {
                let Some(millionths) = view.attempt(id).and_then(|attempt| attempt.progress_millionths())
                else {
                    return;
                };
                member.progressed(index, millionths);
            }
            Report::Checkpointed => member.preempted.wait(index, worker),
            Report::Done { .. } => member.forget_progress(index),
            Report::Failed { .. } | Report::Killed => {
                member.forget_progress(index);
                if let Some((_, place, _)) =
                    job.and_then(|job| job.checkpointed(TaskKind::Reduce).find(|(task, ..)| *task == id.task))
                {
                    member.preempted.wait(index, place);
                }
            }
            _ => return,
        }
        self.state.jobs.look_at(now, id.task.job, job);
    }

    /// Looks again at a few jobs to which nothing happened for a while: their estimates grow with time.
    fn refresh(&mut self, now: Time, view: &ClusterView<'_>) {
        for _ in 0..REFRESHED_PER_EVENT {
            let Some(job) = self.state.jobs.stalest(now - self.configuration.period()) else { return };
            self.state.jobs.look_at(now, job, view.job(job));
        }
    }
}

impl Scheduler for Fcs {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        match event {
            Event::Reported { worker, attempt, report } if attempt.task.kind == TaskKind::Reduce => {
                self.reported(now, *worker, *attempt, report, view);
            }
            Event::WorkerJoined { .. } | Event::WorkerLost { .. } => {
                self.state.workers = u32::try_from(view.workers().count()).unwrap_or(u32::MAX);
            }
            _ => {}
        }
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.state.jobs.job_changed(now, job, view.job(job));
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if !actions.kinds().contains(&TaskKind::Reduce) {
            return;
        }
        match actions.offer() {
            Some(offer) if offer.kind == TaskKind::Reduce => {
                self.offer(now, view, offer, actions);
            }
            Some(_) => actions.decline_kind("FCS gives reduce slots only; compose it with a policy for maps"),
            None => {
                self.refresh(now, view);
                self.take_slots(now, view, actions);
            }
        }
    }

    fn save(&self) -> Option<String> {
        Some(serde_json::to_string(&self.state).expect("plain data"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what FCS remembers is not said")?;
        self.state = serde_json::from_str(saved).map_err(|error| format!("FCS's memory: {error}"))?;
        self.state.jobs.list_all();
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let waits = !self.state.jobs.waiting.is_empty() && !self.state.jobs.running.is_empty();
        let round = waits.then(|| (self.state.last_round + self.configuration.period()).max(now));
        let offer = self.state.offer_at.filter(|at| *at > now);
        [round, offer].into_iter().flatten().min()
    }
}
