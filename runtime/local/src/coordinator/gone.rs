//! The workers that left or were lost most recently, for listings.

use std::collections::VecDeque;

use napreduce_engine::{Slots, WorkerId};
use napreduce_protocol::{WorkerMemory, WorkerPhase, WorkerSummary};
use serde::{Deserialize, Serialize};

use super::entry::Identity;

/// Maximum number remembered; the oldest are dropped.
const GONE_MAX: usize = 200;

/// The most recent departures, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneWorkers(VecDeque<GoneWorker>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GoneWorker {
    worker: WorkerId,
    name: String,
    host: String,
    #[serde(default = "super::entry::default_rack")]
    rack: String,
    slots: Slots,
    how: Parting,
    /// In milliseconds since 1970.
    at_millis: u64,
    reason: String,
}

/// How a worker departed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Parting {
    /// It left after a drain.
    Left,
    /// It fell silent or was replaced.
    Lost,
}

impl GoneWorkers {
    /// Records a departure; later ones of the same worker are ignored.
    pub(super) fn remember(
        &mut self,
        worker: WorkerId,
        identity: &Identity,
        how: Parting,
        at_millis: u64,
        reason: &str,
    ) {
        if self.0.iter().any(|gone| gone.worker == worker) {
            return;
        }
        let Identity {
            name,
            host,
            rack,
            slots,
            ..
        } = identity.clone();
        let reason = reason.to_owned();
        self.0.push_back(GoneWorker {
            worker,
            name,
            host,
            rack,
            slots,
            how,
            at_millis,
            reason,
        });
        if self.0.len() > GONE_MAX {
            self.0.pop_front();
        }
    }

    /// Returns a listing line for each, by number.
    pub fn summaries(&self, now_millis: u64) -> Vec<WorkerSummary> {
        let mut summaries: Vec<WorkerSummary> =
            self.0.iter().map(|gone| gone.summary(now_millis)).collect();
        summaries.sort_by_key(|gone| gone.worker);
        summaries
    }
}

impl GoneWorker {
    fn summary(&self, now_millis: u64) -> WorkerSummary {
        WorkerSummary {
            worker: self.worker,
            name: self.name.clone(),
            host: self.host.clone(),
            rack: self.rack.clone(),
            state: match self.how {
                Parting::Left => WorkerPhase::Left,
                Parting::Lost => WorkerPhase::Lost,
            },
            remarks: Vec::new(),
            failing: None,
            isolation: String::new(),
            gone_millis: Some(self.at_millis),
            reason: Some(self.reason.clone()),
            map_slots: (self.slots.map, 0),
            reduce_slots: (self.slots.reduce, 0),
            silent_millis: now_millis.saturating_sub(self.at_millis),
            memory: WorkerMemory::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_number_of_gone_workers_is_kept() {
        let identity = Identity {
            name: "w".to_owned(),
            incarnation: 1,
            slots: Slots { map: 2, reduce: 1 },
            host: "ada".to_owned(),
            rack: "/a".to_owned(),
            data_address: String::new(),
            directory: "/nowhere".into(),
            architecture: String::new(),
            isolation: String::new(),
        };
        let mut gone = GoneWorkers::default();
        for number in 1..=250 {
            let at_millis = u64::from(number);
            gone.remember(
                WorkerId(number),
                &identity,
                Parting::Lost,
                at_millis,
                "silent",
            );
            gone.remember(WorkerId(number), &identity, Parting::Left, 0, "again");
        }
        let listed = gone.summaries(1_000);
        let first = listed.first().expect("some");
        let last = listed.last().expect("some");
        assert_eq!(
            (listed.len(), first.worker, last.worker),
            (GONE_MAX, WorkerId(51), WorkerId(250))
        );
        assert_eq!(
            (last.state, last.gone_millis, last.silent_millis),
            (WorkerPhase::Lost, Some(250), 750)
        );
        assert_eq!(
            (last.reason.as_deref(), last.map_slots),
            (Some("silent"), (2, 0))
        );
    }
}
