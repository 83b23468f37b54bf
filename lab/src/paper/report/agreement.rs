//! How far live runs and simulated ones agree, and what was published beside both.
//!
//! Owns the lines and the table. Does not own what agreement is (`replay`).

use std::collections::BTreeMap;
use std::fmt::Write;

use super::PaperReport;
use super::text::number;
use crate::paper::measure::Measured;
use crate::paper::quantity::Quantity;
use crate::paper::registry::{Figure, Paper};
use crate::paper::rows::{Executor, MeasuredRun};
use crate::replay::Agreement;
use crate::statistics;
use crate::table::{dash, table};

/// Live runs that were compared with the same in simulated time: paper, campaign, variant.
type Compared<'a> = BTreeMap<(&'a str, &'a str, &'a str), BTreeMap<String, Vec<(f64, f64)>>>;

impl PaperReport {
    /// A line for each variant that ran live: its mean sojourn over that of the same plan in the simulator,
    /// at the live scale.
    pub fn agreement(&self) -> Vec<String> {
        let mut compared = Compared::new();
        for MeasuredRun { run, jobs } in self.runs.iter() {
            if !run.live.as_ref().is_some_and(|live| live.counts) {
                continue;
            }
            let key = (run.key.paper.as_str(), run.key.campaign.as_str(), run.key.variant.as_str());
            let classes = compared.entry(key).or_default();
            for job in jobs {
                if let Some(simulated) = job.simulated {
                    let pair = (job.ended - job.submitted, simulated);
                    classes.entry(job.class.clone()).or_default().push(pair);
                }
            }
        }
        let line = |((paper, campaign, variant), classes): (&(&str, &str, &str), &BTreeMap<_, _>)| {
            Some(format!("{paper} {campaign} {variant}: {}", Agreement::of_pairs(classes)?.line()))
        };
        compared.iter().filter_map(line).collect()
    }

    /// What was published, simulated and found live, for each number that a figure draws; nothing unless both
    /// were run.
    pub(super) fn columns(&self, paper: &Paper, id: &str, figure: &Figure) -> Option<String> {
        let both = [Executor::Simulated, Executor::Live];
        if !both.iter().all(|executor| self.selection.executors.contains(executor)) {
            return None;
        }
        let mut rows = Vec::new();
        for series in figure.plot.iter().flat_map(|plot| &plot.series) {
            for point in &series.points {
                let found = both.map(|executor| {
                    middle(Measured { paper, figure, runs: &self.runs, executor }, point.quantity())
                });
                if found[1].is_none() {
                    continue;
                }
                let at = point.place().in_words();
                let shown = |value: Option<f64>| value.map_or_else(dash, number);
                rows.push(vec![
                    format!("{} at {at}", series.name),
                    shown(point.published()),
                    shown(found[0]),
                    shown(found[1]),
                ]);
            }
        }
        if rows.is_empty() {
            return None;
        }
        let mut text = String::new();
        let head = format!("{} {id}", paper.name);
        for line in table(&[head.as_str()], &["published", "simulated", "live"], rows).lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {line}");
        }
        Some(text)
    }
}

/// The mean over simulated blocks, the median over live ones.
fn middle(of: Measured<'_>, quantity: &Quantity) -> Option<f64> {
    let values = of.values(quantity);
    match of.executor {
        Executor::Live => statistics::median(&values),
        _ if values.is_empty() => None,
        _ => Some(values.iter().sum::<f64>() / values.len() as f64),
    }
}
