//! Which jobs of a list are meant: what REST takes in its query and `nap job list` in its flags.
//!
//! Owns what a job must be like. Does not own how that is written, nor the order of a list.

use napreduce_protocol::{JobPhase, JobSummary};

/// What a job must be like to be listed; what is empty asks for nothing.
///
/// ```
/// use napreduce_web::answers::JobFilter;
///
/// let filter = JobFilter { states: JobFilter::states("failed,killed")?, ..JobFilter::default() };
/// assert!(JobFilter::states("fialed").is_err());
/// # assert_eq!(filter.states.len(), 2);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// One of these, as they are printed.
    pub states: Vec<String>,
    pub queues: Vec<String>,
    pub users: Vec<String>,
    pub names: Vec<String>,
    /// Part of its ID, name, user or queue, in whatever case.
    pub text: Option<String>,
    /// Submitted then or later, in milliseconds since 1970.
    pub since_millis: Option<u64>,
    /// Submitted before that.
    pub until_millis: Option<u64>,
}

impl JobFilter {
    /// States with commas between them.
    ///
    /// # Errors
    /// Names the one that there is not, and those that there are.
    pub fn states(text: &str) -> Result<Vec<String>, String> {
        let known = |state: &str| match JobPhase::WORDS.contains(&state) {
            true => Ok(state.to_owned()),
            false => Err(format!("{state:?} is no state of a job; there are {}", JobPhase::WORDS.join(", "))),
        };
        text.split(',').map(known).collect()
    }

    /// Whether every job is meant.
    pub fn is_open(&self) -> bool {
        *self == JobFilter::default()
    }

    /// Whether this job is meant.
    pub fn takes(&self, job: &JobSummary) -> bool {
        let one_of =
            |wanted: &[String], value: &str| wanted.is_empty() || wanted.iter().any(|one| one == value);
        let has = |text: &String| {
            let text = text.to_lowercase();
            let fields = [&job.job.to_string(), &job.name, &job.user, &job.queue];
            fields.iter().any(|field| field.to_lowercase().contains(&text))
        };
        one_of(&self.states, job.phase.in_words())
            && one_of(&self.queues, &job.queue)
            && one_of(&self.users, &job.user)
            && one_of(&self.names, &job.name)
            && self.text.as_ref().is_none_or(has)
            && self.since_millis.is_none_or(|since| job.submitted_millis >= since)
            && self.until_millis.is_none_or(|until| job.submitted_millis < until)
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::JobPhase;

    use super::super::samples::{job, summary};
    use super::*;

    fn one(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn a_filter_takes_what_it_asks_for() {
        let failed = summary();
        let since = |since_millis| JobFilter { since_millis: Some(since_millis), ..JobFilter::default() };
        let until = |until_millis| JobFilter { until_millis: Some(until_millis), ..JobFilter::default() };
        let text = |text: &str| JobFilter { text: Some(text.to_owned()), ..JobFilter::default() };
        for (filter, is_taken) in [
            (JobFilter::default(), true),
            (JobFilter { states: one("failed"), ..JobFilter::default() }, true),
            (JobFilter { states: one("killed"), ..JobFilter::default() }, false),
            (JobFilter { users: one("ada"), queues: one("default"), ..JobFilter::default() }, true),
            (JobFilter { users: one("ada"), queues: one("nightly"), ..JobFilter::default() }, false),
            (JobFilter { names: one("word"), ..JobFilter::default() }, false),
            (text("WORD"), true),
            (text("job_0007"), true),
            (text("bob"), false),
            (since(1_790_000_000_000), true),
            (since(1_790_000_000_001), false),
            (until(1_790_000_000_001), true),
            (until(1_790_000_000_000), false),
        ] {
            assert_eq!(filter.takes(&failed), is_taken, "{filter:?}");
        }
        assert!(JobFilter { states: one("active"), ..JobFilter::default() }.takes(&job(
            8,
            JobPhase::Active,
            1,
            0
        )));
    }

    #[test]
    fn every_state_of_a_job_can_be_asked_for() {
        let all = JobFilter::states(&JobPhase::WORDS.join(","));
        assert_eq!(all.map(|all| all.len()), Ok(JobPhase::WORDS.len()));
        let error = JobFilter::states("failed,fialed").expect_err("there is none");
        assert_eq!(
            error,
            "\"fialed\" is no state of a job; there are active, suspended, stopping, succeeded, failed, killed"
        );
    }
}
