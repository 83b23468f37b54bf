//! `nap sim --results`: the result of every job of every run, as CSV or JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_engine::Span;
use napreduce_sim::{Ending, JobResult, Run};
use serde::Serialize;

/// One job of one run. Times are in seconds since the start of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobLine {
    scheduler: String,
    seed: u64,
    job: String,
    class: String,
    ending: Ending,
    submitted: f64,
    /// The first work of an attempt, if any worked.
    started: Option<f64>,
    ended: f64,
    sojourn: f64,
    /// The duration without other jobs; `slowdown` is the sojourn divided by it.
    alone: f64,
    slowdown: f64,
    deadline: Option<f64>,
    maps: u32,
    reduces: u32,
    /// Mean time over reduces, after the last map, that a reduce spent without a slot.
    reduce_wait: Option<f64>,
    /// Share of the slot time of its reduces that they waited for maps.
    reduce_idle_share: Option<f64>,
    suspends: u64,
    checkpoints: u64,
    kills: u64,
    /// Lost work, in slot seconds.
    wasted: f64,
}

/// Returns the lines of a run, in the order in which jobs ended.
pub fn of(run: &Run, scheduler: &str, seed: u64) -> Vec<JobLine> {
    run.jobs.iter().map(|job| line(job, scheduler, seed)).collect()
}

fn line(job: &JobResult, scheduler: &str, seed: u64) -> JobLine {
    let [maps, reduces] = job.tasks;
    let held = job.reduces_held.0;
    JobLine {
        scheduler: scheduler.to_owned(),
        seed,
        job: job.name.to_string(),
        class: job.class.to_string(),
        ending: job.ending,
        submitted: seconds(job.submitted.0),
        started: job.worked.map(|(first, _)| seconds(first.0)),
        ended: seconds(job.ended.0),
        sojourn: seconds(job.sojourn().0),
        alone: seconds(job.alone.0),
        slowdown: job.slowdown(),
        deadline: job.deadline.map(|deadline| seconds(deadline.0)),
        maps,
        reduces,
        reduce_wait: (reduces > 0).then(|| seconds(job.reduces_waited.0) / f64::from(reduces)),
        reduce_idle_share: (held > 0).then(|| job.reduces_idle.0 as f64 / held as f64),
        suspends: job.preemptions.suspend,
        checkpoints: job.preemptions.checkpoint,
        kills: job.preemptions.kill,
        wasted: seconds(Span(job.wasted.0).0),
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Writes lines as CSV if the name ends in `.csv`, else as JSON lines.
pub fn write<'a>(path: &Path, lines: impl Iterator<Item = &'a JobLine>) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(failed)?);
    if path.extension().is_some_and(|ending| ending == "csv") {
        let mut table = csv::Writer::from_writer(&mut file);
        for line in lines {
            table.serialize(line).with_context(failed)?;
        }
        table.flush().with_context(failed)?;
        drop(table);
    } else {
        for line in lines {
            serde_json::to_writer(&mut file, line).with_context(failed)?;
            file.write_all(b"\n").with_context(failed)?;
        }
    }
    file.flush().with_context(failed)
}
