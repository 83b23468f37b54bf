//! The ledger of the whole cluster: who took which slot from whom in a window of time, what that comes to,
//! and how slots went.
//!
//! Owns what these routes answer, and how their queries are read. Does not own the sums (`answers`) nor which
//! jobs are read (`per_job`).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use napreduce_engine::{JobId, Primitive};

use super::call::{Call, Reply};
use super::list::page_with;
use super::window::asked_window;
use crate::answers::{FlowAnswer, LedgerFilter, LedgerRow, OPEN_END, PreemptionTotals};
use crate::per_job::Window;
use crate::problem::Problem;

/// A window is so long unless it is said.
const WINDOW_MILLIS: u64 = 60 * 60_000;
/// As they are printed.
pub const ENDS: &[&str] =
    &["suspended", "checkpointed", "killed", "finished", "ended", "withdrawn", OPEN_END];
/// What flows are summed up by.
pub const FLOW_ENDS: &[&str] = &["queue", "job"];

/// A window of the ledger, and the queues of the jobs that there are.
struct Asked {
    window: Window,
    filter: LedgerFilter,
    queues: HashMap<JobId, String>,
    /// By job.
    ledger: Vec<Arc<Vec<LedgerRow>>>,
    /// What is left out, and why.
    remarks: Vec<String>,
}

impl Asked {
    fn read(call: &Call<'_>, filter: LedgerFilter) -> Result<Asked, Problem> {
        let window = asked_window(call, WINDOW_MILLIS)?;
        let jobs = call.shown.source.jobs()?;
        let source = &*call.shown.source;
        let mut ledger = Vec::new();
        let left_out = call.shown.ledgers.each(source, &jobs, window, |_, rows| ledger.push(rows))?;
        let remarks = left_out.remarks.into_iter().chain(source.remarks()).collect();
        let queues = jobs.iter().map(|job| (job.job, job.queue.clone())).collect();
        let (from_micros, until_micros) = (window.from * 1_000, window.until * 1_000);
        Ok(Asked {
            window,
            filter: LedgerFilter { from_micros, until_micros, ..filter },
            queues,
            ledger,
            remarks,
        })
    }

    /// The entries that are meant, newest first.
    fn rows(&self) -> Vec<&LedgerRow> {
        let mut rows: Vec<&LedgerRow> =
            self.ledger.iter().flat_map(|rows| rows.iter()).filter(|row| self.takes(row)).collect();
        rows.sort_by_key(|row| Reverse(row.answer.requested_micros));
        rows
    }

    fn takes(&self, row: &LedgerRow) -> bool {
        self.filter.takes(row, row.beneficiary.and_then(|job| self.queue_of(job)))
    }

    fn queue_of(&self, job: JobId) -> Option<&str> {
        self.queues.get(&job).map(String::as_str)
    }
}

fn asked_filter(call: &Call<'_>) -> Result<LedgerFilter, Problem> {
    Ok(LedgerFilter {
        by: call.asked("by")?,
        primitives: some_of(call, "primitive", &Primitive::WORDS)?,
        ends: some_of(call, "end", ENDS)?,
        queue: call.asked("queue")?,
        ..LedgerFilter::default()
    })
}

/// Words with commas between them, each of them one that there is.
fn some_of(call: &Call<'_>, name: &str, known: &[&str]) -> Result<Vec<String>, Problem> {
    let Some(said) = call.asked::<String>(name)? else { return Ok(Vec::new()) };
    let words: Vec<String> = said.split(',').map(str::to_owned).collect();
    match words.iter().find(|word| !known.contains(&word.as_str())) {
        None => Ok(words),
        Some(word) => Err(Problem::wrong(format!("{name}={word}: there are {}", known.join(", ")))),
    }
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let asked = Asked::read(call, asked_filter(call)?)?;
    let answers: Vec<_> = asked.rows().into_iter().map(|row| &row.answer).collect();
    page_with(call, answers.into_iter(), asked.remarks.clone())
}

pub fn totals(call: &Call<'_>) -> Result<Reply, Problem> {
    let asked = Asked::read(call, asked_filter(call)?)?;
    let Window { from, until } = asked.window;
    let totals = PreemptionTotals::of(&asked.rows());
    Reply::json(&PreemptionTotals {
        from_millis: from,
        until_millis: until,
        remarks: asked.remarks.clone(),
        ..totals
    })
}

pub fn flows(call: &Call<'_>) -> Result<Reply, Problem> {
    let by = call.asked::<String>("by")?;
    let by_job = match by.as_deref() {
        None | Some("queue") => false,
        Some("job") => true,
        Some(other) => return Err(Problem::wrong(format!("by={other}: there are {}", FLOW_ENDS.join(", ")))),
    };
    let asked = Asked::read(call, LedgerFilter::default())?;
    let flows = FlowAnswer::all_of(asked.rows(), |row| match by_job {
        true => (row.victim.to_string(), row.beneficiary.map(|job| job.to_string())),
        false => {
            let to = row.beneficiary.and_then(|job| asked.queue_of(job)).map(str::to_owned);
            (row.victim_queue.clone(), to)
        }
    });
    page_with(call, flows.iter(), asked.remarks.clone())
}
