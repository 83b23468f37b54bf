//! `nap job list`: jobs as rows.

use std::cmp::Ordering;
use std::str::FromStr;

use anyhow::{Result, ensure};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use napreduce_cluster::ClusterClient;
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{JobSummary, printing::print_error};
use napreduce_web::answers::{JobAnswer, JobFilter, PhaseAnswer};

use crate::failure::usage;
use crate::format::{FormatArguments, or_dash, span};
use crate::ids::JOBS_MAX;
use crate::moments::WrittenMoment;
use crate::screen::Screen;

/// The queue of jobs that name none.
const DEFAULT_QUEUE: &str = "default";

#[derive(Debug, Clone, Args)]
pub struct JobListArguments {
    /// Only in one of these states: active, suspended, stopping, succeeded, failed, killed
    #[arg(long, value_name = "STATE,...", value_parser = JobFilter::states)]
    state: Option<States>,

    /// Only of these queues
    #[arg(long, value_name = "QUEUE,...", value_delimiter = ',')]
    queue: Vec<String>,

    /// Only of these users
    #[arg(long, value_name = "USER,...", value_delimiter = ',')]
    user: Vec<String>,

    /// Only of these names
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    name: Vec<String>,

    /// Only with this in their ID, name, user or queue
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Only submitted then or later: 2026-11-23, 2026-11-23T10:30, 2h (two hours ago)
    #[arg(long, value_name = "TIME")]
    since: Option<WrittenMoment>,

    /// Only submitted before that
    #[arg(long, value_name = "TIME")]
    until: Option<WrittenMoment>,

    /// By what to sort: job, name, user, queue, priority, state, submitted, ended, took; with -
    /// before it downwards
    #[arg(long, value_name = "[-]COLUMN,...", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<SortKey>,

    /// At most so many
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    #[command(flatten)]
    format: FormatArguments,
}

/// Several values that clap reads as one.
type States = Vec<String>;

/// How a column is sorted, and whether downwards.
#[derive(Debug, Clone, Copy)]
struct SortKey {
    compare: Compare,
    is_downwards: bool,
}

type Compare = fn(&JobSummary, &JobSummary) -> Ordering;

/// The columns by which jobs are sorted.
const SORTED: [(&str, Compare); 9] = [
    ("job", |one, other| one.job.cmp(&other.job)),
    ("name", |one, other| one.name.cmp(&other.name)),
    ("user", |one, other| one.user.cmp(&other.user)),
    ("queue", |one, other| one.queue.cmp(&other.queue)),
    ("priority", |one, other| one.priority.cmp(&other.priority)),
    ("state", |one, other| one.phase.in_words().cmp(other.phase.in_words())),
    ("submitted", |one, other| one.submitted_millis.cmp(&other.submitted_millis)),
    ("ended", |one, other| one.ended_millis.cmp(&other.ended_millis)),
    ("took", |one, other| took_millis(one).cmp(&took_millis(other))),
];

impl FromStr for SortKey {
    type Err = String;

    fn from_str(text: &str) -> Result<SortKey, String> {
        let (is_downwards, name) = text.strip_prefix('-').map_or((false, text), |name| (true, name));
        let (_, compare) = SORTED.iter().find(|(column, _)| *column == name).ok_or_else(|| {
            format!(
                "{name:?} is no column; sort by job, name, user, queue, priority, state, submitted, ended or took"
            )
        })?;
        Ok(SortKey { compare: *compare, is_downwards })
    }
}

impl SortKey {
    fn compare(self, one: &JobSummary, other: &JobSummary) -> Ordering {
        let order = (self.compare)(one, other);
        if self.is_downwards { order.reverse() } else { order }
    }
}

/// By the first column in which they differ.
fn by_all(keys: &[SortKey], one: &JobSummary, other: &JobSummary) -> Ordering {
    let orders = keys.iter().map(|key| key.compare(one, other));
    orders.fold(Ordering::Equal, Ordering::then)
}

pub fn list(arguments: &JobListArguments, client: &mut ClusterClient) -> Result<()> {
    let filter = arguments.filter().map_err(usage)?;
    let limit = arguments.limit as usize;
    // Which ones come first is only known of all of them.
    let needs_all = !filter.is_open() || !arguments.sort.is_empty();
    let asked = if needs_all { JOBS_MAX } else { arguments.limit.saturating_add(1) };
    let mut jobs = client.ask(ListJobs { limit: asked })?;
    jobs.retain(|job| filter.takes(job));
    jobs.sort_by(|one, other| by_all(&arguments.sort, one, other));
    let more = jobs.len().saturating_sub(limit);
    jobs.truncate(limit);
    let answers = || jobs.iter().map(JobAnswer::from).collect::<Vec<_>>();
    arguments.format.print(|screen| text(&jobs, screen), answers)?;
    if more > 0 {
        let more = if needs_all { more.to_string() } else { "some".to_owned() };
        print_error(format_args!(
            "nap: {more} more; show them with --limit, or fewer with --state, --queue, --user, --name, --since"
        ));
    }
    Ok(())
}

impl JobListArguments {
    fn filter(&self) -> Result<JobFilter> {
        let zone = if self.format.utc { TimeZone::UTC } else { TimeZone::system() };
        let millis = |moment: WrittenMoment| moment.millis(Timestamp::now(), &zone);
        let (since, until) = (self.since.map(millis).transpose()?, self.until.map(millis).transpose()?);
        if let (Some(since), Some(until)) = (since, until) {
            ensure!(
                since < until,
                "no job is submitted from a time on and before it; give --since before --until"
            );
        }
        Ok(JobFilter {
            states: self.state.clone().unwrap_or_default(),
            queues: self.queue.clone(),
            users: self.user.clone(),
            names: self.name.clone(),
            text: self.text.clone(),
            since_millis: since,
            until_millis: until,
        })
    }
}

/// Queue and priority are columns where some job has another one than jobs have by themselves.
pub fn text(jobs: &[JobSummary], screen: &Screen) -> String {
    let has_queues = jobs.iter().any(|job| job.queue != DEFAULT_QUEUE);
    let has_priorities = jobs.iter().any(|job| job.priority != 0);
    let mut columns: Vec<JobColumn> = vec![
        ("JOB", |job, _| job.job.to_string()),
        ("NAME", |job, _| job.name.clone()),
        ("USER", |job, _| job.user.clone()),
        ("STATE", |job, _| job.phase.in_words().to_owned()),
        ("MAPS", |job, _| percent_text(&job.progress.map)),
        ("REDUCES", |job, _| percent_text(&job.progress.reduce)),
        ("SUBMITTED", |job, screen| screen.minute(job.submitted_millis)),
        ("TOOK", |job, _| or_dash(took_millis(job).map(span))),
    ];
    if has_priorities {
        columns.insert(3, ("PRIORITY", |job, _| job.priority.to_string()));
    }
    if has_queues {
        columns.insert(3, ("QUEUE", |job, _| job.queue.clone()));
    }
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    screen
        .table(&headings, jobs.iter().map(|job| columns.iter().map(|(_, cell)| cell(job, screen)).collect()))
}

/// A heading, and what stands below it.
type JobColumn = (&'static str, fn(&JobSummary, &Screen) -> String);

/// From submission to the end.
pub fn took_millis(job: &JobSummary) -> Option<u64> {
    job.ended_millis.map(|ended| ended.saturating_sub(job.submitted_millis))
}

/// How many of a phase's tasks are done.
pub fn phase_text(phase: impl Into<PhaseAnswer>) -> String {
    let PhaseAnswer { tasks, done, percent, .. } = phase.into();
    if tasks == 0 { "-".to_owned() } else { format!("{done}/{tasks} {percent}%") }
}

/// The share of a phase's work that is done.
fn percent_text(phase: impl Into<PhaseAnswer>) -> String {
    let PhaseAnswer { tasks, percent, .. } = phase.into();
    if tasks == 0 { "-".to_owned() } else { format!("{percent}%") }
}

#[cfg(test)]
pub mod tests {
    use napreduce_engine::JobId;
    use napreduce_protocol::{JobPhase, JobProgress, PhaseProgress};

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
            text(&[summary()], &Screen::plain()),
            "JOB       NAME       USER  STATE   MAPS  REDUCES  SUBMITTED          TOOK\n\
             job_0007  wordcount  ada   failed  75%   -        2026-09-21T14:13Z  1.5 s\n"
        );
    }

    #[test]
    fn queues_and_priorities_are_columns_where_jobs_differ_in_them() {
        let nightly = JobSummary { queue: "nightly".to_owned(), priority: 5, ..summary() };
        let text = text(&[summary(), nightly], &Screen::plain());
        assert!(text.starts_with("JOB       NAME       USER  QUEUE    PRIORITY  STATE "), "{text}");
        assert!(text.contains("ada   nightly  5         failed"), "{text}");
    }

    #[test]
    fn jobs_are_sorted_by_several_columns_upwards_and_downwards() {
        let job = |number, user: &str, priority| JobSummary {
            job: JobId(number),
            user: user.to_owned(),
            priority,
            ..summary()
        };
        let jobs = [job(1, "bob", 2), job(2, "ada", 1), job(3, "ada", 3)];
        let sorted = |keys: &str| {
            let keys: Vec<SortKey> = keys.split(',').map(|key| key.parse().expect(key)).collect();
            let mut sorted = jobs.to_vec();
            sorted.sort_by(|one, other| by_all(&keys, one, other));
            sorted.iter().map(|job| job.job.0).collect::<Vec<_>>()
        };
        assert_eq!(sorted("user,-priority"), [3, 2, 1]);
        assert_eq!(sorted("priority"), [2, 1, 3]);
        assert_eq!(sorted("-job"), [3, 2, 1]);
        assert_eq!(
            sorted("took,state,name,queue,submitted,ended"),
            [1, 2, 3],
            "what is equal keeps its order"
        );
        let error = "size".parse::<SortKey>().expect_err("no column");
        assert!(error.starts_with("\"size\" is no column; sort by job, name,"), "{error}");
    }
}
