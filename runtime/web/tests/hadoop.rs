//! Hadoop's dialect: what scripts and monitors that were written for YARN get.
//!
//! Owns what Hadoop's queries and refusals mean. Does not own the fields of each object (`src/hadoop`), nor
//! that a client of others works (`foreign`).

mod kit;

use kit::Sample;
use napreduce_web::WebRole;
use serde_json::{Value, json};

const APPS: &str = "/ws/v1/cluster/apps";
const JOBS: &str = "/ws/v1/history/mapreduce/jobs";

fn ids(answer: &Value, list: &str, item: &str) -> Vec<String> {
    let items = answer[list][item].as_array().expect("a list");
    items.iter().map(|one| one["id"].as_str().expect("an ID").to_owned()).collect()
}

#[test]
fn queries_choose_applications_as_yarns_do() {
    let sample = Sample::start();
    let chosen = |query: &str| ids(&sample.get(&format!("{APPS}?{query}")).json(), "apps", "app");
    let (both, ended, running) = (
        vec!["application_0_0002".to_owned(), "application_0_0001".to_owned()],
        vec!["application_0_0001".to_owned()],
        vec!["application_0_0002".to_owned()],
    );
    for (query, expected) in [
        ("", &both),
        ("states=RUNNING,FINISHED", &both),
        ("states=RUNNING&states=FINISHED", &both),
        ("states=running", &running),
        ("state=FINISHED", &ended),
        ("finalStatus=SUCCEEDED", &ended),
        ("limit=1", &running),
        ("user=ada&queue=default", &both),
        ("user=grace", &vec![]),
        ("finishedTimeBegin=0", &ended),
        ("finishedTimeEnd=1790000001999", &vec![]),
        ("startedTimeBegin=1790000000000&startedTimeEnd=1790000000000", &both),
        ("startedTimeBegin=1790000000001", &vec![]),
        ("applicationTypes=MAPREDUCE,SPARK", &both),
        ("applicationTypes=SPARK", &vec![]),
        ("applicationTags=nightly", &vec![]),
        // What means nothing here is no reason to break a script.
        ("deSelects=resourceRequests&user.name=ada", &both),
    ] {
        assert_eq!(&chosen(query), expected, "{query}");
    }
    let jobs = |query: &str| ids(&sample.get(&format!("{JOBS}?{query}")).json(), "jobs", "job");
    assert_eq!(jobs(""), ["job_0_0002", "job_0_0001"]);
    assert_eq!(jobs("state=SUCCEEDED"), ["job_0_0001"]);
    let scheduler = sample.get("/ws/v1/cluster/scheduler").json();
    let queue = &scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"][0];
    assert_eq!((&queue["queueName"], &queue["absoluteCapacity"]), (&json!("default"), &json!(50.0)));
    let counted = sample.get("/ws/v1/cluster/appstatistics?states=RUNNING,FAILED").json();
    let expected = json!([
        { "state": "RUNNING", "type": "*", "count": 1 },
        { "state": "FAILED", "type": "*", "count": 0 },
    ]);
    assert_eq!(counted["appStatInfo"]["statItem"], expected);
    let nodes =
        |query: &str| ids(&sample.get(&format!("/ws/v1/cluster/nodes?{query}")).json(), "nodes", "node");
    assert_eq!(nodes("states=RUNNING"), ["worker_0001"]);
    assert_eq!(nodes("states=LOST,UNHEALTHY"), Vec::<String>::new());
}

#[test]
fn identifiers_are_taken_in_both_forms() {
    let sample = Sample::start();
    for id in ["job_0001", "application_0_0001", "application_1790000000000_0001", "job_1790000000000_0001"] {
        assert_eq!(sample.get(&format!("{APPS}/{id}")).json()["app"]["id"], "application_0_0001", "{id}");
        assert_eq!(sample.get(&format!("{JOBS}/{id}")).json()["job"]["id"], "job_0_0001", "{id}");
        assert_eq!(sample.get(&format!("/api/nap/v1/jobs/{id}")).json()["job"], "job_0001", "{id}");
    }
    let attempt = "task_0_0001_m_000000/attempts/attempt_0_0001_m_000000_0";
    let answer = sample.get(&format!("{JOBS}/job_0_0001/tasks/{attempt}")).json();
    assert_eq!(answer["taskAttempt"]["state"], "SUCCEEDED", "{answer}");
    assert_eq!(answer["taskAttempt"]["elapsedTime"], 1_800, "{answer}");
}

#[test]
fn hadoops_refusals_are_exceptions_with_our_words() {
    let sample = Sample::start();
    for (path, status, exception, message) in [
        ("/ws/v1/cluster/apps/application_0_0009", 404, "NotFoundException", "there is no job_0009"),
        ("/ws/v1/cluster/apps/9", 400, "BadRequestException", "\"9\" is no job"),
        ("/ws/v1/cluster/apps?states=ODD", 400, "BadRequestException", "Invalid application-state ODD"),
        ("/ws/v1/cluster/apps?limit=many", 400, "BadRequestException", "limit=many"),
        ("/ws/v1/cluster/nodes/worker_0009", 404, "NotFoundException", "there is no worker_0009"),
        (
            "/ws/v1/history/mapreduce/jobs/job_0_0001/tasks?type=x",
            400,
            "BadRequestException",
            "tasktype must be",
        ),
        (
            "/ws/v1/history/mapreduce/jobs/job_0_0001/tasks/task_0_0001_m_000009",
            404,
            "NotFoundException",
            "of job_0001",
        ),
        (
            "/ws/v1/history/mapreduce/jobs/job_0_0001/tasks/task_0_0002_m_000000",
            404,
            "NotFoundException",
            "of job_0001",
        ),
    ] {
        let answer = sample.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let told = &answer.json()["RemoteException"];
        assert_eq!(told["exception"], exception, "{path}: {told}");
        assert!(told["message"].as_str().is_some_and(|told| told.starts_with(message)), "{path}: {told}");
        assert!(
            told["javaClassName"].as_str().is_some_and(|class| class.ends_with(exception)),
            "{path}: {told}"
        );
    }
    let stranger = sample.ask(&format!("GET {APPS}"), &[], "");
    assert_eq!(stranger.status, 401, "{}", stranger.body);
    assert_eq!(sample.get("/ws/v1/nothing").status, 404);
    assert_eq!(sample.ask(&format!("GET {APPS}"), &[("Origin", "http://evil.example")], "").status, 403);
}

#[test]
fn an_application_is_killed_once_and_by_an_operator_alone() {
    let sample = Sample::start();
    let put = |app: &str, role, body: &str| {
        let token = format!("Bearer {}", sample.token(role));
        let headers = [("Content-Type", "application/json"), ("Authorization", token.as_str())];
        sample.ask(&format!("PUT {APPS}/{app}/state"), &headers, body)
    };
    let killed = r#"{"state":"KILLED"}"#;
    assert_eq!(put("application_0_0002", WebRole::View, killed).status, 403);
    assert_eq!(put("application_0_0002", WebRole::Operate, r#"{"state":"RUNNING"}"#).status, 400);
    assert_eq!(sample.orders(), Vec::<String>::new());
    let given = put("application_0_0002", WebRole::Operate, killed);
    assert_eq!((given.status, given.json()), (202, json!({ "state": "RUNNING" })));
    assert_eq!(sample.orders(), ["KillJob(JobId(2)): asked for by YARN's REST (tester)"]);
    let over = put("application_0_0001", WebRole::Operate, killed);
    assert_eq!((over.status, over.json()), (200, json!({ "state": "FINISHED" })));
    assert_eq!(sample.orders().len(), 1);
}
