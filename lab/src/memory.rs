//! Checks that tasks keep to their memory budget on inputs of any size: the anonymous memory of each task process,
//! without mapped files, which are page cache.

use anyhow::Result;
use clap::Args;
use napreduce_protocol::ByteSize;
use serde::Serialize;

use crate::check::Truth;
use crate::input;
use crate::machine::Machine;
use crate::outputs::peak_task_bytes;
use crate::process::{Sampling, Usage, run};
use crate::program::{BenchmarkJob, Resources};
use crate::report::{Report, dash, seconds, table};
use crate::session::Session;
use crate::workspace::{WorkFolder, remove};

/// Room per byte of input: the input, intermediate files, the output.
const ROOM_PER_INPUT_BYTE: u64 = 4;

#[derive(Clone, Debug, Args)]
pub struct MemorySettings {
    /// Input size
    #[arg(long, value_name = "SIZE", default_value = "10GiB")]
    pub size: ByteSize,
    /// Programs
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "wordcount,terasort"
    )]
    pub programs: Vec<BenchmarkJob>,
    /// The bound of a task process, as a multiple of its budget
    #[arg(long, value_name = "FACTOR", default_value = "1.3", value_parser = factor)]
    pub factor: f64,
    #[command(flatten)]
    pub resources: Resources,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text
        .parse()
        .map_err(|_| "write a number such as 1.3".to_owned())?;
    if (1.0..=100.0).contains(&factor) {
        Ok(factor)
    } else {
        Err("choose 1 to 100".to_owned())
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct MemoryReport {
    pub experiment: &'static str,
    pub machine: Machine,
    #[serde(flatten)]
    pub resources: Resources,
    /// `factor` times the budget of a task.
    pub bound_bytes: ByteSize,
    /// One for each program.
    pub results: Vec<MemoryResult>,
}

#[derive(Clone, Debug, Serialize)]
pub struct MemoryResult {
    pub program: BenchmarkJob,
    pub input_bytes: ByteSize,
    pub command: String,
    #[serde(flatten)]
    pub usage: Usage,
    /// Largest anonymous memory of any task by the job's counters.
    pub counted_task_peak_bytes: Option<ByteSize>,
    /// Largest anonymous memory of any task process: the larger of counter and samples.
    pub task_peak_bytes: Option<ByteSize>,
    /// Whether the peak is known and below the bound.
    pub within_bound: bool,
}

/// Runs every program once under its budget and checks output and memory.
pub fn memory(settings: &MemorySettings, session: &Session) -> Result<MemoryReport> {
    let wanted = ByteSize::new(settings.size.bytes().saturating_mul(ROOM_PER_INPUT_BYTE));
    let binaries = settings
        .programs
        .iter()
        .map(|program| program.binary(&session.binaries));
    let binaries = binaries.collect::<Result<Vec<_>>>()?;
    let work = WorkFolder::make(&session.work, wanted)?;
    let bound_bytes =
        ByteSize::new((settings.resources.task_memory.bytes() as f64 * settings.factor) as u64);
    let mut report = MemoryReport {
        experiment: "memory",
        machine: Machine::describe(),
        resources: settings.resources,
        bound_bytes,
        results: Vec::new(),
    };
    let size = settings.size;
    let interrupt = &session.interrupt;
    for (&program, binary) in settings.programs.iter().zip(&binaries) {
        let folder = work.fresh(program.in_words())?;
        session.log(format!(
            "{program} {size}: making the input and the reference"
        ));
        let input = input::generate(program, size, &folder.join("in"), interrupt)?;
        let truth = Truth::of(program, &input.file, interrupt)?;
        session.log(format!("{program} {size}: running"));
        let output = folder.join("out");
        let command = program.command(binary, &input.file, &output, settings.resources);
        let usage = run(&command, &folder, Sampling::Tree, interrupt)?;
        truth.verify(&output, interrupt)?;
        let counted = peak_task_bytes(&output)?;
        let sampled = usage
            .memory
            .map(|memory| memory.descendant_bytes)
            .filter(|bytes| *bytes > 0);
        let peak = counted.max(sampled).map(ByteSize::new);
        if !session.work.keep {
            remove(&folder)?;
        }
        let shown = peak.map_or_else(|| "unknown".to_owned(), ByteSize::rounded);
        session.log(format!("{program}: output right, largest task {shown}"));
        report.results.push(MemoryResult {
            program,
            input_bytes: input.bytes,
            command: command.typed(),
            usage,
            counted_task_peak_bytes: counted.map(ByteSize::new),
            task_peak_bytes: peak,
            within_bound: peak.is_some_and(|peak| peak < bound_bytes),
        });
    }
    Ok(report)
}

impl Report for MemoryReport {
    /// Whether every task kept to its bound.
    fn succeeded(&self) -> bool {
        self.results.iter().all(|result| result.within_bound)
    }

    fn table(&self) -> String {
        let rows = self.results.iter().map(|result| {
            let tree = result
                .usage
                .memory
                .map(|memory| ByteSize::new(memory.tree_bytes));
            vec![
                result.program.to_string(),
                result.input_bytes.rounded(),
                seconds(result.usage.wall_seconds),
                result.task_peak_bytes.map_or_else(dash, ByteSize::rounded),
                result
                    .counted_task_peak_bytes
                    .map_or_else(dash, ByteSize::rounded),
                tree.map_or_else(dash, ByteSize::rounded),
                if result.within_bound {
                    "within bound"
                } else {
                    "TOO MUCH"
                }
                .to_owned(),
            ]
        });
        let columns = [
            "input",
            "time",
            "largest task",
            "by counter",
            "all processes",
            "verdict",
        ];
        format!(
            "{}\n{} slots, {} task memory, bound {} for each task process\n\n{}\n",
            self.machine.line(),
            self.resources.slots,
            self.resources.task_memory,
            self.bound_bytes.rounded(),
            table(&["program"], &columns, rows.collect()),
        )
    }
}
