//! The figures of an experiment: sojourn times of all variants, and who held slots when in each run.
//!
//! Owns the names of the files. Does not own how they are drawn.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_core::TaskKind;
use napreduce_plot::{Series, distributions, layers};
use napreduce_sim::Run;
use napreduce_sim::metrics::{allocation_of, ecdf};

use super::runs::Outcome;
use super::variants::in_file_name;

/// Draws every run; the first has this seed, and those after it the next ones.
pub fn draw(folder: &Path, outcomes: &[Outcome], seed: u64) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let sojourns = outcomes.iter().map(|outcome| {
        let jobs = outcome.runs().flat_map(|run| &run.jobs);
        let seconds = jobs.map(|job| job.sojourn().0 as f64 / 1e6);
        Series { name: outcome.label.clone(), points: ecdf(seconds) }
    });
    distributions(&folder.join("sojourn.svg"), "Sojourn times of jobs", &sojourns.collect::<Vec<_>>())?;
    for outcome in outcomes {
        let single = outcome.others.is_empty();
        for (seed, run) in (seed..).zip(outcome.runs()) {
            let (name, under) = match single {
                true => (in_file_name(&outcome.label), outcome.label.clone()),
                false => (
                    format!("{}-seed-{seed}", in_file_name(&outcome.label)),
                    format!("{}, seed {seed}", outcome.label),
                ),
            };
            draw_slots(folder, &name, &under, run)?;
        }
    }
    Ok(())
}

/// Nothing where slots are shares of a baseline.
fn draw_slots(folder: &Path, name: &str, under: &str, run: &Run) -> Result<()> {
    if run.allocation.steps.is_empty() {
        return Ok(());
    }
    for kind in TaskKind::ALL {
        let held = run.jobs.iter().map(|job| {
            let steps = allocation_of(run, job, kind);
            let points = steps.into_iter().map(|(time, slots)| (time, f64::from(slots))).collect();
            Series { name: format!("{} {}", job.job, job.name), points }
        });
        let held = held.filter(|series| !series.points.is_empty()).collect();
        let path = folder.join(format!("slots-{name}-{kind}.svg"));
        layers(&path, &format!("{kind} slots by job under {under}"), held)?;
    }
    Ok(())
}
