//! Owns the figures of the two-job experiment: single runs, the cells they fall into, and what is concluded
//! about the bounds. How a run comes about belongs to the experiment, how figures look to the report.

use serde::Serialize;

use super::{JobWeight, Strategy};
use crate::statistics::{Interval, Summary, median, median_interval};

/// One run: the low job, the high job that came at some per cent of it, and the end of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwoJobsRun {
    /// Always `two-jobs`.
    pub experiment: &'static str,
    pub weight: JobWeight,
    pub primitive: Strategy,
    /// How far the low job was meant to be.
    pub percent: u32,
    /// How far it had said to be when the high job was handed in.
    pub seen_percent: f64,
    /// From 1.
    pub repetition: u32,
    /// Seconds of the high job from its submission to its end.
    pub sojourn_seconds: f64,
    /// Seconds from the submission of the low job to the end of both.
    pub makespan_seconds: f64,
    /// Attempts of the low job's task.
    pub low_attempts: usize,
    /// Milliseconds from the decision to the free slot, when something was preempted.
    pub freed_millis: Option<f64>,
    /// Bytes of the low job that were swapped out.
    pub swapped_bytes: Option<u64>,
    /// Whether the primitive was used that was asked for.
    pub as_asked: bool,
    /// Whether both outputs are those of undisturbed runs.
    pub identical: bool,
}

/// All runs of one primitive at one per cent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub weight: JobWeight,
    pub primitive: Strategy,
    /// How far the low job was.
    pub percent: u32,
    /// Seconds of the high job.
    pub sojourn: Summary,
    /// Seconds of both.
    pub makespan: Summary,
}

/// A ratio with the bound it should keep to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub weight: JobWeight,
    pub primitive: Strategy,
    /// What is compared, in words.
    pub what: String,
    pub ratio: f64,
    /// Its bootstrap interval (95 %); none of too few runs.
    pub interval: Option<Interval>,
    /// What it may be; absent where nothing is promised.
    pub bound: Option<f64>,
    /// Whether the whole interval is on one side of it; too few runs are not judged.
    pub kept: Option<bool>,
}

/// Which time of a run.
type Seconds = fn(&TwoJobsRun) -> f64;

/// The cells, by tasks, then per cent, then primitive.
pub fn cells(runs: &[TwoJobsRun]) -> Vec<Cell> {
    let mut keys: Vec<_> = runs.iter().map(|run| (run.weight, run.percent, run.primitive)).collect();
    keys.sort();
    keys.dedup();
    let cell = |(weight, percent, primitive)| {
        let of = |seconds: Seconds| Summary::of(&samples(runs, weight, primitive, percent, seconds));
        let (sojourn, makespan) = (of(sojourn)?, of(makespan)?);
        Some(Cell { weight, primitive, percent, sojourn, makespan })
    };
    keys.into_iter().filter_map(cell).collect()
}

fn sojourn(run: &TwoJobsRun) -> f64 {
    run.sojourn_seconds
}

fn makespan(run: &TwoJobsRun) -> f64 {
    run.makespan_seconds
}

fn samples(
    runs: &[TwoJobsRun],
    weight: JobWeight,
    primitive: Strategy,
    percent: u32,
    seconds: Seconds,
) -> Vec<f64> {
    let of_cell =
        |run: &&TwoJobsRun| (run.weight, run.primitive, run.percent) == (weight, primitive, percent);
    runs.iter().filter(of_cell).map(seconds).collect()
}

/// What conserving primitives cost against kill (the high job) and wait (both), in the middle and over all
/// runs: ratios within each repetition.
pub fn verdicts(runs: &[TwoJobsRun]) -> Vec<Verdict> {
    let mut found = Vec::new();
    let middle = runs.iter().map(|run| run.percent).min_by_key(|percent| (percent.abs_diff(50), *percent));
    let several = runs.iter().any(|run| Some(run.percent) != middle);
    for weight in JobWeight::ALL {
        for primitive in [Strategy::Suspend, Strategy::Checkpoint] {
            let comparisons: [(&str, Strategy, Seconds); 2] = [
                ("high job over kill's", Strategy::Kill, sojourn),
                ("both jobs over wait's", Strategy::Wait, makespan),
            ];
            for (what, against, seconds) in comparisons {
                let one = Comparison { weight, primitive, against, seconds };
                let bound = bound(weight, primitive, against);
                let at = middle.map(|percent| (Some(percent), format!("{what}, at {percent} %"), bound));
                let everywhere = several.then(|| (None, format!("{what}, everywhere"), None));
                for (percent, what, bound) in at.into_iter().chain(everywhere) {
                    found.extend(one.verdict(runs, percent, what, bound));
                }
            }
        }
    }
    found
}

/// What is promised of a preemption in the middle of tasks of eight seconds.
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
    /// The median of the ratios of runs that belong together, which were made one after another: same per
    /// cent, same repetition. A machine that is slower for some minutes is so for both, which medians apart
    /// would take for a cost.
    fn verdict(
        &self,
        runs: &[TwoJobsRun],
        percent: Option<u32>,
        what: String,
        bound: Option<f64>,
    ) -> Option<Verdict> {
        let of = |primitive: Strategy| {
            runs.iter().filter(move |run| run.weight == self.weight && run.primitive == primitive)
        };
        let partner = |run: &TwoJobsRun| {
            let same =
                |other: &&TwoJobsRun| (other.percent, other.repetition) == (run.percent, run.repetition);
            of(self.against).find(same).map(self.seconds)
        };
        let judged = of(self.primitive).filter(|run| percent.is_none_or(|at| run.percent == at));
        let ratios: Vec<f64> = judged.filter_map(|run| Some((self.seconds)(run) / partner(run)?)).collect();
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

/// Seconds of makespan beyond wait's for each GiB that was swapped out: the median over suspended runs that
/// swapped.
pub fn seconds_per_swapped_gib(runs: &[TwoJobsRun]) -> Option<f64> {
    let rates: Vec<f64> = runs
        .iter()
        .filter(|run| run.primitive == Strategy::Suspend)
        .filter_map(|run| {
            let gib = run.swapped_bytes.filter(|bytes| *bytes > 0)? as f64 / f64::from(1 << 30);
            let waited = samples(runs, run.weight, Strategy::Wait, run.percent, makespan);
            Some((run.makespan_seconds - median(&waited)?) / gib)
        })
        .collect();
    median(&rates)
}

#[cfg(test)]
pub mod canned {
    //! Owns runs as the closed forms of the experiment give them, for tests of figures and reports.
    //! Nothing here was measured.

    use super::*;

    /// Tasks of 8 s, with a few milliseconds that differ between repetitions and what swapping costs.
    pub fn runs(weight: JobWeight) -> Vec<TwoJobsRun> {
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

    pub fn run(weight: JobWeight, primitive: Strategy, percent: u32, repetition: u32) -> TwoJobsRun {
        let length = 8.0 + 0.001 * f64::from(repetition);
        let before = length * f64::from(percent) / 100.0;
        let swap = if weight == JobWeight::Hungry && primitive == Strategy::Suspend { 0.4 } else { 0.0 };
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
            as_asked: true,
            identical: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_fall_into_cells() {
        let cells = cells(&canned::runs(JobWeight::Light));
        assert_eq!(cells.len(), 12);
        let wait = cells.iter().find(|cell| (cell.primitive, cell.percent) == (Strategy::Wait, 50)).unwrap();
        assert_eq!(wait.sojourn.count, 6);
        assert!(
            (wait.sojourn.median - 12.00525).abs() < 1e-9 && (wait.makespan.median - 16.007).abs() < 1e-9
        );
    }

    #[test]
    fn bounds_are_judged_in_the_middle_and_pairs_are_told() {
        let light = verdicts(&canned::runs(JobWeight::Light));
        assert_eq!(light.len(), 8);
        assert!(light.iter().all(|verdict| verdict.kept != Some(false)), "{light:?}");
        let judged: Vec<_> = light.iter().filter(|verdict| verdict.bound.is_some()).collect();
        assert_eq!(judged.len(), 4);
        assert!(judged.iter().all(|verdict| verdict.what.contains("at 50 %")));
        let hungry = verdicts(&canned::runs(JobWeight::Hungry));
        let suspend = &hungry[0];
        assert_eq!((suspend.bound, suspend.kept), (Some(1.20), Some(true)));
        assert!((suspend.ratio - 8.4035 / 8.0035).abs() < 1e-6, "{suspend:?}");
    }

    #[test]
    fn a_machine_that_is_slower_for_a_while_is_no_cost() {
        let mut runs = canned::runs(JobWeight::Light);
        for run in &mut runs {
            let mood = [1.0, 1.07, 1.15, 1.02, 1.3, 1.01][run.repetition as usize - 1];
            (run.sojourn_seconds, run.makespan_seconds) =
                (run.sojourn_seconds * mood, run.makespan_seconds * mood);
        }
        let found = verdicts(&runs);
        assert!(found.iter().all(|verdict| (verdict.ratio - 1.0).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn one_per_cent_has_one_verdict_for_each_ratio() {
        let runs: Vec<_> =
            canned::runs(JobWeight::Light).into_iter().filter(|run| run.percent == 10).collect();
        let found = verdicts(&runs);
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|verdict| verdict.what.ends_with("at 10 %") && verdict.bound.is_some()));
    }

    #[test]
    fn one_repetition_has_no_interval_and_no_verdict() {
        let runs: Vec<_> =
            canned::runs(JobWeight::Light).into_iter().filter(|run| run.repetition == 1).collect();
        let found = verdicts(&runs);
        assert!(found.iter().any(|verdict| verdict.bound.is_some()));
        assert!(found.iter().all(|verdict| verdict.kept.is_none()), "{found:?}");
        let middle = found.iter().filter(|verdict| verdict.what.contains("at 50 %"));
        assert!(middle.into_iter().all(|verdict| verdict.interval.is_none()), "{found:?}");
    }

    #[test]
    fn a_bound_that_is_not_kept_is_seen() {
        let mut runs = canned::runs(JobWeight::Light);
        let suspended = runs.iter_mut().filter(|run| run.primitive == Strategy::Suspend);
        suspended.for_each(|run| run.makespan_seconds *= 1.02);
        assert!(verdicts(&runs).iter().any(|verdict| verdict.kept == Some(false)));
    }

    #[test]
    fn bound_within_the_interval_is_not_resolved() {
        let mut runs = canned::runs(JobWeight::Light);
        let suspended = runs.iter_mut().filter(|run| run.primitive == Strategy::Suspend);
        suspended.for_each(|run| run.makespan_seconds *= if run.repetition > 3 { 1.05 } else { 0.96 });
        let found = verdicts(&runs);
        let suspend = found.iter().find(|verdict| verdict.what == "both jobs over wait's, at 50 %");
        assert_eq!(suspend.and_then(|verdict| verdict.kept), None, "{suspend:?}");
        assert!(suspend.is_some_and(|verdict| verdict.interval.is_some()));
    }

    #[test]
    fn what_swapping_costs_is_told_per_gib() {
        assert_eq!(seconds_per_swapped_gib(&canned::runs(JobWeight::Light)), None);
        let cost = seconds_per_swapped_gib(&canned::runs(JobWeight::Hungry)).unwrap();
        assert!((cost - 1.6).abs() < 0.01, "{cost}");
    }

    #[test]
    fn nothing_measured_concludes_nothing() {
        assert_eq!((cells(&[]).len(), verdicts(&[]).len()), (0, 0));
    }
}
