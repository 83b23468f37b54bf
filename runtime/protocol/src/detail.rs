//! The full details of a job and its settings.

use std::collections::BTreeMap;
use std::time::Duration;

use napreduce_engine::{AttemptId, TaskId};
use serde::{Deserialize, Serialize};

use crate::counters::CounterValues;
use crate::plan::JobPlan;
use crate::preemptions::{PreemptionSummary, RestoreSummary, ResumeSummary};
use crate::report::PartReport;
use crate::submitted::{SchedulerTables, Submitted};
use crate::summaries::{AttemptSummary, HistoryLine, JobSummary, TaskPhase, TaskSummary};

/// The most tasks of a kind that are listed without an attempt, so that a wrong number in a file cannot exhaust memory.
const TASKS_MAX: u32 = 1 << 20;

/// Everything about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDetail {
    /// The listing's entry.
    pub summary: JobSummary,
    /// Counters so far, or final ones.
    pub counters: CounterValues,
    /// Its part files, if it has succeeded.
    pub parts: Vec<PartReport>,
    /// Every attempt so far, in launch order.
    pub attempts: Vec<AttemptSummary>,
    /// Events of the job as a whole, oldest first.
    pub events: Vec<HistoryLine>,
    /// Every preemption request, oldest first.
    #[serde(default)]
    pub preemptions: Vec<PreemptionSummary>,
    /// Every resume of a suspended attempt, oldest first.
    #[serde(default)]
    pub resumes: Vec<ResumeSummary>,
    /// Every attempt restored from a checkpoint, oldest first.
    #[serde(default)]
    pub restores: Vec<RestoreSummary>,
    /// Its settings; `None` for jobs recorded by earlier versions.
    #[serde(default)]
    pub settings: Option<JobSettings>,
    /// How it was submitted; `None` for jobs recorded by earlier versions.
    #[serde(default)]
    pub submitted: Option<Submitted>,
    /// The scheduler when the job ended; `None` before, and for jobs recorded by earlier versions.
    #[serde(default)]
    pub scheduler: Option<SchedulerTables>,
}

impl JobDetail {
    /// Creates the details of a job of which only the summary is known.
    pub fn new(summary: JobSummary) -> JobDetail {
        JobDetail {
            summary,
            counters: CounterValues::default(),
            parts: Vec::new(),
            attempts: Vec::new(),
            events: Vec::new(),
            preemptions: Vec::new(),
            resumes: Vec::new(),
            restores: Vec::new(),
            settings: None,
            submitted: None,
            scheduler: None,
        }
    }

    /// Narrows the details to some attempts: drops everything about the whole job but its summary.
    #[must_use]
    pub fn of_attempts(&self, is_one: impl Fn(AttemptId) -> bool) -> JobDetail {
        fn those<T: Clone>(all: &[T], is_one: impl Fn(&T) -> bool) -> Vec<T> {
            all.iter().filter(|one| is_one(one)).cloned().collect()
        }
        JobDetail {
            attempts: those(&self.attempts, |one| is_one(one.attempt)),
            preemptions: those(&self.preemptions, |one| is_one(one.attempt)),
            resumes: those(&self.resumes, |one| is_one(one.attempt)),
            restores: those(&self.restores, |one| is_one(one.attempt)),
            ..JobDetail::new(self.summary.clone())
        }
    }

    /// Lists the tasks of a job whose attempts have ended, maps first. Once the job has ended, a task that did not
    /// succeed is failed if its last attempt was, and killed otherwise.
    pub fn tasks(&self) -> Vec<TaskSummary> {
        let JobSummary {
            job,
            phase,
            progress,
            ..
        } = self.summary;
        let unfinished = if phase.has_ended() {
            TaskPhase::Killed
        } else {
            TaskPhase::Waiting
        };
        let new = |task| (task, TaskSummary::new(task, unfinished, 0));
        let planned = progress.phases().flat_map(|(kind, phase)| {
            (0..phase.tasks.min(TASKS_MAX)).map(move |index| TaskId { job, kind, index })
        });
        let mut tasks: BTreeMap<TaskId, TaskSummary> = planned.map(new).collect();
        for attempt in &self.attempts {
            let task = attempt.attempt.task;
            let known = tasks.entry(task).or_insert_with(|| new(task).1);
            known.attempts += 1;
            if attempt.has_succeeded() {
                known.state = TaskPhase::Succeeded;
            } else if known.state != TaskPhase::Succeeded && phase.has_ended() {
                known.state = if attempt.has_failed() {
                    TaskPhase::Failed
                } else {
                    TaskPhase::Killed
                };
            }
        }
        tasks.into_values().collect()
    }
}

/// The settings of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSettings {
    pub definition: String,
    pub reduces: u32,
    pub attempts_max: u32,
    pub task_memory: u64,
    pub compress: bool,
    pub overwrite: bool,
    pub durable: bool,
    pub slowstart_permille: u32,
    pub task_timeout: Duration,
    pub deadline: Option<Duration>,
    pub checkpoint_maps: bool,
    pub checkpoint_reduces: bool,
}

impl Default for JobSettings {
    fn default() -> JobSettings {
        JobSettings::from_plan(&JobPlan::new("", ""))
    }
}

impl JobSettings {
    /// Returns a plan's settings.
    pub fn from_plan(plan: &JobPlan) -> JobSettings {
        JobSettings {
            definition: plan.definition.clone(),
            reduces: plan.reduces,
            attempts_max: plan.attempts_max,
            task_memory: plan.task_memory,
            compress: plan.compress,
            overwrite: plan.overwrite,
            durable: plan.durable,
            slowstart_permille: plan.slowstart_permille,
            task_timeout: plan.task_timeout,
            deadline: plan.deadline,
            checkpoint_maps: plan.checkpoint.map,
            checkpoint_reduces: plan.checkpoint.reduce,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use napreduce_engine::{JobId, WorkerId};

    use super::*;
    use crate::progress::{JobProgress, PhaseProgress};
    use crate::summaries::JobPhase;

    /// A job of seven maps and a reduce, of which only five maps were started.
    fn job(phase: JobPhase) -> JobDetail {
        let summary = JobSummary {
            job: JobId(7),
            name: "count".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase,
            reason: None,
            submitted_millis: 1,
            ended_millis: phase.has_ended().then_some(9),
            progress: JobProgress {
                map: PhaseProgress {
                    tasks: 7,
                    done: 1,
                    ..PhaseProgress::default()
                },
                reduce: PhaseProgress {
                    tasks: 1,
                    ..PhaseProgress::default()
                },
                left: None,
            },
            output: PathBuf::from("/out"),
            unrecorded: None,
        };
        let attempt = |(id, end): (&str, &str)| AttemptSummary {
            attempt: format!("job_0007_{id}").parse().expect("an attempt"),
            worker: WorkerId(1),
            worker_name: "w".to_owned(),
            launched_millis: 2,
            ended_millis: Some(3),
            end: Some(end.to_owned()),
            figures: None,
            moments: None,
        };
        let attempts = [
            ("m_0000.1", "bad row"),
            ("m_0001.1", "bad row"),
            ("m_0002.1", "worker_0001 was lost"),
            ("m_0003.1", "bad row"),
            ("m_0004.1", "checkpointed"),
            ("m_0000.2", AttemptSummary::SUCCEEDED),
            ("m_0000.3", "its job was over"),
            ("m_0001.2", "bad row"),
            ("m_0003.2", "its job was over"),
        ];
        JobDetail {
            attempts: attempts.map(attempt).into(),
            ..JobDetail::new(summary)
        }
    }

    fn states(phase: JobPhase) -> Vec<String> {
        job(phase)
            .tasks()
            .iter()
            .map(|one| format!("{} {} {}", one.task, one.state, one.attempts))
            .collect()
    }

    #[test]
    fn tasks_of_ended_job_succeeded_failed_or_were_killed() {
        let expected = [
            "job_0007_m_0000 succeeded 3",
            "job_0007_m_0001 failed 2",
            "job_0007_m_0002 killed 1",
            "job_0007_m_0003 killed 2",
            "job_0007_m_0004 killed 1",
            "job_0007_m_0005 killed 0",
            "job_0007_m_0006 killed 0",
            "job_0007_r_0000 killed 0",
        ];
        assert_eq!(states(JobPhase::Failed), expected);
        assert_eq!(states(JobPhase::Killed), expected);
    }

    #[test]
    fn tasks_of_stopping_job_wait_until_it_has_ended() {
        let states = states(JobPhase::Stopping);
        assert_eq!(
            states[..2],
            ["job_0007_m_0000 succeeded 3", "job_0007_m_0001 waiting 2"]
        );
        assert!(
            states[2..].iter().all(|one| one.contains(" waiting ")),
            "{states:?}"
        );
    }
}
