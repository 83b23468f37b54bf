//! Compares each variant with the first one, by ratios over equal seeds, as table and JSON.

use napreduce_sim::metrics::{ConfidenceInterval, RunSummary, confidence};
use serde_json::{Value, json};

use super::report::{cell, number};
use super::runs::Outcome;
use crate::format::table;

/// A compared figure: heading, key, and function of a run.
type ComparedNumber = (&'static str, &'static str, fn(&RunSummary) -> f64);

const COMPARED: [ComparedNumber; 3] = [
    ("sojourn mean, s", "sojourn_mean", |run| run.sojourn.mean),
    ("slowdown mean", "slowdown_mean", |run| run.slowdown.mean),
    ("makespan, s", "makespan", |run| run.makespan),
];

/// Returns the ratio of a figure to that of the first variant, over equal seeds; `None` if one of those is zero.
fn ratio(first: &Outcome, outcome: &Outcome, of: fn(&RunSummary) -> f64) -> Option<ConfidenceInterval> {
    let pairs = first.summaries.iter().zip(&outcome.summaries).map(|(first, run)| (of(first), of(run)));
    let ratios: Option<Vec<f64>> = pairs.map(|(first, run)| (first > 0.0).then(|| run / first)).collect();
    ratios.map(|ratios| confidence(&ratios))
}

/// Formats a row for each variant.
pub fn text(outcomes: &[Outcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let over = format!("/ {}", first.label);
    let mut headings = vec!["variant"];
    for (heading, ..) in COMPARED {
        headings.extend([heading, &over]);
    }
    headings.push("did not end");
    let rows = outcomes.iter().map(|outcome| {
        let mut row = vec![outcome.label.clone()];
        for (_, _, of) in COMPARED {
            row.push(cell(&outcome.summaries.iter().map(of).collect::<Vec<_>>()));
            row.push(ratio(first, outcome, of).map_or_else(|| "-".to_owned(), in_words));
        }
        row.push(outcome.summaries.iter().map(|run| run.unfinished).sum::<u64>().to_string());
        row
    });
    table(&headings, rows)
}

fn in_words(ratio: ConfidenceInterval) -> String {
    match ratio.within {
        None => format!("{:.3}", ratio.mean),
        Some(within) => format!("{:.3} ± {}", ratio.mean, number(within)),
    }
}

/// Returns the ratios of one variant as JSON.
pub fn value(first: &Outcome, outcome: &Outcome) -> Value {
    let ratios = COMPARED.iter().map(|(_, key, of)| ((*key).to_owned(), json!(ratio(first, outcome, *of))));
    Value::Object(ratios.collect())
}
