//! The ledger of the whole cluster over HTTP: its list, its sums and its flows.
//!
//! Owns what a query takes and what is left out. Does not own the sums themselves (`answers`).

use crate::kit::Sample;
use serde_json::{Value, json};

const LEDGER: &str = "/api/nap/v1/preemptions";
const WHOLE: &str = "from=1790000000000&until=1790000003000";

fn ends(sample: &Sample, query: &str) -> Vec<String> {
    let page = sample.get(&format!("{LEDGER}?{query}")).json();
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items.iter().map(|item| item["end"].as_str().expect("an end").to_owned()).collect()
}

#[test]
fn the_ledger_of_all_jobs_is_listed_newest_first_and_filtered() {
    let sample = Sample::preempted();
    assert_eq!(ends(&sample, WHOLE), ["killed", "suspended"]);
    for (query, expected) in [
        ("primitive=suspend", vec!["suspended"]),
        ("primitive=suspend,kill", vec!["killed", "suspended"]),
        ("end=killed", vec!["killed"]),
        ("by=operator", vec!["killed"]),
        ("queue=default", vec!["killed", "suspended"]),
        ("queue=production", vec![]),
        ("limit=1", vec!["killed"]),
        ("limit=1&after=1", vec!["suspended"]),
    ] {
        assert_eq!(ends(&sample, &format!("{WHOLE}&{query}")), expected, "{query}");
    }
    assert_eq!(ends(&sample, "from=1790000000600&until=1790000003000"), ["killed"]);
    assert_eq!(ends(&sample, "from=1790000000000&until=1790000001000"), ["suspended"]);
    let page = sample.get(&format!("{LEDGER}?{WHOLE}&limit=1")).json();
    assert_eq!((&page["total"], &page["next"], &page["remarks"]), (&json!(2), &json!(1), &json!([])));
    // The last hour is long after these jobs.
    assert_eq!(ends(&sample, ""), Vec::<String>::new());
}

#[test]
fn totals_do_not_fall_as_jobs_come() {
    let sample = Sample::preempted();
    for _ in 0..60 {
        sample.submit();
        let totals = sample.get(&format!("{LEDGER}/totals?{WHOLE}")).json();
        assert_eq!((&totals["count"], &totals["remarks"]), (&json!(2), &json!([])));
    }
    let shares = sample.get("/api/nap/v1/shares?from=1790000000000&until=1790000003000&step=3000").json();
    // Sixty-one jobs hold a slot since 100 ms.
    let held = shares["queues"][0]["map"]["held"][0].as_f64().expect("a mean");
    assert!(held > 61.0 * 2.9 / 3.0 - 0.1, "{held}");
    assert_eq!(shares["jobs_left_out"], 0);
}

#[test]
fn a_ledger_that_makes_no_sense_is_refused() {
    let sample = Sample::preempted();
    for (query, detail) in [
        ("?primitive=nap", "primitive=nap: there are wait, kill, suspend, checkpoint"),
        (
            "?end=open,shut",
            "end=shut: there are suspended, checkpointed, killed, finished, ended, withdrawn, open",
        ),
        ("?from=9&until=8", "a window from 9 until 8 is none"),
        ("/flows?by=user", "by=user: there are queue, job"),
        ("/totals?limit=1", "the query may not say \"limit\"; it may say from, until, by"),
    ] {
        let told = sample.get(&format!("{LEDGER}{query}"));
        assert_eq!(told.status, 400, "{query}");
        let problem = told.json();
        assert!(
            problem["detail"].as_str().is_some_and(|told| told.starts_with(detail)),
            "{query}: {problem}"
        );
    }
}

#[test]
fn totals_and_flows_sum_up_what_is_listed() {
    let sample = Sample::preempted();
    let totals = sample.get(&format!("{LEDGER}/totals?{WHOLE}")).json();
    assert_eq!((&totals["count"], &totals["taken"]), (&json!(2), &json!(2)));
    assert_eq!((&totals["work_saved_millis"], &totals["work_lost_millis"]), (&json!(400), &json!(900)));
    assert_eq!(totals["freeing"]["p99_micros"], 4_000);
    assert_eq!(totals["primitives"][0]["primitive"], "kill");
    assert_eq!(totals["primitives"][1]["ends"], json!({ "suspended": 1 }));
    let flows = |by: &str| sample.get(&format!("{LEDGER}/flows?{WHOLE}{by}")).json()["items"].clone();
    let ends = |flows: &Value| -> Vec<(Value, Value, Value)> {
        let items = flows.as_array().expect("items").iter();
        items.map(|flow| (flow["from"].clone(), flow["to"].clone(), flow["primitive"].clone())).collect()
    };
    let by_queue = flows("");
    assert_eq!(
        ends(&by_queue),
        [
            (json!("default"), Value::Null, json!("kill")),
            (json!("default"), json!("default"), json!("suspend"))
        ]
    );
    assert_eq!(by_queue[1]["work_saved_millis"], 400);
    let by_job = flows("&by=job");
    assert_eq!(ends(&by_job)[1], (json!("job_0001"), json!("job_0002"), json!("suspend")));
}
