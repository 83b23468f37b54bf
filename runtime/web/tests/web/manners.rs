//! How lists and orders may be asked for: sorted, thinned, once.
//!
//! Owns these manners over HTTP. Does not own who may ask (`strangers`) nor what answers say (`routes`).

use crate::kit::{Answer, Sample};
use napreduce_web::WebRole;
use serde_json::{Value, json};

const JOBS: &str = "/api/nap/v1/jobs";
const KILL: &str = "/api/nap/v1/jobs/job_0002/kill";

fn ids(sample: &Sample, query: &str) -> Vec<String> {
    let page = sample.get(&format!("{JOBS}?{query}")).json();
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
    items.map(|job| job["job"].as_str().expect("an ID").to_owned()).collect()
}

#[test]
fn a_list_is_sorted_and_thinned_as_it_is_asked_for() {
    let sample = Sample::start();
    assert_eq!(ids(&sample, "sort=job"), ["job_0001", "job_0002"]);
    assert_eq!(ids(&sample, "sort=-job"), ["job_0002", "job_0001"]);
    // Job 2 runs: it takes time until now.
    assert_eq!(ids(&sample, "sort=took"), ["job_0001", "job_0002"]);
    assert_eq!(ids(&sample, "sort=-took"), ["job_0002", "job_0001"]);
    assert_eq!(ids(&sample, "sort=-took&limit=1&after=1"), ["job_0001"]);
    let thin = sample.get(&format!("{JOBS}?fields=state,job&sort=job")).json();
    assert_eq!(
        thin["items"],
        json!([{ "job": "job_0001", "state": "succeeded" }, { "job": "job_0002", "state": "active" }])
    );
    assert_eq!(thin["total"], 2);
}

#[test]
fn every_list_says_by_what_it_is_sorted_and_what_its_items_have() {
    let sample = Sample::start();
    let description = sample.get("/api/openapi.json").json();
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for parameter in methods["get"]["parameters"].as_array().into_iter().flatten() {
            let (name, pattern) =
                (parameter["name"].as_str().expect("a name"), &parameter["schema"]["pattern"]);
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
            assert!(refused.body.contains(&names), "{path} {name}: {}", refused.body);
        }
    }
    assert!(asked > 80, "{asked} were asked for");
}

#[test]
fn orders_about_tasks_accept_the_name_of_an_attempt() {
    let sample = Sample::start();
    let order = |path: &str| sample.post(&format!("/api/nap/v1/tasks/{path}"), r#"{"reason":"why"}"#);
    for (path, ordered) in
        [("job_0002_m_0000/suspend", "job_0002_m_0000"), ("job_0002_m_0000.1/kill", "job_0002_m_0000.1")]
    {
        let told = order(path);
        assert_eq!((told.status, told.json()["ordered"].as_str()), (202, Some(ordered)), "{}", told.body);
    }
    let [task, attempt] = sample.orders().try_into().expect("two orders");
    assert!(task.contains("attempt: None, command: Suspend"), "{task}");
    assert!(attempt.contains("attempt: Some(1), command: Kill"), "{attempt}");
    let odd = order("job_0002_m_0000.x/kill");
    assert_eq!(odd.status, 400, "{}", odd.body);
    // What is read of an attempt is read of its task.
    let read = |name: &str| sample.get(&format!("/api/nap/v1/tasks/{name}")).json()["task"].clone();
    assert_eq!(read("job_0001_m_0000.1"), "job_0001_m_0000");
    assert_eq!(read("job_0001_m_0000"), "job_0001_m_0000");
}

fn order(sample: &Sample, path: &str, key: &str, name: WebRole, body: &str) -> Answer {
    let token = format!("Bearer {}", sample.token(name));
    let headers =
        [("Authorization", token.as_str()), ("Content-Type", "application/json"), ("Idempotency-Key", key)];
    sample.ask(&format!("POST {path}"), &headers, body)
}

#[test]
fn an_order_with_a_key_is_given_once() {
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
    assert!(other.body.contains("the key k-1 was sent with another order"), "{}", other.body);
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
fn keys_that_are_none_and_orders_that_are_refused_leave_nothing_behind() {
    let sample = Sample::start();
    for key in ["", "a b", "\u{e9}", &"k".repeat(201)] {
        let told = order(&sample, KILL, key, WebRole::Operate, "{}");
        assert_eq!(told.status, 400, "{key:?}: {}", told.body);
    }
    assert_eq!(order(&sample, KILL, "k", WebRole::View, "{}").status, 403);
    assert_eq!(order(&sample, KILL, "k", WebRole::Operate, "{").status, 400);
    let absent = "/api/nap/v1/jobs/job_0009/kill";
    assert_eq!(order(&sample, absent, "k", WebRole::Operate, "{}").status, 409);
    assert!(sample.orders().is_empty());
    assert_eq!(order(&sample, KILL, "k", WebRole::Operate, "{}").status, 202);
    assert_eq!(sample.orders().len(), 1);
    let told: Value = order(&sample, KILL, "k", WebRole::Operate, "{}").json();
    assert_eq!(told["ordered"], "job_0002");
}
