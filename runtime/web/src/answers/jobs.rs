//! Jobs, their counters and what happened to them.
//!
//! Owns the names of the fields. Does not own preemptions (`preemptions`).

use std::collections::BTreeMap;

use napreduce_history::ledger_of;
use napreduce_protocol::{AttemptSummary, HistoryLine, JobDetail, JobSummary, PartReport, PhaseProgress};
use schemars::JsonSchema;
use serde::Serialize;

use super::preemptions::{PreemptionAnswer, RestoreAnswer, ResumeAnswer};

/// A job in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobAnswer {
    pub job: String,
    pub name: String,
    pub user: String,
    pub queue: String,
    pub priority: i32,
    /// `active`, `suspended`, `stopping`, `succeeded`, `failed` or `killed`.
    pub state: &'static str,
    /// Why it failed or was killed, or what holds it.
    pub reason: Option<String>,
    pub submitted_millis: u64,
    pub ended_millis: Option<u64>,
    /// The output directory.
    pub output: String,
    pub map: PhaseAnswer,
    pub reduce: PhaseAnswer,
}

/// How far the maps or the reduces of a job are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseAnswer {
    pub tasks: u32,
    pub done: u32,
    pub running: u32,
    pub suspended: u32,
    pub checkpointed: u32,
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub percent: u32,
}

impl From<&PhaseProgress> for PhaseAnswer {
    fn from(phase: &PhaseProgress) -> PhaseAnswer {
        PhaseAnswer {
            tasks: phase.tasks,
            done: phase.done,
            running: phase.running,
            suspended: phase.suspended,
            checkpointed: phase.checkpointed,
            bytes_done: phase.bytes_done,
            bytes_total: phase.bytes_total,
            percent: phase.percent(),
        }
    }
}

impl From<&JobSummary> for JobAnswer {
    fn from(job: &JobSummary) -> JobAnswer {
        JobAnswer {
            job: job.job.to_string(),
            name: job.name.clone(),
            user: job.user.clone(),
            queue: job.queue.clone(),
            priority: job.priority,
            state: job.phase.in_words(),
            reason: job.reason.clone(),
            submitted_millis: job.submitted_millis,
            ended_millis: job.ended_millis,
            output: job.output.to_string_lossy().into_owned(),
            map: (&job.progress.map).into(),
            reduce: (&job.progress.reduce).into(),
        }
    }
}

/// A job with its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobStatusAnswer {
    #[serde(flatten)]
    pub job: JobAnswer,
    /// Once it has succeeded.
    pub parts: Vec<PartAnswer>,
}

/// A part file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartAnswer {
    pub name: String,
    pub records: u64,
    pub bytes: u64,
    /// XXH3 of its bytes, in hexadecimal digits.
    pub digest: String,
}

impl From<&PartReport> for PartAnswer {
    fn from(part: &PartReport) -> PartAnswer {
        PartAnswer {
            name: part.name.clone(),
            records: part.records,
            bytes: part.bytes,
            digest: format!("{:016x}", part.digest),
        }
    }
}

impl From<&JobDetail> for JobStatusAnswer {
    fn from(detail: &JobDetail) -> JobStatusAnswer {
        let parts = detail.parts.iter().map(PartAnswer::from).collect();
        JobStatusAnswer { job: (&detail.summary).into(), parts }
    }
}

/// What a job has counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CountersAnswer {
    pub job: String,
    pub counters: BTreeMap<String, u64>,
}

impl From<&JobDetail> for CountersAnswer {
    fn from(detail: &JobDetail) -> CountersAnswer {
        let counters = detail.counters.iter().map(|(name, value)| (name.to_owned(), value)).collect();
        CountersAnswer { job: detail.summary.job.to_string(), counters }
    }
}

/// What happened to a job and its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryAnswer {
    pub job: String,
    pub events: Vec<EventAnswer>,
    pub attempts: Vec<AttemptAnswer>,
    pub preemptions: Vec<PreemptionAnswer>,
    pub resumes: Vec<ResumeAnswer>,
    pub restores: Vec<RestoreAnswer>,
}

/// Something that happened to a job as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventAnswer {
    pub at_millis: u64,
    pub text: String,
}

/// An attempt from its launch to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttemptAnswer {
    pub attempt: String,
    pub worker: String,
    pub worker_name: String,
    pub launched_millis: u64,
    pub ended_millis: Option<u64>,
    /// `done`, or why not.
    pub end: Option<String>,
}

impl From<&HistoryLine> for EventAnswer {
    fn from(line: &HistoryLine) -> EventAnswer {
        EventAnswer { at_millis: line.at_millis, text: line.text.clone() }
    }
}

impl From<&AttemptSummary> for AttemptAnswer {
    fn from(attempt: &AttemptSummary) -> AttemptAnswer {
        AttemptAnswer {
            attempt: attempt.attempt.to_string(),
            worker: attempt.worker.to_string(),
            worker_name: attempt.worker_name.clone(),
            launched_millis: attempt.launched_millis,
            ended_millis: attempt.ended_millis,
            end: attempt.end.clone(),
        }
    }
}

impl From<&JobDetail> for HistoryAnswer {
    fn from(detail: &JobDetail) -> HistoryAnswer {
        HistoryAnswer {
            job: detail.summary.job.to_string(),
            events: detail.events.iter().map(EventAnswer::from).collect(),
            attempts: detail.attempts.iter().map(AttemptAnswer::from).collect(),
            preemptions: ledger_of(detail).iter().map(PreemptionAnswer::from).collect(),
            resumes: detail.resumes.iter().map(ResumeAnswer::from).collect(),
            restores: detail.restores.iter().map(RestoreAnswer::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::to_value;

    use super::super::samples::{EVIL, detail, summary};
    use super::*;

    #[test]
    fn a_job_is_an_object() {
        let object = to_value(JobAnswer::from(&summary())).expect("JSON");
        assert_eq!(object["job"], "job_0007");
        assert_eq!(object["state"], "failed");
        assert_eq!(object["reason"], "job_0007_m_0003 failed 4 times");
        assert_eq!(object["output"], "/data/out");
        assert_eq!(object["ended_millis"], 1_790_000_001_500_u64);
        assert_eq!(
            object["map"].to_string(),
            r#"{"bytes_done":0,"bytes_total":0,"checkpointed":0,"done":3,"percent":75,"running":1,"suspended":0,"tasks":4}"#
        );
    }

    #[test]
    fn parts_counters_and_history_are_objects() {
        let status = to_value(JobStatusAnswer::from(&detail())).expect("JSON");
        assert_eq!(status["name"], "wordcount");
        assert_eq!(
            status["parts"].to_string(),
            r#"[{"bytes":9,"digest":"00000000000000ff","name":"part-r-00000","records":2}]"#
        );
        assert_eq!(
            to_value(CountersAnswer::from(&detail())).expect("JSON").to_string(),
            r#"{"counters":{"MAP_INPUT_RECORDS":12,"bad rows":3},"job":"job_0007"}"#
        );
        let history = to_value(HistoryAnswer::from(&detail())).expect("JSON");
        assert_eq!(history["attempts"][0]["end"], "failed: bad row");
        assert_eq!(history["events"][1]["at_millis"], 1_790_000_001_500_u64);
    }

    #[test]
    fn programs_are_told_what_others_have_written_as_it_is() {
        let mut detail = detail();
        detail.summary.name = EVIL.to_owned();
        detail.events[0].text = EVIL.to_owned();
        assert_eq!(to_value(JobStatusAnswer::from(&detail)).expect("JSON")["name"], EVIL);
        assert_eq!(to_value(HistoryAnswer::from(&detail)).expect("JSON")["events"][0]["text"], EVIL);
    }
}
