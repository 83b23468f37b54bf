//! Several policies as one: one for each kind of slot, and a preemption monitor over both.
//!
//! Owns who is asked about what. Does not own any decision.

use serde::{Deserialize, Serialize};

use napreduce_core::{Actions, ClusterView, Event, JobId, JobSpec, Scheduler, TaskKind, Time};

/// One policy gives map slots, another gives reduce slots, and a monitor, if there is one, takes slots back under either.
/// Each of them hears of everything; it is asked about its kinds only.
pub struct Composed {
    map: Box<dyn Scheduler>,
    reduce: Box<dyn Scheduler>,
    monitor: Option<Box<dyn Scheduler>>,
}

/// What the parts remember.
#[derive(Serialize, Deserialize)]
struct Saved {
    map: Option<String>,
    reduce: Option<String>,
    monitor: Option<String>,
}

impl Composed {
    /// Of these parts.
    pub fn new(
        map: Box<dyn Scheduler>,
        reduce: Box<dyn Scheduler>,
        monitor: Option<Box<dyn Scheduler>>,
    ) -> Composed {
        Composed { map, reduce, monitor }
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Box<dyn Scheduler>> {
        [&mut self.map, &mut self.reduce].into_iter().chain(self.monitor.as_mut())
    }
}

impl Scheduler for Composed {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        self.parts().for_each(|part| part.on_event(now, event, view));
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.parts().for_each(|part| part.job_changed(now, job, view));
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let offered = actions.offer().map(|offer| offer.kind);
        if offered != Some(TaskKind::Reduce) {
            actions.of_kinds(&[TaskKind::Map], |actions| self.map.schedule(now, view, actions));
        }
        if offered != Some(TaskKind::Map) {
            actions.of_kinds(&[TaskKind::Reduce], |actions| self.reduce.schedule(now, view, actions));
        }
        if offered.is_none()
            && let Some(monitor) = &mut self.monitor
        {
            monitor.schedule(now, view, actions);
        }
    }

    fn admits(&self, spec: &JobSpec) -> Result<(), String> {
        self.map.admits(spec)?;
        self.reduce.admits(spec)
    }

    fn save(&self) -> Option<String> {
        let saved = Saved {
            map: self.map.save(),
            reduce: self.reduce.save(),
            monitor: self.monitor.as_ref().and_then(|monitor| monitor.save()),
        };
        Some(serde_json::to_string(&saved).expect("three texts are plain data"))
    }

    fn restore(&mut self, saved: Option<&str>) -> Result<(), String> {
        let saved = saved.ok_or("what its parts remember is not said")?;
        let saved: Saved = serde_json::from_str(saved).map_err(|error| format!("its parts: {error}"))?;
        self.map.restore(saved.map.as_deref())?;
        self.reduce.restore(saved.reduce.as_deref())?;
        match &mut self.monitor {
            Some(monitor) => monitor.restore(saved.monitor.as_deref()),
            None if saved.monitor.is_some() => Err("it has no monitor, but the one before it had".to_owned()),
            None => Ok(()),
        }
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let monitor = self.monitor.as_ref().and_then(|monitor| monitor.next_wakeup(now));
        [self.map.next_wakeup(now), self.reduce.next_wakeup(now), monitor].into_iter().flatten().min()
    }
}
