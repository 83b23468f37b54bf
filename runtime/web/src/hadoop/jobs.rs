//! Jobs, as MapReduce's history server describes them; those that run, too.
//!
//! Owns these objects. Does not own tasks (`tasks`).

use std::str::FromStr;

use napreduce_engine::TaskKind;
use napreduce_protocol::{AttemptSummary, Counter, JobDetail, JobPhase, JobSettings, JobSummary};
use schemars::JsonSchema;
use serde::Serialize;

use crate::foreign::{TriedState, container_id, job_id};

/// MapReduce's words for where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobState {
    New,
    Inited,
    Running,
    Succeeded,
    Failed,
    KillWait,
    Killed,
    Error,
}

impl JobState {
    pub fn of(job: &JobSummary) -> JobState {
        match job.phase {
            JobPhase::Active | JobPhase::Suspended => {
                let has_begun = job.progress.phases().any(|(_, phase)| phase.has_begun());
                if has_begun { JobState::Running } else { JobState::Inited }
            }
            JobPhase::Stopping => JobState::Running,
            JobPhase::Succeeded => JobState::Succeeded,
            JobPhase::Failed => JobState::Failed,
            JobPhase::Killed => JobState::Killed,
        }
    }
}

impl FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<JobState, String> {
        Ok(match text.to_ascii_uppercase().as_str() {
            "NEW" => JobState::New,
            "INITED" => JobState::Inited,
            "RUNNING" | "SETUP" | "COMMITTING" => JobState::Running,
            "SUCCEEDED" => JobState::Succeeded,
            "FAILED" | "FAIL_WAIT" | "FAIL_ABORT" => JobState::Failed,
            "KILL_WAIT" | "KILL_ABORT" => JobState::KillWait,
            "KILLED" => JobState::Killed,
            "ERROR" | "REBOOT" => JobState::Error,
            _ => return Err(format!("{text} is no state of a job")),
        })
    }
}

answer! {
    /// `job` of a list
    #[serde(rename_all = "camelCase")]
    pub struct JobOfList from |job: &JobSummary| {
        pub submit_time: u64 = job.submitted_millis,
        pub start_time: u64 = job.submitted_millis,
        /// 0 while it runs.
        pub finish_time: u64 = job.ended_millis.unwrap_or(0),
        pub id: String = job_id(job.job),
        pub name: String = job.name.clone(),
        pub queue: String = job.queue.clone(),
        pub user: String = job.user.clone(),
        pub state: JobState = JobState::of(job),
        pub maps_total: u32 = job.progress.map.tasks,
        pub maps_completed: u32 = job.progress.map.done,
        pub reduces_total: u32 = job.progress.reduce.tasks,
        pub reduces_completed: u32 = job.progress.reduce.done,
    }
}

answer! {
    /// `job`
    #[serde(rename_all = "camelCase")]
    pub struct JobOfHistory {
        #[serde(flatten)]
        pub job: JobOfList = JobOfList { start_time: first.unwrap_or(listed.start_time), ..listed },
        pub uberized: bool,
        pub diagnostics: String = job.summary.reason.clone().unwrap_or_default(),
        /// Milliseconds of attempts that were done, as are the others.
        pub avg_map_time: u64 = average(TaskKind::Map),
        pub avg_reduce_time: u64 = average(TaskKind::Reduce).saturating_sub(shuffle),
        /// Of the time of reduces, what they waited for map outputs.
        pub avg_shuffle_time: u64 = shuffle,
        /// It is not told apart from the reduce.
        pub avg_merge_time: u64,
        pub failed_map_attempts: usize = count(TaskKind::Map, TriedState::Failed),
        pub killed_map_attempts: usize = count(TaskKind::Map, TriedState::Killed),
        pub successful_map_attempts: usize = count(TaskKind::Map, TriedState::Succeeded),
        pub failed_reduce_attempts: usize = count(TaskKind::Reduce, TriedState::Failed),
        pub killed_reduce_attempts: usize = count(TaskKind::Reduce, TriedState::Killed),
        pub successful_reduce_attempts: usize = count(TaskKind::Reduce, TriedState::Succeeded),
    }

    pub fn of(job: &JobDetail) {
        let of_kind = |kind: TaskKind, outcome: TriedState| {
            job.attempts.iter().filter(move |attempt| {
                attempt.attempt.task.kind == kind && TriedState::of(attempt) == outcome
            })
        };
        let count = |kind, outcome| of_kind(kind, outcome).count();
        let average = |kind| {
            let took = |attempt: &AttemptSummary| {
                attempt.ended_millis.unwrap_or(0).saturating_sub(attempt.launched_millis)
            };
            let done = of_kind(kind, TriedState::Succeeded);
            let (sum, number) = done.fold((0, 0), |(sum, number), one| (sum + took(one), number + 1));
            sum / u64::max(number, 1)
        };
        let first = job.attempts.iter().map(|attempt| attempt.launched_millis).min();
        let listed = JobOfList::from(&job.summary);
        let shuffle = shuffle_millis(job, count(TaskKind::Reduce, TriedState::Succeeded));
    }
}

answer! {
    /// `jobAttempt`: a job is tried once, by the coordinator.
    #[serde(rename_all = "camelCase")]
    pub struct MapReduceAttempts {
        /// 1
        pub id: u32 = 1,
        pub node_id: String = first.map(|attempt| attempt.worker.to_string()).unwrap_or_default(),
        pub node_http_address: &'static str,
        pub start_time: u64 = job.summary.submitted_millis,
        pub container_id: String = first.map(|attempt| container_id(attempt.attempt)).unwrap_or_default(),
        pub logs_link: String = format!("/jobs/{}", job.summary.job),
    }

    pub fn of(job: &JobDetail) {
        let first = job.attempts.first();
    }
}

/// `conf`: what is known of a job's settings, under Hadoop's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobConf {
    pub path: String,
    pub property: Vec<ConfProperty>,
}

impl JobConf {
    pub fn of(detail: &JobDetail) -> JobConf {
        let job = &detail.summary;
        let mut known = vec![
            ("mapreduce.job.name", job.name.clone()),
            ("mapreduce.job.user.name", job.user.clone()),
            ("mapreduce.job.queuename", job.queue.clone()),
            ("mapreduce.job.priority", job.priority.to_string()),
            ("mapreduce.job.maps", job.progress.map.tasks.to_string()),
            ("mapreduce.job.reduces", job.progress.reduce.tasks.to_string()),
            ("mapreduce.output.fileoutputformat.outputdir", job.output.to_string_lossy().into_owned()),
        ];
        known.extend(detail.settings.iter().flat_map(properties));
        let property = |(name, value)| ConfProperty { name, value, source: vec!["napreduce"] };
        JobConf { path: format!("/jobs/{}", job.job), property: known.into_iter().map(property).collect() }
    }
}

/// Settings that Hadoop has a name for; one of ours is of both kinds of tasks.
fn properties(settings: &JobSettings) -> [(&'static str, String); 7] {
    let (attempts, megabytes) = (settings.attempts_max.to_string(), (settings.task_memory >> 20).to_string());
    let slowstart = f64::from(settings.slowstart_permille) / 1_000.0;
    [
        ("mapreduce.map.maxattempts", attempts.clone()),
        ("mapreduce.reduce.maxattempts", attempts),
        ("mapreduce.map.memory.mb", megabytes.clone()),
        ("mapreduce.reduce.memory.mb", megabytes),
        ("mapreduce.map.output.compress", settings.compress.to_string()),
        ("mapreduce.job.reduce.slowstart.completedmaps", slowstart.to_string()),
        ("mapreduce.task.timeout", settings.task_timeout.as_millis().to_string()),
    ]
}

/// `property`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfProperty {
    pub name: &'static str,
    pub value: String,
    pub source: Vec<&'static str>,
}

/// What a reduce has waited for map outputs, in milliseconds, on average.
fn shuffle_millis(job: &JobDetail, reduces: usize) -> u64 {
    let name = Counter::ShuffleFetchMillis.in_words();
    let waited = job.counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, millis)| millis);
    waited / u64::try_from(reduces.max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::JobPlan;

    use super::super::super::answers::samples::{detail, job};
    use super::*;

    #[test]
    fn each_phase_is_one_of_mapreduces() {
        let of = |phase, running| JobState::of(&job(1, phase, running, 0));
        assert_eq!(of(JobPhase::Active, 0), JobState::Inited);
        assert_eq!(of(JobPhase::Active, 1), JobState::Running);
        assert_eq!(of(JobPhase::Stopping, 0), JobState::Running);
        assert_eq!(of(JobPhase::Succeeded, 0), JobState::Succeeded);
        assert_eq!(of(JobPhase::Failed, 0), JobState::Failed);
        assert_eq!(of(JobPhase::Killed, 0), JobState::Killed);
    }

    #[test]
    fn a_job_has_the_fields_of_mapreduces_history() {
        let mut detail = detail();
        detail.attempts[0].end = Some("done".to_owned());
        let object = serde_json::to_value(JobOfHistory::of(&detail)).expect("JSON");
        for (field, value) in [
            ("id", "\"job_0_0007\""),
            ("state", "\"FAILED\""),
            ("submitTime", "1790000000000"),
            ("startTime", "1790000000100"),
            ("finishTime", "1790000001500"),
            ("mapsTotal", "4"),
            ("mapsCompleted", "3"),
            ("avgMapTime", "1200"),
            ("successfulMapAttempts", "1"),
            ("failedMapAttempts", "0"),
            ("avgShuffleTime", "0"),
            ("uberized", "false"),
        ] {
            assert_eq!(object[field].to_string(), value, "{field}");
        }
    }

    #[test]
    fn settings_have_hadoops_names() {
        let mut plan = JobPlan::new("count", "out");
        (plan.slowstart_permille, plan.task_memory, plan.attempts_max) = (50, 64 << 20, 9);
        let conf = JobConf::of(&JobDetail { settings: Some(JobSettings::of(&plan)), ..detail() });
        let value = |name: &str| {
            conf.property.iter().find(|one| one.name == name).map(|property| property.value.as_str())
        };
        assert_eq!(value("mapreduce.job.reduce.slowstart.completedmaps"), Some("0.05"));
        assert_eq!(value("mapreduce.reduce.memory.mb"), Some("64"));
        assert_eq!(value("mapreduce.map.maxattempts"), Some("9"));
        assert_eq!(value("mapreduce.task.timeout"), Some("600000"));
        assert_eq!(JobConf::of(&detail()).property.len(), 7, "of earlier versions less is known");
    }

    #[test]
    fn reduces_are_told_apart_from_what_they_waited_for() {
        let mut detail = detail();
        detail.attempts[0].attempt.task.kind = TaskKind::Reduce;
        detail.attempts[0].end = Some("done".to_owned());
        detail.counters.add("SHUFFLE_FETCH_MILLIS", 300);
        let job = JobOfHistory::of(&detail);
        assert_eq!((job.avg_shuffle_time, job.avg_reduce_time, job.avg_map_time), (300, 900, 0));
    }
}
