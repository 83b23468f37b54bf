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
            let done = attempts
                .iter()
                .filter(|one| one.attempt.task.kind == kind && one.has_succeeded());
            let took =
                |one: &AttemptSummary| Some(one.ended_millis?.saturating_sub(one.launched_millis));
            Quantiles::new(done.filter_map(took).collect())
        };
        Durations {
            map: quantiles(TaskKind::Map),
            reduce: quantiles(TaskKind::Reduce),
        }
    }
}

impl Quantiles {
    fn new(millis: Vec<u64>) -> Option<Quantiles> {
        let count = millis.len() as u64;
        let [min, p25, p50, p75, p95, max] = quantiles(millis);
        (count > 0).then_some(Quantiles {
            count,
            min,
            p25,
            p50,
            p75,
            p95,
            max,
        })
    }
}

/// The quantiles, in percent.
pub const PERCENTS: [u32; 6] = [0, 25, 50, 75, 95, 100];

/// Computes the quantiles at [`PERCENTS`]; 0 if there are no values.
pub fn quantiles(mut values: Vec<u64>) -> [u64; 6] {
    values.sort_unstable();
    PERCENTS.map(|percent| quantile(&values, percent).unwrap_or(0))
}

/// Returns the quantile of ascending values at `percent` (0 to 100), rounded to an integer; `None` without values.
///
/// It interpolates linearly between the two values next to the position `percent / 100 * (count - 1)`, as R (type 7), NumPy
/// and spreadsheets do. With few values it is not biased towards the largest one, unlike the nearest rank. All quantiles of
/// pages, answers, findings and commands are computed here.
///
/// ```
/// use napreduce_history::quantile;
///
/// assert_eq!(quantile(&[100, 200], 50), Some(150));
/// assert_eq!(quantile(&[10, 20, 30, 40, 50], 95), Some(48));
/// ```
pub fn quantile(sorted: &[u64], percent: u32) -> Option<u64> {
    interpolate(sorted.len(), percent, |at| sorted[at])
}

/// Returns the median of ascending values without one of them: what is usual among the others.
pub(in crate::files) fn median_without(sorted: &[u64], value: u64) -> Option<u64> {
    match sorted.binary_search(&value) {
        Ok(left_out) => interpolate(sorted.len() - 1, 50, |at| {
            sorted[if at < left_out { at } else { at + 1 }]
        }),
        Err(_) => quantile(sorted, 50),
    }
}

/// Interpolates between `count` ascending values.
fn interpolate(count: usize, percent: u32, value: impl Fn(usize) -> u64) -> Option<u64> {
    let last = count.checked_sub(1)?;
    let hundredths = last as u128 * u128::from(percent.min(100));
    let below = (hundredths / 100) as usize;
    let part = hundredths % 100;
    let low = value(below);
    let high = value(last.min(below + 1));
    let step = (u128::from(high.saturating_sub(low)) * part + 50) / 100;
    Some(low.saturating_add(u64::try_from(step).unwrap_or(u64::MAX)))
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
        let JobDetail {
            preemptions: requests,
            resumes,
            restores,
            ..
        } = detail;
        let ended = |end| requests.iter().filter(|one| one.end == Some(end)).count() as u64;
        let sum = |of: fn(&PreemptionSummary) -> u64| {
            requests.iter().map(of).fold(0, u64::saturating_add)
        };
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
    fn median_without_a_value_is_that_of_the_others() {
        assert_eq!(median_without(&[], 7), None);
        assert_eq!(median_without(&[7], 7), None);
        assert_eq!(median_without(&[1, 100], 100), Some(1));
        assert_eq!(median_without(&[1, 100], 1), Some(100));
        assert_eq!(median_without(&[1, 3, 100], 100), Some(2));
        assert_eq!(median_without(&[1, 3, 5, 5], 5), Some(3));
        assert_eq!(median_without(&[1, 3], 9), Some(2), "it is none of them");
    }

    #[test]
    fn quantiles_interpolate_between_values() {
        assert_eq!(quantiles(Vec::new()), [0; 6]);
        assert_eq!(quantiles(vec![7]), [7; 6]);
        assert_eq!(
            quantiles((0..=100).rev().collect()),
            [0, 25, 50, 75, 95, 100]
        );
        // As numpy.quantile and R's quantile(type = 7).
        assert_eq!(quantiles(vec![200, 100]), [100, 125, 150, 175, 195, 200]);
        assert_eq!(
            quantiles(vec![10, 20, 30, 1_000]),
            [10, 18, 25, 273, 855, 1_000]
        );
        assert_eq!(
            quantiles(vec![0, u64::MAX]),
            [
                0,
                u64::MAX / 4 + 1,
                u64::MAX / 2 + 1,
                13_835_058_055_282_163_711,
                17_524_406_870_024_074_034,
                u64::MAX
            ]
        );
    }
}
