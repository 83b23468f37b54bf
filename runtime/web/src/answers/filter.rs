//! Which jobs, tasks and attempts of a list are meant: what REST takes in its query and `nap job list` in its flags.
//!
//! Owns what a job must be like. Does not own how that is written, nor the order of a list.

use napreduce_protocol::{AttemptSummary, JobPhase, JobSummary, TaskSummary};

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

/// A text that a task or an attempt must show, in whatever case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFilter(String);

impl TextFilter {
    /// Without a text, everything is meant.
    pub fn new(text: Option<String>) -> TextFilter {
        TextFilter(text.unwrap_or_default().trim().to_lowercase())
    }

    /// By its ID and state, and the IDs, workers, states and reasons of its attempts.
    pub fn takes_task(&self, task: &TaskSummary) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let mut shown =
            format!("{}\n{}\n{}", task.task, task.state, task.reason.as_deref().unwrap_or_default());
        for live in &task.live {
            let reason = live.reason.as_deref().unwrap_or_default();
            shown += &format!("\n{}\n{}\n{}\n{reason}", live.attempt, live.worker, live.state);
        }
        self.is_in(shown)
    }

    /// By its ID, its worker and how it ended; one that goes on is `active`.
    pub fn takes_attempt(&self, attempt: &AttemptSummary) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let AttemptSummary { attempt, worker, worker_name, end, .. } = attempt;
        let end = end.as_deref().unwrap_or("active");
        self.is_in(format!("{attempt}\n{worker} ({worker_name})\n{end}"))
    }

    fn is_in(&self, mut shown: String) -> bool {
        if shown.is_ascii() {
            shown.make_ascii_lowercase();
        } else {
            shown = shown.to_lowercase();
        }
        shown.contains(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::AttemptState;
    use napreduce_protocol::{JobPhase, LiveAttempt, TaskPhase};

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
    fn text_filter_matches_what_is_shown_and_no_field_name() {
        let attempt = &super::super::samples::detail().attempts[0];
        let takes = |text: &str| TextFilter::new(Some(text.to_owned())).takes_attempt(attempt);
        for text in ["", " m_0003.1 ", "LEFT-HAND", "worker_0002 (left", "bad row"] {
            assert!(takes(text), "{text}");
        }
        for text in ["active", "launched", "null", "outcome", "worker_0003"] {
            assert!(!takes(text), "{text}");
        }
        let live = LiveAttempt {
            attempt: attempt.attempt,
            worker: attempt.worker,
            state: AttemptState::Running,
            reason: None,
            bytes_done: 0,
            bytes_total: 0,
        };
        let mut task = TaskSummary::of(attempt.attempt.task, TaskPhase::Active, 1);
        task.live.push(live);
        let takes = |text: &str| TextFilter::new(Some(text.to_owned())).takes_task(&task);
        assert!(["job_0007_m_0003", "Active", "worker_0002", "running"].into_iter().all(takes));
        assert!(!["live", "bytes_total", "reason", "done"].into_iter().any(takes));
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
