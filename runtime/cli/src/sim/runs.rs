//! The runs of an experiment: every scheduler with every seed, on as many cores as there are.
//!
//! Owns the order, the progress bar and the event logs. Does not own a run (the simulator).

use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use napreduce_schedulers::SchedulerName;
use napreduce_sim::metrics::Summary;
use napreduce_sim::{Run, Simulation};

use super::Experiment;
use super::arguments::Arguments;
use super::jobs::{self, JobLine};

/// The runs under one scheduler.
pub struct Outcome {
    pub scheduler: SchedulerName,
    /// In the order of seeds.
    pub summaries: Vec<Summary>,
    /// The first of them in full, for figures.
    pub first: Run,
    /// What came of each job of each run, if that was asked for.
    pub jobs: Vec<JobLine>,
    /// Engine events a second of one core, over all runs.
    pub events_a_second: f64,
}

struct Done {
    summary: Summary,
    jobs: Vec<JobLine>,
    run: Run,
    seconds: f64,
}

/// Instants between two looks at the bar.
const STRIDE: u32 = 4096;

/// Does all runs. They are independent of each other, so their order does not matter.
pub fn all(experiment: &Experiment, arguments: &Arguments) -> Result<Vec<Outcome>> {
    let runs = experiment.runs as usize;
    let count = experiment.schedulers.len() * runs;
    let bar = bar(count * experiment.source.jobs());
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Done>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = done.get(number) else { return };
            let result = one(experiment, arguments, number / runs, (number % runs) as u64, &bar);
            *place.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores.min(count) {
            scope.spawn(work);
        }
    });
    bar.finish_and_clear();
    let mut results = done.into_iter().map(|place| {
        let place = place.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        place.unwrap_or_else(|| Err(anyhow!("a run was not done")))
    });
    let mut outcomes = Vec::new();
    for configuration in &experiment.schedulers {
        let of_it: Vec<Done> = results.by_ref().take(runs).collect::<Result<_>>()?;
        let seconds: f64 = of_it.iter().map(|done| done.seconds).sum();
        let events: u64 = of_it.iter().map(|done| done.summary.events).sum();
        let summaries = of_it.iter().map(|done| done.summary.clone()).collect();
        let jobs = of_it.iter().flat_map(|done| done.jobs.iter().cloned()).collect();
        let first = of_it.into_iter().next().context("no run was asked for")?.run;
        let events_a_second = events as f64 / seconds.max(1e-9);
        outcomes.push(Outcome {
            scheduler: configuration.scheduler,
            summaries,
            first,
            jobs,
            events_a_second,
        });
    }
    Ok(outcomes)
}

fn one(
    experiment: &Experiment,
    arguments: &Arguments,
    scheduler: usize,
    offset: u64,
    bar: &ProgressBar,
) -> Result<Done> {
    let configuration = &experiment.schedulers[scheduler];
    let seed = experiment.seed + offset;
    let mut settings = experiment.settings.clone();
    (settings.seed, settings.engine.seed) = (seed, seed);
    let policy = configuration.build()?;
    let mut simulation = Simulation::new(policy, settings, experiment.source.workload(seed));
    if let Some(path) = &arguments.events {
        let single = experiment.runs == 1 && experiment.schedulers.len() == 1;
        let path = if single { path.clone() } else { numbered(path, configuration.scheduler, seed) };
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        simulation = simulation.with_log(Box::new(BufWriter::new(file)));
    }
    let failed = || format!("under {}, seed {seed}", configuration.scheduler);
    let begun = Instant::now();
    let (mut shown, mut since) = (0, 0);
    while simulation.step().with_context(failed)? {
        since += 1;
        if since == STRIDE {
            since = 0;
            let ended = simulation.so_far().jobs.len();
            bar.inc((ended - shown) as u64);
            shown = ended;
        }
    }
    let run = simulation.run().with_context(failed)?;
    let seconds = begun.elapsed().as_secs_f64();
    bar.inc((run.jobs.len() - shown) as u64);
    let jobs = match arguments.results {
        Some(_) => jobs::of(&run, configuration.scheduler, seed),
        None => Vec::new(),
    };
    Ok(Done { summary: Summary::of(&run), jobs, run, seconds })
}

fn numbered(path: &Path, scheduler: SchedulerName, seed: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{scheduler}.{seed}"));
    PathBuf::from(name)
}

fn bar(jobs: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(jobs as u64), target);
    let style = ProgressStyle::with_template("simulating {bar:30} {pos}/{len} jobs, {eta} left");
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
