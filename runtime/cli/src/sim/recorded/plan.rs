//! Turns an ended job into a job to simulate.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use napreduce_engine::{JobId, Span, TaskId, TaskKind, Time};
use napreduce_history::{EndedJob, TaskLengths};
use napreduce_protocol::{AttemptFigures, JobPhase, JobPlan, whole_micros};
use napreduce_sim::{SimulatedJob, SimulatedMap, SimulatedReduce};

/// Maximum length of tasks and windows: a longer one means a damaged file, and sums must not overflow.
const SPAN_MAX: Span = Span::from_secs(366 * 24 * 3600);

/// A job of the window.
pub struct RebuiltJob {
    pub plan: SimulatedJob,
    pub times: RecordedTimes,
}

/// The recorded times of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedTimes {
    pub job: JobId,
    pub name: String,
    pub submitted: Time,
    pub ended: Time,
}

impl RecordedTimes {
    /// Returns the time from submission to end, in seconds.
    pub fn sojourn(&self) -> f64 {
        self.ended.since(self.submitted).0 as f64 / 1e6
    }
}

/// Why a job is left out of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Omission {
    /// It failed or was killed: the lengths of its tasks are incomplete.
    NotSucceeded,
    /// A task has no successful attempt.
    Incomplete,
    NoTasks,
}

impl Omission {
    pub fn in_words(self) -> &'static str {
        match self {
            Omission::NotSucceeded => "failed or were killed, so that task lengths are unknown",
            Omission::Incomplete => "have tasks without a recorded successful attempt",
            Omission::NoTasks => "had no tasks",
        }
    }
}

/// The result of rebuilding an ended job: a job to simulate, or the reason why it is left out.
pub enum Rebuilt {
    Job(Box<RebuiltJob>),
    Omitted(Omission),
}

/// Returns the plan of a job in a window that starts at this time, in milliseconds since 1970.
pub fn rebuild(ended: &EndedJob, begin_millis: u64) -> Result<Rebuilt> {
    let summary = &ended.detail.summary;
    if summary.phase != JobPhase::Succeeded {
        return Ok(Rebuilt::Omitted(Omission::NotSucceeded));
    }
    let Ok(lengths) = TaskLengths::of(&ended.detail) else {
        return Ok(Rebuilt::Omitted(Omission::Incomplete));
    };
    if lengths.maps.is_empty() && lengths.reduces.is_empty() {
        return Ok(Rebuilt::Omitted(Omission::NoTasks));
    }
    let since = |millis: u64| Span(millis.saturating_sub(begin_millis).saturating_mul(1_000));
    let submitted = since(summary.submitted_millis);
    let ended_at = since(summary.ended_millis.unwrap_or(summary.submitted_millis));
    let longest = lengths
        .maps
        .iter()
        .chain(&lengths.reduces)
        .copied()
        .max()
        .unwrap_or_default();
    ensure!(
        longest.max(submitted).max(ended_at) <= SPAN_MAX,
        "{}: the job or a task takes more than a year, so its files are damaged; leave it out with @FROM..UNTIL",
        summary.job
    );
    let settings = ended.detail.settings.as_ref();
    let mut plan = SimulatedJob::new(summary.name.as_str(), Time(submitted.0));
    plan.user = summary.user.as_str().into();
    plan.queue = summary.queue.as_str().into();
    plan.class = plan.queue.clone();
    plan.priority = summary.priority;
    plan.slowstart_permille = settings.map_or(JobPlan::SLOWSTART_PERMILLE_DEFAULT, |settings| {
        settings.slowstart_permille.min(1000)
    });
    if let Some(settings) = settings {
        plan.deadline = settings
            .deadline
            .map(|deadline| Span(whole_micros(deadline)).min(SPAN_MAX));
        plan.attempts_max = settings.attempts_max.max(1);
        plan.memory = settings.task_memory;
        let saved = [
            (TaskKind::Map, settings.checkpoint_maps),
            (TaskKind::Reduce, settings.checkpoint_reduces),
        ];
        plan.unsaved = saved
            .into_iter()
            .filter(|(_, saved)| !saved)
            .map(|(kind, _)| kind)
            .collect();
        plan.unsaved
            .retain(|kind| *kind == TaskKind::Map || !lengths.reduces.is_empty());
    }
    // The last attempt of a task counts.
    let moved: BTreeMap<TaskId, AttemptFigures> = ended
        .detail
        .attempts
        .iter()
        .filter_map(|one| Some((one.attempt.task, one.figures?)))
        .collect();
    let of = |kind, index: usize| {
        moved.get(&TaskId {
            job: summary.job,
            kind,
            index: index as u32,
        })
    };
    plan.maps = lengths
        .maps
        .iter()
        .enumerate()
        .map(|(index, &work)| {
            let (bytes, output_bytes) = of(TaskKind::Map, index)
                .map_or((0, 0), |task| (task.input_bytes, task.output_bytes));
            SimulatedMap {
                work,
                bytes,
                output_bytes,
                preferred: Vec::new(),
            }
        })
        .collect();
    plan.reduces = lengths
        .reduces
        .iter()
        .enumerate()
        .map(|(index, &reduce)| {
            let bytes = of(TaskKind::Reduce, index).map_or(0, |task| task.input_bytes);
            SimulatedReduce {
                shuffle: Span(0),
                reduce,
                bytes,
            }
        })
        .collect();
    let times = RecordedTimes {
        job: summary.job,
        name: summary.name.clone(),
        submitted: Time(submitted.0),
        ended: Time(ended_at.0.max(submitted.0)),
    };
    Ok(Rebuilt::Job(Box::new(RebuiltJob { plan, times })))
}
