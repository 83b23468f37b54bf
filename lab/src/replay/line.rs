//! Owns the rows of a live run: columns as those of `nap sim --results`, and some more. What could not be
//! measured is absent. Where the numbers come from belongs to `held` and `bench`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use napreduce_engine::Span;
use napreduce_schedulers::SchedulerName;
use napreduce_sim::{Ending, Run};
use serde::Serialize;

use super::bench::LiveJob;
use crate::error::WorkloadReplayError;

/// One job of one run. Times in seconds since the run began, at the live scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayLine {
    scheduler: SchedulerName,
    seed: u64,
    job: String,
    class: String,
    ending: Ending,
    submitted: f64,
    /// When an attempt of it was first launched.
    started: Option<f64>,
    ended: f64,
    sojourn: f64,
    /// A list schedule of its tasks with the cost of starting them, as in the simulator: not measured.
    alone: f64,
    slowdown: f64,
    deadline: Option<f64>,
    maps: usize,
    reduces: usize,
    reduce_wait: Option<f64>,
    reduce_idle_share: Option<f64>,
    suspends: u64,
    checkpoints: u64,
    kills: u64,
    wasted: f64,
    /// From 1.
    repetition: u32,
    /// How long after its time it was handed in.
    late: f64,
    /// Whether the output is that of the same job undisturbed.
    identical: bool,
    /// Its sojourn in simulated time.
    simulated: Option<f64>,
}

/// Which run.
#[derive(Clone, Copy, Debug)]
pub struct RunName {
    pub scheduler: SchedulerName,
    pub seed: u64,
    pub repetition: u32,
}

impl ReplayLine {
    pub fn of(live: &LiveJob, run: RunName, simulated: &Run) -> ReplayLine {
        let RunName { scheduler, seed, repetition } = run;
        let times = &live.times;
        let simulated = simulated.job(&live.job.name);
        let sojourn = seconds(live.ended.saturating_sub(live.submitted));
        let alone = simulated.map_or(0.0, |one| seconds(one.alone.0));
        let reduces = live.job.reduces.len();
        ReplayLine {
            scheduler,
            seed,
            job: live.job.name.to_string(),
            class: live.job.class.to_string(),
            // A run with another one is none.
            ending: Ending::Succeeded,
            submitted: seconds(live.submitted),
            started: times.started.map(seconds),
            ended: seconds(live.ended),
            sojourn,
            alone,
            slowdown: if alone > 0.0 { sojourn / alone } else { 1.0 },
            deadline: live.job.deadline.map(|Span(deadline)| seconds(live.submitted + deadline)),
            maps: live.job.maps.len(),
            reduces,
            reduce_wait: times.reduces_waited.map(|waited| seconds(waited) / reduces.max(1) as f64),
            reduce_idle_share: (times.reduces_held > 0)
                .then(|| times.reduces_idle as f64 / times.reduces_held as f64),
            suspends: times.suspends,
            checkpoints: times.checkpoints,
            kills: times.kills,
            wasted: seconds(times.wasted),
            repetition,
            late: seconds(live.late.0),
            identical: live.identical,
            simulated: simulated.map(|one| seconds(one.sojourn().0)),
        }
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Writes all of them as CSV.
///
/// # Errors
/// When the file cannot be written.
pub fn write_csv(path: &Path, lines: &[ReplayLine]) -> Result<(), WorkloadReplayError> {
    let failed = |what: String| WorkloadReplayError::Write { path: path.to_owned(), what };
    let file = File::create(path).map_err(|error| failed(error.to_string()))?;
    let mut table = csv::Writer::from_writer(BufWriter::new(file));
    for line in lines {
        table.serialize(line).map_err(|error| failed(error.to_string()))?;
    }
    table.flush().map_err(|error| failed(error.to_string()))?;
    let mut file = table.into_inner().map_err(|error| failed(error.to_string()))?;
    file.flush().map_err(|error| failed(error.to_string()))
}
