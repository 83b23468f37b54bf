//! What is another one than it was inside jobs: attempts, preemptions.
//!
//! Owns which jobs are looked into, and which events follow. A job that is looked into for the first time
//! tells that it is there, and not all that ever happened to it. Does not own lists (`changes`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use napreduce_engine::JobId;
use napreduce_history::ledger_of;
use napreduce_protocol::{JobDetail, JobSummary};

use super::changes::differing;
use super::event::Change;
use super::topic::Topic;
use crate::answers::{AttemptAnswer, JobAnswer, PreemptionAnswer};

/// Jobs that are looked into: each is a question to the coordinator.
pub const JOBS_MAX: usize = 50;

/// The jobs that are looked into, as they were seen last.
#[derive(Debug, Default)]
pub struct SeenDetails {
    known: HashMap<JobId, Arc<JobDetail>>,
}

impl SeenDetails {
    /// Which jobs are to be looked into for those who want these topics; nothing more is known of others.
    pub fn wanted(&mut self, topics: &[Topic], jobs: &[JobSummary]) -> Vec<JobId> {
        let mut wanted: Vec<JobId> = Vec::new();
        wanted.extend(topics.iter().filter_map(|topic| match topic {
            Topic::Job(job) => Some(*job),
            _ => None,
        }));
        if topics.contains(&Topic::Preemptions) {
            // Once more after its end.
            let was_open = |job: &JobId| {
                self.known.get(job).is_some_and(|known: &Arc<JobDetail>| is_open(&known.summary))
            };
            let matters = |job: &&JobSummary| is_open(job) || was_open(&job.job);
            wanted.extend(jobs.iter().filter(matters).map(|job| job.job));
        }
        let mut met = HashSet::new();
        wanted.retain(|job| met.insert(*job));
        wanted.truncate(JOBS_MAX);
        self.known.retain(|job, _| met.contains(job));
        // Nothing changes in a job that has ended.
        wanted.retain(|job| self.known.get(job).is_none_or(|known| is_open(&known.summary)));
        wanted
    }

    /// What has changed in a job since the last time.
    ///
    /// # Errors
    /// When JSON cannot say it.
    pub fn compare(&mut self, now: &Arc<JobDetail>) -> Result<Vec<Change>, serde_json::Error> {
        let job = now.summary.job;
        let Some(before) = self.known.insert(job, now.clone()) else {
            let answer = JobAnswer::from(&now.summary);
            return Ok(vec![Change::of("job", vec![Topic::Job(job)], &answer)?]);
        };
        let mut changes = Vec::new();
        if Arc::ptr_eq(&before, now) {
            return Ok(changes);
        }
        let attempts = differing(&before.attempts, &now.attempts, |known| known.attempt, PartialEq::ne);
        for attempt in attempts {
            changes.push(Change::of("attempt", vec![Topic::Job(job)], &AttemptAnswer::from(attempt))?);
        }
        // What becomes of the work changes an entry long after its request has come to its end.
        let answers =
            |detail: &JobDetail| ledger_of(detail).iter().map(PreemptionAnswer::from).collect::<Vec<_>>();
        let (ledger, now_ledger) = (answers(&before), answers(now));
        let of_request = |known: &PreemptionAnswer| (known.attempt.clone(), known.requested_micros);
        for answer in differing(&ledger, &now_ledger, of_request, PartialEq::ne) {
            changes.push(Change::of("preemption", vec![Topic::Preemptions, Topic::Job(job)], answer)?);
        }
        Ok(changes)
    }
}

fn is_open(job: &JobSummary) -> bool {
    job.ended_millis.is_none()
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Primitive;
    use napreduce_protocol::{JobPhase, PreemptionSummary};
    use serde_json::Value;

    use super::*;
    use crate::answers::samples::{detail, job};

    fn open(number: u32) -> JobSummary {
        job(number, JobPhase::Active, 1, 0)
    }

    fn seen(details: &mut SeenDetails, summary: &JobSummary) {
        let known = JobDetail { summary: summary.clone(), ..detail() };
        details.compare(&Arc::new(known)).expect("JSON");
    }

    #[test]
    fn new_attempts_and_changed_preemptions_are_told() {
        let mut details = SeenDetails::default();
        let first = JobDetail { summary: open(7), ..detail() };
        let told = details.compare(&Arc::new(first.clone())).expect("JSON");
        assert_eq!((told.len(), told[0].name, &told[0].topics), (1, "job", &vec![Topic::Job(JobId(7))]));
        let mut next = first.clone();
        let attempt = &first.attempts[0];
        let second = napreduce_engine::AttemptId { number: 2, ..attempt.attempt };
        next.attempts.push(napreduce_protocol::AttemptSummary {
            attempt: second,
            end: None,
            ..attempt.clone()
        });
        let asked = PreemptionSummary::wanted(5, attempt.attempt, attempt.worker, Primitive::Suspend);
        next.preemptions.push(asked.clone());
        let told = details.compare(&Arc::new(next.clone())).expect("JSON");
        let data: Vec<Value> =
            told.iter().map(|change| serde_json::from_str(&change.data).expect("JSON")).collect();
        assert_eq!((told[0].name, &data[0]["attempt"]), ("attempt", &"job_0007_m_0003.2".into()));
        assert_eq!((told[1].name, &data[1]["freed_micros"], told.len()), ("preemption", &Value::Null, 2));
        assert_eq!(told[1].topics, [Topic::Preemptions, Topic::Job(JobId(7))]);
        next.preemptions[0] = PreemptionSummary { freed_micros: Some(9), ..asked };
        let told = details.compare(&Arc::new(next)).expect("JSON");
        assert_eq!((told.len(), told[0].name), (1, "preemption"));
    }

    #[test]
    fn jobs_are_looked_into_for_whom_they_matter_until_after_their_end() {
        let mut details = SeenDetails::default();
        let ended = job(6, JobPhase::Succeeded, 0, 0);
        let jobs = [open(9), open(8), ended.clone()];
        assert_eq!(details.wanted(&[Topic::Jobs, Topic::Cluster], &jobs), []);
        let of_eight = [Topic::Job(JobId(8)), Topic::Job(JobId(8)), Topic::Jobs];
        assert_eq!(details.wanted(&of_eight, &jobs), [JobId(8)]);
        let all = [Topic::Preemptions];
        assert_eq!(details.wanted(&all, &jobs), [JobId(9), JobId(8)]);
        seen(&mut details, &jobs[0]);
        let over = [job(9, JobPhase::Killed, 0, 0), open(8), ended];
        assert_eq!(details.wanted(&all, &over), [JobId(9), JobId(8)], "its last preemptions are missed");
        seen(&mut details, &over[0]);
        assert_eq!(details.wanted(&all, &over), [JobId(8)]);
        assert_eq!(details.wanted(&[Topic::Jobs], &over), []);
        assert!(details.known.is_empty(), "it remembers what nobody wants");
    }

    #[test]
    fn of_many_jobs_the_newest_are_looked_into_after_those_that_are_named() {
        let mut details = SeenDetails::default();
        let jobs: Vec<JobSummary> = (1..=200).rev().map(open).collect();
        let wanted = details.wanted(&[Topic::Preemptions, Topic::Job(JobId(3))], &jobs);
        assert_eq!((wanted.len(), wanted[0], wanted[1]), (JOBS_MAX, JobId(3), JobId(200)));
    }
}
