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
use napreduce_web::answers::{JobAnswer, JobFilter, PhaseAnswer, TimeLeftAnswer};

use crate::failure::usage;
use crate::format::{FormatArguments, or_dash, span};
use crate::ids::JOBS_MAX;
use crate::moments::WrittenMoment;
use crate::screen::Screen;

/// The queue of jobs submitted without one.
const DEFAULT_QUEUE: &str = "default";

#[derive(Debug, Clone, Args)]
pub struct JobListArguments {
    /// States to show: waiting, running, held, suspended, stopping, succeeded, failed, killed [default: all]
    #[arg(long, value_name = "STATE,...", value_parser = JobFilter::states)]
    state: Option<States>,

    /// Queues to show [default: all]
    #[arg(long, value_name = "QUEUE,...", value_delimiter = ',')]
    queue: Vec<String>,

    /// Users whose jobs to show [default: all]
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

    /// Sort columns: job, name, user, queue, priority, state, submitted, ended, took; -COLUMN for
    /// descending order
    #[arg(long, value_name = "[-]COLUMN,...", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<SortKey>,

    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    #[command(flatten)]
    format: FormatArguments,
}

/// Several values that clap reads as one.
type States = Vec<String>;

/// A sort column and its direction.
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
                "unknown column {name:?}; expected job, name, user, queue, priority, state, submitted, ended or took"
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

/// Compares by the first column in which the jobs differ.
fn by_all(keys: &[SortKey], one: &JobSummary, other: &JobSummary) -> Ordering {
    let orders = keys.iter().map(|key| key.compare(one, other));
    orders.fold(Ordering::Equal, Ordering::then)
}

pub fn list(arguments: &JobListArguments, client: &mut ClusterClient) -> Result<()> {
    let filter = arguments.filter().map_err(usage)?;
    let limit = arguments.limit as usize;
    // Filters and sort columns are applied here, so they need all jobs.
    let needs_all = !filter.is_open() || !arguments.sort.is_empty();
    let requested = if needs_all { JOBS_MAX } else { arguments.limit.saturating_add(1) };
    let mut jobs = client.ask(ListJobs { limit: requested })?;
    jobs.retain(|job| filter.matches(job));
    jobs.sort_by(|one, other| by_all(&arguments.sort, one, other));
    let more = jobs.len().saturating_sub(limit);
    jobs.truncate(limit);
    let answers = || jobs.iter().map(JobAnswer::from).collect::<Vec<_>>();
    arguments.format.print(|screen| text(&jobs, screen), answers)?;
    if more > 0 {
        let more = if needs_all { more.to_string() } else { "some".to_owned() };
        print_error(format_args!(
            "nap: {more} more not shown; raise --limit, or filter with --state, --queue, --user, --name, --since"
        ));
    }
    Ok(())
}

impl JobListArguments {
    /// Fails if the times are invalid.
    pub fn check(&self) -> Result<()> {
        self.filter().map(drop).map_err(usage)
    }

    fn filter(&self) -> Result<JobFilter> {
        let zone = if self.format.utc { TimeZone::UTC } else { TimeZone::system() };
        let millis = |moment: WrittenMoment| moment.millis(Timestamp::now(), &zone);
        let (since, until) = (self.since.map(millis).transpose()?, self.until.map(millis).transpose()?);
        if let (Some(since), Some(until)) = (since, until) {
            ensure!(since < until, "--since must be before --until");
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

/// Formats a table; the columns queue and priority are shown if any job has other than the default, the time
/// left if any has an estimate.
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
    if jobs.iter().any(|job| job.progress.left.is_some()) {
        columns.push(("LEFT", |job, _| or_dash(job.progress.left.map(|left| left_text(left.into())))));
    }
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

/// A heading and its cell for a job.
type JobColumn = (&'static str, fn(&JobSummary, &Screen) -> String);

/// Time from submission to the end.
pub fn took_millis(job: &JobSummary) -> Option<u64> {
    job.ended_millis.map(|ended| ended.saturating_sub(job.submitted_millis))
}

/// Formats an estimate, such as `about 2 min 5 s`.
pub fn left_text(left: TimeLeftAnswer) -> String {
    format!("about {}", span(left.likely_millis))
}

/// Formats the finished tasks of a phase, such as `3/4 75%`.
pub fn phase_text(phase: impl Into<PhaseAnswer>) -> String {
    let PhaseAnswer { tasks, done, percent, .. } = phase.into();
    if tasks == 0 { "-".to_owned() } else { format!("{done}/{tasks} {percent}%") }
}

/// Formats the finished share of a phase's work, such as `75%`.
fn percent_text(phase: impl Into<PhaseAnswer>) -> String {
    let PhaseAnswer { tasks, percent, .. } = phase.into();
    if tasks == 0 { "-".to_owned() } else { format!("{percent}%") }
}

#[cfg(test)]
pub mod tests {
    use napreduce_engine::{JobId, Span, TimeLeft};
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
            progress: JobProgress { map, ..JobProgress::default() },
            output: "/data/out".into(),
        }
    }

    #[test]
    fn job_list_has_a_row_per_job() {
        assert_eq!(
            text(&[summary()], &Screen::plain()),
            "JOB       NAME       USER  STATE   MAPS  REDUCES  SUBMITTED          TOOK\n\
             job_0007  wordcount  ada   failed  75%   -        2026-09-21T14:13Z  1.5 s\n"
        );
    }

    #[test]
    fn queue_and_priority_columns_appear_if_not_default() {
        let nightly = JobSummary { queue: "nightly".to_owned(), priority: 5, ..summary() };
        let text = text(&[summary(), nightly], &Screen::plain());
        assert!(text.starts_with("JOB       NAME       USER  QUEUE    PRIORITY  STATE "), "{text}");
        assert!(text.contains("ada   nightly  5         failed"), "{text}");
    }

    #[test]
    fn time_left_column_appears_if_a_job_has_an_estimate() {
        let mut running =
            JobSummary { phase: JobPhase::Running, reason: None, ended_millis: None, ..summary() };
        let seconds = Span::from_secs;
        running.progress.left =
            Some(TimeLeft { least: seconds(100), likely: seconds(125), most: seconds(180) });
        let text = text(&[summary(), running], &Screen::plain());
        assert!(
            text.starts_with(
                "JOB       NAME       USER  STATE    MAPS  REDUCES  SUBMITTED          TOOK   LEFT"
            ),
            "{text}"
        );
        assert!(text.ends_with("-      about 2 min 5 s\n"), "{text}");
    }

    #[test]
    fn jobs_are_sorted_by_several_columns() {
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
        assert!(error.starts_with("unknown column \"size\"; expected job, name,"), "{error}");
    }
}
