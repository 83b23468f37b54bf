//! Task lengths of a succeeded job, derived from its attempts.
//!
//! A length is the time from launch to end of the last successful attempt, without suspensions, plus the work of
//! earlier attempts that a checkpoint saved. For a reduce only the time after the job's last map counts, since it waits
//! for maps before that. Process start and fetching are included.

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, Span, TaskId, TaskKind};
use napreduce_protocol::{AttemptSummary, JobDetail, PreemptionEnd, RestoreSummary};
use thiserror::Error;

/// The lengths of all tasks of a job, by task number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskLengths {
    pub maps: Vec<Span>,
    pub reduces: Vec<Span>,
}

/// A task without a successful attempt.
#[derive(Debug, Error)]
#[error("no successful attempt of {0} is recorded")]
pub struct LengthsError(TaskId);

impl TaskLengths {
    /// Computes the lengths of a job's tasks.
    ///
    /// # Errors
    /// Fails if a task has no successful attempt, as in jobs that did not succeed.
    pub fn of(detail: &JobDetail) -> Result<TaskLengths, LengthsError> {
        let ledger = Ledger::new(detail);
        let progress = detail.summary.progress;
        Ok(TaskLengths {
            maps: ledger.all(TaskKind::Map, progress.map.tasks)?,
            reduces: ledger.all(TaskKind::Reduce, progress.reduce.tasks)?,
        })
    }
}

/// Start and end, in microseconds.
pub(super) type Interval = (u64, u64);

/// The attempts of a job, indexed.
struct Ledger<'a> {
    job: napreduce_engine::JobId,
    attempts: BTreeMap<AttemptId, &'a AttemptSummary>,
    /// The last successful attempt of each task.
    done: BTreeMap<(TaskKind, u32), AttemptId>,
    suspensions: BTreeMap<AttemptId, Vec<Interval>>,
    restores: BTreeMap<AttemptId, &'a RestoreSummary>,
    /// The time at which every map had succeeded once.
    maps_end: u64,
}

impl<'a> Ledger<'a> {
    fn new(detail: &'a JobDetail) -> Ledger<'a> {
        let mut attempts = BTreeMap::new();
        let mut done = BTreeMap::new();
        let mut first_done: BTreeMap<u32, u64> = BTreeMap::new();
        for attempt in &detail.attempts {
            let id = attempt.attempt;
            let task = attempt.attempt.task;
            attempts.insert(id, attempt);
            if attempt.has_succeeded() {
                done.insert((task.kind, task.index), id);
                if task.kind == TaskKind::Map {
                    let end = interval(attempt).1;
                    first_done
                        .entry(task.index)
                        .and_modify(|first| *first = end.min(*first))
                        .or_insert(end);
                }
            }
        }
        let restores = detail
            .restores
            .iter()
            .filter(|restore| restore.refused.is_none());
        Ledger {
            job: detail.summary.job,
            attempts,
            done,
            suspensions: suspensions(detail),
            restores: restores.map(|restore| (restore.attempt, restore)).collect(),
            maps_end: first_done.into_values().max().unwrap_or(0),
        }
    }

    /// Returns the lengths of `tasks` tasks, or of more if more succeeded.
    fn all(&self, kind: TaskKind, tasks: u32) -> Result<Vec<Span>, LengthsError> {
        let last = self.done.range((kind, 0)..=(kind, u32::MAX)).next_back();
        let beyond = last.map_or(0, |((_, index), _)| index.saturating_add(1));
        let missing = |index| {
            LengthsError(TaskId {
                job: self.job,
                kind,
                index,
            })
        };
        // A wrong number in the file must not cause a long loop.
        if (tasks.max(beyond) as usize) > self.done.len() {
            let gap = (0..).find(|index| !self.done.contains_key(&(kind, *index)));
            return Err(missing(gap.unwrap_or(0)));
        }
        (0..tasks.max(beyond))
            .map(|index| {
                self.done
                    .get(&(kind, index))
                    .map(|done| self.length(*done))
                    .ok_or_else(|| missing(index))
            })
            .collect()
    }

    fn length(&self, done: AttemptId) -> Span {
        let from = if done.task.kind == TaskKind::Reduce {
            self.maps_end
        } else {
            0
        };
        let saved = match self.restores.get(&done) {
            Some(restore) => self
                .before(restore, from)
                .min(restore.work_saved_millis.saturating_mul(1_000)),
            None => 0,
        };
        Span(self.active(done, from).saturating_add(saved))
    }

    /// Returns the work of the attempts before a restored one, along its chain of checkpoints.
    fn before(&self, restore: &RestoreSummary, from: u64) -> u64 {
        let mut all = 0_u64;
        let mut next = Some(restore);
        // Attempt numbers must decrease, so that a damaged ledger cannot cause an endless loop.
        while let Some(restore) = next.take() {
            all = all.saturating_add(self.active(restore.from, from));
            next = self
                .restores
                .get(&restore.from)
                .copied()
                .filter(|older| older.from < restore.from);
        }
        all
    }

    /// Returns how long an attempt was running after `from`.
    fn active(&self, id: AttemptId, from: u64) -> u64 {
        let Some(attempt) = self.attempts.get(&id) else {
            return 0;
        };
        let (launched, ended) = interval(attempt);
        let begin = launched.max(from);
        let mut active = 0_u64;
        let mut at = begin;
        for (suspended, resumed) in self.suspensions.get(&id).into_iter().flatten() {
            active = active.saturating_add((*suspended).min(ended).saturating_sub(at));
            at = at.max(*resumed);
        }
        active.saturating_add(ended.saturating_sub(at))
    }
}

fn interval(attempt: &AttemptSummary) -> Interval {
    let micros = |millis: u64| millis.saturating_mul(1_000);
    let launched = micros(attempt.launched_millis);
    (
        launched,
        attempt.ended_millis.map_or(launched, micros).max(launched),
    )
}

/// Returns the suspensions of each attempt, ordered by time.
pub(super) fn suspensions(detail: &JobDetail) -> BTreeMap<AttemptId, Vec<Interval>> {
    let mut resumed: BTreeMap<AttemptId, Vec<u64>> = BTreeMap::new();
    for resume in &detail.resumes {
        resumed
            .entry(resume.attempt)
            .or_default()
            .extend(resume.resumed_micros);
    }
    let mut suspensions: BTreeMap<AttemptId, Vec<Interval>> = BTreeMap::new();
    let suspended = detail
        .preemptions
        .iter()
        .filter(|one| one.end == Some(PreemptionEnd::Suspended));
    for one in suspended {
        let Some(freed) = one.freed_micros else {
            continue;
        };
        let resumed = resumed
            .get(&one.attempt)
            .and_then(|all| all.iter().copied().find(|at| *at >= freed));
        // An attempt that was not resumed stayed suspended until its end.
        let resumed = resumed.unwrap_or(u64::MAX);
        suspensions
            .entry(one.attempt)
            .or_default()
            .push((freed, resumed));
    }
    for all in suspensions.values_mut() {
        all.sort_unstable();
    }
    suspensions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use napreduce_engine::{JobId, Primitive, WorkerId};
    use napreduce_protocol::{JobPhase, JobProgress, JobSummary, PreemptionSummary, ResumeSummary};

    fn detail() -> JobDetail {
        JobDetail::new(JobSummary {
            job: JobId(7),
            name: "count".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Succeeded,
            reason: None,
            submitted_millis: 0,
            ended_millis: None,
            progress: JobProgress::default(),
            output: PathBuf::new(),
            unrecorded: None,
        })
    }

    fn id(kind: TaskKind, index: u32, number: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(7),
                kind,
                index,
            },
            number,
        }
    }

    fn map(index: u32, number: u32) -> AttemptId {
        id(TaskKind::Map, index, number)
    }

    fn reduce(index: u32, number: u32) -> AttemptId {
        id(TaskKind::Reduce, index, number)
    }

    impl WithAttempts for JobDetail {
        fn ran(
            mut self,
            attempt: AttemptId,
            launched_millis: u64,
            ended: u64,
            end: &str,
        ) -> JobDetail {
            self.attempts.push(AttemptSummary {
                attempt,
                worker: WorkerId(1),
                worker_name: "w".to_owned(),
                launched_millis,
                ended_millis: Some(ended),
                end: Some(end.to_owned()),
                figures: None,
                moments: None,
            });
            self
        }

        fn suspended(mut self, attempt: AttemptId, from: u64, until: u64) -> JobDetail {
            let wanted = PreemptionSummary::wanted(0, attempt, WorkerId(1), Primitive::Suspend);
            let end = Some(PreemptionEnd::Suspended);
            self.preemptions.push(PreemptionSummary {
                freed_micros: Some(from * 1_000),
                end,
                ..wanted
            });
            self.resumes.push(ResumeSummary {
                attempt,
                worker: WorkerId(1),
                ordered_micros: until * 1_000,
                resumed_micros: Some(until * 1_000),
                worker_micros: None,
                suspended_millis: until - from,
                swapped_bytes: 0,
                swapped_in_bytes: 0,
            });
            self
        }

        fn restored(
            mut self,
            attempt: AttemptId,
            from: AttemptId,
            work_saved_millis: u64,
        ) -> JobDetail {
            self.restores.push(RestoreSummary {
                attempt,
                from,
                worker: WorkerId(1),
                from_worker: None,
                ordered_micros: 0,
                restored_micros: None,
                worker_micros: None,
                work_saved_millis,
                refused: None,
            });
            self
        }
    }

    trait WithAttempts {
        fn ran(self, attempt: AttemptId, launched_millis: u64, ended: u64, end: &str) -> JobDetail;
        fn suspended(self, attempt: AttemptId, from: u64, until: u64) -> JobDetail;
        fn restored(self, attempt: AttemptId, from: AttemptId, work_saved_millis: u64)
        -> JobDetail;
    }

    #[track_caller]
    fn check(detail: &JobDetail, maps: &[u64], reduces: &[u64]) {
        let spans = |all: &[u64]| {
            all.iter()
                .map(|millis| Span::from_millis(*millis))
                .collect::<Vec<_>>()
        };
        let lengths = TaskLengths::of(detail).expect("every task succeeded");
        assert_eq!(
            lengths,
            TaskLengths {
                maps: spans(maps),
                reduces: spans(reduces)
            }
        );
    }

    #[test]
    fn length_is_that_of_the_last_successful_attempt() {
        let detail = detail()
            .ran(map(0, 1), 0, 90, "failed: no such file")
            .ran(map(1, 1), 0, 30, "succeeded")
            .ran(map(0, 2), 100, 150, "succeeded")
            .ran(map(1, 2), 160, 180, "succeeded");
        check(&detail, &[50, 20], &[]);
    }

    #[test]
    fn suspensions_do_not_count() {
        let detail = detail()
            .ran(map(0, 1), 0, 100, "succeeded")
            .suspended(map(0, 1), 10, 30);
        check(&detail.suspended(map(0, 1), 50, 90), &[40], &[]);
    }

    #[test]
    fn reduce_length_starts_after_the_last_map() {
        let job =
            detail()
                .ran(map(0, 1), 0, 100, "succeeded")
                .ran(reduce(0, 1), 20, 130, "succeeded");
        let job =
            job.ran(reduce(1, 1), 110, 150, "succeeded")
                .ran(reduce(2, 1), 20, 200, "succeeded");
        check(&job.suspended(reduce(2, 1), 60, 140), &[100], &[30, 40, 60]);
    }

    #[test]
    fn checkpointed_work_counts_and_lost_work_does_not() {
        let job =
            detail()
                .ran(map(0, 1), 0, 50, "checkpointed")
                .ran(map(0, 2), 80, 100, "succeeded");
        check(&job.clone().restored(map(0, 2), map(0, 1), 45), &[65], &[]);
        check(&job.restored(map(0, 2), map(0, 1), 1_000), &[70], &[]);
        let waited = detail()
            .ran(map(0, 1), 0, 100, "succeeded")
            .ran(reduce(0, 1), 20, 110, "checkpointed")
            .ran(reduce(0, 2), 200, 230, "succeeded");
        check(
            &waited.restored(reduce(0, 2), reduce(0, 1), 90),
            &[100],
            &[40],
        );
    }

    #[test]
    fn task_without_success_is_named() {
        let mut job = detail()
            .ran(map(0, 1), 0, 50, "succeeded")
            .ran(map(1, 1), 0, 50, "killed");
        job.summary.progress.map.tasks = 2;
        let error = TaskLengths::of(&job).expect_err("one task is missing");
        assert_eq!(
            error.to_string(),
            "no successful attempt of job_0007_m_0001 is recorded"
        );
        job.summary.progress.map.tasks = u32::MAX;
        assert_eq!(
            TaskLengths::of(&job)
                .expect_err("many tasks are missing")
                .to_string(),
            error.to_string()
        );
    }
}
