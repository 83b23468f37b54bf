//! The fidelity of a simulated history: compares its simulation under the recorded policy with the recorded times.

use std::collections::BTreeMap;
use std::fmt::Write;

use napreduce_engine::{JobId, Span};
use serde_json::{Value, json};

use super::recorded::{Recorded, RecordedTimes};
use super::report::number;
use super::runs::Outcome;
use crate::format::table;

/// Deviation above which only directions can be compared.
const DEVIATION_MAX: f64 = 0.1;

/// A recorded history and its simulation under the recorded policy.
pub struct Fidelity<'a> {
    recorded: &'a Recorded,
    compared: Option<Comparison<'a>>,
}

struct Comparison<'a> {
    /// The label of the simulated variant.
    label: String,
    /// Recorded and simulated, in seconds.
    sojourn: [f64; 2],
    makespan: [f64; 2],
    jobs: Vec<ComparedJob<'a>>,
    unfinished: usize,
}

struct ComparedJob<'a> {
    times: &'a RecordedTimes,
    /// In seconds.
    simulated: f64,
}

impl ComparedJob<'_> {
    /// Returns the relative deviation of the simulated sojourn from the recorded one.
    fn deviation(&self) -> f64 {
        let real = self.times.sojourn();
        if real > 0.0 {
            (self.simulated - real).abs() / real
        } else {
            0.0
        }
    }
}

impl<'a> Fidelity<'a> {
    /// Compares with the variant of the recorded policy, if it is among the outcomes.
    pub fn of(recorded: &'a Recorded, outcomes: &[Outcome]) -> Fidelity<'a> {
        let outcome = recorded
            .variant()
            .and_then(|own| outcomes.iter().find(|one| one.label == own.label));
        Fidelity {
            recorded,
            compared: outcome.map(|outcome| Comparison::of(recorded, outcome)),
        }
    }

    /// Formats the head of the report.
    pub fn text(&self) -> String {
        let (first, last) = self.recorded.submitted();
        let jobs = self.recorded.jobs.len();
        let mut text = format!(
            "{}: {jobs} jobs, submitted from {first} to {last}\n",
            self.recorded.name
        );
        for remark in &self.recorded.remarks {
            let _ = writeln!(text, "- {remark}");
        }
        text.push('\n');
        text += &match &self.compared {
            Some(compared) => compared.text(),
            None => {
                "Fidelity is unknown, since the policy was not recorded: compare directions only\n"
                    .to_owned()
            }
        };
        text.push('\n');
        text
    }

    /// Returns the same as JSON.
    pub fn value(&self) -> Value {
        let (first, last) = self.recorded.submitted();
        json!({
            "jobs": self.recorded.jobs.len(),
            "first_submitted": first,
            "last_submitted": last,
            "remarks": self.recorded.remarks,
            "fidelity": self.compared.as_ref().map(Comparison::value),
        })
    }
}

impl<'a> Comparison<'a> {
    fn of(recorded: &'a Recorded, outcome: &Outcome) -> Comparison<'a> {
        // Simulated jobs are numbered in order of submission.
        let numbered = (1..).map(JobId).zip(&recorded.times);
        let by_number: BTreeMap<JobId, &RecordedTimes> = numbered.collect();
        let ended = outcome.first.jobs.iter();
        let pair = |job: &napreduce_sim::JobResult| {
            let times = *by_number.get(&job.job)?;
            Some((
                ComparedJob {
                    times,
                    simulated: seconds(job.sojourn()),
                },
                job.ended,
            ))
        };
        let (jobs, ends): (Vec<ComparedJob<'_>>, Vec<_>) = ended.filter_map(pair).unzip();
        let mean = |of: &dyn Fn(&ComparedJob<'_>) -> f64| {
            jobs.iter().map(of).sum::<f64>() / jobs.len().max(1) as f64
        };
        let sojourn = [mean(&|job| job.times.sojourn()), mean(&|job| job.simulated)];
        let first = jobs
            .iter()
            .map(|job| job.times.submitted)
            .min()
            .unwrap_or_default();
        let real_end = jobs
            .iter()
            .map(|job| job.times.ended)
            .max()
            .unwrap_or_default();
        let end = ends.into_iter().max().unwrap_or_default();
        let makespan = [seconds(real_end.since(first)), seconds(end.since(first))];
        let unfinished = recorded.times.len() - jobs.len();
        Comparison {
            label: outcome.label.clone(),
            sojourn,
            makespan,
            jobs,
            unfinished,
        }
    }

    /// Returns the median and largest deviation, and the job of the latter.
    fn deviations(&self) -> (f64, f64, Option<&ComparedJob<'a>>) {
        let mut sorted: Vec<&ComparedJob<'_>> = self.jobs.iter().collect();
        sorted.sort_by(|one, other| {
            one.deviation()
                .total_cmp(&other.deviation())
                .then(one.times.job.cmp(&other.times.job))
        });
        let median = sorted
            .get(sorted.len().saturating_sub(1) / 2)
            .map_or(0.0, |job| job.deviation());
        let worst = self.jobs.iter().max_by(|one, other| {
            one.deviation()
                .total_cmp(&other.deviation())
                .then(other.times.job.cmp(&one.times.job))
        });
        (median, worst.map_or(0.0, ComparedJob::deviation), worst)
    }

    /// Returns the figures that deviate too much.
    fn doubts(&self) -> Vec<&'static str> {
        let off =
            |[real, simulated]: [f64; 2]| (ratio([real, simulated]) - 1.0).abs() > DEVIATION_MAX;
        let mut doubts = Vec::new();
        doubts.extend(off(self.sojourn).then_some("mean sojourn"));
        doubts.extend(off(self.makespan).then_some("makespan"));
        doubts.extend((self.deviations().0 > DEVIATION_MAX).then_some("median job"));
        doubts.extend((self.unfinished > 0).then_some("number of jobs that end"));
        doubts
    }

    fn text(&self) -> String {
        let row = |name: &str, both: [f64; 2]| {
            vec![
                name.to_owned(),
                number(both[0]),
                number(both[1]),
                format!("{:.3}", ratio(both)),
            ]
        };
        let rows = [
            row("sojourn mean, s", self.sojourn),
            row("makespan, s", self.makespan),
        ];
        let mut text = table(&["Fidelity", "recorded", &self.label, "ratio"], rows);
        let (median, largest, worst) = self.deviations();
        let _ = write!(
            text,
            "sojourns of jobs are off by {:.1} % (median)",
            median * 100.0
        );
        if let Some(job) = worst {
            let RecordedTimes { job: id, name, .. } = job.times;
            let real = number(job.times.sojourn());
            let simulated = number(job.simulated);
            let _ = write!(
                text,
                " and {:.1} % at most ({id} {name}: {real} s recorded, {simulated} s simulated)",
                largest * 100.0
            );
        }
        text.push('\n');
        let doubts = self.doubts();
        let percent = DEVIATION_MAX * 100.0;
        text += &match &doubts[..] {
            [] => format!("the simulation is within {percent} % of the recorded times\n"),
            doubts => format!(
                "DOUBTFUL: more than {percent} % off by {}; compare directions only, not sizes\n",
                doubts.join(", ")
            ),
        };
        text
    }

    fn value(&self) -> Value {
        let (median, largest, worst) = self.deviations();
        let of = |job: &ComparedJob<'_>| {
            json!({
                "job": job.times.job.to_string(),
                "name": job.times.name,
                "recorded": job.times.sojourn(),
                "simulated": job.simulated,
                "deviation": job.deviation(),
            })
        };
        let both = |both: [f64; 2]| json!({ "recorded": both[0], "simulated": both[1], "ratio": ratio(both) });
        json!({
            "variant": self.label,
            "sojourn_mean": both(self.sojourn),
            "makespan": both(self.makespan),
            "deviation_median": median,
            "deviation_largest": largest,
            "largest_of": worst.map(|job| job.times.job.to_string()),
            "doubtful": self.doubts(),
            "jobs": self.jobs.iter().map(of).collect::<Vec<_>>(),
        })
    }
}

fn ratio([real, simulated]: [f64; 2]) -> f64 {
    if real > 0.0 { simulated / real } else { 1.0 }
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e6
}
