//! `nap history export`: the history of ended jobs as tables. Columns are only added, never renamed or
//! removed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use napreduce_answers::{AttemptAnswer, EventAnswer, JobAnswer, PartAnswer, PreemptionAnswer};
use napreduce_engine::JobId;
use napreduce_history::{HistoryFolder, ledger_of};
use napreduce_protocol::{JobDetail, JobPhase, printing::print_error};
use napreduce_sim::write_csv;
use serde::Serialize;

use crate::failure::{Failures, usage};
use crate::ids::{JobSelector, KnownJob};
use crate::whole_file::{create_empty, write_whole};

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Writes the tables jobs, attempts, preemptions, counters, parts and events, to be
joined by the column `job`. In csv a text that a spreadsheet would take for a
formula has an apostrophe in front: '=1+1.

Examples:
  nap history export /srv/nap --output tables
  nap history export copied/history 3-7 --output tables --format json
  duckdb -c \"select state, count(*) from 'tables/jobs.csv' group by all\"")]
pub struct ExportArguments {
    /// Cluster directory, its folder `coordinator`, or a copy of its history
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// job_0007, 7, 3-7, last, all, or the name of one job
    #[arg(value_name = "JOB", default_value = "all")]
    jobs: Vec<JobSelector>,

    /// Directory to create for the tables; an empty one may exist
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,

    /// Format of the tables
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: TableFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// JSON lines, with the field names of --format json elsewhere
    Json,
}

/// The first column of every row, even if the attempt names the job as well.
#[derive(Serialize)]
struct OfJob<'a> {
    job: &'a str,
}

/// A row as one JSON object.
#[derive(Serialize)]
struct ExportedLine<'a, T> {
    #[serde(flatten)]
    of: OfJob<'a>,
    #[serde(flatten)]
    row: T,
}

#[derive(Serialize)]
struct ExportedJob<'a> {
    name: &'a str,
    user: &'a str,
    queue: &'a str,
    priority: i32,
    state: &'a str,
    reason: Option<&'a str>,
    submitted_millis: u64,
    ended_millis: Option<u64>,
    output: &'a str,
    maps: u32,
    maps_done: u32,
    reduces: u32,
    reduces_done: u32,
    attempts: usize,
    preemptions: usize,
    work_saved_millis: u64,
    work_lost_millis: u64,
}

#[derive(Serialize)]
struct ExportedCounter<'a> {
    counter: &'a str,
    value: u64,
}

#[derive(Serialize)]
struct ExportedPart {
    part: String,
    records: u64,
    bytes: u64,
    digest: String,
}

pub fn run(arguments: &ExportArguments) -> Result<()> {
    let ExportArguments {
        path,
        jobs,
        output,
        format,
    } = arguments;
    let folder = HistoryFolder::open(path).map_err(usage)?;
    let mut failures = Failures::default();
    let wanted = JobSelector::select(jobs, &known_jobs(&folder, jobs)?, &mut failures)?;
    create_empty(output)?;
    let mut exported = Vec::new();
    for job in wanted {
        // A job may have been removed meanwhile.
        exported.extend(folder.read(job)?.map(|ended| ended.detail));
    }
    let rows = Tables {
        output,
        format: *format,
    }
    .write(&exported)?;
    print_error(format_args!(
        "{}: {} jobs, {rows} rows in six tables",
        output.display(),
        exported.len()
    ));
    failures.finish()
}

/// The files to write.
struct Tables<'a> {
    output: &'a Path,
    format: TableFormat,
}

impl Tables<'_> {
    /// Writes all tables and returns the number of rows.
    fn write(&self, jobs: &[JobDetail]) -> Result<usize> {
        let ids: Vec<String> = jobs.iter().map(|job| job.summary.job.to_string()).collect();
        let each = || ids.iter().map(String::as_str).zip(jobs);
        let answers: Vec<JobAnswer> = jobs
            .iter()
            .map(|job| JobAnswer::from(&job.summary))
            .collect();
        let rows = [
            self.write_table(
                "jobs",
                answers
                    .iter()
                    .zip(jobs)
                    .map(|(answer, job)| (&*answer.job, exported_job(answer, job))),
            )?,
            self.write_table(
                "attempts",
                each().flat_map(|(id, job)| {
                    job.attempts
                        .iter()
                        .map(move |attempt| (id, AttemptAnswer::from(attempt)))
                }),
            )?,
            self.write_table(
                "preemptions",
                each().flat_map(|(id, job)| {
                    ledger_of(job)
                        .into_iter()
                        .map(move |entry| (id, PreemptionAnswer::from(&entry)))
                }),
            )?,
            self.write_table(
                "counters",
                each().flat_map(|(id, job)| {
                    job.counters
                        .iter()
                        .map(move |(counter, value)| (id, ExportedCounter { counter, value }))
                }),
            )?,
            self.write_table(
                "parts",
                each().flat_map(|(id, job)| {
                    job.parts.iter().map(move |part| {
                        let PartAnswer {
                            name,
                            records,
                            bytes,
                            digest,
                        } = part.into();
                        (
                            id,
                            ExportedPart {
                                part: name,
                                records,
                                bytes,
                                digest,
                            },
                        )
                    })
                }),
            )?,
            self.write_table(
                "events",
                each().flat_map(|(id, job)| {
                    job.events
                        .iter()
                        .map(move |event| (id, EventAnswer::from(event)))
                }),
            )?,
        ];
        Ok(rows.iter().sum())
    }

    /// Writes a file of rows and returns their number.
    fn write_table<'a, T: Serialize>(
        &self,
        name: &str,
        rows: impl Iterator<Item = (&'a str, T)>,
    ) -> Result<usize> {
        let rows = rows.map(|(job, row)| (OfJob { job }, row));
        let path = |end: &str| self.output.join(format!("{name}.{end}"));
        match self.format {
            TableFormat::Csv => write_whole(&path("csv"), false, |file| write_csv(file, rows)),
            TableFormat::Json => {
                let lines = rows.map(|(of, row)| ExportedLine { of, row });
                write_whole(&path("jsonl"), false, |file| write_lines(file, lines))
            }
        }
    }
}

fn exported_job<'a>(answer: &'a JobAnswer, job: &JobDetail) -> ExportedJob<'a> {
    ExportedJob {
        name: &answer.name,
        user: &answer.user,
        queue: &answer.queue,
        priority: answer.priority,
        state: answer.state,
        reason: answer.reason.as_deref(),
        submitted_millis: answer.submitted_millis,
        ended_millis: answer.ended_millis,
        output: &answer.output,
        maps: answer.map.tasks,
        maps_done: answer.map.done,
        reduces: answer.reduce.tasks,
        reduces_done: answer.reduce.done,
        attempts: job.attempts.len(),
        preemptions: job.preemptions.len(),
        work_saved_millis: job
            .preemptions
            .iter()
            .map(|one| one.work_saved_millis)
            .sum(),
        work_lost_millis: job.preemptions.iter().map(|one| one.work_lost_millis).sum(),
    }
}

fn write_lines<T: Serialize>(
    file: &mut BufWriter<File>,
    rows: impl Iterator<Item = T>,
) -> io::Result<usize> {
    let mut count = 0;
    for row in rows {
        serde_json::to_writer(&mut *file, &row)?;
        file.write_all(b"\n")?;
        count += 1;
    }
    Ok(count)
}

/// Reads one job of a history.
///
/// # Errors
/// If it does not exist or cannot be read.
pub fn read_one(path: &Path, job: &JobSelector) -> Result<JobDetail> {
    let folder = HistoryFolder::open(path).map_err(usage)?;
    let known = known_jobs(&folder, std::slice::from_ref(job))?;
    let job = job.one_among(&known, "nap history report")?;
    let ended = folder
        .read(job)?
        .with_context(|| format!("{job}: not in the history {}", folder.path().display()));
    Ok(ended.map_err(usage)?.detail)
}

/// Lists the jobs of a history. Reads their names only if a selector depends on them.
fn known_jobs(folder: &HistoryFolder, selectors: &[JobSelector]) -> Result<Vec<KnownJob>> {
    if selectors.iter().any(JobSelector::needs_names) {
        let mut known = Vec::new();
        for job in folder.jobs() {
            // A job may have been removed meanwhile.
            known.extend(folder.summary(*job)?.as_ref().map(KnownJob::from));
        }
        return Ok(known);
    }
    let unnamed = |job: &JobId| KnownJob {
        job: *job,
        name: String::new(),
        phase: JobPhase::Succeeded,
    };
    Ok(folder.jobs().iter().map(unnamed).collect())
}
