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

use super::preemptions::{PreemptionAnswer, RestoreAnswer, ResumeAnswer};

answer! {
    /// A job in a listing.
    pub struct JobAnswer from |job: &JobSummary| {
        pub job: String = job.job.to_string(),
        pub name: String = job.name.clone(),
        pub user: String = job.user.clone(),
        pub queue: String = job.queue.clone(),
        pub priority: i32 = job.priority,
        /// `active`, `suspended`, `stopping`, `succeeded`, `failed` or `killed`.
        pub state: &'static str = job.phase.in_words(),
        /// Why it failed or was killed, or what holds it.
        pub reason: Option<String> = job.reason.clone(),
        pub submitted_millis: u64 = job.submitted_millis,
        pub ended_millis: Option<u64> = job.ended_millis,
        /// The output directory.
        pub output: String = job.output.to_string_lossy().into_owned(),
        pub map: PhaseAnswer = (&job.progress.map).into(),
        pub reduce: PhaseAnswer = (&job.progress.reduce).into(),
    }

    /// How far the maps or the reduces of a job are.
    pub struct PhaseAnswer from |phase: &PhaseProgress| {
        pub tasks: u32 = phase.tasks,
        pub done: u32 = phase.done,
        pub running: u32 = phase.running,
        pub suspended: u32 = phase.suspended,
        pub checkpointed: u32 = phase.checkpointed,
        pub bytes_done: u64 = phase.bytes_done,
        pub bytes_total: u64 = phase.bytes_total,
        pub percent: u32 = phase.percent(),
    }

    /// A job with its output.
    pub struct JobStatusAnswer from |detail: &JobDetail| {
        #[serde(flatten)]
        pub job: JobAnswer = (&detail.summary).into(),
        /// Once it has succeeded.
        pub parts: Vec<PartAnswer> = detail.parts.iter().map(PartAnswer::from).collect(),
        /// Nothing of jobs that earlier versions kept.
        pub settings: Option<SettingsAnswer> = detail.settings.as_ref().map(SettingsAnswer::from),
    }

    /// How a job was to be run.
    pub struct SettingsAnswer from |settings: &JobSettings| {
        /// Of the job program: which of its jobs this is.
        pub definition: String = settings.definition.clone(),
        pub reduces: u32 = settings.reduces,
        /// So often a task may fail before the job does.
        pub attempts_max: u32 = settings.attempts_max,
        /// Memory that one attempt may use.
        pub task_memory_bytes: u64 = settings.task_memory,
        /// Whether outputs of maps are compressed.
        pub compress: bool = settings.compress,
        /// Whether an output that was there was to be replaced.
        pub overwrite: bool = settings.overwrite,
        /// Whether what a task saves is on the disk before it counts.
        pub durable: bool = settings.durable,
        /// Reduces may start when so many thousandths of the maps are done.
        pub slowstart_permille: u32 = settings.slowstart_permille,
        /// An attempt without progress for so long is ended; 0 for never.
        pub task_timeout_millis: u64 = millis(settings.task_timeout),
        /// From the submission until it should be done.
        pub deadline_millis: Option<u64> = settings.deadline.map(millis),
        /// Whether its maps can be checkpointed, and its reduces.
        pub checkpoint_maps: bool = settings.checkpoint_maps,
        pub checkpoint_reduces: bool = settings.checkpoint_reduces,
    }

    /// A part file.
    pub struct PartAnswer from |part: &PartReport| {
        pub name: String = part.name.clone(),
        pub records: u64 = part.records,
        pub bytes: u64 = part.bytes,
        /// XXH3 of its bytes, in hexadecimal digits.
        pub digest: String = format!("{:016x}", part.digest),
    }

    /// What a job has counted.
    pub struct CountersAnswer from |detail: &JobDetail| {
        pub job: String = detail.summary.job.to_string(),
        pub counters: BTreeMap<String, u64> =
            detail.counters.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }

    /// What happened to a job and its attempts.
    pub struct HistoryAnswer from |detail: &JobDetail| {
        pub job: String = detail.summary.job.to_string(),
        pub events: Vec<EventAnswer> = detail.events.iter().map(EventAnswer::from).collect(),
        pub attempts: Vec<AttemptAnswer> = detail.attempts.iter().map(AttemptAnswer::from).collect(),
        pub preemptions: Vec<PreemptionAnswer> =
            ledger_of(detail).iter().map(PreemptionAnswer::from).collect(),
        pub resumes: Vec<ResumeAnswer> = detail.resumes.iter().map(ResumeAnswer::from).collect(),
        pub restores: Vec<RestoreAnswer> = detail.restores.iter().map(RestoreAnswer::from).collect(),
    }

    /// Something that happened to a job as a whole.
    pub struct EventAnswer from |line: &HistoryLine| {
        pub at_millis: u64 = line.at_millis,
        pub text: String = line.text.clone(),
    }

    /// An attempt from its launch to its end.
    pub struct AttemptAnswer from |attempt: &AttemptSummary| {
        pub attempt: String = attempt.attempt.to_string(),
        pub worker: String = attempt.worker.to_string(),
        pub worker_name: String = attempt.worker_name.clone(),
        pub launched_millis: u64 = attempt.launched_millis,
        pub ended_millis: Option<u64> = attempt.ended_millis,
        /// In microseconds since 1970, as far as they are known.
        pub launched_micros: u64 = attempt.launched_micros(),
        /// When its process began to work.
        pub started_micros: Option<u64> = attempt.started_micros(),
        pub ended_micros: Option<u64> = attempt.ended_micros(),
        /// `done`, or why not.
        pub end: Option<String> = attempt.end.clone(),
        /// In a word: `done`, `checkpointed`, `killed`, `lost` or `failed`; nothing while it goes on.
        pub outcome: Option<&'static str> = attempt.outcome(),
        /// Of one that did its task, as are those that follow: the bytes of a map's split, or those that a
        /// reduce fetched.
        pub input_bytes: Option<u64> = figure(attempt, |figures| figures.input_bytes),
        /// Bytes that a map wrote for reduces, or those of a part file.
        pub output_bytes: Option<u64> = figure(attempt, |figures| figures.output_bytes),
        /// Records that the map or reduce function was given.
        pub input_records: Option<u64> = figure(attempt, |figures| figures.input_records),
        /// Records that it emitted.
        pub output_records: Option<u64> = figure(attempt, |figures| figures.output_records),
        /// How long a reduce waited for outputs of maps.
        pub shuffle_millis: Option<u64> = figure(attempt, |figures| figures.shuffle_millis),
        /// Processor time.
        pub processor_millis: Option<u64> = figure(attempt, |figures| figures.processor_millis),
        /// Records that were written to disk by sorting and merging.
        pub spilled_records: Option<u64> = figure(attempt, |figures| figures.spilled_records),
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
