//! Owns what a job's history says of its tasks: when they had slots, and what its reduces waited. All of it
//! is the coordinator's word; nothing is read off the tasks. Times in microseconds since 1970.

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_live::{AttemptSummary, JobDetail, PreemptionEnd};

/// What a coordinator says of the attempt that has done its task.
const DONE: &str = "done";

/// Of one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotTimes {
    /// When its first attempt was launched.
    pub started: Option<u64>,
    /// What its reduces were without a slot after its last map, all of them together; none without reduces.
    pub reduces_waited: Option<u64>,
    /// The slot time of its reduces, and what of it was before its last map.
    pub reduces_held: u64,
    pub reduces_idle: u64,
    pub suspends: u64,
    pub checkpoints: u64,
    pub kills: u64,
    /// Work that was lost.
    pub wasted: u64,
}

impl SlotTimes {
    /// From the history of a job that has succeeded.
    pub fn of(detail: &JobDetail) -> SlotTimes {
        let launched = detail.attempts.iter().map(|one| one.launched_millis * 1_000);
        let count = |end| detail.preemptions.iter().filter(|one| one.end == Some(end)).count() as u64;
        let lost: u64 = detail.preemptions.iter().map(|one| one.work_lost_millis).sum();
        let mut times = SlotTimes {
            started: launched.min(),
            suspends: count(PreemptionEnd::Suspended),
            checkpoints: count(PreemptionEnd::Checkpointed),
            kills: count(PreemptionEnd::Killed),
            wasted: lost * 1_000,
            ..SlotTimes::default()
        };
        let (done, held) = (done_at(detail), held(detail));
        let maps = done.iter().filter(|(task, _)| task.kind == TaskKind::Map).map(|(_, at)| *at);
        let maps_end = maps.max().unwrap_or(detail.summary.submitted_millis * 1_000);
        for (task, at) in done.iter().filter(|(task, _)| task.kind == TaskKind::Reduce) {
            let of_it = held.iter().filter(|(attempt, ..)| attempt.task == *task);
            let (mut before, mut after) = (0, 0);
            for (_, from, to) in of_it {
                before += maps_end.min(*to).saturating_sub(*from);
                after += to.saturating_sub(maps_end.max(*from));
            }
            times.reduces_held += before + after;
            times.reduces_idle += before;
            let waited = at.saturating_sub(maps_end).saturating_sub(after);
            times.reduces_waited = Some(times.reduces_waited.unwrap_or(0) + waited);
        }
        times
    }
}

/// When each task was first done.
fn done_at(detail: &JobDetail) -> BTreeMap<TaskId, u64> {
    let mut done = BTreeMap::new();
    for attempt in detail.attempts.iter().filter(|one| one.end.as_deref() == Some(DONE)) {
        if let Some(at) = attempt.ended_millis {
            done.entry(attempt.attempt.task).or_insert(at * 1_000);
        }
    }
    done
}

/// Every stretch of time in which an attempt had a slot.
fn held(detail: &JobDetail) -> Vec<(AttemptId, u64, u64)> {
    detail.attempts.iter().flat_map(|attempt| of_attempt(detail, attempt)).collect()
}

fn of_attempt(detail: &JobDetail, attempt: &AttemptSummary) -> Vec<(AttemptId, u64, u64)> {
    let (id, mut from) = (attempt.attempt, attempt.launched_millis * 1_000);
    let end = attempt.ended_millis.or(detail.summary.ended_millis).unwrap_or(attempt.launched_millis) * 1_000;
    let mut stretches = Vec::new();
    let suspended = detail
        .preemptions
        .iter()
        .filter(|one| one.attempt == id && one.end == Some(PreemptionEnd::Suspended));
    for freed in suspended.filter_map(|one| one.freed_micros) {
        stretches.push((id, from, freed.clamp(from, end.max(from))));
        let resumed = detail.resumes.iter().filter(|one| one.attempt == id && one.ordered_micros >= freed);
        match resumed.map(|one| one.ordered_micros).min() {
            Some(at) => from = at,
            None => return stretches,
        }
    }
    stretches.push((id, from, end.max(from)));
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::{JobId, Primitive, WorkerId};
    use napreduce_live::{JobPhase, JobProgress, JobSummary, PreemptionSummary, ResumeSummary};

    fn attempt(kind: TaskKind, index: u32, number: u32) -> AttemptId {
        AttemptId { task: TaskId { job: JobId(1), kind, index }, number }
    }

    fn ran(id: AttemptId, from: u64, to: u64, end: &str) -> AttemptSummary {
        AttemptSummary {
            attempt: id,
            worker: WorkerId(1),
            worker_name: "worker".to_owned(),
            launched_millis: from,
            ended_millis: Some(to),
            end: Some(end.to_owned()),
            figures: None,
            moments: None,
        }
    }

    fn preempted(
        id: AttemptId,
        freed_millis: u64,
        end: PreemptionEnd,
        lost_millis: u64,
    ) -> PreemptionSummary {
        let freed_micros = Some(freed_millis * 1_000);
        let wanted = PreemptionSummary::wanted(freed_millis * 1_000, id, WorkerId(1), Primitive::Suspend);
        PreemptionSummary { freed_micros, end: Some(end), work_lost_millis: lost_millis, ..wanted }
    }

    fn resumed(id: AttemptId, at_millis: u64) -> ResumeSummary {
        ResumeSummary {
            attempt: id,
            worker: WorkerId(1),
            ordered_micros: at_millis * 1_000,
            resumed_micros: None,
            worker_micros: None,
            suspended_millis: 0,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        }
    }

    fn detail(
        attempts: Vec<AttemptSummary>,
        preemptions: Vec<PreemptionSummary>,
        resumes: Vec<ResumeSummary>,
    ) -> JobDetail {
        let summary = JobSummary {
            job: JobId(1),
            name: "job".to_owned(),
            user: "user".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Succeeded,
            reason: None,
            submitted_millis: 100,
            ended_millis: Some(10_000),
            progress: JobProgress::default(),
            output: "out".into(),
        };
        JobDetail { attempts, preemptions, resumes, ..JobDetail::new(summary) }
    }

    #[test]
    fn a_reduce_that_waits_for_maps_is_idle_and_one_without_a_slot_waits() {
        let (map, early, late) =
            (attempt(TaskKind::Map, 0, 1), attempt(TaskKind::Reduce, 0, 1), attempt(TaskKind::Reduce, 1, 1));
        let attempts = vec![
            ran(map, 200, 1_000, "done"),
            ran(early, 400, 1_500, "done"),
            ran(late, 1_500, 2_100, "done"),
        ];
        let times = SlotTimes::of(&detail(attempts, Vec::new(), Vec::new()));
        assert_eq!(times.started, Some(200_000));
        assert_eq!((times.reduces_held, times.reduces_idle), (1_700_000, 600_000));
        assert_eq!(times.reduces_waited, Some(500_000));
    }

    #[test]
    fn a_suspended_reduce_has_no_slot_and_a_killed_one_has_lost_its_work() {
        let map = attempt(TaskKind::Map, 0, 1);
        let (first, second) = (attempt(TaskKind::Reduce, 0, 1), attempt(TaskKind::Reduce, 0, 2));
        let attempts = vec![
            ran(map, 200, 1_000, "done"),
            ran(first, 1_000, 3_000, "killed"),
            ran(second, 3_200, 4_000, "done"),
        ];
        let preemptions = vec![
            preempted(first, 1_400, PreemptionEnd::Suspended, 0),
            preempted(first, 3_000, PreemptionEnd::Killed, 1_100),
        ];
        let times = SlotTimes::of(&detail(attempts, preemptions, vec![resumed(first, 2_300)]));
        assert_eq!((times.suspends, times.checkpoints, times.kills), (1, 0, 1));
        // 1.0 to 1.4, 2.3 to 3.0, 3.2 to 4.0.
        assert_eq!((times.reduces_held, times.reduces_waited), (1_900_000, Some(1_100_000)));
        assert_eq!(times.wasted, 1_100_000);
    }

    #[test]
    fn a_job_without_reduces_has_no_wait() {
        let attempts = vec![ran(attempt(TaskKind::Map, 0, 1), 200, 1_000, "done")];
        assert_eq!(SlotTimes::of(&detail(attempts, Vec::new(), Vec::new())).reduces_waited, None);
    }
}
