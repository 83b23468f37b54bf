//! The jobs that have tasks of one kind: how large they are, in which order they go, and what each of them
//! wants.
//!
//! Owns what is remembered of them, and the indices by which the next one is found. Does not own the
//! decisions, which are in `assignment` and `preemption`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{Job, JobId, Ratio, Span, TaskKind, Time, WorkerId, fields};

use crate::hfsp::configuration::HfspConfiguration;
use crate::hfsp::ranking::{Rank, Ranking};
use crate::hfsp::size::{self, Size};
use crate::hfsp::training::{Recent, Training};
use crate::hfsp::victims::Hysteresis;
use crate::hfsp::virtual_job::ENDLESS;

/// A job with tasks of this kind that are not all done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Member {
    pub submitted: Time,
    pub training: Training,
    /// It is the master of a job: no sample, and no victim.
    #[serde(default)]
    pub is_master: bool,
    /// Its size comes from a sample, or was known.
    pub trained: bool,
    /// What a task takes, as far as is known.
    pub task_time: Span,
    done: u32,
    worked: Span,
    /// What it holds and wants as of its last change.
    pub wish: JobDemand,
}

/// What a job holds and wants, and so where it is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobDemand {
    pub eligible: u32,
    pub suspended: u32,
    pub holding: u32,
    pub requested: u32,
    pub promised: u32,
    pub tasks_left: u32,
    /// How many tasks of its sample have not started.
    pub untried: u32,
    /// Its place, once it has one.
    pub turn: Option<Rank>,
    /// What is left of it at most: of tasks that run, all.
    pub size: Span,
}

fields! {
    /// The jobs with tasks of one kind.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(super) struct Lane {
        pub kind: TaskKind = kind,
        pub ranking: Ranking = Ranking::new(configuration.order, 0),
        pub members: BTreeMap<JobId, Member>,
        recent: Recent,
        /// How workers with many suspended tasks are treated, and all together.
        pub hysteresis: BTreeMap<WorkerId, Hysteresis>,
        pub cluster_hysteresis: Hysteresis,
        /// Jobs that came, were measured or want more than when slots were last taken for them.
        pub asking: BTreeSet<JobId>,
        /// When slots were last taken for everybody.
        pub last_round: Time,
        /// Jobs with tasks to launch that the order may give slots to.
        #[serde(skip)]
        pub launchable: BTreeSet<Rank>,
        /// Those, and jobs that have something suspended.
        #[serde(skip)]
        pub waiting: BTreeSet<Rank>,
        /// Jobs whose sample is not started in full: those with fewer tasks left first.
        #[serde(skip)]
        pub untried: BTreeSet<(u32, Time, JobId)>,
        /// Measured jobs that could give a slot, by their turn and by their size.
        #[serde(skip)]
        pub holders: BTreeSet<Rank>,
        #[serde(skip)]
        pub by_size: BTreeSet<(Span, Time, JobId)>,
        /// How many slots jobs in training hold for their samples.
        #[serde(skip)]
        pub training_slots: u32,
        /// How many slots are promised to jobs, and how many attempts are suspended.
        #[serde(skip)]
        pub promised: u32,
        #[serde(skip)]
        pub suspended: u32,
    }

    pub fn new(kind: TaskKind, configuration: &HfspConfiguration);
}

impl Lane {
    /// Takes note of what a job holds and wants now.
    pub fn job_changed(
        &mut self,
        now: Time,
        id: JobId,
        job: Option<&Job>,
        configuration: &HfspConfiguration,
    ) {
        let Some(job) = job else {
            self.list(id, false);
            return self.job_over(now, id);
        };
        let kind = self.kind;
        let left = job.tasks_total(kind) - job.tasks_done(kind);
        if left > 0 && self.is_as_before(id, job, configuration) {
            return self.count_done(id, job, configuration);
        }
        self.list(id, false);
        if left == 0 || (!self.members.contains_key(&id) && job.demand(kind) == 0) {
            self.count_done(id, job, configuration);
            self.members.remove(&id);
            return self.ranking.done(id);
        }
        if !self.members.contains_key(&id) {
            self.enter(now, job, configuration);
        }
        self.count_done(id, job, configuration);
        self.finish_training(now, id, configuration);
        self.take_wish(id, job, configuration);
        self.list(id, true);
    }

    /// A job ended: as it should if all that was left of it was at work.
    fn job_over(&mut self, now: Time, id: JobId) {
        match self.members.remove(&id) {
            Some(member) if member.wish.tasks_left > member.wish.holding => self.ranking.give_up(now, id),
            _ => self.ranking.done(id),
        }
    }

    fn enter(&mut self, now: Time, job: &Job, configuration: &HfspConfiguration) {
        let (id, kind, submitted) = (job.id(), self.kind, job.submitted());
        let left = job.tasks_total(kind) - job.tasks_done(kind);
        let factor = configuration.size_error.factor(configuration.seed, id, kind);
        let scaled = |time: Span| Span(factor.of_rounded(time.0));
        let known = configuration.known_times(&job.spec().name, kind);
        let (training, groups) = match known {
            None => {
                let target = configuration.sample(kind).min(job.tasks_total(kind));
                (Training::of(target), vec![(self.initial_task_time(configuration), left)])
            }
            Some([time]) => (Training::default(), vec![(scaled(time.0), left)]),
            Some(times) => {
                let rest = times.iter().cycle().skip(job.tasks_done(kind) as usize).take(left as usize);
                let groups = rest.map(|time| (scaled(time.0), 1)).collect();
                (Training::default(), groups)
            }
        };
        let weight = configuration.weights.get(&job.spec().queue).copied().unwrap_or(1);
        self.ranking.enter(now, id, submitted, weight, &groups);
        let member = Member {
            submitted,
            is_master: job.is_master(),
            trained: known.is_some(),
            training,
            task_time: mean(&groups),
            done: job.tasks_done(kind),
            worked: job.worked(kind).1,
            wish: JobDemand::default(),
        };
        self.members.insert(id, member);
    }

    /// What a task of a job takes of which nothing is known.
    fn initial_task_time(&self, configuration: &HfspConfiguration) -> Span {
        let assumed = Ratio::whole(configuration.assumed_task_time.0);
        match size::initial(1, self.recent.mean(), assumed, configuration.confidence) {
            Size::Finite(time) => Span(time.of_rounded(1)),
            Size::Infinite => ENDLESS,
        }
    }

    fn count_done(&mut self, id: JobId, job: &Job, configuration: &HfspConfiguration) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let (done, worked) = job.worked(self.kind);
        if done > member.done {
            let span = Span(worked.0.saturating_sub(member.worked.0));
            self.recent.add(done - member.done, span, configuration.recent_tasks);
        }
        (member.done, member.worked) = (done, worked);
    }

    /// Gives a job its measured size, if its sample is complete now.
    pub fn finish_training(&mut self, now: Time, id: JobId, configuration: &HfspConfiguration) {
        let Some(member) = self.members.get_mut(&id).filter(|member| !member.trained) else { return };
        let Some(mean) = member.training.complete(member.done, member.worked) else { return };
        let factor = configuration.size_error.factor(configuration.seed, id, self.kind);
        member.task_time = Span((mean * factor).of_rounded(1).max(1));
        member.trained = true;
        member.training = Training::default();
        self.ranking.resize(now, id, member.task_time);
        self.asking.insert(id);
    }

    /// Whether a measured job holds and wants what it did: most changes are about tasks of the other kind.
    fn is_as_before(&self, id: JobId, job: &Job, configuration: &HfspConfiguration) -> bool {
        let Some(member) = self.members.get(&id).filter(|member| member.trained) else { return false };
        member.wish == self.wish_of(member, job, configuration)
    }

    fn wish_of(&self, member: &Member, job: &Job, configuration: &HfspConfiguration) -> JobDemand {
        let (kind, eligible, holding) = (self.kind, job.eligible_count(self.kind), job.holding(self.kind));
        let (done, suspended) = (job.tasks_done(kind), job.suspended(kind));
        let tasks_left = job.tasks_total(kind) - done;
        JobDemand {
            eligible,
            suspended: job.demand_beside(kind, eligible) - holding - eligible,
            holding,
            requested: job.requested(kind),
            promised: job.promised(kind),
            tasks_left,
            untried: member.training.target.saturating_sub(holding + suspended + done),
            turn: self.turn_of(job.id(), holding, configuration),
            size: Span(member.task_time.0.saturating_mul(u64::from(tasks_left))),
        }
    }

    fn take_wish(&mut self, id: JobId, job: &Job, configuration: &HfspConfiguration) {
        let Some(member) = self.members.get(&id) else { return };
        let (wanted, wish) =
            (member.wish.eligible + member.wish.suspended, self.wish_of(member, job, configuration));
        if wish.eligible + wish.suspended > wanted {
            self.asking.insert(id);
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.wish = wish;
        }
    }
}

impl Member {
    /// Whether it gets slots for its sample only until that is measured.
    pub fn is_endless(&self) -> bool {
        self.task_time == ENDLESS
    }
}

/// The mean of the times of tasks in groups.
fn mean(groups: &[(Span, u32)]) -> Span {
    let total: u128 = groups.iter().map(|(time, count)| u128::from(time.0) * u128::from(*count)).sum();
    let tasks: u128 = groups.iter().map(|(_, count)| u128::from(*count)).sum();
    Span(u64::try_from(total.checked_div(tasks).unwrap_or_default()).unwrap_or(u64::MAX))
}
