//! Two jobs side by side: figures, what was submitted differently, and counters that differ.

use std::collections::BTreeSet;

use napreduce_history::Timeline;
use napreduce_protocol::{JobDetail, JobSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::{CountersAnswer, HistoryAnswer};
use super::submitted::SubmittedAnswer;

/// A comparison of two jobs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobComparison {
    pub left: JobFigures,
    pub right: JobFigures,
    /// What was submitted differently, as text; rows that only one of the jobs can have are left out.
    pub submitted: Vec<ComparedText>,
    /// The counters that differ, by name.
    pub counters: Vec<ComparedCounter>,
}

/// The figures of a job; of a running one, until now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobFigures {
    pub job: String,
    pub name: String,
    pub state: &'static str,
    /// From submission to end.
    pub took_millis: u64,
    /// From submission to the launch of its first attempt.
    pub waited_millis: u64,
    /// Time that its attempts held slots.
    pub held_millis: u64,
    /// Time that its work waited without slots, over all tasks.
    pub napped_millis: u64,
    pub attempts: usize,
    /// Number of slots that were taken from it.
    pub taken: usize,
    /// Time that these slots were empty until they were used.
    pub kept_millis: u64,
    pub work_saved_millis: u64,
    pub work_lost_millis: u64,
}

/// A text of both jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComparedText {
    pub label: &'static str,
    pub left: String,
    pub right: String,
}

/// A counter of both jobs; 0 for a job without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComparedCounter {
    pub counter: String,
    pub left: u64,
    pub right: u64,
}

impl JobComparison {
    /// Compares two jobs; one that runs is counted until `now_micros`.
    pub fn new(left: &JobDetail, right: &JobDetail, now_micros: u64) -> JobComparison {
        JobComparison {
            left: JobFigures::new(left, now_micros),
            right: JobFigures::new(right, now_micros),
            submitted: different_rows(left, right),
            counters: different_counters(left, right),
        }
    }

    /// Returns the job of the same name that was submitted last before `job`.
    pub fn earlier_of_name<'jobs>(
        job: &JobSummary,
        jobs: &'jobs [JobSummary],
    ) -> Option<&'jobs JobSummary> {
        let age = |job: &JobSummary| (job.submitted_millis, job.job);
        let earlier = jobs
            .iter()
            .filter(|other| other.name == job.name && age(other) < age(job));
        earlier.max_by_key(|other| age(other))
    }
}

impl JobFigures {
    fn new(job: &JobDetail, now_micros: u64) -> JobFigures {
        let summary = &job.summary;
        let ended = summary.ended_millis.unwrap_or(now_micros / 1_000);
        let first_launch = job
            .attempts
            .iter()
            .map(|attempt| attempt.launched_millis)
            .min();
        let first = first_launch.unwrap_or(ended).min(ended);
        // Until the end of the last millisecond, as in the timeline.
        let until_micros = summary
            .ended_millis
            .map_or(now_micros, |ended| (ended + 1) * 1_000);
        let timeline = Timeline::new(job, until_micros);
        let held: u64 = timeline
            .stints
            .iter()
            .map(|stint| stint.until_micros - stint.from_micros)
            .sum();
        let napped: u64 = timeline
            .naps
            .iter()
            .map(|nap| nap.until_micros - nap.from_micros)
            .sum();
        let history = HistoryAnswer::from(job);
        let taken: Vec<_> = history
            .preemptions
            .iter()
            .filter(|one| one.freed_micros.is_some())
            .collect();
        JobFigures {
            job: summary.job.to_string(),
            name: summary.name.clone(),
            state: summary.phase.in_words(),
            took_millis: ended.saturating_sub(summary.submitted_millis),
            waited_millis: first.saturating_sub(summary.submitted_millis),
            held_millis: held / 1_000,
            napped_millis: napped / 1_000,
            attempts: job.attempts.len(),
            taken: taken.len(),
            kept_millis: taken.iter().filter_map(|one| one.kept_millis).sum(),
            work_saved_millis: history
                .preemptions
                .iter()
                .map(|one| one.work_saved_millis)
                .sum(),
            work_lost_millis: history
                .preemptions
                .iter()
                .map(|one| one.work_lost_millis)
                .sum(),
        }
    }
}

fn different_rows(left: &JobDetail, right: &JobDetail) -> Vec<ComparedText> {
    let left_rows = SubmittedAnswer::from(left).rows();
    let right_rows = SubmittedAnswer::from(right).rows();
    let mut different = Vec::new();
    for (one, other) in left_rows.into_iter().zip(right_rows) {
        if let (Some(left), Some(right)) = (one.text, other.text)
            && left != right
        {
            different.push(ComparedText {
                label: one.label,
                left,
                right,
            });
        }
    }
    different
}

fn different_counters(left: &JobDetail, right: &JobDetail) -> Vec<ComparedCounter> {
    let of_left = CountersAnswer::from(left).counters;
    let of_right = CountersAnswer::from(right).counters;
    let names: BTreeSet<&String> = of_left.keys().chain(of_right.keys()).collect();
    let mut different = Vec::new();
    for name in names {
        let one = of_left.get(name).copied().unwrap_or(0);
        let other = of_right.get(name).copied().unwrap_or(0);
        if one != other {
            different.push(ComparedCounter {
                counter: name.clone(),
                left: one,
                right: other,
            });
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{JobId, Primitive};
    use napreduce_protocol::{Invocation, PreemptionEnd, Submitted};

    use super::super::samples::preempted;
    use super::*;

    #[test]
    fn comparison_has_figures_and_what_differs() {
        let mut left = preempted(&[
            (0, Primitive::Suspend, Some(PreemptionEnd::Suspended)),
            (100, Primitive::Kill, None),
        ]);
        let mut right = preempted(&[]);
        let command = |output: &str| Invocation {
            command: vec![
                "wordcount".to_owned(),
                "in".to_owned(),
                "--output".to_owned(),
                output.to_owned(),
            ],
            directory: "/home/ada".to_owned(),
            ..Invocation::default()
        };
        left.submitted = Some(Submitted::new(None, &[], Some(&command("one")), &[], None));
        right.submitted = Some(Submitted::new(
            None,
            &[],
            Some(&command("two")),
            &[],
            Some(JobId(3)),
        ));
        right.counters.add("rare rows", 3);
        let compared = JobComparison::new(&left, &right, 1_790_000_001_000_000);
        let saved: u64 = HistoryAnswer::from(&left)
            .preemptions
            .iter()
            .map(|one| one.work_saved_millis)
            .sum();
        assert_eq!(
            (compared.left.taken, compared.left.work_saved_millis),
            (1, saved)
        );
        assert_eq!(
            (compared.right.taken, compared.right.attempts),
            (0, right.attempts.len())
        );
        assert!(compared.left.held_millis > 0, "{compared:?}");
        // Only the right one is a rerun.
        let labels: Vec<&str> = compared.submitted.iter().map(|row| row.label).collect();
        assert_eq!(labels, ["Command line"]);
        assert!(
            compared.submitted[0].left.ends_with("--output one"),
            "{compared:?}"
        );
        let counter = ComparedCounter {
            counter: "rare rows".to_owned(),
            left: 0,
            right: 3,
        };
        assert_eq!(compared.counters, [counter]);
    }

    #[test]
    fn earlier_job_of_a_name_is_the_one_submitted_last_before() {
        let job = |number, name: &str, submitted_millis| {
            let mut summary = preempted(&[]).summary;
            summary.job = JobId(number);
            summary.name = name.to_owned();
            summary.submitted_millis = submitted_millis;
            summary
        };
        let jobs = [
            job(4, "a", 9),
            job(3, "b", 8),
            job(2, "a", 7),
            job(1, "a", 7),
        ];
        let earlier =
            |of: usize| JobComparison::earlier_of_name(&jobs[of], &jobs).map(|job| job.job.0);
        assert_eq!([0, 1, 2, 3].map(earlier), [Some(2), None, Some(1), None]);
    }
}
