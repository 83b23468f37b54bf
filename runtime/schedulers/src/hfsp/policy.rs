//! HFSP as a scheduler: one lane each for maps and reduces, with separate virtual clusters.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, AttemptId, ByKind, ClusterView, Event, Job, JobChange, JobId, JobSpec, PolicyRefusal,
    Primitive, QueueShare, Ratio, Report, Scheduler, SortedMap, SortedSet, TaskKind, Time,
};

use crate::hfsp::assignment::Opportunity;
use crate::hfsp::configuration::{HfspConfiguration, HfspError};
use crate::hfsp::lane::Lane;
use crate::hfsp::preemption::Round;
use crate::hfsp::ranking::RankingOrder;
use crate::serving::Delay;
use crate::tables::{Built, ConfiguredPrimitive, PolicyTable, PolicyTables};

/// The Hadoop fair sojourn protocol: see `docs/schedulers/hfsp.md`.
#[derive(Debug)]
pub struct Hfsp {
    configuration: HfspConfiguration,
    state: HfspState,
    /// The kinds of the last scheduling call: as a part of another policy it must not schedule wakeups for
    /// the other kind.
    kinds: &'static [TaskKind],
}

/// The saved state.
#[derive(Debug, Serialize, Deserialize)]
struct HfspState {
    lanes: ByKind<Lane>,
    delay: Delay,
    /// When sampled reduces are measured next.
    due: SortedSet<(Time, AttemptId)>,
}

impl Hfsp {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn new(configuration: HfspConfiguration) -> Result<Hfsp, HfspError> {
        configuration.check()?;
        let lane = |kind| Lane::new(kind, &configuration);
        let lanes = ByKind {
            map: lane(TaskKind::Map),
            reduce: lane(TaskKind::Reduce),
        };
        let state = HfspState {
            lanes,
            delay: Delay::new(configuration.delay),
            due: SortedSet::new(),
        };
        Ok(Hfsp {
            configuration,
            state,
            kinds: &TaskKind::ALL,
        })
    }

    /// Returns the jobs with tasks of a kind, in ranking order.
    pub fn order(&self, kind: TaskKind) -> Vec<JobId> {
        self.state.lanes[kind].ranking.jobs()
    }

    /// Updates the measurement of a sampled reduce.
    fn measure(&mut self, now: Time, id: AttemptId, view: &ClusterView<'_>) {
        let lane = &mut self.state.lanes[id.task.kind];
        let configuration = &self.configuration;
        let Some(attempt) = view.attempt(id) else {
            return;
        };
        let Some(member) = lane
            .members
            .get_mut(&id.task.job)
            .filter(|member| !member.trained)
        else {
            return;
        };
        let (known, look_at) = member
            .training
            .progressed(now, attempt, configuration.delta);
        self.state.due.extend(look_at.map(|time| (time, id)));
        if known {
            lane.job_changed(now, id.task.job, view.job(id.task.job), configuration);
        }
    }

    fn measure_due(&mut self, now: Time, view: &ClusterView<'_>) {
        while let Some(&(due, id)) = self.state.due.first()
            && due <= now
        {
            self.state.due.pop_first();
            self.measure(now, id, view);
        }
    }
}

impl Scheduler for Hfsp {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        let Event::Reported {
            attempt, report, ..
        } = event
        else {
            return;
        };
        if attempt.task.kind != TaskKind::Reduce {
            return;
        }
        match report {
            Report::Progressed { .. } => self.measure(now, *attempt, view),
            Report::Started | Report::Done { .. } | Report::Failed { .. } | Report::Killed => {
                let members = &mut self.state.lanes.reduce.members;
                if let Some(member) = members.get_mut(&attempt.task.job) {
                    member.training.ended(attempt.task.index);
                }
            }
            _ => {}
        }
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        for kind in TaskKind::ALL {
            self.state.lanes[kind].job_changed(now, job, view.job(job), &self.configuration);
        }
        if view.job(job).is_none() {
            self.state.delay.forget(job);
        }
    }

    fn is_before(&self, kind: TaskKind, one: &Job, other: &Job) -> bool {
        let ranking = &self.state.lanes[kind].ranking;
        match (ranking.rank(one.id()), ranking.rank(other.id())) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }

    /// Before a job starts, only its number of tasks is known.
    fn order(&self, kind: TaskKind, _view: &ClusterView<'_>) -> Vec<JobId> {
        self.state.lanes[kind]
            .waiting
            .iter()
            .map(|rank| rank.job)
            .collect()
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        spec.maps.len() as i128 + i128::from(spec.reduces)
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        self.kinds = actions.kinds();
        let HfspState { lanes, delay, .. } = &mut self.state;
        let Some(offer) = actions.offer() else {
            self.measure_due(now, view);
            for kind in actions.kinds() {
                let lane = &mut self.state.lanes[*kind];
                lane.update(now, view, &self.configuration);
                lane.preempt_for_claimants(&mut Round::new(
                    now,
                    view,
                    kind,
                    &self.configuration,
                    actions,
                ));
            }
            return;
        };
        let lane = &mut lanes[offer.kind];
        lane.update(now, view, &self.configuration);
        lane.assign(&mut Opportunity {
            now,
            view,
            offer,
            configuration: &self.configuration,
            delay,
            actions,
        });
    }

    fn can_change(&self, _change: &JobChange) -> Result<(), PolicyRefusal> {
        Err(PolicyRefusal::OrderedBySize)
    }

    fn queues(&self, view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        let weights = &self.configuration.weights;
        let of = |queue: &str| Ratio::whole(u64::from(weights.get(queue).copied().unwrap_or(1)));
        let share = |name: &str| QueueShare {
            name: name.to_owned(),
            weight: Some(of(name)),
            ..QueueShare::default()
        };
        let mut queues: SortedMap<&str, QueueShare> = weights
            .keys()
            .map(|name| (name.as_str(), share(name)))
            .collect();
        for job in view.jobs() {
            let queue = job.spec().queue.as_str();
            queues
                .get_or_insert_with(queue, || share(queue))
                .jobs
                .push(job.id());
        }
        if weights.is_empty() {
            return None;
        }
        Some(queues.into_iter().map(|(_, share)| share).collect())
    }

    fn save(&self) -> Option<String> {
        Some(serde_json::to_string(&self.state).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("hfsp: the snapshot has no saved state")?;
        self.state = serde_json::from_str(saved)
            .map_err(|error| format!("hfsp: invalid saved state: {error}"))?;
        for kind in TaskKind::ALL {
            self.state.lanes[kind].rebuild_index();
        }
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let due = self.state.due.first().map(|(time, _)| *time);
        let lanes = || self.kinds.iter().map(|kind| &self.state.lanes[*kind]);
        let rounds = lanes().filter_map(|lane| lane.last_round_of_waiting());
        let round = rounds
            .map(|last| last + self.configuration.update_interval)
            .min();
        let round = round.filter(|_| self.configuration.primitive != Primitive::Wait);
        let waits = lanes().any(|lane| !lane.waiting.is_empty());
        let reorder = waits && self.configuration.order == RankingOrder::RemainingSize;
        let reorder = reorder.then(|| now + self.configuration.update_interval);
        [due, round, reorder, self.state.delay.next_wakeup(now)]
            .into_iter()
            .flatten()
            .min()
    }
}

impl PolicyTable for HfspConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Hfsp::new(self.clone())?))
    }

    fn primitives(
        &self,
        _kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        vec![("[scheduler.hfsp] primitive", self.primitive)]
    }

    fn queues(&self) -> Option<Vec<&str>> {
        Some(self.weights.keys().map(String::as_str).collect())
    }
}
