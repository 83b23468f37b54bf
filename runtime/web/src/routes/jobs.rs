//! Handlers for jobs, tasks, attempts and logs.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue};
use napreduce_answers::{
    CountersAnswer, FindingAnswer, GroupAnswer, HistoryAnswer, JobComparison, JobExplanation,
    JobFilter, JobStatusAnswer, LedgerRow, PreemptionTotals, QuantilesAnswer, SubmittedPage,
    TaskExplanation, TaskFilter, TaskRow, TaskStatusAnswer, TaskTotals, TextFilter, TimelineAnswer,
    TimelineWindow, entries_of,
};
use napreduce_engine::{AttemptId, JobId, TaskId};
use napreduce_history::write_trace;
use napreduce_protocol::{JobDetail, LogStream, TaskPhase, TaskSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::call::{Call, Reply, job_of_task};
use super::list::{is_csv, open_until, page, page_of, page_of_tasks};
use super::whole::{drawn, timeline_of};
use super::window::query_columns;
use crate::clock::now_micros;
use crate::problem::Problem;
use crate::report::report_html;
use crate::source::{LOG_PIECE_BYTES_MAX, PageSource, SourceError};

/// A row of the table of counters.
#[derive(Serialize, JsonSchema)]
struct CounterRow {
    counter: String,
    value: u64,
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let states: Option<String> = call.query_value("state")?;
    let states = states
        .map(|states| JobFilter::states(&states))
        .transpose()
        .map_err(Problem::invalid)?;
    let one = |field| {
        Ok::<Vec<String>, Problem>(call.query_value::<String>(field)?.into_iter().collect())
    };
    let filter = JobFilter {
        states: states.unwrap_or_default(),
        queues: one("queue")?,
        users: one("user")?,
        names: one("name")?,
        text: call.query_value("text")?,
        since_millis: call.query_value("from")?,
        until_millis: call.query_value("until")?,
        before: call.query_value("before")?,
    };
    let jobs = call.shown.source.jobs()?;
    page(call, jobs.iter().filter(|job| filter.matches(job)))
}

pub fn status(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&JobStatusAnswer::from(&*call.job()?))
}

pub fn submitted(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&SubmittedPage::new(
        &*call.job()?,
        &call.shown.source.jobs()?,
    ))
}

/// Compares a job with another one; by default with the one submitted before it under the same name, or itself.
pub fn compare(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let other = match call.query_value::<JobId>("with")? {
        Some(other) => call.shown.source.job(other)?,
        None => match JobComparison::earlier_of_name(&job.summary, &call.shown.source.jobs()?) {
            Some(earlier) => call.shown.source.job(earlier.job)?,
            None => Arc::clone(&job),
        },
    };
    Reply::json(&JobComparison::new(&job, &other, now_micros()))
}

pub fn quantiles(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&QuantilesAnswer::from(&*call.job()?))
}

pub fn counters(call: &Call<'_>) -> Result<Reply, Problem> {
    let answer = CountersAnswer::from(&*call.job()?);
    if is_csv(call)? {
        let rows = answer
            .counters
            .into_iter()
            .map(|(counter, value)| CounterRow { counter, value });
        return Reply::csv("counters", "counter", &rows.collect::<Vec<_>>());
    }
    Reply::json(&answer)
}

pub fn history(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&HistoryAnswer::from(&*call.job()?))
}

pub fn events(call: &Call<'_>) -> Result<Reply, Problem> {
    page(call, call.job()?.events.iter())
}

pub fn attempts(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let filter = TextFilter::new(call.query_value("text")?);
    page_of(
        call,
        &job.summary,
        job.attempts
            .iter()
            .filter(|attempt| filter.takes_attempt(attempt)),
    )
}

pub fn preemptions(call: &Call<'_>) -> Result<Reply, Problem> {
    let detail = call.job()?;
    let rows = LedgerRow::all_of(&detail, now_micros());
    let rows: Vec<&LedgerRow> = rows.iter().collect();
    let rows = match call.query_value::<String>("group")? {
        Some(group) => entries_of(&rows, &group),
        None => rows,
    };
    page_of(
        call,
        &detail.summary,
        rows.into_iter().map(|row| &row.answer),
    )
}

pub fn preemption_groups(call: &Call<'_>) -> Result<Reply, Problem> {
    let detail = call.job()?;
    let rows = LedgerRow::all_of(&detail, now_micros());
    let jobs = call.shown.source.jobs()?;
    let find = |id| jobs.iter().find(|job| job.job == id);
    let groups = GroupAnswer::all_of(&rows.iter().collect::<Vec<_>>(), find);
    page_of(call, &detail.summary, groups.iter())
}

pub fn preemption_totals(call: &Call<'_>) -> Result<Reply, Problem> {
    let detail = call.job()?;
    let rows = LedgerRow::all_of(&detail, now_micros());
    let totals = PreemptionTotals::of(&rows.iter().rev().collect::<Vec<_>>());
    let from_millis = detail.summary.submitted_millis;
    let until_millis = end_of(&detail) / 1_000;
    Reply::json(&PreemptionTotals {
        from_millis,
        until_millis,
        ..totals
    })
}

pub fn tasks(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let tasks = call.shown.source.tasks(job.summary.job)?;
    let until_millis = open_until(call, &job.summary);
    let (rows, median_millis) = TaskRow::all_of(tasks, job, until_millis);
    let filter = TaskFilter {
        text: TextFilter::new(call.query_value("text")?),
        states: call.query_words("state", &TaskPhase::WORDS)?,
        is_failed: call.query_value("failed")?,
        is_slow: call.query_value("slow")?,
    };
    let (found, counts) = TaskRow::filtered(&rows, &filter);
    page_of_tasks(
        call,
        found,
        &TaskTotals {
            counts,
            median_millis,
        },
    )
}

/// Answers for any task of a known job, also for one that was never launched.
pub fn task(call: &Call<'_>) -> Result<Reply, Problem> {
    let task = call.task()?.0;
    let job = of_task(call, task)?;
    let tasks = call.shown.source.tasks(task.job)?;
    let pending = TaskSummary::new(task, TaskPhase::Waiting, 0);
    let known = tasks
        .iter()
        .find(|known| known.task == task)
        .unwrap_or(&pending);
    Reply::json(&TaskStatusAnswer::new(known, &job))
}

pub fn task_timeline(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = of_task(call, call.task()?.0)?;
    let until_micros = end_of(&job);
    drawn(
        call,
        TimelineAnswer::of(
            [&job],
            TimelineWindow {
                from_micros: 0,
                until_micros,
            },
            None,
        ),
    )
}

/// Returns the job of a task, reduced to the attempts of that task.
fn of_task(call: &Call<'_>, task: TaskId) -> Result<JobDetail, Problem> {
    let job = job_of_task(&*call.shown.source, task)?;
    Ok(job.of_attempts(|attempt| attempt.task == task))
}

/// Now for a running job; for an ended one, the end of its last millisecond, so that the drawing includes it.
fn end_of(job: &JobDetail) -> u64 {
    job.summary
        .ended_millis
        .map_or_else(now_micros, |ended| (ended + 1) * 1_000)
}

pub fn timeline(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let begun = job.summary.submitted_millis;
    let until_micros = end_of(&job);
    let moment = |asked: Option<u64>| asked.map(|millis| millis.saturating_mul(1_000));
    let window = TimelineWindow {
        from_micros: moment(call.query_value("from")?)
            .unwrap_or(0)
            .max(begun * 1_000),
        until_micros: moment(call.query_value("until")?)
            .unwrap_or(u64::MAX)
            .min(until_micros),
    };
    if window.from_micros > window.until_micros {
        return Err(Problem::invalid(format!(
            "{} did not run in this window",
            job.summary.job
        )));
    }
    if call.query_value("neighbours")?.unwrap_or(false) {
        return drawn(call, timeline_of(call, window, Some(&job))?);
    }
    drawn(
        call,
        TimelineAnswer::of([&*job], window, query_columns(call)?),
    )
}

pub fn trace(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let mut trace = Vec::new();
    write_trace(std::slice::from_ref(&*job), now_micros(), &mut trace)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Reply::of("application/json", trace)
        .header(CONTENT_DISPOSITION, saved_as(&job, "trace.json")))
}

pub fn report(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let page = report_html(&job, now_micros());
    Ok(Reply::of("text/html; charset=utf-8", page.into_bytes())
        .header(CONTENT_DISPOSITION, saved_as(&job, "html")))
}

/// Makes the browser save the file: shown inline, it would run in the origin of the server.
fn saved_as(job: &JobDetail, end: &str) -> HeaderValue {
    let saved = format!("attachment; filename=\"{}.{end}\"", job.summary.job);
    HeaderValue::from_str(&saved).unwrap_or(HeaderValue::from_static("attachment"))
}

pub fn explain(call: &Call<'_>) -> Result<Reply, Problem> {
    let source = &call.shown.source;
    let job = call.path_value::<JobId>("job")?;
    let reasons = source.explain(job, None)?;
    let detail = source.job(job)?;
    let tasks = if detail.summary.ended_millis.is_none() {
        source.tasks(job)?
    } else {
        Arc::default()
    };
    let findings = FindingAnswer::all_of(&detail, &tasks, now_micros());
    Reply::json(&JobExplanation::new(job, &reasons, findings))
}

pub fn explain_task(call: &Call<'_>) -> Result<Reply, Problem> {
    let task = call.task()?.0;
    Reply::json(&TaskExplanation::of(
        task,
        &call.shown.source.explain(task.job, Some(task))?,
    ))
}

/// The last line that an attempt printed to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastLineAnswer {
    /// The newest failed attempt of the job; `null` if none failed.
    pub attempt: Option<String>,
    /// Its last line, at most the last 4096 bytes of it; `null` if it printed nothing or its log is gone.
    pub line: Option<String>,
}

/// What Rust prints after the message of a panic.
const BACKTRACE_HINT: &str = "note: run with `RUST_BACKTRACE=";
/// The most bytes of a last line.
const LINE_BYTES_MAX: usize = 4096;
/// The most pieces of a log that are read to find its end.
const LOG_PIECES_MAX: usize = 16;

pub fn last_stderr(call: &Call<'_>) -> Result<Reply, Problem> {
    let job = call.job()?;
    let failed = job
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome() == Some("failed"));
    let Some(last) = failed.max_by_key(|attempt| attempt.ended_millis) else {
        return Reply::json(&LastLineAnswer {
            attempt: None,
            line: None,
        });
    };
    // Its worker may have left.
    let end = end_of_log(&*call.shown.source, last.attempt, LogStream::Stderr).unwrap_or_default();
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with(BACKTRACE_HINT);
    let line = String::from_utf8_lossy(&end)
        .lines()
        .rfind(says)
        .map(str::to_owned);
    Reply::json(&LastLineAnswer {
        attempt: Some(last.attempt.to_string()),
        line,
    })
}

/// Returns the last bytes of a log; none if it is longer than is read.
fn end_of_log(
    source: &dyn PageSource,
    attempt: AttemptId,
    stream: LogStream,
) -> Result<Vec<u8>, SourceError> {
    let mut read = 0_u64;
    let mut end: Vec<u8> = Vec::new();
    for _ in 0..LOG_PIECES_MAX {
        let piece = source.log(attempt, stream, read, LOG_PIECE_BYTES_MAX)?;
        read += piece.len() as u64;
        let is_last = (piece.len() as u64) < LOG_PIECE_BYTES_MAX;
        end.extend(piece);
        let surplus = end.len().saturating_sub(LINE_BYTES_MAX);
        end.drain(..surplus);
        if is_last {
            return Ok(end);
        }
    }
    Ok(Vec::new())
}

/// Sandboxed, because the log is untrusted text.
pub fn log(call: &Call<'_>) -> Result<Reply, Problem> {
    let attempt = call.path_value::<AttemptId>("attempt")?;
    let stream = match call.path_value::<String>("stream")?.as_str() {
        "stdout" => LogStream::Stdout,
        "stderr" => LogStream::Stderr,
        other => {
            return Err(Problem::invalid(format!(
                "unknown log {other:?}; expected stdout or stderr"
            )));
        }
    };
    let offset = call.query_value::<u64>("offset")?.unwrap_or(0);
    let limit = call
        .query_value::<u64>("limit")?
        .unwrap_or(LOG_PIECE_BYTES_MAX)
        .min(LOG_PIECE_BYTES_MAX);
    let bytes = call.shown.source.log(attempt, stream, offset, limit)?;
    let next = HeaderValue::from(offset + bytes.len() as u64);
    Ok(Reply::of("text/plain; charset=utf-8", bytes)
        .header(HeaderName::from_static("x-nap-log-next"), next)
        .header(
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("sandbox; default-src 'none'"),
        ))
}
