//! `nap status`: a summary of a cluster.

use anyhow::Result;
use clap::Args;
use napreduce_answers::{CurrentJob, JobCounts, SlotsInUse, StatusAnswer, WorkerCounts};
use napreduce_protocol::one_line;
use napreduce_protocol::requests::{Explain, ListJobs, ListWorkers};

use crate::cluster::ClusterArguments;
use crate::format::{FormatArguments, or_dash};
use crate::ids::JOBS_MAX;
use crate::job::{left_text, phase_text};
use crate::screen::{Column, Fit, Screen};

/// Maximum jobs to show; `nap job list` shows all.
const SHOWN_MAX: usize = 20;
/// Maximum columns of a warning.
const WARNING_COLUMNS_MAX: usize = 200;

const COLUMNS: [Column<CurrentJob>; 8] = [
    Column::new("JOB", Fit::Whole, |current, _| current.job.job.clone()),
    Column::new("NAME", Fit::Cut, |current, _| current.job.name.clone()),
    Column::new("QUEUE", Fit::Cut, |current, _| current.job.queue.clone()),
    Column::new("STATE", Fit::Whole, |current, _| {
        current.job.state.to_owned()
    }),
    Column::new("MAPS", Fit::Whole, |current, _| {
        phase_text(current.job.map.clone())
    }),
    Column::new("REDUCES", Fit::Drop(1), |current, _| {
        phase_text(current.job.reduce.clone())
    }),
    Column::new("LEFT", Fit::Whole, |current, _| {
        or_dash(current.job.left.map(left_text))
    }),
    Column::new("WHY IT WAITS", Fit::Below, |current, _| {
        current.why.clone().unwrap_or_default()
    }),
];

/// Print workers, slots, jobs, and why jobs wait
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap status
  nap status --format json
  watch nap status")]
pub struct Arguments {
    #[command(flatten)]
    format: FormatArguments,
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let mut client = cluster.connect()?;
    let workers = client.ask(ListWorkers)?;
    let jobs = client.ask(ListJobs { limit: JOBS_MAX })?;
    let status = StatusAnswer::of(&workers, &jobs, |job| {
        client.ask(Explain { job, task: None })
    })?;
    arguments
        .format
        .print(|screen| text(&status, screen), || &status)
}

/// Returns the counts of workers, slots, jobs and paused tasks, each with its name.
pub fn overview(status: &StatusAnswer) -> [(&'static str, String); 4] {
    let WorkerCounts {
        up,
        excluded,
        draining,
        leaving,
        lost,
    } = status.workers;
    let workers = [
        (up, "up"),
        (excluded, "excluded"),
        (draining, "draining"),
        (leaving, "leaving"),
        (lost, "lost"),
    ];
    let JobCounts {
        waiting,
        running,
        held,
        suspended,
        stopping,
        succeeded,
        failed,
        killed,
    } = status.jobs;
    let jobs = [
        (running, "running"),
        (waiting, "waiting"),
        (held, "held"),
        (suspended, "suspended"),
        (stopping, "stopping"),
        (succeeded, "succeeded"),
        (failed, "failed"),
        (killed, "killed"),
    ];
    let slots = |of: SlotsInUse| format!("{}/{}", of.used, of.slots);
    let paused = [
        (status.map.suspended + status.reduce.suspended, "suspended"),
        (status.checkpointed, "checkpointed"),
    ];
    [
        ("workers", counts(&workers)),
        (
            "slots",
            format!(
                "maps {}, reduces {}",
                slots(status.map),
                slots(status.reduce)
            ),
        ),
        ("jobs", counts(&jobs)),
        ("paused", counts(&paused)),
    ]
}

fn text(status: &StatusAnswer, screen: &Screen) -> String {
    let lines = overview(status).map(|(name, value)| format!("{name:<8} {value}\n"));
    let mut text = lines.concat();
    for warning in &status.warnings {
        let line = format!("{}; {}", warning.text, warning.remedy);
        text.push_str(&format!(
            "warning  {}\n",
            one_line(&line, WARNING_COLUMNS_MAX)
        ));
    }
    if !status.current.is_empty() {
        let shown = &status.current[..status.current.len().min(SHOWN_MAX)];
        text.push_str(&format!("\n{}", screen.list(&COLUMNS, shown)));
    }
    if status.current.len() > SHOWN_MAX {
        let more = status.current.len() - SHOWN_MAX;
        text.push_str(&format!(
            "... and {more} more: nap job list --limit {}\n",
            status.current.len()
        ));
    }
    text
}

/// Formats counts without zeros, such as `3 up, 1 lost`.
fn counts<N: Copy + PartialEq + Default + std::fmt::Display>(all: &[(N, &str)]) -> String {
    let nonzero = all.iter().filter(|(count, _)| *count != N::default());
    let words: Vec<String> = nonzero
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use napreduce_answers::{JobAnswer, TimeLeftAnswer, WarningAnswer};
    use napreduce_protocol::JobPhase;

    use super::*;
    use crate::job::sample_summary as summary;

    fn current(number: u32, phase: JobPhase) -> CurrentJob {
        let is_waiting = phase == JobPhase::Waiting;
        let job = JobAnswer {
            job: format!("job_{number:04}"),
            state: phase.in_words(),
            left: (!is_waiting).then_some(TimeLeftAnswer {
                least_millis: 100_000,
                likely_millis: 125_000,
                most_millis: 180_000,
            }),
            ..(&summary()).into()
        };
        let why = is_waiting.then(|| format!("job_{number:04} waits for a slot"));
        CurrentJob {
            job,
            why,
            code: is_waiting.then_some("all-slots-taken"),
        }
    }

    #[test]
    fn status_shows_counts_warnings_and_waiting_jobs() {
        let warning = WarningAnswer {
            text: "worker_0002 (w2) is lost: silent\u{1b}[2J".to_owned(),
            remedy: "start it again there: nap worker".to_owned(),
            ..WarningAnswer::default()
        };
        let status = StatusAnswer {
            workers: WorkerCounts {
                up: 1,
                lost: 1,
                ..WorkerCounts::default()
            },
            map: SlotsInUse {
                slots: 2,
                used: 2,
                suspended: 1,
            },
            reduce: SlotsInUse {
                slots: 1,
                used: 0,
                suspended: 0,
            },
            jobs: JobCounts {
                waiting: 1,
                running: 1,
                succeeded: 1,
                killed: 1,
                ..JobCounts::default()
            },
            checkpointed: 0,
            current: vec![current(9, JobPhase::Waiting), current(8, JobPhase::Running)],
            warnings: vec![warning],
        };
        assert_eq!(
            text(&status, &Screen::plain()),
            "workers  1 up, 1 lost\nslots    maps 2/2, reduces 0/1\njobs     1 running, 1 waiting, 1 succeeded, 1 killed\n\
             paused   1 suspended\nwarning  worker_0002 (w2) is lost: silent\\u{1b}[2J; start it again there: nap worker\n\n\
             JOB       NAME       QUEUE    STATE    MAPS     REDUCES  LEFT             WHY IT WAITS\n\
             job_0009  wordcount  default  waiting  3/4 75%  -        -                job_0009 waits for a slot\n\
             job_0008  wordcount  default  running  3/4 75%  -        about 2 min 5 s\n"
        );
    }

    #[test]
    fn status_limits_jobs_and_shows_idle_cluster() {
        let current = (1..=50)
            .map(|number| current(number, JobPhase::Waiting))
            .collect();
        let jobs = JobCounts {
            waiting: 50,
            ..JobCounts::default()
        };
        let many = text(
            &StatusAnswer {
                jobs,
                current,
                ..StatusAnswer::default()
            },
            &Screen::plain(),
        );
        assert!(many.contains("jobs     50 waiting\n"), "{many}");
        assert!(
            many.ends_with("... and 30 more: nap job list --limit 50\n"),
            "{many}"
        );
        let idle = text(&StatusAnswer::default(), &Screen::plain());
        assert_eq!(
            idle,
            "workers  none\nslots    maps 0/0, reduces 0/0\njobs     none\npaused   none\n"
        );
    }
}
