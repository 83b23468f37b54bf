//! The comparison of speed: wordcount and terasort by our programs and by their peers, on the same input.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use napreduce_protocol::ByteSize;
use serde::Serialize;

use crate::check::Truth;
use crate::contest::{
    Arena, Contender, ContenderReport, Contest, Program, failures, our_version, versions,
};
use crate::error::cannot;
use crate::input::{self, Input};
use crate::machine::Machine;
use crate::peers::{self, InstalledPeer, PeerTool, Places, Wanted, spark_of};
use crate::process::{CommandLine, Interrupt, Sampling};
use crate::program::{BenchmarkJob, Guest, Resources};
use crate::report::{Report, dash, seconds, table};
use crate::session::Session;
use crate::workspace::{WorkFolder, remove};

/// Free bytes that an experiment needs per byte of input: the input, our intermediate files, the output.
const ROOM_PER_INPUT_BYTE: u64 = 4;

#[derive(Clone, Debug, Args)]
pub struct SpeedSettings {
    /// Input sizes
    #[arg(
        long = "size",
        value_name = "SIZE,...",
        value_delimiter = ',',
        default_value = "1GiB"
    )]
    pub sizes: Vec<ByteSize>,
    /// Programs
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "wordcount,terasort"
    )]
    pub programs: Vec<BenchmarkJob>,
    /// Measured runs of each contender, after one that warms up
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Exactly these peers [default: all that are found but coreutils and pyspark, which are slow]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Option<Vec<PeerTool>>,
    /// A Python that has DuckDB, Polars or PySpark installed
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Also run our programs on this engine, as their option --on names it
    #[arg(long, value_name = "MASTER", requires = "python")]
    pub on: Option<String>,
    #[command(flatten)]
    pub resources: Resources,
}

/// The information needed to repeat the comparison.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conditions {
    /// Measured runs of each contender.
    pub runs: u32,
    #[serde(flatten)]
    pub resources: Resources,
}

pub fn speed(settings: &SpeedSettings, session: &Session) -> Result<SpeedReport> {
    let largest = settings.sizes.iter().max().map_or(0, |size| size.bytes());
    let binaries = settings
        .programs
        .iter()
        .map(|program| program.binary(&session.binaries));
    let binaries = binaries.collect::<Result<Vec<_>>>()?;
    let room = ByteSize::new(largest.saturating_mul(ROOM_PER_INPUT_BYTE));
    let work = WorkFolder::make(&session.work, room)?;
    session.log_kept_folder(&work);
    let machine = Machine::describe();
    let wanted = Wanted {
        peers: settings.peers.as_deref(),
        python: settings.python.as_deref(),
    };
    let found = peers::find(wanted, work.path(), &session.interrupt)?;
    found.remarks.iter().for_each(|remark| session.log(remark));
    let arena = Arena {
        work: &work,
        session,
        rounds: settings.runs,
        sampling: Sampling::Tree,
    };
    let mut measurements = Vec::new();
    for &size in &settings.sizes {
        for (&program, binary) in settings.programs.iter().zip(&binaries) {
            session.log(format!(
                "{program} {size}: making the input and the reference"
            ));
            let folder = work.path().join(format!("{program}-{size}"));
            let input = input::generate(program, size, &folder, &session.interrupt)?;
            let truth = Truth::of(program, &input.file, &session.interrupt)?;
            let job = Job {
                program,
                input: &input,
                truth: &truth,
                resources: settings.resources,
            };
            let mut contenders = vec![Contender::ours(job.by(Kind::Ours { binary }))];
            if let (Some(master), Some(python)) = (settings.on.as_deref(), found.python.as_deref())
            {
                let guest = job.by(Kind::Guest {
                    binary,
                    master,
                    python,
                });
                contenders.push(Contender::new(
                    &format!("on {master}"),
                    our_version(),
                    guest,
                ));
            }
            for peer in found
                .installed
                .iter()
                .filter(|found| found.peer.does(program))
            {
                let version = peer.version.clone();
                contenders.push(Contender::new(
                    peer.peer.in_words(),
                    version,
                    job.by(Kind::Peer(peer)),
                ));
            }
            let title = format!("{program} {size}");
            let input_file = input.file.clone();
            let mut contest = Contest {
                title,
                job: program.in_words(),
                input: input_file,
                contenders,
            };
            for round in 0..=settings.runs {
                arena.round(&mut contest, round)?;
            }
            let contenders = contest.reports();
            measurements.push(Measurement {
                program,
                size,
                input_bytes: input.bytes,
                contenders,
            });
            if !session.work.keep {
                remove(&folder)?;
            }
        }
    }
    let conditions = Conditions {
        runs: settings.runs,
        resources: settings.resources,
    };
    Ok(SpeedReport {
        experiment: "speed",
        machine,
        conditions,
        measurements,
    })
}

/// The work of a contest.
#[derive(Clone, Copy)]
struct Job<'a> {
    program: BenchmarkJob,
    input: &'a Input,
    truth: &'a Truth,
    resources: Resources,
}

enum Kind<'a> {
    Ours {
        binary: &'a Path,
    },
    /// Our program on another engine.
    Guest {
        binary: &'a Path,
        master: &'a str,
        /// The Python with that Spark.
        python: &'a Path,
    },
    Peer(&'a InstalledPeer),
}

struct Entry<'a> {
    job: Job<'a>,
    kind: Kind<'a>,
}

impl<'a> Job<'a> {
    fn by(self, kind: Kind<'a>) -> Entry<'a> {
        Entry { job: self, kind }
    }
}

impl Program for Entry<'_> {
    fn command(&self, folder: &Path) -> Result<CommandLine> {
        let Job {
            program,
            input,
            resources,
            ..
        } = self.job;
        let input = input.file.as_path();
        let output = folder.join("out");
        match self.kind {
            Kind::Ours { binary } => Ok(program.command(binary, input, &output, resources)),
            Kind::Guest {
                binary,
                master,
                python,
            } => {
                let guest = Guest {
                    master,
                    task_memory: resources.task_memory,
                };
                Ok(spark_of(
                    python,
                    program.guest_command(binary, input, &output, guest),
                ))
            }
            Kind::Peer(peer) => {
                fs::create_dir(&output).map_err(cannot("make", &output))?;
                let file = output.join("part-r-00000");
                peer.command(
                    program,
                    Places {
                        input,
                        output: &file,
                        scratch: folder,
                    },
                    resources,
                )
            }
        }
    }

    fn check(&self, output: &Path, interrupt: &Interrupt) -> Result<()> {
        self.job.truth.verify(output, interrupt)
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
    /// Ours first.
    pub contenders: Vec<ContenderReport>,
}

const COLUMNS: [&str; 8] = [
    "median",
    "min .. max",
    "ratio to ours (95 %)",
    "MAD",
    "rate",
    "cpu",
    "peak, all",
    "peak, task",
];

fn row(contender: &ContenderReport, input: ByteSize) -> Vec<String> {
    let (Some(cells), Some(wall)) = (contender.cells(), &contender.wall_seconds) else {
        let mut row = vec!["failed".to_owned()];
        row.resize_with(COLUMNS.len(), dash);
        return row;
    };
    let mut row = Vec::from(cells);
    row.extend([
        seconds(wall.mad),
        format!("{:.0} MB/s", input.bytes() as f64 / wall.median / 1e6),
        contender.processor_seconds.map_or_else(dash, seconds),
        contender
            .tree_peak_bytes
            .map_or_else(dash, ByteSize::rounded),
        contender
            .task_peak_bytes
            .map_or_else(dash, ByteSize::rounded),
    ]);
    row
}

impl Report for SpeedReport {
    /// Whether every contender ran to the end with right outputs.
    fn succeeded(&self) -> bool {
        self.failures().is_empty()
    }

    fn table(&self) -> String {
        let Conditions { runs, resources } = &self.conditions;
        let mut rows = Vec::new();
        for measurement in &self.measurements {
            for contender in &measurement.contenders {
                let mut cells = vec![format!("{} {}", measurement.program, measurement.size)];
                cells.push(contender.name.clone());
                cells.extend(row(contender, measurement.input_bytes));
                rows.push(cells);
            }
        }
        let contenders = self
            .measurements
            .iter()
            .flat_map(|measurement| &measurement.contenders);
        let mut text = format!(
            "{}\n{} slots, {} task memory, {runs} runs each after one warm-up\n{}\n\n{}\n",
            self.machine.line(),
            resources.slots,
            resources.task_memory,
            versions(contenders),
            table(&["program", "contender"], &COLUMNS, rows),
        );
        for failure in self.failures() {
            text.push_str(&format!("\n{failure}\n"));
        }
        text
    }
}

impl SpeedReport {
    fn failures(&self) -> Vec<String> {
        let of = |measurement: &Measurement| {
            failures(
                format_args!("{} {}", measurement.program, measurement.size),
                &measurement.contenders,
            )
        };
        self.measurements.iter().flat_map(of).collect()
    }
}
