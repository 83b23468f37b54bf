//! Owns the report of a load: what was asked of a cluster, how fast it was done, and what the coordinator
//! used for it. Making the load belongs to the experiment.

use serde::Serialize;

use super::usage::Used;
use crate::machine::Machine;
use crate::statistics::{known_percentile, percentile};
use crate::table::{dash, table};

const MIB: f64 = 1024.0 * 1024.0;

/// All of one measurement.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// Always `load`.
    pub experiment: &'static str,
    pub machine: Machine,
    /// What each was done with.
    pub loads: Vec<Load>,
}

/// One load.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// What was asked for, in words.
    pub what: String,
    pub jobs: u64,
    /// Of all jobs together.
    pub tasks: u64,
    pub wall_seconds: f64,
    /// How long single jobs took from submission to their end, in milliseconds: half of them at most so long.
    pub job_p50_ms: Option<f64>,
    /// All but one in a hundred.
    pub job_p99_ms: Option<f64>,
    /// Processor time of the coordinator, the workers and their tasks.
    pub processor_seconds: f64,
    /// Processor time of the coordinator.
    pub coordinator_seconds: f64,
    /// The most memory that the coordinator had resident, since it was started.
    pub coordinator_peak_mib: f64,
}

impl Load {
    pub(super) fn new(
        what: String,
        (jobs, tasks): (u64, u64),
        wall_seconds: f64,
        job_ms: &[f64],
        used: Used,
    ) -> Load {
        Load {
            what,
            jobs,
            tasks,
            wall_seconds,
            job_p50_ms: percentile(job_ms, 50.0),
            job_p99_ms: known_percentile(job_ms, 99.0),
            processor_seconds: used.all,
            coordinator_seconds: used.coordinator,
            coordinator_peak_mib: used.peak_bytes as f64 / MIB,
        }
    }

    fn row(&self) -> Vec<String> {
        let rate = |count: u64, unit: &str| match count {
            0 => "-".to_owned(),
            _ => format!("{:.1} {unit}/s", count as f64 / self.wall_seconds.max(1e-9)),
        };
        let millis = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.0} ms"));
        let each = match self.tasks {
            0 => format!("{:.1} ms/s", 1e3 * self.coordinator_seconds / self.wall_seconds.max(1e-9)),
            tasks => format!("{:.0} us/task", 1e6 * self.coordinator_seconds / tasks as f64),
        };
        vec![
            self.what.clone(),
            format!("{:.2} s", self.wall_seconds),
            if self.jobs > 1 { rate(self.jobs, "jobs") } else { rate(self.tasks, "tasks") },
            millis(self.job_p50_ms),
            millis(self.job_p99_ms),
            format!("{:.2} s", self.processor_seconds),
            format!("{:.2} s", self.coordinator_seconds),
            each,
            format!("{:.0} MiB", self.coordinator_peak_mib),
        ]
    }
}

impl LoadReport {
    pub(super) fn new(loads: Vec<Load>) -> LoadReport {
        LoadReport { experiment: "load", machine: Machine::describe(), loads }
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let figures =
            ["time", "rate", "job p50", "job p99", "processor", "coordinator", "of it", "peak memory"];
        let rows = self.loads.iter().map(Load::row).collect();
        format!("{}\n\n{}\n", self.machine.line(), table(&["load"], &figures, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_shown_with_what_it_cost() {
        let used = Used { all: 7.0, coordinator: 2.0, peak_bytes: 64 << 20 };
        let many = Load::new("jobs".to_owned(), (100, 200), 4.0, &[10.0, 20.0, 30.0], used);
        assert_eq!(
            many.row(),
            ["jobs", "4.00 s", "25.0 jobs/s", "20 ms", "-", "7.00 s", "2.00 s", "10000 us/task", "64 MiB"]
        );
        let idle = Load::new("idle".to_owned(), (0, 0), 10.0, &[], used);
        assert_eq!(
            idle.row(),
            ["idle", "10.00 s", "-", "-", "-", "7.00 s", "2.00 s", "200.0 ms/s", "64 MiB"]
        );
        let one = Load::new("one".to_owned(), (1, 500), 5.0, &[], used);
        assert_eq!(one.row()[2], "100.0 tasks/s");
    }
}
