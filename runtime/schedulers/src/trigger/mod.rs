//! The trigger scheduler: no policy of its own, but rules that say when to preempt what.
//!
//! Owns which rules have fired, what is held, and the actions that wait until they are possible. What no rule
//! touches runs first in, first out. For experiments with primitives (OS-Assisted Task Preemption for Hadoop,
//! sections III-B and IV, where it is called the dummy scheduler).

mod rules;
mod state;
mod table;
mod text;

pub use rules::{Condition, Deed, Rule, Target};
pub use text::{RuleError, read_rules};

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Action, Actions, AttemptState, ClusterView, Event, Job, JobId, Offer, Preempt, Primitive, Scheduler,
    TaskId, Time,
};
use state::{Placement, TriggerState};

/// `[trigger]` of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct TriggerSettings {
    /// The rules, one a line.
    pub rules: String,
}

#[derive(Debug, Clone)]
pub struct Trigger {
    rules: Vec<Rule>,
    state: TriggerState,
}

impl Trigger {
    /// With these rules.
    ///
    /// # Errors
    /// Names the first place that is no rule.
    pub fn new(settings: &TriggerSettings) -> Result<Trigger, RuleError> {
        Ok(Trigger { rules: read_rules(&settings.rules)?, state: TriggerState::default() })
    }

    /// Fires the rules whose conditions hold, in their order.
    fn fire(&mut self, now: Time, view: &ClusterView<'_>) {
        for (number, rule) in self.rules.iter().enumerate() {
            let holds = rule.conditions.iter().all(|condition| self.state.holds(condition, now, view));
            let held_before = self.state.held_rules.contains(&number);
            if holds {
                self.state.held_rules.insert(number);
            } else if rule.repeat {
                self.state.held_rules.remove(&number);
            }
            if holds && !held_before {
                rule.actions.iter().for_each(|deed| self.state.begin(deed));
            }
        }
    }

    /// Preempts the running attempts of a target; true when it is done or there is nothing left to do it to.
    fn preempt(&self, deed: &Deed, target: &Target, view: &ClusterView<'_>, actions: &mut Actions) -> bool {
        let Some(job) = self.state.job(&target.job, view) else { return self.state.is_over(&target.job) };
        let primitive = match deed {
            Deed::Kill(_) => Primitive::Kill,
            Deed::Checkpoint(_) => Primitive::Checkpoint,
            _ => Primitive::Suspend,
        };
        let mut any = false;
        for id in job.attempts().filter(|id| target.names(&target.job, id.task.kind, id.task.index)) {
            let Some(attempt) = view.attempt(id) else { continue };
            let possible = match attempt.state() {
                AttemptState::Running => true,
                AttemptState::Suspended => primitive != Primitive::Suspend,
                AttemptState::Killing => false,
                _ => primitive == Primitive::Kill,
            };
            any |= possible || view.request(id).is_some();
            if possible && view.request(id).is_none() {
                let reason = format!("rule: {deed}");
                actions.preempt(Preempt { attempt: id, primitive, grace: None, reason, beneficiary: None });
            }
        }
        any
    }

    /// Tries what is to be done; what is not possible yet stays.
    fn try_pending(&mut self, view: &ClusterView<'_>, actions: &mut Actions) {
        let pending = std::mem::take(&mut self.state.pending);
        for (deed, mut told) in pending {
            let done = match &deed {
                Deed::Submit(name) => {
                    actions.submit(name.clone());
                    true
                }
                Deed::Suspend(target) | Deed::Kill(target) | Deed::Checkpoint(target) => {
                    self.preempt(&deed, target, view, actions)
                }
                Deed::Resume(target) => self.state.can_resume(target, view),
                Deed::Launch(..) | Deed::Hold(_) | Deed::Release(_) => true,
            };
            if !done {
                if !told {
                    actions
                        .push(Action::Warn { message: format!("{deed} is not possible yet; tried again") });
                    told = true;
                }
                self.state.pending.push((deed, told));
            }
        }
    }

    /// Gives the slot to the first job that may use it; what was launched by a rule comes first.
    fn fill(&mut self, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) -> bool {
        let called = self.state.called.clone();
        for Placement { target, worker } in &called {
            if worker.is_some_and(|worker| worker != offer.worker) {
                continue;
            }
            let Some(job) = self.state.job(&target.job, view) else { continue };
            if self.serve(job, offer, Some(target), actions) {
                return true;
            }
        }
        view.wanting(offer.kind).any(|job| self.serve(job, offer, None, actions))
    }

    /// A task of a job that may run here, if there is one: of the target if one is given, and nothing that is
    /// held.
    fn serve(&self, job: &Job, offer: Offer, only: Option<&Target>, actions: &mut Actions) -> bool {
        let name = &job.spec().name;
        let free = |task: &TaskId| {
            only.is_none_or(|target| target.names(name, task.kind, task.index))
                && !self.state.is_held(name, *task)
                && self.state.worker_of(name, *task).is_none_or(|worker| worker == offer.worker)
        };
        let here = job.suspended_attempts(offer.kind).filter(|(worker, _)| *worker == offer.worker);
        if let Some((_, attempt)) = here.into_iter().find(|(_, attempt)| free(&attempt.task)) {
            actions.resume(attempt);
            return true;
        }
        let near = job.next_local(offer.kind, offer.worker).filter(free);
        let near = near.or_else(|| job.next_on_rack(offer.kind, offer.worker).filter(free));
        let Some(task) = near.or_else(|| job.eligible_on(offer.kind, offer.worker).find(free)) else {
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
                if !self.fill(view, offer, actions) {
                    actions.decline("every task that wants a slot is held, or wants another worker");
                }
            }
            None => self.try_pending(view, actions),
        }
    }

    fn save(&self) -> Option<String> {
        Some(serde_json::to_string(&self.state.to_saved()).expect("names and numbers are plain data"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what its rules did is not said")?;
        let saved = serde_json::from_str(saved).map_err(|error| format!("what its rules did: {error}"))?;
        self.state = TriggerState::from_saved(saved)?;
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let times = self.rules.iter().flat_map(|rule| &rule.conditions).filter_map(|one| match one {
            Condition::Time(at) => Some(*at),
            _ => None,
        });
        times.filter(|at| *at > now).min()
    }
}
