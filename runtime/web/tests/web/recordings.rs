//! A server of several histories: their list, the query parameter `recording`, and the comparison.

use crate::kit::Sample;
use serde_json::json;

#[test]
fn recordings_are_listed_and_selected_by_name() {
    let sample = Sample::recordings();
    let list = sample.get("/api/nap/v1/recordings").json();
    let names: Vec<_> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["recording"])
        .collect();
    assert_eq!(names, ["left", "right"]);
    // Job 1 has ended; job 2 is running.
    assert_eq!(
        (
            &list["items"][0]["jobs"],
            &list["items"][0]["makespan_millis"]
        ),
        (&json!(1), &json!(2000))
    );
    let total =
        |query: &str| sample.get(&format!("/api/nap/v1/jobs{query}")).json()["total"].clone();
    assert_eq!(
        (
            total(""),
            total("?recording=left"),
            total("?recording=right")
        ),
        (json!(2), json!(2), json!(2))
    );
    let session = sample.get("/api/nap/v1/session?recording=right").json();
    let capabilities = session["capabilities"].as_array().expect("a list");
    assert!(capabilities.contains(&json!("recordings")), "{session}");

    let unknown = sample.get("/api/nap/v1/jobs?recording=wrong");
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["detail"], "no such recording: \"wrong\"");
    assert_eq!(
        sample
            .get("/api/nap/v1/jobs?recording=left&recording=right")
            .status,
        400
    );
}

#[test]
fn two_recordings_are_compared_per_job() {
    let sample = Sample::recordings();
    let compared = sample
        .get("/api/nap/v1/compare?left=left&right=right")
        .json();
    assert_eq!(
        (
            &compared["left"]["recording"],
            &compared["right"]["recording"]
        ),
        (&json!("left"), &json!("right"))
    );
    let job = &compared["jobs"][0];
    assert_eq!(
        (&job["left"], &job["right"], &job["difference_millis"]),
        (&json!("job_0001"), &json!("job_0001"), &json!(0))
    );
    assert_eq!(
        compared["jobs"].as_array().map(Vec::len),
        Some(1),
        "a running job has no sojourn: {compared}"
    );
    assert_eq!(
        sample
            .get("/api/nap/v1/compare?left=left&right=wrong")
            .status,
        404
    );
}

#[test]
fn single_history_has_no_recordings() {
    let sample = Sample::start();
    assert_eq!(
        sample.get("/api/nap/v1/recordings").json()["items"],
        json!([])
    );
    assert_eq!(sample.get("/api/nap/v1/jobs?recording=left").status, 404);
    let session = sample.get("/api/nap/v1/session").json();
    assert_eq!(session["capabilities"], json!(["stream", "what-if"]));
}
