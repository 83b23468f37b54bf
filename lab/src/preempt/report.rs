//! Owns the report of the comparison of primitives: what goes into JSON, and the tables.
//! The figures themselves come from `cells` and `four_ways`, the page for a browser is `page`.

use serde::Serialize;

use super::cells::{Cell, TwoJobsRun, Verdict, cells, seconds_per_swapped_gib, verdicts};
use super::four_ways::{Way, WayRun};
use super::{JobWeight, PreemptSettings, Strategy, TaskForm};
use crate::confinement::{MemoryLimit, Tier};
use crate::machine::Machine;
use crate::statistics::{Interval, SAMPLES_MIN, Summary, ratio_interval, ratio_text};
use crate::table::{dash, table};
use crate::words::counted;

/// All of one comparison.
#[derive(Clone, Debug, Serialize)]
pub struct PreemptReport {
    /// Always `preempt`.
    pub experiment: &'static str,
    pub machine: Machine,
    /// How often each cell was measured.
    pub repetitions: u32,
    /// Which kind of task the two jobs consist of.
    pub form: TaskForm,
    /// How long a task is meant to take alone.
    pub task_seconds: f64,
    /// Memory for hungry tasks.
    pub limit: MemoryLimit,
    /// Memory of a hungry task.
    pub fill_bytes: napreduce_live::ByteSize,
    /// How hungry tasks were confined; absent when there were none.
    pub tier: Option<Tier>,
    /// What a job took alone.
    pub alone_seconds: Vec<(JobWeight, f64)>,
    pub runs: Vec<TwoJobsRun>,
    /// The same by cell.
    pub cells: Vec<Cell>,
    /// Ratios, with the bounds they should keep to.
    pub verdicts: Vec<Verdict>,
    /// Seconds of makespan that a suspend cost for each GiB swapped out.
    pub seconds_per_swapped_gib: Option<f64>,
    /// The times of Natjam's experiment as a part of the paper's.
    pub scale: f64,
    pub way_runs: Vec<WayRun>,
    /// The same by way.
    pub ways: Vec<WayFigures>,
}

/// All runs of one way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WayFigures {
    pub way: Way,
    /// Seconds of the production job.
    pub production: Summary,
    /// Seconds of the research job.
    pub research: Summary,
    /// The production job's median over that of the ideal.
    pub production_over_ideal: Option<(f64, Option<Interval>)>,
    /// The research job's.
    pub research_over_ideal: Option<(f64, Option<Interval>)>,
}

/// A task alone that takes so many times as long as it should.
const SLOW: f64 = 1.5;

/// Which time of a run.
type Seconds = fn(&WayRun) -> f64;
pub(super) type Figure = fn(&Cell) -> &Summary;

impl PreemptReport {
    pub(super) fn new(machine: Machine, settings: &PreemptSettings) -> PreemptReport {
        PreemptReport {
            experiment: "preempt",
            machine,
            repetitions: settings.repetitions,
            form: settings.form,
            task_seconds: settings.task_time.as_secs_f64(),
            limit: settings.limit,
            fill_bytes: settings.fill,
            tier: None,
            alone_seconds: Vec::new(),
            runs: Vec::new(),
            cells: Vec::new(),
            verdicts: Vec::new(),
            seconds_per_swapped_gib: None,
            scale: settings.scale,
            way_runs: Vec::new(),
            ways: Vec::new(),
        }
    }

    /// Makes figures of what was measured.
    pub(super) fn conclude(&mut self) {
        self.cells = cells(&self.runs);
        self.verdicts = verdicts(&self.runs);
        self.seconds_per_swapped_gib = seconds_per_swapped_gib(&self.runs);
        self.ways = Way::ALL.into_iter().filter_map(|way| self.figures_of(way)).collect();
    }

    fn figures_of(&self, way: Way) -> Option<WayFigures> {
        let of = |way: Way, seconds: Seconds| -> Vec<f64> {
            self.way_runs.iter().filter(|run| run.way == way).map(seconds).collect()
        };
        let over_ideal = |seconds: Seconds| {
            let (own, ideal) = (of(way, seconds), of(Way::Ideal, seconds));
            let ratio = Summary::of(&own)?.median / Summary::of(&ideal)?.median;
            Some((ratio, ratio_interval(&own, &ideal)))
        };
        let (production, research): (Seconds, Seconds) =
            (|run| run.production_seconds, |run| run.research_seconds);
        Some(WayFigures {
            way,
            production: Summary::of(&of(way, production))?,
            research: Summary::of(&of(way, research))?,
            production_over_ideal: over_ideal(production),
            research_over_ideal: over_ideal(research),
        })
    }

    /// Whether every output was right and every bound kept.
    pub fn succeeded(&self) -> bool {
        self.outputs_right() && self.verdicts.iter().all(|verdict| verdict.kept != Some(false))
    }

    /// Whether every output was that of an undisturbed run.
    pub fn outputs_right(&self) -> bool {
        self.runs.iter().all(|run| run.identical) && self.way_runs.iter().all(|run| run.identical)
    }

    /// The tables, each with its title.
    pub fn tables(&self) -> Vec<(String, String)> {
        let mut tables = Vec::new();
        for (weight, alone) in &self.alone_seconds {
            let about = format!("{weight} tasks, {alone:.2} s alone");
            let of = |seconds: Figure| self.by_percent(*weight, seconds);
            tables.push((format!("Sojourn time of the high job, s ({about})"), of(|cell| &cell.sojourn)));
            tables.push((format!("Makespan of both jobs, s ({about})"), of(|cell| &cell.makespan)));
        }
        if !self.verdicts.is_empty() {
            tables.push((format!("Ratios{}", self.certainty()), self.ratios()));
        }
        if !self.ways.is_empty() {
            let title =
                format!("A production job beside a research job (the paper's times by {})", self.scale);
            tables.push((title, self.ways_table()));
        }
        tables
    }

    /// The tables as text.
    pub fn table(&self) -> String {
        let mut text = format!("{}\n{}\n", self.machine.line(), self.about());
        for (title, table) in self.tables() {
            text.push_str(&format!("\n{title}\n\n{table}\n"));
        }
        text.push_str(&format!("\n{}\n", self.conclusion()));
        text
    }

    /// What stands beside a median: of few repetitions all that was measured, and no more is said.
    pub(super) fn certainty(&self) -> String {
        match self.repetitions as usize {
            1 => " (one run: no interval, no verdict)".to_owned(),
            few @ ..SAMPLES_MIN => format!(" (ranges of {few} runs: no interval, no verdict)"),
            _ => " (95 % intervals)".to_owned(),
        }
    }

    /// What a disturbed machine shows first: a task alone takes far longer than it should.
    pub(super) fn warning(&self) -> Option<String> {
        let slow = |(_, alone): &&(JobWeight, f64)| *alone > self.task_seconds * SLOW;
        let (weight, alone) = self.alone_seconds.iter().find(slow)?;
        Some(format!(
            "WARNING: a {weight} task alone took {alone:.1} s where it should take {} s: the machine is busy or too slow, and \
             these figures say little",
            self.task_seconds
        ))
    }

    /// What was run.
    pub(super) fn about(&self) -> String {
        let tier = self.tier.as_ref().map_or("none".to_owned(), Tier::line);
        format!(
            "{}, {} tasks of {} s; memory-hungry tasks: {tier}",
            counted(self.repetitions as usize, "repetition"),
            self.form,
            self.task_seconds
        )
    }

    /// Whether outputs were right, in words.
    pub(super) fn conclusion(&self) -> String {
        let wrong = self.runs.iter().filter(|run| !run.identical).count()
            + self.way_runs.iter().filter(|run| !run.identical).count();
        let all = self.runs.len() + self.way_runs.len();
        let other = self.runs.iter().filter(|run| !run.as_asked).count();
        let mut text = match wrong {
            0 => format!("all outputs of {all} runs are byte-identical to undisturbed ones"),
            wrong => format!("{wrong} OF {all} RUNS HAVE OUTPUTS THAT DIFFER from undisturbed ones"),
        };
        if let Some(warning) = self.warning() {
            text = format!("{warning}\n{text}");
        }
        if other > 0 {
            let runs = counted(other, "run");
            text.push_str(&format!("; in {runs} something else was done than was asked for"));
        }
        if let Some(seconds) = self.seconds_per_swapped_gib {
            text.push_str(&format!("; a suspend costs {seconds:.2} s of makespan for each GiB swapped out"));
        }
        text
    }

    fn by_percent(&self, weight: JobWeight, seconds: Figure) -> String {
        let own: Vec<&Cell> = self.cells.iter().filter(|cell| cell.weight == weight).collect();
        let strategies: Vec<Strategy> = Strategy::ALL
            .into_iter()
            .filter(|strategy| own.iter().any(|cell| cell.primitive == *strategy))
            .collect();
        let mut percents: Vec<u32> = own.iter().map(|cell| cell.percent).collect();
        percents.dedup();
        let rows = percents.iter().map(|percent| {
            let of = |strategy: &Strategy| {
                let found = own.iter().find(|cell| (cell.percent, cell.primitive) == (*percent, *strategy));
                found.map_or_else(dash, |cell| median_text(seconds(cell)))
            };
            [format!("{percent} %")].into_iter().chain(strategies.iter().map(of)).collect()
        });
        let names: Vec<&str> = strategies.iter().map(|strategy| strategy.in_words()).collect();
        table(&["r"], &names, rows.collect())
    }

    fn ratios(&self) -> String {
        let rows = self.verdicts.iter().map(|verdict| {
            vec![
                verdict.weight.to_string(),
                verdict.primitive.to_string(),
                verdict.what.clone(),
                ratio_text(verdict.ratio, verdict.interval, 3),
                verdict.bound.map_or_else(dash, |bound| format!("{bound:.2}")),
                match (verdict.kept, verdict.bound.zip(verdict.interval)) {
                    (None, None) => "-",
                    (None, Some(_)) => "not resolved",
                    (Some(true), _) => "kept",
                    (Some(false), _) => "NOT KEPT",
                }
                .to_owned(),
            ]
        });
        table(&["tasks", "primitive", "what"], &["ratio", "bound", "verdict"], rows.collect())
    }

    fn ways_table(&self) -> String {
        let over = |ratio: &Option<(f64, Option<Interval>)>| {
            ratio.map_or_else(dash, |(ratio, interval)| ratio_text(ratio, interval, 3))
        };
        let rows = self.ways.iter().map(|figures| {
            vec![
                figures.way.to_string(),
                median_text(&figures.production),
                over(&figures.production_over_ideal),
                median_text(&figures.research),
                over(&figures.research_over_ideal),
            ]
        });
        table(&["way"], &["production, s", "over ideal", "research, s", "over ideal"], rows.collect())
    }
}

fn median_text(summary: &Summary) -> String {
    match summary.count {
        1 => format!("{:.2}", summary.median),
        _ => format!("{:.2} ({})", summary.median, of_median(summary).text(2)),
    }
}

/// The interval of a median, or the range of too few.
pub(super) fn of_median(summary: &Summary) -> Interval {
    summary.median_interval.unwrap_or(Interval { low: summary.min, high: summary.max })
}

#[cfg(test)]
pub mod canned {
    //! Owns a report of canned runs, for tests of tables and pages.
    //! Nothing in it was measured.

    use std::time::Duration;

    use napreduce_live::ByteSize;

    use super::super::cells::canned;
    use super::*;

    pub fn report() -> PreemptReport {
        let settings = PreemptSettings {
            repetitions: 6,
            percents: vec![10, 50, 90],
            strategies: Strategy::ALL.to_vec(),
            weights: JobWeight::ALL.to_vec(),
            form: TaskForm::Map,
            task_time: Duration::from_secs(8),
            fill: ByteSize::new(512 << 20),
            limit: MemoryLimit { memory: ByteSize::new(768 << 20), swap: ByteSize::new(1536 << 20) },
            ways: Way::ALL.to_vec(),
            scale: 0.1,
            report: None,
        };
        let mut report = PreemptReport::new(Machine::describe(), &settings);
        report.tier = Some(Tier::Own { groups_version: 1 });
        report.alone_seconds = vec![(JobWeight::Light, 8.0), (JobWeight::Hungry, 8.3)];
        report.runs = [canned::runs(JobWeight::Light), canned::runs(JobWeight::Hungry)].concat();
        for repetition in 1..=6 {
            for (way, production_seconds, research_seconds) in
                [(Way::Ideal, 7.0, 19.0), (Way::HardCap, 7.0, 29.0), (Way::Kill, 7.2, 23.0)]
            {
                report.way_runs.push(WayRun {
                    experiment: "four-ways",
                    way,
                    repetition,
                    production_seconds,
                    research_seconds,
                    preempted: 0,
                    otherwise: 0,
                    identical: true,
                });
            }
        }
        report.conclude();
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_hold_every_primitive_per_cent_and_way() {
        let text = canned::report().table();
        for part in [
            "Sojourn time of the high job, s (light tasks, 8.00 s alone)",
            "Makespan of both jobs, s (hungry tasks, 8.30 s alone)",
            "checkpoint",
            "50 %",
            "hard-cap",
            "1.526 (1.526 .. 1.526)",
            "own swap file and memory control group (version 1)",
            "all outputs of 162 runs are byte-identical",
            "for each GiB swapped out",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn a_wrong_output_or_bound_fails_and_is_said() {
        let mut report = canned::report();
        assert!(report.succeeded());
        report.way_runs[0].identical = false;
        assert!(!report.succeeded() && report.conclusion().contains("1 OF 162 RUNS"));
        let mut report = canned::report();
        report.verdicts[0].kept = Some(false);
        assert!(!report.succeeded() && report.outputs_right() && report.table().contains("NOT KEPT"));
    }

    #[test]
    fn one_repetition_says_that_it_has_no_interval() {
        let mut report = canned::report();
        report.repetitions = 1;
        report.runs.retain(|run| run.repetition == 1);
        report.way_runs.retain(|run| run.repetition == 1);
        report.conclude();
        let text = report.table();
        assert!(text.contains("one run: no interval, no verdict"), "{text}");
        assert!(!text.contains("95 %") && !text.contains("kept"), "{text}");
        assert!(text.contains("1 repetition,"), "{text}");
    }

    #[test]
    fn task_that_takes_too_long_alone_is_warned_of() {
        let mut report = canned::report();
        assert!(!report.table().contains("alone took"));
        report.alone_seconds[0].1 = 28.0;
        assert!(report.table().contains("WARNING: a light task alone took 28.0 s"), "{}", report.table());
    }

    #[test]
    fn something_else_than_asked_is_said() {
        let mut report = canned::report();
        report.runs[0].as_asked = false;
        assert!(report.conclusion().contains("in 1 run something else was done"));
    }
}
