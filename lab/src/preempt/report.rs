//! The report of the comparison of primitives, as JSON, tables and figures: single runs, cells, and ratios within
//! repetitions, which are judged by bounds.

use std::path::Path;

use anyhow::Result;
use napreduce_sim::plot::{Curve, Estimate, curves};
use serde::Serialize;

use super::{JobWeight, PreemptSettings, Strategy, TaskForm};
use crate::confinement::{MemoryLimit, Tier};
use crate::machine::Machine;
use crate::pictures::pictures;
use crate::report::{Report, counted, dash, table};
use crate::statistics::{Interval, SAMPLES_MIN, Summary, median, median_interval, ratio_text};

#[derive(Clone, Debug, Serialize)]
pub struct PreemptReport {
    pub experiment: &'static str,
    pub machine: Machine,
    pub repetitions: u32,
    pub form: TaskForm,
    /// Planned time of a task alone.
    pub task_seconds: f64,
    /// For hungry tasks.
    pub limit: MemoryLimit,
    /// Memory of a hungry task.
    pub fill_bytes: napreduce_protocol::ByteSize,
    /// How hungry tasks were confined, if there were any.
    pub tier: Option<Tier>,
    pub alone_seconds: Vec<(JobWeight, f64)>,
    pub runs: Vec<TwoJobsRun>,
    pub cells: Vec<Cell>,
    pub verdicts: Vec<Verdict>,
    /// Seconds of makespan that a suspend cost for each GiB swapped out.
    pub seconds_per_swapped_gib: Option<f64>,
}

/// A task alone that takes this many times its planned time causes a warning.
const SLOW: f64 = 1.5;

type Figure = fn(&Cell) -> &Summary;

impl Report for PreemptReport {
    /// Whether every output was correct and every bound kept.
    fn succeeded(&self) -> bool {
        self.outputs_right()
            && self
                .verdicts
                .iter()
                .all(|verdict| verdict.kept != Some(false))
    }

    fn table(&self) -> String {
        let mut text = format!("{}\n{}\n", self.machine.line(), self.about());
        for (title, table) in self.tables() {
            text.push_str(&format!("\n{title}\n\n{table}\n"));
        }
        text.push_str(&format!("\n{}\n", self.conclusion()));
        text
    }
}

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
        }
    }

    /// Computes cells and verdicts from the runs.
    pub(super) fn conclude(&mut self) {
        self.cells = cells(&self.runs);
        self.verdicts = verdicts(&self.runs);
        self.seconds_per_swapped_gib = seconds_per_swapped_gib(&self.runs);
    }

    fn outputs_right(&self) -> bool {
        self.runs.iter().all(|run| run.identical)
    }

    /// The tables with their titles.
    fn tables(&self) -> Vec<(String, String)> {
        let mut tables = Vec::new();
        for (weight, alone) in &self.alone_seconds {
            let about = format!("{weight} tasks, {alone:.2} s alone");
            let of = |seconds: Figure| self.by_percent(*weight, seconds);
            tables.push((
                format!("Sojourn time of the high job, s ({about})"),
                of(|cell| &cell.sojourn),
            ));
            tables.push((
                format!("Makespan of both jobs, s ({about})"),
                of(|cell| &cell.makespan),
            ));
        }
        if !self.verdicts.is_empty() {
            tables.push((format!("Ratios{}", self.certainty()), self.ratios()));
        }
        tables
    }

    /// Writes text and JSON, and each table as a figure in SVG, PDF and PNG.
    pub(super) fn write_with_figures(&self, folder: &Path) -> Result<()> {
        self.write(folder)?;
        let kinds: [(&str, &str, Figure); 2] = [
            ("sojourn", "Sojourn time of the high job", |cell| {
                &cell.sojourn
            }),
            ("makespan", "Makespan of both jobs", |cell| &cell.makespan),
        ];
        for (weight, _) in &self.alone_seconds {
            for (kind, title, seconds) in kinds {
                let path = folder.join(format!("{weight}-{kind}.svg"));
                let title = format!("{title}, {weight} tasks: medians{}", self.certainty());
                let axes = (
                    "progress of the low job when the high one comes, %",
                    "seconds",
                );
                curves(&path, &title, axes, &self.curves(*weight, seconds))?;
                pictures(&path)?;
            }
        }
        Ok(())
    }

    fn curves(&self, weight: JobWeight, seconds: Figure) -> Vec<Curve> {
        let curve = |strategy: &Strategy| {
            let own = self
                .cells
                .iter()
                .filter(|cell| (cell.weight, cell.primitive) == (weight, *strategy));
            let points: Vec<_> = own
                .map(|cell| (f64::from(cell.percent), estimate(seconds(cell))))
                .collect();
            (!points.is_empty()).then(|| Curve {
                name: strategy.to_string(),
                points,
            })
        };
        Strategy::ALL.iter().filter_map(curve).collect()
    }

    /// The kind of interval next to a median: with few repetitions, a range.
    fn certainty(&self) -> String {
        match self.repetitions as usize {
            1 => " (one run: no interval, no verdict)".to_owned(),
            few @ ..SAMPLES_MIN => format!(" (ranges of {few} runs: no interval, no verdict)"),
            _ => " (95 % intervals)".to_owned(),
        }
    }

    /// The first sign of a disturbed machine: a task alone takes far too long.
    pub(super) fn warning(&self) -> Option<String> {
        let slow = |(_, alone): &&(JobWeight, f64)| *alone > self.task_seconds * SLOW;
        let (weight, alone) = self.alone_seconds.iter().find(slow)?;
        Some(format!(
            "WARNING: a {weight} task alone took {alone:.1} s where it should take {} s: the machine is busy or too slow, and \
             these figures say little",
            self.task_seconds
        ))
    }

    fn about(&self) -> String {
        let tier = self.tier.as_ref().map_or("none".to_owned(), Tier::line);
        format!(
            "{}, {} tasks of {} s; memory-hungry tasks: {tier}",
            counted(self.repetitions as usize, "repetition"),
            self.form,
            self.task_seconds
        )
    }

    fn conclusion(&self) -> String {
        let wrong = self.runs.iter().filter(|run| !run.identical).count();
        let all = self.runs.len();
        let other = self.runs.iter().filter(|run| !run.used_only).count();
        let mut text = match wrong {
            0 => format!("all outputs of {all} runs are byte-identical to undisturbed ones"),
            wrong => {
                format!("{wrong} OF {all} RUNS HAVE OUTPUTS THAT DIFFER from undisturbed ones")
            }
        };
        if let Some(warning) = self.warning() {
            text = format!("{warning}\n{text}");
        }
        if other > 0 {
            let runs = counted(other, "run");
            text.push_str(&format!(
                "; in {runs} another primitive was used than was asked for"
            ));
        }
        if let Some(seconds) = self.seconds_per_swapped_gib {
            text.push_str(&format!(
                "; a suspend costs {seconds:.2} s of makespan for each GiB swapped out"
            ));
        }
        text
    }

    fn by_percent(&self, weight: JobWeight, seconds: Figure) -> String {
        let own: Vec<&Cell> = self
            .cells
            .iter()
            .filter(|cell| cell.weight == weight)
            .collect();
        let strategies: Vec<Strategy> = Strategy::ALL
            .into_iter()
            .filter(|strategy| own.iter().any(|cell| cell.primitive == *strategy))
            .collect();
        let mut percents: Vec<u32> = own.iter().map(|cell| cell.percent).collect();
        percents.dedup();
        let rows = percents.iter().map(|percent| {
            let of = |strategy: &Strategy| {
                let found = own
                    .iter()
                    .find(|cell| (cell.percent, cell.primitive) == (*percent, *strategy));
                found.map_or_else(dash, |cell| median_text(seconds(cell)))
            };
            [format!("{percent} %")]
                .into_iter()
                .chain(strategies.iter().map(of))
                .collect()
        });
        let names: Vec<&str> = strategies
            .iter()
            .map(|strategy| strategy.in_words())
            .collect();
        table(&["r"], &names, rows.collect())
    }

    fn ratios(&self) -> String {
        let rows = self.verdicts.iter().map(|verdict| {
            vec![
                verdict.weight.to_string(),
                verdict.primitive.to_string(),
                verdict.what.clone(),
                ratio_text(verdict.ratio, verdict.interval, 3),
                verdict
                    .bound
                    .map_or_else(dash, |bound| format!("{bound:.2}")),
                match (verdict.kept, verdict.bound.zip(verdict.interval)) {
                    (None, None) => "-",
                    (None, Some(_)) => "not resolved",
                    (Some(true), _) => "kept",
                    (Some(false), _) => "NOT KEPT",
                }
                .to_owned(),
            ]
        });
        table(
            &["tasks", "primitive", "what"],
            &["ratio", "bound", "verdict"],
            rows.collect(),
        )
    }
}

fn median_text(summary: &Summary) -> String {
    match summary.count {
        1 => format!("{:.2}", summary.median),
        _ => format!("{:.2} ({})", summary.median, of_median(summary).text(2)),
    }
}

fn estimate(summary: &Summary) -> Estimate {
    let interval = of_median(summary);
    Estimate {
        middle: summary.median,
        low: interval.low,
        high: interval.high,
        published: None,
    }
}

/// The interval of a median; with too few samples, the range.
fn of_median(summary: &Summary) -> Interval {
    summary.median_interval.unwrap_or(Interval {
        low: summary.min,
        high: summary.max,
    })
}

/// One run of the low and the high job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwoJobsRun {
    pub experiment: &'static str,
    pub weight: JobWeight,
    pub primitive: Strategy,
    /// Planned progress of the low job when the high one is submitted.
    pub percent: u32,
    /// Its reported progress at that time.
    pub seen_percent: f64,
    pub repetition: u32,
    /// From the submission of the high job to its end.
    pub sojourn_seconds: f64,
    /// From the submission of the low job to the end of both.
    pub makespan_seconds: f64,
    /// Attempts of the low job's task.
    pub low_attempts: usize,
    /// From the decision to the free slot, when a task was preempted.
    pub freed_millis: Option<f64>,
    /// Bytes of the low job that were swapped out.
    pub swapped_bytes: Option<u64>,
    /// Whether only the planned primitive was used.
    pub used_only: bool,
    /// Whether both outputs equal those of undisturbed runs.
    pub identical: bool,
}

/// The runs of one primitive at one per cent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub weight: JobWeight,
    pub primitive: Strategy,
    pub percent: u32,
    pub sojourn: Summary,
    pub makespan: Summary,
}

/// A ratio with the bound it should keep to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub weight: JobWeight,
    pub primitive: Strategy,
    pub what: String,
    pub ratio: f64,
    /// Bootstrap interval (95 %); `None` with too few runs.
    pub interval: Option<Interval>,
    /// The largest promised ratio, if any.
    pub bound: Option<f64>,
    /// Whether the interval is below the bound; `None` if it is on both sides, or with too few runs.
    pub kept: Option<bool>,
}

type Seconds = fn(&TwoJobsRun) -> f64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CellKey {
    weight: JobWeight,
    percent: u32,
    primitive: Strategy,
}

impl TwoJobsRun {
    fn key(&self) -> CellKey {
        CellKey {
            weight: self.weight,
            percent: self.percent,
            primitive: self.primitive,
        }
    }
}

/// The cells, by tasks, then per cent, then primitive.
fn cells(runs: &[TwoJobsRun]) -> Vec<Cell> {
    let mut keys: Vec<CellKey> = runs.iter().map(TwoJobsRun::key).collect();
    keys.sort();
    keys.dedup();
    let cell = |key: CellKey| {
        let of = |seconds: Seconds| Summary::of(&samples(runs, key, seconds));
        let sojourn = of(sojourn)?;
        let makespan = of(makespan)?;
        let CellKey {
            weight,
            percent,
            primitive,
        } = key;
        Some(Cell {
            weight,
            primitive,
            percent,
            sojourn,
            makespan,
        })
    };
    keys.into_iter().filter_map(cell).collect()
}

fn sojourn(run: &TwoJobsRun) -> f64 {
    run.sojourn_seconds
}

fn makespan(run: &TwoJobsRun) -> f64 {
    run.makespan_seconds
}

fn samples(runs: &[TwoJobsRun], key: CellKey, seconds: Seconds) -> Vec<f64> {
    runs.iter()
        .filter(|run| run.key() == key)
        .map(seconds)
        .collect()
}

/// The cost of suspend and checkpoint against kill (the high job) and wait (both jobs), in the middle and over all runs.
fn verdicts(runs: &[TwoJobsRun]) -> Vec<Verdict> {
    let mut found = Vec::new();
    let middle = runs
        .iter()
        .map(|run| run.percent)
        .min_by_key(|percent| (percent.abs_diff(50), *percent));
    let several = runs.iter().any(|run| Some(run.percent) != middle);
    for weight in JobWeight::ALL {
        for primitive in [Strategy::Suspend, Strategy::Checkpoint] {
            let comparisons: [(&str, Strategy, Seconds); 2] = [
                ("high job over kill's", Strategy::Kill, sojourn),
                ("both jobs over wait's", Strategy::Wait, makespan),
            ];
            for (what, against, seconds) in comparisons {
                let one = Comparison {
                    weight,
                    primitive,
                    against,
                    seconds,
                };
                let bound = bound(weight, primitive, against);
                let at =
                    middle.map(|percent| (Some(percent), format!("{what}, at {percent} %"), bound));
                let everywhere = several.then(|| (None, format!("{what}, everywhere"), None));
                for (percent, what, bound) in at.into_iter().chain(everywhere) {
                    found.extend(one.verdict(runs, percent, what, bound));
                }
            }
        }
    }
    found
}

/// The promised cost of a preemption in the middle of tasks of eight seconds.
fn bound(weight: JobWeight, primitive: Strategy, against: Strategy) -> Option<f64> {
    match (weight, primitive, against) {
        (JobWeight::Light, _, Strategy::Wait) => Some(1.01),
        (JobWeight::Light, _, Strategy::Kill) => Some(1.02),
        (JobWeight::Hungry, Strategy::Suspend, Strategy::Wait) => Some(1.15),
        (JobWeight::Hungry, Strategy::Suspend, Strategy::Kill) => Some(1.20),
        _ => None,
    }
}

struct Comparison {
    weight: JobWeight,
    primitive: Strategy,
    against: Strategy,
    seconds: Seconds,
}

impl Comparison {
    /// The median of ratios within the same percentage and repetition, whose runs were made one after another. A
    /// machine that is slower for some minutes slows both.
    fn verdict(
        &self,
        runs: &[TwoJobsRun],
        percent: Option<u32>,
        what: String,
        bound: Option<f64>,
    ) -> Option<Verdict> {
        let of = |primitive: Strategy| {
            runs.iter()
                .filter(move |run| run.weight == self.weight && run.primitive == primitive)
        };
        let partner = |run: &TwoJobsRun| {
            let same = |other: &&TwoJobsRun| {
                (other.percent, other.repetition) == (run.percent, run.repetition)
            };
            of(self.against).find(same).map(self.seconds)
        };
        let judged = of(self.primitive).filter(|run| percent.is_none_or(|at| run.percent == at));
        let ratios: Vec<f64> = judged
            .filter_map(|run| Some((self.seconds)(run) / partner(run)?))
            .collect();
        let ratio = median(&ratios)?;
        let interval = median_interval(&ratios);
        let kept = |bound: f64, at: Interval| match (at.high <= bound, at.low > bound) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        Some(Verdict {
            weight: self.weight,
            primitive: self.primitive,
            what,
            ratio,
            interval,
            bound,
            kept: bound.zip(interval).and_then(|(bound, at)| kept(bound, at)),
        })
    }
}

/// Seconds of makespan beyond wait's for each GiB that was swapped out, as the median over suspended runs.
fn seconds_per_swapped_gib(runs: &[TwoJobsRun]) -> Option<f64> {
    let rates: Vec<f64> = runs
        .iter()
        .filter(|run| run.primitive == Strategy::Suspend)
        .filter_map(|run| {
            let gib = run.swapped_bytes.filter(|bytes| *bytes > 0)? as f64 / f64::from(1 << 30);
            let waited = samples(
                runs,
                CellKey {
                    primitive: Strategy::Wait,
                    ..run.key()
                },
                makespan,
            );
            Some((run.makespan_seconds - median(&waited)?) / gib)
        })
        .collect();
    median(&rates)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use napreduce_protocol::ByteSize;

    use super::*;

    /// Runs by the closed forms of the experiment: tasks of 8 s, some milliseconds that differ between repetitions, and
    /// the cost of swapping.
    fn runs(weight: JobWeight) -> Vec<TwoJobsRun> {
        let mut runs = Vec::new();
        for repetition in 1..=6 {
            for percent in [10, 50, 90] {
                for primitive in Strategy::ALL {
                    runs.push(run(weight, primitive, percent, repetition));
                }
            }
        }
        runs
    }

    fn run(weight: JobWeight, primitive: Strategy, percent: u32, repetition: u32) -> TwoJobsRun {
        let length = 8.0 + 0.001 * f64::from(repetition);
        let before = length * f64::from(percent) / 100.0;
        let swap = if weight == JobWeight::Hungry && primitive == Strategy::Suspend {
            0.4
        } else {
            0.0
        };
        let (sojourn, makespan) = match primitive {
            Strategy::Wait => (2.0 * length - before, 2.0 * length),
            Strategy::Kill => (length, before + 2.0 * length),
            Strategy::Suspend | Strategy::Checkpoint => (length + swap, 2.0 * length + 2.0 * swap),
        };
        TwoJobsRun {
            experiment: "two-jobs",
            weight,
            primitive,
            percent,
            seen_percent: f64::from(percent),
            repetition,
            sojourn_seconds: sojourn,
            makespan_seconds: makespan,
            low_attempts: 1,
            freed_millis: Some(1.0),
            swapped_bytes: (swap > 0.0).then_some(1 << 29),
            used_only: true,
            identical: true,
        }
    }

    fn report() -> PreemptReport {
        let settings = PreemptSettings {
            repetitions: 6,
            percents: vec![10, 50, 90],
            strategies: Strategy::ALL.to_vec(),
            weights: JobWeight::ALL.to_vec(),
            form: TaskForm::Map,
            task_time: Duration::from_secs(8),
            fill: ByteSize::new(512 << 20),
            limit: MemoryLimit {
                memory: ByteSize::new(768 << 20),
                swap: ByteSize::new(1536 << 20),
            },
            report: None,
        };
        let mut report = PreemptReport::new(Machine::describe(), &settings);
        report.tier = Some(Tier::Own { groups_version: 1 });
        report.alone_seconds = vec![(JobWeight::Light, 8.0), (JobWeight::Hungry, 8.3)];
        report.runs = [runs(JobWeight::Light), runs(JobWeight::Hungry)].concat();
        report.conclude();
        report
    }

    #[test]
    fn tables_hold_every_primitive_and_per_cent() {
        let text = report().table();
        for part in [
            "Sojourn time of the high job, s (light tasks, 8.00 s alone)",
            "Makespan of both jobs, s (hungry tasks, 8.30 s alone)",
            "checkpoint",
            "50 %",
            "own swap file and memory control group (version 1)",
            "all outputs of 144 runs are byte-identical",
            "for each GiB swapped out",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn wrong_output_or_missed_bound_fails() {
        let mut wrong = report();
        assert!(wrong.succeeded());
        wrong.runs[0].identical = false;
        assert!(!wrong.succeeded() && wrong.conclusion().contains("1 OF 144 RUNS"));
        let mut missed = report();
        missed.verdicts[0].kept = Some(false);
        assert!(
            !missed.succeeded() && missed.outputs_right() && missed.table().contains("NOT KEPT")
        );
    }

    #[test]
    fn disturbed_runs_are_reported() {
        let mut report = report();
        assert!(!report.table().contains("alone took"));
        report.alone_seconds[0].1 = 28.0;
        report.runs[0].used_only = false;
        let text = report.table();
        assert!(
            text.contains("WARNING: a light task alone took 28.0 s"),
            "{text}"
        );
        assert!(
            text.contains("in 1 run another primitive was used"),
            "{text}"
        );
    }

    #[test]
    fn report_is_text_json_and_figures() {
        let folder = tempfile::tempdir().unwrap();
        report().write_with_figures(folder.path()).unwrap();
        for name in [
            "light-sojourn.svg",
            "hungry-makespan.pdf",
            "report.json",
            "report.txt",
        ] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        let mut empty = report();
        empty.runs.clear();
        empty.alone_seconds.clear();
        empty.conclude();
        assert_eq!((empty.cells.len(), empty.verdicts.len()), (0, 0));
        empty.write_with_figures(folder.path()).unwrap();
    }

    #[test]
    fn runs_fall_into_cells() {
        let cells = cells(&runs(JobWeight::Light));
        assert_eq!(cells.len(), 12);
        let wait = cells
            .iter()
            .find(|cell| (cell.primitive, cell.percent) == (Strategy::Wait, 50))
            .unwrap();
        assert_eq!(wait.sojourn.count, 6);
        let found = (wait.sojourn.median, wait.makespan.median);
        assert!(
            (found.0 - 12.00525).abs() < 1e-9 && (found.1 - 16.007).abs() < 1e-9,
            "{found:?}"
        );
    }

    #[test]
    fn bounds_are_judged_at_the_per_cent_nearest_to_the_middle() {
        let light = verdicts(&runs(JobWeight::Light));
        assert_eq!(light.len(), 8);
        assert!(
            light.iter().all(|verdict| verdict.kept != Some(false)),
            "{light:?}"
        );
        let judged: Vec<_> = light
            .iter()
            .filter(|verdict| verdict.bound.is_some())
            .collect();
        assert_eq!(judged.len(), 4);
        assert!(
            judged
                .iter()
                .all(|verdict| verdict.what.contains("at 50 %"))
        );
        let hungry = verdicts(&runs(JobWeight::Hungry));
        let suspend = &hungry[0];
        assert_eq!((suspend.bound, suspend.kept), (Some(1.20), Some(true)));
        assert!(
            (suspend.ratio - 8.4035 / 8.0035).abs() < 1e-6,
            "{suspend:?}"
        );
        let ten: Vec<_> = runs(JobWeight::Light)
            .into_iter()
            .filter(|run| run.percent == 10)
            .collect();
        let found = verdicts(&ten);
        assert_eq!(found.len(), 4);
        assert!(
            found
                .iter()
                .all(|verdict| verdict.what.ends_with("at 10 %") && verdict.bound.is_some())
        );
    }

    #[test]
    fn ratios_within_a_repetition_cancel_a_slow_machine() {
        let mut runs = runs(JobWeight::Light);
        for run in &mut runs {
            let slowdown = [1.0, 1.07, 1.15, 1.02, 1.3, 1.01][run.repetition as usize - 1];
            run.sojourn_seconds *= slowdown;
            run.makespan_seconds *= slowdown;
        }
        let found = verdicts(&runs);
        assert!(
            found
                .iter()
                .all(|verdict| (verdict.ratio - 1.0).abs() < 1e-9),
            "{found:?}"
        );
    }

    #[test]
    fn one_repetition_has_no_interval_and_no_verdict() {
        let mut report = report();
        report.repetitions = 1;
        report.runs.retain(|run| run.repetition == 1);
        report.conclude();
        let text = report.table();
        assert!(text.contains("one run: no interval, no verdict"), "{text}");
        assert!(!text.contains("95 %") && !text.contains("kept"), "{text}");
        assert!(text.contains("1 repetition,"), "{text}");
        let found = report.verdicts;
        assert!(found.iter().any(|verdict| verdict.bound.is_some()));
        assert!(
            found.iter().all(|verdict| verdict.kept.is_none()),
            "{found:?}"
        );
        let mut middle = found
            .iter()
            .filter(|verdict| verdict.what.contains("at 50 %"));
        assert!(
            middle.all(|verdict| verdict.interval.is_none()),
            "{found:?}"
        );
    }

    /// The verdict on the makespan of suspended light jobs, each longer by a factor of its repetition.
    fn suspended(factor: fn(u32) -> f64) -> Verdict {
        let mut runs = runs(JobWeight::Light);
        for run in runs
            .iter_mut()
            .filter(|run| run.primitive == Strategy::Suspend)
        {
            run.makespan_seconds *= factor(run.repetition);
        }
        let mut found = verdicts(&runs).into_iter();
        found
            .find(|verdict| verdict.what == "both jobs over wait's, at 50 %")
            .unwrap()
    }

    #[test]
    fn bound_is_missed_beyond_the_interval_and_not_resolved_within() {
        assert_eq!(suspended(|_| 1.02).kept, Some(false));
        let open = suspended(|repetition| if repetition > 3 { 1.05 } else { 0.96 });
        assert!(open.kept.is_none() && open.interval.is_some(), "{open:?}");
    }

    #[test]
    fn swap_cost_is_per_gib() {
        assert_eq!(seconds_per_swapped_gib(&runs(JobWeight::Light)), None);
        let cost = seconds_per_swapped_gib(&runs(JobWeight::Hungry)).unwrap();
        assert!((cost - 1.6).abs() < 0.01, "{cost}");
    }
}
