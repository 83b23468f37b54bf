//! `nap lab replay`: a workload live on a cluster of this machine, and in the simulator.
//!
//! Owns its arguments and which settings follow from them. Does not own the experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use napreduce_core::{PreemptionSettings, PrimitiveChoice, Span, SuspendedMax};
use napreduce_lab::{
    GivenCosts, LabError, ReplaySettings, ReplaySource, Scale, Session, TaskBody, WorkloadReplayError,
};
use napreduce_live::parse_time;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};

use crate::place::Workplace;

/// Run a workload or a trace live, and compare with the simulator
///
/// The jobs are those that nap sim draws from the same workload and seed, made smaller: times are divided
/// by --time-scale, numbers of tasks, slots and bytes by --task-scale, and intervals of policies by
/// --time-scale, which is printed. A cluster of its own is started for every run; each job is handed in at
/// its time, and its tasks last as long as the plan says. Outputs are compared with those of undisturbed
/// jobs. The same plan is then simulated with costs measured here; live over simulated mean sojourns from 0.9
/// to 1.1 agree. Ctrl-C leaves a report of the runs that had ended. The exit status is 1 when an output
/// differs, or when every run of a policy had a job handed in too late.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab replay natjam-xl-s --time-scale 20 --task-scale 4 --workers 2 --scheduler natjam
  nap lab replay fcs-map-heavy --time-scale 60 --task-scale 30 --workers 3 --scheduler fcs,fair --report fcs
  nap lab replay my.toml --time-scale 10 --scheduler hfsp --primitive suspend --repetitions 6
  nap lab replay --trace FB-2010_samples_24_times_1hr_0.tsv --jobs 50 --time-scale 20 --task-scale 5 --scheduler fifo,hfsp

docs/replay.md says what is scaled and how, and what cannot be compared.")]
pub struct ReplayArguments {
    /// A workload file, or the name of a published one
    #[arg(value_name = "FILE|NAME", required_unless_present = "trace", conflicts_with = "trace")]
    pub workload: Option<String>,

    /// A trace in the format of SWIM
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// The first jobs of the trace only
    #[arg(long, value_name = "N", requires = "trace")]
    pub jobs: Option<usize>,

    /// Divide times by this
    #[arg(long, value_name = "T", default_value_t = 1.0)]
    pub time_scale: f64,

    /// Divide numbers of tasks, slots and bytes by this
    #[arg(long, value_name = "K", default_value_t = 1.0)]
    pub task_scale: f64,

    /// The schedulers to compare, with commas in between
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "fifo")]
    pub scheduler: Vec<SchedulerName>,

    /// Tables of schedulers and of preemption, as for a coordinator; the others in the file are passed over
    #[arg(long, value_name = "FILE")]
    pub configuration: Option<PathBuf>,

    /// How slots are taken back, whatever the scheduler prefers: wait, kill, suspend, checkpoint
    #[arg(long, value_name = "PRIMITIVE", value_parser = primitive)]
    pub primitive: Option<PrimitiveChoice>,

    /// Suspended attempts that each worker keeps, a number or unlimited [default: as the configuration says,
    /// else 2]
    #[arg(long, value_name = "N")]
    pub suspended_max: Option<SuspendedMax>,

    /// Workers [default: the workload's, by the scale]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub workers: Option<u32>,

    /// Map slots of each worker [default: the workload's slots by the scale, shared out]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub map_slots: Option<u32>,

    /// Reduce slots of each worker [default: likewise]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub reduce_slots: Option<u32>,

    /// How often workers report, before it is divided [default: as the workload says, else 1s]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub heartbeat: Option<Span>,

    /// How the time of a task passes: sleep, cpu (arithmetic), io (its bytes written and read back), fill
    /// (its memory filled)
    #[arg(long, value_name = "BODY", default_value = "sleep")]
    pub body: TaskBody,

    /// Where all random choices start [default: as the workload says, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Runs under each scheduler, with this seed and those after it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,

    /// Folder for the report and the rows of all jobs, jobs.jsonl and jobs.csv
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,

    #[command(flatten)]
    pub costs: CostArguments,

    #[command(flatten)]
    pub place: Workplace,
}

/// What the simulator is told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Costs in the simulator (default: measured here)")]
pub struct CostArguments {
    /// What a task takes beyond its work
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub launch: Option<Span>,

    /// From the order to suspend to the free slot
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub suspend: Option<Span>,

    /// From the order to resume to the first work
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub resume: Option<Span>,

    /// From the order to checkpoint to the free slot
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub checkpoint_write: Option<Span>,

    /// What a restore takes beyond a launch
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub checkpoint_read: Option<Span>,
}

fn primitive(text: &str) -> Result<PrimitiveChoice, String> {
    PrimitiveChoice::of_word(text).ok_or_else(|| format!("choose from {}", PrimitiveChoice::WORDS.join(", ")))
}

fn span(text: &str) -> Result<Span, String> {
    let time: Duration = parse_time(text)?;
    Ok(Span(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
}

/// Replays; whether all of it is as it should be.
pub fn replay(arguments: &ReplayArguments, session: &Session) -> Result<bool> {
    let scale = usage(Scale::new(arguments.time_scale, arguments.task_scale))?;
    let source = match (&arguments.workload, &arguments.trace) {
        (Some(name), _) => usage(ReplaySource::workload(name))?,
        (None, Some(path)) => usage(ReplaySource::trace(path, arguments.jobs))?,
        (None, None) => anyhow::bail!("nothing to replay; name a workload, or a trace with --trace"),
    };
    let (tables, mut preemption) = match &arguments.configuration {
        Some(path) => tables(path)?,
        None => (SchedulerTables::default(), PreemptionSettings::default()),
    };
    preemption.primitive = arguments.primitive.or(preemption.primitive);
    preemption.suspended_max = arguments.suspended_max.unwrap_or(preemption.suspended_max);
    let policy = |scheduler: &SchedulerName| -> Result<SchedulerConfiguration> {
        let policy = SchedulerConfiguration { scheduler: *scheduler, tables: tables.clone() };
        policy.build().with_context(|| format!("{scheduler} cannot be set up"))?;
        Ok(policy)
    };
    let CostArguments { launch, suspend, resume, checkpoint_write, checkpoint_read } = arguments.costs;
    let settings = ReplaySettings {
        source,
        scale,
        policies: arguments.scheduler.iter().map(policy).collect::<Result<_>>()?,
        preemption,
        workers: arguments.workers,
        map_slots: arguments.map_slots,
        reduce_slots: arguments.reduce_slots,
        heartbeat: arguments.heartbeat,
        body: arguments.body,
        seed: arguments.seed,
        repetitions: arguments.repetitions,
        costs: GivenCosts { launch, suspend, resume, checkpoint_write, checkpoint_read },
        report: arguments.report.clone(),
        binaries: arguments.place.binaries()?,
        work: arguments.place.work(),
    };
    let report = napreduce_lab::replay(&settings, session)?;
    arguments.place.print(&report, || report.table(), None)?;
    if let Err(interrupted) = session.interrupt.check() {
        return Err(LabError::from(interrupted).into());
    }
    Ok(report.succeeded())
}

/// Errors of the lab have their own exit status.
fn usage<T>(found: Result<T, WorkloadReplayError>) -> Result<T, LabError> {
    found.map_err(LabError::from)
}

/// The tables of a configuration file that are about decisions.
fn tables(path: &Path) -> Result<(SchedulerTables, PreemptionSettings)> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let wrong = || format!("{} is no configuration", path.display());
    let mut file: toml::Table = toml::from_str(&text).with_context(wrong)?;
    let mut part = |name: &str| file.remove(name).unwrap_or(toml::Value::Table(toml::Table::new()));
    let (scheduler, preemption) = (part("scheduler"), part("preemption"));
    ensure!(
        scheduler.is_table() && preemption.is_table(),
        "{}: scheduler and preemption are tables",
        path.display()
    );
    Ok((scheduler.try_into().with_context(wrong)?, preemption.try_into().with_context(wrong)?))
}
