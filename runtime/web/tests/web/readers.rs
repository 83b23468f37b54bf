//! Third-party readers of the API: an OpenAPI validator and parsers of OpenMetrics. Tests are skipped where
//! the Python package or promtool is missing, unless `NAPREDUCE_REQUIRE` contains `web`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::kit::Sample;
use napreduce_web::{WebRole, openapi_json};

/// Runs a script and returns its output, or `None` if the Python module is missing.
fn python(module: &str, package: &str, script: &str, arguments: &[&str]) -> Option<String> {
    let found = Command::new("python3")
        .args(["-c", &format!("import {module}")])
        .output();
    if !found.is_ok_and(|found| found.status.success()) {
        let required = std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|one| one == "web"),
            "python3 has no module {module}; run: pip install {package}"
        );
        eprintln!("skipped: python3 has no module {module} (pip install {package})");
        return None;
    }
    let ran = Command::new("python3")
        .args(["-c", script])
        .args(arguments)
        .output()
        .expect("python3");
    let told = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}{errors}");
    Some(told.into_owned())
}

#[test]
fn description_passes_the_openapi_validator() {
    let script = "import json, sys; from openapi_spec_validator import validate; validate(json.load(open(sys.argv[1]))); print('valid')";
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("openapi.json");
    std::fs::write(&file, openapi_json()).expect("written");
    let file = file.to_str().expect("a name");
    let Some(told) = python(
        "openapi_spec_validator",
        "openapi-spec-validator",
        script,
        &[file],
    ) else {
        return;
    };
    assert_eq!(told, "valid\n");
}

#[test]
fn metrics_parse_as_openmetrics() {
    let script = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.argv[1]):
    if family.name in ('napreduce_slots', 'napreduce_http_requests', 'napreduce_job_sojourn_seconds'):
        print(family.name, family.type, len(family.samples) > 1)
";
    let sample = Sample::start();
    let metrics = sample.get("/metrics").body;
    let Some(told) = python(
        "prometheus_client",
        "prometheus-client",
        script,
        &[&metrics],
    ) else {
        return;
    };
    assert_eq!(
        told,
        "napreduce_slots gauge True\nnapreduce_job_sojourn_seconds histogram True\nnapreduce_http_requests counter True\n"
    );
}

#[test]
fn metrics_pass_promtool() {
    let sample = Sample::start();
    let token = format!("Bearer {}", sample.token(WebRole::View));
    let headers = [("Authorization", token.as_str()), ("Accept", "text/plain")];
    let metrics = sample.ask("GET /metrics", &headers, "");
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let mut promtool = Command::new("promtool");
    promtool
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Ok(mut running) = promtool.spawn() else {
        eprintln!("skipped: no promtool; install prometheus (Debian)");
        return;
    };
    let mut input = running.stdin.take().expect("a pipe");
    input
        .write_all(metrics.body.as_bytes())
        .expect("promtool reads");
    drop(input);
    let checked = running.wait_with_output().expect("promtool ends");
    let told = [checked.stdout, checked.stderr].concat();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&told)
    );
}
