//! Owns what a cluster costs: terasort embedded, and the same on a cluster of this machine, in turn, over
//! each shuffle path. Only the job is timed, from start to exit; clusters are started before and ended after,
//! one at a time, so that idle daemons of one disturb nobody. Starting and ending daemons belongs to
//! `daemons`, the report to a module of its own.

mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use napreduce_engine::listed;
use napreduce_live::ByteSize;
pub use report::{ClusterReport, PathReport};
use serde::Serialize;

use crate::check::Truth;
use crate::daemons::{Daemons, nap};
use crate::error::{LabError, SlotsError};
use crate::input::{self, Input};
use crate::machine::{Machine, load_average};
use crate::process::{CommandLine, Sampling, Usage, run};
use crate::program::{BenchmarkJob, Resources};
use crate::session::Session;
use crate::workspace::{WorkFolder, remove};

/// How much room it wants per byte of input: the input, intermediate files, fetched ones, the output.
const ROOM_PER_INPUT_BYTE: u64 = 5;

#[derive(Clone, Debug, Args)]
pub struct ClusterSettings {
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
    pub resources: Resources,
}

listed! {
    /// How map output gets to reduces, and in which processes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ShufflePath {
        /// No cluster: the program runs the job by itself.
        Embedded = "embedded",
        /// A cluster whose workers read map output in place.
        Cluster = "cluster",
        /// A cluster that fetches all map output through connections.
        Network = "network",
        Encrypted = "encrypted",
    }
}

impl ShufflePath {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            ShufflePath::Embedded => "embedded",
            ShufflePath::Cluster => "cluster",
            ShufflePath::Network => "cluster, network shuffle",
            ShufflePath::Encrypted => "cluster, encrypted shuffle",
        }
    }

    /// How many times the embedded run's time it may take; encryption has no bound.
    pub fn bound(self) -> Option<f64> {
        match self {
            ShufflePath::Embedded | ShufflePath::Encrypted => None,
            ShufflePath::Cluster => Some(1.15),
            ShufflePath::Network => Some(1.60),
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            ShufflePath::Embedded | ShufflePath::Cluster => &[],
            ShufflePath::Network => &["--network-shuffle"],
            ShufflePath::Encrypted => &["--network-shuffle", "--encrypt-shuffle"],
        }
    }
}

/// One timed job with the right output.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterRun {
    /// From the start of the job's program to its end.
    pub wall_seconds: f64,
    /// The machine's load average just before.
    pub load_before: Option<f64>,
}

/// Runs the comparison.
///
/// # Errors
///
/// When a binary is missing, a job or a daemon fails or an output is wrong, and on an interrupt.
pub fn cluster(settings: &ClusterSettings, session: &Session) -> Result<ClusterReport, LabError> {
    let ClusterSettings { workers, resources: Resources { slots, .. }, .. } = *settings;
    if !slots.is_multiple_of(workers) {
        return Err(SlotsError { slots, workers }.into());
    }
    let binary = BenchmarkJob::Terasort.binary(&session.binaries)?;
    let nap = nap(&session.binaries)?;
    let wanted = ByteSize::new(settings.size.bytes().saturating_mul(ROOM_PER_INPUT_BYTE));
    let work = WorkFolder::make(&session.work, wanted)?;
    let machine = Machine::describe();
    session.say(format!("terasort {}: making the input and the reference", settings.size));
    let folder = work.path().join("in");
    let input = input::generate(BenchmarkJob::Terasort, settings.size, &folder, &session.interrupt)?;
    let truth = Truth::of(BenchmarkJob::Terasort, &input.file, &session.interrupt)?;
    let comparison = Comparison { settings, session, work: &work, binary, nap, input: &input, truth };
    let mut paths = vec![ShufflePath::Embedded, ShufflePath::Cluster, ShufflePath::Network];
    paths.extend(settings.encrypted.then_some(ShufflePath::Encrypted));
    let mut reports: Vec<PathReport> =
        paths.into_iter().map(|path| PathReport::new(path, &comparison.command(path).typed())).collect();
    for round in 0..=settings.runs {
        for report in &mut reports {
            let run = comparison.run(report.path)?;
            let stage = if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", settings.runs) };
            let name = report.path.name();
            session.say(format!("{name} {stage}: {:.3} s, output right", run.wall_seconds));
            report.keep(round, run);
        }
    }
    Ok(ClusterReport::new(machine, settings, input.bytes, reports))
}

struct Comparison<'a> {
    settings: &'a ClusterSettings,
    session: &'a Session,
    work: &'a WorkFolder,
    binary: PathBuf,
    nap: PathBuf,
    input: &'a Input,
    truth: Truth,
}

impl Comparison<'_> {
    /// The job; everything but where it runs is the same on every path.
    fn command(&self, path: ShufflePath) -> CommandLine {
        let resources = self.settings.resources;
        let output = self.folder(path).join("run").join("out");
        let command = BenchmarkJob::Terasort
            .command(&self.binary, &self.input.file, &output, resources)
            .flag("--reduces", resources.slots.to_string())
            .flag("--split-size", self.settings.split_size.to_string());
        match path {
            ShufflePath::Embedded => command,
            _ => command.arg("--quiet").flag("--cluster", self.folder(path).join("cluster")),
        }
    }

    fn up(&self, path: ShufflePath) -> CommandLine {
        let each = (self.settings.resources.slots / self.settings.workers).to_string();
        let command = CommandLine::new(&self.nap)
            .arg("up")
            .flag("--dir", self.folder(path).join("cluster"))
            .flag("--workers", self.settings.workers.to_string())
            .flag("--map-slots", each.clone())
            .flag("--reduce-slots", each);
        path.flags().iter().fold(command, |command, flag| command.arg(*flag))
    }

    fn folder(&self, path: ShufflePath) -> PathBuf {
        self.work.path().join(path.in_words())
    }

    /// One job on this path. The cluster's directory stays between runs, so that the program is uploaded in
    /// the warm-up.
    fn run(&self, path: ShufflePath) -> Result<ClusterRun, LabError> {
        let folder = self.folder(path);
        let interrupt = &self.session.interrupt;
        if !folder.exists() {
            self.work.fresh(path.in_words())?;
        }
        let own = self.work.fresh(&format!("{path}/run"))?;
        input::warm(&self.input.file, interrupt)?;
        let mut daemons = Daemons::none(&folder);
        if path != ShufflePath::Embedded {
            daemons.start("up", &self.up(path))?;
            daemons.wait(|said| said.contains("ready:"), interrupt)?;
        }
        let timed = self.timed(path, &own);
        // What the daemons have to say explains a failure of the job better than the job does.
        daemons.check()?;
        daemons.stop()?;
        let (usage, load_before) = timed?;
        self.truth.verify(&own.join("out"), interrupt)?;
        if !self.session.work.keep {
            remove(&own)?;
        }
        Ok(ClusterRun { wall_seconds: usage.wall_seconds, load_before })
    }

    fn timed(&self, path: ShufflePath, own: &Path) -> Result<(Usage, Option<f64>), LabError> {
        self.work.settle()?;
        let load_before = load_average();
        let usage = run(&self.command(path), own, Sampling::Off, &self.session.interrupt)?;
        Ok((usage, load_before))
    }
}
