//! Owns the comparison of speed: our programs and their peers on the same input, in turn, whole process from
//! start to exit. Every output is checked outside the measured time; a contender with a wrong one is taken
//! out and named. Finding peers, making inputs and judging outputs belong to modules of their own.

mod contender;
mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use contender::Contender;
pub use contender::Timing;
use napreduce_live::ByteSize;
pub use report::{ContenderReport, Measurement, SpeedReport};
use serde::Serialize;

use crate::check::Truth;
use crate::error::LabError;
use crate::input::{self, Input};
use crate::machine::Machine;
use crate::peers::{self, InstalledPeer, PeerTool};
use crate::program::{BenchmarkJob, Resources};
use crate::session::Session;
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
    /// What each could use.
    #[serde(flatten)]
    pub resources: Resources,
}

/// Runs the comparison.
///
/// # Errors
///
/// When binaries or peers are missing, when the work folder cannot be used, and on an interrupt. A contender
/// that fails or gives a wrong output is part of the report and no error here.
pub fn speed(settings: &SpeedSettings, session: &Session) -> Result<SpeedReport, LabError> {
    let largest = settings.sizes.iter().max().map_or(0, |size| size.bytes());
    let ours = settings
        .programs
        .iter()
        .map(|program| Ok((*program, program.binary(&session.binaries)?)))
        .collect::<Result<Vec<_>, LabError>>()?;
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
    fn run(&self, mut contenders: Vec<Contender>) -> Result<Measurement, LabError> {
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
    fn turn(
        &self,
        contender: &mut Contender,
        round: u32,
        input: &Input,
        truth: &Truth,
    ) -> Result<(), LabError> {
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
