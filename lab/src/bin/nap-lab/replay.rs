//! `nap lab replay`: a workload live on a cluster of this machine, and in the simulator.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use napreduce_engine::{PreemptionSettings, PrimitiveChoice, SuspendedMax};
use napreduce_lab::replay::{ReplayRuns, ReplaySettings, ReplaySource, Scale};
use napreduce_lab::report::Report;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};

use crate::place::{Printing, Workplace};

/// Run a workload or a trace live, and compare with the simulator
///
/// The jobs are those that nap sim draws from the same workload and seed, scaled down: times and intervals of
/// policies are divided by --time-scale, numbers of tasks, slots and bytes by --task-scale. Each run has its
/// own cluster, where every job is submitted at its time and its tasks last as long as planned. Outputs are compared
/// with those of undisturbed jobs. The same plan is then simulated with costs measured here; live over simulated
/// mean sojourns from 0.9 to 1.1 agree. Ctrl-C leaves a report of the finished runs. The exit status is 1 when an
/// output differs, or when every run of a policy had a job submitted too late.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab replay natjam-xl-s --time-scale 20 --task-scale 4 --workers 2 --scheduler natjam
  nap lab replay fcs-map-heavy --time-scale 60 --task-scale 30 --workers 3 --scheduler fcs,fair --report fcs
  nap lab replay my.toml --time-scale 10 --scheduler hfsp --primitive suspend --repetitions 6
  nap lab replay --trace FB-2010_samples_24_times_1hr_0.tsv --jobs 50 --time-scale 20 --task-scale 5 --scheduler fifo,hfsp

See docs/experiments.md for scaled values and the limits of a comparison.")]
pub struct ReplayArguments {
    /// A workload file, or the name of a published one
    #[arg(
        value_name = "FILE|NAME",
        required_unless_present = "trace",
        conflicts_with = "trace"
    )]
    pub workload: Option<String>,

    /// A trace in the format of SWIM
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Only the first jobs of the trace
    #[arg(long, value_name = "N", requires = "trace")]
    pub jobs: Option<usize>,

    /// Divide times by this
    #[arg(long, value_name = "T", default_value_t = 1.0)]
    pub time_scale: f64,

    /// Divide numbers of tasks, slots and bytes by this
    #[arg(long, value_name = "K", default_value_t = 1.0)]
    pub task_scale: f64,

    /// Schedulers to compare
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "fifo"
    )]
    pub scheduler: Vec<SchedulerName>,

    /// Configuration file of a coordinator, of which the tables of schedulers and of preemption are used
    #[arg(long, value_name = "FILE")]
    pub configuration: Option<PathBuf>,

    /// Primitive of every preemption, instead of the scheduler's choice: wait, kill, suspend, checkpoint
    #[arg(long, value_name = "PRIMITIVE", value_parser = primitive)]
    pub primitive: Option<PrimitiveChoice>,

    /// Maximum suspended attempts per worker, or unlimited [default: as the configuration says, else 2]
    #[arg(long, value_name = "N")]
    pub suspended_max: Option<SuspendedMax>,

    #[command(flatten)]
    pub runs: ReplayRuns,
    #[command(flatten)]
    pub place: Workplace,
    #[command(flatten)]
    pub printing: Printing,
}

fn primitive(text: &str) -> Result<PrimitiveChoice, String> {
    PrimitiveChoice::of_word(text)
        .ok_or_else(|| format!("choose from {}", PrimitiveChoice::WORDS.join(", ")))
}

/// Replays, and returns whether the report is a success.
pub fn replay(arguments: &ReplayArguments) -> Result<bool> {
    let scale = Scale::new(arguments.time_scale, arguments.task_scale)?;
    let source = match (&arguments.workload, &arguments.trace) {
        (Some(name), _) => ReplaySource::workload(name)?,
        (None, Some(path)) => ReplaySource::trace(path, arguments.jobs)?,
        (None, None) => {
            anyhow::bail!("nothing to replay; name a workload, or a trace with --trace")
        }
    };
    let (tables, mut preemption) = match &arguments.configuration {
        Some(path) => tables(path)?,
        None => (SchedulerTables::default(), PreemptionSettings::default()),
    };
    preemption.primitive = arguments.primitive.or(preemption.primitive);
    preemption.suspended_max = arguments.suspended_max.unwrap_or(preemption.suspended_max);
    let policy = |scheduler: &SchedulerName| -> Result<SchedulerConfiguration> {
        let policy = SchedulerConfiguration {
            scheduler: *scheduler,
            tables: tables.clone(),
        };
        policy
            .build()
            .with_context(|| format!("{scheduler} cannot be set up"))?;
        Ok(policy)
    };
    let settings = ReplaySettings {
        source,
        scale,
        policies: arguments
            .scheduler
            .iter()
            .map(policy)
            .collect::<Result<_>>()?,
        preemption,
        runs: arguments.runs.clone(),
    };
    let session = arguments.place.session()?;
    session.warn_if_busy();
    let report = napreduce_lab::replay::replay(&settings, &session)?;
    arguments.printing.print(&report)?;
    if let Err(interrupted) = session.interrupt.check() {
        return Err(interrupted.into());
    }
    Ok(report.succeeded())
}

/// The tables of a configuration file that are about decisions.
fn tables(path: &Path) -> Result<(SchedulerTables, PreemptionSettings)> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let wrong = || format!("{}: invalid configuration", path.display());
    let mut file: toml::Table = toml::from_str(&text).with_context(wrong)?;
    let mut part = |name: &str| {
        file.remove(name)
            .unwrap_or(toml::Value::Table(toml::Table::new()))
    };
    let scheduler = part("scheduler");
    let preemption = part("preemption");
    ensure!(
        scheduler.is_table() && preemption.is_table(),
        "{}: scheduler and preemption have to be tables",
        path.display()
    );
    Ok((
        scheduler.try_into().with_context(wrong)?,
        preemption.try_into().with_context(wrong)?,
    ))
}
