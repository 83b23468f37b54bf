//! What recordings hold of a job: attempts, the ledger of preemptions, events, logs, and what is too long for
//! its head; and of a cluster, its queues and workers.
//!
//! Owns the kinds and their columns. A column may be added at any time; one that is there keeps its name,
//! type and meaning. Does not own the form of columns (`recording`).

mod attempts;
mod ledger;
mod listed;
mod logs;
mod samples;
mod tasks;

pub(crate) use listed::{CounterRow, ReasonRow};
pub(crate) use tasks::TaskRow;

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};

use crate::files::recording::{Columns, ColumnsWriter};

/// The kinds of this version. Numbers are never used again for something else.
mod kinds {
    pub(super) const ATTEMPTS: u16 = 1;
    pub(super) const PREEMPTIONS: u16 = 2;
    pub(super) const RESUMES: u16 = 3;
    pub(super) const RESTORES: u16 = 4;
    pub(super) const EVENTS: u16 = 5;
    pub(super) const PARTS: u16 = 6;
    pub(super) const COUNTERS: u16 = 7;
    pub(super) const REASON: u16 = 8;
    pub(super) const TASKS: u16 = 9;
    pub(super) const LOGS: u16 = 10;
    pub(super) const QUEUES: u16 = 11;
    pub(super) const WORKERS: u16 = 12;
}

/// The four columns of attempts, each with `prefix` before its name.
fn write_attempts(
    prefix: &str,
    attempts: impl Iterator<Item = AttemptId> + Clone,
    columns: &mut ColumnsWriter,
) {
    let name = |name: &str| format!("{prefix}{name}");
    columns.numbers(&name("job"), attempts.clone().map(|one| Some(one.task.job.0.into())));
    columns.numbers(&name("phase"), attempts.clone().map(|one| Some(number_of(one.task.kind))));
    columns.differences(&name("task"), attempts.clone().map(|one| Some(one.task.index.into())));
    columns.numbers(&name("attempt"), attempts.map(|one| Some(one.number.into())));
}

fn read_attempts(prefix: &str, columns: &Columns) -> Result<Vec<AttemptId>, String> {
    let all = |name: &str| columns.all_small_numbers(&format!("{prefix}{name}"));
    let (jobs, phases, tasks, numbers) = (all("job")?, all("phase")?, all("task")?, all("attempt")?);
    let attempt = |row: usize| {
        let kind = kind_of(phases[row])?;
        let task = TaskId { job: JobId(jobs[row]), kind, index: tasks[row] };
        Ok(AttemptId { task, number: numbers[row] })
    };
    (0..columns.rows()).map(attempt).collect()
}

/// Attempts of which a row may have none.
fn write_optional_attempts(
    prefix: &str,
    attempts: impl Iterator<Item = Option<AttemptId>> + Clone,
    columns: &mut ColumnsWriter,
) {
    let mut column = |name: &str, value: fn(AttemptId) -> u64| {
        columns.numbers(&format!("{prefix}{name}"), attempts.clone().map(|one| one.map(value)));
    };
    column("job", |one| one.task.job.0.into());
    column("phase", |one| number_of(one.task.kind));
    column("task", |one| one.task.index.into());
    column("attempt", |one| one.number.into());
}

fn read_optional_attempts(prefix: &str, columns: &Columns) -> Result<Vec<Option<AttemptId>>, String> {
    let all = |name: &str| columns.numbers(&format!("{prefix}{name}"));
    let (jobs, phases, tasks, numbers) = (all("job")?, all("phase")?, all("task")?, all("attempt")?);
    let attempt = |row: usize| {
        let Some(job) = jobs[row] else { return Ok(None) };
        let part = |name: &str, value: Option<u64>| small(&format!("{prefix}{name}"), value);
        let kind = kind_of(part("phase", phases[row])?)?;
        let job = JobId(part("job", Some(job))?);
        let task = TaskId { job, kind, index: part("task", tasks[row])? };
        Ok(Some(AttemptId { task, number: part("attempt", numbers[row])? }))
    };
    (0..columns.rows()).map(attempt).collect()
}

/// Maps are phase 0, reduces phase 1.
fn number_of(kind: TaskKind) -> u64 {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

fn kind_of(phase: u32) -> Result<TaskKind, String> {
    match phase {
        0 => Ok(TaskKind::Map),
        1 => Ok(TaskKind::Reduce),
        other => Err(format!("there is no phase {other}")),
    }
}

/// A text that a file lacks is empty.
fn or_empty(texts: &mut [Option<String>], row: usize) -> String {
    texts[row].take().unwrap_or_default()
}

/// A number of which a file may say nothing, which means zero, but nothing too large.
fn small(name: &str, number: Option<u64>) -> Result<u32, String> {
    u32::try_from(number.unwrap_or(0)).map_err(|_| format!("its column {name} has {number:?}"))
}
