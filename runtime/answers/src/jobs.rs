//! Jobs, their counters and their histories.

use std::collections::BTreeMap;

use napreduce_engine::{Span, TimeLeft};
use napreduce_history::ledger_of;
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, HistoryLine, JobDetail, JobSettings, JobSummary, PartReport,
    PhaseProgress, whole_millis,
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
    /// `waiting`, `running`, `held`, `suspended`, `stopping`, `succeeded`, `failed` or `killed`.
    pub state: &'static str,
    /// Why it failed, was killed or is held, or is missing from the history.
    pub reason: Option<String>,
    pub submitted_millis: u64,
    pub ended_millis: Option<u64>,
    /// The output directory.
    pub output: String,
    pub map: PhaseAnswer,
    pub reduce: PhaseAnswer,
    /// When it will be done; `null` while it waits for slots or too little is known.
    pub left: Option<TimeLeftAnswer>,
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
            reason: reason_of(job),
            submitted_millis: job.submitted_millis,
            ended_millis: job.ended_millis,
            output: job.output.to_string_lossy().into_owned(),
            map: (&job.progress.map).into(),
            reduce: (&job.progress.reduce).into(),
            left: job.progress.left.map(TimeLeftAnswer::from),
        }
    }
}

/// Returns why a job failed, was killed or is held, and why the history does not have it.
fn reason_of(job: &JobSummary) -> Option<String> {
    let missing = job
        .unrecorded
        .as_ref()
        .map(|why| format!("it is missing from the history: {why}"));
    match (&job.reason, missing) {
        (Some(reason), Some(missing)) => Some(format!("{reason}; {missing}")),
        (Some(reason), None) => Some(reason.clone()),
        (None, missing) => missing,
    }
}

/// The estimated time until a job is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TimeLeftAnswer {
    pub least_millis: u64,
    pub likely_millis: u64,
    pub most_millis: u64,
}

impl From<TimeLeft> for TimeLeftAnswer {
    fn from(
        TimeLeft {
            least,
            likely,
            most,
        }: TimeLeft,
    ) -> TimeLeftAnswer {
        let millis = |span: Span| span.as_micros() / 1_000;
        TimeLeftAnswer {
            least_millis: millis(least),
            likely_millis: millis(likely),
            most_millis: millis(most),
        }
    }
}

/// Progress of the maps or the reduces of a job.
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
    /// Filled once the job has succeeded.
    pub parts: Vec<PartAnswer>,
    /// `null` if an earlier version wrote the job.
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

/// The settings of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SettingsAnswer {
    /// Name of the job definition in the program.
    pub definition: String,
    pub reduces: u32,
    /// Failed attempts of a task after which the job fails.
    pub attempts_max: u32,
    /// Memory limit of an attempt.
    pub task_memory_bytes: u64,
    /// Whether map output is compressed.
    pub compress: bool,
    /// Whether existing output is replaced.
    pub overwrite: bool,
    /// Whether output is synced to disk before it counts.
    pub durable: bool,
    /// Fraction of finished maps, in thousandths, from which reduces may start.
    pub slowstart_permille: u32,
    /// An attempt without progress for this long is killed; 0 for never.
    pub task_timeout_millis: u64,
    /// Time from the submission to the deadline.
    pub deadline_millis: Option<u64>,
    /// Whether maps and reduces can be checkpointed.
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
            task_timeout_millis: whole_millis(settings.task_timeout),
            deadline_millis: settings.deadline.map(whole_millis),
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
    /// XXH3 of the contents, in hexadecimal.
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

/// The counters of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CountersAnswer {
    pub job: String,
    pub counters: BTreeMap<String, u64>,
}

impl From<&JobDetail> for CountersAnswer {
    fn from(detail: &JobDetail) -> CountersAnswer {
        CountersAnswer {
            job: detail.summary.job.to_string(),
            counters: detail
                .counters
                .iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}

/// The history of a job and its attempts.
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
            preemptions: ledger_of(detail)
                .iter()
                .map(PreemptionAnswer::from)
                .collect(),
            resumes: detail.resumes.iter().map(ResumeAnswer::from).collect(),
            restores: detail.restores.iter().map(RestoreAnswer::from).collect(),
        }
    }
}

/// An event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EventAnswer {
    pub at_millis: u64,
    pub text: String,
}

impl From<&HistoryLine> for EventAnswer {
    fn from(line: &HistoryLine) -> EventAnswer {
        EventAnswer {
            at_millis: line.at_millis,
            text: line.text.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptAnswer {
    pub attempt: String,
    pub worker: String,
    pub worker_name: String,
    pub launched_millis: u64,
    pub ended_millis: Option<u64>,
    /// Microseconds since 1970, in the best known resolution.
    pub launched_micros: u64,
    /// When the process started to work.
    pub started_micros: Option<u64>,
    pub ended_micros: Option<u64>,
    /// `succeeded`, or the reason of the end.
    pub end: Option<String>,
    /// `succeeded`, `checkpointed`, `killed`, `lost` or `failed`; `null` while the attempt runs.
    pub outcome: Option<&'static str>,
    /// For successful attempts, like the fields below: bytes of a map's split, or bytes that a reduce fetched.
    pub input_bytes: Option<u64>,
    /// Bytes of map output, or of a part file.
    pub output_bytes: Option<u64>,
    /// Input records of the map or reduce function.
    pub input_records: Option<u64>,
    /// Records that the function emitted.
    pub output_records: Option<u64>,
    /// Time that a reduce waited for map output.
    pub shuffle_millis: Option<u64>,
    pub processor_millis: Option<u64>,
    /// Records written to disk by sorting and merging.
    pub spilled_records: Option<u64>,
    /// Peak of its anonymous memory; `null` if unknown.
    pub peak_memory_bytes: Option<u64>,
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
            peak_memory_bytes: figure(attempt, |figures| figures.peak_memory_bytes)
                .filter(|peak| *peak > 0),
        }
    }
}

fn figure(attempt: &AttemptSummary, value: fn(&AttemptFigures) -> u64) -> Option<u64> {
    attempt.figures.as_ref().map(value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use napreduce_protocol::{CheckpointSupport, JobPlan};
    use serde_json::to_value;

    use super::super::samples::{EVIL, detail, summary};
    use super::*;

    #[test]
    fn job_is_an_object() {
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
        assert!(status["settings"].is_null(), "earlier versions have none");
        assert_eq!(
            status["parts"].to_string(),
            r#"[{"bytes":9,"digest":"00000000000000ff","name":"part-r-00000","records":2}]"#
        );
        assert_eq!(
            to_value(CountersAnswer::from(&detail()))
                .expect("JSON")
                .to_string(),
            r#"{"counters":{"MAP_INPUT_RECORDS":12,"bad rows":3},"job":"job_0007"}"#
        );
        let history = to_value(HistoryAnswer::from(&detail())).expect("JSON");
        assert_eq!(history["attempts"][0]["end"], "failed: bad row");
        assert_eq!(history["attempts"][0]["outcome"], "failed");
        assert!(
            history["attempts"][0]["input_bytes"].is_null(),
            "the attempt failed"
        );
        assert_eq!(history["events"][1]["at_millis"], 1_790_000_001_500_u64);
    }

    #[test]
    fn settings_equal_those_of_the_plan() {
        let mut plan = JobPlan::new("count", "out");
        (plan.reduces, plan.slowstart_permille, plan.durable) = (3, 50, true);
        plan.task_timeout = Duration::from_secs(7);
        plan.checkpoint = CheckpointSupport {
            map: true,
            reduce: false,
        };
        let detail = JobDetail {
            settings: Some(JobSettings::from_plan(&plan)),
            ..detail()
        };
        let settings = to_value(JobStatusAnswer::from(&detail)).expect("JSON")["settings"].take();
        assert_eq!(
            settings.to_string(),
            r#"{"attempts_max":4,"checkpoint_maps":true,"checkpoint_reduces":false,"compress":false,"deadline_millis":null,"definition":"count","durable":true,"overwrite":false,"reduces":3,"slowstart_permille":50,"task_memory_bytes":268435456,"task_timeout_millis":7000}"#
        );
    }

    #[test]
    fn successful_attempt_has_figures() {
        let mut attempt = detail().attempts[0].clone();
        attempt.figures = Some(AttemptFigures {
            input_bytes: 64,
            shuffle_millis: 5,
            ..AttemptFigures::default()
        });
        let object = to_value(AttemptAnswer::from(&attempt)).expect("JSON");
        assert_eq!(
            (&object["input_bytes"], &object["shuffle_millis"]),
            (&64.into(), &5.into())
        );
        assert_eq!(object["output_records"], 0);
    }

    #[test]
    fn json_contains_control_characters_unchanged() {
        let mut detail = detail();
        detail.summary.name = EVIL.to_owned();
        detail.events[0].text = EVIL.to_owned();
        assert_eq!(
            to_value(JobStatusAnswer::from(&detail)).expect("JSON")["name"],
            EVIL
        );
        assert_eq!(
            to_value(HistoryAnswer::from(&detail)).expect("JSON")["events"][0]["text"],
            EVIL
        );
    }
}
