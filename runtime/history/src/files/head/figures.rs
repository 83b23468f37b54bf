//! Figures of a job that summarize its rows: durations of attempts, costs of preemption.

use napreduce_engine::TaskKind;
use napreduce_protocol::{AttemptSummary, JobDetail, PreemptionEnd, PreemptionSummary};
use serde::{Deserialize, Serialize};

/// Durations of the attempts that completed tasks; `None` for a phase without any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Durations {
    map: Option<Quantiles>,
    reduce: Option<Quantiles>,
}

/// Quantiles in milliseconds.
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
    pub(super) fn new(attempts: &[AttemptSummary]) -> Durations {
        let quantiles = |kind: TaskKind| {
            let done = attempts.iter().filter(|one| one.attempt.task.kind == kind && one.has_succeeded());
            let took = |one: &AttemptSummary| Some(one.ended_millis?.saturating_sub(one.launched_millis));
            Quantiles::new(done.filter_map(took).collect())
        };
        Durations { map: quantiles(TaskKind::Map), reduce: quantiles(TaskKind::Reduce) }
    }
}

impl Quantiles {
    fn new(millis: Vec<u64>) -> Option<Quantiles> {
        let count = millis.len() as u64;
        let [min, p25, p50, p75, p95, max] = quantiles(millis);
        (count > 0).then_some(Quantiles { count, min, p25, p50, p75, p95, max })
    }
}

/// The quantiles, in percent.
pub const PERCENTS: [u32; 6] = [0, 25, 50, 75, 95, 100];

/// Computes quantiles by the nearest rank, so that each is one of the values; 0 if there are none.
pub fn quantiles(mut values: Vec<u64>) -> [u64; 6] {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    PERCENTS.map(|percent| values.get((last * percent as usize).div_ceil(100)).copied().unwrap_or(0))
}

/// Totals of a job's preemption ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerTotals {
    pub requests: u64,
    pub suspended: u64,
    pub checkpointed: u64,
    pub killed: u64,
    pub withdrawn: u64,
    pub resumes: u64,
    pub restores: u64,
    pub suspended_millis: u64,
    pub swapped_out_bytes: u64,
    pub checkpoint_bytes: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
}

impl LedgerTotals {
    pub(super) fn new(detail: &JobDetail) -> LedgerTotals {
        let JobDetail { preemptions: requests, resumes, restores, .. } = detail;
        let ended = |end| requests.iter().filter(|one| one.end == Some(end)).count() as u64;
        let sum = |of: fn(&PreemptionSummary) -> u64| requests.iter().map(of).fold(0, u64::saturating_add);
        LedgerTotals {
            requests: requests.len() as u64,
            suspended: ended(PreemptionEnd::Suspended),
            checkpointed: ended(PreemptionEnd::Checkpointed),
            killed: ended(PreemptionEnd::Killed),
            withdrawn: ended(PreemptionEnd::Withdrawn),
            resumes: resumes.len() as u64,
            restores: restores.len() as u64,
            suspended_millis: sum(|one| one.suspended_millis.unwrap_or(0)),
            swapped_out_bytes: sum(|one| one.swapped_out_bytes),
            checkpoint_bytes: sum(|one| one.checkpoint_bytes),
            work_saved_millis: sum(|one| one.work_saved_millis),
            work_lost_millis: sum(|one| one.work_lost_millis),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_existing_values() {
        assert_eq!(quantiles(Vec::new()), [0; 6]);
        assert_eq!(quantiles(vec![7]), [7; 6]);
        assert_eq!(quantiles((0..=100).rev().collect()), [0, 25, 50, 75, 95, 100]);
    }
}
