//! Jobs, their counters and what happened to them.
//!
//! Owns the names of the fields. Does not own preemptions (`preemptions`).

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_history::ledger_of;
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, HistoryLine, JobDetail, JobSettings, JobSummary, PartReport,
    PhaseProgress,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::preemptions::{PreemptionAnswer, RestoreAnswer, ResumeAnswer};

/// A job in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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

/// How far the maps or the reduces of a job are.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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

/// A job with its output.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobStatusAnswer {
    #[serde(flatten)]
    pub job: JobAnswer,
    /// Once it has succeeded.
    pub parts: Vec<PartAnswer>,
    /// Nothing of jobs that earlier versions kept.
    pub settings: Option<SettingsAnswer>,
}

impl From<&JobDetail> for JobStatusAnswer {
    fn from(detail: &JobDetail) -> JobStatusAnswer {
        JobStatusAnswer {
            job: (&detail.summary).into(),
            parts: detail.parts.iter().map(PartAnswer::from).collect(),
            settings: detail.settings.as_ref().map(SettingsAnswer::from),
        }
    }
}

/// How a job was to be run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SettingsAnswer {
    /// Of the job program: which of its jobs this is.
    pub definition: String,
    pub reduces: u32,
    /// So often a task may fail before the job does.
    pub attempts_max: u32,
    /// Memory that one attempt may use.
    pub task_memory_bytes: u64,
    /// Whether outputs of maps are compressed.
    pub compress: bool,
    /// Whether an output that was there was to be replaced.
    pub overwrite: bool,
    /// Whether what a task saves is on the disk before it counts.
    pub durable: bool,
    /// Reduces may start when so many thousandths of the maps are done.
    pub slowstart_permille: u32,
    /// An attempt without progress for so long is ended; 0 for never.
    pub task_timeout_millis: u64,
    /// From the submission until it should be done.
    pub deadline_millis: Option<u64>,
    /// Whether its maps can be checkpointed, and its reduces.
    pub checkpoint_maps: bool,
    pub checkpoint_reduces: bool,
}

impl From<&JobSettings> for SettingsAnswer {
    fn from(settings: &JobSettings) -> SettingsAnswer {
        SettingsAnswer {
            definition: settings.definition.clone(),
            reduces: settings.reduces,
            attempts_max: settings.attempts_max,
            task_memory_bytes: settings.task_memory,
            compress: settings.compress,
            overwrite: settings.overwrite,
            durable: settings.durable,
            slowstart_permille: settings.slowstart_permille,
            task_timeout_millis: millis(settings.task_timeout),
            deadline_millis: settings.deadline.map(millis),
            checkpoint_maps: settings.checkpoint_maps,
            checkpoint_reduces: settings.checkpoint_reduces,
        }
    }
}

/// A part file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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

/// What a job has counted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CountersAnswer {
    pub job: String,
    pub counters: BTreeMap<String, u64>,
}

impl From<&JobDetail> for CountersAnswer {
    fn from(detail: &JobDetail) -> CountersAnswer {
        CountersAnswer {
            job: detail.summary.job.to_string(),
            counters: detail.counters.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }
}

/// What happened to a job and its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistoryAnswer {
    pub job: String,
    pub events: Vec<EventAnswer>,
    pub attempts: Vec<AttemptAnswer>,
    pub preemptions: Vec<PreemptionAnswer>,
    pub resumes: Vec<ResumeAnswer>,
    pub restores: Vec<RestoreAnswer>,
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

/// Something that happened to a job as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventAnswer {
    pub at_millis: u64,
    pub text: String,
}

impl From<&HistoryLine> for EventAnswer {
    fn from(line: &HistoryLine) -> EventAnswer {
        EventAnswer { at_millis: line.at_millis, text: line.text.clone() }
    }
}

/// An attempt from its launch to its end.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptAnswer {
    pub attempt: String,
    pub worker: String,
    pub worker_name: String,
    pub launched_millis: u64,
    pub ended_millis: Option<u64>,
    /// In microseconds since 1970, as far as they are known.
    pub launched_micros: u64,
    /// When its process began to work.
    pub started_micros: Option<u64>,
    pub ended_micros: Option<u64>,
    /// `done`, or why not.
    pub end: Option<String>,
    /// In a word: `done`, `checkpointed`, `killed`, `lost` or `failed`; nothing while it goes on.
    pub outcome: Option<&'static str>,
    /// Of one that did its task, as are those that follow: the bytes of a map's split, or those that a
    /// reduce fetched.
    pub input_bytes: Option<u64>,
    /// Bytes that a map wrote for reduces, or those of a part file.
    pub output_bytes: Option<u64>,
    /// Records that the map or reduce function was given.
    pub input_records: Option<u64>,
    /// Records that it emitted.
    pub output_records: Option<u64>,
    /// How long a reduce waited for outputs of maps.
    pub shuffle_millis: Option<u64>,
    /// Processor time.
    pub processor_millis: Option<u64>,
    /// Records that were written to disk by sorting and merging.
    pub spilled_records: Option<u64>,
}

impl From<&AttemptSummary> for AttemptAnswer {
    fn from(attempt: &AttemptSummary) -> AttemptAnswer {
        AttemptAnswer {
            attempt: attempt.attempt.to_string(),
            worker: attempt.worker.to_string(),
            worker_name: attempt.worker_name.clone(),
            launched_millis: attempt.launched_millis,
            ended_millis: attempt.ended_millis,
            launched_micros: attempt.launched_micros(),
            started_micros: attempt.started_micros(),
            ended_micros: attempt.ended_micros(),
            end: attempt.end.clone(),
            outcome: attempt.outcome(),
            input_bytes: figure(attempt, |figures| figures.input_bytes),
            output_bytes: figure(attempt, |figures| figures.output_bytes),
            input_records: figure(attempt, |figures| figures.input_records),
            output_records: figure(attempt, |figures| figures.output_records),
            shuffle_millis: figure(attempt, |figures| figures.shuffle_millis),
            processor_millis: figure(attempt, |figures| figures.processor_millis),
            spilled_records: figure(attempt, |figures| figures.spilled_records),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn figure(attempt: &AttemptSummary, value: fn(&AttemptFigures) -> u64) -> Option<u64> {
    attempt.figures.as_ref().map(value)
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{CheckpointSupport, JobPlan};
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
        assert!(status["settings"].is_null(), "earlier versions kept none");
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
        assert_eq!(history["attempts"][0]["outcome"], "failed");
        assert!(history["attempts"][0]["input_bytes"].is_null(), "it did not do its task");
        assert_eq!(history["events"][1]["at_millis"], 1_790_000_001_500_u64);
    }

    #[test]
    fn settings_are_those_of_the_plan() {
        let mut plan = JobPlan::new("count", "out");
        (plan.reduces, plan.slowstart_permille, plan.durable) = (3, 50, true);
        plan.task_timeout = Duration::from_secs(7);
        plan.checkpoint = CheckpointSupport { map: true, reduce: false };
        let detail = JobDetail { settings: Some(JobSettings::of(&plan)), ..detail() };
        let said = to_value(JobStatusAnswer::from(&detail)).expect("JSON")["settings"].take();
        assert_eq!(
            said.to_string(),
            r#"{"attempts_max":4,"checkpoint_maps":true,"checkpoint_reduces":false,"compress":false,"deadline_millis":null,"definition":"count","durable":true,"overwrite":false,"reduces":3,"slowstart_permille":50,"task_memory_bytes":268435456,"task_timeout_millis":7000}"#
        );
    }

    #[test]
    fn an_attempt_that_did_its_task_says_what_it_has_moved() {
        let mut attempt = detail().attempts[0].clone();
        attempt.figures =
            Some(AttemptFigures { input_bytes: 64, shuffle_millis: 5, ..AttemptFigures::default() });
        let object = to_value(AttemptAnswer::from(&attempt)).expect("JSON");
        assert_eq!((&object["input_bytes"], &object["shuffle_millis"]), (&64.into(), &5.into()));
        assert_eq!(object["output_records"], 0);
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
