//! What came of every job of every run, for other programs.
//!
//! Owns the columns, and the two forms of the file. Does not own the runs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_engine::Span;
use napreduce_sim::{Ending, JobResult, Run};
use serde::Serialize;

/// One job of one run. Times in seconds since the run began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobLine {
    scheduler: String,
    seed: u64,
    job: String,
    class: String,
    ending: Ending,
    submitted: f64,
    /// When an attempt of it first worked; nothing when none did.
    started: Option<f64>,
    ended: f64,
    sojourn: f64,
    /// How long it would have taken alone, and the sojourn in relation to that.
    alone: f64,
    slowdown: f64,
    deadline: Option<f64>,
    maps: u32,
    reduces: u32,
    /// From its last map until each of its reduces was done, the time without a slot: the mean over reduces.
    reduce_wait: Option<f64>,
    /// Of the slot time of its reduces, what they waited for maps.
    reduce_idle_share: Option<f64>,
    suspends: u64,
    checkpoints: u64,
    kills: u64,
    /// Slot seconds of work that were lost.
    wasted: f64,
}

/// The lines of a run, in the order in which jobs ended.
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

/// Writes all of them: as CSV to a file whose name ends so, as lines of JSON to any other.
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
