//! The preemption ledger of a window: what the page, REST and `nap preemption` show.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use napreduce_answers::{FlowAnswer, GroupAnswer, LedgerFilter, LedgerRow, PreemptionTotals};
use napreduce_engine::JobId;
use napreduce_protocol::JobSummary;

use crate::per_job::{JobValues, READ_TIME, Window};
use crate::source::{PageSource, SourceError};

/// A terminal waits longer than a page, which asks again.
const TERMINAL_READ_TIME: Duration = Duration::from_secs(60);

/// The two ends of a flow of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnds {
    Queues,
    Jobs,
}

/// The entries of a window that pass a filter.
#[derive(Debug)]
pub struct LedgerWindow {
    window: Window,
    filter: LedgerFilter,
    jobs: HashMap<JobId, JobSummary>,
    /// One entry per job.
    ledger: Vec<Arc<Vec<LedgerRow>>>,
    /// Items left out, and why.
    pub remarks: Vec<String>,
}

impl LedgerWindow {
    /// Reads the jobs of a window, without values from earlier calls.
    ///
    /// # Errors
    /// Fails if the source is unavailable.
    pub fn read(
        source: &dyn PageSource,
        window: Window,
        filter: LedgerFilter,
    ) -> Result<LedgerWindow, SourceError> {
        LedgerWindow::read_within(
            TERMINAL_READ_TIME,
            &JobValues::default(),
            source,
            window,
            filter,
        )
    }

    /// Reads as much as fits in the time of a response; `known` are the values from earlier calls.
    pub(crate) fn update(
        known: &JobValues<Vec<LedgerRow>>,
        source: &dyn PageSource,
        window: Window,
        filter: LedgerFilter,
    ) -> Result<LedgerWindow, SourceError> {
        LedgerWindow::read_within(READ_TIME, known, source, window, filter)
    }

    fn read_within(
        time: Duration,
        known: &JobValues<Vec<LedgerRow>>,
        source: &dyn PageSource,
        window: Window,
        filter: LedgerFilter,
    ) -> Result<LedgerWindow, SourceError> {
        let jobs = source.jobs()?;
        let mut ledger = Vec::new();
        let left_out = known.each(time, source, &jobs, window, |_, rows| ledger.push(rows))?;
        let remarks = left_out
            .remarks
            .into_iter()
            .chain(source.remarks())
            .collect();
        let jobs = jobs.iter().map(|job| (job.job, job.clone())).collect();
        let from_micros = window.from * 1_000;
        let until_micros = window.until * 1_000;
        let filter = LedgerFilter {
            from_micros,
            until_micros,
            ..filter
        };
        Ok(LedgerWindow {
            window,
            filter,
            jobs,
            ledger,
            remarks,
        })
    }

    /// Returns the entries, newest first.
    pub fn rows(&self) -> Vec<&LedgerRow> {
        let mut rows: Vec<&LedgerRow> = self
            .ledger
            .iter()
            .flat_map(|rows| rows.iter())
            .filter(|row| self.matches(row))
            .collect();
        rows.sort_by_key(|row| Reverse(row.answer.requested_micros));
        rows
    }

    /// Returns the groups of the entries, newest first.
    pub fn groups(&self) -> Vec<GroupAnswer> {
        GroupAnswer::all_of(&self.rows(), |job| self.jobs.get(&job))
    }

    /// Returns the totals of all entries.
    pub fn totals(&self) -> PreemptionTotals {
        let Window { from, until } = self.window;
        let totals = PreemptionTotals::of(&self.rows());
        PreemptionTotals {
            from_millis: from,
            until_millis: until,
            remarks: self.remarks.clone(),
            ..totals
        }
    }

    /// Returns how many slots went from whom to whom, between queues or between jobs.
    pub fn flows(&self, ends: FlowEnds) -> Vec<FlowAnswer> {
        FlowAnswer::all_of(self.rows(), |row| match ends {
            FlowEnds::Jobs => (
                row.victim.to_string(),
                row.beneficiary.map(|job| job.to_string()),
            ),
            FlowEnds::Queues => {
                let to = row
                    .beneficiary
                    .and_then(|job| self.queue_of(job))
                    .map(str::to_owned);
                (row.victim_queue.clone(), to)
            }
        })
    }

    /// Returns the name of a job that is still known.
    pub fn name_of(&self, job: JobId) -> Option<&str> {
        self.jobs.get(&job).map(|job| job.name.as_str())
    }

    fn matches(&self, row: &LedgerRow) -> bool {
        self.filter
            .matches(row, row.beneficiary.and_then(|job| self.queue_of(job)))
    }

    /// Returns the queue of a job that is still known.
    fn queue_of(&self, job: JobId) -> Option<&str> {
        self.jobs.get(&job).map(|job| job.queue.as_str())
    }
}
