//! The capacity policy as the engine knows it, and its monitor alone, for use over another policy.
//!
//! Owns the two schedulers. Does not own any decision: the assignment gives slots, the watch takes them.

use napreduce_engine::{
    Actions, ClusterView, Event, Job, JobChange, JobId, JobSpec, Offer, QueueShare, Scheduler, Time,
};
use serde::{Deserialize, Serialize};

use super::assignment::{Assignment, Refused};
use super::books::{Books, SavedTurns};
use super::configuration::{CapacityConfiguration, Mode};
use super::error::CapacityError;
use super::queues::Queues;
use super::watch::{Remembered, Watch};
use crate::serving::Delay;

/// Slots by queue: each queue has its share guaranteed, and its jobs get slots in the order of the queue.
pub struct Capacity {
    books: Books,
    delay: Delay,
    watch: Option<Watch>,
}

/// Takes slots back for queues that have less than they are guaranteed, whichever policy gives them.
pub struct CapacityMonitor {
    books: Books,
    watch: Watch,
}

/// What the policy remembers.
#[derive(Serialize, Deserialize)]
struct Saved {
    delay: Delay,
    watch: Option<Remembered>,
    #[serde(default)]
    running: Vec<JobId>,
    turns: SavedTurns,
}

impl Capacity {
    /// The policy of a configuration.
    ///
    /// # Errors
    /// Names the first value that cannot be.
    pub fn new(configuration: &CapacityConfiguration) -> Result<Capacity, CapacityError> {
        configuration.monitor.check()?;
        let books = Books::with_limits(Queues::of(configuration)?, configuration.user_max_running_jobs);
        let is_watched = configuration.mode == Mode::Preemptive;
        let watch = is_watched.then(|| Watch::new(configuration.monitor.clone()));
        Ok(Capacity { books, delay: Delay::new(configuration.delay), watch })
    }

    /// The same, beside another policy that gives slots to tasks of the other kind.
    ///
    /// # Errors
    /// Names the first value that cannot be.
    pub fn of_one_kind(configuration: &CapacityConfiguration) -> Result<Capacity, CapacityError> {
        let whole = Capacity::new(configuration)?;
        Ok(Capacity { books: whole.books.of_one_kind(), ..whole })
    }

    /// Gives an offered slot, or says why nobody gets it.
    fn give(&mut self, now: Time, view: &ClusterView<'_>, offer: Offer, actions: &mut Actions) {
        let (books, delay) = (&self.books, &mut self.delay);
        let assignment = Assignment { books, kind: offer.kind, slots: view.slots(offer.kind) };
        let chooses_kind = actions.chooses_kind(view);
        let mut takes = |job: JobId| view.job(job).is_some_and(|job| delay.serve(now, job, offer, actions));
        if let Some(job) = offer.reserved_for {
            let may = books.leaf_of(job).is_some_and(|leaf| assignment.is_within_maxima(leaf));
            if !may {
                actions.decline(format!("{job} may have it, but its queue has its maximum"));
            } else if !takes(job) {
                actions.decline(format!("{job} may have it, but waits for a slot of another worker"));
            }
            return;
        }
        if chooses_kind && assignment.other_kind_first() {
            return actions.decline("somebody else goes first, with the other kind of task");
        }
        match assignment.give(&mut takes) {
            Ok(()) => {}
            Err(Refused::NotHere) => {
                actions.decline("every job that may have another slot waits for one of another worker");
            }
            Err(Refused::Nowhere) => {
                actions.decline_kind("every queue, or user, that wants another slot has its maximum");
            }
        }
    }
}

impl CapacityMonitor {
    /// The monitor of a configuration; how far queues may grow is the business of the policy under it.
    ///
    /// # Errors
    /// Names the first value that cannot be.
    pub fn new(configuration: &CapacityConfiguration) -> Result<CapacityMonitor, CapacityError> {
        configuration.monitor.check()?;
        let books = Books::new(Queues::of(configuration)?);
        Ok(CapacityMonitor { books, watch: Watch::new(configuration.monitor.clone()) })
    }
}

impl Scheduler for Capacity {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn maxima(&self, spec: &JobSpec, slots: u32) -> Vec<(String, u64)> {
        self.books.queues.maxima(&spec.queue, slots)
    }

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        self.books.update(job, view);
        if view.job(job).is_none() {
            self.delay.forget(job);
        }
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        match (actions.offer(), &mut self.watch) {
            (Some(offer), _) => self.give(now, view, offer, actions),
            (None, Some(watch)) => watch.run(now, &self.books, view, actions),
            (None, None) => {}
        }
    }

    fn why_limited(&self, job: JobId) -> Option<String> {
        self.books.why_not_running(job).map(|why| format!("it waits: {why}"))
    }

    fn remarks(&self, _now: Time, job: &Job, _view: &ClusterView<'_>) -> Vec<String> {
        self.why_limited(job.id()).into_iter().collect()
    }

    fn can_change(&self, _change: &JobChange) -> Result<(), String> {
        Ok(())
    }

    fn queues(&self, view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        Some(self.books.listed(view))
    }

    fn save(&self) -> Option<String> {
        let watch = self.watch.as_ref().map(Watch::remembered);
        let (running, turns) = (self.books.running(), self.books.saved_turns());
        let saved = Saved { delay: self.delay.clone(), watch, running, turns };
        Some(serde_json::to_string(&saved).expect("plain data becomes text"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what it remembers is not said")?;
        let saved: Saved = serde_json::from_str(saved).map_err(|error| error.to_string())?;
        self.delay = saved.delay;
        self.books.recall_running(saved.running);
        self.books.recall_turns(saved.turns);
        if let (Some(watch), Some(remembered)) = (&mut self.watch, saved.watch) {
            watch.recall(remembered);
        }
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let watch = self.watch.as_ref().and_then(|watch| watch.next_wakeup(now));
        [watch, self.delay.next_wakeup(now)].into_iter().flatten().min()
    }
}

impl Scheduler for CapacityMonitor {
    fn on_event(&mut self, _now: Time, _event: &Event, _view: &ClusterView<'_>) {}

    fn job_changed(&mut self, _now: Time, job: JobId, view: &ClusterView<'_>) {
        self.books.update(job, view);
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        if actions.offer().is_none() {
            self.watch.run(now, &self.books, view, actions);
        }
    }

    fn save(&self) -> Option<String> {
        let saved = (self.watch.remembered(), self.books.saved_turns());
        Some(serde_json::to_string(&saved).expect("plain data becomes text"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what it remembers is not said")?;
        let (watch, turns) = serde_json::from_str(saved).map_err(|error| error.to_string())?;
        self.watch.recall(watch);
        self.books.recall_turns(turns);
        Ok(())
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.watch.next_wakeup(now)
    }
}
