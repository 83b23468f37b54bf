//! The ledgers of the jobs of a window of time.
//!
//! Owns which jobs are looked at, and that one which has ended is asked for once. Does not own what an entry
//! says (`answers`) nor where jobs come from (`source`).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use napreduce_core::JobId;
use napreduce_protocol::JobSummary;

use crate::answers::LedgerRow;
use crate::clock::now_micros;
use crate::lock::lock;
use crate::source::{PageSource, SourceError};

/// Jobs in a window at most, the newest ones: each is a question to the coordinator.
pub const JOBS_MAX: usize = 50;
/// Entries of ended jobs that are kept, about 400 bytes each; those of the job asked for longest ago go.
const KEPT_ROWS_MAX: usize = 50_000;

/// A stretch of time, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: u64,
    pub until: u64,
}

impl Window {
    /// The jobs that were there then, and how many more there were than may be looked at.
    pub fn jobs(self, all: &[JobSummary]) -> (Vec<&JobSummary>, usize) {
        let is_there = |job: &&JobSummary| {
            job.submitted_millis <= self.until && job.ended_millis.is_none_or(|ended| ended >= self.from)
        };
        let mut jobs: Vec<&JobSummary> = all.iter().filter(is_there).collect();
        let left_out = jobs.len().saturating_sub(JOBS_MAX);
        jobs.truncate(JOBS_MAX);
        (jobs, left_out)
    }
}

/// The entries of the jobs of a window.
#[derive(Debug, Default)]
pub struct WindowLedger {
    /// By job.
    pub jobs: Vec<Arc<Vec<LedgerRow>>>,
    /// What is left out, and why.
    pub remarks: Vec<String>,
}

/// What is kept of ended jobs.
#[derive(Debug, Default)]
pub struct Ledgers {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    rows: HashMap<JobId, Arc<Vec<LedgerRow>>>,
    /// Oldest first.
    order: VecDeque<JobId>,
    count: usize,
}

impl Ledgers {
    /// The entries of the jobs that were there in a window; a job that cannot be read is left out, and said.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn of_window(
        &self,
        source: &dyn PageSource,
        all: &[JobSummary],
        window: Window,
    ) -> Result<WindowLedger, SourceError> {
        let (jobs, left_out) = window.jobs(all);
        let mut ledger = WindowLedger::default();
        if left_out > 0 {
            let jobs = if left_out == 1 { "job" } else { "jobs" };
            let remark = format!("{left_out} older {jobs} of these times; at most {JOBS_MAX} are looked at");
            ledger.remarks.push(remark);
        }
        for job in jobs {
            match self.of_job(source, job) {
                Ok(rows) => ledger.jobs.push(rows),
                Err(error @ SourceError::Unavailable(_)) => return Err(error),
                Err(error) => ledger.remarks.push(format!("{}: {error}", job.job)),
            }
        }
        Ok(ledger)
    }

    fn of_job(&self, source: &dyn PageSource, job: &JobSummary) -> Result<Arc<Vec<LedgerRow>>, SourceError> {
        let kept = || lock(&self.kept);
        if let Some(rows) = kept().rows.get(&job.job) {
            return Ok(rows.clone());
        }
        let detail = source.job(job.job)?;
        let rows = Arc::new(LedgerRow::all_of(&detail, now_micros()));
        if detail.summary.ended_millis.is_some() {
            kept().keep(job.job, rows.clone());
        }
        Ok(rows)
    }
}

impl Kept {
    /// A job without entries counts as one.
    fn keep(&mut self, job: JobId, rows: Arc<Vec<LedgerRow>>) {
        let weight = |rows: &Vec<LedgerRow>| rows.len() + 1;
        self.count += weight(&rows);
        if let Some(known) = self.rows.insert(job, rows) {
            // Two asked for it at once.
            self.count -= weight(&known);
        } else {
            self.order.push_back(job);
        }
        while self.count > KEPT_ROWS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.count -= self.rows.remove(&oldest).map_or(0, |rows| weight(&rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::JobPhase;

    use super::*;
    use crate::answers::samples::job;

    #[test]
    fn the_newest_jobs_of_a_window_are_looked_at_and_the_others_counted() {
        let ended = |number| job(number, JobPhase::Succeeded, 0, 0);
        let all: Vec<JobSummary> = (1..=60).rev().map(ended).collect();
        let begin = all[0].submitted_millis;
        let (jobs, left_out) = Window { from: begin, until: begin + 1 }.jobs(&all);
        assert_eq!((jobs.len(), jobs[0].job, left_out), (JOBS_MAX, JobId(60), 10));
        assert_eq!(Window { from: begin - 9, until: begin - 1 }.jobs(&all).0.len(), 0);
        let (after, _) = Window { from: begin + 1_501, until: begin + 9_999 }.jobs(&all);
        assert!(after.is_empty(), "they had ended");
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut kept = Kept::default();
        let row = || {
            let detail = crate::answers::samples::preempted(&[(0, napreduce_core::Primitive::Kill, None)]);
            LedgerRow::all_of(&detail, 0).remove(0)
        };
        let rows = Arc::new(vec![row(); KEPT_ROWS_MAX / 4]);
        for number in 1..=9 {
            kept.keep(JobId(number), rows.clone());
            assert!(kept.count <= KEPT_ROWS_MAX && kept.rows.len() == kept.order.len());
        }
        assert_eq!(kept.order, [JobId(7), JobId(8), JobId(9)]);
        kept.keep(JobId(9), rows.clone());
        assert_eq!(kept.count, 3 * (rows.len() + 1));
    }
}
