//! Owns what is told of a replay: what was run, what came out under each policy, and whether the simulator
//! agrees. The rows of jobs belong to `line`.

use std::fmt::Write;

use napreduce_schedulers::SchedulerName;
use napreduce_sim::ClusterShape;
use serde::Serialize;

use super::agreement::Agreement;
use super::plan::Costs;
use super::scale::Scale;
use crate::jobs::TaskBody;
use crate::machine::Machine;
use crate::table::table;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// Always `replay`.
    pub experiment: &'static str,
    pub machine: Machine,
    pub workload: String,
    pub scale: Scale,
    pub cluster: ClusterShape,
    pub body: TaskBody,
    /// Every interval that was divided, under each policy.
    pub intervals: Vec<(SchedulerName, Vec<String>)>,
    /// With which the same was simulated.
    pub costs: Costs,
    pub runs: Vec<ReplayRun>,
    pub agreements: Vec<(SchedulerName, Agreement)>,
    /// Whether all that was asked for was run.
    pub complete: bool,
}

/// One run in figures. Times in seconds, at the live scale.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayRun {
    pub scheduler: SchedulerName,
    /// From 1.
    pub repetition: u32,
    pub seed: u64,
    pub jobs: usize,
    pub mean_sojourn: f64,
    /// The same in simulated time.
    pub simulated_mean_sojourn: f64,
    pub makespan: f64,
    pub preemptions: u64,
    /// The latest submission, and how late one may be.
    pub late: f64,
    pub late_max: f64,
    /// Whether no submission was later than that.
    pub counts: bool,
    /// Whether every output is that of the same job undisturbed.
    pub identical: bool,
}

impl ReplayReport {
    /// Whether every output is right, and there is a run that counts under every policy.
    pub fn succeeded(&self) -> bool {
        let counted =
            |scheduler: SchedulerName| self.runs.iter().any(|run| run.scheduler == scheduler && run.counts);
        self.runs.iter().all(|run| run.identical)
            && self.runs.iter().all(|run| counted(run.scheduler))
            && !self.runs.is_empty()
    }

    /// For people.
    pub fn table(&self) -> String {
        let ClusterShape { machines, map_slots, reduce_slots, map_machines, .. } = self.cluster;
        let mut text = format!("{}\n\n", self.machine.line());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}, times / {}, tasks and bytes / {}, on {machines} workers with {map_slots} map and {reduce_slots} reduce slots{}",
            self.workload,
            self.scale.time,
            self.scale.tasks,
            map_machines.map_or(String::new(), |apart| format!(
                " ({apart} with map slots alone, the others with reduce slots)"
            )),
        );
        for (scheduler, intervals) in &self.intervals {
            let _ = writeln!(text, "{scheduler}: {}", intervals.join(", "));
        }
        let Costs { launch, suspend, resume, checkpoint_write, checkpoint_read } = self.costs;
        let millis = |span: napreduce_engine::Span| span.0 as f64 / 1e3;
        let _ = writeln!(
            text,
            "simulated with: launch {} ms, suspend {} ms, resume {} ms, checkpoint {} ms, restore {} ms more\n",
            millis(launch),
            millis(suspend),
            millis(resume),
            millis(checkpoint_write),
            millis(checkpoint_read)
        );
        let figures =
            ["jobs", "mean sojourn", "simulated", "makespan", "preemptions", "latest", "", "outputs"];
        let rows = self.runs.iter().map(ReplayRun::row).collect();
        let _ = writeln!(text, "{}\n", table(&["run"], &figures, rows));
        for (scheduler, agreement) in &self.agreements {
            let _ = writeln!(text, "{scheduler}: {}", agreement.line());
        }
        for (scheduler, _) in &self.intervals {
            if !self.agreements.iter().any(|(judged, _)| judged == scheduler) {
                let _ = writeln!(text, "{scheduler}: no run counts, so that nothing is said of agreement");
            }
        }
        if !self.complete {
            let _ = writeln!(text, "it was interrupted: this is what was measured until then");
        }
        text
    }
}

impl ReplayRun {
    fn row(&self) -> Vec<String> {
        vec![
            format!("{} {}", self.scheduler, self.repetition),
            self.jobs.to_string(),
            format!("{:.3} s", self.mean_sojourn),
            format!("{:.3} s", self.simulated_mean_sojourn),
            format!("{:.2} s", self.makespan),
            self.preemptions.to_string(),
            format!("{:.1} ms", self.late * 1e3),
            if self.counts { "counts" } else { "TOO LATE: does not count" }.to_owned(),
            if self.identical { "right" } else { "DIFFER" }.to_owned(),
        ]
    }
}
