//! Slot flows: how many slots were taken from one queue or job for another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::ledger::LedgerRow;

/// Slots taken from one queue or job for another by one primitive.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct FlowAnswer {
    /// The queue or job that lost the slots.
    pub from: String,
    /// The queue or job that the slots were freed for; `null` if there was none or it is no longer known.
    pub to: Option<String>,
    pub primitive: String,
    pub count: u64,
    /// Time that the work had no slot, up to now.
    pub slot_millis: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
}

impl FlowAnswer {
    /// Sums the taken slots by the two ends that `ends` returns for an entry.
    pub fn all_of<'row>(
        rows: impl IntoIterator<Item = &'row LedgerRow>,
        mut ends: impl FnMut(&LedgerRow) -> (String, Option<String>),
    ) -> Vec<FlowAnswer> {
        let mut flows: BTreeMap<(String, Option<String>, String), FlowAnswer> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.is_taken) {
            let (from, to) = ends(row);
            let primitive = row.answer.primitive.clone();
            let empty = || FlowAnswer {
                from: from.clone(),
                to: to.clone(),
                primitive: primitive.clone(),
                ..FlowAnswer::default()
            };
            let key = (from.clone(), to.clone(), primitive.clone());
            let flow = flows.entry(key).or_insert_with(empty);
            flow.count += 1;
            flow.slot_millis += row.slot_millis;
            flow.work_saved_millis += row.answer.work_saved_millis;
            flow.work_lost_millis += row.answer.work_lost_millis;
        }
        flows.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, Primitive};
    use napreduce_protocol::PreemptionEnd;

    use super::super::samples::preempted;
    use super::*;

    #[test]
    fn flows_sum_taken_slots_by_beneficiary() {
        let micros = |millis: u64| (1_790_000_000_000 + millis) * 1_000;
        let mut job = preempted(&[
            (0, Primitive::Suspend, Some(PreemptionEnd::Suspended)),
            (100, Primitive::Suspend, Some(PreemptionEnd::Suspended)),
            (200, Primitive::Kill, Some(PreemptionEnd::Killed)),
            (300, Primitive::Suspend, Some(PreemptionEnd::Withdrawn)),
        ]);
        job.preemptions[1].beneficiary = None;
        let rows = LedgerRow::all_of(&job, micros(1_000));
        let flows = FlowAnswer::all_of(&rows, |row| {
            (
                row.victim_queue.clone(),
                row.beneficiary.map(|job| job.to_string()),
            )
        });
        let counted: Vec<_> = flows
            .iter()
            .map(|flow| (flow.to.as_deref(), flow.primitive.as_str(), flow.count))
            .collect();
        assert_eq!(
            counted,
            [
                (None, "suspend", 1),
                (Some("job_0009"), "kill", 1),
                (Some("job_0009"), "suspend", 1)
            ]
        );
        assert!(flows.iter().all(|flow| flow.from == "default"));
        assert_eq!(flows[2].work_saved_millis, 40);
        assert_eq!(rows[0].beneficiary, Some(JobId(9)));
    }
}
