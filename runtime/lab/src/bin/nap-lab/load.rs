//! `nap lab load`: many jobs, many tasks, many workers.
//!
//! Owns its arguments and which settings follow from them. Does not own the experiment.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use napreduce_lab::{LoadSettings, Session};
use napreduce_live::{ByteSize, parse_time};

use crate::place::Workplace;

/// Measure what a cluster bears: many jobs, a job of many tasks, many workers, a long life
///
/// The jobs do next to nothing, so what is measured is the coordinator: how fast jobs and tasks get
/// through, its processor time, its memory. Each load that is named is made on a cluster of its own,
/// which is gone afterwards.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab load --jobs 5000 --clients 50
  nap lab load --shape 100000 --shape 200x4000 --shape 2000x2000
  nap lab load --idle-workers 1000 --for 30s
  nap lab load --jobs 10000 --clients 50 --restart     how long a coordinator with a past takes to come back")]
pub struct LoadArguments {
    /// So many jobs of one map each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub jobs: Option<u64>,

    /// From so many clients at once, each of which waits for its job before it hands in the next
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: u32,

    /// One job of so many maps, or of so many maps and reduces; may be given several times
    #[arg(long = "shape", value_name = "MAPS[xREDUCES]", value_parser = shape)]
    pub shapes: Vec<(u32, u32)>,

    /// So many workers that do nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub idle_workers: Option<u32>,

    /// How long they are looked at
    #[arg(long = "for", value_name = "TIME", default_value = "20s", value_parser = parse_time)]
    pub time: Duration,

    /// Afterwards kill the coordinator and start it again
    #[arg(long)]
    pub restart: bool,

    /// Workers
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub workers: u32,

    /// Slots of each kind of each worker
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slots: u32,

    /// Memory budget of one task
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub task_memory: ByteSize,

    #[command(flatten)]
    pub place: Workplace,

    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn shape(text: &str) -> Result<(u32, u32), String> {
    let (maps, reduces) = text.split_once('x').unwrap_or((text, "0"));
    let number = |text: &str, most: u32| text.parse().ok().filter(|number| (0..=most).contains(number));
    match (number(maps, 9_999_999), number(reduces, 99_999)) {
        (Some(maps), Some(reduces)) if maps > 0 => Ok((maps, reduces)),
        _ => Err("write MAPS or MAPSxREDUCES, such as 100000 or 200x4000".to_owned()),
    }
}

/// Measures.
pub fn load(arguments: &LoadArguments, session: &Session) -> Result<bool> {
    let LoadArguments { jobs, clients, shapes, idle_workers, time, restart, place, .. } = arguments;
    if jobs.is_none() && shapes.is_empty() && idle_workers.is_none() && !restart {
        bail!("no load is named; see the examples of: nap lab load --help");
    }
    let settings = LoadSettings {
        jobs: jobs.map(|jobs| (jobs, *clients)),
        shapes: shapes.clone(),
        idle: idle_workers.map(|workers| (workers, *time)),
        restart: *restart,
        workers: arguments.workers,
        slots: arguments.slots,
        task_memory: arguments.task_memory,
        binaries: place.binaries()?,
        work: place.work(),
    };
    let report = napreduce_lab::load(&settings, session)?;
    place.print(&report, || report.table(), arguments.json.as_deref())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_maps_or_maps_and_reduces() {
        assert_eq!(shape("100000"), Ok((100_000, 0)));
        assert_eq!(shape("200x4000"), Ok((200, 4000)));
        for wrong in ["", "0", "x3", "3x", "3x4x5", "-1", "1x100000"] {
            let why = shape(wrong).expect_err(wrong);
            assert!(why.contains("MAPSxREDUCES"), "{why}");
        }
    }
}
