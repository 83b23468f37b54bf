//! The flags of `nap sim`, and the simulation settings derived from them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use napreduce_engine::{JobId, PrimitiveChoice, Slots, Span, SuspendedMax, Time};
use napreduce_protocol::{ByteSize, parse_time};
use napreduce_schedulers::SchedulerName;
use napreduce_sim::{Baseline, Cost, OverheadPreset, SimulationSettings};

use super::source::Source;
use crate::format::FormatArguments;

/// Simulate a workload or a trace under one or several schedulers
///
/// The schedulers are the ones a cluster uses, on virtual workers in virtual time. Equal seeds give equal
/// runs, to the byte of the event log. Everything but work takes no time unless a flag, or the workload, says
/// so.
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

Workloads by name: natjam-xl-s, natjam-xl-l, natjam-m-m-s, natjam-l-s-s, natjam-deadlines, fcs-map-heavy,
fcs-reduce-heavy, hfsp-fb-dataset. docs/workloads.md says what is in them, docs/schedulers what each scheduler does.")]
pub struct Arguments {
    /// A trace in the format of SWIM: one job a line, fields separated by tabs
    #[arg(
        long, value_name = "FILE", required_unless_present_any = ["workload", "recorded"],
        conflicts_with_all = ["workload", "recorded"]
    )]
    pub trace: Option<PathBuf>,

    /// A workload file, or the name of a published one
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "recorded")]
    pub workload: Option<String>,

    /// What ran on a cluster, by its directory or a copy of its history: the jobs that were submitted from
    /// FROM to UNTIL, which are moments such as 2026-09-21T14:13:20Z, or times since the first submission
    /// such as 90s
    #[arg(long, value_name = "DIR[@FROM..UNTIL]")]
    pub recorded: Option<String>,

    /// Of what was recorded, these jobs alone
    #[arg(long, value_name = "JOB,...", value_delimiter = ',', requires = "recorded")]
    pub job: Vec<JobId>,

    /// The schedulers to compare, with commas in between [default: fifo; that of the cluster for
    /// what was recorded]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub scheduler: Vec<SchedulerName>,

    /// Baselines of theory beside them: ps (processor sharing), srpt (shortest remaining processing time) and
    /// sjf (shortest job first) divide jobs at will, know their lengths, and preempt for nothing, as no
    /// cluster can
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub baseline: Vec<Baseline>,

    /// How slots are taken back, whatever the scheduler prefers; of several each is tried with each scheduler
    #[arg(long, value_enum, value_name = "PRIMITIVE,...", value_delimiter = ',')]
    pub primitive: Vec<PrimitiveName>,

    /// Suspended attempts that each worker keeps, a number or unlimited [default: as the configuration says,
    /// else 2]
    #[arg(long, value_name = "N")]
    pub suspended_max: Option<SuspendedMax>,

    /// Workers [default: as the workload says, else 10]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,

    /// Deal the workers out to so many racks in turn [default: as the workload says, else 1]
    #[arg(long, value_name = "N")]
    pub racks: Option<u32>,

    /// Map slots of each worker [default: as the workload says, else 4]
    #[arg(long, value_name = "N")]
    pub map_slots: Option<u32>,

    /// Reduce slots of each worker [default: as the workload says, else 2]
    #[arg(long, value_name = "N")]
    pub reduce_slots: Option<u32>,

    /// Containers of each worker, for maps, reduces and the masters of jobs, in the place of slots of two
    /// kinds [default: as the workload says]
    #[arg(long, value_name = "N", conflicts_with_all = ["map_slots", "reduce_slots"])]
    pub containers: Option<u32>,

    /// Where all random choices start [default: as the workload says, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Runs under each scheduler, with this seed and those after it; several give 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub runs: u32,

    /// Cut each run off at this time of the simulation [default: at its end; what has no end is an error]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub until: Option<Duration>,

    #[command(flatten)]
    pub format: FormatArguments,

    /// Write every event and what followed; with several runs, to FILE.SCHEDULER.SEED, where other tables and
    /// primitives are part of SCHEDULER
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,

    /// Write what came of every job of every run: as CSV to a file that ends in .csv, as lines of
    /// JSON to any other
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,

    /// Keep the history of every job that ends, as a cluster does: of each run in DIR/SCHEDULER.SEED, for
    /// `nap history` and `nap sim --recorded`; baselines have none
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Keep in this file how many percent of the jobs of all runs have ended
    #[arg(long, value_name = "FILE")]
    pub progress_file: Option<PathBuf>,

    /// Draw sojourn times and slots over time into this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    pub plot: Option<PathBuf>,

    /// Tables of schedulers and of preemption, as for a coordinator; given several times, each is tried with
    /// each scheduler [default: the cluster's napreduce.toml]
    #[arg(long, value_name = "FILE")]
    pub configuration: Vec<PathBuf>,

    /// The rules of the trigger scheduler, one a line
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    #[command(flatten)]
    pub trace_arguments: TraceArguments,

    #[command(flatten)]
    pub overheads: OverheadArguments,
}

/// How bytes of a trace become tasks and times.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceArguments {
    /// Machines the trace comes from: bytes are scaled to --nodes [default: not scaled]
    #[arg(long, value_name = "N")]
    pub trace_nodes: Option<u32>,

    /// Input of a map
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub block: ByteSize,

    /// Input and output of a reduce
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub bytes_per_reduce: ByteSize,

    /// The first jobs only
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

/// What takes time besides work.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Overheads (default: as the workload says, else none)")]
pub struct OverheadArguments {
    /// Those of a system, hadoop-1 or yarn-0.23, in the place of the workload's; the other flags change some
    /// of them
    #[arg(long, value_name = "NAME")]
    pub overheads: Option<OverheadPreset>,

    /// Workers speak with the coordinator at this interval only
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub heartbeat: Option<Duration>,

    /// With --heartbeat: also when a task ends
    #[arg(long)]
    pub out_of_band: bool,

    /// From when an order leaves until it acts
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub order_latency: Option<Duration>,

    /// From the order to the first work of an attempt
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub launch: Option<Duration>,

    /// From the order to suspend to the free slot
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub suspend: Option<Duration>,

    /// From the order to resume to the first work
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub resume: Option<Duration>,

    /// From the order to checkpoint to the free slot
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub checkpoint_write: Option<Duration>,

    /// Before an attempt goes on from a checkpoint
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub checkpoint_read: Option<Duration>,

    /// From the order to kill to the free slot
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub kill_cleanup: Option<Duration>,

    /// How often attempts report their progress [default: every 1s if a workload is simulated, never for a
    /// trace]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub progress: Option<Duration>,

    /// The probability that an attempt fails
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub failure_probability: f64,

    /// The mean time until a worker is lost [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub worker_mean: Option<Duration>,

    /// After how long a lost worker is back [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub worker_return: Option<Duration>,
}

/// `--primitive`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrimitiveName {
    /// Let tasks finish
    Wait,
    /// End them; their work is lost
    Kill,
    /// Stop them where they are
    Suspend,
    /// Save their work and end them
    Checkpoint,
    /// For each task, what costs least
    Auto,
}

impl PrimitiveName {
    pub fn choice(self) -> Option<PrimitiveChoice> {
        PrimitiveChoice::of_word(self.to_possible_value()?.get_name())
    }
}

fn span(time: Duration) -> Span {
    Span(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

impl Arguments {
    /// The settings of every run but their seed.
    pub fn settings(&self, source: &Source) -> Result<SimulationSettings> {
        let shape = source.shape;
        let nodes = self.nodes.unwrap_or(shape.map_or(10, |shape| shape.machines));
        let map = self.map_slots.unwrap_or(shape.map_or(4, |shape| shape.map_slots));
        let reduce = self.reduce_slots.unwrap_or(shape.map_or(2, |shape| shape.reduce_slots));
        ensure!(nodes > 0, "--nodes 0 runs nothing; give 1 or more");
        let racks = self.racks.unwrap_or(shape.map_or(1, |shape| shape.racks));
        ensure!((1..=nodes).contains(&racks), "{racks} racks for {nodes} workers; give --racks 1 to {nodes}");
        let two_kinds = self.map_slots.is_some() || self.reduce_slots.is_some();
        let of_shape = shape.filter(|_| !two_kinds).and_then(|shape| shape.containers);
        let mut settings = if let Some(containers) = self.containers.or(of_shape) {
            let enough = u64::from(containers) * u64::from(nodes) > 1;
            ensure!(enough, "--containers {containers}: a master and a task need 2 in all; give more");
            let mut settings = SimulationSettings::with_containers(nodes, containers);
            settings.share_slots(shape.and_then(|shape| shape.masters_max));
            settings
        } else {
            ensure!(map > 0, "--map-slots 0 runs no map; give 1 or more");
            SimulationSettings::new(nodes, Slots { map, reduce })
        };
        // Of other machines than those that were recorded all are alike.
        if self.nodes.is_none() && !two_kinds && self.containers.is_none() {
            settings.unlike_slots = source.unlike_slots();
        }
        settings.racks = racks;
        settings.overheads = self.overheads.overheads.map_or(source.overheads, OverheadPreset::overheads);
        settings.progress = source.told;
        // Of other machines than the workload's own all are alike.
        settings.map_machines = shape.filter(|_| self.nodes.is_none()).and_then(|shape| shape.map_machines);
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
        for (value, said) in spans {
            *value = said.map_or(*value, span);
        }
        let costs = [
            (&mut overheads.suspend, self.suspend),
            (&mut overheads.resume, self.resume),
            (&mut overheads.checkpoint_write, self.checkpoint_write),
            (&mut overheads.checkpoint_read, self.checkpoint_read),
        ];
        for (value, said) in costs {
            *value = said.map_or(*value, |time| Cost::fixed(span(time)));
        }
        overheads.out_of_band |= self.out_of_band;
        let failures = &mut settings.failures;
        ensure!(
            (0.0..1.0).contains(&self.failure_probability),
            "--failure-probability {} is no probability below 1",
            self.failure_probability
        );
        failures.attempt = self.failure_probability;
        failures.machine_mean = self.worker_mean.map(span);
        failures.machine_return = self.worker_return.map(span);
        let for_ever = failures.machine_mean.is_some() && failures.machine_return.is_none();
        (!for_ever).then_some(()).context(
            "--worker-mean without --worker-return loses every worker in the end; say after how long they are back",
        )
    }
}
