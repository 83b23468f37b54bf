//! The figures of an experiment: sojourn times under all schedulers, and who held slots when under each.
//!
//! Owns the names of the files. Does not own how they are drawn.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_core::TaskKind;
use napreduce_plot::{Series, distributions, layers};
use napreduce_sim::metrics::{allocation_of, ecdf};

use super::runs::Outcome;

/// Draws the first run under each scheduler.
pub fn draw(folder: &Path, outcomes: &[Outcome]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let sojourns = outcomes.iter().map(|outcome| {
        let seconds = outcome.first.jobs.iter().map(|job| job.sojourn().0 as f64 / 1e6);
        Series { name: outcome.scheduler.to_string(), points: ecdf(seconds) }
    });
    distributions(&folder.join("sojourn.svg"), "Sojourn times of jobs", &sojourns.collect::<Vec<_>>())?;
    for outcome in outcomes {
        for kind in TaskKind::ALL {
            let held = outcome.first.jobs.iter().map(|job| {
                let steps = allocation_of(&outcome.first, job, kind);
                let points = steps.into_iter().map(|(time, slots)| (time, f64::from(slots))).collect();
                Series { name: format!("{} {}", job.job, job.name), points }
            });
            let held = held.filter(|series| !series.points.is_empty()).collect();
            let path = folder.join(format!("slots-{}-{kind}.svg", outcome.scheduler));
            layers(&path, &format!("{kind} slots by job under {}", outcome.scheduler), held)?;
        }
    }
    Ok(())
}
