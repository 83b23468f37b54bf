//! The capacity policy, and its preemption monitor as a separate scheduler for use over other policies.

use napreduce_engine::{
    Actions, ClusterView, Event, Job, JobChange, JobId, JobSpec, Offer, PolicyRefusal, QueueShare,
    Scheduler, TaskKind, Time,
};
use serde::{Deserialize, Serialize};

use super::assignment::{Assignment, Declined};
use super::configuration::{ApplicationOrder, CapacityConfiguration, Mode, QueueConfiguration};
use super::error::CapacityError;
use super::queues::Queues;
use super::usage::{SavedTurns, Usage};
use super::watch::{SavedWatch, Watch};
use crate::serving::Delay;
use crate::tables::{Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables};

/// Schedules by queue: guaranteed shares between queues, and the queue's order within it.
pub struct Capacity {
    usage: Usage,
    delay: Delay,
    watch: Option<Watch>,
}

/// Restores the guarantees of queues under any other policy.
pub struct CapacityMonitor {
    usage: Usage,
    watch: Watch,
}

/// The saved state.
#[derive(Serialize, Deserialize)]
struct Saved {
    delay: Delay,
    watch: Option<SavedWatch>,
    #[serde(default)]
    running: Vec<JobId>,
    turns: SavedTurns,
}

impl Capacity {
    /// Creates the policy.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn new(configuration: &CapacityConfiguration) -> Result<Capacity, CapacityError> {
        configuration.monitor.check()?;
        let usage = Usage::with_limits(
            Queues::new(configuration)?,
            configuration.user_max_running_jobs,
        );
        let is_watched = configuration.mode == Mode::Preemptive;
        let watch = is_watched.then(|| Watch::new(configuration.monitor.clone()));
        Ok(Capacity {
            usage,
            delay: Delay::new(configuration.delay),
            watch,
        })
    }

    /// As [`Capacity::new`], while another policy assigns slots to the other kind of task.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn of_one_kind(configuration: &CapacityConfiguration) -> Result<Capacity, CapacityError> {
        let whole = Capacity::new(configuration)?;
        Ok(Capacity {
            usage: whole.usage.of_one_kind(),
            ..whole
        })
    }

    /// Assigns an offered slot, or declines it with a reason.
    fn assign(&mut self, now: Time, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        let usage = &self.usage;
        let delay = &mut self.delay;
        let assignment = Assignment {
            usage,
            kind: offer.kind,
            slots: view.slots(offer.kind),
            whole_slots_first: self.watch.is_some(),
        };
        let chooses_kind = actions.chooses_kind(view);
        let mut accepts = |job: JobId| {
            view.job(job)
                .is_some_and(|job| delay.serve(now, job, offer, actions))
        };
        if let Some(job) = offer.reserved_for {
            let may = usage
                .leaf_of(job)
                .is_some_and(|leaf| assignment.is_within_maxima(leaf));
            if !may {
                actions.decline(format!(
                    "the slot is reserved for {job}, but its queue is at its maximum"
                ));
            } else if !accepts(job) {
                actions.decline(format!(
                    "the slot is reserved for {job}, which waits for a slot of another worker"
                ));
            }
            return;
        }
        if chooses_kind && assignment.other_kind_first() {
            return actions.decline("a task of the other kind goes first");
        }
        match assignment.assign(&mut accepts) {
            Ok(()) => {}
            Err(Declined::WorkerUnsuitable) => {
                actions.decline("every job within its limits waits for a slot of another worker");
            }
            Err(Declined::AtLimits) => {
                actions.decline_kind("every queue or user with demand is at its maximum");
            }
        }
    }
}

impl CapacityMonitor {
    /// Builds the monitor. The mode of the configuration does not apply; the policy below limits queues.
    ///
    /// # Errors
    /// Fails if a value is invalid.
    pub fn new(configuration: &CapacityConfiguration) -> Result<CapacityMonitor, CapacityError> {
        configuration.monitor.check()?;
        let usage = Usage::new(Queues::new(configuration)?);
        Ok(CapacityMonitor {
            usage,
            watch: Watch::new(configuration.monitor.clone()),
        })
    }
}

impl Scheduler for Capacity {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn maxima(&self, spec: &JobSpec, slots: u32) -> Vec<(String, u64)> {
        self.usage.queues.maxima(&spec.queue, slots)
    }

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        self.usage.update(job, view);
        if view.job(job).is_none() {
            self.delay.forget(job);
        }
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        match (actions.offer(), &mut self.watch) {
            (Some(offer), _) => self.assign(now, view, offer, actions),
            (None, Some(watch)) => {
                watch.run(now, &self.usage, Some(&mut self.delay), view, actions)
            }
            (None, None) => {}
        }
    }

    fn order(&self, kind: TaskKind, view: &ClusterView<'_>) -> Vec<JobId> {
        let slots = view.slots(kind);
        let whole_slots_first = self.watch.is_some();
        Assignment {
            usage: &self.usage,
            kind,
            slots,
            whole_slots_first,
        }
        .order()
    }

    fn is_before(&self, _kind: TaskKind, one: &Job, other: &Job) -> bool {
        let leaf = self.usage.leaf_of(one.id());
        let is_fifo = |leaf| self.usage.queues.queue(leaf).order == ApplicationOrder::Fifo;
        let shares_queue = leaf.is_some_and(is_fifo) && leaf == self.usage.leaf_of(other.id());
        shares_queue && one.default_order() < other.default_order()
    }

    fn why_limited(&self, job: JobId) -> Option<String> {
        self.usage
            .why_not_running(job)
            .map(|why| format!("it waits: {why}"))
    }

    fn remarks(&self, _now: Time, job: &Job, _view: &ClusterView<'_>) -> Vec<String> {
        self.why_limited(job.id()).into_iter().collect()
    }

    fn can_change(&self, _change: &JobChange) -> Result<(), PolicyRefusal> {
        Ok(())
    }

    fn queues(&self, view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        Some(self.usage.listed(view))
    }

    fn save(&self) -> Option<String> {
        let watch = self.watch.as_ref().map(Watch::save);
        let running = self.usage.running();
        let turns = self.usage.saved_turns();
        let saved = Saved {
            delay: self.delay.clone(),
            watch,
            running,
            turns,
        };
        Some(serde_json::to_string(&saved).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("capacity: the snapshot has no saved state")?;
        let saved: Saved = serde_json::from_str(saved)
            .map_err(|error| format!("capacity: invalid saved state: {error}"))?;
        self.delay = saved.delay;
        self.usage.restore_running(saved.running);
        self.usage.restore_turns(saved.turns);
        if let (Some(watch), Some(saved)) = (&mut self.watch, saved.watch) {
            watch.restore(saved);
        }
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let watch = self.watch.as_ref().and_then(|watch| watch.next_wakeup(now));
        [watch, self.delay.next_wakeup(now)]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Scheduler for CapacityMonitor {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        self.usage.update(job, view);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if actions.offer().is_none() {
            self.watch.run(now, &self.usage, None, view, actions);
        }
    }

    fn save(&self) -> Option<String> {
        let saved = (self.watch.save(), self.usage.saved_turns());
        Some(serde_json::to_string(&saved).expect("plain data serializes"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("capacity monitor: the snapshot has no saved state")?;
        let (watch, turns) = serde_json::from_str(saved)
            .map_err(|error| format!("capacity monitor: invalid saved state: {error}"))?;
        self.watch.restore(watch);
        self.usage.restore_turns(turns);
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.watch.next_wakeup(now)
    }
}

impl PolicyTable for CapacityConfiguration {
    fn uses_progress(&self, _all: &PolicyTables<'_>) -> bool {
        false
    }

    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Capacity::new(self)?))
    }

    fn build_part(&self, _kind: TaskKind, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Capacity::of_one_kind(self)?))
    }

    fn monitor(&self) -> Option<Box<dyn PolicyTable + '_>> {
        Some(Box::new(Monitor(self)))
    }

    fn primitives(
        &self,
        kind: TaskKind,
        job: &str,
        all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        match self.mode {
            Mode::Preemptive => Monitor(self).primitives(kind, job, all),
            Mode::HardCap | Mode::SoftCap => Vec::new(),
        }
    }

    fn honored_attributes(&self, _all: &PolicyTables<'_>) -> JobAttributes {
        let is_fifo = |queue: &QueueConfiguration| queue.app_order == ApplicationOrder::Fifo;
        let preempts = self.mode == Mode::Preemptive && self.monitor.intra_queue;
        let priority = preempts || self.queue.is_empty() || self.queue.iter().any(is_fifo);
        JobAttributes {
            priority,
            queue: true,
            deadline: false,
        }
    }

    fn queues(&self) -> Option<Vec<&str>> {
        let has_parts = |name: &str| self.queue.iter().any(|queue| queue.parent == name);
        Some(
            self.queue
                .iter()
                .map(|queue| queue.name.as_str())
                .filter(|name| !has_parts(name))
                .collect(),
        )
    }
}

/// The monitor alone, for use over other policies.
struct Monitor<'a>(&'a CapacityConfiguration);

impl PolicyTable for Monitor<'_> {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(CapacityMonitor::new(self.0)?))
    }

    fn primitives(
        &self,
        _kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        let monitor = &self.0.monitor;
        let primitive = ("[scheduler.capacity.monitor] primitive", monitor.primitive);
        Vec::from_iter((!monitor.observe_only).then_some(primitive))
    }
}
