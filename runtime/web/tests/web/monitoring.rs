//! The Grafana board and the alert rules in docs/monitoring name metrics and labels that a scrape has.

use std::collections::{BTreeMap, BTreeSet};

use crate::kit::Sample;
use serde_json::Value;

const PREFIX: &str = "napreduce_";

/// Reads a file of docs/monitoring.
fn file(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/monitoring");
    std::fs::read_to_string(format!("{folder}/{name}")).expect("a file")
}

/// The labels of each metric in a scrape, with their values.
type Scraped = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn scrape() -> Scraped {
    // A running cluster has workers and queues; totals of ended jobs are those of a history.
    let text = Sample::preempted().get("/metrics").body + &Sample::stopped().get("/metrics").body;
    let mut scraped = Scraped::new();
    for line in text.lines().filter(|line| line.starts_with(PREFIX)) {
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let known = scraped.entry(name.to_owned()).or_default();
        for (label, value) in labels_in(labels.trim_end_matches('}')) {
            known.entry(label).or_default().insert(value);
        }
    }
    scraped
}

/// Parses `kind="map",state=~"a|b"`; no value contains a comma.
fn labels_in(selector: &str) -> Vec<(String, String)> {
    let pairs = selector.split(',').filter(|pair| !pair.trim().is_empty());
    let parsed = pairs.map(|pair| {
        let (name, value) = pair
            .split_once('=')
            .unwrap_or_else(|| panic!("no label: {pair}"));
        (
            name.trim().to_owned(),
            value.trim_matches(['~', '"', ' ']).to_owned(),
        )
    });
    parsed.collect()
}

/// All expressions of the board, by their JSON keys.
fn expressions_of_board(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "expr" || text.starts_with("label_values(") => {
                        found.push(text.clone());
                    }
                    inner => expressions_of_board(inner, found),
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| expressions_of_board(item, found)),
        _ => {}
    }
}

/// The metrics in an expression, each with its selector.
fn metrics_in(expression: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut metrics = Vec::new();
    for (at, _) in expression.match_indices(PREFIX) {
        let rest = &expression[at..];
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        let selector = rest[end..]
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .map_or("", |(inner, _)| inner);
        metrics.push((rest[..end].to_owned(), labels_in(selector)));
    }
    metrics
}

/// The labels that an expression groups by, or that a variable lists.
fn grouped_by(expression: &str) -> Vec<String> {
    let groups = expression
        .split(" by (")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    let mut labels: Vec<String> = groups
        .flat_map(|(inner, _)| inner.split(','))
        .map(|label| label.trim().to_owned())
        .collect();
    if let Some(inner) = expression
        .strip_prefix("label_values(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        labels.extend(
            inner
                .split_once(',')
                .map(|(_, label)| label.trim().to_owned()),
        );
    }
    labels
}

fn check(expression: &str, scraped: &Scraped) {
    let metrics = metrics_in(expression);
    assert!(!metrics.is_empty(), "no metric in {expression}");
    for (name, selector) in &metrics {
        let labels = scraped
            .get(name)
            .unwrap_or_else(|| panic!("{expression}: no metric {name} in a scrape"));
        for (label, values) in selector {
            let known = labels
                .get(label)
                .unwrap_or_else(|| panic!("{expression}: {name} has no label {label}"));
            // Ended jobs of each kind appear only after one has ended.
            if label != "end" && !values.starts_with('$') {
                for value in values.split('|') {
                    assert!(
                        known.contains(value),
                        "{expression}: {name} has no {label} {value:?}: {known:?}"
                    );
                }
            }
        }
    }
    for label in grouped_by(expression) {
        let has = |(name, _): &(String, Vec<(String, String)>)| scraped[name].contains_key(&label);
        assert!(metrics.iter().all(has), "{expression}: no label {label}");
    }
}

#[test]
fn metrics_of_board_and_alerts_exist_in_a_scrape() {
    let scraped = scrape();
    let board: Value = serde_json::from_str(&file("grafana.json")).expect("JSON");
    let mut expressions = Vec::new();
    expressions_of_board(&board, &mut expressions);
    let of_board = expressions.len();
    let alerts = file("alerts.yml");
    expressions.extend(
        alerts
            .lines()
            .filter_map(|line| Some(line.trim().strip_prefix("expr: ")?.to_owned())),
    );
    assert_eq!(
        expressions.len() - of_board,
        alerts.matches("- alert: ").count(),
        "an alert has no expression"
    );
    assert!(of_board > 15, "{expressions:?}");
    for expression in &expressions {
        check(expression, &scraped);
    }
    // Legends and texts name labels of their metrics only.
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("text");
            let legend = target["legendFormat"].as_str().expect("text");
            for label in legend
                .split("{{")
                .skip(1)
                .filter_map(|rest| rest.split_once("}}"))
                .map(|(label, _)| label)
            {
                let has =
                    |(name, _): &(String, Vec<(String, String)>)| scraped[name].contains_key(label);
                assert!(
                    metrics_in(expression).iter().all(has),
                    "{expression}: no label {label} for its legend"
                );
                let groups = grouped_by(expression);
                assert!(
                    groups.is_empty() || groups.iter().any(|group| group == label),
                    "{expression}: {label}"
                );
            }
        }
    }
}

#[test]
fn unknown_metrics_and_labels_are_noticed() {
    let scraped = scrape();
    for wrong in [
        "napreduce_slot_used",
        "napreduce_workers{phase=\"up\"}",
        "napreduce_workers{state=\"gone\"}",
        "sum by (queue) (napreduce_slots)",
    ] {
        let noticed = std::panic::catch_unwind(|| check(wrong, &scraped));
        assert!(noticed.is_err(), "{wrong}");
    }
}
