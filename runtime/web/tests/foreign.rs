//! Programs of others against the server: a client of YARN, a reader of OpenAPI, a reader of OpenMetrics.
//!
//! Owns that they work as they are. They are Python's; a test says so and is skipped where one is missing,
//! unless `NAPREDUCE_REQUIRE` names `web`.

mod kit;

use std::io::Write;
use std::process::{Command, Stdio};

use kit::Sample;
use napreduce_web::{WebRole, openapi_json};

/// Runs a script and gives back what it prints; nothing where the module that it is about is missing.
fn python(module: &str, package: &str, script: &str, arguments: &[&str]) -> Option<String> {
    let found = Command::new("python3").args(["-c", &format!("import {module}")]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|one| one == "web"),
            "no python3 here has {module}: pip install {package}"
        );
        eprintln!("skipped: no python3 here has {module} (pip install {package})");
        return None;
    }
    let ran = Command::new("python3").args(["-c", script]).args(arguments).output().expect("python3");
    let (told, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}{errors}");
    Some(told.into_owned())
}

/// What a script does with the client that Jupyter's gateway uses, too.
const SCRIPT: &str = r#"
import sys
from yarn_api_client.history_server import HistoryServer
from yarn_api_client.resource_manager import ResourceManager

class Token:
    def __init__(self, token):
        self.token = token
    def __call__(self, request):
        request.headers["Authorization"] = "Bearer " + self.token
        return request

address, token = sys.argv[1:]
manager = ResourceManager(service_endpoints=[address], auth=Token(token))
print(manager.cluster_information().data["clusterInfo"]["state"])
metrics = manager.cluster_metrics().data["clusterMetrics"]
print(metrics["appsRunning"], metrics["appsCompleted"], metrics["totalVirtualCores"], metrics["activeNodes"])
apps = manager.cluster_applications(states=["RUNNING", "FINISHED"], limit="10", de_selects=["resourceRequests"]).data
print([app["id"] for app in apps["apps"]["app"]])
print([(item["state"], item["count"]) for item in manager.cluster_application_statistics(states=["RUNNING"]).data["appStatInfo"]["statItem"]])
app = "application_0_0002"
print(manager.cluster_application(app).data["app"]["finalStatus"])
queue = manager.cluster_scheduler_queue("default")
print(manager.cluster_scheduler().data["scheduler"]["schedulerInfo"]["type"], queue["absoluteCapacity"])
print(len(manager.cluster_application_attempts(app).data["appAttempts"]["appAttempt"]))
print(manager.cluster_get_application_queue(app).data["queue"], manager.cluster_get_application_priority(app).data["priority"])
print([node["id"] for node in manager.cluster_nodes().data["nodes"]["node"]], manager.cluster_node("worker_0001").data["node"]["state"])
print(manager.cluster_application_state(app).data["state"], manager.cluster_application_kill(app).data["state"])
history = HistoryServer(service_endpoint=address, auth=Token(token))
print(history.application_information().data["historyInfo"]["hadoopVersion"].split()[0])
print([job["id"] for job in history.jobs(state="SUCCEEDED").data["jobs"]["job"]])
job, task, attempt = "job_0_0001", "task_0_0001_m_000000", "attempt_0_0001_m_000000_0"
print(history.job(job).data["job"]["successfulMapAttempts"], len(history.job_attempts(job).data["jobAttempts"]["jobAttempt"]))
groups = history.job_counters(job).data["jobCounters"]["counterGroup"]
print([(counter["name"], counter["totalCounterValue"]) for group in groups for counter in group["counter"]])
print(len(history.job_conf(job).data["conf"]["property"]) > 5)
print([one["id"] for one in history.job_tasks(job, job_type="m").data["tasks"]["task"]])
print(history.job_task(job, task).data["task"]["successfulAttempt"], history.task_counters(job, task).data["jobTaskCounters"]["id"])
print(len(history.task_attempts(job, task).data["taskAttempts"]["taskAttempt"]))
print(history.task_attempt(job, task, attempt).data["taskAttempt"]["elapsedTime"])
print(history.task_attempt_counters(job, task, attempt).data["jobTaskAttemptCounters"]["id"])
"#;

const SAID: &str = "STARTED
1 1 3 1
['application_0_0002', 'application_0_0001']
[('RUNNING', 1)]
UNDEFINED
capacityScheduler 50.0
1
default 0
['worker_0001'] RUNNING
RUNNING RUNNING
napreduce
['job_0_0001']
1 1
[('MAP_INPUT_RECORDS', 12)]
True
['task_0_0001_m_000000']
attempt_0_0001_m_000000_0 task_0_0001_m_000000
1
1800
attempt_0_0001_m_000000_0
";

#[test]
fn a_client_that_was_written_for_yarn_works_as_it_is() {
    let sample = Sample::start();
    let address = format!("http://{}", sample.address());
    let token = sample.token(WebRole::Operate);
    let Some(told) = python("yarn_api_client", "yarn-api-client", SCRIPT, &[&address, &token]) else {
        return;
    };
    assert_eq!(told, SAID);
    assert_eq!(sample.orders(), ["KillJob(JobId(2)): asked for by YARN's REST (tester)"]);
}

#[test]
fn the_description_is_openapi_to_others() {
    let script = "import json, sys; from openapi_spec_validator import validate; validate(json.load(open(sys.argv[1]))); print('valid')";
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("openapi.json");
    std::fs::write(&file, openapi_json()).expect("written");
    let file = file.to_str().expect("a name");
    let Some(told) = python("openapi_spec_validator", "openapi-spec-validator", script, &[file]) else {
        return;
    };
    assert_eq!(told, "valid\n");
}

#[test]
fn metrics_are_openmetrics_to_others() {
    let script = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.argv[1]):
    if family.name in ('napreduce_slots', 'napreduce_http_requests', 'napreduce_job_sojourn_seconds'):
        print(family.name, family.type, len(family.samples) > 1)
";
    let sample = Sample::start();
    let metrics = sample.get("/metrics").body;
    let Some(told) = python("prometheus_client", "prometheus-client", script, &[&metrics]) else { return };
    assert_eq!(
        told,
        "napreduce_slots gauge True\nnapreduce_job_sojourn_seconds histogram True\nnapreduce_http_requests counter True\n"
    );
}

#[test]
fn metrics_are_as_promtool_wants_them() {
    let sample = Sample::start();
    let token = format!("Bearer {}", sample.token(WebRole::View));
    let headers = [("Authorization", token.as_str()), ("Accept", "text/plain")];
    let metrics = sample.ask("GET /metrics", &headers, "");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut running) = promtool.spawn() else {
        eprintln!("skipped: no promtool; install prometheus (Debian)");
        return;
    };
    let mut input = running.stdin.take().expect("a pipe");
    input.write_all(metrics.body.as_bytes()).expect("it reads");
    drop(input);
    let checked = running.wait_with_output().expect("it ends");
    let told = [checked.stdout, checked.stderr].concat();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&told));
}
