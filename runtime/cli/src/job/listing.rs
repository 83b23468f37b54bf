//! A job as one row.
//!
//! Owns the columns and the fields. Does not own more about a job (`detail`).

use napreduce_live::{JobPhase, JobProgress, JobSummary, PhaseProgress};
use serde_json::{Value, json};

use crate::format::{moment, or_dash, span, table};

pub fn text(jobs: &[JobSummary]) -> String {
    let row = |job: &JobSummary| {
        vec![
            job.job.to_string(),
            job.name.clone(),
            job.user.clone(),
            job.queue.clone(),
            job.priority.to_string(),
            phase_name(job.phase).to_owned(),
            phase_text(&job.progress.map),
            phase_text(&job.progress.reduce),
            moment(job.submitted_millis),
            or_dash(took_millis(job).map(span)),
        ]
    };
    let headings =
        ["JOB", "NAME", "USER", "QUEUE", "PRIORITY", "STATE", "MAPS", "REDUCES", "SUBMITTED", "TOOK"];
    table(&headings, jobs.iter().map(row))
}

pub fn json(job: &JobSummary) -> Value {
    let JobProgress { map, reduce } = job.progress;
    json!({
        "job": job.job.to_string(),
        "name": job.name,
        "user": job.user,
        "queue": job.queue,
        "priority": job.priority,
        "state": phase_name(job.phase),
        "reason": job.reason,
        "submitted_millis": job.submitted_millis,
        "ended_millis": job.ended_millis,
        "output": job.output.to_string_lossy(),
        "map": phase_json(&map),
        "reduce": phase_json(&reduce),
    })
}

/// What the phase is called everywhere.
pub fn phase_name(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Active => "active",
        JobPhase::Suspended => "suspended",
        JobPhase::Stopping => "stopping",
        JobPhase::Succeeded => "succeeded",
        JobPhase::Failed => "failed",
        JobPhase::Killed => "killed",
    }
}

/// From submission to the end.
pub fn took_millis(job: &JobSummary) -> Option<u64> {
    job.ended_millis.map(|ended| ended.saturating_sub(job.submitted_millis))
}

pub fn phase_text(phase: &PhaseProgress) -> String {
    match phase.tasks {
        0 => "-".to_owned(),
        tasks => format!("{}/{tasks} {}%", phase.done, phase.percent()),
    }
}

fn phase_json(phase: &PhaseProgress) -> Value {
    json!({
        "tasks": phase.tasks,
        "done": phase.done,
        "running": phase.running,
        "suspended": phase.suspended,
        "checkpointed": phase.checkpointed,
        "bytes_done": phase.bytes_done,
        "bytes_total": phase.bytes_total,
        "percent": phase.percent(),
    })
}

#[cfg(test)]
pub mod tests {
    use napreduce_core::JobId;

    use super::*;

    pub fn summary() -> JobSummary {
        let map = PhaseProgress { tasks: 4, done: 3, running: 1, ..PhaseProgress::default() };
        JobSummary {
            job: JobId(7),
            name: "wordcount".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Failed,
            reason: Some("job_0007_m_0003 failed 4 times".to_owned()),
            submitted_millis: 1_790_000_000_000,
            ended_millis: Some(1_790_000_001_500),
            progress: JobProgress { map, reduce: PhaseProgress::default() },
            output: "/data/out".into(),
        }
    }

    #[test]
    fn a_job_is_a_row() {
        assert_eq!(
            text(&[summary()]),
            "JOB       NAME       USER  QUEUE    PRIORITY  STATE   MAPS     REDUCES  SUBMITTED             TOOK\n\
             job_0007  wordcount  ada   default  0         failed  3/4 75%  -        2026-09-21T14:13:20Z  1.5 s\n"
        );
    }

    #[test]
    fn a_job_is_an_object() {
        let object = json(&summary());
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
}
