//! The report of an experiment: a table of all jobs and one for each class, and the same as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use napreduce_engine::{Judged, Primitive, Span};
use napreduce_sim::metrics::{ClassSummary, ConfidenceInterval, RunSummary, confidence};
use serde_json::{Value, json};

use super::Experiment;
use super::runs::Outcome;
use super::variants::Variant;
use crate::format::table;

/// Maximum unfinished jobs to name.
const NAMED_MAX: usize = 10;

/// A row of the table: heading and function of a run.
type Row = (&'static str, fn(&RunSummary) -> f64);

const ROWS: [Row; 22] = [
    ("jobs ended", |run| run.jobs as f64),
    ("  failed", |run| run.failed as f64),
    ("sojourn mean, s", |run| run.sojourn.mean),
    ("  median", |run| run.sojourn.median),
    ("  95 %", |run| run.sojourn.p95),
    ("  99 %", |run| run.sojourn.p99),
    ("  largest", |run| run.sojourn.max),
    ("slowdown mean", |run| run.slowdown.mean),
    ("  largest", |run| run.slowdown.max),
    ("makespan, s", |run| run.makespan),
    ("reduce wait mean, s", |run| run.reduce_wait.mean),
    ("  largest", |run| run.reduce_wait.max),
    ("useful work, slot s", |run| run.useful),
    ("  wasted", |run| run.wasted),
    ("  saved by preemption", |run| run.saved),
    ("  reduces waiting", |run| run.waiting),
    ("  overhead", |run| run.overhead),
    ("preempted by suspend", |run| run.preemptions.suspend as f64),
    ("  by checkpoint", |run| run.preemptions.checkpoint as f64),
    ("  by kill", |run| run.preemptions.kill as f64),
    ("deadlines", |run| run.deadlines as f64),
    ("  missed", |run| run.missed as f64),
];

/// Rows for requests that settings replaced or delayed; those that are zero everywhere are left out.
const FALLBACK_ROWS: [Row; 6] = [
    ("requests: worker full", |run| {
        run.fallbacks.worker_full as f64
    }),
    ("requests: not possible", |run| {
        run.fallbacks.not_possible as f64
    }),
    ("requests: taken often", |run| {
        run.fallbacks.taken_enough as f64
    }),
    ("requests: by costs", |run| run.fallbacks.costs as f64),
    ("requests: delayed", |run| run.fallbacks.delayed as f64),
    ("requests: timed out", |run| run.forced_kills as f64),
];

/// Rows for runs with slots of two kinds.
const SLOT_ROWS: [Row; 2] = [
    ("map slots used, %", |run| run.utilisation[0] * 100.0),
    ("reduce slots used, %", |run| run.utilisation[1] * 100.0),
];

/// Rows for runs with containers.
const CONTAINER_ROWS: [Row; 3] = [
    ("containers used, %", |run| {
        run.containers.unwrap_or(0.0) * 100.0
    }),
    ("  by maps and masters", |run| run.utilisation[0] * 100.0),
    ("  by reduces", |run| run.utilisation[1] * 100.0),
];

/// Rows for runs with data locality.
const LOCALITY_ROWS: [Row; 2] = [
    ("node-local maps, %", |run| {
        share(run.local_maps, run.placed_maps)
    }),
    ("  rack-local", |run| share(run.rack_maps, run.placed_maps)),
];

/// Returns a share in percent.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}

/// A row of the table of a class.
type ClassRow = (&'static str, fn(&ClassSummary) -> f64);

const CLASS_ROWS: [ClassRow; 7] = [
    ("jobs", |class| class.jobs as f64),
    ("sojourn mean, s", |class| class.sojourn.mean),
    ("  median", |class| class.sojourn.median),
    ("  95 %", |class| class.sojourn.p95),
    ("slowdown mean", |class| class.slowdown.mean),
    ("  largest", |class| class.slowdown.max),
    ("missed deadlines", |class| class.missed as f64),
];

/// Formats the report.
pub fn text(experiment: &Experiment, outcomes: &[Outcome]) -> String {
    let mut text = heading(experiment);
    let headings = headings("", outcomes);
    let placed = outcomes
        .iter()
        .flat_map(|outcome| &outcome.summaries)
        .any(|run| run.placed_maps > 0);
    let more = match (placed, experiment.settings.racks) {
        (false, _) => 0,
        (true, 1) => 1,
        (true, _) => 2,
    };
    let has_containers = outcomes
        .iter()
        .flat_map(|outcome| &outcome.summaries)
        .any(|run| run.containers.is_some());
    let used = if has_containers {
        &CONTAINER_ROWS[..]
    } else {
        &SLOT_ROWS[..]
    };
    let is_counted = |row: &&Row| {
        outcomes
            .iter()
            .flat_map(|outcome| &outcome.summaries)
            .any(|run| row.1(run) > 0.0)
    };
    let fallbacks = FALLBACK_ROWS.iter().filter(is_counted);
    let rows = ROWS
        .iter()
        .chain(fallbacks)
        .chain(used)
        .chain(&LOCALITY_ROWS[..more])
        .map(|(name, of)| {
            let cells = outcomes
                .iter()
                .map(|outcome| cell(&outcome.summaries.iter().map(of).collect::<Vec<_>>()));
            std::iter::once((*name).to_owned()).chain(cells).collect()
        });
    text += &table(
        &headings.iter().map(String::as_str).collect::<Vec<_>>(),
        rows,
    );
    let classes: BTreeSet<&String> = outcomes
        .iter()
        .flat_map(|outcome| outcome.summaries.iter().flat_map(|run| run.classes.keys()))
        .collect();
    if classes.len() > 1 {
        for class in classes {
            text.push('\n');
            text += &class_table(class, outcomes);
        }
    }
    if outcomes.len() > 1 {
        text.push('\n');
        text += &comparison_table(outcomes);
    }
    for outcome in outcomes
        .iter()
        .filter(|outcome| !outcome.first.judged.is_empty())
    {
        text.push('\n');
        text += &choice_table(&outcome.label, &outcome.first.judged);
    }
    for outcome in outcomes {
        let run = &outcome.first;
        text += &fallback_notes(outcome);
        text += &not_ended(outcome, experiment.source.jobs);
        if !run.never_submitted.is_empty() {
            let never = run.never_submitted.join(", ");
            let _ = writeln!(text, "\n{}: never submitted: {never}", outcome.label);
        }
        if let Some(warning) = run.last_warning.as_ref().filter(|_| run.warnings > 0) {
            let _ = writeln!(
                text,
                "\n{}: {} warnings, the last one: {warning}",
                outcome.label, run.warnings
            );
        }
    }
    text
}

/// Says which settings replaced what a policy requested, since they may decide a comparison of primitives.
fn fallback_notes(outcome: &Outcome) -> String {
    let Some(run) = outcome.summaries.first() else {
        return String::new();
    };
    let preemption = &outcome.preemption;
    let limit = preemption.suspended_max;
    let when_full = Primitive::from(preemption.when_full);
    let counts = &run.fallbacks;
    let taken = run.preemptions;
    let requests = taken.suspend + taken.checkpoint + taken.kill;
    let mut text = String::new();
    let mut note = |count: u64, what: String| {
        if count > 0 {
            let share = if count > requests {
                "; this decides the result"
            } else {
                ""
            };
            let requests = if count == 1 { "request" } else { "requests" };
            let _ = writeln!(
                text,
                "\n{}: {count} {requests} {what}{share}",
                outcome.label
            );
        }
    };
    note(
        counts.worker_full,
        format!("became {when_full}: worker full (suspended-max {limit}, when-full)"),
    );
    note(
        counts.not_possible,
        "got another primitive: the task cannot be preempted so (otherwise)".to_owned(),
    );
    note(
        counts.taken_enough,
        "became wait: preempted often enough (preemptions-max, suspends-max)".to_owned(),
    );
    note(
        counts.costs,
        "became wait or kill by the rule for costs".to_owned(),
    );
    note(
        counts.delayed,
        "were delayed: the task must run first (minimum-run, no progress)".to_owned(),
    );
    note(
        run.forced_kills,
        "became kill when their time was over (grace, kill-timeout)".to_owned(),
    );
    text
}

/// Formats the jobs that had not ended, or had not been submitted, when the run stopped.
fn not_ended(outcome: &Outcome, jobs: usize) -> String {
    let run = &outcome.first;
    let mut text = String::new();
    if run.unfinished > 0 {
        let what = if run.unfinished == 1 {
            "job that was submitted"
        } else {
            "jobs that were submitted"
        };
        let mut names: Vec<&str> = run
            .unfinished_names
            .iter()
            .take(NAMED_MAX)
            .map(|name| &**name)
            .collect();
        let more = run.unfinished - names.len();
        let rest = format!("and {more} more");
        names.extend((more > 0).then_some(rest.as_str()));
        let label = &outcome.label;
        let count = run.unfinished;
        let _ = writeln!(
            text,
            "\n{label}: {count} {what} did not end: {}",
            names.join(", ")
        );
    }
    let come = run.jobs.len() + run.unfinished + run.never_submitted.len();
    if come < jobs {
        let _ = writeln!(
            text,
            "\n{}: {} of {jobs} jobs were not submitted by then",
            outcome.label,
            jobs - come
        );
    }
    text
}

fn heading(experiment: &Experiment) -> String {
    let settings = &experiment.settings;
    let last = experiment.seed + u64::from(experiment.runs) - 1;
    let seeds = if experiment.runs == 1 {
        format!("seed {last}")
    } else {
        format!("seeds {} to {last}", experiment.seed)
    };
    let slots = match settings.masters_max {
        Some(_) => format!("{} containers", settings.slots.map),
        None if !settings.unlike_slots.is_empty() => {
            let (maps, reduces) = settings.total_slots();
            format!("{maps} map and {reduces} reduce slots in all")
        }
        None => format!(
            "{} map and {} reduce slots",
            settings.slots.map, settings.slots.reduce
        ),
    };
    let name = &experiment.source.name;
    let jobs = experiment.source.jobs;
    format!(
        "{name}: {jobs} jobs on {} nodes with {slots}, {seeds}\n",
        settings.machines
    )
}

fn headings(first: &str, outcomes: &[Outcome]) -> Vec<String> {
    std::iter::once(first.to_owned())
        .chain(outcomes.iter().map(|outcome| outcome.label.clone()))
        .collect()
}

fn class_table(class: &str, outcomes: &[Outcome]) -> String {
    let headings = headings(class, outcomes);
    let nothing = ClassSummary::default();
    let rows = CLASS_ROWS.iter().map(|(name, of)| {
        let cells = outcomes.iter().map(|outcome| {
            let runs = outcome
                .summaries
                .iter()
                .map(|run| of(run.classes.get(class).unwrap_or(&nothing)));
            cell(&runs.collect::<Vec<_>>())
        });
        std::iter::once((*name).to_owned()).chain(cells).collect()
    });
    table(
        &headings.iter().map(String::as_str).collect::<Vec<_>>(),
        rows,
    )
}

/// Formats the mean over runs with its confidence interval.
pub fn cell(runs: &[f64]) -> String {
    let interval = confidence(runs);
    match interval.within {
        None => number(interval.mean),
        Some(within) => format!("{} ± {}", number(interval.mean), number(within)),
    }
}

/// Formats a number with four digits, or all digits of an integer.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 1000.0 || value.fract() == 0.0 => 0,
        large if large >= 100.0 => 1,
        large if large >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Returns the report as JSON.
pub fn json(experiment: &Experiment, outcomes: &[Outcome]) -> Value {
    let of = |(variant, outcome): (&Variant, &Outcome)| {
        let means = ROWS.iter().map(|(name, of)| {
            let interval = confidence(&outcome.summaries.iter().map(of).collect::<Vec<_>>());
            (name.trim(), interval)
        });
        let interesting = [
            "sojourn mean, s",
            "slowdown mean",
            "makespan, s",
            "reduce wait mean, s",
        ];
        let intervals = means.filter(|(name, _)| interesting.contains(name));
        let intervals: serde_json::Map<String, Value> = intervals
            .map(|(name, interval)| (key(name), json!(interval)))
            .collect();
        json!({
            "scheduler": variant.subject.name(),
            "label": outcome.label,
            "paired": paired_ratios(&outcomes[0], outcome),
            "confidence": intervals,
            "runs": outcome.summaries,
            "choices": choice_values(&outcome.first.judged),
        })
    };
    json!({
        "workload": experiment.source.name,
        "jobs": experiment.source.jobs,
        "seed": experiment.seed,
        "settings": experiment.settings,
        "schedulers": experiment.variants.iter().zip(outcomes).map(of).collect::<Vec<_>>(),
    })
}

/// Turns `sojourn mean, s` into `sojourn_mean`.
fn key(name: &str) -> String {
    name.split(',').next().unwrap_or(name).replace(' ', "_")
}

/// A compared figure: heading, key, and function of a run.
type ComparedNumber = (&'static str, &'static str, fn(&RunSummary) -> f64);

const COMPARED: [ComparedNumber; 3] = [
    ("sojourn mean, s", "sojourn_mean", |run| run.sojourn.mean),
    ("slowdown mean", "slowdown_mean", |run| run.slowdown.mean),
    ("makespan, s", "makespan", |run| run.makespan),
];

/// Returns the ratio of a figure to that of the first variant, over equal seeds; `None` if one of those is zero.
fn ratio(
    first: &Outcome,
    outcome: &Outcome,
    of: fn(&RunSummary) -> f64,
) -> Option<ConfidenceInterval> {
    let pairs = first
        .summaries
        .iter()
        .zip(&outcome.summaries)
        .map(|(first, run)| (of(first), of(run)));
    let ratios: Option<Vec<f64>> = pairs
        .map(|(first, run)| (first > 0.0).then(|| run / first))
        .collect();
    ratios.map(|ratios| confidence(&ratios))
}

/// Formats a row for each variant.
fn comparison_table(outcomes: &[Outcome]) -> String {
    let Some(first) = outcomes.first() else {
        return String::new();
    };
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
            row.push(ratio(first, outcome, of).map_or_else(|| "-".to_owned(), ratio_in_words));
        }
        row.push(
            outcome
                .summaries
                .iter()
                .map(|run| run.unfinished)
                .sum::<u64>()
                .to_string(),
        );
        row
    });
    table(&headings, rows)
}

fn ratio_in_words(ratio: ConfidenceInterval) -> String {
    match ratio.within {
        None => format!("{:.3}", ratio.mean),
        Some(within) => format!("{:.3} ± {}", ratio.mean, number(within)),
    }
}

/// Returns the ratios of one variant as JSON.
fn paired_ratios(first: &Outcome, outcome: &Outcome) -> Value {
    let ratios = COMPARED
        .iter()
        .map(|(_, key, of)| ((*key).to_owned(), json!(ratio(first, outcome, *of))));
    Value::Object(ratios.collect())
}

/// Formats expected and actual costs of each primitive that the engine chose by cost, as means over freed slots.
fn choice_table(scheduler: &str, judged: &BTreeMap<Primitive, Judged>) -> String {
    let headings = [
        "chosen",
        "slots",
        "free after, s: expected",
        "took",
        "cost to victims, s: expected",
        "was",
    ];
    let rows = judged.iter().map(|(primitive, known)| {
        let mean = |span: Span| format!("{:.3}", span.0 as f64 / 1e6 / known.slots.max(1) as f64);
        vec![
            format!("{primitive} ({scheduler})"),
            known.slots.to_string(),
            mean(known.free_estimated),
            mean(known.free),
            mean(known.victim_estimated),
            mean(known.victim),
        ]
    });
    table(&headings, rows)
}

/// Returns the costs of chosen primitives as JSON, in seconds summed over all slots.
fn choice_values(judged: &BTreeMap<Primitive, Judged>) -> Value {
    let seconds = |span: Span| span.0 as f64 / 1e6;
    let one = |(primitive, known): (&Primitive, &Judged)| {
        json!({
            "primitive": primitive.to_string(),
            "slots": known.slots,
            "free_expected": seconds(known.free_estimated),
            "free": seconds(known.free),
            "victims_expected": seconds(known.victim_estimated),
            "victims": seconds(known.victim),
        })
    };
    Value::Array(judged.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_has_four_digits_or_is_an_integer() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (3.0, "3"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (12345.6, "12346"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(
            (cell(&[2.0]), cell(&[2.0, 2.0])),
            ("2".to_owned(), "2 ± 0".to_owned())
        );
        assert_eq!(key("reduce wait mean, s"), "reduce_wait_mean");
    }
}
