//! The comparison of speed: our programs and their peers on the same input, in turn, whole process from start to
//! exit. Every output is checked outside of the measured time; a contender with a wrong one drops out and is
//! named. A ratio is a peer's median time over ours: 2.0 means that the peer takes twice as long.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use napreduce_protocol::ByteSize;
use serde::Serialize;

use crate::check::Truth;
use crate::error::cannot;
use crate::input::{self, Input};
use crate::machine::{Machine, load_average};
use crate::outputs::peak_task_bytes;
use crate::peers::{self, InstalledPeer, PeerTool, Places, spark_of};
use crate::process::{CommandLine, Interrupt, Sampling, Usage, run};
use crate::program::{BenchmarkJob, Resources};
use crate::report::{Report, dash, seconds, table};
use crate::session::Session;
use crate::statistics::{Interval, Summary, median, ratio_interval, ratio_text};
use crate::workspace::{WorkFolder, remove};

/// How much room an experiment wants per byte of input: the input, our intermediate files, the output.
const ROOM_PER_INPUT_BYTE: u64 = 4;

#[derive(Clone, Debug, Args)]
pub struct SpeedSettings {
    /// Input sizes
    #[arg(long = "size", value_name = "SIZE,...", value_delimiter = ',', default_value = "1GiB")]
    pub sizes: Vec<ByteSize>,
    /// Programs: wordcount, terasort
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "wordcount,terasort")]
    pub programs: Vec<BenchmarkJob>,
    /// Measured runs of each contender, after one that warms up
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Exactly these peers: sort, coreutils, duckdb, polars, pyspark, bare [default: all that are found but
    /// coreutils and pyspark, which are slow]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Option<Vec<PeerTool>>,
    /// A Python that has DuckDB, Polars or PySpark installed
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Our programs on this engine, too, beside themselves: whatever their --on takes
    #[arg(long, value_name = "MASTER", requires = "python")]
    pub on: Option<String>,
    #[command(flatten)]
    pub resources: Resources,
}

/// What a reader needs to repeat the comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conditions {
    /// Measured runs of each contender.
    pub runs: u32,
    #[serde(flatten)]
    pub resources: Resources,
}

pub fn speed(settings: &SpeedSettings, session: &Session) -> Result<SpeedReport> {
    let largest = settings.sizes.iter().max().map_or(0, |size| size.bytes());
    let ours = settings
        .programs
        .iter()
        .map(|program| Ok((*program, program.binary(&session.binaries)?)))
        .collect::<Result<Vec<_>>>()?;
    let work = WorkFolder::make(&session.work, ByteSize::new(largest.saturating_mul(ROOM_PER_INPUT_BYTE)))?;
    if session.work.keep {
        session.say(format!("keeping everything in {}", work.path().display()));
    }
    let machine = Machine::describe();
    let wanted = (settings.peers.as_deref(), settings.python.as_deref());
    let found = peers::find(wanted, work.path(), &session.interrupt)?;
    found.remarks.iter().for_each(|remark| session.say(remark));
    let guest = settings.on.as_deref().zip(found.python.as_deref());
    let mut measurements = Vec::new();
    for &size in &settings.sizes {
        for (program, binary) in &ours {
            let contenders = field(*program, binary, guest, &found.installed);
            let bout = Bout { program: *program, size, work: &work, settings, session };
            measurements.push(bout.run(contenders)?);
        }
    }
    let conditions = Conditions { runs: settings.runs, resources: settings.resources };
    Ok(SpeedReport { experiment: "speed", machine, conditions, measurements })
}

/// Everyone who takes part in `program`, we first.
fn field(
    program: BenchmarkJob,
    binary: &Path,
    guest: Option<(&str, &Path)>,
    installed: &[InstalledPeer],
) -> Vec<Contender> {
    let peers = installed.iter().filter(|found| found.peer.does(program)).cloned().map(Contender::peer);
    let guest = guest.map(|(master, python)| Contender::guest(binary, master, python));
    std::iter::once(Contender::ours(binary)).chain(guest).chain(peers).collect()
}

/// One program at one size: every contender in every round.
struct Bout<'a> {
    program: BenchmarkJob,
    size: ByteSize,
    work: &'a WorkFolder,
    settings: &'a SpeedSettings,
    session: &'a Session,
}

impl Bout<'_> {
    fn run(&self, mut contenders: Vec<Contender>) -> Result<Measurement> {
        let (program, size, session) = (self.program, self.size, self.session);
        session.say(format!("{program} {size}: making the input and the reference"));
        let folder = self.work.path().join(format!("{program}-{size}"));
        let input = input::generate(program, size, &folder, &session.interrupt)?;
        let truth = Truth::of(program, &input.file, &session.interrupt)?;
        for round in 0..=self.settings.runs {
            for contender in contenders.iter_mut().filter(|contender| contender.report.failure.is_none()) {
                self.turn(contender, round, &input, &truth)?;
            }
        }
        if !self.session.work.keep {
            remove(&folder)?;
        }
        Ok(Measurement::new(program, size, input.bytes, contenders))
    }

    /// One run of one contender; round 0 warms up. Its failure is kept with it.
    fn turn(&self, contender: &mut Contender, round: u32, input: &Input, truth: &Truth) -> Result<()> {
        let folder = self.work.fresh(&contender.folder_name(self.program))?;
        input::warm(&input.file, &self.session.interrupt)?;
        self.work.settle()?;
        let resources = self.settings.resources;
        let outcome = contender.run(self.program, input, &folder, truth, resources, &self.session.interrupt);
        // An interrupt ends the experiment; it is no failure of whoever was running.
        self.session.interrupt.check()?;
        let stage = if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", self.settings.runs) };
        let line = match outcome {
            Ok(run) => {
                let line = format!("{:.3} s, output right", run.usage.wall_seconds);
                contender.keep(round, run);
                line
            }
            Err(error) => {
                let failure = error.to_string();
                contender.report.failure = Some(failure.clone());
                format!("out: {failure}")
            }
        };
        self.session.say(format!("{} {} {stage} {}: {line}", self.program, self.size, contender.report.name));
        if !self.session.work.keep {
            remove(&folder)?;
        }
        Ok(())
    }
}

/// One run that ended well with the right output.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// What it took.
    #[serde(flatten)]
    pub usage: Usage,
    /// The largest anonymous memory of any one task as the job's own counters tell; ours only.
    pub task_peak_bytes: Option<u64>,
    /// The machine's load average just before the start.
    pub load_before: Option<f64>,
}

enum Kind {
    Ours {
        binary: PathBuf,
    },
    /// Our program on another engine.
    Guest {
        binary: PathBuf,
        master: String,
        /// Whose Spark it is.
        python: PathBuf,
    },
    PeerTool(InstalledPeer),
}

/// Someone who takes part, with what is known of it so far.
pub struct Contender {
    pub report: ContenderReport,
    kind: Kind,
}

impl Contender {
    pub fn ours(binary: &Path) -> Contender {
        let version = format!("napreduce {}", env!("CARGO_PKG_VERSION"));
        Contender::new("napreduce", version, Kind::Ours { binary: binary.to_owned() })
    }

    /// Our program on Spark, which is that of a Python.
    pub fn guest(binary: &Path, master: &str, python: &Path) -> Contender {
        let version = format!("napreduce {}", env!("CARGO_PKG_VERSION"));
        let (binary, python) = (binary.to_owned(), python.to_owned());
        let name = format!("on {master}");
        Contender::new(&name, version, Kind::Guest { binary, master: master.to_owned(), python })
    }

    pub fn peer(peer: InstalledPeer) -> Contender {
        Contender::new(peer.peer.in_words(), peer.version.clone(), Kind::PeerTool(peer))
    }

    fn new(name: &str, version: String, kind: Kind) -> Contender {
        let report = ContenderReport { name: name.to_owned(), version, ..ContenderReport::default() };
        Contender { report, kind }
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Ours { .. })
    }

    /// The folder of its runs inside the work folder.
    pub fn folder_name(&self, program: BenchmarkJob) -> String {
        // A name as plain as a path of Hadoop has to be.
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        format!("run-{program}-{}", self.report.name.chars().map(plain).collect::<String>())
    }

    /// Keeps a run; round 0 is the warm-up.
    pub fn keep(&mut self, round: u32, run: Timing) {
        match round {
            0 => self.report.warm_up = Some(run),
            _ => self.report.runs.push(run),
        }
    }

    /// Runs once in the empty `folder` and holds the output against the truth.
    pub fn run(
        &mut self,
        program: BenchmarkJob,
        input: &Input,
        folder: &Path,
        truth: &Truth,
        resources: Resources,
        interrupt: &Interrupt,
    ) -> Result<Timing> {
        let output = folder.join("out");
        let command = self.command(program, &input.file, folder, &output, resources)?;
        self.report.command = command.typed();
        let load_before = load_average();
        let usage = run(&command, folder, Sampling::Tree, interrupt)?;
        truth.verify(&output, interrupt)?;
        let task_peak_bytes = if self.is_ours() { peak_task_bytes(&output)? } else { None };
        Ok(Timing { usage, task_peak_bytes, load_before })
    }

    fn command(
        &self,
        program: BenchmarkJob,
        input: &Path,
        folder: &Path,
        output: &Path,
        resources: Resources,
    ) -> Result<CommandLine> {
        match &self.kind {
            Kind::Ours { binary } => Ok(program.command(binary, input, output, resources)),
            Kind::Guest { binary, master, python } => {
                let guest = (master.as_str(), resources.task_memory);
                Ok(spark_of(python, program.guest_command(binary, input, output, guest)))
            }
            Kind::PeerTool(peer) => {
                fs::create_dir(output).map_err(cannot("make", output))?;
                let file = output.join("part-r-00000");
                let places = Places { input, output: &file, scratch: folder };
                Ok(peer.command(program, places, resources)?)
            }
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct SpeedReport {
    pub experiment: &'static str,
    pub machine: Machine,
    pub conditions: Conditions,
    /// One for each size and program.
    pub measurements: Vec<Measurement>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub program: BenchmarkJob,
    pub size: ByteSize,
    pub input_bytes: ByteSize,
    /// Who took part, we first.
    pub contenders: Vec<ContenderReport>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ContenderReport {
    pub name: String,
    pub version: String,
    /// The command of its last run.
    pub command: String,
    /// Why it has no figures, or fewer than were asked for.
    pub failure: Option<String>,
    /// Statistics of wall time in seconds over the measured runs; absent when it failed.
    pub wall_seconds: Option<Summary>,
    /// Its median over ours.
    pub ratio: Option<f64>,
    /// Bootstrap interval (95 %) of that ratio.
    pub ratio_interval: Option<Interval>,
    /// Median processor seconds, user and system together.
    pub processor_seconds: Option<f64>,
    /// Largest anonymous memory of all its processes together, over all runs.
    pub tree_peak_bytes: Option<ByteSize>,
    /// Largest anonymous memory of any one task; ours only.
    pub task_peak_bytes: Option<ByteSize>,
    /// The run before the measured ones.
    pub warm_up: Option<Timing>,
    pub runs: Vec<Timing>,
}

impl Measurement {
    fn new(
        program: BenchmarkJob,
        size: ByteSize,
        input_bytes: ByteSize,
        contenders: Vec<Contender>,
    ) -> Measurement {
        let ours =
            contenders.iter().find(|contender| contender.is_ours() && contender.report.failure.is_none());
        let ours = ours.map_or_else(Vec::new, |contender| wall_times(&contender.report.runs));
        let concluded = |contender: Contender| {
            let is_ours = contender.is_ours();
            contender.report.concluded(is_ours, &ours)
        };
        let contenders = contenders.into_iter().map(concluded).collect();
        Measurement { program, size, input_bytes, contenders }
    }
}

impl ContenderReport {
    /// With figures of what was measured.
    fn concluded(self, is_ours: bool, ours: &[f64]) -> ContenderReport {
        let whole = self.failure.is_none();
        let times = if whole { wall_times(&self.runs) } else { Vec::new() };
        let wall_seconds = Summary::of(&times);
        let ratio = wall_seconds.as_ref().zip(median(ours)).map(|(summary, ours)| summary.median / ours);
        let processor: Vec<f64> =
            self.runs.iter().map(|run| run.usage.user_seconds + run.usage.system_seconds).collect();
        let all = || self.warm_up.iter().chain(&self.runs);
        let tree = all().filter_map(|run| Some(run.usage.memory?.tree_bytes)).max();
        // The counter is exact; the samples stand in for a job that does not count.
        let counted = all().filter_map(|run| run.task_peak_bytes).max();
        let sampled = all().filter_map(|run| Some(run.usage.memory?.descendant_bytes)).max();
        let task = if is_ours { counted.max(sampled) } else { None };
        ContenderReport {
            wall_seconds,
            ratio,
            ratio_interval: ratio_interval(&times, ours),
            processor_seconds: median(&processor).filter(|_| whole),
            tree_peak_bytes: tree.map(ByteSize::new),
            task_peak_bytes: task.map(ByteSize::new),
            ..self
        }
    }

    fn row(&self, input: ByteSize) -> Vec<String> {
        let Some(wall) = &self.wall_seconds else {
            let mut row = vec!["failed".to_owned()];
            row.resize_with(COLUMNS.len(), dash);
            return row;
        };
        let rate = input.bytes() as f64 / wall.median / 1e6;
        vec![
            seconds(wall.median),
            format!("{} .. {}", seconds(wall.min), seconds(wall.max)),
            seconds(wall.mad),
            self.ratio.map_or_else(dash, |ratio| ratio_text(ratio, self.ratio_interval, 2)),
            format!("{rate:.0} MB/s"),
            self.processor_seconds.map_or_else(dash, seconds),
            self.tree_peak_bytes.map_or_else(dash, ByteSize::rounded),
            self.task_peak_bytes.map_or_else(dash, ByteSize::rounded),
        ]
    }
}

fn wall_times(runs: &[Timing]) -> Vec<f64> {
    runs.iter().map(|run| run.usage.wall_seconds).collect()
}

const COLUMNS: [&str; 8] =
    ["median", "min .. max", "MAD", "ratio to ours (95 %)", "rate", "cpu", "peak, all", "peak, task"];

impl Report for SpeedReport {
    /// Whether every contender ran to the end with right outputs.
    fn succeeded(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The figures as a table, with the conditions above and failures below.
    fn table(&self) -> String {
        let Conditions { runs, resources } = &self.conditions;
        let mut rows = Vec::new();
        for measurement in &self.measurements {
            for contender in &measurement.contenders {
                let mut row = vec![format!("{} {}", measurement.program, measurement.size)];
                row.push(contender.name.clone());
                row.extend(contender.row(measurement.input_bytes));
                rows.push(row);
            }
        }
        let mut text = format!(
            "{}\n{} slots, {} task memory, {runs} runs each after one warm-up\n{}\n\n{}\n",
            self.machine.line(),
            resources.slots,
            resources.task_memory,
            self.versions(),
            table(&["program", "contender"], &COLUMNS, rows),
        );
        for failure in self.failures() {
            text.push_str(&format!("\nfailed: {failure}\n"));
        }
        text
    }
}

impl SpeedReport {
    fn failures(&self) -> impl Iterator<Item = String> {
        self.measurements.iter().flat_map(|measurement| {
            let heading = format!("{} {}", measurement.program, measurement.size);
            measurement.contenders.iter().filter_map(move |contender| {
                let failure = contender.failure.as_ref()?;
                Some(format!("{heading} {}: {failure}", contender.name))
            })
        })
    }

    fn versions(&self) -> String {
        let mut versions: Vec<&str> = Vec::new();
        for contender in self.measurements.iter().flat_map(|measurement| &measurement.contenders) {
            if !versions.contains(&contender.version.as_str()) {
                versions.push(&contender.version);
            }
        }
        versions.join(", ")
    }
}
