//! Jobs, as YARN describes applications.
//!
//! Owns these objects. What stands in them of attempts needs the whole job, and is left out of lists.

use std::collections::BTreeMap;

use napreduce_engine::{JobId, listed};
use napreduce_history_files::{StintEnd, Timeline};
use napreduce_protocol::{JobDetail, JobPhase, JobSummary};
use schemars::JsonSchema;
use serde::Serialize;

use crate::foreign::{app_attempt_id, application_id};

/// What all applications here are.
const TYPE: &str = "MAPREDUCE";

listed! {
    /// YARN's words for where an application is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum AppState {
        New = "NEW",
        NewSaving = "NEW_SAVING",
        Submitted = "SUBMITTED",
        Accepted = "ACCEPTED",
        Running = "RUNNING",
        Finished = "FINISHED",
        Failed = "FAILED",
        Killed = "KILLED",
    }
}

impl AppState {
    /// Of which nothing was ever begun is accepted; what has failed has finished, as YARN says of MapReduce.
    pub fn of(job: &JobSummary) -> AppState {
        match job.phase {
            JobPhase::Active | JobPhase::Suspended => {
                let has_begun = job.progress.phases().any(|(_, phase)| phase.has_begun());
                if has_begun { AppState::Running } else { AppState::Accepted }
            }
            JobPhase::Stopping => AppState::Running,
            JobPhase::Succeeded | JobPhase::Failed => AppState::Finished,
            JobPhase::Killed => AppState::Killed,
        }
    }
}

listed! {
    /// YARN's words for how an application ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum FinalStatus {
        Undefined = "UNDEFINED",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
        Killed = "KILLED",
    }
}

impl FinalStatus {
    pub fn of(job: &JobSummary) -> FinalStatus {
        match job.phase {
            JobPhase::Active | JobPhase::Suspended | JobPhase::Stopping => FinalStatus::Undefined,
            JobPhase::Succeeded => FinalStatus::Succeeded,
            JobPhase::Failed => FinalStatus::Failed,
            JobPhase::Killed => FinalStatus::Killed,
        }
    }
}

read_words!(
    AppState: "Invalid application-state {} specified.",
    FinalStatus: "Invalid final-application-status {} specified."
);

answer! {
    /// `app`
    #[serde(rename_all = "camelCase")]
    pub struct YarnApp {
        pub id: String = application_id(job.job),
        pub user: String = job.user.clone(),
        pub name: String = job.name.clone(),
        pub queue: String = job.queue.clone(),
        pub state: AppState = AppState::of(job),
        pub final_status: FinalStatus = FinalStatus::of(job),
        /// Per cent.
        pub progress: f64 = if is_over || tasks == 0 { 100.0 } else { done as f64 / tasks as f64 },
        #[serde(rename = "trackingUI")]
        pub tracking_ui: &'static str = if is_over { "History" } else { "ApplicationMaster" },
        /// The page of the job, from the address of the server on.
        pub tracking_url: String = format!("/jobs/{}", job.job),
        /// Why it waits, or why it ended so.
        pub diagnostics: String = job.reason.clone().or(waits_for).unwrap_or_default(),
        pub cluster_id: u64,
        pub application_type: &'static str = TYPE,
        pub application_tags: &'static str,
        pub priority: i32 = job.priority,
        pub started_time: u64 = job.submitted_millis,
        /// When its first attempt was launched; 0 before that, and in lists.
        pub launch_time: u64,
        pub finished_time: u64 = job.ended_millis.unwrap_or(0),
        pub elapsed_time: u64 = until.saturating_sub(job.submitted_millis),
        pub am_container_logs: &'static str,
        pub am_host_http_address: &'static str,
        #[serde(rename = "allocatedMB")]
        pub allocated_mb: i64 = if is_over { -1 } else { 0 },
        /// Slots held; -1 of what has ended.
        pub allocated_v_cores: i64 = slots,
        #[serde(rename = "reservedMB")]
        pub reserved_mb: i64 = if is_over { -1 } else { 0 },
        pub reserved_v_cores: i64 = if is_over { -1 } else { 0 },
        pub running_containers: i64 = slots,
        pub queue_usage_percentage: f64,
        pub cluster_usage_percentage: f64,
        pub log_aggregation_status: &'static str = "DISABLED",
        pub unmanaged_application: bool,
        pub am_node_label_expression: &'static str,
        #[serde(flatten)]
        pub used: Option<UsedByApp>,
    }

    /// An application of a list. What it waits for, if that is known, is `waits_for`.
    pub fn listed(job: &JobSummary, waits_for: Option<String>, now_millis: u64) {
        let held: u32 = job.progress.phases().map(|(_, phase)| phase.running).sum();
        let (done, tasks) = job.progress.phases().fold((0, 0), |(done, tasks), (_, phase)| {
            (done + u64::from(phase.percent()) * u64::from(phase.tasks), tasks + u64::from(phase.tasks))
        });
        let is_over = job.ended_millis.is_some();
        let slots = if is_over { -1 } else { i64::from(held) };
        let until = job.ended_millis.unwrap_or(now_millis);
    }
}

/// What an application has used; of one alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsedByApp {
    pub memory_seconds: u64,
    /// Seconds in which its attempts held slots.
    pub vcore_seconds: u64,
    #[serde(rename = "preemptedResourceMB")]
    pub preempted_resource_mb: u64,
    /// Slots that were taken from it.
    #[serde(rename = "preemptedResourceVCores")]
    pub preempted_resource_v_cores: usize,
    #[serde(rename = "numNonAMContainerPreempted")]
    pub num_non_am_container_preempted: usize,
    #[serde(rename = "numAMContainerPreempted")]
    pub num_am_container_preempted: usize,
    pub preempted_memory_seconds: u64,
    /// Seconds for which they had held them.
    pub preempted_vcore_seconds: u64,
}

impl YarnApp {
    /// An application with what its attempts have used.
    pub fn whole(job: &JobDetail, waits_for: Option<String>, now_millis: u64) -> YarnApp {
        let stints = Timeline::of(job, now_millis * 1_000).stints;
        let seconds = |of: fn(StintEnd) -> bool| {
            let lengths = stints.iter().filter(|stint| of(stint.end));
            let lengths = lengths.map(|stint| stint.until_micros.saturating_sub(stint.from_micros));
            lengths.sum::<u64>() / 1_000_000
        };
        let was_taken = |end| !matches!(end, StintEnd::Open | StintEnd::Ended);
        let taken = stints.iter().filter(|stint| was_taken(stint.end)).count();
        let launch_time = job.attempts.iter().map(|attempt| attempt.launched_millis).min().unwrap_or(0);
        let used = UsedByApp {
            vcore_seconds: seconds(|_| true),
            preempted_resource_v_cores: taken,
            num_non_am_container_preempted: taken,
            preempted_vcore_seconds: seconds(was_taken),
            ..UsedByApp::default()
        };
        YarnApp { launch_time, used: Some(used), ..YarnApp::listed(&job.summary, waits_for, now_millis) }
    }
}

answer! {
    /// `appAttempt`: an application is tried once.
    #[serde(rename_all = "camelCase")]
    pub struct AppAttempts {
        /// 1
        pub id: u32 = 1,
        pub app_attempt_id: String = app_attempt_id(job),
        pub node_id: &'static str,
        pub node_http_address: &'static str,
        pub logs_link: &'static str,
        pub container_id: &'static str,
        pub start_time: u64 = start_time,
        pub finished_time: u64 = ended_millis.unwrap_or(0),
    }

    pub fn of(job: JobId, start_time: u64, ended_millis: Option<u64>);
}

/// `statItem`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppStatistics {
    pub state: AppState,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub count: usize,
}

/// How many applications there are of each state that is asked about, or of each there is.
pub fn count_apps(jobs: &[JobSummary], states: Option<&[AppState]>) -> Vec<AppStatistics> {
    let mut counts: BTreeMap<AppState, usize> = BTreeMap::new();
    for job in jobs {
        *counts.entry(AppState::of(job)).or_default() += 1;
    }
    let asked = states.unwrap_or(&AppState::ALL).iter();
    asked
        .map(|state| AppStatistics {
            state: *state,
            kind: "*",
            count: counts.get(state).copied().unwrap_or(0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::answers::samples::{detail, job};
    use super::*;

    #[test]
    fn each_phase_is_one_of_yarns() {
        let of = |phase, running| {
            let job = job(1, phase, running, 0);
            (AppState::of(&job), FinalStatus::of(&job))
        };
        assert_eq!(of(JobPhase::Active, 0), (AppState::Accepted, FinalStatus::Undefined));
        assert_eq!(of(JobPhase::Active, 1), (AppState::Running, FinalStatus::Undefined));
        assert_eq!(of(JobPhase::Stopping, 0), (AppState::Running, FinalStatus::Undefined));
        assert_eq!(of(JobPhase::Succeeded, 0), (AppState::Finished, FinalStatus::Succeeded));
        assert_eq!(of(JobPhase::Failed, 0), (AppState::Finished, FinalStatus::Failed));
        assert_eq!(of(JobPhase::Killed, 0), (AppState::Killed, FinalStatus::Killed));
    }

    #[test]
    fn a_job_is_an_application_with_yarns_fields() {
        let app = serde_json::to_value(YarnApp::whole(&detail(), None, 1_790_000_009_000)).expect("JSON");
        for (field, value) in [
            ("id", "\"application_0_0007\""),
            ("finalStatus", "\"FAILED\""),
            ("diagnostics", "\"job_0007_m_0003 failed 4 times\""),
            ("elapsedTime", "1500"),
            ("launchTime", "1790000000100"),
            ("allocatedVCores", "-1"),
            ("trackingUI", "\"History\""),
            ("vcoreSeconds", "1"),
            ("numNonAMContainerPreempted", "0"),
            ("preemptedResourceVCores", "0"),
            ("progress", "100.0"),
        ] {
            assert_eq!(app[field].to_string(), value, "{field}");
        }
        let listed =
            YarnApp::listed(&job(1, JobPhase::Active, 0, 0), Some("all slots are taken".to_owned()), 0);
        let listed = serde_json::to_value(listed).expect("JSON");
        assert_eq!(listed["diagnostics"], "all slots are taken");
        assert!(listed.get("vcoreSeconds").is_none());
    }

    #[test]
    fn applications_are_counted_by_state() {
        let jobs = [job(1, JobPhase::Active, 0, 0), job(2, JobPhase::Failed, 0, 0)];
        let count = |states| count_apps(&jobs, states).into_iter().map(|item| item.count).collect::<Vec<_>>();
        assert_eq!(count(None), [0, 0, 0, 1, 0, 1, 0, 0]);
        assert_eq!(count(Some(&[AppState::Finished])), [1]);
    }
}
