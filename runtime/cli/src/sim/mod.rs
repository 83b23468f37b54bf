//! `nap sim`: a workload or a trace on a simulated cluster, under any scheduler.
//!
//! Owns the order of work: what is to be run, the runs, what is printed and drawn. Does not own the
//! simulator, nor what the schedulers decide.

mod arguments;
mod choices;
mod figures;
mod jobs;
mod report;
mod runs;
mod source;

use anyhow::{Context, Result, ensure};
pub use arguments::Arguments;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use source::Source;

use crate::cluster::{ClusterArguments, Configuration};

/// Everything that is the same for all runs.
struct Experiment {
    source: Source,
    settings: napreduce_sim::SimulationSettings,
    schedulers: Vec<SchedulerConfiguration>,
    seed: u64,
    runs: u32,
}

/// Simulates what was asked for and prints it.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let file = match &arguments.configuration {
        Some(path) => Configuration::read(path)?,
        None => cluster.configuration()?,
    };
    let source = Source::read(arguments)?;
    let mut settings = arguments.settings(&source)?;
    settings.engine.preemption = file.preemption.unwrap_or_default();
    if let Some(primitive) = arguments.primitive {
        settings.engine.preemption.primitive = Some(primitive.into());
    }
    if let Some(most) = arguments.suspended_max {
        settings.engine.preemption.suspended_max = most;
    }
    let schedulers = configurations(&arguments.scheduler, arguments, &file)?;
    let blind =
        schedulers.iter().find(|one| one.goes_by_output_bytes()).filter(|_| !source.tells_output_bytes());
    if let Some(blind) = blind {
        anyhow::bail!(
            "{} serves reduces by the bytes that maps write for them, and no job of {} says how many those are: it would \
             treat all alike and take no slot; give output-bytes in the maps of its jobs, for example \
             maps = {{ count = 8, seconds = 15, output-bytes = 64000000 }}",
            blind.scheduler,
            source.name()
        );
    }
    let (seed, runs) = (arguments.seed.unwrap_or(source.seed()), arguments.runs);
    ensure!(runs > 0, "--runs 0 runs nothing; give 1 or more");
    let experiment = Experiment { source, settings, schedulers, seed, runs };
    let outcomes = runs::all(&experiment, arguments)?;
    if let Some(path) = &arguments.results {
        jobs::write(path, outcomes.iter().flat_map(|outcome| &outcome.jobs))?;
    }
    if let Some(folder) = &arguments.plot {
        figures::draw(folder, &outcomes)?;
    }
    arguments.format.print(|| report::text(&experiment, &outcomes), || report::json(&experiment, &outcomes))
}

/// The schedulers with their tables; each is built once, so that a wrong value is told before anything runs.
fn configurations(
    names: &[SchedulerName],
    arguments: &Arguments,
    file: &Configuration,
) -> Result<Vec<SchedulerConfiguration>> {
    let mut tables = file.scheduler.clone();
    if let Some(path) = &arguments.rules {
        let rules =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        tables.trigger.rules = rules;
    }
    let mut all = Vec::new();
    for &scheduler in names {
        let one = SchedulerConfiguration { scheduler, tables: tables.clone() };
        one.build().with_context(|| format!("{scheduler} cannot be set up"))?;
        all.push(one);
    }
    Ok(all)
}
