//! `nap sim --plot`: plots of the sojourn times of all variants, and of the slots over time in each run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use napreduce_engine::TaskKind;
use napreduce_sim::metrics::{allocation_of, ecdf};
use napreduce_sim::plot::{LAYERS_MAX, Series, distributions, layers};
use napreduce_sim::{JobResult, Run};

use super::runs::Outcome;
use super::variants::in_file_name;

/// Plots every run; `seed` is that of the first.
pub fn draw(folder: &Path, outcomes: &[Outcome], seed: u64) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let sojourns = outcomes.iter().map(|outcome| {
        let jobs = outcome.runs().flat_map(|run| &run.jobs);
        let seconds = jobs.map(|job| job.sojourn().0 as f64 / 1e6);
        Series {
            name: outcome.label.clone(),
            points: ecdf(seconds),
        }
    });
    distributions(
        &folder.join("sojourn.svg"),
        "Sojourn times of jobs",
        &sojourns.collect::<Vec<_>>(),
    )?;
    for outcome in outcomes {
        let single = outcome.others.is_empty();
        for (seed, run) in (seed..).zip(outcome.runs()) {
            let (name, under) = if single {
                (in_file_name(&outcome.label), outcome.label.clone())
            } else {
                (
                    format!("{}-seed-{seed}", in_file_name(&outcome.label)),
                    format!("{}, seed {seed}", outcome.label),
                )
            };
            draw_slots(folder, &name, &under, run)?;
        }
    }
    Ok(())
}

/// Plots the slots of a run; baselines have none.
fn draw_slots(folder: &Path, name: &str, under: &str, run: &Run) -> Result<()> {
    if run.allocation.steps.is_empty() {
        return Ok(());
    }
    for kind in TaskKind::ALL {
        let held = run.jobs.iter().filter_map(|job| {
            let steps = allocation_of(run, job, kind);
            let points: Vec<_> = steps
                .into_iter()
                .map(|(time, slots)| (time, f64::from(slots)))
                .collect();
            (!points.is_empty()).then(|| {
                (
                    job,
                    Series {
                        name: format!("{} {}", job.job, job.name),
                        points,
                    },
                )
            })
        });
        let (by, held) = grouped(held.collect(), kind);
        let path = folder.join(format!("slots-{name}-{kind}.svg"));
        layers(&path, &format!("{kind} slots by {by} under {under}"), held)?;
    }
    Ok(())
}

/// Returns what the layers stand for, and the layers: jobs, or, for too many jobs, classes or sizes of jobs.
fn grouped(held: Vec<(&JobResult, Series)>, kind: TaskKind) -> (&'static str, Vec<Series>) {
    if held.len() <= LAYERS_MAX {
        return ("job", held.into_iter().map(|(_, series)| series).collect());
    }
    let mut classes: BTreeMap<&str, Vec<Series>> = BTreeMap::new();
    let mut sizes: BTreeMap<u32, Vec<Series>> = BTreeMap::new();
    for (job, series) in held {
        // Jobs of up to 1, 10, 100, ... tasks.
        let tasks = job.tasks[kind as usize].max(1);
        sizes
            .entry((tasks - 1).checked_ilog10().map_or(0, |digits| digits + 1))
            .or_default()
            .push(series.clone());
        classes.entry(&job.class).or_default().push(series);
    }
    let named = |name: String, all: &[Series]| {
        let plural = if all.len() == 1 { "" } else { "s" };
        Series::sum(&format!("{name}: {} job{plural}", all.len()), all)
    };
    if (2..=LAYERS_MAX).contains(&classes.len()) {
        let layers = classes
            .iter()
            .map(|(class, all)| named((*class).to_owned(), all));
        return ("class of jobs", layers.collect());
    }
    let layers = sizes.iter().map(|(digits, all)| {
        let name = match 10_u64.pow(*digits) {
            1 => format!("1 {kind}"),
            most => format!("{} to {most} {kind}s", most / 10 + 1),
        };
        named(name, all)
    });
    ("size of jobs", layers.collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use napreduce_engine::{Slots, Span, Time};
    use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};

    use super::*;

    fn layers_of(jobs: impl Iterator<Item = (u32, &'static str)>) -> (&'static str, Vec<String>) {
        let job = |(number, (maps, class)): (usize, (u32, &str))| {
            let mut job = SimulatedJob::new(format!("job-{number}"), Time(0))
                .with_maps(maps, Span(1_000_000));
            job.class = if class.is_empty() {
                job.name.clone()
            } else {
                Arc::from(class)
            };
            job
        };
        let workload = Workload::of(jobs.enumerate().map(job).collect());
        let fifo = Box::new(napreduce_engine::Fifo::default());
        let settings = SimulationSettings::new(1, Slots { map: 2, reduce: 1 });
        let run = Simulation::new(fifo, settings, workload)
            .run()
            .expect("it ends");
        let held = run.jobs.iter().map(|job| {
            (
                job,
                Series {
                    name: job.name.to_string(),
                    points: vec![(0.0, 1.0)],
                },
            )
        });
        let (by, layers) = grouped(held.collect(), TaskKind::Map);
        (by, layers.into_iter().map(|series| series.name).collect())
    }

    #[test]
    fn few_jobs_are_plotted_by_job() {
        assert_eq!(
            layers_of([(1, ""), (20, "")].into_iter()),
            ("job", vec!["job-0".into(), "job-1".into()])
        );
    }

    #[test]
    fn many_jobs_are_plotted_by_class_or_size() {
        let classes = (0..40).map(|number| (1, if number < 30 { "small" } else { "large" }));
        assert_eq!(
            layers_of(classes),
            (
                "class of jobs",
                vec!["large: 10 jobs".into(), "small: 30 jobs".into()]
            )
        );
        let sizes = (0..40).map(|number| (if number == 0 { 50 } else { 1 + number % 11 }, ""));
        let (by, layers) = layers_of(sizes);
        assert_eq!(by, "size of jobs");
        assert_eq!(
            layers,
            [
                "1 map: 3 jobs",
                "2 to 10 maps: 33 jobs",
                "11 to 100 maps: 4 jobs"
            ]
        );
    }
}
