//! Filters for lists of jobs, tasks and attempts: queries of REST and flags of `nap job list`.

use napreduce_engine::JobId;
use napreduce_protocol::{AttemptSummary, JobPhase, JobSummary, TaskSummary};

/// The conditions on listed jobs; an empty field matches everything.
///
/// ```
/// use napreduce_answers::JobFilter;
///
/// let filter = JobFilter { states: JobFilter::states("failed,killed")?, ..JobFilter::default() };
/// assert!(JobFilter::states("fialed").is_err());
/// # assert_eq!(filter.states.len(), 2);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Any of these printed states.
    pub states: Vec<String>,
    pub queues: Vec<String>,
    pub users: Vec<String>,
    pub names: Vec<String>,
    /// Part of the ID, name, user or queue, ignoring case.
    pub text: Option<String>,
    /// Earliest submission, in milliseconds since 1970.
    pub since_millis: Option<u64>,
    /// End of the submission times, exclusive.
    pub until_millis: Option<u64>,
    /// Only jobs submitted before this one, which have smaller numbers.
    pub before: Option<JobId>,
}

impl JobFilter {
    /// Parses states separated by commas.
    ///
    /// # Errors
    /// Names the unknown state and the known ones.
    pub fn states(text: &str) -> Result<Vec<String>, String> {
        let known = |state: &str| {
            if JobPhase::WORDS.contains(&state) {
                Ok(state.to_owned())
            } else {
                Err(format!(
                    "unknown job state {state:?}; expected one of {}",
                    JobPhase::WORDS.join(", ")
                ))
            }
        };
        text.split(',').map(known).collect()
    }

    /// Whether every job matches.
    pub fn is_open(&self) -> bool {
        *self == JobFilter::default()
    }

    /// Whether this job matches.
    pub fn matches(&self, job: &JobSummary) -> bool {
        let one_of = |wanted: &[String], value: &str| {
            wanted.is_empty() || wanted.iter().any(|one| one == value)
        };
        let has = |text: &String| {
            let text = text.to_lowercase();
            let fields = [&job.job.to_string(), &job.name, &job.user, &job.queue];
            fields
                .iter()
                .any(|field| field.to_lowercase().contains(&text))
        };
        one_of(&self.states, job.phase.in_words())
            && one_of(&self.queues, &job.queue)
            && one_of(&self.users, &job.user)
            && one_of(&self.names, &job.name)
            && self.text.as_ref().is_none_or(has)
            && self
                .since_millis
                .is_none_or(|since| job.submitted_millis >= since)
            && self
                .until_millis
                .is_none_or(|until| job.submitted_millis < until)
            && self.before.is_none_or(|before| job.job < before)
    }
}

/// A text that a task or an attempt must contain, ignoring case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFilter(String);

impl TextFilter {
    /// Without a text, everything matches.
    pub fn new(text: Option<String>) -> TextFilter {
        TextFilter(text.unwrap_or_default().trim().to_lowercase())
    }

    /// Matches ID, state and reason of a task, and IDs, workers, states and reasons of its attempts.
    pub fn takes_task(&self, task: &TaskSummary) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let mut shown = format!(
            "{}\n{}\n{}",
            task.task,
            task.state,
            task.reason.as_deref().unwrap_or_default()
        );
        for live in &task.live {
            let reason = live.reason.as_deref().unwrap_or_default();
            shown += &format!(
                "\n{}\n{}\n{}\n{reason}",
                live.attempt, live.worker, live.state
            );
        }
        self.is_in(shown)
    }

    /// Matches ID, worker and end of an attempt; the end of a running one is `running`.
    pub fn takes_attempt(&self, attempt: &AttemptSummary) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let AttemptSummary {
            attempt,
            worker,
            worker_name,
            end,
            ..
        } = attempt;
        let end = end.as_deref().unwrap_or("running");
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
    fn job_filter_matches_its_conditions() {
        let failed = summary();
        let since = |since_millis| JobFilter {
            since_millis: Some(since_millis),
            ..JobFilter::default()
        };
        let until = |until_millis| JobFilter {
            until_millis: Some(until_millis),
            ..JobFilter::default()
        };
        let text = |text: &str| JobFilter {
            text: Some(text.to_owned()),
            ..JobFilter::default()
        };
        for (filter, is_taken) in [
            (JobFilter::default(), true),
            (
                JobFilter {
                    states: one("failed"),
                    ..JobFilter::default()
                },
                true,
            ),
            (
                JobFilter {
                    states: one("killed"),
                    ..JobFilter::default()
                },
                false,
            ),
            (
                JobFilter {
                    users: one("ada"),
                    queues: one("default"),
                    ..JobFilter::default()
                },
                true,
            ),
            (
                JobFilter {
                    users: one("ada"),
                    queues: one("nightly"),
                    ..JobFilter::default()
                },
                false,
            ),
            (
                JobFilter {
                    names: one("word"),
                    ..JobFilter::default()
                },
                false,
            ),
            (text("WORD"), true),
            (text("job_0007"), true),
            (text("bob"), false),
            (since(1_790_000_000_000), true),
            (since(1_790_000_000_001), false),
            (until(1_790_000_000_001), true),
            (until(1_790_000_000_000), false),
        ] {
            assert_eq!(filter.matches(&failed), is_taken, "{filter:?}");
        }
        assert!(
            JobFilter {
                states: one("running"),
                ..JobFilter::default()
            }
            .matches(&job(8, JobPhase::Running, 1, 0))
        );
    }

    #[test]
    fn text_filter_matches_values_and_no_field_names() {
        let attempt = &super::super::samples::detail().attempts[0];
        let takes = |text: &str| TextFilter::new(Some(text.to_owned())).takes_attempt(attempt);
        for text in [
            "",
            " m_0003.1 ",
            "LEFT-HAND",
            "worker_0002 (left",
            "bad row",
        ] {
            assert!(takes(text), "{text}");
        }
        for text in ["running", "launched", "null", "outcome", "worker_0003"] {
            assert!(!takes(text), "{text}");
        }
        let live = LiveAttempt {
            attempt: attempt.attempt,
            worker: attempt.worker,
            state: AttemptState::Running,
            launched_millis: 1_790_000_000_000,
            reason: None,
            bytes_done: 0,
            bytes_total: 0,
        };
        let mut task = TaskSummary::new(attempt.attempt.task, TaskPhase::Running, 1);
        task.live.push(live);
        let takes = |text: &str| TextFilter::new(Some(text.to_owned())).takes_task(&task);
        assert!(
            ["job_0007_m_0003", "Running", "worker_0002"]
                .into_iter()
                .all(takes)
        );
        assert!(
            !["live", "bytes_total", "reason", "done"]
                .into_iter()
                .any(takes)
        );
    }

    #[test]
    fn every_job_state_is_accepted() {
        let all = JobFilter::states(&JobPhase::WORDS.join(","));
        assert_eq!(all.map(|all| all.len()), Ok(JobPhase::WORDS.len()));
        let error = JobFilter::states("failed,fialed").expect_err("unknown");
        assert_eq!(
            error,
            "unknown job state \"fialed\"; expected one of waiting, running, held, suspended, stopping, succeeded, failed, killed"
        );
    }
}
