//! The command line of `nap lab`.
//!
//! Owns names, defaults, ranges and help texts of the experiments with programs. Does not own what they
//! cause.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use napreduce_lab::{BenchmarkJob, PeerTool, SuiteJob};
use napreduce_live::ByteSize;

use crate::fuzz::FuzzArguments;
use crate::load::LoadArguments;
use crate::paper::PaperArguments;
use crate::place::Workplace;
use crate::preemption::{IdentityArguments, LatencyArguments, PreemptArguments};
use crate::replay::ReplayArguments;

/// An experiment.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    Speed(SpeedArguments),
    Suite(SuiteArguments),
    Memory(MemoryArguments),
    Start(StartArguments),
    Cluster(ClusterArguments),
    Preempt(PreemptArguments),
    Latency(LatencyArguments),
    Identity(IdentityArguments),
    Load(LoadArguments),
    Paper(PaperArguments),
    Replay(ReplayArguments),
    FuzzPolicies(FuzzArguments),
}

/// Compare the speed of wordcount and terasort with other programs
///
/// Every contender does the same work on the same input, in turn, with a warm page cache; the whole process
/// from start to exit is timed. Every output is checked outside the measured time. A contender that fails or
/// is wrong is named, and the exit status is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab speed
  nap lab speed --python .venv/bin/python --json speed.json
  nap lab speed --size 1GiB,10GiB --programs terasort --peers sort --work /mnt/fast")]
pub struct SpeedArguments {
    /// Input sizes
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "1GiB")]
    pub size: Vec<ByteSize>,

    /// Programs: wordcount, terasort
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "wordcount,terasort")]
    pub programs: Vec<BenchmarkJob>,

    /// Measured runs of each contender, after one that warms up
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,

    /// Exactly these peers: sort, coreutils, duckdb, polars, bare [default: all that are found but coreutils,
    /// which is slow]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Option<Vec<PeerTool>>,

    /// A Python that has DuckDB or Polars installed
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub conditions: Conditions,
}

/// Run the job suite, and compare it with other programs
///
/// Every kind of data is made once. A first run with one slot says what is right; every further output has to
/// be equal byte for byte, and those of DuckDB and Polars, where they have a formulation of the job, as sets
/// of lines. All take turns, with a warm page cache; ratios are taken within a repetition. A contender that
/// fails or is wrong is named, and the exit status is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab suite --size 64MiB
  nap lab suite --jobs wordcount,self-join --repetitions 5 --python .venv/bin/python
  nap lab suite --size 1GiB --peers duckdb --format json")]
pub struct SuiteArguments {
    /// About how much of each kind of data
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub size: ByteSize,

    /// Jobs [default: all thirteen]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub jobs: Option<Vec<SuiteJob>>,

    /// Measured runs of each contender
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,

    /// Exactly these peers: duckdb, polars [default: those that are found]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Option<Vec<PeerTool>>,

    /// A Python that has DuckDB or Polars installed [default: python3, if there is one]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub conditions: Conditions,
}

/// Check that tasks keep to their memory budget on a large input
///
/// Runs each program once, checks its output, and compares the anonymous memory of every task process with
/// the bound. The exit status is 1 when one takes more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab memory
  nap lab memory --size 2GiB --task-memory 64MiB --programs terasort")]
pub struct MemoryArguments {
    /// Input size
    #[arg(long, value_name = "SIZE", default_value = "10GiB")]
    pub size: ByteSize,

    /// Programs: wordcount, terasort
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "wordcount,terasort")]
    pub programs: Vec<BenchmarkJob>,

    /// The bound of a task process, as a multiple of its budget
    #[arg(long, value_name = "FACTOR", default_value = "1.3", value_parser = factor)]
    pub factor: f64,

    #[command(flatten)]
    pub conditions: Conditions,
}

/// Measure what starting costs: a tiny job, and one more map task
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab start
  nap lab start --runs 200 --slots 1")]
pub struct StartArguments {
    /// Measured runs of the tiny job, after one that warms up
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,

    #[command(flatten)]
    pub conditions: Conditions,
}

/// Measure what a cluster on this machine costs: terasort embedded, with workers, and over the network
///
/// Every path sorts the same input, in turn, with as many slots in all. A cluster is started before its job
/// and ended after it; only the job is timed. Every output is checked. The exit status is 1 when a path takes
/// longer than its bound: 1.15 times the embedded run with the shuffle in place, 1.60 times with the network
/// shuffle.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab cluster
  nap lab cluster --size 1GiB --runs 3 --encrypted --json cluster.json")]
pub struct ClusterArguments {
    /// Input size
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    pub size: ByteSize,

    /// Measured runs on each path, after one that warms up
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,

    /// Workers, which share the slots
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub workers: u32,

    /// Input bytes for one map task
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub split_size: ByteSize,

    /// Also with the network shuffle encrypted
    #[arg(long)]
    pub encrypted: bool,

    #[command(flatten)]
    pub conditions: Conditions,
}

/// What an experiment that runs programs of jobs is asked for.
#[derive(Debug, Args)]
pub struct Conditions {
    /// Attempts that run at the same time; for other programs, threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub slots: Option<u32>,

    /// Memory budget of one task
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub task_memory: ByteSize,

    #[command(flatten)]
    pub place: Workplace,

    /// Also write the report with every single time to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "write a number such as 1.3".to_owned())?;
    if (1.0..=100.0).contains(&factor) { Ok(factor) } else { Err("choose 1 to 100".to_owned()) }
}
