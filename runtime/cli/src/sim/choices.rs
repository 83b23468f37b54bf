//! Expected and actual costs of the primitives that the engine chose by cost, as table and JSON.

use std::collections::BTreeMap;

use napreduce_engine::{Judged, Primitive, Span};
use serde_json::{Value, json};

use crate::format::table;

/// Formats a row for each chosen primitive, with means over the slots that it freed.
pub fn text(scheduler: &str, judged: &BTreeMap<Primitive, Judged>) -> String {
    let headings =
        ["chosen", "slots", "free after, s: expected", "took", "cost to victims, s: expected", "was"];
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

/// Returns the same as JSON, in seconds summed over all slots.
pub fn value(judged: &BTreeMap<Primitive, Judged>) -> Value {
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
