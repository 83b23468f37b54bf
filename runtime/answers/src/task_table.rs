//! The table of a job's tasks: each task joined with its attempts, compared with the median of its kind.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_history::quantiles;
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, JobDetail, PreemptionEnd, TaskPhase, TaskSummary,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::filter::TextFilter;
use super::jobs::AttemptAnswer;
use super::tasks::TaskAnswer;

/// A task is slow if it took this many times the median of its kind.
const SLOW_FACTOR: u64 = 3;

/// A task in the table of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskRowAnswer {
    #[serde(flatten)]
    pub task: TaskAnswer,
    /// Of the successful attempt, else of a running one, else of the last one; so are the fields below.
    pub worker: Option<String>,
    pub worker_name: Option<String>,
    pub launched_millis: Option<u64>,
    pub ended_millis: Option<u64>,
    /// Up to now if it runs.
    pub took_millis: Option<u64>,
    /// Whether it took more than three times the median of its kind, naps excluded.
    pub is_slow: bool,
    /// Number of failed attempts.
    pub failures: u32,
    /// How often it was suspended or checkpointed.
    pub naps: u32,
    pub input_bytes: Option<u64>,
    pub output_bytes: Option<u64>,
    pub input_records: Option<u64>,
    pub output_records: Option<u64>,
    pub shuffle_millis: Option<u64>,
    pub processor_millis: Option<u64>,
    pub peak_memory_bytes: Option<u64>,
    /// Its attempts in order of launch.
    pub all_attempts: Vec<AttemptAnswer>,
}

/// Totals over the tasks of a job that match the filter `text`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskTotals {
    pub counts: TaskCounts,
    pub median_millis: TaskMedians,
}

/// Numbers of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskCounts {
    pub all: u32,
    pub running: u32,
    /// Tasks with a failed attempt.
    pub failed: u32,
    /// Tasks that took more than three times the median of their kind, naps excluded.
    pub slow: u32,
}

/// Median durations of the successful attempts of a job; `null` before the first success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskMedians {
    pub map: Option<u64>,
    pub reduce: Option<u64>,
}

impl TaskMedians {
    fn new(attempts: &[AttemptSummary]) -> TaskMedians {
        let median = |kind| {
            let done = attempts
                .iter()
                .filter(|one| one.attempt.task.kind == kind && one.has_succeeded());
            let took: Vec<u64> = done.filter_map(|one| took(one, None)).collect();
            let [_, _, median, ..] = quantiles(took.clone());
            (!took.is_empty()).then_some(median)
        };
        TaskMedians {
            map: median(TaskKind::Map),
            reduce: median(TaskKind::Reduce),
        }
    }

    fn of(self, kind: TaskKind) -> Option<u64> {
        match kind {
            TaskKind::Map => self.map,
            TaskKind::Reduce => self.reduce,
        }
    }
}

/// Conditions on listed tasks; an empty field matches everything.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    pub text: TextFilter,
    /// Any of these states.
    pub states: Vec<String>,
    /// Whether an attempt failed.
    pub is_failed: Option<bool>,
    pub is_slow: Option<bool>,
}

impl TaskFilter {
    fn matches_text(&self, row: &TaskRow) -> bool {
        self.text.takes_task(row.summary())
            || row
                .attempts()
                .any(|attempt| self.text.takes_attempt(attempt))
    }

    fn matches_rest(&self, row: &TaskRow) -> bool {
        let state = row.summary().state;
        (self.states.is_empty() || self.states.iter().any(|one| *one == state.to_string()))
            && self
                .is_failed
                .is_none_or(|is_failed| is_failed == (row.failures > 0))
            && self.is_slow.is_none_or(|is_slow| is_slow == row.is_slow)
    }
}

/// The tasks and attempts of a job.
#[derive(Debug)]
struct Joined {
    tasks: Arc<Vec<TaskSummary>>,
    job: Arc<JobDetail>,
    /// Indices in the attempts of the job, ordered by task and number.
    attempts: Vec<usize>,
}

/// A task with its attempts.
#[derive(Debug)]
pub struct TaskRow {
    joined: Arc<Joined>,
    /// Index in the tasks.
    task: usize,
    /// Range in the ordered attempts.
    attempts: Range<usize>,
    /// Index in the attempts of the job.
    main: Option<usize>,
    pub took_millis: Option<u64>,
    pub is_slow: bool,
    pub failures: u32,
    pub naps: u32,
}

impl TaskRow {
    /// Joins the tasks of a job with its attempts. Open attempts last until `until_millis`.
    pub fn all_of(
        tasks: Arc<Vec<TaskSummary>>,
        job: Arc<JobDetail>,
        until_millis: Option<u64>,
    ) -> (Vec<TaskRow>, TaskMedians) {
        let mut attempts: Vec<usize> = (0..job.attempts.len()).collect();
        attempts.sort_by_key(|at| job.attempts[*at].attempt);
        let mut of_task: HashMap<TaskId, Range<usize>> = HashMap::with_capacity(attempts.len());
        for (at, attempt) in attempts.iter().enumerate() {
            let task = job.attempts[*attempt].attempt.task;
            of_task.entry(task).or_insert(at..at).end = at + 1;
        }
        let medians = TaskMedians::new(&job.attempts);
        let naps = Naps::new(&job);
        let joined = Arc::new(Joined {
            tasks,
            job,
            attempts,
        });
        let row = |(task, summary): (usize, &TaskSummary)| {
            let attempts = of_task.get(&summary.task).cloned().unwrap_or_default();
            let row = TaskRow {
                joined: joined.clone(),
                task,
                attempts,
                main: None,
                took_millis: None,
                is_slow: false,
                failures: 0,
                naps: naps.count.get(&summary.task).copied().unwrap_or(0),
            };
            row.measured(medians.of(summary.task.kind), &naps, until_millis)
        };
        (joined.tasks.iter().enumerate().map(row).collect(), medians)
    }

    fn measured(mut self, median: Option<u64>, naps: &Naps, until_millis: Option<u64>) -> TaskRow {
        let all = &self.joined.job.attempts;
        let mine = &self.joined.attempts[self.attempts.clone()];
        let main = mine.iter().find(|at| all[**at].has_succeeded());
        let main = main
            .or_else(|| mine.iter().find(|at| all[**at].end.is_none()))
            .or(mine.last())
            .copied();
        self.failures = mine.iter().filter(|at| all[**at].has_failed()).count() as u32;
        self.took_millis = main.and_then(|at| took(&all[at], until_millis));
        if let (Some(main), Some(took), Some(median)) = (main, self.took_millis, median) {
            let asleep = naps.millis.get(&all[main].attempt).copied().unwrap_or(0);
            let has_slot = matches!(
                self.summary().state,
                TaskPhase::Running | TaskPhase::Succeeded
            );
            self.is_slow =
                has_slot && took.saturating_sub(asleep) > median.saturating_mul(SLOW_FACTOR);
        }
        self.main = main;
        self
    }

    /// Returns the rows that match a filter, and the totals of those that match its text.
    pub fn filtered<'row>(
        rows: &'row [TaskRow],
        filter: &TaskFilter,
    ) -> (Vec<&'row TaskRow>, TaskCounts) {
        let mut counts = TaskCounts::default();
        let mut found = Vec::new();
        for row in rows.iter().filter(|row| filter.matches_text(row)) {
            counts.all += 1;
            counts.running += u32::from(row.summary().state == TaskPhase::Running);
            counts.failed += u32::from(row.failures > 0);
            counts.slow += u32::from(row.is_slow);
            if filter.matches_rest(row) {
                found.push(row);
            }
        }
        (found, counts)
    }

    pub fn summary(&self) -> &TaskSummary {
        &self.joined.tasks[self.task]
    }

    /// The successful attempt, else a running one, else the last one.
    pub fn main(&self) -> Option<&AttemptSummary> {
        self.main.map(|at| &self.joined.job.attempts[at])
    }

    /// The figures of the successful attempt.
    pub fn figures(&self) -> Option<&AttemptFigures> {
        self.main()?.figures.as_ref()
    }

    fn attempts(&self) -> impl Iterator<Item = &AttemptSummary> {
        self.joined.attempts[self.attempts.clone()]
            .iter()
            .map(|at| &self.joined.job.attempts[*at])
    }

    /// The place of the row in the default order: running tasks, failed ones, those with failures, the rest.
    pub fn rank(&self) -> u8 {
        match self.summary().state {
            TaskPhase::Running => 0,
            TaskPhase::Failed => 1,
            _ if self.failures > 0 => 2,
            _ => 3,
        }
    }

    pub fn answer(&self) -> TaskRowAnswer {
        let main = self.main().map(AttemptAnswer::from);
        let all_attempts = self.attempts().map(AttemptAnswer::from).collect();
        let figure = |value: fn(&AttemptAnswer) -> Option<u64>| main.as_ref().and_then(value);
        TaskRowAnswer {
            task: self.summary().into(),
            worker: main.as_ref().map(|main| main.worker.clone()),
            worker_name: main.as_ref().map(|main| main.worker_name.clone()),
            launched_millis: main.as_ref().map(|main| main.launched_millis),
            ended_millis: figure(|main| main.ended_millis),
            took_millis: self.took_millis,
            is_slow: self.is_slow,
            failures: self.failures,
            naps: self.naps,
            input_bytes: figure(|main| main.input_bytes),
            output_bytes: figure(|main| main.output_bytes),
            input_records: figure(|main| main.input_records),
            output_records: figure(|main| main.output_records),
            shuffle_millis: figure(|main| main.shuffle_millis),
            processor_millis: figure(|main| main.processor_millis),
            peak_memory_bytes: figure(|main| main.peak_memory_bytes),
            all_attempts,
        }
    }
}

/// The suspensions and checkpoints of a job.
struct Naps {
    count: HashMap<TaskId, u32>,
    /// Time that attempts were suspended.
    millis: HashMap<AttemptId, u64>,
}

impl Naps {
    fn new(job: &JobDetail) -> Naps {
        let mut naps = Naps {
            count: HashMap::new(),
            millis: HashMap::new(),
        };
        for one in &job.preemptions {
            if matches!(
                one.end,
                Some(PreemptionEnd::Suspended | PreemptionEnd::Checkpointed)
            ) {
                *naps.count.entry(one.attempt.task).or_default() += 1;
                *naps.millis.entry(one.attempt).or_default() += one.suspended_millis.unwrap_or(0);
            }
        }
        naps
    }
}

fn took(attempt: &AttemptSummary, until_millis: Option<u64>) -> Option<u64> {
    Some(
        attempt
            .ended_millis
            .or(until_millis)?
            .saturating_sub(attempt.launched_millis),
    )
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, Primitive, WorkerId};
    use napreduce_protocol::PreemptionSummary;

    use super::super::samples::detail;
    use super::*;

    const BASE: u64 = 1_790_000_000_000;

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

    fn attempt(attempt: AttemptId, took: Option<u64>, end: &str) -> AttemptSummary {
        AttemptSummary {
            attempt,
            launched_millis: BASE,
            ended_millis: took.map(|took| BASE + took),
            end: took.map(|_| end.to_owned()),
            ..detail().attempts[0].clone()
        }
    }

    fn task(kind: TaskKind, index: u32, state: TaskPhase, attempts: u32) -> TaskSummary {
        TaskSummary::new(id(kind, index, 1).task, state, attempts)
    }

    /// Five maps that took 100 ms, 100 ms, 100 ms, 350 ms and 350 ms (250 of them asleep), a map that failed first, two
    /// reduces that run, and one that waits.
    fn rows() -> Vec<TaskRow> {
        use TaskKind::{Map, Reduce};
        let slept = PreemptionSummary {
            end: Some(PreemptionEnd::Suspended),
            suspended_millis: Some(250),
            ..PreemptionSummary::wanted(
                BASE * 1_000,
                id(Map, 4, 1),
                WorkerId(1),
                Primitive::Suspend,
            )
        };
        let job = JobDetail {
            attempts: vec![
                attempt(id(Reduce, 0, 1), None, ""),
                attempt(id(Map, 0, 1), Some(100), "succeeded"),
                attempt(id(Map, 1, 1), Some(100), "succeeded"),
                attempt(id(Map, 2, 1), Some(100), "succeeded"),
                attempt(id(Map, 3, 1), Some(350), "succeeded"),
                attempt(id(Map, 4, 1), Some(350), "succeeded"),
                attempt(id(Map, 5, 1), Some(90), "failed: bad row"),
                attempt(id(Map, 5, 2), Some(80), "succeeded"),
                AttemptSummary {
                    launched_millis: BASE - 500,
                    ..attempt(id(Reduce, 1, 1), None, "")
                },
            ],
            preemptions: vec![slept],
            ..detail()
        };
        let maps = (0..5).map(|index| task(Map, index, TaskPhase::Succeeded, 1));
        let more = [
            task(Map, 5, TaskPhase::Succeeded, 2),
            task(Reduce, 0, TaskPhase::Running, 1),
            task(Reduce, 1, TaskPhase::Running, 1),
            task(Reduce, 2, TaskPhase::Waiting, 0),
        ];
        TaskRow::all_of(
            Arc::new(maps.chain(more).collect()),
            Arc::new(job),
            Some(BASE + 1_000),
        )
        .0
    }

    fn names(found: &[&TaskRow]) -> Vec<String> {
        found
            .iter()
            .map(|row| row.summary().task.to_string().split_off("job_0007_".len()))
            .collect()
    }

    #[test]
    fn tasks_have_the_figures_of_their_successful_attempt() {
        let rows = rows();
        let answer = rows[5].answer();
        assert_eq!(
            (
                answer.took_millis,
                answer.failures,
                answer.all_attempts.len()
            ),
            (Some(80), 1, 2)
        );
        assert_eq!((rows[4].naps, rows[4].took_millis), (1, Some(350)));
        assert_eq!(
            (rows[7].took_millis, rows[8].took_millis),
            (Some(1_500), None)
        );
        assert_eq!(
            rows.iter().map(TaskRow::rank).collect::<Vec<_>>(),
            [3, 3, 3, 3, 3, 2, 0, 0, 3]
        );
    }

    #[test]
    fn filters_apply_to_state_failures_and_slowness() {
        let rows = rows();
        let found = |filter: TaskFilter| names(&TaskRow::filtered(&rows, &filter).0);
        let failed = TaskFilter {
            is_failed: Some(true),
            ..TaskFilter::default()
        };
        assert_eq!(found(failed), ["m_0005"]);
        // The map that slept worked only for 100 ms; there is no median of reduces yet.
        let slow = TaskFilter {
            is_slow: Some(true),
            ..TaskFilter::default()
        };
        assert_eq!(found(slow), ["m_0003"]);
        let states = vec!["running".to_owned(), "waiting".to_owned()];
        let by_state = TaskFilter {
            states,
            ..TaskFilter::default()
        };
        assert_eq!(found(by_state), ["r_0000", "r_0001", "r_0002"]);
    }

    #[test]
    fn counts_cover_the_text_but_not_the_other_filters() {
        let rows = rows();
        let counts = |text: &str| {
            let text = TextFilter::new(Some(text.to_owned()));
            TaskRow::filtered(
                &rows,
                &TaskFilter {
                    text,
                    is_slow: Some(true),
                    ..TaskFilter::default()
                },
            )
            .1
        };
        assert_eq!(
            counts(""),
            TaskCounts {
                all: 9,
                running: 2,
                failed: 1,
                slow: 1
            }
        );
        assert_eq!(
            counts("_r_000"),
            TaskCounts {
                all: 3,
                running: 2,
                ..TaskCounts::default()
            }
        );
        assert_eq!(
            counts("bad row"),
            TaskCounts {
                all: 1,
                failed: 1,
                ..TaskCounts::default()
            }
        );
    }
}
