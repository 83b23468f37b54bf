//! One policy per slot kind, combined with an optional preemption monitor.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    Actions, ClusterView, Event, Job, JobChange, JobId, JobSpec, PolicyRefusal, QueueShare,
    Scheduler, TaskKind, Time,
};

use crate::tables::{
    Built, ConfiguredPrimitive, JobAttributes, PolicyTable, PolicyTables, SchedulerError,
};

/// `[scheduler.composed]`: the names of the policies; each reads its own table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ComposedSettings {
    pub map: String,
    pub reduce: String,
    /// Whether the monitor of `[scheduler.capacity]` preempts tasks under both policies.
    pub monitor: bool,
}

impl Default for ComposedSettings {
    fn default() -> ComposedSettings {
        ComposedSettings {
            map: "fifo".to_owned(),
            reduce: "fifo".to_owned(),
            monitor: false,
        }
    }
}

/// The policy that provides the monitor.
const MONITOR: &str = "capacity";

impl ComposedSettings {
    fn part(&self, kind: TaskKind) -> &str {
        match kind {
            TaskKind::Map => &self.map,
            TaskKind::Reduce => &self.reduce,
        }
    }
}

impl PolicyTable for ComposedSettings {
    fn build(&self, all: &PolicyTables<'_>) -> Built {
        let monitor = self
            .monitor
            .then(|| all.build_monitor(MONITOR))
            .transpose()?;
        let [map, reduce] = TaskKind::ALL.map(|kind| all.build_part(self.part(kind), kind));
        Ok(Box::new(Composed::new(map?, reduce?, monitor)))
    }

    fn build_part(&self, kind: TaskKind, _all: &PolicyTables<'_>) -> Built {
        Err(SchedulerError::Nested(kind).into())
    }

    fn primitives(
        &self,
        kind: TaskKind,
        job: &str,
        all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        let mut primitives = all.primitives_of_part(self.part(kind), kind, job);
        if self.monitor
            && let Ok(table) = all.named(MONITOR)
        {
            primitives.extend(
                table
                    .monitor()
                    .map(|monitor| monitor.primitives(kind, job, all))
                    .unwrap_or_default(),
            );
        }
        primitives
    }

    fn honored_attributes(&self, all: &PolicyTables<'_>) -> JobAttributes {
        let monitor = if self.monitor {
            all.attributes_of_part(MONITOR)
        } else {
            JobAttributes::default()
        };
        all.attributes_of_part(&self.map) | all.attributes_of_part(&self.reduce) | monitor
    }

    fn primitives_as_part(
        &self,
        _kind: TaskKind,
        _job: &str,
        _all: &PolicyTables<'_>,
    ) -> Vec<ConfiguredPrimitive> {
        Vec::new()
    }

    fn queues(&self) -> Option<Vec<&str>> {
        None
    }

    fn uses_progress(&self, all: &PolicyTables<'_>) -> bool {
        let uses = |name: &str| {
            name == "composed" || all.named(name).is_ok_and(|part| part.uses_progress(all))
        };
        uses(&self.map) || uses(&self.reduce)
    }

    fn uses_output_bytes(&self, all: &PolicyTables<'_>) -> bool {
        // Building rejects a composed part.
        self.reduce != "composed"
            && all
                .named(&self.reduce)
                .is_ok_and(|part| part.uses_output_bytes(all))
    }
}

/// Routes offers to the policy of their slot kind, and preemption rounds to all parts. Every part receives
/// all events.
pub struct Composed {
    map: Box<dyn Scheduler>,
    reduce: Box<dyn Scheduler>,
    monitor: Option<Box<dyn Scheduler>>,
}

/// The saved state of the parts.
#[derive(Serialize, Deserialize)]
struct Saved {
    map: Option<String>,
    reduce: Option<String>,
    monitor: Option<String>,
}

impl Composed {
    pub fn new(
        map: Box<dyn Scheduler>,
        reduce: Box<dyn Scheduler>,
        monitor: Option<Box<dyn Scheduler>>,
    ) -> Composed {
        Composed {
            map,
            reduce,
            monitor,
        }
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Box<dyn Scheduler>> {
        [&mut self.map, &mut self.reduce]
            .into_iter()
            .chain(self.monitor.as_mut())
    }
}

impl Scheduler for Composed {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        self.parts()
            .for_each(|part| part.on_event(now, event, view));
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.parts()
            .for_each(|part| part.job_changed(now, job, view));
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let offered = actions.offer().map(|offer| offer.kind);
        if offered != Some(TaskKind::Reduce) {
            actions.of_kinds(&[TaskKind::Map], |actions| {
                self.map.schedule(now, view, actions)
            });
        }
        if offered != Some(TaskKind::Map) {
            actions.of_kinds(&[TaskKind::Reduce], |actions| {
                self.reduce.schedule(now, view, actions)
            });
        }
        if offered.is_none()
            && let Some(monitor) = &mut self.monitor
        {
            monitor.schedule(now, view, actions);
        }
    }

    fn order(&self, kind: TaskKind, view: &ClusterView<'_>) -> Vec<JobId> {
        match kind {
            TaskKind::Map => self.map.order(kind, view),
            TaskKind::Reduce => self.reduce.order(kind, view),
        }
    }

    fn can_change(&self, change: &JobChange) -> Result<(), PolicyRefusal> {
        self.map.can_change(change)?;
        self.reduce.can_change(change)
    }

    /// The map policy's queues take precedence: a job names one queue for both kinds.
    fn queues(&self, view: &ClusterView<'_>) -> Option<Vec<QueueShare>> {
        self.map.queues(view).or_else(|| self.reduce.queues(view))
    }

    fn admits(&self, spec: &JobSpec) -> Result<(), PolicyRefusal> {
        self.map.admits(spec)?;
        self.reduce.admits(spec)
    }

    fn is_before(&self, kind: TaskKind, one: &Job, other: &Job) -> bool {
        match kind {
            TaskKind::Map => self.map.is_before(kind, one, other),
            TaskKind::Reduce => self.reduce.is_before(kind, one, other),
        }
    }

    fn rank(&self, spec: &JobSpec) -> i128 {
        self.map.rank(spec)
    }

    fn maxima(&self, spec: &JobSpec, slots: u32) -> Vec<(String, u64)> {
        self.map.maxima(spec, slots)
    }

    fn can_meet(
        &self,
        now: Time,
        spec: &JobSpec,
        view: &ClusterView<'_>,
    ) -> Result<(), PolicyRefusal> {
        self.map.can_meet(now, spec, view)?;
        self.reduce.can_meet(now, spec, view)
    }

    fn why_limited(&self, job: JobId) -> Option<String> {
        self.map
            .why_limited(job)
            .or_else(|| self.reduce.why_limited(job))
    }

    fn remarks(&self, now: Time, job: &Job, view: &ClusterView<'_>) -> Vec<String> {
        let mut remarks = self.map.remarks(now, job, view);
        let more = self.reduce.remarks(now, job, view);
        remarks.extend(
            more.into_iter()
                .filter(|remark| !remarks.contains(remark))
                .collect::<Vec<_>>(),
        );
        remarks
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
        let saved = saved.ok_or("composed: the snapshot has no saved state")?;
        let saved: Saved = serde_json::from_str(saved)
            .map_err(|error| format!("composed: invalid saved state: {error}"))?;
        self.map.restore(saved.map.as_deref())?;
        self.reduce.restore(saved.reduce.as_deref())?;
        match &mut self.monitor {
            Some(monitor) => monitor.restore(saved.monitor.as_deref()),
            None if saved.monitor.is_some() => {
                Err("composed: the snapshot has a monitor, the configuration does not".to_owned())
            }
            None => Ok(()),
        }
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        let monitor = self
            .monitor
            .as_ref()
            .and_then(|monitor| monitor.next_wakeup(now));
        [
            self.map.next_wakeup(now),
            self.reduce.next_wakeup(now),
            monitor,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
