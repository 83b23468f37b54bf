//! Handlers for the preemption ledger of the whole cluster, its groups and totals, and the flow of slots.

use napreduce_answers::{ENDS, LedgerFilter, entries_of};
use napreduce_engine::Primitive;

use super::call::{Call, Reply};
use super::list::page_with;
use super::window::query_window;
use crate::ledger_window::{FlowEnds, LedgerWindow};
use crate::problem::Problem;

/// Default length of a window.
const WINDOW_MILLIS: u64 = 60 * 60_000;
/// Values of the query parameter `by` of flows.
pub const FLOW_ENDS: &[&str] = &["queue", "job"];

fn read(call: &Call<'_>, filter: LedgerFilter) -> Result<LedgerWindow, Problem> {
    let window = query_window(call, WINDOW_MILLIS)?;
    Ok(LedgerWindow::update(
        &call.shown.ledgers,
        &*call.shown.source,
        window,
        filter,
    )?)
}

fn filter_of(call: &Call<'_>) -> Result<LedgerFilter, Problem> {
    Ok(LedgerFilter {
        by: call.query_value("by")?,
        primitives: call.query_words("primitive", &Primitive::WORDS)?,
        ends: call.query_words("end", &ENDS)?,
        queue: call.query_value("queue")?,
        ..LedgerFilter::default()
    })
}

pub fn list(call: &Call<'_>) -> Result<Reply, Problem> {
    let ledger = read(call, filter_of(call)?)?;
    let rows = ledger.rows();
    let rows = match call.query_value::<String>("group")? {
        Some(group) => entries_of(&rows, &group),
        None => rows,
    };
    page_with(
        call,
        rows.into_iter().map(|row| &row.answer),
        ledger.remarks.clone(),
    )
}

pub fn groups(call: &Call<'_>) -> Result<Reply, Problem> {
    let ledger = read(call, filter_of(call)?)?;
    page_with(call, ledger.groups().iter(), ledger.remarks.clone())
}

pub fn totals(call: &Call<'_>) -> Result<Reply, Problem> {
    Reply::json(&read(call, filter_of(call)?)?.totals())
}

pub fn flows(call: &Call<'_>) -> Result<Reply, Problem> {
    let by = call.query_value::<String>("by")?;
    let ends = match by.as_deref() {
        None | Some("queue") => FlowEnds::Queues,
        Some("job") => FlowEnds::Jobs,
        Some(other) => {
            return Err(Problem::invalid(format!(
                "by={other}: expected one of {}",
                FLOW_ENDS.join(", ")
            )));
        }
    };
    let ledger = read(
        call,
        LedgerFilter {
            queue: call.query_value("queue")?,
            ..LedgerFilter::default()
        },
    )?;
    page_with(call, ledger.flows(ends).iter(), ledger.remarks.clone())
}
