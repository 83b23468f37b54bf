//! `nap job list`: jobs as rows.

use std::sync::OnceLock;

use anyhow::{Result, ensure};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use napreduce_answers::{JobAnswer, JobFilter, PhaseAnswer, TimeLeftAnswer};
use napreduce_cluster::ClusterClient;
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{JobPhase, JobSummary};
use napreduce_web::clock::now_millis;

use crate::failure::usage;
use crate::format::{FormatArguments, or_dash, span};
use crate::ids::JOBS_MAX;
use crate::listing::{Compare, Listed, ListingArguments, print_total};
use crate::moments::WrittenMoment;
use crate::screen::{Column, Fit, Screen};

/// The queue of jobs submitted without one.
const DEFAULT_QUEUE: &str = "default";

#[derive(Debug, Clone, Args)]
pub struct JobListArguments {
    /// Queues to show [default: all]
    #[arg(long, value_name = "QUEUE,...", value_delimiter = ',')]
    queue: Vec<String>,

    /// Users to show [default: all]
    #[arg(long, value_name = "USER,...", value_delimiter = ',')]
    user: Vec<String>,

    /// Names of jobs to show [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    name: Vec<String>,

    /// Text that ID, name, user or queue must contain
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Earliest time of submission: 2026-11-23, 2026-11-23T10:30, or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    since: Option<WrittenMoment>,

    /// Time before which jobs were submitted
    #[arg(long, value_name = "TIME")]
    until: Option<WrittenMoment>,

    #[command(flatten)]
    listing: ListingArguments<JobSummary>,

    #[command(flatten)]
    format: FormatArguments,
}

impl Listed for JobSummary {
    const KIND: &'static str = "job";
    const STATES: &'static [&'static str] = &JobPhase::WORDS;
    const SORTED: &'static [(&'static str, Compare<JobSummary>)] = &[
        ("job", |one, other| one.job.cmp(&other.job)),
        ("name", |one, other| one.name.cmp(&other.name)),
        ("user", |one, other| one.user.cmp(&other.user)),
        ("queue", |one, other| one.queue.cmp(&other.queue)),
        ("priority", |one, other| one.priority.cmp(&other.priority)),
        ("state", |one, other| {
            one.phase.in_words().cmp(other.phase.in_words())
        }),
        ("submitted", |one, other| {
            one.submitted_millis.cmp(&other.submitted_millis)
        }),
        ("ended", |one, other| {
            one.ended_millis.cmp(&other.ended_millis)
        }),
        ("took", |one, other| {
            took_until(one, command_millis()).cmp(&took_until(other, command_millis()))
        }),
        ("left", |one, other| {
            left_micros(one).cmp(&left_micros(other))
        }),
    ];
    const LIMIT: Option<u32> = Some(20);

    fn is_in(&self, state: &str) -> bool {
        self.phase.in_words() == state
    }
}

pub fn list(arguments: &JobListArguments, client: &mut ClusterClient) -> Result<()> {
    let filter = arguments.filter().map_err(usage)?;
    let mut jobs = client.ask(ListJobs { limit: JOBS_MAX })?;
    jobs.retain(|job| filter.matches(job));
    put_running_first(&mut jobs);
    let total = arguments.listing.select(&mut jobs);
    let answers = || jobs.iter().map(JobAnswer::from).collect::<Vec<_>>();
    arguments
        .format
        .print(|screen| text(&jobs, command_millis(), screen), answers)?;
    print_total::<JobSummary>(jobs.len(), total);
    Ok(())
}

/// Puts jobs that run before those that wait, and those before jobs that have ended, so that many waiting jobs do
/// not push a running one out of the rows that are shown. Within these groups the order stays.
fn put_running_first(jobs: &mut [JobSummary]) {
    jobs.sort_by_key(|job| match job.phase {
        JobPhase::Running | JobPhase::Stopping => 0,
        phase if phase.has_ended() => 2,
        _ => 1,
    });
}

impl JobListArguments {
    /// Fails if the times are invalid.
    pub fn check(&self) -> Result<()> {
        self.filter().map(drop).map_err(usage)
    }

    fn filter(&self) -> Result<JobFilter> {
        let zone = if self.format.utc {
            TimeZone::UTC
        } else {
            TimeZone::system()
        };
        let millis = |moment: WrittenMoment| moment.millis(Timestamp::now(), &zone);
        let since = self.since.map(millis).transpose()?;
        let until = self.until.map(millis).transpose()?;
        if let (Some(since), Some(until)) = (since, until) {
            ensure!(since < until, "--since must be before --until");
        }
        Ok(JobFilter {
            states: Vec::new(),
            queues: self.queue.clone(),
            users: self.user.clone(),
            names: self.name.clone(),
            text: self.text.clone(),
            since_millis: since,
            until_millis: until,
            before: None,
        })
    }
}

/// Formats a table at a time; the columns queue and priority are shown if any job has other than the default, the
/// time left if any has an estimate. Jobs that have not ended took the time so far.
pub fn text(jobs: &[JobSummary], now_millis: u64, screen: &Screen) -> String {
    type Row<'a> = (u64, &'a JobSummary);
    let has_queues = jobs.iter().any(|job| job.queue != DEFAULT_QUEUE);
    let has_priorities = jobs.iter().any(|job| job.priority != 0);
    let has_estimates = jobs.iter().any(|job| job.progress.left.is_some());
    let columns: [Column<Row<'_>>; 11] = [
        Column::new("JOB", Fit::Whole, |(_, job), _| job.job.to_string()),
        Column::new("NAME", Fit::Cut, |(_, job), _| job.name.clone()),
        Column::new("USER", Fit::Cut, |(_, job), _| job.user.clone()),
        Column::new("QUEUE", Fit::Cut, |(_, job): &Row<'_>, _| job.queue.clone())
            .only_if(has_queues),
        Column::new("PRIORITY", Fit::Drop(2), |(_, job): &Row<'_>, _| {
            job.priority.to_string()
        })
        .only_if(has_priorities),
        Column::new("STATE", Fit::Whole, |(_, job), _| {
            job.phase.in_words().to_owned()
        }),
        Column::new("MAPS", Fit::Whole, |(_, job), _| {
            percent_text(&job.progress.map)
        }),
        Column::new("REDUCES", Fit::Whole, |(_, job), _| {
            percent_text(&job.progress.reduce)
        }),
        Column::new("SUBMITTED", Fit::Drop(3), |(_, job), screen| {
            screen.minute(job.submitted_millis)
        }),
        Column::new("TOOK", Fit::Drop(1), |(now, job), _| {
            span(took_until(job, *now))
        }),
        Column::new("LEFT", Fit::Whole, |(_, job): &Row<'_>, _| {
            or_dash(job.progress.left.map(|left| left_text(left.into())))
        })
        .only_if(has_estimates),
    ];
    let rows: Vec<Row<'_>> = jobs.iter().map(|job| (now_millis, job)).collect();
    screen.list(&columns, &rows)
}

fn left_micros(job: &JobSummary) -> Option<u64> {
    job.progress.left.map(|left| left.likely.as_micros())
}

/// Time from submission to the end.
pub fn took_millis(job: &JobSummary) -> Option<u64> {
    job.ended_millis
        .map(|ended| ended.saturating_sub(job.submitted_millis))
}

/// Time from submission to the end, or so far.
fn took_until(job: &JobSummary, now_millis: u64) -> u64 {
    took_millis(job).unwrap_or_else(|| now_millis.saturating_sub(job.submitted_millis))
}

/// The time of this command; the same for every comparison, so that a sort has one order.
fn command_millis() -> u64 {
    static COMMAND_MILLIS: OnceLock<u64> = OnceLock::new();
    *COMMAND_MILLIS.get_or_init(now_millis)
}

/// Formats an estimate, such as `about 2 min 5 s`. It is not exact to less than a second.
pub fn left_text(left: TimeLeftAnswer) -> String {
    if left.likely_millis < 1_000 {
        "under 1 s".to_owned()
    } else {
        format!("about {}", span(left.likely_millis))
    }
}

/// Formats the finished tasks of a phase, such as `3/4 75%`.
pub fn phase_text(phase: impl Into<PhaseAnswer>) -> String {
    let PhaseAnswer {
        tasks,
        done,
        percent,
        ..
    } = phase.into();
    if tasks == 0 {
        "-".to_owned()
    } else {
        format!("{done}/{tasks} {percent}%")
    }
}

/// Formats the finished share of a phase's work, such as `75%`.
fn percent_text(phase: impl Into<PhaseAnswer>) -> String {
    let PhaseAnswer { tasks, percent, .. } = phase.into();
    if tasks == 0 {
        "-".to_owned()
    } else {
        format!("{percent}%")
    }
}

#[cfg(test)]
pub mod tests {
    use napreduce_engine::{JobId, Span, TimeLeft};
    use napreduce_protocol::{JobPhase, JobProgress, PhaseProgress};

    use super::*;

    pub fn summary() -> JobSummary {
        let map = PhaseProgress {
            tasks: 4,
            done: 3,
            running: 1,
            ..PhaseProgress::default()
        };
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
            progress: JobProgress {
                map,
                ..JobProgress::default()
            },
            output: "/data/out".into(),
            unrecorded: None,
        }
    }

    /// A minute and five seconds after the submission.
    const NOW: u64 = 1_790_000_065_000;

    #[test]
    fn running_jobs_are_listed_before_waiting_and_ended_ones() {
        let job = |number, phase| JobSummary {
            job: JobId(number),
            phase,
            ..summary()
        };
        let mut jobs = vec![
            job(5, JobPhase::Waiting),
            job(4, JobPhase::Succeeded),
            job(3, JobPhase::Held),
            job(2, JobPhase::Running),
            job(1, JobPhase::Stopping),
        ];
        put_running_first(&mut jobs);
        let order: Vec<u32> = jobs.iter().map(|job| job.job.0).collect();
        assert_eq!(order, [2, 1, 5, 3, 4]);
    }

    #[test]
    fn jobs_that_run_are_sorted_by_their_time_so_far() {
        let job = |number, ended_millis: Option<u64>| JobSummary {
            job: JobId(number),
            ended_millis,
            ..summary()
        };
        let begun = summary().submitted_millis;
        let mut jobs = [
            job(1, None),
            job(2, Some(begun + 9_000)),
            job(3, Some(begun + 2_000)),
        ];
        let (_, compare) = JobSummary::SORTED
            .iter()
            .find(|(column, _)| *column == "took")
            .expect("a column");
        jobs.sort_by(compare);
        assert_eq!(jobs.map(|job| job.job.0), [3, 2, 1]);
    }

    #[test]
    fn estimate_below_a_second_has_no_figure() {
        let of = |likely_millis| TimeLeftAnswer {
            least_millis: 0,
            likely_millis,
            most_millis: 5_000,
        };
        assert_eq!(left_text(of(999)), "under 1 s");
        assert_eq!(left_text(of(125_000)), "about 2 min 5 s");
    }

    #[test]
    fn job_list_has_a_row_per_job() {
        assert_eq!(
            text(&[summary()], NOW, &Screen::plain()),
            "JOB       NAME       USER  STATE   MAPS  REDUCES  SUBMITTED          TOOK\n\
             job_0007  wordcount  ada   failed  75%   -        2026-09-21T14:13Z  1.5 s\n"
        );
    }

    #[test]
    fn queue_and_priority_columns_appear_if_not_default() {
        let nightly = JobSummary {
            queue: "nightly".to_owned(),
            priority: 5,
            ..summary()
        };
        let text = text(&[summary(), nightly], NOW, &Screen::plain());
        assert!(
            text.starts_with("JOB       NAME       USER  QUEUE    PRIORITY  STATE "),
            "{text}"
        );
        assert!(text.contains("ada   nightly  5         failed"), "{text}");
    }

    #[test]
    fn time_left_column_appears_if_a_job_has_an_estimate() {
        let mut running = JobSummary {
            phase: JobPhase::Running,
            reason: None,
            ended_millis: None,
            ..summary()
        };
        let seconds = Span::from_secs;
        running.progress.left = Some(TimeLeft {
            least: seconds(100),
            likely: seconds(125),
            most: seconds(180),
        });
        let text = text(&[summary(), running], NOW, &Screen::plain());
        assert!(
            text.starts_with(
                "JOB       NAME       USER  STATE    MAPS  REDUCES  SUBMITTED          TOOK       LEFT"
            ),
            "{text}"
        );
        assert!(
            text.ends_with("-        2026-09-21T14:13Z  1 min 5 s  about 2 min 5 s\n"),
            "{text}"
        );
    }

    #[test]
    fn jobs_are_sorted_by_time_left() {
        let job = |number, left: Option<u64>| {
            let mut job = JobSummary {
                job: JobId(number),
                ..summary()
            };
            let span = left.map(Span::from_secs);
            job.progress.left = span.map(|likely| TimeLeft {
                least: likely,
                likely,
                most: likely,
            });
            job
        };
        let mut jobs = [job(1, Some(9)), job(2, None), job(3, Some(7))];
        let (_, compare) = JobSummary::SORTED
            .iter()
            .find(|(column, _)| *column == "left")
            .expect("a column");
        jobs.sort_by(compare);
        assert_eq!(jobs.map(|job| job.job.0), [2, 3, 1]);
    }

    #[test]
    fn job_list_fits_80_columns() {
        let mut running = JobSummary {
            job: JobId(12_345),
            name: "hourly-billing-of-the-northern-region".to_owned(),
            queue: "production.billing".to_owned(),
            priority: 5,
            phase: JobPhase::Running,
            ended_millis: None,
            ..summary()
        };
        let likely = Span::from_secs(7_500);
        running.progress.left = Some(TimeLeft {
            least: likely,
            likely,
            most: likely,
        });
        let jobs = [running, summary()];
        let text = text(&jobs, NOW, &Screen::of(80));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let first = text.lines().next().expect("headings");
        assert_eq!(
            first.split_whitespace().collect::<Vec<_>>(),
            [
                "JOB", "NAME", "USER", "QUEUE", "STATE", "MAPS", "REDUCES", "LEFT"
            ]
        );
    }
}
