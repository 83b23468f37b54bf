//! `nap lab preempt` and its relatives: experiments with real tasks that are preempted.
//!
//! Owns their arguments and which settings follow from them. Does not own the experiments.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Args;
use napreduce_lab::{
    IdentitySettings, JobWeight, LatencySettings, MemoryLimit, PreemptSettings, Session, Strategy, TaskForm,
    Way,
};
use napreduce_live::{ByteSize, parse_time};

use crate::place::Workplace;

/// Compare wait, kill, suspend and checkpoint on real tasks
///
/// Two jobs share one slot: the low one runs, and when it is at some per cent the high one comes, for which
/// the low one waits no longer, is killed, suspended or checkpointed. Then Natjam's experiment: a production
/// job comes while a research job fills a cluster. Both on a cluster of their own, which is gone afterwards;
/// primitives take turns. Every output is compared with an undisturbed one. As root, memory-hungry tasks get
/// a swap file and a memory limit of their own; which means were there is printed. The exit status is 1 when
/// an output differs or a bound is not kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab preempt                                       everything: more than two hours
  nap lab preempt --repetitions 1 --task-time 2s --at 50    a first look: about 5 minutes
  nap lab preempt --tasks light --ways '' --report light    two jobs, light-weight tasks
  nap lab preempt --tasks '' --scale 0.2                Natjam's ways only, at a fifth of the paper's times")]
pub struct PreemptArguments {
    /// How often each cell is measured
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,

    /// Progress of the low job when the high one comes, in per cent
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_value = "10,20,30,40,50,60,70,80,90",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    pub at: Vec<u32>,

    /// Which primitives: wait, kill, suspend, checkpoint
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "wait,kill,suspend,checkpoint"
    )]
    pub primitives: Vec<Strategy>,

    /// With which tasks: light, hungry; empty leaves the two jobs out
    #[arg(long, value_name = "NAME,...", default_value = "light,hungry", value_parser = list::<JobWeight>)]
    pub tasks: List<JobWeight>,

    /// What the two jobs consist of: one map, or one reduce
    #[arg(long, value_name = "KIND", default_value = "map")]
    pub kind: TaskForm,

    /// How long a task takes alone
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = parse_time)]
    pub task_time: std::time::Duration,

    /// Memory of a hungry task
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    pub fill: ByteSize,

    /// Memory of a worker with hungry tasks
    #[arg(long, value_name = "SIZE", default_value = "768MiB")]
    pub memory_limit: ByteSize,

    /// The swap file for hungry tasks
    #[arg(long, value_name = "SIZE", default_value = "1536MiB")]
    pub swap: ByteSize,

    /// Ways of Natjam's experiment: ideal, hard-cap, soft-cap, kill, checkpoint, suspend; empty leaves it out
    #[arg(long, value_name = "NAME,...", default_value = "ideal,hard-cap,soft-cap,kill,checkpoint,suspend",
          value_parser = list::<Way>)]
    pub ways: List<Way>,

    /// Times of Natjam's experiment as a part of the paper's
    #[arg(long, value_name = "FACTOR", default_value = "0.1", value_parser = scale)]
    pub scale: f64,

    /// Folder to create for the report, its figures and the raw measurements [default:
    /// nap-lab-preempt-SECONDS]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,

    #[command(flatten)]
    pub place: Workplace,
}

/// Measure how long preempting takes
///
/// One reduce with many small groups, on a cluster that does nothing else, is suspended and resumed, then
/// checkpointed and restored, over and over. Times go from the coordinator's decision to the slot verified
/// free (suspend, checkpoint), to the task running again (resume) and from the launch to the first new output
/// (restore). The exit status is 1 when a bound is not kept or an output differs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab latency
  nap lab latency --samples 200 --format json
  nap lab latency --page-pairs 10 --samples 60      what a page that 16 streams and 100 requests a second read costs")]
pub struct LatencyArguments {
    /// Samples of each kind
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,

    /// Suspend and resume only, without and with readers of the cluster's page, by turns; status 1 when the
    /// page costs something
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub page_pairs: Option<u32>,

    #[command(flatten)]
    pub place: Workplace,
}

/// Search for a preemption that can be told from an output
///
/// Small jobs of every shape run on a cluster of two workers, and whatever runs of them is suspended,
/// resumed, checkpointed and killed at random. Each output and each count of records is compared with an
/// undisturbed run. The exit status is 1 when one differs; the seed that is printed gives the same choices
/// again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab identity
  nap lab identity --rounds 2000 --seed 7")]
pub struct IdentityArguments {
    /// Jobs that are preempted
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,

    /// Where the choices start [default: the time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub place: Workplace,
}

/// A list that may be empty.
#[derive(Clone, Debug)]
pub struct List<T>(Vec<T>);

fn list<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<List<T>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let read = words.map(|word| word.parse::<T>().map_err(|error| error.to_string()));
    read.collect::<Result<_, _>>().map(List)
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "write a number such as 0.1".to_owned())?;
    if (0.001..=10.0).contains(&scale) { Ok(scale) } else { Err("choose 0.001 to 10".to_owned()) }
}

/// Runs the comparison; whether it found what it should.
pub fn preempt(arguments: &PreemptArguments, session: &Session) -> Result<bool> {
    let report = match &arguments.report {
        Some(folder) => folder.clone(),
        None => PathBuf::from(format!("nap-lab-preempt-{}", unix_seconds())),
    };
    let settings = PreemptSettings {
        repetitions: arguments.repetitions,
        percents: arguments.at.clone(),
        strategies: arguments.primitives.clone(),
        weights: arguments.tasks.0.clone(),
        form: arguments.kind,
        task_seconds: arguments.task_time.as_secs_f64(),
        fill: arguments.fill,
        limit: MemoryLimit { memory: arguments.memory_limit, swap: arguments.swap },
        ways: arguments.ways.0.clone(),
        scale: arguments.scale,
        binaries: arguments.place.binaries()?,
        work: arguments.place.work(),
        report: absolute(&report)?,
    };
    let report = napreduce_lab::preempt(&settings, session)?;
    arguments.place.print(&report, || report.table(), None)?;
    Ok(report.succeeded())
}

/// Measures; whether every bound is kept.
pub fn latency(arguments: &LatencyArguments, session: &Session) -> Result<bool> {
    let LatencyArguments { samples, page_pairs, place } = arguments;
    let settings = LatencySettings { samples: *samples, binaries: place.binaries()?, work: place.work() };
    if let Some(pairs) = *page_pairs {
        let report = napreduce_lab::latency_with_page(&settings, pairs, session)?;
        place.print(&report, || report.table(), None)?;
        return Ok(report.succeeded());
    }
    let report = napreduce_lab::latency(&settings, session)?;
    place.print(&report, || report.table(), None)?;
    Ok(report.succeeded())
}

/// Searches; whether nothing was found.
pub fn identity(arguments: &IdentityArguments, session: &Session) -> Result<bool> {
    let IdentityArguments { rounds, seed, place } = arguments;
    let settings = IdentitySettings {
        rounds: *rounds,
        seed: seed.unwrap_or_else(unix_seconds),
        binaries: place.binaries()?,
        work: place.work(),
    };
    let report = napreduce_lab::identity(&settings, session)?;
    place.print(&report, || report.table(), None)?;
    Ok(report.succeeded())
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}
