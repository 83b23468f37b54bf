//! `nap job compare`: two jobs side by side, of a cluster or of a history.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use napreduce_answers::{ComparedCounter, JobComparison, JobFigures};
use napreduce_history::HistoryFolder;
use napreduce_protocol::{JobDetail, several_lines};
use napreduce_web::clock::now_micros;
use napreduce_web::{ClusterSource, HistorySource, PageSource};

use crate::cluster::ClusterArguments;
use crate::failure::usage;
use crate::format::{FormatArguments, span};
use crate::ids::{JobSelector, KnownJob};
use crate::screen::{Column, Fit, Screen};

const COMMAND: &str = "nap job compare";

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
With one job, the other is the one submitted last before it under the same name.

Examples:
  nap job compare 7 9
  nap job compare last                     with the run before it
  nap job compare 7 9 --format json
  nap job compare 7 9 --history /srv/nap   of a stopped cluster")]
pub struct CompareArguments {
    /// job_0007, 7, last, or the name of one job
    #[arg(value_name = "JOB")]
    left: JobSelector,

    /// Job to compare it with [default: the one before it of the same name]
    #[arg(value_name = "JOB")]
    right: Option<JobSelector>,

    /// Read ended jobs without a cluster: its directory, the folder `coordinator`, or a copy of its history
    #[arg(long, value_name = "PATH")]
    history: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArguments,
}

pub fn run(arguments: &CompareArguments, cluster: &ClusterArguments) -> Result<()> {
    let source = arguments.source(cluster)?;
    let (left, right) = arguments.jobs(&*source)?;
    let comparison = JobComparison::new(&left, &right, now_micros());
    arguments
        .format
        .print(|screen| text(&comparison, screen), || &comparison)
}

impl CompareArguments {
    fn source(&self, cluster: &ClusterArguments) -> Result<Box<dyn PageSource>> {
        if let Some(path) = &self.history {
            HistoryFolder::open(path).map_err(usage)?;
            return Ok(Box::new(HistorySource::open(path)?));
        }
        // Waits for the coordinator, and reports why it does not answer.
        drop(cluster.connect()?);
        Ok(Box::new(ClusterSource::new(cluster.place()?)))
    }

    /// Reads the two jobs. With one selector, the earlier job is on the left.
    fn jobs(&self, source: &dyn PageSource) -> Result<(Arc<JobDetail>, Arc<JobDetail>)> {
        let all = source.jobs()?;
        let known: Vec<KnownJob> = all.iter().map(KnownJob::from).collect();
        let named = source.job(self.left.one_among(&known, COMMAND)?)?;
        if let Some(right) = &self.right {
            let right = source.job(right.one_among(&known, COMMAND)?)?;
            return Ok((named, right));
        }
        let earlier = JobComparison::earlier_of_name(&named.summary, &all).with_context(|| {
            format!(
                "{}: no earlier job has its name; give two jobs",
                named.summary.job
            )
        });
        let earlier = earlier.map_err(usage)?;
        Ok((source.job(earlier.job)?, named))
    }
}

/// A row of two values with their difference and ratio.
struct Row {
    what: String,
    left: String,
    right: String,
    difference: String,
    ratio: String,
}

impl Row {
    fn new(what: &str, left: u64, right: u64, form: fn(u64) -> String) -> Row {
        let sign = if right >= left { "+" } else { "-" };
        let difference = match right.abs_diff(left) {
            0 => "-".to_owned(),
            more => format!("{sign}{}", form(more)),
        };
        let ratio = if left > 0 {
            format!("{:.2}", right as f64 / left as f64)
        } else {
            "-".to_owned()
        };
        Row {
            what: what.to_owned(),
            left: form(left),
            right: form(right),
            difference,
            ratio,
        }
    }
}

fn text(comparison: &JobComparison, screen: &Screen) -> String {
    let JobComparison {
        left,
        right,
        submitted,
        counters,
    } = comparison;
    let head = |side: &str, job: &JobFigures| {
        format!("{side:<6} {} {}, {}\n", job.job, job.name, job.state)
    };
    let heads = [head("left", left), head("right", right)];
    let heads = heads.map(|head| several_lines(&head));
    let mut text = format!(
        "{}\n{}",
        heads.concat(),
        table("FIGURE", &figures(left, right), screen)
    );
    if !submitted.is_empty() {
        text.push_str("\nsubmitted differently\n");
    }
    for row in submitted {
        text.push_str(&format!("  {}\n", row.label.to_lowercase()));
        for (side, value) in [("left", &row.left), ("right", &row.right)] {
            let value = several_lines(value).replace('\n', "\n           ");
            text.push_str(&format!("    {side:<6} {value}\n"));
        }
    }
    if !counters.is_empty() {
        let row = |one: &ComparedCounter| {
            Row::new(&one.counter, one.left, one.right, |value| value.to_string())
        };
        let rows: Vec<Row> = counters.iter().map(row).collect();
        text.push_str(&format!("\n{}", table("COUNTER", &rows, screen)));
    }
    text
}

fn figures(left: &JobFigures, right: &JobFigures) -> Vec<Row> {
    let time = |what, of: fn(&JobFigures) -> u64| Row::new(what, of(left), of(right), span);
    let count = |what, of: fn(&JobFigures) -> usize| {
        Row::new(what, of(left) as u64, of(right) as u64, |value| {
            value.to_string()
        })
    };
    vec![
        time("from submission to end", |job| job.took_millis),
        time("waited for its first slot", |job| job.waited_millis),
        time("slot time", |job| job.held_millis),
        time("naps, of all tasks", |job| job.napped_millis),
        count("attempts", |job| job.attempts),
        count("slots taken from it", |job| job.taken),
        time("empty until used, of these", |job| job.kept_millis),
        time("work saved", |job| job.work_saved_millis),
        time("work lost", |job| job.work_lost_millis),
    ]
}

fn table(heading: &'static str, rows: &[Row], screen: &Screen) -> String {
    let columns: [Column<Row>; 5] = [
        Column::new(heading, Fit::Cut, |row, _| row.what.clone()),
        Column::new("LEFT", Fit::Whole, |row, _| row.left.clone()),
        Column::new("RIGHT", Fit::Whole, |row, _| row.right.clone()),
        Column::new("DIFFERENCE", Fit::Whole, |row, _| row.difference.clone()),
        Column::new("RATIO", Fit::Drop(1), |row, _| row.ratio.clone()),
    ];
    screen.list(&columns, rows)
}

#[cfg(test)]
mod tests {
    use napreduce_engine::JobId;

    use super::*;
    use crate::job::sample_summary;

    fn detail(job: u32, took_millis: u64, bad_rows: u64) -> JobDetail {
        let mut summary = sample_summary();
        summary.job = JobId(job);
        summary.ended_millis = Some(summary.submitted_millis + took_millis);
        let mut detail = JobDetail::new(summary);
        detail.counters.add("MAP_INPUT_RECORDS", 12);
        detail.counters.add("bad rows", bad_rows);
        detail
    }

    #[test]
    fn figures_have_differences_and_ratios() {
        let mut other = detail(9, 3_000, 0);
        other.summary.output = "/data/\u{1b}[2J".into();
        let comparison = JobComparison::new(&detail(7, 1_500, 3), &other, 0);
        let text = text(&comparison, &Screen::of(80));
        assert_eq!(
            text,
            "left   job_0007 wordcount, failed\n\
             right  job_0009 wordcount, failed\n\
             \n\
             FIGURE                      LEFT   RIGHT  DIFFERENCE  RATIO\n\
             from submission to end      1.5 s  3.0 s  +1.5 s      2.00\n\
             waited for its first slot   1.5 s  3.0 s  +1.5 s      2.00\n\
             slot time                   0.0 s  0.0 s  -           -\n\
             naps, of all tasks          0.0 s  0.0 s  -           -\n\
             attempts                    0      0      -           -\n\
             slots taken from it         0      0      -           -\n\
             empty until used, of these  0.0 s  0.0 s  -           -\n\
             work saved                  0.0 s  0.0 s  -           -\n\
             work lost                   0.0 s  0.0 s  -           -\n\
             \n\
             submitted differently\n  \
               output\n    \
                 left   /data/out\n    \
                 right  /data/\\u{1b}[2J\n\
             \n\
             COUNTER   LEFT  RIGHT  DIFFERENCE  RATIO\n\
             bad rows  3     0      -3          0.00\n"
        );
    }
}
