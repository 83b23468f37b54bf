//! The trigger scheduler: rules that preempt tasks when their conditions hold; everything else runs in FIFO
//! order. For experiments with preemption primitives. It is the dummy scheduler of OS-Assisted Task
//! Preemption for Hadoop, sections III-B and IV.

mod rules;
mod state;
mod text;

pub use rules::{Condition, Rule, RuleAction, Target};
pub use text::{RuleError, read_rules};

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Action, Actions, AttemptState, ClusterView, Event, Job, JobId, Offer, Preempt, Primitive,
    Scheduler, TaskId, TaskKind, Time,
};
use state::{Placement, TriggerState};

use crate::tables::{Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables};

/// `[scheduler.trigger]` of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct TriggerSettings {
    /// The rules, one per line.
    pub rules: String,
}

#[derive(Debug, Clone)]
pub struct Trigger {
    rules: Vec<Rule>,
    state: TriggerState,
}

impl Trigger {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails at the first syntax error.
    pub fn new(settings: &TriggerSettings) -> Result<Trigger, RuleError> {
        Ok(Trigger {
            rules: read_rules(&settings.rules)?,
            state: TriggerState::default(),
        })
    }

    /// Fires the rules whose conditions hold, in order.
    fn fire(&mut self, now: Time, view: &ClusterView<'_>) {
        for (number, rule) in self.rules.iter().enumerate() {
            let holds = rule
                .conditions
                .iter()
                .all(|condition| self.state.holds(condition, now, view));
            let held_before = self.state.held_rules.contains(&number);
            if holds {
                self.state.held_rules.insert(number);
            } else if rule.repeat {
                self.state.held_rules.remove(&number);
            }
            if holds && !held_before {
                for action in &rule.actions {
                    self.state.begin(action);
                }
            }
        }
    }

    /// Preempts the running attempts of a target. Returns true once nothing remains to preempt.
    fn preempt(
        &self,
        action: &RuleAction,
        target: &Target,
        view: &ClusterView<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(job) = self.state.job(&target.job, view) else {
            return self.state.is_over(&target.job);
        };
        let primitive = match action {
            RuleAction::Kill(_) => Primitive::Kill,
            RuleAction::Checkpoint(_) => Primitive::Checkpoint,
            _ => Primitive::Suspend,
        };
        let mut any = false;
        for id in job
            .attempts()
            .filter(|id| target.names(&target.job, id.task.kind, id.task.index))
        {
            let Some(attempt) = view.attempt(id) else {
                continue;
            };
            let possible = match attempt.state() {
                AttemptState::Running => true,
                AttemptState::Suspended => primitive != Primitive::Suspend,
                AttemptState::Killing => false,
                _ => primitive == Primitive::Kill,
            };
            any |= possible || view.request(id).is_some();
            if possible && view.request(id).is_none() {
                let reason = format!("rule: {action}");
                actions.preempt(Preempt {
                    attempt: id,
                    primitive,
                    grace: None,
                    reason,
                    beneficiary: None,
                });
            }
        }
        any
    }

    /// Tries the pending actions; those that are not possible yet remain pending.
    fn try_pending(&mut self, view: &ClusterView<'_>, actions: &mut Actions) {
        let pending = std::mem::take(&mut self.state.pending);
        for (action, mut warned) in pending {
            let done = match &action {
                RuleAction::Submit(name) => {
                    actions.submit(name.clone());
                    true
                }
                RuleAction::Suspend(target)
                | RuleAction::Kill(target)
                | RuleAction::Checkpoint(target) => self.preempt(&action, target, view, actions),
                RuleAction::Resume(target) => self.state.can_resume(target, view),
                RuleAction::Launch(..) | RuleAction::Hold(_) | RuleAction::Release(_) => true,
            };
            if !done {
                if !warned {
                    actions.push(Action::Warn {
                        message: format!("{action} is not possible yet; retrying"),
                    });
                    warned = true;
                }
                self.state.pending.push((action, warned));
            }
        }
    }

    /// Assigns the slot to the first job that may use it; targets of `launch` and `resume` rules come first.
    fn assign(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) -> bool {
        let called = self.state.called.clone();
        for Placement { target, worker } in called.iter() {
            if worker.is_some_and(|worker| worker != offer.worker) {
                continue;
            }
            let Some(job) = self.state.job(&target.job, view) else {
                continue;
            };
            if self.serve(job, offer, Some(target), actions) {
                return true;
            }
        }
        view.wanting(offer.kind)
            .any(|job| self.serve(job, offer, None, actions))
    }

    /// Launches or resumes a task of a job on the offered worker, unless it is held. With `only`, restricted
    /// to that target.
    fn serve(&self, job: &Job, offer: Offer, only: Option<&Target>, actions: &mut Actions) -> bool {
        let name = &job.spec().name;
        let free = |task: &TaskId| {
            only.is_none_or(|target| target.names(name, task.kind, task.index))
                && !self.state.is_held(name, *task)
                && self
                    .state
                    .worker_of(name, *task)
                    .is_none_or(|worker| worker == offer.worker)
        };
        let here = job
            .suspended_attempts(offer.kind)
            .filter(|(worker, _)| *worker == offer.worker);
        if let Some((_, attempt)) = here.into_iter().find(|(_, attempt)| free(&attempt.task)) {
            actions.resume(attempt);
            return true;
        }
        let near = job.next_local(offer.kind, offer.worker).filter(free);
        let near = near.or_else(|| job.next_on_rack(offer.kind, offer.worker).filter(free));
        let Some(task) = near.or_else(|| job.eligible_on(offer.kind, offer.worker).find(free))
        else {
            return false;
        };
        actions.launch(task, offer.worker, job.start_of(task));
        true
    }
}

impl Scheduler for Trigger {
    fn on_event(&mut self, now: Time, _event: &Event, view: &ClusterView<'_>) {
        self.fire(now, view);
    }

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        self.state.job_changed(job, view);
    }

    fn schedule(&mut self, _now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        match actions.offer() {
            Some(offer) => {
                if !self.assign(view, offer, actions) {
                    actions.decline("every waiting task is held or waits for another worker");
                }
            }
            None => self.try_pending(view, actions),
        }
    }

    fn is_before(&self, _kind: TaskKind, one: &Job, other: &Job) -> bool {
        one.default_order() < other.default_order()
    }

    fn save(&self) -> Option<String> {
        Some(serde_json::to_string(&self.state.to_saved()).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("trigger: the snapshot has no saved state")?;
        let saved = serde_json::from_str(saved)
            .map_err(|error| format!("trigger: invalid saved state: {error}"))?;
        self.state = TriggerState::from_saved(saved)?;
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let times = self
            .rules
            .iter()
            .flat_map(|rule| &rule.conditions)
            .filter_map(|one| match one {
                Condition::Time(at) => Some(*at),
                _ => None,
            });
        times.filter(|at| *at > now).min()
    }
}

impl PolicyTable for TriggerSettings {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Trigger::new(self)?))
    }

    /// Returns the primitives of the rules that target the job. Rules with errors are rejected when the policy
    /// is built.
    fn primitives(
        &self,
        kind: TaskKind,
        job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        let rules = read_rules(&self.rules).unwrap_or_default();
        let primitive = |action: &RuleAction| {
            let (target, primitive) = match action {
                RuleAction::Suspend(target) => (target, Primitive::Suspend),
                RuleAction::Kill(target) => (target, Primitive::Kill),
                RuleAction::Checkpoint(target) => (target, Primitive::Checkpoint),
                _ => return None,
            };
            let matches = target.job == job && target.task.is_none_or(|(of, _)| of == kind);
            matches.then_some(("[scheduler.trigger] rules", primitive))
        };
        rules
            .iter()
            .flat_map(|rule| &rule.actions)
            .filter_map(primitive)
            .collect()
    }

    fn honored_attributes(&self, _all: &PolicyTables<'_>) -> JobAttributes {
        JobAttributes {
            priority: true,
            ..JobAttributes::default()
        }
    }
}
