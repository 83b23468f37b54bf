//! The flags of `nap sim`, and the simulation settings derived from them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum, ValueHint};
use napreduce_engine::{JobId, PrimitiveChoice, Slots, Span, SuspendedMax, Time};
use napreduce_protocol::{ByteSize, parse_time, whole_micros};
use napreduce_schedulers::SchedulerName;
use napreduce_sim::{Baseline, Cost, OverheadPreset, SimulationSettings};

use super::source::Source;
use crate::format::FormatArguments;

/// Simulate a workload, a trace or a recorded history under one or more schedulers
///
/// Runs the schedulers of a cluster on virtual workers in virtual time. Equal seeds give byte-identical event
/// logs. Only work takes time, unless a flag or the workload sets overheads.
#[derive(Debug, Clone, Args)]
#[group(skip)]
#[command(after_help = "\
Examples:
  nap sim --workload fcs-map-heavy --scheduler fcs,fair --runs 10
  nap sim --workload my.toml --scheduler fifo,fair,hfsp --nodes 20 --map-slots 4 --reduce-slots 2 --plot figures
  nap sim --trace FB-2010_samples_24_times_1hr_0.tsv --trace-nodes 3000 --nodes 1000 --scheduler fifo,fair
  nap sim --workload natjam-xl-s --scheduler natjam --primitive kill,suspend --format json
  nap sim --workload hfsp-fb-dataset --scheduler fair,hfsp --baseline ps,srpt
  nap sim --workload my.toml --scheduler hfsp --configuration one.toml --configuration other.toml
  nap sim --workload natjam-xl-s --scheduler natjam,fifo --record runs; nap history serve runs
  nap sim --recorded ~/.local/state/napreduce --scheduler fair,hfsp --primitive suspend
  nap sim --recorded history@2026-09-21T14:00:00Z..2026-09-21T16:00:00Z --scheduler capacity --nodes 20
  nap sim --recorded history --job job_0004,job_0007 --scheduler natjam

Published workloads: natjam-xl-s, natjam-xl-l, natjam-m-m-s, natjam-l-s-s,
natjam-deadlines, fcs-map-heavy, fcs-reduce-heavy, hfsp-fb-dataset.
See docs/simulator.md and docs/schedulers.")]
pub struct Arguments {
    /// Trace in the format of SWIM: one job per line, fields separated by tabs; may be compressed with gzip
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "recorded"])]
    pub trace: Option<PathBuf>,

    /// Workload file, or name of a published one; may be compressed with gzip
    #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::AnyPath, conflicts_with = "recorded")]
    pub workload: Option<String>,

    /// Cluster directory, or a copy of its history, with the jobs to simulate; FROM and UNTIL select them by
    /// submission: times such as 2026-09-21T14:13:20Z, or 90s after the first submission
    #[arg(long, value_name = "DIR[@FROM..UNTIL]", value_hint = ValueHint::AnyPath)]
    pub recorded: Option<String>,

    /// Recorded jobs to simulate [default: all]
    #[arg(
        long,
        value_name = "JOB,...",
        value_delimiter = ',',
        requires = "recorded"
    )]
    pub job: Vec<JobId>,

    /// Schedulers to compare [default: fifo, or the recorded one]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub scheduler: Vec<SchedulerName>,

    /// Theoretical baselines: ps (processor sharing), srpt (shortest remaining processing time), sjf (shortest
    /// job first); they know the lengths of jobs, divide them freely and preempt at no cost
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub baseline: Vec<Baseline>,

    /// Preemption primitives to try with each scheduler [default: the one of the scheduler]
    #[arg(long, value_enum, value_name = "PRIMITIVE,...", value_delimiter = ',')]
    pub primitive: Vec<PrimitiveName>,

    /// Maximum suspended attempts per worker, or unlimited [default: the one of the configuration file, else 2]
    #[arg(long, value_name = "N")]
    pub suspended_max: Option<SuspendedMax>,

    /// Number of workers [default: the one of the workload, else 10]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,

    /// Number of racks [default: the one of the workload, else 1]
    #[arg(long, value_name = "N")]
    pub racks: Option<u32>,

    /// Map slots of each worker [default: those of the workload, else 4]
    #[arg(long, value_name = "N")]
    pub map_slots: Option<u32>,

    /// Reduce slots of each worker [default: those of the workload, else 2]
    #[arg(long, value_name = "N")]
    pub reduce_slots: Option<u32>,

    /// Containers of each worker, for maps, reduces and application masters, instead of slots [default: those of
    /// the workload]
    #[arg(long, value_name = "N", conflicts_with_all = ["map_slots", "reduce_slots"])]
    pub containers: Option<u32>,

    /// Random seed [default: the one of the workload, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Runs under each scheduler, with consecutive seeds; several give 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub runs: u32,

    /// Simulated time at which to stop each run [default: the end of all jobs]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub until: Option<Duration>,

    #[command(flatten)]
    pub format: FormatArguments,

    /// File for the event log; FILE.SCHEDULER.SEED for several runs
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,

    /// File for the results of every job: CSV if it ends in .csv, else JSON lines
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,

    /// Directory for a history of each run, in DIR/SCHEDULER.SEED, for `nap history` and `nap sim --recorded`
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// File for the progress of all runs, in percent
    #[arg(long, value_name = "FILE")]
    pub progress_file: Option<PathBuf>,

    /// Directory for plots of sojourn times and slots, as SVG
    #[arg(long, value_name = "FOLDER")]
    pub plot: Option<PathBuf>,

    /// Configuration file for schedulers and preemption; repeatable, to try each with each scheduler [default:
    /// the one of the cluster]
    #[arg(long, value_name = "FILE")]
    pub configuration: Vec<PathBuf>,

    /// File with rules of the trigger scheduler, one per line
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    #[command(flatten)]
    pub trace_arguments: TraceArguments,

    #[command(flatten)]
    pub overheads: OverheadArguments,
}

/// Conversion of the bytes of a trace to tasks and times.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceArguments {
    /// Machines of the traced cluster; bytes are scaled to --nodes [default: not scaled]
    #[arg(long, value_name = "N")]
    pub trace_nodes: Option<u32>,

    /// Input of one map
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub block: ByteSize,

    /// Input and output of one reduce
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub bytes_per_reduce: ByteSize,

    /// Number of jobs from the start of the trace [default: all]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

/// Times of everything but work.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Overheads (default: those of the workload, else none)")]
pub struct OverheadArguments {
    /// Preset for all overheads: hadoop-1 or yarn-0.23
    #[arg(long, value_name = "NAME")]
    pub overheads: Option<OverheadPreset>,

    /// Interval at which workers and coordinator exchange messages
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub heartbeat: Option<Duration>,

    /// With --heartbeat, also exchange messages when a task ends
    #[arg(long)]
    pub out_of_band: bool,

    /// Time from sending an order to its effect
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub order_latency: Option<Duration>,

    /// Time from the launch order to the first work
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub launch: Option<Duration>,

    /// Time from the suspend order to the free slot
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub suspend: Option<Duration>,

    /// Time from the resume order to the first work
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub resume: Option<Duration>,

    /// Time from the checkpoint order to the free slot
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub checkpoint_write: Option<Duration>,

    /// Time to restore a checkpoint
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub checkpoint_read: Option<Duration>,

    /// Time from the kill order to the free slot
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub kill_cleanup: Option<Duration>,

    /// Interval of progress reports; longer for tasks of more than a thousand intervals [default: 1s where the scheduler
    /// reads progress, none for a trace]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub progress: Option<Duration>,

    /// Probability that an attempt fails
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub failure_probability: f64,

    /// Mean time until a worker is lost [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub worker_mean: Option<Duration>,

    /// Time after which a lost worker returns [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub worker_return: Option<Duration>,
}

/// `--primitive`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrimitiveName {
    /// Wait until tasks finish
    Wait,
    /// Kill tasks, whose work is lost
    Kill,
    /// Stop tasks, which keep their memory
    Suspend,
    /// Save the work of tasks and end them
    Checkpoint,
    /// The cheapest primitive for each task
    Auto,
}

impl PrimitiveName {
    pub fn choice(self) -> Option<PrimitiveChoice> {
        PrimitiveChoice::of_word(self.to_possible_value()?.get_name())
    }
}

fn span(time: Duration) -> Span {
    Span(whole_micros(time))
}

impl Arguments {
    /// Returns the settings of all runs, without seeds.
    pub fn settings(&self, source: &Source) -> Result<SimulationSettings> {
        let shape = source.shape;
        let nodes = self
            .nodes
            .unwrap_or(shape.map_or(10, |shape| shape.machines));
        let map = self
            .map_slots
            .unwrap_or(shape.map_or(4, |shape| shape.map_slots));
        let reduce = self
            .reduce_slots
            .unwrap_or(shape.map_or(2, |shape| shape.reduce_slots));
        ensure!(nodes > 0, "--nodes 0: must be at least 1");
        let racks = self.racks.unwrap_or(shape.map_or(1, |shape| shape.racks));
        ensure!(
            (1..=nodes).contains(&racks),
            "--racks {racks}: must be 1 to {nodes}, the number of workers"
        );
        let two_kinds = self.map_slots.is_some() || self.reduce_slots.is_some();
        let of_shape = shape
            .filter(|_| !two_kinds)
            .and_then(|shape| shape.containers);
        let mut settings = if let Some(containers) = self.containers.or(of_shape) {
            let enough = u64::from(containers) * u64::from(nodes) > 1;
            ensure!(
                enough,
                "--containers {containers}: a master and a task need 2 in all; give more"
            );
            let mut settings = SimulationSettings::with_containers(nodes, containers);
            settings.share_slots(shape.and_then(|shape| shape.masters_max));
            settings
        } else {
            ensure!(map > 0, "--map-slots 0: must be at least 1");
            SimulationSettings::new(nodes, Slots { map, reduce })
        };
        // If flags change the recorded machines, all are alike.
        if self.nodes.is_none() && !two_kinds && self.containers.is_none() {
            settings.unlike_slots = source.unlike_slots();
        }
        settings.racks = racks;
        settings.overheads = self
            .overheads
            .overheads
            .map_or(source.overheads, OverheadPreset::overheads);
        settings.progress = source.progress_model;
        // If a flag changes the number of machines, all are alike.
        settings.map_machines = shape
            .filter(|_| self.nodes.is_none())
            .and_then(|shape| shape.map_machines);
        self.overheads.apply(&mut settings)?;
        settings.progress_period = match self.overheads.progress {
            Some(period) => Some(span(period)).filter(|period| period.0 > 0),
            None => source.progress,
        };
        settings.record_allocation = self.plot.is_some();
        settings.until = self.until.map(|until| Time(0) + span(until));
        settings.check()?;
        Ok(settings)
    }
}

impl OverheadArguments {
    fn apply(&self, settings: &mut SimulationSettings) -> Result<()> {
        let overheads = &mut settings.overheads;
        let spans = [
            (&mut overheads.heartbeat, self.heartbeat),
            (&mut overheads.order_latency, self.order_latency),
            (&mut overheads.launch, self.launch),
            (&mut overheads.kill, self.kill_cleanup),
        ];
        for (value, flag) in spans {
            *value = flag.map_or(*value, span);
        }
        let costs = [
            (&mut overheads.suspend, self.suspend),
            (&mut overheads.resume, self.resume),
            (&mut overheads.checkpoint_write, self.checkpoint_write),
            (&mut overheads.checkpoint_read, self.checkpoint_read),
        ];
        for (value, flag) in costs {
            *value = flag.map_or(*value, |time| Cost::fixed(span(time)));
        }
        overheads.out_of_band |= self.out_of_band;
        let failures = &mut settings.failures;
        ensure!(
            (0.0..1.0).contains(&self.failure_probability),
            "--failure-probability {}: must be at least 0 and below 1",
            self.failure_probability
        );
        failures.attempt = self.failure_probability;
        failures.machine_mean = self.worker_mean.map(span);
        failures.machine_return = self.worker_return.map(span);
        let lost_forever = failures.machine_mean.is_some() && failures.machine_return.is_none();
        (!lost_forever)
            .then_some(())
            .context("--worker-mean: would lose every worker in the end; give --worker-return")
    }
}
