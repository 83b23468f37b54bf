//! Owns the results of a comparison: what goes into JSON, and the table for people.
//! A ratio is a peer's median time over ours: 2.0 means that the peer takes twice as long.

use napreduce_live::ByteSize;
use serde::Serialize;

use super::Conditions;
use super::contender::{Contender, Timing};
use crate::machine::Machine;
use crate::program::BenchmarkJob;
use crate::statistics::{Interval, Summary, median, ratio_interval, ratio_text};
use crate::table::{dash, seconds, table};

/// All of one comparison.
#[derive(Clone, Debug, Serialize)]
pub struct SpeedReport {
    /// Always `speed`.
    pub experiment: &'static str,
    pub machine: Machine,
    /// How it ran.
    pub conditions: Conditions,
    /// One for each size and program.
    pub measurements: Vec<Measurement>,
}

/// One program at one size.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    pub program: BenchmarkJob,
    pub size: ByteSize,
    /// The length of the input.
    pub input_bytes: ByteSize,
    /// Who took part, we first.
    pub contenders: Vec<ContenderReport>,
}

/// One contender of a measurement.
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
    /// Every measured run.
    pub runs: Vec<Timing>,
}

impl Measurement {
    pub(super) fn new(
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

impl SpeedReport {
    /// Whether every contender ran to the end with right outputs.
    pub fn succeeded(&self) -> bool {
        self.failures().next().is_none()
    }

    fn failures(&self) -> impl Iterator<Item = String> {
        self.measurements.iter().flat_map(|measurement| {
            let heading = format!("{} {}", measurement.program, measurement.size);
            measurement.contenders.iter().filter_map(move |contender| {
                let failure = contender.failure.as_ref()?;
                Some(format!("{heading} {}: {failure}", contender.name))
            })
        })
    }

    /// The figures as a table, with the conditions above and failures below.
    pub fn table(&self) -> String {
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
