//! Owns the results of the comparison of a cluster with the embedded run: what goes into JSON, and the table.
//! A ratio is a path's median time over that of the embedded run: 1.15 means 15 % more.

use napreduce_live::ByteSize;
use serde::Serialize;

use super::{ClusterRun, ClusterSettings, ShufflePath};
use crate::machine::Machine;
use crate::program::Resources;
use crate::statistics::{Interval, Summary, median, ratio_interval, ratio_text};
use crate::table::{dash, seconds, table};

/// All of one comparison.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterReport {
    /// Always `cluster`.
    pub experiment: &'static str,
    pub machine: Machine,
    /// Measured runs on each path.
    pub runs: u32,
    pub workers: u32,
    /// What a job could use.
    #[serde(flatten)]
    pub resources: Resources,
    /// Input bytes for one map task.
    pub split_size: ByteSize,
    /// The length of the input.
    pub input_bytes: ByteSize,
    /// The embedded run first.
    pub paths: Vec<PathReport>,
}

/// One way to run the job.
#[derive(Clone, Debug, Serialize)]
pub struct PathReport {
    pub path: ShufflePath,
    /// The command of the job.
    pub command: String,
    /// Statistics of the wall time of the measured runs.
    pub wall_seconds: Option<Summary>,
    /// Its median over that of the embedded run.
    pub ratio: Option<f64>,
    /// Bootstrap interval (95 %) of that ratio.
    pub ratio_interval: Option<Interval>,
    /// What the ratio may be.
    pub bound: Option<f64>,
    /// Whether it is that; absent without a bound.
    pub within_bound: Option<bool>,
    /// The run before the measured ones; on a cluster the one that uploads the program.
    pub warm_up: Option<ClusterRun>,
    /// Every measured run.
    pub runs: Vec<ClusterRun>,
}

impl PathReport {
    pub(super) fn new(path: ShufflePath, command: &str) -> PathReport {
        PathReport {
            path,
            command: command.to_owned(),
            wall_seconds: None,
            ratio: None,
            ratio_interval: None,
            bound: path.bound(),
            within_bound: None,
            warm_up: None,
            runs: Vec::new(),
        }
    }

    /// Keeps a run; round 0 is the warm-up.
    pub(super) fn keep(&mut self, round: u32, run: ClusterRun) {
        match round {
            0 => self.warm_up = Some(run),
            _ => self.runs.push(run),
        }
    }

    fn times(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.wall_seconds).collect()
    }

    fn judge(&mut self, embedded: &[f64]) {
        let times = self.times();
        self.wall_seconds = Summary::of(&times);
        self.ratio = self.wall_seconds.as_ref().zip(median(embedded)).map(|(own, base)| own.median / base);
        self.ratio_interval = ratio_interval(&times, embedded);
        self.within_bound = self.ratio.zip(self.bound).map(|(ratio, bound)| ratio <= bound);
    }

    fn row(&self, input: ByteSize) -> Vec<String> {
        let wall = self.wall_seconds.as_ref();
        vec![
            self.path.name().to_owned(),
            wall.map_or_else(dash, |wall| seconds(wall.median)),
            wall.map_or_else(dash, |wall| format!("{} .. {}", seconds(wall.min), seconds(wall.max))),
            wall.map_or_else(dash, |wall| format!("{:.0} MB/s", input.bytes() as f64 / wall.median / 1e6)),
            self.ratio.map_or_else(dash, |ratio| ratio_text(ratio, self.ratio_interval, 2)),
            self.bound.map_or_else(dash, |bound| format!("{bound:.2}")),
            match self.within_bound {
                None => dash(),
                Some(true) => "within bound".to_owned(),
                Some(false) => "TOO SLOW".to_owned(),
            },
        ]
    }
}

impl ClusterReport {
    pub(super) fn new(
        machine: Machine,
        settings: &ClusterSettings,
        input_bytes: ByteSize,
        mut paths: Vec<PathReport>,
    ) -> ClusterReport {
        let embedded = paths.iter().find(|report| report.path == ShufflePath::Embedded);
        let embedded = embedded.map_or_else(Vec::new, PathReport::times);
        paths.iter_mut().for_each(|report| report.judge(&embedded));
        ClusterReport {
            experiment: "cluster",
            machine,
            runs: settings.runs,
            workers: settings.workers,
            resources: settings.resources,
            split_size: settings.split_size,
            input_bytes,
            paths,
        }
    }

    /// Whether every path with a bound keeps to it.
    pub fn succeeded(&self) -> bool {
        self.paths.iter().all(|report| report.within_bound != Some(false))
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let columns = ["median", "min .. max", "rate", "ratio to embedded (95 %)", "bound", "verdict"];
        let rows = self.paths.iter().map(|report| report.row(self.input_bytes)).collect();
        format!(
            "{}\nterasort of {}, {} slots of each kind in all ({} workers), {} task memory, splits of {}, {} runs each \
             after one warm-up\n\n{}\n",
            self.machine.line(),
            self.input_bytes.rounded(),
            self.resources.slots,
            self.workers,
            self.resources.task_memory,
            self.split_size,
            self.runs,
            table(&["path"], &columns, rows),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: ShufflePath, times: &[f64]) -> PathReport {
        let mut report = PathReport::new(path, "");
        for (round, wall_seconds) in (0..).zip(times) {
            report.keep(round, ClusterRun { wall_seconds: *wall_seconds, load_before: None });
        }
        report
    }

    #[test]
    fn ratios_are_of_medians_without_the_warm_up_and_judged_by_the_bound() {
        let embedded = [2.0, 1.9, 2.2];
        for (shuffle, times, within) in [
            (ShufflePath::Cluster, [90.0, 2.3, 2.2, 2.4], Some(true)),
            (ShufflePath::Cluster, [1.0, 2.4, 2.4, 2.4], Some(false)),
            (ShufflePath::Network, [1.0, 3.2, 3.0, 3.3], Some(true)),
            (ShufflePath::Encrypted, [1.0, 9.0, 9.0, 9.0], None),
        ] {
            let mut report = path(shuffle, &times);
            report.judge(&embedded);
            assert_eq!(report.within_bound, within, "{shuffle:?} {times:?}");
        }
        let mut same = path(ShufflePath::Embedded, &[9.0, 2.0, 1.9, 2.2]);
        same.judge(&embedded);
        assert_eq!(same.ratio, Some(1.0));
    }
}
