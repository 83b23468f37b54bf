//! `nap sim --results`: the result of every job of every run, as CSV or JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_engine::Span;
use napreduce_sim::metrics::RunSummary;
use napreduce_sim::{Ending, JobResult, Run, write_csv};
use serde::Serialize;

use super::variants::Variant;

/// One job of one run. Times are in seconds since the start of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobLine {
    /// The label of the variant.
    scheduler: String,
    policy: &'static str,
    /// The file of the parameters, if one was given.
    configuration: Option<String>,
    primitive: Option<String>,
    /// The settings that costs of preemption and the load depend on: seconds of a launch, suspend and resume
    /// without swapping, and machines.
    launch_cost: f64,
    suspend_cost: f64,
    resume_cost: f64,
    machines: u32,
    seed: u64,
    job: String,
    class: String,
    ending: Ending,
    submitted: f64,
    /// The first work of an attempt, if any worked.
    started: Option<f64>,
    ended: f64,
    sojourn: f64,
    /// The duration without other jobs; `slowdown` is the sojourn divided by it, empty for a job of length zero.
    alone: f64,
    slowdown: Option<f64>,
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
    /// Of the whole run: its makespan, the share of all slot time that its work needs, the shares that were held,
    /// and the requests that settings replaced or delayed.
    run_makespan: f64,
    run_load: f64,
    run_map_slots_used: f64,
    run_reduce_slots_used: f64,
    run_containers_used: Option<f64>,
    run_requests_worker_full: u64,
    run_requests_not_possible: u64,
    run_requests_taken_often: u64,
    run_requests_by_costs: u64,
    run_requests_delayed: u64,
    run_requests_timed_out: u64,
}

/// Returns the lines of a run, in the order in which jobs ended.
pub fn of(run: &Run, summary: &RunSummary, variant: &Variant, seed: u64) -> Vec<JobLine> {
    let capacity: u64 = run.slot_time.capacity.iter().sum();
    let load = if capacity == 0 {
        0.0
    } else {
        run.slot_time.useful as f64 / capacity as f64
    };
    run.jobs
        .iter()
        .map(|job| line(job, summary, load, variant, seed))
        .collect()
}

fn line(job: &JobResult, summary: &RunSummary, load: f64, variant: &Variant, seed: u64) -> JobLine {
    let overheads = &variant.settings.overheads;
    let fallbacks = &summary.fallbacks;
    let [maps, reduces] = job.tasks;
    let held = job.reduces_held.0;
    JobLine {
        scheduler: variant.label.clone(),
        policy: variant.subject.name(),
        configuration: variant.configuration.clone(),
        primitive: variant.primitive.map(|primitive| primitive.to_string()),
        launch_cost: seconds(overheads.launch.0),
        suspend_cost: seconds(overheads.suspend.of(0).0),
        resume_cost: seconds(overheads.resume.of(0).0),
        machines: variant.settings.machines,
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
        run_makespan: summary.makespan,
        run_load: load,
        run_map_slots_used: summary.utilisation[0],
        run_reduce_slots_used: summary.utilisation[1],
        run_containers_used: summary.containers,
        run_requests_worker_full: fallbacks.worker_full,
        run_requests_not_possible: fallbacks.not_possible,
        run_requests_taken_often: fallbacks.taken_enough,
        run_requests_by_costs: fallbacks.costs,
        run_requests_delayed: fallbacks.delayed,
        run_requests_timed_out: summary.forced_kills,
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
        write_csv(&mut file, lines).with_context(failed)?;
    } else {
        for line in lines {
            serde_json::to_writer(&mut file, line).with_context(failed)?;
            file.write_all(b"\n").with_context(failed)?;
        }
    }
    file.flush().with_context(failed)
}
