//! Heads: one short JSON file per job with everything but its rows. Data that does not fit a head goes to the
//! recording.

mod figures;

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use napreduce_protocol::{
    CounterValues, HistoryLine, JobDetail, JobEnd, JobPhase, JobReport, JobSettings, JobSummary,
    PartReport, Submitted, TaskFailure,
};
use serde::{Deserialize, Serialize};

use self::figures::Durations;
pub(in crate::files) use self::figures::median_without;
pub use self::figures::{LedgerTotals, PERCENTS, quantile, quantiles};
use crate::files::recording::{CounterRow, RecordedRows};
use crate::{EndedJob, KeptLog, RecordedCluster};

/// Size limit for reading a head; heads of version 1 contain whole jobs.
pub(crate) const HEAD_BYTES_READ_MAX: u64 = 256 << 20;
/// The version that is written. Every earlier one stays readable.
const HISTORY_VERSION: u32 = 2;
/// Size limit for writing a head.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// A longer reason is cut in the head and complete in the recording.
const REASON_BYTES_MAX: usize = 8 << 10;

/// A head of the current version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    version: u32,
    #[serde(with = "in_hexadecimal")]
    token: u128,
    summary: JobSummary,
    /// Time from submission to the end of the commit, if the job succeeded.
    wall: Option<Duration>,
    counters: CounterValues,
    parts: Vec<PartReport>,
    /// Row counts of the recording.
    rows: RowCounts,
    durations: Durations,
    preemptions: LedgerTotals,
    settings: Option<JobSettings>,
    /// How it was submitted; `None` if an earlier version wrote the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    submitted: Option<Box<Submitted>>,
    #[serde(default)]
    cluster: Option<RecordedCluster>,
    /// The task that failed the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Box<TaskFailure>>,
}

/// The contents of a job's head.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOverview {
    pub summary: JobSummary,
    /// Totals of the preemption ledger.
    pub ledger: LedgerTotals,
    /// The cluster that the job ran on; `None` if an earlier version wrote the job.
    pub cluster: Option<RecordedCluster>,
}

/// Number of rows of each kind in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct RowCounts {
    attempts: u64,
    events: u64,
    preemptions: u64,
    resumes: u64,
    restores: u64,
    logs: u64,
    /// Parts, counters and reasons: 0 if they are in the head.
    parts: u64,
    counters: u64,
    reasons: u64,
}

/// The contents of a job's two files.
#[derive(Debug)]
pub(crate) struct JobFiles<'a> {
    pub(crate) head: Vec<u8>,
    pub(crate) detail: &'a JobDetail,
    pub(crate) logs: &'a [KeptLog],
    pub(crate) parts: &'a [PartReport],
    pub(crate) counters: Vec<CounterRow>,
    pub(crate) reason: Option<String>,
}

/// The contents of a head file.
#[derive(Debug)]
pub(crate) enum StoredHead {
    /// Contains the whole job.
    Version1(Box<EndedJob>),
    Version2(Box<Head>),
}

/// Splits a job into head and recording. If the head gets too long, its parts move to the recording, then its
/// counters; then it lacks the submission.
pub(crate) fn split(job: &EndedJob) -> Result<JobFiles<'_>, String> {
    let detail = &job.detail;
    let mut head = Head::new(job);
    let logs = job.logs.as_slice();
    let mut files = JobFiles {
        head: Vec::new(),
        detail,
        logs,
        parts: &[],
        counters: Vec::new(),
        reason: None,
    };
    if let Some(reason) = head
        .summary
        .reason
        .as_mut()
        .filter(|reason| reason.len() > REASON_BYTES_MAX)
    {
        files.reason = Some(reason.clone());
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        reason.push('…');
        head.rows.reasons = 1;
    }
    files.head = head.to_bytes()?;
    if files.head.len() > HEAD_BYTES_MAX {
        head.parts = Vec::new();
        files.parts = &detail.parts;
        head.rows.parts = detail.parts.len() as u64;
        files.head = head.to_bytes()?;
    }
    if files.head.len() > HEAD_BYTES_MAX {
        let row = |(name, value): (Cow<'_, str>, u64)| CounterRow {
            name: name.into_owned(),
            value,
        };
        files.counters = detail.counters.entries().map(row).collect();
        head.counters = CounterValues::default();
        head.rows.counters = files.counters.len() as u64;
        files.head = head.to_bytes()?;
    }
    if files.head.len() > HEAD_BYTES_MAX {
        // Thousands of side files: how the job was submitted is lost, not the job.
        head.submitted = None;
        files.head = head.to_bytes()?;
    }
    let length = files.head.len();
    if length > HEAD_BYTES_MAX {
        return Err(format!(
            "the head has {length} bytes without parts and counters (limit {HEAD_BYTES_MAX})"
        ));
    }
    Ok(files)
}

/// Version 1, of 0.2.0: the whole job in one JSON file.
#[derive(Deserialize)]
struct Version1 {
    token: u128,
    end: JobEnd,
    detail: JobDetail,
}

impl StoredHead {
    /// Parses a head of any version.
    pub(crate) fn parse(bytes: &[u8]) -> Result<StoredHead, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match version {
            1 => {
                let Version1 { token, end, detail } =
                    serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                let job = EndedJob {
                    token,
                    end,
                    detail,
                    cluster: None,
                    logs: Vec::new(),
                };
                Ok(StoredHead::Version1(Box::new(job)))
            }
            HISTORY_VERSION => {
                let head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                Ok(StoredHead::Version2(Box::new(head)))
            }
            other => Err(format!(
                "version {other}; this program reads up to {HISTORY_VERSION}"
            )),
        }
    }

    /// Returns the row of a listing.
    pub(crate) fn summary(&self) -> &JobSummary {
        match self {
            StoredHead::Version1(job) => &job.detail.summary,
            StoredHead::Version2(head) => &head.summary,
        }
    }

    /// Returns the job's data without its recording.
    pub(crate) fn into_overview(self) -> JobOverview {
        match self {
            StoredHead::Version1(job) => {
                let EndedJob {
                    detail, cluster, ..
                } = *job;
                let ledger = LedgerTotals::new(&detail);
                JobOverview {
                    summary: detail.summary,
                    ledger,
                    cluster,
                }
            }
            StoredHead::Version2(head) => JobOverview {
                summary: head.summary,
                ledger: head.preemptions,
                cluster: head.cluster,
            },
        }
    }

    /// Returns the row of a listing and the submission token.
    pub(crate) fn into_summary(self) -> (JobSummary, u128) {
        match self {
            StoredHead::Version1(job) => (job.detail.summary, job.token),
            StoredHead::Version2(head) => (head.summary, head.token),
        }
    }
}

impl Head {
    fn new(job: &EndedJob) -> Head {
        let (wall, failure) = match &job.end {
            JobEnd::Succeeded(report) => (Some(report.wall), None),
            JobEnd::Failed { failure, .. } => (None, failure.clone()),
            JobEnd::Killed { .. } => (None, None),
        };
        Head {
            version: HISTORY_VERSION,
            token: job.token,
            summary: job.detail.summary.clone(),
            wall,
            counters: job.detail.counters.clone(),
            parts: job.detail.parts.clone(),
            rows: RowCounts::new(job),
            durations: Durations::new(&job.detail.attempts),
            preemptions: LedgerTotals::new(&job.detail),
            settings: job.detail.settings.clone(),
            submitted: job.detail.submitted.clone().map(Box::new),
            cluster: job.cluster.clone(),
            failure,
        }
    }

    /// Describes the rows that a recording should have but lacks.
    pub(crate) fn missing(&self, rows: &RecordedRows) -> Option<String> {
        self.rows.missing(rows)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }

    /// Rebuilds the job; missing rows are reported in its events, under the name `recording`.
    pub(crate) fn with_rows(
        self,
        rows: RecordedRows,
        recording: &dyn Display,
    ) -> Result<EndedJob, String> {
        let missing = self.rows.missing(&rows);
        let Head {
            token,
            mut summary,
            wall,
            mut counters,
            mut parts,
            settings,
            submitted,
            cluster,
            failure,
            ..
        } = self;
        summary.reason = rows.reasons.into_iter().next().or(summary.reason);
        for row in &rows.counters {
            counters.add(&row.name, row.value);
        }
        parts.extend(rows.parts);
        let at_millis = summary.ended_millis.unwrap_or(summary.submitted_millis);
        let mut events = rows.events;
        let remark = |what| HistoryLine {
            at_millis,
            text: format!("{recording}: {what}"),
        };
        events.extend(rows.remarks.into_iter().chain(missing).map(remark));
        let mut end = end_of(&summary, wall, &counters, &parts)?;
        if let JobEnd::Failed {
            failure: unknown, ..
        } = &mut end
        {
            *unknown = failure;
        }
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
            submitted: submitted.map(|submitted| *submitted),
            scheduler: cluster.as_ref().map(RecordedCluster::in_force),
        };
        Ok(EndedJob {
            token,
            end,
            detail,
            cluster,
            logs: rows.logs,
        })
    }
}

impl RowCounts {
    fn new(job: &EndedJob) -> RowCounts {
        RowCounts {
            attempts: job.detail.attempts.len() as u64,
            events: job.detail.events.len() as u64,
            preemptions: job.detail.preemptions.len() as u64,
            resumes: job.detail.resumes.len() as u64,
            restores: job.detail.restores.len() as u64,
            logs: job.logs.len() as u64,
            parts: 0,
            counters: 0,
            reasons: 0,
        }
    }

    /// Describes the rows that a recording should have but lacks.
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
        let lacking = kinds
            .into_iter()
            .filter(|(_, expected, found)| (*found as u64) < *expected);
        let words: Vec<String> = lacking
            .map(|(name, expected, found)| {
                format!("{} of {expected} {name}", expected - found as u64)
            })
            .collect();
        (!words.is_empty()).then(|| format!("{} cannot be shown", words.join(", ")))
    }
}

/// Rebuilds the answer to the submitter.
fn end_of(
    summary: &JobSummary,
    wall: Option<Duration>,
    counters: &CounterValues,
    parts: &[PartReport],
) -> Result<JobEnd, String> {
    let job = summary.job;
    let reason = summary.reason.clone().unwrap_or_default();
    match summary.phase {
        JobPhase::Succeeded => Ok(JobEnd::Succeeded(JobReport {
            job,
            name: summary.name.clone(),
            counters: counters.clone(),
            wall: wall.unwrap_or_default(),
            parts: parts.to_vec(),
            output: summary.output.clone(),
        })),
        JobPhase::Failed => Ok(JobEnd::Failed {
            job,
            reason,
            failure: None,
        }),
        JobPhase::Killed => Ok(JobEnd::Killed { job, reason }),
        phase => Err(format!(
            "the job is {}; expected an ended job",
            phase.in_words()
        )),
    }
}

/// Most JSON readers do not support 128-bit numbers.
pub(crate) mod in_hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(token: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{token:032x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16)
            .map_err(|error| D::Error::custom(format!("invalid token {text}: {error}")))
    }
}
