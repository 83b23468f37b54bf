//! How long each task of a job that succeeded has to work, found from what happened to its attempts.
//!
//! Owns the rule: the time from launch to end of the last attempt that did the task, without the time in
//! which it was suspended, and with the work of earlier attempts that a checkpoint saved. Of a reduce only
//! what came after the last map of its job counts, since before that it waited for maps; fetching is part of
//! it. Starting a process is part of every length. Does not own what is made of it.

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, Span, TaskId, TaskKind};
use napreduce_protocol::{AttemptSummary, JobDetail, PreemptionEnd, RestoreSummary};
use thiserror::Error;

/// The lengths of all tasks of a job, each kind in the order of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskLengths {
    pub maps: Vec<Span>,
    pub reduces: Vec<Span>,
}

/// A job that succeeded has a task that nothing is known to have done.
#[derive(Debug, Error)]
#[error("no attempt that did {0} is recorded")]
pub struct LengthsError(TaskId);

impl TaskLengths {
    /// Those of a job.
    ///
    /// # Errors
    /// When no attempt did one of its tasks, as is so in jobs that did not succeed.
    pub fn of(detail: &JobDetail) -> Result<TaskLengths, LengthsError> {
        let ledger = Ledger::of(detail);
        let progress = detail.summary.progress;
        Ok(TaskLengths {
            maps: ledger.all(TaskKind::Map, progress.map.tasks)?,
            reduces: ledger.all(TaskKind::Reduce, progress.reduce.tasks)?,
        })
    }
}

/// From when to when, in microseconds.
type Interval = (u64, u64);

/// What is known of a job's attempts, by what it is looked for.
struct Ledger<'a> {
    job: napreduce_engine::JobId,
    attempts: BTreeMap<AttemptId, &'a AttemptSummary>,
    /// The last attempt that did each task.
    done: BTreeMap<(TaskKind, u32), AttemptId>,
    naps: BTreeMap<AttemptId, Vec<Interval>>,
    restores: BTreeMap<AttemptId, &'a RestoreSummary>,
    /// When every map was done for the first time.
    maps_end: u64,
}

impl<'a> Ledger<'a> {
    fn of(detail: &'a JobDetail) -> Ledger<'a> {
        let (mut attempts, mut done) = (BTreeMap::new(), BTreeMap::new());
        let mut first_done: BTreeMap<u32, u64> = BTreeMap::new();
        for attempt in &detail.attempts {
            let (id, task) = (attempt.attempt, attempt.attempt.task);
            attempts.insert(id, attempt);
            if attempt.end.as_deref() == Some("done") {
                done.insert((task.kind, task.index), id);
                if task.kind == TaskKind::Map {
                    let end = interval(attempt).1;
                    first_done.entry(task.index).and_modify(|first| *first = end.min(*first)).or_insert(end);
                }
            }
        }
        let restores = detail.restores.iter().filter(|restore| restore.refused.is_none());
        Ledger {
            job: detail.summary.job,
            attempts,
            done,
            naps: naps(detail),
            restores: restores.map(|restore| (restore.attempt, restore)).collect(),
            maps_end: first_done.into_values().max().unwrap_or(0),
        }
    }

    /// The lengths of so many tasks of a kind, or of more if more were done.
    fn all(&self, kind: TaskKind, tasks: u32) -> Result<Vec<Span>, LengthsError> {
        let last = self.done.range((kind, 0)..=(kind, u32::MAX)).next_back();
        let beyond = last.map_or(0, |((_, index), _)| index.saturating_add(1));
        let missing = |index| LengthsError(TaskId { job: self.job, kind, index });
        // A number that nothing stands behind must not make this long.
        if (tasks.max(beyond) as usize) > self.done.len() {
            let gap = (0..).find(|index| !self.done.contains_key(&(kind, *index)));
            return Err(missing(gap.unwrap_or(0)));
        }
        (0..tasks.max(beyond))
            .map(|index| {
                self.done.get(&(kind, index)).map(|done| self.length(*done)).ok_or_else(|| missing(index))
            })
            .collect()
    }

    fn length(&self, done: AttemptId) -> Span {
        let from = if done.task.kind == TaskKind::Reduce { self.maps_end } else { 0 };
        let saved = match self.restores.get(&done) {
            Some(restore) => self.before(restore, from).min(restore.work_saved_millis.saturating_mul(1_000)),
            None => 0,
        };
        Span(self.active(done, from).saturating_add(saved))
    }

    /// What the attempts before a restored one worked, the one its checkpoint came from and those
    /// before that.
    fn before(&self, restore: &RestoreSummary, from: u64) -> u64 {
        let (mut all, mut next) = (0_u64, Some(restore));
        // Each is older than the one before, whatever a damaged ledger says.
        while let Some(restore) = next.take() {
            all = all.saturating_add(self.active(restore.from, from));
            next = self.restores.get(&restore.from).copied().filter(|older| older.from < restore.from);
        }
        all
    }

    /// How long an attempt was at work from then on.
    fn active(&self, id: AttemptId, from: u64) -> u64 {
        let Some(attempt) = self.attempts.get(&id) else { return 0 };
        let (launched, ended) = interval(attempt);
        let begin = launched.max(from);
        let (mut active, mut at) = (0_u64, begin);
        for (slept, woke) in self.naps.get(&id).into_iter().flatten() {
            active = active.saturating_add((*slept).min(ended).saturating_sub(at));
            at = at.max(*woke);
        }
        active.saturating_add(ended.saturating_sub(at))
    }
}

fn interval(attempt: &AttemptSummary) -> Interval {
    let micros = |millis: u64| millis.saturating_mul(1_000);
    let launched = micros(attempt.launched_millis);
    (launched, attempt.ended_millis.map_or(launched, micros).max(launched))
}

/// When each attempt was suspended, in the order of time.
fn naps(detail: &JobDetail) -> BTreeMap<AttemptId, Vec<Interval>> {
    let mut resumed: BTreeMap<AttemptId, Vec<u64>> = BTreeMap::new();
    for resume in &detail.resumes {
        resumed.entry(resume.attempt).or_default().extend(resume.resumed_micros);
    }
    let mut naps: BTreeMap<AttemptId, Vec<Interval>> = BTreeMap::new();
    let suspended = detail.preemptions.iter().filter(|one| one.end == Some(PreemptionEnd::Suspended));
    for one in suspended {
        let Some(slept) = one.freed_micros else { continue };
        let woke = resumed.get(&one.attempt).and_then(|all| all.iter().copied().find(|at| *at >= slept));
        // One that was ended while it was suspended was so until its end.
        let woke = woke.unwrap_or(u64::MAX);
        naps.entry(one.attempt).or_default().push((slept, woke));
    }
    naps.values_mut().for_each(|all| all.sort_unstable());
    naps
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
        })
    }

    fn id(kind: TaskKind, index: u32, number: u32) -> AttemptId {
        AttemptId { task: TaskId { job: JobId(7), kind, index }, number }
    }

    fn map(index: u32, number: u32) -> AttemptId {
        id(TaskKind::Map, index, number)
    }

    fn reduce(index: u32, number: u32) -> AttemptId {
        id(TaskKind::Reduce, index, number)
    }

    impl Ran for JobDetail {
        fn ran(mut self, attempt: AttemptId, launched_millis: u64, ended: u64, end: &str) -> JobDetail {
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

        fn napped(mut self, attempt: AttemptId, from: u64, until: u64) -> JobDetail {
            let wanted = PreemptionSummary::wanted(0, attempt, WorkerId(1), Primitive::Suspend);
            let end = Some(PreemptionEnd::Suspended);
            self.preemptions.push(PreemptionSummary { freed_micros: Some(from * 1_000), end, ..wanted });
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

        fn restored(mut self, attempt: AttemptId, from: AttemptId, work_saved_millis: u64) -> JobDetail {
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

    trait Ran {
        fn ran(self, attempt: AttemptId, launched_millis: u64, ended: u64, end: &str) -> JobDetail;
        fn napped(self, attempt: AttemptId, from: u64, until: u64) -> JobDetail;
        fn restored(self, attempt: AttemptId, from: AttemptId, work_saved_millis: u64) -> JobDetail;
    }

    #[track_caller]
    fn check(detail: &JobDetail, maps: &[u64], reduces: &[u64]) {
        let spans = |all: &[u64]| all.iter().map(|millis| Span::from_millis(*millis)).collect::<Vec<_>>();
        let lengths = TaskLengths::of(detail).expect("every task was done");
        assert_eq!(lengths, TaskLengths { maps: spans(maps), reduces: spans(reduces) });
    }

    #[test]
    fn a_task_is_as_long_as_its_last_attempt_that_did_it() {
        let detail = detail()
            .ran(map(0, 1), 0, 90, "failed: no such file")
            .ran(map(1, 1), 0, 30, "done")
            .ran(map(0, 2), 100, 150, "done")
            .ran(map(1, 2), 160, 180, "done");
        check(&detail, &[50, 20], &[]);
    }

    #[test]
    fn naps_do_not_count() {
        let detail = detail().ran(map(0, 1), 0, 100, "done").napped(map(0, 1), 10, 30);
        check(&detail.napped(map(0, 1), 50, 90), &[40], &[]);
    }

    #[test]
    fn a_reduce_counts_from_the_last_map_on() {
        let job = detail().ran(map(0, 1), 0, 100, "done").ran(reduce(0, 1), 20, 130, "done");
        let job = job.ran(reduce(1, 1), 110, 150, "done").ran(reduce(2, 1), 20, 200, "done");
        check(&job.napped(reduce(2, 1), 60, 140), &[100], &[30, 40, 60]);
    }

    #[test]
    fn what_a_checkpoint_saved_counts_and_what_was_lost_does_not() {
        let job = detail().ran(map(0, 1), 0, 50, "checkpointed").ran(map(0, 2), 80, 100, "done");
        check(&job.clone().restored(map(0, 2), map(0, 1), 45), &[65], &[]);
        check(&job.restored(map(0, 2), map(0, 1), 1_000), &[70], &[]);
        let waited = detail().ran(map(0, 1), 0, 100, "done").ran(reduce(0, 1), 20, 110, "checkpointed").ran(
            reduce(0, 2),
            200,
            230,
            "done",
        );
        check(&waited.restored(reduce(0, 2), reduce(0, 1), 90), &[100], &[40]);
    }

    #[test]
    fn a_task_that_nothing_did_is_named() {
        let mut job = detail().ran(map(0, 1), 0, 50, "done").ran(map(1, 1), 0, 50, "killed");
        job.summary.progress.map.tasks = 2;
        let error = TaskLengths::of(&job).expect_err("it lacks one");
        assert_eq!(error.to_string(), "no attempt that did job_0007_m_0001 is recorded");
        job.summary.progress.map.tasks = u32::MAX;
        assert_eq!(TaskLengths::of(&job).expect_err("it lacks many").to_string(), error.to_string());
    }
}
