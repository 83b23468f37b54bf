//! The runs of an experiment: every variant with every seed, in parallel on all cores.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use napreduce_engine::PreemptionSettings;
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::metrics::RunSummary;
use napreduce_sim::{Run, Simulation, SimulationSettings, run_baseline};

use super::Experiment;
use super::arguments::Arguments;
use super::jobs::{self, JobLine};
use super::recording::RecordFolder;
use super::variants::{Subject, Variant, in_file_name};

/// The runs of one variant.
pub struct Outcome {
    /// The label of the variant.
    pub label: String,
    /// The settings for preemption in its runs.
    pub preemption: PreemptionSettings,
    /// In the order of seeds.
    pub summaries: Vec<RunSummary>,
    /// The first of them in full.
    pub first: Run,
    /// The others, if they are plotted.
    pub others: Vec<Run>,
    /// The result of each job of each run, with `--results`.
    pub jobs: Vec<JobLine>,
}

impl Outcome {
    /// Returns the complete runs in the order of seeds.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

struct RunResult {
    summary: RunSummary,
    jobs: Vec<JobLine>,
    run: Run,
}

/// Simulated instants between updates of the progress bar.
const STRIDE: u32 = 4096;

/// Runs everything. Runs are independent of each other, so their order does not matter.
pub fn all(
    experiment: &Experiment,
    arguments: &Arguments,
    record: Option<&RecordFolder>,
) -> Result<Vec<Outcome>> {
    let runs = experiment.runs as usize;
    let count = experiment.variants.len() * runs;
    let progress = Progress::begin(
        count * experiment.source.jobs,
        arguments.progress_file.as_deref(),
    )?;
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<RunResult>>>> =
        (0..count).map(|_| Mutex::new(None)).collect();
    let execution = Execution {
        experiment,
        arguments,
        record,
        progress: &progress,
    };
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = results.get(number) else {
                return;
            };
            let result = execution.run(&experiment.variants[number / runs], (number % runs) as u64);
            *place
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores.min(count) {
            scope.spawn(work);
        }
    });
    progress.bar.finish_and_clear();
    let mut results = results.into_iter().map(|place| {
        let place = place
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        place.unwrap_or_else(|| Err(anyhow!("internal error: a run is missing")))
    });
    let mut outcomes = Vec::new();
    for variant in &experiment.variants {
        let own: Vec<RunResult> = results.by_ref().take(runs).collect::<Result<_>>()?;
        let summaries = own.iter().map(|result| result.summary.clone()).collect();
        let jobs = own
            .iter()
            .flat_map(|result| result.jobs.iter().cloned())
            .collect();
        let mut own = own.into_iter().map(|result| result.run);
        let first = own.next().context("internal error: no run")?;
        let others = own.filter(|_| arguments.plot.is_some()).collect();
        outcomes.push(Outcome {
            label: variant.label.clone(),
            preemption: variant.settings.engine.preemption,
            summaries,
            first,
            others,
            jobs,
        });
    }
    Ok(outcomes)
}

/// Settings shared by all runs.
struct Execution<'a> {
    experiment: &'a Experiment,
    arguments: &'a Arguments,
    record: Option<&'a RecordFolder>,
    progress: &'a Progress,
}

impl Execution<'_> {
    /// Runs a variant with the seed at this offset from the first.
    fn run(&self, variant: &Variant, offset: u64) -> Result<RunResult> {
        let seed = self.experiment.seed + offset;
        let mut settings = variant.settings.clone();
        (settings.seed, settings.engine.seed) = (seed, seed);
        let run = match &variant.subject {
            Subject::Baseline(baseline) => {
                run_baseline(self.experiment.source.workload(seed), &settings, *baseline)
            }
            Subject::Policy(policy) => self.simulate(&variant.label, policy, settings)?,
        };
        let summary = RunSummary::new(&run);
        let jobs = match self.arguments.results {
            Some(_) => jobs::of(&run, &summary, variant, seed),
            None => Vec::new(),
        };
        Ok(RunResult { summary, jobs, run })
    }

    /// Runs a policy, with the event log and the recording that the arguments ask for.
    fn simulate(
        &self,
        label: &str,
        policy: &SchedulerConfiguration,
        settings: SimulationSettings,
    ) -> Result<Run> {
        let seed = settings.seed;
        let recording = self
            .record
            .map(|folder| folder.recording(label, policy, &settings))
            .transpose()?;
        let mut simulation = Simulation::new(
            policy.build()?,
            settings,
            self.experiment.source.workload(seed),
        );
        if let Some(path) = &self.arguments.events {
            let single = self.experiment.runs == 1 && self.experiment.variants.len() == 1;
            let path = if single {
                path.clone()
            } else {
                numbered(path, label, seed)
            };
            let file = File::create(&path).with_context(|| cannot_write(&path))?;
            simulation = simulation.with_log(Box::new(BufWriter::new(file)));
        }
        if let Some(recording) = recording {
            simulation = simulation.with_recording(recording);
        }
        let failed = || format!("under {label}, seed {seed}");
        let mut shown = 0;
        let mut since = 0;
        while simulation.step().with_context(failed)? {
            since += 1;
            if since == STRIDE {
                since = 0;
                let ended = simulation.so_far().jobs.len();
                self.progress.ended(ended - shown)?;
                shown = ended;
            }
        }
        let run = simulation.run().with_context(failed)?;
        self.progress.ended(run.jobs.len() - shown)?;
        Ok(run)
    }
}

fn numbered(path: &Path, label: &str, seed: u64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.{seed}", in_file_name(label)));
    PathBuf::from(name)
}

/// The number of ended jobs of all runs, as a progress bar and a file.
struct Progress {
    bar: ProgressBar,
    file: Option<(PathBuf, File)>,
    /// The percentage in the file.
    written_percent: Mutex<u64>,
}

impl Progress {
    fn begin(jobs: usize, file: Option<&Path>) -> Result<Progress> {
        // Hidden if standard error is not a terminal.
        let bar = ProgressBar::new(jobs as u64);
        let style =
            ProgressStyle::with_template("simulating {bar:30} {pos}/{len} jobs, {eta} left");
        let bar = style.map_or(bar.clone(), |style| bar.with_style(style));
        let create = |path: &Path| File::create(path).with_context(|| cannot_write(path));
        let file = file
            .map(|path| create(path).map(|file| (path.to_owned(), file)))
            .transpose()?;
        let progress = Progress {
            bar,
            file,
            written_percent: Mutex::new(u64::MAX),
        };
        progress.ended(0).map(|()| progress)
    }

    fn ended(&self, jobs: usize) -> Result<()> {
        self.bar.inc(jobs as u64);
        let Some((path, file)) = &self.file else {
            return Ok(());
        };
        let mut written = self
            .written_percent
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let percent = self.bar.position() * 100 / self.bar.length().unwrap_or(0).max(1);
        if *written != percent {
            // Always three columns, so that readers never see a part of it.
            file.write_all_at(format!("{percent:>3}\n").as_bytes(), 0)
                .with_context(|| cannot_write(path))?;
            *written = percent;
        }
        Ok(())
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
