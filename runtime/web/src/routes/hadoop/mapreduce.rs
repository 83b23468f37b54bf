//! What MapReduce's history server is asked.
//!
//! Owns these answers. Does not own the objects (`crate::hadoop`).

use std::sync::Arc;

use axum::http::StatusCode;
use napreduce_engine::{AttemptId, TaskId, TaskKind};
use napreduce_protocol::JobDetail;

use super::super::call::{Call, Reply};
use super::super::foreign::words;
use super::selection::selected;
use super::wrapped::{
    Conf, Counters, CountersOfAttempt, CountersOfTask, History, Job, JobAttemptList, JobList, Task,
    TaskAttempt, TaskAttemptList, TaskList,
};
use crate::clock::now_millis;
use crate::hadoop::{
    AttemptCounters, HistoryInfo, JobConf, JobCounters, JobOfHistory, JobOfList, JobState, MapReduceAttempts,
    TaskCounters, TaskOfHistory, TriedTask, tasks_of,
};
use crate::problem::Problem;

pub fn info(_: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&History { it: HistoryInfo::default() })
}

pub fn jobs(call: &Call<'_>) -> Result<Reply, Problem> {
    let states = words::<JobState>(call, "state")?;
    let jobs = call.shown.source.jobs()?;
    let is_wanted = |state| states.as_ref().is_none_or(|states: &Vec<JobState>| states.contains(&state));
    let found = selected(call, &jobs, |job| is_wanted(JobState::of(job)))?;
    Reply::json(&JobList::from(found.into_iter().map(JobOfList::from).collect::<Vec<_>>()))
}

pub fn job(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&Job { it: JobOfHistory::of(&*call.job()?) })
}

pub fn job_attempts(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&JobAttemptList::from(vec![MapReduceAttempts::of(&*call.job()?)]))
}

pub fn counters(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&Counters { it: JobCounters::of(&*call.job()?) })
}

pub fn conf(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&Conf { it: JobConf::of(&*call.job()?) })
}

pub fn tasks(call: &Call<'_>) -> Result<Reply, Problem> {
    let kind = match call.asked::<String>("type")?.as_deref() {
        None | Some("") => None,
        Some("m" | "map") => Some(TaskKind::Map),
        Some("r" | "reduce") => Some(TaskKind::Reduce),
        Some(other) => return Err(Problem::wrong(format!("tasktype must be either m or r, not {other:?}"))),
    };
    let mut tasks = tasks_of(&*call.job()?, now_millis());
    tasks.retain(|task| kind.is_none_or(|kind| task.task.kind == kind));
    Reply::json(&TaskList::from(tasks))
}

/// A task of which an attempt was launched; the job that it is of has to be the one that is asked about.
fn find_task(call: &Call<'_>) -> Result<(Arc<JobDetail>, TaskOfHistory), Problem> {
    let (job, task) = (call.job()?, call.part::<TaskId>("task")?);
    let found = tasks_of(&job, now_millis()).into_iter().find(|known| known.task == task);
    let name = job.summary.job;
    let found = found.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, format!("of {name} no attempt at {task} was launched"))
    })?;
    Ok((job, found))
}

pub fn task(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&Task { it: find_task(call)?.1 })
}

pub fn task_counters(call: &Call<'_>) -> Result<Reply, Problem> {
    let (job, task) = find_task(call)?;
    // Of a task that was done twice, the last one counts.
    let done = job.attempts.iter().rfind(|one| one.attempt.task == task.task && one.figures.is_some());
    Reply::json(&CountersOfTask { it: TaskCounters::of(task.task, done) })
}

fn tried(call: &Call<'_>) -> Result<Vec<(AttemptId, TriedTask)>, Problem> {
    let (job, task) = find_task(call)?;
    Ok(TriedTask::all_of(&job, task.task, now_millis()))
}

pub fn attempts(call: &Call<'_>) -> Result<Reply, Problem> {
    let tried = tried(call)?.into_iter().map(|(_, tried)| tried);
    Reply::json(&TaskAttemptList::from(tried.collect::<Vec<_>>()))
}

fn find_attempt(call: &Call<'_>) -> Result<(AttemptId, TriedTask), Problem> {
    let attempt = call.part::<AttemptId>("attempt")?;
    let found = tried(call)?.into_iter().find(|(known, _)| *known == attempt);
    found.ok_or_else(|| absent(attempt))
}

fn absent(attempt: AttemptId) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there was no {attempt} at that task"))
}

pub fn attempt(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&TaskAttempt { it: find_attempt(call)?.1 })
}

pub fn attempt_counters(call: &Call<'_>) -> Result<Reply, Problem> {
    let (asked, job) = (find_attempt(call)?.0, call.job()?);
    let counters = job.attempts.iter().find(|known| known.attempt == asked).map(AttemptCounters::of);
    Reply::json(&CountersOfAttempt { it: counters.ok_or_else(|| absent(asked))? })
}
