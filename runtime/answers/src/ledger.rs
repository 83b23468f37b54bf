//! The ledger of many jobs: entries, filters and totals of preemption requests in a time window.

use std::collections::{BTreeMap, HashMap, HashSet};

use napreduce_engine::{AttemptId, JobId, TaskId};
use napreduce_history::{LedgerEntry, Sequel, Timeline, ledger_of, quantile};
use napreduce_protocol::{JobDetail, JobSummary, PreemptionEnd, PreemptionSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::preemptions::PreemptionAnswer;

/// The end of a request that is still open.
pub const OPEN_END: &str = "open";
/// All ends of a request.
pub const ENDS: [&str; 7] = [
    "suspended",
    "checkpointed",
    "killed",
    "finished",
    "ended",
    "withdrawn",
    OPEN_END,
];

/// An entry of the ledger with values derived from its job.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerRow {
    pub answer: PreemptionAnswer,
    pub victim: JobId,
    pub victim_queue: String,
    pub beneficiary: Option<JobId>,
    /// Whether the attempt lost its slot, other than in vain.
    pub is_taken: bool,
    /// Time that the work had no slot, up to now.
    pub slot_millis: u64,
    /// Time from the resume order until the process ran again.
    pub resume_micros: Option<u64>,
    /// Time from the launch of the restoring attempt until it made new progress.
    pub restore_micros: Option<u64>,
}

impl LedgerRow {
    fn of(entry: &LedgerEntry<'_>, summary: &JobSummary, absences: &Absences) -> LedgerRow {
        LedgerRow {
            answer: PreemptionAnswer::from(entry),
            victim: summary.job,
            victim_queue: summary.queue.clone(),
            beneficiary: entry.preemption.beneficiary,
            is_taken: is_taken(entry.preemption),
            slot_millis: absences.of_request(entry.preemption) / 1_000,
            resume_micros: resume_micros(entry),
            restore_micros: restore_micros(entry),
        }
    }
}

impl LedgerRow {
    /// Computes the entries of a job; open ones extend to `now_micros`.
    pub fn all_of(detail: &JobDetail, now_micros: u64) -> Vec<LedgerRow> {
        let detail = &concerned(detail);
        let absences = Absences::of(detail, now_micros);
        ledger_of(detail)
            .iter()
            .map(|entry| LedgerRow::of(entry, &detail.summary, &absences))
            .collect()
    }

    /// Returns the end in one word.
    pub fn end(&self) -> &'static str {
        self.answer.end.unwrap_or(OPEN_END)
    }

    /// Returns the time from the request until the slot was free.
    pub fn free_micros(&self) -> Option<u64> {
        self.answer
            .freed_micros
            .map(|freed| freed.saturating_sub(self.answer.requested_micros))
    }
}

/// Reduces a job to the attempts of preempted tasks, which are few of 100,000.
fn concerned(detail: &JobDetail) -> JobDetail {
    let tasks: HashSet<TaskId> = detail
        .preemptions
        .iter()
        .map(|one| one.attempt.task)
        .collect();
    detail.of_attempts(|attempt| tasks.contains(&attempt.task))
}

fn is_taken(known: &PreemptionSummary) -> bool {
    use PreemptionEnd::{Checkpointed, Killed, Suspended};
    matches!(known.end, Some(Suspended | Checkpointed | Killed)) && known.unused.is_none()
}

fn resume_micros(entry: &LedgerEntry<'_>) -> Option<u64> {
    let Some(Sequel::Resumed(resume)) = entry.sequel else {
        return None;
    };
    Some(resume.resumed_micros?.saturating_sub(resume.ordered_micros))
}

/// A suspension that became a checkpoint has two entries; only the checkpoint has the restore time.
fn restore_micros(entry: &LedgerEntry<'_>) -> Option<u64> {
    let is_saved = entry.preemption.end == Some(PreemptionEnd::Checkpointed);
    let Some(Sequel::Restored(restore)) = entry.sequel.filter(|_| is_saved) else {
        return None;
    };
    Some(
        restore
            .restored_micros?
            .saturating_sub(restore.ordered_micros),
    )
}

/// Times that work had no slot.
struct Absences {
    naps: HashMap<(AttemptId, u64), u64>,
    /// Launch times of each task's attempts, in milliseconds.
    launches: HashMap<TaskId, Vec<u64>>,
    until_micros: u64,
}

impl Absences {
    fn of(detail: &JobDetail, now_micros: u64) -> Absences {
        let mut naps = HashMap::new();
        for nap in Timeline::new(detail, now_micros).naps {
            let key = (nap.preemption.attempt, nap.preemption.requested_micros);
            *naps.entry(key).or_insert(0) += nap.until_micros.saturating_sub(nap.from_micros);
        }
        let mut launches: HashMap<TaskId, Vec<u64>> = HashMap::new();
        for attempt in &detail.attempts {
            launches
                .entry(attempt.attempt.task)
                .or_default()
                .push(attempt.launched_millis);
        }
        let until_micros = detail
            .summary
            .ended_millis
            .map_or(now_micros, |ended| ended * 1_000);
        Absences {
            naps,
            launches,
            until_micros,
        }
    }

    fn of_request(&self, known: &PreemptionSummary) -> u64 {
        if let Some(micros) = self.naps.get(&(known.attempt, known.requested_micros)) {
            return *micros;
        }
        let Some(freed) = known
            .freed_micros
            .filter(|_| known.end == Some(PreemptionEnd::Killed))
        else {
            return 0;
        };
        let launches = self.launches.get(&known.attempt.task).into_iter().flatten();
        let next = launches
            .map(|millis| millis * 1_000)
            .filter(|launched| *launched >= freed)
            .min();
        next.unwrap_or(self.until_micros).saturating_sub(freed)
    }
}

/// The conditions on listed entries; an empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerFilter {
    /// Earliest request, in microseconds since 1970.
    pub from_micros: u64,
    /// End of the request times, exclusive.
    pub until_micros: u64,
    pub by: Option<String>,
    pub primitives: Vec<String>,
    pub ends: Vec<String>,
    /// Queue of the victim or of the beneficiary.
    pub queue: Option<String>,
}

impl LedgerFilter {
    /// Whether an entry matches. The caller knows the beneficiary's queue.
    pub fn matches(&self, row: &LedgerRow, beneficiary_queue: Option<&str>) -> bool {
        let one_of = |wanted: &[String], value: &str| {
            wanted.is_empty() || wanted.iter().any(|one| one == value)
        };
        let is_of = |queue: &String| {
            row.victim_queue == *queue || beneficiary_queue == Some(queue.as_str())
        };
        (self.from_micros..self.until_micros).contains(&row.answer.requested_micros)
            && self.by.as_ref().is_none_or(|by| row.answer.by == *by)
            && one_of(&self.primitives, &row.answer.primitive)
            && one_of(&self.ends, row.end())
            && self.queue.as_ref().is_none_or(is_of)
    }
}

/// Totals of the requests in a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PreemptionTotals {
    pub from_millis: u64,
    pub until_millis: u64,
    /// All requests, with any end.
    pub count: u64,
    /// Requests by which an attempt lost its slot, without unused slots.
    pub taken: u64,
    /// Slots that were freed for a job which did not use them.
    pub unused: u64,
    /// Time that the work of these had no slot, up to now.
    pub slot_millis: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
    /// Time from the request until the slot was free.
    pub freeing: LatencyAnswer,
    /// Time from the resume order until a suspended process ran again.
    pub resuming: LatencyAnswer,
    /// Time from the launch of a restoring attempt until it made new progress.
    pub restoring: LatencyAnswer,
    pub primitives: Vec<PrimitiveTotals>,
    /// Requests that were carried out by another primitive.
    pub converted: Vec<ConvertedWishes>,
    /// Excluded requests, and why.
    pub remarks: Vec<String>,
}

impl PreemptionTotals {
    /// Computes the totals of entries, newest first.
    pub fn of(rows: &[&LedgerRow]) -> PreemptionTotals {
        let mut by_primitive: BTreeMap<&str, Vec<&LedgerRow>> = BTreeMap::new();
        let mut converted: BTreeMap<(&str, &str), (u64, &str)> = BTreeMap::new();
        for row in rows {
            let PreemptionAnswer {
                primitive,
                asked,
                reason,
                ..
            } = &row.answer;
            by_primitive.entry(primitive).or_default().push(row);
            if asked != primitive {
                converted.entry((asked, primitive)).or_insert((0, reason)).0 += 1;
            }
        }

        PreemptionTotals {
            from_millis: 0,
            until_millis: 0,
            count: rows.len() as u64,
            taken: sum(rows, |row| u64::from(row.is_taken)),
            unused: sum(rows, |row| u64::from(row.answer.unused.is_some())),
            slot_millis: sum(rows, |row| row.slot_millis),
            work_saved_millis: sum(rows, |row| row.answer.work_saved_millis),
            work_lost_millis: sum(rows, |row| row.answer.work_lost_millis),
            freeing: LatencyAnswer::of(rows.iter().filter_map(|row| row.free_micros())),
            resuming: LatencyAnswer::of(rows.iter().filter_map(|row| row.resume_micros)),
            restoring: LatencyAnswer::of(rows.iter().filter_map(|row| row.restore_micros)),
            primitives: by_primitive
                .into_iter()
                .map(|(primitive, rows)| PrimitiveTotals::of(primitive, &rows))
                .collect(),
            converted: converted.into_iter().map(ConvertedWishes::from).collect(),
            remarks: Vec::new(),
        }
    }
}

/// Totals of the requests of one primitive.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PrimitiveTotals {
    pub primitive: String,
    pub count: u64,
    /// Number of requests by end; `open` if there is none yet.
    pub ends: BTreeMap<String, u64>,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
    pub freeing: LatencyAnswer,
}

impl PrimitiveTotals {
    fn of(primitive: &str, rows: &[&LedgerRow]) -> PrimitiveTotals {
        let mut ends = BTreeMap::new();
        for row in rows {
            *ends.entry(row.end().to_owned()).or_insert(0) += 1;
        }

        PrimitiveTotals {
            primitive: primitive.to_owned(),
            count: rows.len() as u64,
            ends,
            work_saved_millis: sum(rows, |row| row.answer.work_saved_millis),
            work_lost_millis: sum(rows, |row| row.answer.work_lost_millis),
            freeing: LatencyAnswer::of(rows.iter().filter_map(|row| row.free_micros())),
        }
    }
}

/// Quantiles of a duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct LatencyAnswer {
    pub count: u64,
    pub p50_micros: Option<u64>,
    pub p95_micros: Option<u64>,
    pub p99_micros: Option<u64>,
}

impl LatencyAnswer {
    fn of(micros: impl Iterator<Item = u64>) -> LatencyAnswer {
        let mut sorted: Vec<u64> = micros.collect();
        sorted.sort_unstable();
        LatencyAnswer {
            count: sorted.len() as u64,
            p50_micros: quantile(&sorted, 50),
            p95_micros: quantile(&sorted, 95),
            p99_micros: quantile(&sorted, 99),
        }
    }
}

fn sum(rows: &[&LedgerRow], of: fn(&LedgerRow) -> u64) -> u64 {
    rows.iter().map(|row| of(row)).sum()
}

/// Requests for one primitive that were carried out by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConvertedWishes {
    pub asked: String,
    pub primitive: String,
    pub count: u64,
    /// The reason of the newest request.
    pub reason: String,
}

impl From<((&str, &str), (u64, &str))> for ConvertedWishes {
    fn from(((asked, primitive), (count, reason)): ((&str, &str), (u64, &str))) -> ConvertedWishes {
        let asked = asked.to_owned();
        let primitive = primitive.to_owned();
        let reason = reason.to_owned();
        ConvertedWishes {
            asked,
            primitive,
            count,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{Primitive, WorkerId};

    use super::super::samples::preempted;
    use napreduce_protocol::{RestoreSummary, ResumeSummary};

    use super::*;

    const BASE: u64 = 1_790_000_000_000;

    fn micros(millis: u64) -> u64 {
        (BASE + millis) * 1_000
    }

    /// Four attempts: suspended and resumed, checkpointed and restored, killed, and still running.
    fn job() -> JobDetail {
        let mut job = preempted(&[
            (0, Primitive::Suspend, Some(PreemptionEnd::Suspended)),
            (
                100,
                Primitive::Checkpoint,
                Some(PreemptionEnd::Checkpointed),
            ),
            (200, Primitive::Kill, Some(PreemptionEnd::Killed)),
            (300, Primitive::Suspend, None),
        ]);
        job.preemptions[2].asked = Primitive::Suspend;
        job.preemptions[2].reason = "the worker is full".to_owned();
        job.resumes.push(ResumeSummary {
            attempt: job.preemptions[0].attempt,
            worker: WorkerId(1),
            ordered_micros: micros(510),
            resumed_micros: Some(micros(513)),
            worker_micros: None,
            suspended_millis: 500,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        });
        job.restores.push(RestoreSummary {
            attempt: AttemptId {
                number: 2,
                ..job.preemptions[1].attempt
            },
            from: job.preemptions[1].attempt,
            worker: WorkerId(2),
            from_worker: Some(WorkerId(1)),
            ordered_micros: micros(710),
            restored_micros: Some(micros(730)),
            worker_micros: None,
            work_saved_millis: 40,
            refused: None,
        });
        job
    }

    #[test]
    fn entry_has_the_time_without_slot() {
        let rows = LedgerRow::all_of(&job(), micros(2_000));
        // The killed task was not tried again: the job ended after 1.5 s.
        assert_eq!(
            rows.iter().map(|row| row.slot_millis).collect::<Vec<_>>(),
            [500, 600, 1_290, 0]
        );
        assert_eq!(
            rows.iter().map(|row| row.is_taken).collect::<Vec<_>>(),
            [true, true, true, false]
        );
        assert_eq!(
            (rows[0].resume_micros, rows[1].restore_micros),
            (Some(3_000), Some(20_000))
        );
        assert_eq!(
            (rows[0].free_micros(), rows[3].free_micros()),
            (Some(10_000), None)
        );
        assert_eq!(rows[3].end(), "open");
    }

    #[test]
    fn ledger_filter_matches_its_conditions() {
        let rows = LedgerRow::all_of(&job(), micros(2_000));
        let all = LedgerFilter {
            until_micros: u64::MAX,
            ..LedgerFilter::default()
        };
        let taken = |filter: &LedgerFilter| -> Vec<usize> {
            (0..rows.len())
                .filter(|at| filter.matches(&rows[*at], Some("production")))
                .collect()
        };
        let one = |word: &str| vec![word.to_owned()];
        assert_eq!(taken(&all), [0, 1, 2, 3]);
        assert_eq!(
            taken(&LedgerFilter {
                from_micros: micros(100),
                ..all.clone()
            }),
            [1, 2, 3]
        );
        assert_eq!(
            taken(&LedgerFilter {
                until_micros: micros(100),
                ..all.clone()
            }),
            [0]
        );
        assert_eq!(
            taken(&LedgerFilter {
                primitives: one("suspend"),
                ..all.clone()
            }),
            [0, 3]
        );
        assert_eq!(
            taken(&LedgerFilter {
                ends: one("open"),
                ..all.clone()
            }),
            [3]
        );
        assert_eq!(
            taken(&LedgerFilter {
                by: Some("natjam".to_owned()),
                ..all.clone()
            }),
            [0, 1, 2, 3]
        );
        assert_eq!(
            taken(&LedgerFilter {
                by: Some("operator".to_owned()),
                ..all.clone()
            }),
            [0; 0]
        );
        for (queue, count) in [("default", 4), ("production", 4), ("research", 0)] {
            let filter = LedgerFilter {
                queue: Some(queue.to_owned()),
                ..all.clone()
            };
            assert_eq!(taken(&filter).len(), count, "{queue}");
        }
    }

    #[test]
    fn totals_count_primitives_and_conversions() {
        let rows = LedgerRow::all_of(&job(), micros(2_000));
        let totals = PreemptionTotals::of(&rows.iter().collect::<Vec<_>>());
        assert_eq!((totals.count, totals.taken), (4, 3));
        assert_eq!(
            (
                totals.slot_millis,
                totals.work_saved_millis,
                totals.work_lost_millis
            ),
            (2_390, 120, 40)
        );
        assert_eq!(totals.freeing.count, 3);
        assert_eq!(
            (totals.resuming.p50_micros, totals.restoring.p99_micros),
            (Some(3_000), Some(20_000))
        );
        let suspend = totals
            .primitives
            .iter()
            .find(|one| one.primitive == "suspend")
            .expect("two");
        assert_eq!(
            suspend.ends,
            BTreeMap::from([("open".to_owned(), 1), ("suspended".to_owned(), 1)])
        );
        let [converted] = totals.converted.as_slice() else {
            panic!("{:?}", totals.converted)
        };
        assert_eq!(
            (converted.asked.as_str(), converted.primitive.as_str()),
            ("suspend", "kill")
        );
        assert_eq!(
            (converted.count, converted.reason.as_str()),
            (1, "the worker is full")
        );
        assert_eq!(PreemptionTotals::of(&[]), PreemptionTotals::default());
    }

    #[test]
    fn latency_quantiles_interpolate() {
        let of = |count: u64| LatencyAnswer::of((1..=count).rev());
        let hundred = of(101);
        assert_eq!(
            (hundred.p50_micros, hundred.p95_micros, hundred.p99_micros),
            (Some(51), Some(96), Some(100))
        );
        assert_eq!(
            (of(1).p50_micros, of(1).p99_micros, of(3).p50_micros),
            (Some(1), Some(1), Some(2))
        );
        assert_eq!(of(0), LatencyAnswer::default());
    }
}
