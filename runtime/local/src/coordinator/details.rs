//! Summaries and details of jobs that are not in the history yet.

use napreduce_protocol::{JobDetail, JobSettings, JobSummary, Submitted};

use super::Coordinator;
use super::entry::Accepted;
use super::job::LiveJob;

impl Coordinator {
    /// Returns the summary of a job, with the reason why it is paused or not settled.
    pub fn summary(&self, job: &LiveJob) -> JobSummary {
        let summary = job.summary(self.state.engine(), self.entry_time());
        match self.why_held(job.id()) {
            Some(why) => JobSummary {
                reason: Some(why),
                ..summary
            },
            None => summary,
        }
    }

    pub fn detail(&self, job: &LiveJob) -> JobDetail {
        let Accepted {
            plan,
            program,
            files,
            rerun_of,
            ..
        } = &*job.accepted;
        let rerun_of = rerun_of.as_ref().map(|of| of.job);
        JobDetail {
            summary: self.summary(job),
            counters: job.counters(),
            parts: Vec::new(),
            attempts: job
                .attempts
                .iter()
                .map(|attempt| (**attempt).clone())
                .collect(),
            events: job.events.clone(),
            preemptions: job.book.preemptions.clone(),
            resumes: job.book.resumes.clone(),
            restores: job.book.restores.clone(),
            settings: Some(JobSettings::from_plan(plan)),
            submitted: Some(Submitted::new(
                *program,
                files,
                plan.invocation.as_ref(),
                &plan.splits,
                rerun_of,
            )),
            scheduler: None,
        }
    }
}
