//! The jobs with unfinished tasks of one kind: sizes, demand, and the indices that find the next job to
//! serve.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use napreduce_engine::{Job, JobId, Ratio, SortedMap, SortedSet, Span, TaskKind, Time, WorkerId};

use crate::hfsp::configuration::HfspConfiguration;
use crate::hfsp::hysteresis::Hysteresis;
use crate::hfsp::ranking::{Rank, Ranking};
use crate::hfsp::size::{self, Size};
use crate::hfsp::training::{Recent, Training};
use crate::hfsp::virtual_job::ENDLESS;

/// A job with unfinished tasks of this kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Member {
    pub submitted: Time,
    pub training: Training,
    /// Whether it is the master of a job, which is neither sampled nor preempted.
    #[serde(default)]
    pub is_master: bool,
    /// Whether its size is measured or known.
    pub trained: bool,
    /// Estimated task time.
    pub task_time: Span,
    done: u32,
    worked: Span,
    /// Demand at the last change.
    #[serde(rename = "wish")]
    pub demand: JobDemand,
}

/// The demand of a job, which determines its index entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobDemand {
    pub eligible: u32,
    pub suspended: u32,
    pub holding: u32,
    pub requested: u32,
    pub promised: u32,
    pub tasks_left: u32,
    /// Sample tasks that have not started.
    pub untried: u32,
    /// Its effective rank, once it has one.
    pub turn: Option<Rank>,
    /// Upper bound on its remaining work: running tasks count in full.
    pub size: Span,
}

/// The jobs with tasks of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Lane {
    pub kind: TaskKind,
    pub ranking: Ranking,
    /// A tree, because it is searched at every event and its values are wide.
    pub members: BTreeMap<JobId, Member>,
    recent: Recent,
    /// Suspension limits per worker and for the cluster.
    pub hysteresis: SortedMap<WorkerId, Hysteresis>,
    pub cluster_hysteresis: Hysteresis,
    /// Jobs that arrived, were measured or increased their demand since the last preemption.
    pub asking: SortedSet<JobId>,
    /// Time of the last periodic preemption round.
    pub last_round: Time,
    /// Jobs with launchable tasks and a finite size.
    #[serde(skip)]
    pub launchable: SortedSet<Rank>,
    /// Jobs with launchable or suspended tasks.
    #[serde(skip)]
    pub waiting: SortedSet<Rank>,
    /// Jobs with an incomplete sample; fewest tasks left first.
    #[serde(skip)]
    pub untried: SortedSet<(u32, Time, JobId)>,
    /// Measured jobs with preemptable slots, by rank and by size.
    #[serde(skip)]
    pub holders: SortedSet<Rank>,
    #[serde(skip)]
    pub by_size: SortedSet<(Span, Time, JobId)>,
    /// Slots held by samples.
    #[serde(skip)]
    pub training_slots: u32,
    /// Total promised slots and suspended attempts.
    #[serde(skip)]
    pub promised: u32,
    #[serde(skip)]
    pub suspended: u32,
}

impl Lane {
    pub fn new(kind: TaskKind, configuration: &HfspConfiguration) -> Lane {
        Lane {
            kind,
            ranking: Ranking::new(configuration.order, 0),
            members: BTreeMap::new(),
            recent: Recent::default(),
            hysteresis: SortedMap::new(),
            cluster_hysteresis: Hysteresis::default(),
            asking: SortedSet::new(),
            last_round: Time::default(),
            launchable: SortedSet::new(),
            waiting: SortedSet::new(),
            untried: SortedSet::new(),
            holders: SortedSet::new(),
            by_size: SortedSet::new(),
            training_slots: 0,
            promised: 0,
            suspended: 0,
        }
    }
}

impl Lane {
    /// Records the current demand of a job.
    pub fn job_changed(
        &mut self,
        now: Time,
        id: JobId,
        job: Option<&Job>,
        configuration: &HfspConfiguration,
    ) {
        let Some(job) = job else {
            self.update_index(id, false);
            return self.job_ended(now, id);
        };
        let kind = self.kind;
        let left = job.tasks_total(kind) - job.tasks_done(kind);
        if left > 0 && self.is_unchanged(id, job, configuration) {
            return self.record_completed(id, job, configuration);
        }
        self.update_index(id, false);
        if left == 0 || (!self.members.contains_key(&id) && job.demand(kind) == 0) {
            self.record_completed(id, job, configuration);
            self.members.remove(&id);
            return self.ranking.done(id);
        }
        if !self.members.contains_key(&id) {
            self.add(now, job, configuration);
        }
        self.record_completed(id, job, configuration);
        self.finish_training(now, id, configuration);
        self.update_demand(id, job, configuration);
        self.update_index(id, true);
    }

    /// Removes a job. It completed if all remaining tasks were running; otherwise it was given up.
    fn job_ended(&mut self, now: Time, id: JobId) {
        match self.members.remove(&id) {
            Some(member) if member.demand.tasks_left > member.demand.holding => {
                self.ranking.give_up(now, id)
            }
            _ => self.ranking.done(id),
        }
    }

    fn add(&mut self, now: Time, job: &Job, configuration: &HfspConfiguration) {
        let id = job.id();
        let kind = self.kind;
        let submitted = job.submitted();
        let left = job.tasks_total(kind) - job.tasks_done(kind);
        let factor = configuration
            .size_error
            .factor(configuration.seed, id, kind);
        let scaled = |time: Span| Span(factor.of_rounded(time.0));
        let known = configuration.known_times(&job.spec().name, kind);
        let (training, groups) = match known {
            None => {
                let target = configuration.sample(kind).min(job.tasks_total(kind));
                (
                    Training::new(target),
                    vec![(self.initial_task_time(configuration), left)],
                )
            }
            Some([time]) => (Training::default(), vec![(scaled(time.0), left)]),
            Some(times) => {
                let rest = times
                    .iter()
                    .cycle()
                    .skip(job.tasks_done(kind) as usize)
                    .take(left as usize);
                let groups = rest.map(|time| (scaled(time.0), 1)).collect();
                (Training::default(), groups)
            }
        };
        let weight = configuration
            .weights
            .get(&job.spec().queue)
            .copied()
            .unwrap_or(1);
        self.ranking.enter(now, id, submitted, weight, &groups);
        let member = Member {
            submitted,
            is_master: job.is_master(),
            trained: known.is_some(),
            training,
            task_time: mean(&groups),
            done: job.tasks_done(kind),
            worked: job.worked(kind).1,
            demand: JobDemand::default(),
        };
        self.members.insert(id, member);
    }

    /// Returns the task time of a job without measurements.
    fn initial_task_time(&self, configuration: &HfspConfiguration) -> Span {
        let assumed = Ratio::whole(configuration.assumed_task_time.0);
        match size::initial(1, self.recent.mean(), assumed, configuration.confidence) {
            Size::Finite(time) => Span(time.of_rounded(1)),
            Size::Infinite => ENDLESS,
        }
    }

    fn record_completed(&mut self, id: JobId, job: &Job, configuration: &HfspConfiguration) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let (done, worked) = job.worked(self.kind);
        if done > member.done {
            let span = Span(worked.0.saturating_sub(member.worked.0));
            self.recent
                .add(done - member.done, span, configuration.recent_tasks);
        }
        member.done = done;
        member.worked = worked;
    }

    /// Sets the measured size of a job whose sample is complete.
    pub fn finish_training(&mut self, now: Time, id: JobId, configuration: &HfspConfiguration) {
        let Some(member) = self.members.get_mut(&id).filter(|member| !member.trained) else {
            return;
        };
        let Some(mean) = member.training.complete(member.done, member.worked) else {
            return;
        };
        let factor = configuration
            .size_error
            .factor(configuration.seed, id, self.kind);
        member.task_time = Span((mean * factor).of_rounded(1).max(1));
        member.trained = true;
        member.training = Training::default();
        self.ranking.resize(now, id, member.task_time);
        self.asking.insert(id);
    }

    /// Whether a measured job has the same demand as before: most changes concern the other kind.
    fn is_unchanged(&self, id: JobId, job: &Job, configuration: &HfspConfiguration) -> bool {
        let Some(member) = self.members.get(&id).filter(|member| member.trained) else {
            return false;
        };
        member.demand == self.demand_of(member, job, configuration)
    }

    fn demand_of(
        &self,
        member: &Member,
        job: &Job,
        configuration: &HfspConfiguration,
    ) -> JobDemand {
        let kind = self.kind;
        let eligible = job.eligible_count(self.kind);
        let holding = job.holding(self.kind);
        let done = job.tasks_done(kind);
        let suspended = job.suspended(kind);
        let tasks_left = job.tasks_total(kind) - done;
        JobDemand {
            eligible,
            suspended: job.demand_with(kind, eligible) - holding - eligible,
            holding,
            requested: job.requested(kind),
            promised: job.promised(kind),
            tasks_left,
            untried: member
                .training
                .target
                .saturating_sub(holding + suspended + done),
            turn: self.effective_rank(job.id(), holding, configuration),
            size: Span(member.task_time.0.saturating_mul(u64::from(tasks_left))),
        }
    }

    fn update_demand(&mut self, id: JobId, job: &Job, configuration: &HfspConfiguration) {
        let Some(member) = self.members.get(&id) else {
            return;
        };
        let before = member.demand.eligible + member.demand.suspended;
        let demand = self.demand_of(member, job, configuration);
        if demand.eligible + demand.suspended > before {
            self.asking.insert(id);
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.demand = demand;
        }
    }
}

impl Member {
    /// Whether its size is unknown, so that it gets slots for its sample only.
    pub fn is_endless(&self) -> bool {
        self.task_time == ENDLESS
    }
}

/// Returns the mean task time over groups of tasks.
fn mean(groups: &[(Span, u32)]) -> Span {
    let total: u128 = groups
        .iter()
        .map(|(time, count)| u128::from(time.0) * u128::from(*count))
        .sum();
    let tasks: u128 = groups.iter().map(|(_, count)| u128::from(*count)).sum();
    Span(u64::try_from(total.checked_div(tasks).unwrap_or_default()).unwrap_or(u64::MAX))
}
