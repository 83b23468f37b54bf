//! Preemption requests in groups: a scheduler that wants six slots asks for each of them, and people read one line.

use std::collections::{BTreeMap, HashMap};

use napreduce_engine::JobId;
use napreduce_protocol::JobSummary;
use schemars::JsonSchema;
use serde::Serialize;

use super::ledger::LedgerRow;

/// A group has the requests of this time after its first one.
const GROUP_MICROS: u64 = 1_000_000;

/// Requests of one scheduler for slots of one job, for the same job and reason, at most a second apart.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GroupAnswer {
    /// Its ID: the attempt and time of its first request. `preemptions?group=ID` returns its entries.
    pub group: String,
    /// Time of the first request.
    pub requested_micros: u64,
    /// Time of the last request.
    pub until_micros: u64,
    pub count: u64,
    /// Requests by which an attempt lost its slot.
    pub taken: u64,
    pub victim: String,
    pub victim_name: Option<String>,
    pub victim_queue: String,
    /// The job that the slots were freed for.
    pub beneficiary: Option<String>,
    pub beneficiary_name: Option<String>,
    pub beneficiary_queue: Option<String>,
    /// The primitive that was used.
    pub primitive: String,
    /// The scheduler's name, `operator`, or `engine`.
    pub by: String,
    /// The reason of the first request.
    pub reason: String,
    /// Number of requests by end; `open` if there is none yet.
    pub ends: BTreeMap<String, u64>,
    /// Longest time from a request until its slot was free.
    pub free_micros: Option<u64>,
    /// Time that the work had no slot, up to now.
    pub slot_millis: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
}

/// The values that all requests of a group share.
#[derive(PartialEq, Eq, Hash)]
struct GroupKey<'row> {
    victim: JobId,
    beneficiary: Option<JobId>,
    by: &'row str,
    primitive: &'row str,
    reason: String,
}

impl<'row> GroupKey<'row> {
    fn of(row: &'row LedgerRow) -> GroupKey<'row> {
        GroupKey {
            victim: row.victim,
            beneficiary: row.beneficiary,
            by: &row.answer.by,
            primitive: &row.answer.primitive,
            // The first of six requests waits for 6 slots, the second for 5.
            reason: row
                .answer
                .reason
                .replace(|letter: char| letter.is_ascii_digit(), ""),
        }
    }
}

/// Returns the groups, newest first; the entries of a group are in order of time.
pub fn grouped<'row>(rows: &[&'row LedgerRow]) -> Vec<Vec<&'row LedgerRow>> {
    let mut sorted = rows.to_vec();
    sorted.sort_by_key(|row| row.answer.requested_micros);
    let mut groups: Vec<Vec<&LedgerRow>> = Vec::new();
    let mut newest: HashMap<GroupKey<'_>, usize> = HashMap::new();
    for row in sorted {
        let begun = |at: usize| groups[at][0].answer.requested_micros;
        let is_near = |at: &usize| row.answer.requested_micros - begun(*at) <= GROUP_MICROS;
        let key = GroupKey::of(row);
        match newest.get(&key).copied().filter(is_near) {
            Some(at) => groups[at].push(row),
            None => {
                newest.insert(key, groups.len());
                groups.push(vec![row]);
            }
        }
    }
    groups.reverse();
    groups
}

/// Returns the entries of the group with this ID, in order of time; none if there is no such group.
pub fn entries_of<'row>(rows: &[&'row LedgerRow], group: &str) -> Vec<&'row LedgerRow> {
    grouped(rows)
        .into_iter()
        .find(|entries| id_of(entries) == group)
        .unwrap_or_default()
}

fn id_of(entries: &[&LedgerRow]) -> String {
    let first = &entries[0].answer;
    format!("{}@{}", first.attempt, first.requested_micros)
}

impl GroupAnswer {
    /// Computes the groups of entries, newest first. `find` returns a job that is still known.
    pub fn all_of<'job>(
        rows: &[&LedgerRow],
        find: impl Fn(JobId) -> Option<&'job JobSummary>,
    ) -> Vec<GroupAnswer> {
        grouped(rows)
            .iter()
            .map(|entries| GroupAnswer::of(entries, &find))
            .collect()
    }

    fn of<'job>(
        entries: &[&LedgerRow],
        find: impl Fn(JobId) -> Option<&'job JobSummary>,
    ) -> GroupAnswer {
        let first = entries[0];
        let last = entries[entries.len() - 1];
        let mut ends = BTreeMap::new();
        for row in entries {
            *ends.entry(row.end().to_owned()).or_insert(0) += 1;
        }
        let sum = |of: fn(&LedgerRow) -> u64| entries.iter().map(|row| of(row)).sum();
        let beneficiary = first.beneficiary.and_then(&find);

        GroupAnswer {
            group: id_of(entries),
            requested_micros: first.answer.requested_micros,
            until_micros: last.answer.requested_micros,
            count: entries.len() as u64,
            taken: sum(|row| u64::from(row.is_taken)),
            victim: first.victim.to_string(),
            victim_name: find(first.victim).map(|job| job.name.clone()),
            victim_queue: first.victim_queue.clone(),
            beneficiary: first.answer.beneficiary.clone(),
            beneficiary_name: beneficiary.map(|job| job.name.clone()),
            beneficiary_queue: beneficiary.map(|job| job.queue.clone()),
            primitive: first.answer.primitive.clone(),
            by: first.answer.by.clone(),
            reason: first.answer.reason.clone(),
            ends,
            free_micros: entries.iter().filter_map(|row| row.free_micros()).max(),
            slot_millis: sum(|row| row.slot_millis),
            work_saved_millis: sum(|row| row.answer.work_saved_millis),
            work_lost_millis: sum(|row| row.answer.work_lost_millis),
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Primitive;
    use napreduce_protocol::{JobPhase, PreemptionEnd, PreemptionSummary};

    use super::super::samples::{job, preempted};
    use super::*;

    /// A change to a sample request.
    type Change = fn(&mut PreemptionSummary);

    /// Requests at these times in milliseconds, each changed by its function.
    fn rows(requests: &[(u64, Change)]) -> Vec<LedgerRow> {
        let suspended = |at| (at, Primitive::Suspend, Some(PreemptionEnd::Suspended));
        let mut detail = preempted(
            &requests
                .iter()
                .map(|(at, _)| suspended(*at))
                .collect::<Vec<_>>(),
        );
        for (known, (_, change)) in detail.preemptions.iter_mut().zip(requests) {
            known.reason = "job_0009 waits for 6 map slots".to_owned();
            change(known);
        }
        LedgerRow::all_of(&detail, 1_790_000_009_000_000)
    }

    /// The tasks of each group, by their number.
    fn indices(rows: &[LedgerRow]) -> Vec<Vec<usize>> {
        let of = |entries: &Vec<&LedgerRow>| {
            let at = |row: &&LedgerRow| {
                rows.iter()
                    .position(|known| std::ptr::eq(known, *row))
                    .expect("a row")
            };
            entries.iter().map(at).collect()
        };
        grouped(&rows.iter().collect::<Vec<_>>())
            .iter()
            .map(of)
            .collect()
    }

    #[test]
    fn group_has_same_jobs_scheduler_primitive_and_reason() {
        let same: Change = |_| {};
        let cases: [(&str, Change, &[&[usize]]); 7] = [
            ("nothing differs", same, &[&[0, 1]]),
            (
                "a number",
                |known| known.reason = "job_0009 waits for 5 map slots".to_owned(),
                &[&[0, 1]],
            ),
            (
                "another end",
                |known| known.end = Some(PreemptionEnd::Finished),
                &[&[0, 1]],
            ),
            (
                "another reason",
                |known| known.reason = "the worker is full".to_owned(),
                &[&[1], &[0]],
            ),
            (
                "another beneficiary",
                |known| known.beneficiary = Some(JobId(8)),
                &[&[1], &[0]],
            ),
            (
                "another scheduler",
                |known| known.by = "operator".to_owned(),
                &[&[1], &[0]],
            ),
            (
                "another primitive",
                |known| known.primitive = Primitive::Kill,
                &[&[1], &[0]],
            ),
        ];
        for (what, change, expected) in cases {
            assert_eq!(
                indices(&rows(&[(0, same), (10, change)])),
                expected,
                "{what}"
            );
        }
    }

    #[test]
    fn group_lasts_a_second_from_its_first_request() {
        let at = |times: &[u64]| {
            let requests: Vec<(u64, Change)> =
                times.iter().map(|at| (*at, (|_| {}) as Change)).collect();
            indices(&rows(&requests))
        };
        assert_eq!(at(&[0, 600, 1_000]), [vec![0, 1, 2]]);
        assert_eq!(
            at(&[0, 600, 1_001]),
            [vec![2], vec![0, 1]],
            "not a chain of requests"
        );
        assert_eq!(
            at(&[5_000, 0, 5_100]),
            [vec![0, 2], vec![1]],
            "in any order"
        );
        assert_eq!(at(&[]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn groups_of_other_jobs_may_interleave() {
        let other: Change = |known| known.beneficiary = Some(JobId(8));
        let rows = rows(&[(0, |_| {}), (1, other), (2, |_| {}), (3, other)]);
        assert_eq!(indices(&rows), [vec![1, 3], vec![0, 2]]);
    }

    #[test]
    fn group_sums_its_entries() {
        let rows = rows(&[
            (0, |_| {}),
            (20, |known| {
                known.freed_micros = known.freed_micros.map(|freed| freed + 16_000)
            }),
            (40, |known| (known.end, known.freed_micros) = (None, None)),
        ]);
        let rows: Vec<&LedgerRow> = rows.iter().collect();
        let jobs = [job(7, JobPhase::Succeeded, 0, 0)];
        let find = |id: JobId| jobs.iter().find(|job| job.job == id);
        let groups = GroupAnswer::all_of(&rows, find);
        let [group] = groups.as_slice() else {
            panic!("{groups:?}")
        };
        assert_eq!(
            (group.count, group.taken, group.free_micros),
            (3, 2, Some(26_000))
        );
        assert_eq!((group.work_saved_millis, group.work_lost_millis), (120, 0));
        assert_eq!(
            group.ends,
            BTreeMap::from([("open".to_owned(), 1), ("suspended".to_owned(), 2)])
        );
        assert_eq!(
            (group.victim.as_str(), group.victim_name.as_deref()),
            ("job_0007", Some("wordcount"))
        );
        // The beneficiary is no longer known.
        assert_eq!(
            (
                group.beneficiary.as_deref(),
                group.beneficiary_name.as_deref()
            ),
            (Some("job_0009"), None)
        );
        assert_eq!(group.until_micros - group.requested_micros, 40_000);
        assert_eq!(entries_of(&rows, &group.group).len(), 3);
        assert_eq!(entries_of(&rows, "job_0007_m_0001.1@0").len(), 0);
    }
}
