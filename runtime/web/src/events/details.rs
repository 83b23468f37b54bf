//! Changes inside jobs: attempts and preemptions. The first poll of a job only reports the job, not its history.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use napreduce_answers::{AttemptAnswer, JobAnswer, PreemptionAnswer};
use napreduce_engine::JobId;
use napreduce_history::ledger_of;
use napreduce_protocol::{JobDetail, JobSummary};

use super::changes::differing;
use super::event::Change;
use super::topic::Topic;

/// The most jobs that are polled; each is a request to the coordinator.
pub const JOBS_MAX: usize = 50;

/// The polled jobs, as of the last poll.
#[derive(Debug, Default)]
pub struct LastDetails {
    known: HashMap<JobId, Arc<JobDetail>>,
}

impl LastDetails {
    /// Returns the jobs to poll for these topics, and forgets all others.
    pub fn wanted(&mut self, topics: &[Topic], jobs: &[JobSummary]) -> Vec<JobId> {
        let mut wanted: Vec<JobId> = Vec::new();
        wanted.extend(topics.iter().filter_map(|topic| match topic {
            Topic::Job(job) => Some(*job),
            _ => None,
        }));
        if topics.contains(&Topic::Preemptions) {
            // Once more after its end, for its last preemptions.
            let was_open = |job: &JobId| {
                self.known
                    .get(job)
                    .is_some_and(|known: &Arc<JobDetail>| is_open(&known.summary))
            };
            let matters = |job: &&JobSummary| is_open(job) || was_open(&job.job);
            wanted.extend(jobs.iter().filter(matters).map(|job| job.job));
        }
        let mut distinct = HashSet::new();
        wanted.retain(|job| distinct.insert(*job));
        wanted.truncate(JOBS_MAX);
        self.known.retain(|job, _| distinct.contains(job));
        // Ended jobs do not change.
        wanted.retain(|job| {
            self.known
                .get(job)
                .is_none_or(|known| is_open(&known.summary))
        });
        wanted
    }

    /// Returns the changes of a job since the last poll.
    ///
    /// # Errors
    /// Fails if an object cannot be serialized.
    pub fn compare(&mut self, now: &Arc<JobDetail>) -> Result<Vec<Change>, serde_json::Error> {
        let job = now.summary.job;
        let Some(before) = self.known.insert(job, now.clone()) else {
            let answer = JobAnswer::from(&now.summary);
            return Ok(vec![Change::new("job", vec![Topic::Job(job)], &answer)?]);
        };
        let mut changes = Vec::new();
        if Arc::ptr_eq(&before, now) {
            return Ok(changes);
        }
        let attempts = differing(
            &before.attempts,
            &now.attempts,
            |known| known.attempt,
            PartialEq::ne,
        );
        for attempt in attempts {
            changes.push(Change::new(
                "attempt",
                vec![Topic::Job(job)],
                &AttemptAnswer::from(attempt),
            )?);
        }
        // The outcome of the work changes an entry long after the end of its request.
        let answers = |detail: &JobDetail| {
            ledger_of(detail)
                .iter()
                .map(PreemptionAnswer::from)
                .collect::<Vec<_>>()
        };
        let ledger = answers(&before);
        let now_ledger = answers(now);
        let of_request = |known: &PreemptionAnswer| (known.attempt.clone(), known.requested_micros);
        for answer in differing(&ledger, &now_ledger, of_request, PartialEq::ne) {
            changes.push(Change::new(
                "preemption",
                vec![Topic::Preemptions, Topic::Job(job)],
                answer,
            )?);
        }
        Ok(changes)
    }
}

fn is_open(job: &JobSummary) -> bool {
    job.ended_millis.is_none()
}

#[cfg(test)]
mod tests {
    use napreduce_answers::samples::{detail, job};
    use napreduce_engine::Primitive;
    use napreduce_protocol::{JobPhase, PreemptionSummary};
    use serde_json::Value;

    use super::*;

    fn open(number: u32) -> JobSummary {
        job(number, JobPhase::Running, 1, 0)
    }

    fn poll(details: &mut LastDetails, summary: &JobSummary) {
        let known = JobDetail {
            summary: summary.clone(),
            ..detail()
        };
        details.compare(&Arc::new(known)).expect("JSON");
    }

    #[test]
    fn new_attempts_and_changed_preemptions_become_events() {
        let mut details = LastDetails::default();
        let first = JobDetail {
            summary: open(7),
            ..detail()
        };
        let changes = details.compare(&Arc::new(first.clone())).expect("JSON");
        assert_eq!(
            (changes.len(), changes[0].name, &changes[0].topics),
            (1, "job", &vec![Topic::Job(JobId(7))])
        );
        let mut next = first.clone();
        let attempt = &first.attempts[0];
        let second = napreduce_engine::AttemptId {
            number: 2,
            ..attempt.attempt
        };
        next.attempts.push(napreduce_protocol::AttemptSummary {
            attempt: second,
            end: None,
            ..attempt.clone()
        });
        let asked =
            PreemptionSummary::wanted(5, attempt.attempt, attempt.worker, Primitive::Suspend);
        next.preemptions.push(asked.clone());
        let changes = details.compare(&Arc::new(next.clone())).expect("JSON");
        let data: Vec<Value> = changes
            .iter()
            .map(|change| serde_json::from_str(&change.data).expect("JSON"))
            .collect();
        assert_eq!(
            (changes[0].name, &data[0]["attempt"]),
            ("attempt", &"job_0007_m_0003.2".into())
        );
        assert_eq!(
            (changes[1].name, &data[1]["freed_micros"], changes.len()),
            ("preemption", &Value::Null, 2)
        );
        assert_eq!(
            changes[1].topics,
            [Topic::Preemptions, Topic::Job(JobId(7))]
        );
        next.preemptions[0] = PreemptionSummary {
            freed_micros: Some(9),
            ..asked
        };
        let changes = details.compare(&Arc::new(next)).expect("JSON");
        assert_eq!((changes.len(), changes[0].name), (1, "preemption"));
    }

    #[test]
    fn jobs_are_polled_while_wanted_and_once_after_their_end() {
        let mut details = LastDetails::default();
        let ended = job(6, JobPhase::Succeeded, 0, 0);
        let jobs = [open(9), open(8), ended.clone()];
        assert_eq!(details.wanted(&[Topic::Jobs, Topic::Cluster], &jobs), []);
        let of_eight = [Topic::Job(JobId(8)), Topic::Job(JobId(8)), Topic::Jobs];
        assert_eq!(details.wanted(&of_eight, &jobs), [JobId(8)]);
        let all = [Topic::Preemptions];
        assert_eq!(details.wanted(&all, &jobs), [JobId(9), JobId(8)]);
        poll(&mut details, &jobs[0]);
        let over = [job(9, JobPhase::Killed, 0, 0), open(8), ended];
        assert_eq!(
            details.wanted(&all, &over),
            [JobId(9), JobId(8)],
            "the last preemptions are missed"
        );
        poll(&mut details, &over[0]);
        assert_eq!(details.wanted(&all, &over), [JobId(8)]);
        assert_eq!(details.wanted(&[Topic::Jobs], &over), []);
        assert!(details.known.is_empty(), "unwanted jobs are kept");
    }

    #[test]
    fn named_and_newest_jobs_are_polled_first() {
        let mut details = LastDetails::default();
        let jobs: Vec<JobSummary> = (1..=200).rev().map(open).collect();
        let wanted = details.wanted(&[Topic::Preemptions, Topic::Job(JobId(3))], &jobs);
        assert_eq!(
            (wanted.len(), wanted[0], wanted[1]),
            (JOBS_MAX, JobId(3), JobId(200))
        );
    }
}
