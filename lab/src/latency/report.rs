//! Owns the report of latencies: samples from histories of jobs, their percentiles, the table.
//! How the samples come about belongs to the experiment.

use napreduce_live::{JobDetail, PreemptionEnd};
use serde::Serialize;

use super::Pair;
use crate::machine::Machine;
use crate::statistics::{known_percentile, percentile, samples_needed};
use crate::table::{dash, table};
use crate::words::counted;

/// All of one measurement.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyReport {
    /// Always `latency`.
    pub experiment: &'static str,
    pub machine: Machine,
    /// From the decision to the slot verified free.
    pub suspend: Latencies,
    /// From the decision to the task running again.
    pub resume: Latencies,
    /// From the decision to the slot free, the work saved.
    pub checkpoint: Latencies,
    /// From the launch of an attempt to its first new output.
    pub restore: Latencies,
    /// Whether every preempted job had the output of an undisturbed one.
    pub identical: bool,
    /// Preemptions that ended otherwise, and restored attempts that started from scratch.
    pub otherwise: usize,
}

/// Latencies of one kind, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latencies {
    pub samples: usize,
    /// Half of them are at most this.
    pub p50_ms: Option<f64>,
    /// All but one in a hundred are; of a hundred or more.
    pub p99_ms: Option<f64>,
    /// All are.
    pub max_ms: Option<f64>,
    /// The p50 that is promised.
    pub p50_bound_ms: Option<f64>,
    /// The p99.
    pub p99_bound_ms: Option<f64>,
    /// The part of it that the worker sees, from the order's arrival: its p50.
    pub worker_p50_ms: Option<f64>,
    /// Every sample.
    pub every_ms: Vec<f64>,
    #[serde(skip)]
    worker_ms: Vec<f64>,
}

impl Latencies {
    fn bounded(p50: f64, p99: Option<f64>) -> Latencies {
        Latencies { p50_bound_ms: Some(p50), p99_bound_ms: p99, ..Latencies::default() }
    }

    fn add(&mut self, from_micros: u64, to_micros: u64, worker_micros: Option<u64>) {
        self.every_ms.push(to_micros.saturating_sub(from_micros) as f64 / 1e3);
        self.worker_ms.extend(worker_micros.map(|micros| micros as f64 / 1e3));
    }

    fn conclude(&mut self, most: usize) {
        self.every_ms.truncate(most);
        self.worker_ms.truncate(most);
        self.samples = self.every_ms.len();
        self.p50_ms = known_percentile(&self.every_ms, 50.0);
        self.p99_ms = known_percentile(&self.every_ms, 99.0);
        self.max_ms = percentile(&self.every_ms, 100.0);
        self.worker_p50_ms = known_percentile(&self.worker_ms, 50.0);
    }

    /// The bounds that are judged are kept; none is with fewer samples than its percentile needs.
    fn is_kept(&self) -> bool {
        let kept = |value: Option<f64>, bound: Option<f64>| {
            value.zip(bound).is_none_or(|(value, bound)| value <= bound)
        };
        self.samples > 0 && kept(self.p50_ms, self.p50_bound_ms) && kept(self.p99_ms, self.p99_bound_ms)
    }

    /// So many samples the bounds need, if there are fewer.
    fn lacking(&self) -> Option<usize> {
        let bounds = [(50.0, self.p50_bound_ms), (99.0, self.p99_bound_ms)];
        let needed = bounds.into_iter().filter(|(_, bound)| bound.is_some());
        let needed = needed.map(|(percent, _)| samples_needed(percent)).max();
        needed.filter(|needed| self.samples < *needed)
    }

    fn row(&self, name: &str) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.3}"));
        let bounds = match (self.p50_bound_ms, self.p99_bound_ms) {
            (Some(p50), Some(p99)) => format!("p50 {p50:.0}, p99 {p99:.0}"),
            (Some(p50), None) => format!("p50 {p50:.0}"),
            _ => "-".to_owned(),
        };
        vec![
            name.to_owned(),
            self.samples.to_string(),
            shown(self.p50_ms),
            shown(self.p99_ms),
            shown(self.max_ms),
            shown(self.worker_p50_ms),
            bounds,
            match (self.is_kept(), self.lacking()) {
                (false, _) => "NOT KEPT".to_owned(),
                (true, None) => "kept".to_owned(),
                (true, Some(needed)) if self.p50_ms.is_some() => format!("p50 kept; p99 needs {needed}"),
                (true, Some(needed)) => format!("not judged: needs {needed}"),
            },
        ]
    }
}

impl LatencyReport {
    pub(super) fn new(machine: Machine) -> LatencyReport {
        LatencyReport {
            experiment: "latency",
            machine,
            suspend: Latencies::bounded(2.0, Some(20.0)),
            resume: Latencies::bounded(2.0, None),
            checkpoint: Latencies::bounded(50.0, None),
            restore: Latencies::bounded(60.0, None),
            identical: true,
            otherwise: 0,
        }
    }

    /// How many samples of both kinds of a pair there are.
    pub(super) fn count(&self, pair: Pair) -> usize {
        let (first, second) = match pair {
            Pair::SuspendAndResume => (&self.suspend, &self.resume),
            Pair::CheckpointAndRestore => (&self.checkpoint, &self.restore),
        };
        first.every_ms.len().min(second.every_ms.len())
    }

    /// Takes the samples of a job that has ended.
    pub(super) fn take(&mut self, pair: Pair, detail: &JobDetail, identical: bool) {
        self.identical &= identical;
        let (sought, stops) = match pair {
            Pair::SuspendAndResume => (PreemptionEnd::Suspended, &mut self.suspend),
            Pair::CheckpointAndRestore => (PreemptionEnd::Checkpointed, &mut self.checkpoint),
        };
        for one in &detail.preemptions {
            match (one.end, one.freed_micros) {
                (Some(end), Some(freed)) if end == sought => {
                    stops.add(one.requested_micros, freed, one.worker_micros);
                }
                // It was done before it could be stopped: nothing went wrong.
                (Some(PreemptionEnd::Finished), _) => {}
                _ => self.otherwise += 1,
            }
        }
        for one in &detail.resumes {
            if let Some(resumed) = one.resumed_micros {
                self.resume.add(one.ordered_micros, resumed, one.worker_micros);
            }
        }
        for one in &detail.restores {
            match (one.restored_micros, &one.refused) {
                (_, Some(_)) => self.otherwise += 1,
                (Some(restored), None) => self.restore.add(one.ordered_micros, restored, one.worker_micros),
                (None, None) => {}
            }
        }
    }

    pub(super) fn conclude(&mut self, most: usize) {
        for one in [&mut self.suspend, &mut self.resume, &mut self.checkpoint, &mut self.restore] {
            one.conclude(most);
        }
    }

    /// Whether every bound is kept and every output right.
    pub fn succeeded(&self) -> bool {
        let all = [&self.suspend, &self.resume, &self.checkpoint, &self.restore];
        self.identical && all.iter().all(|one| one.is_kept())
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let rows = vec![
            self.suspend.row("suspend: decided to slot free"),
            self.resume.row("resume: decided to running"),
            self.checkpoint.row("checkpoint: decided to slot free"),
            self.restore.row("restore: launched to new output"),
        ];
        let columns = ["samples", "p50, ms", "p99, ms", "max, ms", "worker's p50", "bounds", "verdict"];
        let outputs = if self.identical { "all outputs right" } else { "AN OUTPUT DIFFERS" };
        let otherwise = match self.otherwise {
            0 => String::new(),
            count => format!("; {} ended otherwise than asked", counted(count, "preemption")),
        };
        format!("{}\n\n{}\n\n{outputs}{otherwise}\n", self.machine.line(), table(&["what"], &columns, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(suspend_ms: &[u64]) -> LatencyReport {
        let mut report = LatencyReport::new(Machine::describe());
        for ms in suspend_ms {
            report.suspend.add(1_000_000, 1_000_000 + ms * 1_000, Some(500));
        }
        for (latencies, micros) in
            [(&mut report.resume, 900), (&mut report.checkpoint, 30_000), (&mut report.restore, 59_000)]
        {
            (0..6).for_each(|_| latencies.add(5, 5 + micros, None));
        }
        report.conclude(200);
        report
    }

    #[test]
    fn percentiles_are_judged_by_their_bounds() {
        let good = report(&[[1; 90].as_slice(), &[3; 10]].concat());
        assert!(good.succeeded() && !good.table().contains("needs"), "{}", good.table());
        assert_eq!((good.suspend.p50_ms, good.suspend.max_ms), (Some(1.0), Some(3.0)));
        assert_eq!(good.suspend.worker_p50_ms, Some(0.5));
        let slow = report(&[[1; 98].as_slice(), &[21; 2]].concat());
        assert!(!slow.succeeded() && slow.table().contains("NOT KEPT"), "{}", slow.table());
    }

    #[test]
    fn tail_of_ten_samples_is_not_judged() {
        let few = report(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 90]);
        assert_eq!((few.suspend.p50_ms, few.suspend.p99_ms), (Some(1.0), None));
        assert!(few.succeeded() && few.table().contains("p50 kept; p99 needs 100"), "{}", few.table());
        let fewer = report(&[1, 90]);
        assert_eq!(fewer.suspend.p50_ms, None);
        assert!(fewer.table().contains("not judged: needs 100"), "{}", fewer.table());
    }

    #[test]
    fn the_four_kinds_have_the_names_that_programs_look_for() {
        let json = serde_json::to_value(report(&[1; 100])).unwrap();
        for kind in ["suspend", "resume", "checkpoint", "restore"] {
            for value in ["p50_ms", "max_ms"] {
                assert!(json[kind][value].is_f64(), "{kind} {value}");
            }
        }
    }

    #[test]
    fn no_sample_keeps_no_bound() {
        let mut none = LatencyReport::new(Machine::describe());
        none.conclude(200);
        assert!(!none.succeeded());
    }
}
