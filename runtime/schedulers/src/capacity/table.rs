//! Capacity and its monitor as an entry of the table of policies.
//!
//! Owns what follows from its values before it runs. Does not own the values (`configuration`) nor what it
//! does (`policy`).

use napreduce_engine::TaskKind;

use super::configuration::{ApplicationOrder, CapacityConfiguration, Mode, QueueConfiguration};
use super::policy::{Capacity, CapacityMonitor};
use crate::tables::{Built, Heeds, PolicyTable, PolicyTables, Wish};

impl PolicyTable for CapacityConfiguration {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Capacity::new(self)?))
    }

    fn build_part(&self, _kind: TaskKind, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(Capacity::of_one_kind(self)?))
    }

    fn monitor(&self) -> Option<Box<dyn PolicyTable + '_>> {
        Some(Box::new(Monitor(self)))
    }

    fn wishes(&self, kind: TaskKind, job: &str, all: &PolicyTables<'_>) -> Vec<Wish> {
        match self.mode {
            Mode::Preemptive => Monitor(self).wishes(kind, job, all),
            Mode::HardCap | Mode::SoftCap => Vec::new(),
        }
    }

    fn heeds(&self, _all: &PolicyTables<'_>) -> Heeds {
        let is_fifo = |queue: &QueueConfiguration| queue.app_order == ApplicationOrder::Fifo;
        let takes = self.mode == Mode::Preemptive && self.monitor.intra_queue;
        let priority = takes || self.queue.is_empty() || self.queue.iter().any(is_fifo);
        Heeds { priority, queue: true, deadline: false }
    }

    fn queues(&self) -> Option<Vec<&str>> {
        let has_parts = |name: &str| self.queue.iter().any(|queue| queue.parent == name);
        Some(self.queue.iter().map(|queue| queue.name.as_str()).filter(|name| !has_parts(name)).collect())
    }
}

/// The monitor alone, over other policies.
struct Monitor<'a>(&'a CapacityConfiguration);

impl PolicyTable for Monitor<'_> {
    fn build(&self, _all: &PolicyTables<'_>) -> Built {
        Ok(Box::new(CapacityMonitor::new(self.0)?))
    }

    fn wishes(&self, _kind: TaskKind, _job: &str, _all: &PolicyTables<'_>) -> Vec<Wish> {
        let monitor = &self.0.monitor;
        let wish = ("[scheduler.capacity.monitor] primitive", monitor.primitive);
        Vec::from_iter((!monitor.observe_only).then_some(wish))
    }
}
