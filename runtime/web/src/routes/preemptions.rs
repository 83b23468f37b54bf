//! Handlers for the preemption ledger of the whole cluster, its totals, and the flow of slots.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use napreduce_engine::{JobId, Primitive};

use super::call::{Call, Reply};
use super::list::page_with;
use super::window::query_window;
use crate::answers::{FlowAnswer, LedgerFilter, LedgerRow, OPEN_END, PreemptionTotals};
use crate::per_job::Window;
use crate::problem::Problem;

/// Default length of a window.
const WINDOW_MILLIS: u64 = 60 * 60_000;
/// Values of the query parameter `end`.
pub const ENDS: &[&str] =
    &["suspended", "checkpointed", "killed", "finished", "ended", "withdrawn", OPEN_END];
/// Values of the query parameter `by` of flows.
pub const FLOW_ENDS: &[&str] = &["queue", "job"];

/// A window of the ledger, and the queue of each job.
struct LedgerWindow {
    window: Window,
    filter: LedgerFilter,
    queues: HashMap<JobId, String>,
    /// One entry per job.
    ledger: Vec<Arc<Vec<LedgerRow>>>,
    /// Items left out, and why.
    remarks: Vec<String>,
}

impl LedgerWindow {
    fn read(call: &Call<'_>, filter: LedgerFilter) -> Result<LedgerWindow, Problem> {
        let window = query_window(call, WINDOW_MILLIS)?;
        let jobs = call.shown.source.jobs()?;
        let source = &*call.shown.source;
        let mut ledger = Vec::new();
        let left_out = call.shown.ledgers.each(source, &jobs, window, |_, rows| ledger.push(rows))?;
        let remarks = left_out.remarks.into_iter().chain(source.remarks()).collect();
        let queues = jobs.iter().map(|job| (job.job, job.queue.clone())).collect();
        let (from_micros, until_micros) = (window.from * 1_000, window.until * 1_000);
        Ok(LedgerWindow {
            window,
            filter: LedgerFilter { from_micros, until_micros, ..filter },
            queues,
            ledger,
            remarks,
        })
    }

    /// The entries that pass the filter, newest first.
    fn rows(&self) -> Vec<&LedgerRow> {
        let mut rows: Vec<&LedgerRow> =
            self.ledger.iter().flat_map(|rows| rows.iter()).filter(|row| self.matches(row)).collect();
        rows.sort_by_key(|row| Reverse(row.answer.requested_micros));
        rows
    }

    fn matches(&self, row: &LedgerRow) -> bool {
        self.filter.matches(row, row.beneficiary.and_then(|job| self.queue_of(job)))
    }

    fn queue_of(&self, job: JobId) -> Option<&str> {
        self.queues.get(&job).map(String::as_str)
    }
}

fn filter_of(call: &Call<'_>) -> Result<LedgerFilter, Problem> {
    Ok(LedgerFilter {
        by: call.query_value("by")?,
        primitives: some_of(call, "primitive", &Primitive::WORDS)?,
        ends: some_of(call, "end", ENDS)?,
        queue: call.query_value("queue")?,
        ..LedgerFilter::default()
    })
}

/// Parses a comma-separated list of known words.
fn some_of(call: &Call<'_>, name: &str, known: &[&str]) -> Result<Vec<String>, Problem> {
    let Some(list) = call.query_value::<String>(name)? else { return Ok(Vec::new()) };
    let words: Vec<String> = list.split(',').map(str::to_owned).collect();
    match words.iter().find(|word| !known.contains(&word.as_str())) {
        None => Ok(words),
        Some(word) => Err(Problem::invalid(format!("{name}={word}: expected one of {}", known.join(", ")))),
    }
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let ledger = LedgerWindow::read(call, filter_of(call)?)?;
    let answers: Vec<_> = ledger.rows().into_iter().map(|row| &row.answer).collect();
    page_with(call, answers.into_iter(), ledger.remarks.clone())
}

pub fn totals(call: &Call<'_>) -> Result<Reply, Problem> {
    let ledger = LedgerWindow::read(call, filter_of(call)?)?;
    let Window { from, until } = ledger.window;
    let totals = PreemptionTotals::of(&ledger.rows());
    Reply::json(&PreemptionTotals {
        from_millis: from,
        until_millis: until,
        remarks: ledger.remarks.clone(),
        ..totals
    })
}

pub fn flows(call: &Call<'_>) -> Result<Reply, Problem> {
    let by = call.query_value::<String>("by")?;
    let by_job = match by.as_deref() {
        None | Some("queue") => false,
        Some("job") => true,
        Some(other) => {
            return Err(Problem::invalid(format!("by={other}: expected one of {}", FLOW_ENDS.join(", "))));
        }
    };
    let ledger = LedgerWindow::read(call, LedgerFilter::default())?;
    let flows = FlowAnswer::all_of(ledger.rows(), |row| {
        if by_job {
            (row.victim.to_string(), row.beneficiary.map(|job| job.to_string()))
        } else {
            let to = row.beneficiary.and_then(|job| ledger.queue_of(job)).map(str::to_owned);
            (row.victim_queue.clone(), to)
        }
    });
    page_with(call, flows.iter(), ledger.remarks.clone())
}
