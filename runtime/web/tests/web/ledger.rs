//! The preemption ledger over HTTP: list, totals and flows.

use crate::kit::Sample;
use serde_json::{Value, json};

const LEDGER: &str = "/api/nap/v1/preemptions";
const WHOLE: &str = "from=1790000000000&until=1790000003000";

fn ends(sample: &Sample, query: &str) -> Vec<String> {
    let page = sample.get(&format!("{LEDGER}?{query}")).json();
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items
        .iter()
        .map(|item| item["end"].as_str().expect("an end").to_owned())
        .collect()
}

#[test]
fn ledger_lists_newest_first_and_filters() {
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
        assert_eq!(
            ends(&sample, &format!("{WHOLE}&{query}")),
            expected,
            "{query}"
        );
    }
    assert_eq!(
        ends(&sample, "from=1790000000600&until=1790000003000"),
        ["killed"]
    );
    assert_eq!(
        ends(&sample, "from=1790000000000&until=1790000001000"),
        ["suspended"]
    );
    let page = sample.get(&format!("{LEDGER}?{WHOLE}&limit=1")).json();
    assert_eq!(
        (&page["total"], &page["next"], &page["remarks"]),
        (&json!(2), &json!(1), &json!([]))
    );
    // The jobs are older than the default window of an hour.
    assert_eq!(ends(&sample, ""), Vec::<String>::new());
}

#[test]
fn totals_grow_with_further_jobs() {
    let sample = Sample::preempted();
    for _ in 0..60 {
        sample.submit();
        let totals = sample.get(&format!("{LEDGER}/totals?{WHOLE}")).json();
        assert_eq!(
            (&totals["count"], &totals["remarks"]),
            (&json!(2), &json!([]))
        );
    }
    let shares = sample
        .get("/api/nap/v1/shares?from=1790000000000&until=1790000003000&step=3000")
        .json();
    // 61 jobs have held a slot since 100 ms.
    let held = shares["queues"][0]["map"]["held"][0]
        .as_f64()
        .expect("a mean");
    assert!(held > 61.0 * 2.9 / 3.0 - 0.1, "{held}");
    assert_eq!(shares["jobs_left_out"], 0);
}

#[test]
fn invalid_ledger_queries_are_refused() {
    let sample = Sample::preempted();
    for (query, detail) in [
        (
            "?primitive=nap",
            "primitive=nap: expected one of wait, kill, suspend, checkpoint",
        ),
        (
            "?end=open,shut",
            "end=shut: expected one of suspended, checkpointed, killed, finished, ended, withdrawn, open",
        ),
        ("?from=9&until=8", "from (9) must not be after until (8)"),
        ("/flows?by=user", "by=user: expected one of queue, job"),
        (
            "/totals?limit=1",
            "unknown query parameter \"limit\"; expected from, until, by",
        ),
    ] {
        let told = sample.get(&format!("{LEDGER}{query}"));
        assert_eq!(told.status, 400, "{query}");
        let problem = told.json();
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|told| told.starts_with(detail)),
            "{query}: {problem}"
        );
    }
}

#[test]
fn totals_and_flows_add_up_the_list() {
    let sample = Sample::preempted();
    let totals = sample.get(&format!("{LEDGER}/totals?{WHOLE}")).json();
    assert_eq!((&totals["count"], &totals["taken"]), (&json!(2), &json!(2)));
    assert_eq!(
        (&totals["work_saved_millis"], &totals["work_lost_millis"]),
        (&json!(400), &json!(900))
    );
    assert_eq!(totals["freeing"]["p99_micros"], 4_000);
    assert_eq!(totals["primitives"][0]["primitive"], "kill");
    assert_eq!(totals["primitives"][1]["ends"], json!({ "suspended": 1 }));
    let flows =
        |by: &str| sample.get(&format!("{LEDGER}/flows?{WHOLE}{by}")).json()["items"].clone();
    let ends = |flows: &Value| -> Vec<(Value, Value, Value)> {
        let items = flows.as_array().expect("items").iter();
        items
            .map(|flow| {
                (
                    flow["from"].clone(),
                    flow["to"].clone(),
                    flow["primitive"].clone(),
                )
            })
            .collect()
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
    assert_eq!(flows("&queue=research"), json!([]));
    let by_job = flows("&by=job");
    assert_eq!(
        ends(&by_job)[1],
        (json!("job_0001"), json!("job_0002"), json!("suspend"))
    );
}

#[test]
fn groups_open_to_their_entries() {
    let sample = Sample::preempted();
    let page = sample
        .get(&format!("{LEDGER}/groups?{WHOLE}&limit=1"))
        .json();
    assert_eq!((&page["total"], &page["next"]), (&json!(2), &json!(1)));
    let newest = &page["items"][0];
    assert_eq!(
        (&newest["by"], &newest["count"], &newest["beneficiary"]),
        (&json!("operator"), &json!(1), &Value::Null)
    );
    let page = sample
        .get(&format!("{LEDGER}/groups?{WHOLE}&by=natjam"))
        .json();
    let group = &page["items"][0];
    assert_eq!(
        (&page["total"], &group["beneficiary"]),
        (&json!(1), &json!("job_0002"))
    );
    assert_eq!(group["beneficiary_queue"], "default");
    assert_eq!(
        (&group["free_micros"], &group["work_saved_millis"]),
        (&json!(4_000), &json!(400))
    );
    let id = group["group"].as_str().expect("an ID");
    assert_eq!(ends(&sample, &format!("{WHOLE}&group={id}")), ["suspended"]);
    assert_eq!(
        ends(&sample, &format!("{WHOLE}&group=job_0001_m_0000.1@0")),
        Vec::<String>::new()
    );
    let of_job = |path: &str| {
        sample
            .get(&format!("/api/nap/v1/jobs/job_0001/preemptions{path}"))
            .json()
    };
    assert_eq!(of_job("/groups")["total"], 2);
    assert_eq!(of_job("/groups?sort=lost")["items"][0]["group"], *id);
    assert_eq!(
        of_job(&format!("?group={id}"))["items"][0]["end"],
        "suspended"
    );
}
