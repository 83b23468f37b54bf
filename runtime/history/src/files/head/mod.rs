//! Heads: the file of a job that says all there is to say of it but its rows, short and as JSON.
//!
//! Owns its form, every version of it, and what goes into the recording because it has no room. Does not own
//! which files there are (`store`).

mod figures;
mod version_1;

use std::fmt::Display;
use std::time::Duration;

use napreduce_engine::fields;
use napreduce_protocol::{
    CounterValues, HistoryLine, JobDetail, JobEnd, JobPhase, JobReport, JobSettings, JobSummary, PartReport,
};
use serde::{Deserialize, Serialize};

use self::figures::Durations;
pub use self::figures::{LedgerTotals, PERCENTS, quantiles};
use crate::files::recording::{CounterRow, RecordedRows};
use crate::{EndedJob, KeptLog, RecordedCluster};

/// The longest head that is read: those of version 1 hold whole jobs.
pub(crate) const HEAD_BYTES_READ_MAX: u64 = 256 << 20;
/// Version of the heads that are written. Every earlier one is read for ever.
const HISTORY_VERSION: u32 = 2;
/// Length of a head at most.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// A longer reason is cut in the head, and whole in the recording.
const REASON_BYTES_MAX: usize = 8 << 10;

fields! {
    /// A head of the present version.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub(crate) struct Head {
        version: u32 = HISTORY_VERSION,
        #[serde(with = "in_hexadecimal")]
        token: u128 = job.token,
        summary: JobSummary = job.detail.summary.clone(),
        /// From submission to the end of the commit, if it succeeded.
        wall: Option<Duration> = wall,
        counters: CounterValues = job.detail.counters.clone(),
        parts: Vec<PartReport> = job.detail.parts.clone(),
        /// How many rows the recording has.
        rows: RowCounts = RowCounts::of(job),
        durations: Durations = Durations::of(&job.detail.attempts),
        preemptions: LedgerTotals = LedgerTotals::of(&job.detail),
        settings: Option<JobSettings> = job.detail.settings.clone(),
        #[serde(default)]
        cluster: Option<RecordedCluster> = job.cluster.clone(),
    }

    fn of(job: &EndedJob) {
        let wall = match &job.end {
            JobEnd::Succeeded(report) => Some(report.wall),
            JobEnd::Failed { .. } | JobEnd::Killed { .. } => None,
        };
    }
}

/// A job as its head alone tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOverview {
    pub summary: JobSummary,
    /// What its preemptions come to.
    pub ledger: LedgerTotals,
    /// The cluster that it ran on; unknown of jobs that an earlier version kept.
    pub cluster: Option<RecordedCluster>,
}

fields! {
    /// How many rows of each kind a recording was written with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(default)]
    struct RowCounts {
        attempts: u64 = job.detail.attempts.len() as u64,
        events: u64 = job.detail.events.len() as u64,
        preemptions: u64 = job.detail.preemptions.len() as u64,
        resumes: u64 = job.detail.resumes.len() as u64,
        restores: u64 = job.detail.restores.len() as u64,
        logs: u64 = job.logs.len() as u64,
        /// Zero when they are in the head; so are the next two.
        parts: u64,
        counters: u64,
        reasons: u64,
    }

    fn of(job: &EndedJob);
}

/// A job as its two files hold it.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    pub(crate) head: Vec<u8>,
    pub(crate) detail: &'a JobDetail,
    pub(crate) logs: &'a [KeptLog],
    pub(crate) parts: &'a [PartReport],
    pub(crate) counters: Vec<CounterRow>,
    pub(crate) reason: Option<String>,
}

/// What a file of a head holds.
#[derive(Debug)]
pub(crate) enum StoredHead {
    /// The whole job is in its head.
    Version1(Box<EndedJob>),
    Version2(Box<Head>),
}

/// Shares a job out to head and recording. Parts go there first, then the counters: both are answered whole
/// either way.
pub(crate) fn share_out(job: &EndedJob) -> Result<Written<'_>, String> {
    let detail = &job.detail;
    let mut head = Head::of(job);
    let logs = job.logs.as_slice();
    let mut written =
        Written { head: Vec::new(), detail, logs, parts: &[], counters: Vec::new(), reason: None };
    if let Some(reason) = head.summary.reason.as_mut().filter(|reason| reason.len() > REASON_BYTES_MAX) {
        written.reason = Some(reason.clone());
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        reason.push('…');
        head.rows.reasons = 1;
    }
    written.head = head.to_bytes()?;
    if written.head.len() > HEAD_BYTES_MAX {
        head.parts = Vec::new();
        written.parts = &detail.parts;
        head.rows.parts = detail.parts.len() as u64;
        written.head = head.to_bytes()?;
    }
    if written.head.len() > HEAD_BYTES_MAX {
        let row = |(name, value): (&str, u64)| CounterRow { name: name.to_owned(), value };
        written.counters = detail.counters.iter().map(row).collect();
        head.counters = CounterValues::default();
        head.rows.counters = written.counters.len() as u64;
        written.head = head.to_bytes()?;
    }
    match written.head.len() {
        0..=HEAD_BYTES_MAX => Ok(written),
        length => {
            Err(format!("its head has {length} bytes without parts and counters, more than {HEAD_BYTES_MAX}"))
        }
    }
}

impl StoredHead {
    /// What a file holds, or why it cannot be read.
    pub(crate) fn parse(bytes: &[u8]) -> Result<StoredHead, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match version {
            1 => version_1::parse(bytes).map(|job| StoredHead::Version1(Box::new(job))),
            HISTORY_VERSION => {
                let head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                Ok(StoredHead::Version2(Box::new(head)))
            }
            other => Err(format!("it has version {other}, and this program reads up to {HISTORY_VERSION}")),
        }
    }

    /// What a listing shows.
    pub(crate) fn summary(&self) -> &JobSummary {
        match self {
            StoredHead::Version1(job) => &job.detail.summary,
            StoredHead::Version2(head) => &head.summary,
        }
    }

    /// What is known of it without its recording.
    pub(crate) fn into_overview(self) -> JobOverview {
        match self {
            StoredHead::Version1(job) => {
                let EndedJob { detail, cluster, .. } = *job;
                let ledger = LedgerTotals::of(&detail);
                JobOverview { summary: detail.summary, ledger, cluster }
            }
            StoredHead::Version2(head) => {
                JobOverview { summary: head.summary, ledger: head.preemptions, cluster: head.cluster }
            }
        }
    }

    /// The same, and the token.
    pub(crate) fn into_summary(self) -> (JobSummary, u128) {
        match self {
            StoredHead::Version1(job) => (job.detail.summary, job.token),
            StoredHead::Version2(head) => (head.summary, head.token),
        }
    }
}

impl Head {
    /// What a recording does not give that it was written with, for people.
    pub(crate) fn missing(&self, rows: &RecordedRows) -> Option<String> {
        self.rows.missing(rows)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }

    /// The job as it was; what the recording does not give is said in the events. `recording` is its name.
    pub(crate) fn with_rows(self, rows: RecordedRows, recording: &dyn Display) -> Result<EndedJob, String> {
        let missing = self.rows.missing(&rows);
        let Head { token, mut summary, wall, mut counters, mut parts, settings, cluster, .. } = self;
        summary.reason = rows.reasons.into_iter().next().or(summary.reason);
        rows.counters.iter().for_each(|row| counters.add(&row.name, row.value));
        parts.extend(rows.parts);
        let at_millis = summary.ended_millis.unwrap_or(summary.submitted_millis);
        let mut events = rows.events;
        let remark = |what| HistoryLine { at_millis, text: format!("{recording}: {what}") };
        events.extend(rows.remarks.into_iter().chain(missing).map(remark));
        let end = end_of(&summary, wall, &counters, &parts)?;
        let detail = JobDetail {
            summary,
            counters,
            parts,
            attempts: rows.attempts,
            events,
            preemptions: rows.preemptions,
            resumes: rows.resumes,
            restores: rows.restores,
            settings,
        };
        Ok(EndedJob { token, end, detail, cluster, logs: rows.logs })
    }
}

impl RowCounts {
    /// What a recording lacks of them, for people.
    fn missing(&self, rows: &RecordedRows) -> Option<String> {
        let kinds = [
            ("attempts", self.attempts, rows.attempts.len()),
            ("events", self.events, rows.events.len()),
            ("preemptions", self.preemptions, rows.preemptions.len()),
            ("resumes", self.resumes, rows.resumes.len()),
            ("restores", self.restores, rows.restores.len()),
            ("logs", self.logs, rows.logs.len()),
            ("parts", self.parts, rows.parts.len()),
            ("counters", self.counters, rows.counters.len()),
            ("reasons", self.reasons, rows.reasons.len()),
        ];
        let lacking = kinds.into_iter().filter(|(_, had, has)| (*has as u64) < *had);
        let words: Vec<String> =
            lacking.map(|(name, had, has)| format!("{} of {had} {name}", had - has as u64)).collect();
        (!words.is_empty()).then(|| format!("{} cannot be shown", words.join(", ")))
    }
}

/// What the submitter is told, which is all in what others are told.
fn end_of(
    summary: &JobSummary,
    wall: Option<Duration>,
    counters: &CounterValues,
    parts: &[PartReport],
) -> Result<JobEnd, String> {
    let (job, reason) = (summary.job, summary.reason.clone().unwrap_or_default());
    match summary.phase {
        JobPhase::Succeeded => Ok(JobEnd::Succeeded(JobReport {
            job,
            name: summary.name.clone(),
            counters: counters.clone(),
            wall: wall.unwrap_or_default(),
            parts: parts.to_vec(),
            output: summary.output.clone(),
        })),
        JobPhase::Failed => Ok(JobEnd::Failed { job, reason }),
        JobPhase::Killed => Ok(JobEnd::Killed { job, reason }),
        phase => Err(format!("it says that the job is {}", phase.in_words())),
    }
}

/// Numbers of 128 bits are no numbers to most programs that read JSON.
pub(crate) mod in_hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(token: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{token:032x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16)
            .map_err(|error| D::Error::custom(format!("the token {text}: {error}")))
    }
}
