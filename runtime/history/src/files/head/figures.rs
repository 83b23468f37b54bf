//! Figures of a job that stand for its rows: how long attempts took, what preemption cost.
//!
//! Owns how they are computed. Does not own the rows.

use napreduce_engine::{TaskKind, fields};
use napreduce_protocol::{AttemptSummary, JobDetail, PreemptionEnd, PreemptionSummary};
use serde::{Deserialize, Serialize};

/// How long the attempts took that did their tasks; nothing of a phase that has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Durations {
    map: Option<Quantiles>,
    reduce: Option<Quantiles>,
}

/// Quantiles in milliseconds, each the duration of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Quantiles {
    count: u64,
    min: u64,
    p25: u64,
    p50: u64,
    p75: u64,
    p95: u64,
    max: u64,
}

impl Durations {
    pub(super) fn of(attempts: &[AttemptSummary]) -> Durations {
        let of = |kind: TaskKind| {
            let done = attempts.iter().filter(|one| one.attempt.task.kind == kind);
            let done = done.filter(|one| one.end.as_deref() == Some("done"));
            let took = |one: &AttemptSummary| Some(one.ended_millis?.saturating_sub(one.launched_millis));
            Quantiles::of(done.filter_map(took).collect())
        };
        Durations { map: of(TaskKind::Map), reduce: of(TaskKind::Reduce) }
    }
}

impl Quantiles {
    fn of(millis: Vec<u64>) -> Option<Quantiles> {
        let count = millis.len() as u64;
        let [min, p25, p50, p75, p95, max] = quantiles(millis);
        (count > 0).then_some(Quantiles { count, min, p25, p50, p75, p95, max })
    }
}

/// Where quantiles are taken, in percent: the least, quartiles, the 95th and the most.
pub const PERCENTS: [u32; 6] = [0, 25, 50, 75, 95, 100];

/// Quantiles of values by the nearest rank, so that each is a value that occurred; 0 where there is none.
pub fn quantiles(mut values: Vec<u64>) -> [u64; 6] {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    PERCENTS.map(|percent| values.get((last * percent as usize).div_ceil(100)).copied().unwrap_or(0))
}

fields! {
    /// The ledger of preemptions of a job, added up.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(default)]
    pub struct LedgerTotals {
        pub requests: u64 = requests.len() as u64,
        pub suspended: u64 = ended(PreemptionEnd::Suspended),
        pub checkpointed: u64 = ended(PreemptionEnd::Checkpointed),
        pub killed: u64 = ended(PreemptionEnd::Killed),
        pub withdrawn: u64 = ended(PreemptionEnd::Withdrawn),
        pub resumes: u64 = resumes.len() as u64,
        pub restores: u64 = restores.len() as u64,
        pub suspended_millis: u64 = sum(|one| one.suspended_millis.unwrap_or(0)),
        pub swapped_out_bytes: u64 = sum(|one| one.swapped_out_bytes),
        pub checkpoint_bytes: u64 = sum(|one| one.checkpoint_bytes),
        pub work_saved_millis: u64 = sum(|one| one.work_saved_millis),
        pub work_lost_millis: u64 = sum(|one| one.work_lost_millis),
    }

    pub(super) fn of(detail: &JobDetail) {
        let JobDetail { preemptions: requests, resumes, restores, .. } = detail;
        let ended = |end| requests.iter().filter(|one| one.end == Some(end)).count() as u64;
        let sum = |of: fn(&PreemptionSummary) -> u64| requests.iter().map(of).fold(0, u64::saturating_add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(quantiles(Vec::new()), [0; 6]);
        assert_eq!(quantiles(vec![7]), [7; 6]);
        assert_eq!(quantiles((0..=100).rev().collect()), [0, 25, 50, 75, 95, 100]);
    }
}
