//! Sorting and selecting fields of lists; orders with an idempotency key.

use crate::kit::{Answer, Sample};
use napreduce_web::WebRole;
use serde_json::{Value, json};

const JOBS: &str = "/api/nap/v1/jobs";
const KILL: &str = "/api/nap/v1/jobs/job_0002/kill";

fn ids(sample: &Sample, query: &str) -> Vec<String> {
    let page = sample.get(&format!("{JOBS}?{query}")).json();
    let items = page["items"]
        .as_array()
        .unwrap_or_else(|| panic!("{page}"))
        .iter();
    items
        .map(|job| job["job"].as_str().expect("an ID").to_owned())
        .collect()
}

#[test]
fn list_is_sorted_and_reduced_to_fields() {
    let sample = Sample::start();
    assert_eq!(ids(&sample, "sort=job"), ["job_0001", "job_0002"]);
    assert_eq!(ids(&sample, "sort=-job"), ["job_0002", "job_0001"]);
    // Job 2 is running, so its duration ends now.
    assert_eq!(ids(&sample, "sort=took"), ["job_0001", "job_0002"]);
    assert_eq!(ids(&sample, "sort=-took"), ["job_0002", "job_0001"]);
    assert_eq!(ids(&sample, "sort=-took&limit=1&after=1"), ["job_0001"]);
    let thin = sample
        .get(&format!("{JOBS}?fields=state,job&sort=job"))
        .json();
    assert_eq!(
        thin["items"],
        json!([{ "job": "job_0001", "state": "succeeded" }, { "job": "job_0002", "state": "running" }])
    );
    assert_eq!(thin["total"], 2);
}

#[test]
fn description_names_sort_and_item_fields() {
    let sample = Sample::start();
    let description = sample.get("/api/openapi.json").json();
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for parameter in methods["get"]["parameters"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = parameter["name"].as_str().expect("a name");
            let pattern = &parameter["schema"]["pattern"];
            if !["sort", "fields"].contains(&name) {
                continue;
            }
            let pattern = pattern.as_str().expect("a pattern");
            let words = pattern.split(['(', ')']).nth(1).expect("words");
            let path = path.replace("{job}", "job_0001");
            for word in words.split('|') {
                let told = sample.get(&format!("{path}?{name}={word}"));
                assert_eq!(told.status, 200, "{path} {name}={word}: {}", told.body);
                asked += 1;
            }
            let refused = sample.get(&format!("{path}?{name}=odd"));
            assert_eq!(refused.status, 400, "{path} {name}: {}", refused.body);
            let names = words.replace('|', ", ");
            assert!(
                refused.body.contains(&names),
                "{path} {name}: {}",
                refused.body
            );
        }
    }
    assert!(asked > 80, "{asked} fields were tested");
}

#[test]
fn task_orders_accept_an_attempt_id() {
    let sample = Sample::start();
    let order =
        |path: &str| sample.post(&format!("/api/nap/v1/tasks/{path}"), r#"{"reason":"why"}"#);
    for (path, ordered) in [
        ("job_0002_m_0000/suspend", "job_0002_m_0000"),
        ("job_0002_m_0000.1/kill", "job_0002_m_0000.1"),
    ] {
        let told = order(path);
        assert_eq!(
            (told.status, told.json()["ordered"].as_str()),
            (202, Some(ordered)),
            "{}",
            told.body
        );
    }
    let [task, attempt] = sample.orders().try_into().expect("two orders");
    assert!(task.contains("attempt: None, command: Suspend"), "{task}");
    assert!(
        attempt.contains("attempt: Some(1), command: Kill"),
        "{attempt}"
    );
    let odd = order("job_0002_m_0000.x/kill");
    assert_eq!(odd.status, 400, "{}", odd.body);
    // Routes that read accept an attempt ID in place of its task's.
    let read = |name: &str| sample.get(&format!("/api/nap/v1/tasks/{name}")).json()["task"].clone();
    assert_eq!(read("job_0001_m_0000.1"), "job_0001_m_0000");
    assert_eq!(read("job_0001_m_0000"), "job_0001_m_0000");
}

fn order(sample: &Sample, path: &str, key: &str, name: WebRole, body: &str) -> Answer {
    let token = format!("Bearer {}", sample.token(name));
    let headers = [
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
        ("Idempotency-Key", key),
    ];
    sample.ask(&format!("POST {path}"), &headers, body)
}

#[test]
fn order_with_a_key_runs_once() {
    let sample = Sample::start();
    let kill = |key: &str, body: &str| order(&sample, KILL, key, WebRole::Operate, body);
    let first = kill("k-1", r#"{"reason":"in the way"}"#);
    let again = kill("k-1", r#"{"reason":"in the way"}"#);
    assert_eq!((first.status, again.status), (202, 202), "{}", again.body);
    assert_eq!(
        (first.body.as_str(), again.header("content-type")),
        (again.body.as_str(), Some("application/json"))
    );
    assert_eq!(sample.orders().len(), 1, "{:?}", sample.orders());
    let other = kill("k-1", r#"{"reason":"another"}"#);
    assert_eq!(other.status, 422, "{}", other.body);
    assert!(
        other
            .body
            .contains("key k-1 was already used for another order"),
        "{}",
        other.body
    );
    assert_eq!(
        order(
            &sample,
            "/api/nap/v1/jobs/job_0001/kill",
            "k-1",
            WebRole::Operate,
            r#"{"reason":"in the way"}"#
        )
        .status,
        422
    );
    assert_eq!(kill("k-2", r#"{"reason":"in the way"}"#).status, 202);
    assert_eq!(sample.orders().len(), 2);
}

#[test]
fn invalid_keys_and_refused_orders_are_not_remembered() {
    let sample = Sample::start();
    for key in ["", "a b", "\u{e9}", &"k".repeat(201)] {
        let told = order(&sample, KILL, key, WebRole::Operate, "{}");
        assert_eq!(told.status, 400, "{key:?}: {}", told.body);
    }
    assert_eq!(order(&sample, KILL, "k", WebRole::View, "{}").status, 403);
    assert_eq!(order(&sample, KILL, "k", WebRole::Operate, "{").status, 400);
    let absent = "/api/nap/v1/jobs/job_0009/kill";
    assert_eq!(
        order(&sample, absent, "k", WebRole::Operate, "{}").status,
        404
    );
    assert!(sample.orders().is_empty());
    assert_eq!(
        order(&sample, KILL, "k", WebRole::Operate, "{}").status,
        202
    );
    assert_eq!(sample.orders().len(), 1);
    let told: Value = order(&sample, KILL, "k", WebRole::Operate, "{}").json();
    assert_eq!(told["ordered"], "job_0002");
}

#[test]
fn unknown_page_is_shown_with_status_404() {
    let sample = Sample::start();
    let told = |path: &str| sample.ask(&format!("GET {path}"), &[], "");
    for path in [
        "/",
        "/jobs",
        "/jobs/job_0001/tasks",
        "/queues/nightly",
        "/recordings/compare",
        "/about",
    ] {
        assert_eq!(told(path).status, 200, "{path}");
    }
    for path in ["/nothing", "/favicon.ico", "/job/job_0001"] {
        let told = told(path);
        assert_eq!(told.status, 404, "{path}");
        assert!(
            told.body.contains("<main id=\"main\""),
            "{path}: {}",
            told.body
        );
    }
}
