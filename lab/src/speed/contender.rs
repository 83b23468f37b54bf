//! Owns one contender of a comparison: how it is run once, what that took, and all it did so far.
//! When it is its turn belongs to the comparison.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::report::ContenderReport;
use crate::check::Truth;
use crate::error::LabError;
use crate::input::Input;
use crate::job_result::peak_task_bytes;
use crate::machine::load_average;
use crate::peers::{InstalledPeer, Places, spark_of};
use crate::process::{CommandLine, Interrupt, Sampling, Usage, run};
use crate::program::{BenchmarkJob, Resources};
use crate::workspace::WorkError;

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
    /// Our program behind `binary`.
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

    /// Another program.
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
    ) -> Result<Timing, LabError> {
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
    ) -> Result<CommandLine, LabError> {
        match &self.kind {
            Kind::Ours { binary } => Ok(program.command(binary, input, output, resources)),
            Kind::Guest { binary, master, python } => {
                let guest = (master.as_str(), resources.task_memory);
                Ok(spark_of(python, program.guest_command(binary, input, output, guest)))
            }
            Kind::PeerTool(peer) => {
                fs::create_dir(output).map_err(WorkError::using("make", output))?;
                let file = output.join("part-r-00000");
                let places = Places { input, output: &file, scratch: folder };
                Ok(peer.command(program, places, resources)?)
            }
        }
    }
}
