//! FCS as a scheduler of reduce slots: passes events and offers to the two algorithms.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, AttemptId, ClusterView, Event, Job, JobId, Report, Scheduler, SortedMap, TaskKind,
    Time, WorkerId,
};

use crate::composed::Composed;
use crate::fcs::configuration::{FcsConfiguration, FcsError};
use crate::fcs::estimates::Bounds;
use crate::fcs::jobs::Jobs;
use crate::tables::{
    Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables, SchedulerError,
};

/// Jobs without events whose estimates are refreshed per scheduling round.
const REFRESHED_PER_EVENT: usize = 2;

/// The fair completion scheduler: see `docs/schedulers/fcs.md`.
#[derive(Debug)]
pub struct Fcs {
    pub(super) configuration: FcsConfiguration,
    pub(super) bounds: Bounds,
    pub(super) state: FcsState,
}

/// The saved state.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FcsState {
    pub jobs: Jobs,
    pub workers: u32,
    /// When a free slot of each worker last counted as an opportunity.
    pub last_counted: SortedMap<WorkerId, Time>,
    /// Time of the last periodic round.
    pub last_round: Time,
    /// Whether a preempted task declined the current offer.
    pub declined: bool,
    /// When declined slots are offered again.
    pub offer_at: Option<Time>,
}

impl Fcs {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn new(configuration: FcsConfiguration) -> Result<Fcs, FcsError> {
        configuration.check()?;
        Ok(Fcs {
            bounds: configuration.bounds(),
            configuration,
            state: FcsState::default(),
        })
    }

    fn on_report(
        &mut self,
        now: Time,
        worker: WorkerId,
        id: AttemptId,
        report: &Report,
        view: &ClusterView<'_>,
    ) {
        let job = view.job(id.task.job);
        let index = id.task.index;
        let Some(member) = self.state.jobs.members.get_mut(&id.task.job) else {
            return;
        };
        match report {
            Report::Progressed { .. } => {
                let Some(millionths) = view
                    .attempt(id)
                    .and_then(|attempt| attempt.progress_millionths())
                else {
                    return;
                };
                member.set_progress(index, millionths);
            }
            Report::Checkpointed => member.preempted.wait(index, worker),
            Report::Done { .. } => member.clear_progress(index),
            Report::Failed { .. } | Report::Killed => {
                member.clear_progress(index);
                if let Some((_, place, _)) = job.and_then(|job| {
                    job.checkpointed(TaskKind::Reduce)
                        .find(|(task, ..)| *task == id.task)
                }) {
                    member.preempted.wait(index, place);
                }
            }
            _ => return,
        }
        self.state.jobs.refresh(now, id.task.job, job);
    }

    /// Refreshes the estimates of a few jobs without events: they grow with time.
    fn refresh(&mut self, now: Time, view: &ClusterView<'_>) {
        for _ in 0..REFRESHED_PER_EVENT {
            let Some(job) = self.state.jobs.stalest(now - self.configuration.period()) else {
                return;
            };
            self.state.jobs.refresh(now, job, view.job(job));
        }
    }
}

impl Scheduler for Fcs {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        match event {
            Event::Reported {
                worker,
                attempt,
                report,
            } if attempt.task.kind == TaskKind::Reduce => {
                self.on_report(now, *worker, *attempt, report, view);
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
            Some(_) => actions
                .decline_kind("fcs assigns reduce slots only; compose it with a policy for maps"),
            None => {
                self.refresh(now, view);
                self.preempt_for_claimants(now, view, actions);
            }
        }
    }

    fn order(&self, kind: TaskKind, view: &ClusterView<'_>) -> Vec<JobId> {
        match kind {
            TaskKind::Map => view.wanting(kind).map(Job::id).collect(),
            TaskKind::Reduce => self.state.jobs.waiting.iter().map(|rank| rank.2).collect(),
        }
    }

    fn save(&self) -> Option<String> {
        Some(serde_json::to_string(&self.state).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("fcs: the snapshot has no saved state")?;
        self.state = serde_json::from_str(saved)
            .map_err(|error| format!("fcs: invalid saved state: {error}"))?;
        self.state.jobs.rebuild_index();
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let waits = !self.state.jobs.waiting.is_empty() && !self.state.jobs.running.is_empty();
        let round = waits.then(|| (self.state.last_round + self.configuration.period()).max(now));
        let offer = self.state.offer_at.filter(|at| *at > now);
        [round, offer].into_iter().flatten().min()
    }
}

impl PolicyTable for FcsConfiguration {
    fn build(&self, all: &PolicyTables<'_>) -> Built {
        let maps = all.build_part(&self.maps, TaskKind::Map)?;
        Ok(Box::new(Composed::new(
            maps,
            self.build_part(TaskKind::Reduce, all)?,
            None,
        )))
    }

    fn build_part(&self, kind: TaskKind, _all: &PolicyTables<'_>) -> Built {
        match kind {
            TaskKind::Map => Err(SchedulerError::ReducesOnly.into()),
            TaskKind::Reduce => Ok(Box::new(Fcs::new(self.clone())?)),
        }
    }

    fn primitives(
        &self,
        kind: TaskKind,
        job: &str,
        all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        match kind {
            TaskKind::Map => all.primitives_of_part(&self.maps, kind, job),
            TaskKind::Reduce => self.primitives_as_part(kind, job, all),
        }
    }

    fn honored_attributes(&self, all: &PolicyTables<'_>) -> JobAttributes {
        all.attributes_of_part(&self.maps)
    }

    fn primitives_as_part(
        &self,
        kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        Vec::from_iter(
            (kind == TaskKind::Reduce).then_some(("[scheduler.fcs] primitive", self.primitive)),
        )
    }

    fn uses_output_bytes(&self, _all: &PolicyTables<'_>) -> bool {
        true
    }
}
