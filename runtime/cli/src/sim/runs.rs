//! The runs of an experiment: every variant with every seed, on as many cores as there are.
//!
//! Owns the order, how far they are and the event logs. Does not own a run (the simulator).

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::metrics::RunSummary;
use napreduce_sim::{Recording, Run, Simulation, SimulationSettings, run_baseline};

use super::Experiment;
use super::arguments::Arguments;
use super::jobs::{self, JobLine};
use super::recording::RecordFolder;
use super::variants::{Subject, in_file_name};

/// The runs of one variant.
pub struct Outcome {
    /// Of the variant.
    pub label: String,
    /// In the order of seeds.
    pub summaries: Vec<RunSummary>,
    /// The first of them in full.
    pub first: Run,
    /// The others, if figures are to be drawn of them.
    pub others: Vec<Run>,
    /// What came of each job of each run, if that was asked for.
    pub jobs: Vec<JobLine>,
}

impl Outcome {
    /// All runs that are there in full, in the order of seeds.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

struct Done {
    summary: RunSummary,
    jobs: Vec<JobLine>,
    run: Run,
}

/// Instants between two looks at the bar.
const STRIDE: u32 = 4096;

/// Does all runs. They are independent of each other, so their order does not matter.
pub fn all(
    experiment: &Experiment,
    arguments: &Arguments,
    record: Option<&RecordFolder>,
) -> Result<Vec<Outcome>> {
    let runs = experiment.runs as usize;
    let count = experiment.variants.len() * runs;
    let progress = Progress::begin(count * experiment.source.jobs, arguments.progress_file.as_deref())?;
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Done>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = done.get(number) else { return };
            let result =
                one(experiment, arguments, record, (number / runs, (number % runs) as u64), &progress);
            *place.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores.min(count) {
            scope.spawn(work);
        }
    });
    progress.bar.finish_and_clear();
    let mut results = done.into_iter().map(|place| {
        let place = place.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        place.unwrap_or_else(|| Err(anyhow!("a run was not done")))
    });
    let mut outcomes = Vec::new();
    for variant in &experiment.variants {
        let of_it: Vec<Done> = results.by_ref().take(runs).collect::<Result<_>>()?;
        let summaries = of_it.iter().map(|done| done.summary.clone()).collect();
        let jobs = of_it.iter().flat_map(|done| done.jobs.iter().cloned()).collect();
        let mut of_it = of_it.into_iter().map(|done| done.run);
        let first = of_it.next().context("no run was asked for")?;
        let others = of_it.filter(|_| arguments.plot.is_some()).collect();
        outcomes.push(Outcome { label: variant.label.clone(), summaries, first, others, jobs });
    }
    Ok(outcomes)
}

fn one(
    experiment: &Experiment,
    arguments: &Arguments,
    record: Option<&RecordFolder>,
    (variant, offset): (usize, u64),
    progress: &Progress,
) -> Result<Done> {
    let variant = &experiment.variants[variant];
    let seed = experiment.seed + offset;
    let mut settings = variant.settings.clone();
    (settings.seed, settings.engine.seed) = (seed, seed);
    let run = match &variant.subject {
        Subject::Baseline(baseline) => run_baseline(experiment.source.workload(seed), &settings, *baseline),
        Subject::Policy(policy) => {
            let named = (variant.label.as_str(), &**policy);
            let recording =
                record.map(|folder| folder.recording(&variant.label, policy, &settings)).transpose()?;
            simulate(experiment, arguments, named, settings, recording, progress)?
        }
    };
    let jobs = match arguments.results {
        Some(_) => jobs::of(&run, &variant.label, seed),
        None => Vec::new(),
    };
    Ok(Done { summary: RunSummary::of(&run), jobs, run })
}

/// A run under a policy.
fn simulate(
    experiment: &Experiment,
    arguments: &Arguments,
    (label, policy): (&str, &SchedulerConfiguration),
    settings: SimulationSettings,
    recording: Option<Recording>,
    progress: &Progress,
) -> Result<Run> {
    let seed = settings.seed;
    let mut simulation = Simulation::new(policy.build()?, settings, experiment.source.workload(seed));
    if let Some(path) = &arguments.events {
        let single = experiment.runs == 1 && experiment.variants.len() == 1;
        let path = if single { path.clone() } else { numbered(path, label, seed) };
        let file = File::create(&path).with_context(|| cannot_write(&path))?;
        simulation = simulation.with_log(Box::new(BufWriter::new(file)));
    }
    if let Some(recording) = recording {
        simulation = simulation.with_recording(recording);
    }
    let failed = || format!("under {label}, seed {seed}");
    let (mut shown, mut since) = (0, 0);
    while simulation.step().with_context(failed)? {
        since += 1;
        if since == STRIDE {
            since = 0;
            let ended = simulation.so_far().jobs.len();
            progress.ended(ended - shown)?;
            shown = ended;
        }
    }
    let run = simulation.run().with_context(failed)?;
    progress.ended(run.jobs.len() - shown)?;
    Ok(run)
}

fn numbered(path: &Path, label: &str, seed: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.{seed}", in_file_name(label)));
    PathBuf::from(name)
}

/// How many jobs of all runs have ended: a bar for people, and a file for programs.
struct Progress {
    bar: ProgressBar,
    file: Option<(PathBuf, File)>,
    /// The percent in the file.
    told: Mutex<u64>,
}

impl Progress {
    fn begin(jobs: usize, file: Option<&Path>) -> Result<Progress> {
        // It is hidden where standard error is no terminal.
        let bar = ProgressBar::new(jobs as u64);
        let style = ProgressStyle::with_template("simulating {bar:30} {pos}/{len} jobs, {eta} left");
        let bar = style.map_or(bar.clone(), |style| bar.with_style(style));
        let create = |path: &Path| File::create(path).with_context(|| cannot_write(path));
        let file = file.map(|path| create(path).map(|file| (path.to_owned(), file))).transpose()?;
        let progress = Progress { bar, file, told: Mutex::new(u64::MAX) };
        progress.ended(0).map(|()| progress)
    }

    fn ended(&self, jobs: usize) -> Result<()> {
        self.bar.inc(jobs as u64);
        let Some((path, file)) = &self.file else { return Ok(()) };
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let percent = self.bar.position() * 100 / self.bar.length().unwrap_or(0).max(1);
        if *told != percent {
            // Always of one length, so that a reader never sees half of it.
            file.write_all_at(format!("{percent:>3}\n").as_bytes(), 0).with_context(|| cannot_write(path))?;
            *told = percent;
        }
        Ok(())
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
