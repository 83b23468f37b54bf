//! Every route of the OpenAPI description, called with each role: status, schema, pages.

use crate::kit::Sample;
use jsonschema::Validator;
use napreduce_web::WebRole;
use serde_json::{Value, json};

fn filled(path: &str) -> String {
    let parts = [
        ("{job}", "job_0002"),
        ("{task}", "job_0002_m_0000"),
        ("{attempt}", "job_0002_m_0000.1"),
        ("{worker}", "worker_0001"),
        ("{queue}", "default"),
        ("{stream}", "stdout"),
        ("{number}", "0"),
        // Attempts and workers follow jobs and tasks in the description.
        ("{what_if}", "what-if-1"),
        ("{link}", "for-ada"),
    ];
    let filled = parts.iter().fold(path.to_owned(), |path, (part, value)| {
        path.replace(part, value)
    });
    assert!(
        !filled.contains('{'),
        "{filled} has a parameter that this test does not know"
    );
    filled
}

/// The body of an order: most have no required field.
fn body(path: &str) -> &'static str {
    match path.rsplit('/').next() {
        Some("links") => r#"{"name": "for-ada", "minutes": 5}"#,
        Some("set") => r#"{"priority": 1}"#,
        _ => "{}",
    }
}

/// A validator that resolves references into the description.
fn validator(description: &Value, schema: &Value) -> Validator {
    let mut whole = schema.clone();
    whole["components"] = description["components"].clone();
    jsonschema::validator_for(&whole).expect("a schema")
}

#[test]
fn responses_match_the_description() {
    let sample = Sample::start();
    let description = sample.get("/api/openapi.json").json();
    let mut checked = 0;
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if path.ends_with("sign-in") {
                continue;
            }
            let role = match operation["description"].as_str() {
                Some("Requires the role nobody.") => WebRole::Nobody,
                Some("Requires the role view.") => WebRole::View,
                Some("Requires the role operate.") => WebRole::Operate,
                other => panic!("{path}: {other:?}"),
            };
            let (expected, answer) = operation["responses"]
                .as_object()
                .expect("answers")
                .iter()
                .next()
                .expect("one");
            let what = format!("{} {}", method.to_uppercase(), filled(path));
            for asking in [WebRole::Nobody, WebRole::View, WebRole::Operate] {
                let token = format!(
                    "Bearer {}",
                    if asking == WebRole::Nobody {
                        String::new()
                    } else {
                        sample.token(asking)
                    }
                );
                let json = ("Content-Type", "application/json");
                let headers = [json, ("Authorization", token.as_str())];
                let headers = if asking == WebRole::Nobody {
                    &headers[..1]
                } else {
                    &headers[..]
                };
                let told = sample.ask(&what, headers, body(path));
                let status = match (asking >= role, asking) {
                    (true, _) => expected.parse().expect("a status"),
                    (false, WebRole::Nobody) => 401,
                    (false, _) => 403,
                };
                assert_eq!(told.status, status, "{what} as {asking}: {}", told.body);
                let content = &answer["content"];
                if let Some(schema) = content.get("application/json").filter(|_| asking >= role) {
                    let validator = validator(
                        &description,
                        schema["schema"]["anyOf"]
                            .get(0)
                            .unwrap_or(&schema["schema"]),
                    );
                    let errors: Vec<String> = validator
                        .iter_errors(&told.json())
                        .map(|error| error.to_string())
                        .collect();
                    assert!(errors.is_empty(), "{what}: {errors:?} in {}", told.body);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 80, "{checked} answers were checked");
}

#[test]
fn problem_responses_match_the_description() {
    let sample = Sample::start();
    let description = sample.get("/api/openapi.json").json();
    let validator = validator(
        &description,
        &description["components"]["schemas"]["Problem"],
    );
    for (path, status, detail) in [
        (
            "/api/nap/v1/jobs/job_0009",
            404,
            "there is no job_0009; see: nap job list",
        ),
        (
            "/api/nap/v1/jobs/9",
            400,
            "invalid job \"9\"; write it as job_0007",
        ),
        (
            "/api/nap/v1/jobs?state=odd",
            400,
            "unknown job state \"odd\"; expected one of waiting, running",
        ),
        (
            "/api/nap/v1/jobs?limit=0",
            400,
            "limit is 0; expected 1 to 10000",
        ),
        (
            "/api/nap/v1/jobs?limit=1&limit=2",
            400,
            "query parameter limit is repeated",
        ),
        (
            "/api/nap/v1/jobs?speed=1",
            400,
            "unknown query parameter \"speed\"",
        ),
        (
            "/api/nap/v1/timeline?from=9&until=8",
            400,
            "from (9) must not be after until (8)",
        ),
        (
            "/api/nap/v1/attempts/job_0002_m_0000.1/log/stdin",
            400,
            "unknown log \"stdin\"",
        ),
        ("/api/nap/v1/nothing", 404, "no such route"),
    ] {
        let told = sample.get(path);
        assert_eq!(told.status, status, "{path}: {}", told.body);
        assert_eq!(
            told.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
        let problem = told.json();
        assert!(validator.is_valid(&problem), "{path}: {problem}");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|told| told.starts_with(detail)),
            "{path}: {problem}"
        );
    }
}

#[test]
fn list_pages_carry_the_total() {
    let sample = Sample::start();
    let ids = |answer: &Value| -> Vec<String> {
        let items = answer["items"].as_array().expect("items").iter();
        items
            .map(|job| job["job"].as_str().expect("an ID").to_owned())
            .collect()
    };
    let first = sample.get("/api/nap/v1/jobs?limit=1").json();
    assert_eq!(
        (ids(&first), &first["total"], &first["next"]),
        (vec!["job_0002".to_owned()], &json!(2), &json!(1))
    );
    let second = sample.get("/api/nap/v1/jobs?limit=1&after=1").json();
    assert_eq!(
        (ids(&second), &second["next"]),
        (vec!["job_0001".to_owned()], &Value::Null)
    );
    let past = sample
        .get("/api/nap/v1/jobs?after=18446744073709551615")
        .json();
    assert_eq!((ids(&past), &past["total"]), (Vec::new(), &json!(2)));
    let filtered = |query: &str| ids(&sample.get(&format!("/api/nap/v1/jobs?{query}")).json());
    assert_eq!(filtered("state=succeeded,failed"), ["job_0001"]);
    assert_eq!(filtered("text=JOB_0002"), ["job_0002"]);
    assert_eq!(filtered("user=grace"), Vec::<String>::new());
}

#[test]
fn tables_are_also_csv_without_formulas() {
    let sample = Sample::preempted();
    let csv = |path: &str| {
        let answer = sample.get(&format!("/api/nap/v1/{path}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(
            answer.header("content-type"),
            Some("text/csv; charset=utf-8"),
            "{path}"
        );
        let saved = answer
            .header("content-disposition")
            .expect("a name")
            .to_owned();
        let lines: Vec<String> = answer
            .body
            .split_terminator("\r\n")
            .map(str::to_owned)
            .collect();
        (saved, lines)
    };
    let (saved, jobs) = csv("jobs?format=csv&fields=state,job,name&sort=job");
    assert_eq!(saved, "attachment; filename=\"jobs.csv\"");
    let name = "<img src=x onerror=alert(1)>";
    assert_eq!(
        jobs,
        [
            "job,name,state".to_owned(),
            format!("job_0001,{name},succeeded"),
            format!("job_0002,{name},running")
        ]
    );
    let (_, limited) = csv("jobs?format=csv&fields=job&sort=job&limit=1&after=1");
    assert_eq!(limited, ["job", "job_0002"]);
    let (_, whole) = csv("jobs?format=csv");
    assert!(
        whole[0].starts_with("job,ended_millis,") && whole[0].contains(",map.bytes_done,"),
        "{}",
        whole[0]
    );
    for (path, first) in [
        ("jobs/job_0001/tasks", "task,"),
        ("jobs/job_0001/attempts", "attempt,"),
        ("jobs/job_0001/events", "at_millis,"),
        ("jobs/job_0001/counters", "counter,value"),
        ("jobs/job_0001/preemptions", "requested_micros,"),
        ("preemptions/groups?from=0", "group,"),
        ("preemptions/flows?from=0", "from,"),
        ("workers", "worker,"),
        ("workers/performance", "worker,"),
        ("queues", "queue,"),
        ("recordings", "recording,"),
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (_, lines) = csv(&format!("{path}{separator}format=csv"));
        assert!(lines[0].starts_with(first), "{path}: {}", lines[0]);
    }
    assert_eq!(sample.get("/api/nap/v1/jobs?format=xls").status, 400);
    assert_eq!(
        sample
            .get("/api/nap/v1/jobs?format=csv&fields=wrong")
            .status,
        400
    );
}

#[test]
fn pages_by_job_do_not_repeat_jobs_while_others_are_submitted() {
    let sample = Sample::start();
    sample.submit();
    sample.submit();
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = sample
            .get(&format!("/api/nap/v1/jobs?sort=-job&limit=1{before}"))
            .json();
        let Some(job) = page["items"][0]["job"].as_str().map(str::to_owned) else {
            break;
        };
        before = format!("&before={job}");
        seen.push(job);
        sample.submit();
    }
    assert_eq!(seen, ["job_0004", "job_0003", "job_0002", "job_0001"]);
    // An offset counts in the list of this moment.
    let first = sample.get("/api/nap/v1/jobs?sort=-job&limit=1").json();
    sample.submit();
    let second = sample
        .get("/api/nap/v1/jobs?sort=-job&limit=1&after=1")
        .json();
    assert_eq!(first["items"][0]["job"], second["items"][0]["job"]);
    assert_eq!(sample.get("/api/nap/v1/jobs?before=7").status, 400);
}

#[test]
fn etag_avoids_resending_unchanged_responses() {
    let sample = Sample::start();
    let path = "/api/nap/v1/jobs/job_0001/counters";
    let tag = sample.get(path).header("etag").expect("a tag").to_owned();
    let token = format!("Bearer {}", sample.token(WebRole::View));
    let again = sample.ask(
        &format!("GET {path}"),
        &[("Authorization", &token), ("If-None-Match", &tag)],
        "",
    );
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let other = sample.ask(
        &format!("GET {path}"),
        &[("Authorization", &token), ("If-None-Match", "\"x\"")],
        "",
    );
    assert_eq!(other.status, 200);
}

#[test]
fn etag_of_list_does_not_depend_on_time() {
    let sample = Sample::start();
    let path = "/api/nap/v1/jobs/job_0001/preemptions";
    let first = sample.get(path);
    let tag = first.header("etag").expect("a tag").to_owned();
    assert!(first.body.contains("\"as_of_millis\":"), "{}", first.body);
    let token = format!("Bearer {}", sample.token(WebRole::View));
    let ask = || {
        sample.ask(
            &format!("GET {path}"),
            &[("Authorization", &token), ("If-None-Match", &tag)],
            "",
        )
    };
    let is_later = || sample.get(path).json()["as_of_millis"] != first.json()["as_of_millis"];
    while !is_later() {}
    assert_eq!(ask().status, 304);
}

#[test]
fn metrics_count_slots_jobs_requests() {
    let sample = Sample::start();
    sample.get("/api/nap/v1/jobs");
    let answer = sample.get("/metrics");
    assert!(
        answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/openmetrics-text"))
    );
    for line in [
        "napreduce_slots{kind=\"map\"} 2",
        "napreduce_slots_used{kind=\"map\"} 1",
        "napreduce_jobs{state=\"succeeded\"} 1",
        "napreduce_workers{state=\"up\"} 1",
        "napreduce_http_requests_total{route=\"/api/nap/v1/jobs\"} 1",
        "napreduce_http_request_seconds_count{route=\"/api/nap/v1/jobs\"} 1",
        "napreduce_queue_held{queue=\"default\",kind=\"map\"} 1.0",
        "napreduce_queue_guarantee{queue=\"default\",kind=\"map\"} 1.5",
        "napreduce_suspended_resident_bytes{worker=\"left-hand\"} 0.0",
        "napreduce_scheduler_info{scheduler=\"capacity\"} 1.0",
        "napreduce_tasks{kind=\"map\",state=\"running\"} 1",
        "napreduce_tasks{kind=\"reduce\",state=\"running\"} 0",
        "# UNIT napreduce_suspended_resident_bytes bytes",
        "# UNIT napreduce_http_request_seconds seconds",
        "# UNIT napreduce_start_time_seconds seconds",
        "# EOF",
    ] {
        assert!(
            answer.body.lines().any(|known| known == line),
            "{line} is missing in\n{}",
            answer.body
        );
    }
    assert!(
        !answer.body.contains("job_000") && !answer.body.contains("ada"),
        "{}",
        answer.body
    );
}

#[test]
fn timeline_and_trace_show_the_attempts() {
    let sample = Sample::start();
    let timeline = sample.get("/api/nap/v1/jobs/job_0001/timeline").json();
    assert_eq!(timeline["stints"]["length"], json!([1_800_000]));
    assert_eq!(timeline["lanes"][0]["worker_name"], "left-hand");
    let trace = sample.get("/api/nap/v1/jobs/job_0001/trace.json");
    assert_eq!(
        trace.header("content-disposition"),
        Some("attachment; filename=\"job_0001.trace.json\"")
    );
    assert!(
        trace.json()["traceEvents"]
            .as_array()
            .is_some_and(|events| events.len() > 3),
        "{}",
        trace.body
    );
    let window = "/api/nap/v1/timeline?from=1790000000000&until=1790000003000";
    let whole = sample.get(window).json();
    assert_eq!(whole["stints"]["job"], json!([1, 2]));
    assert_eq!(whole["jobs_left_out"], 0);
}

#[test]
fn timeline_is_sent_in_columns_on_request() {
    let sample = Sample::start();
    let path = "/api/nap/v1/jobs/job_0001/timeline";
    let token = format!("Bearer {}", sample.token(WebRole::View));
    let kind = "application/vnd.napreduce.timeline";
    let answer = sample.ask(
        &format!("GET {path}"),
        &[("Authorization", &token), ("Accept", kind)],
        "",
    );
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some(kind))
    );
    assert_eq!(&answer.bytes[..8], b"NAPTLN1\0");
    let length = u32::from_le_bytes(answer.bytes[8..12].try_into().expect("four bytes")) as usize;
    let (head, columns) = answer.bytes[12..].split_at(length);
    let head: Value = serde_json::from_slice(head).expect("a head");
    assert_eq!(
        (&head["rows"], &head["unit_micros"]),
        (&json!(1), &json!(1))
    );
    let is_length = |column: &&Value| column["name"] == "length";
    let column = head["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .find(is_length)
        .expect("lengths");
    assert_eq!(column["type"], "u32");
    let offset = column["offset"].as_u64().expect("a number") as usize;
    assert_eq!(columns[offset..offset + 4], 1_800_000_u32.to_le_bytes());
    let told = sample.get(path).json();
    for name in [
        "base_micros",
        "until_micros",
        "lanes",
        "naps",
        "preemptions",
        "ends",
        "stints_total",
    ] {
        assert_eq!(head[name], told[name], "{name}");
    }
}

#[test]
fn single_task_and_worker_are_described() {
    let sample = Sample::start();
    let task = sample.get("/api/nap/v1/tasks/job_0001_m_0000").json();
    let attempts = task["history"]["attempts"].as_array().expect("attempts");
    assert_eq!(
        (&task["task"], attempts.len()),
        (&json!("job_0001_m_0000"), 1)
    );
    let timeline = sample
        .get("/api/nap/v1/tasks/job_0001_m_0000/timeline")
        .json();
    assert_eq!(timeline["stints"]["length"], json!([1_800_000]));
    let absent = sample.get("/api/nap/v1/tasks/job_0001_m_0099");
    assert_eq!(absent.status, 404, "{}", absent.body);
    assert!(
        absent.body.contains("no such task: job_0001_m_0099"),
        "{}",
        absent.body
    );

    assert_eq!(
        sample.get("/api/nap/v1/workers/worker_0001").json()["name"],
        "left-hand"
    );
    assert_eq!(sample.get("/api/nap/v1/workers/worker_0009").status, 404);
    let window = "/api/nap/v1/timeline?from=1790000000000&until=1790000003000&worker=";
    let there =
        |worker: &str| sample.get(&format!("{window}{worker}")).json()["stints_total"].clone();
    assert_eq!(
        (there("worker_0001"), there("worker_0009")),
        (json!(2), json!(0))
    );
    assert_eq!(sample.get(&format!("{window}w1")).status, 400);
}

#[test]
fn shares_average_slots_per_queue() {
    let sample = Sample::start();
    let shares = |query: &str| sample.get(&format!("/api/nap/v1/shares?{query}"));
    // Both maps started 100 ms after the jobs; one ended after 1.9 s.
    let window = "from=1790000000000&until=1790000003000&step=1000";
    let whole = shares(window).json();
    assert_eq!(
        (&whole["step_millis"], &whole["jobs_left_out"]),
        (&json!(1_000), &json!(0))
    );
    assert_eq!(whole["queues"][0]["queue"], "default");
    assert_eq!(whole["queues"][0]["map"]["held"], json!([1.8, 1.9, 1.0]));
    assert_eq!(whole["queues"][0]["reduce"]["held"], json!([0.0, 0.0, 0.0]));
    // The window is clipped to the first submission.
    let early = shares("from=0&until=1790000001200").json();
    assert_eq!(
        (&early["from_millis"], &early["step_millis"]),
        (&json!(1_790_000_000_000_u64), &json!(10))
    );
    assert_eq!(shares("from=0&until=5").json()["queues"], json!([]));
    let fine = shares("from=1790000000000&until=1790000003000&step=1");
    assert_eq!(fine.status, 400);
    assert!(
        fine.body.contains("step=1 gives 3000 steps; at most 1000"),
        "{}",
        fine.body
    );
    let none = shares("from=1790000000000&until=1790000003000&step=0");
    assert_eq!(none.status, 400);
    assert!(
        none.body.contains("step is 0; expected 1 or more"),
        "{}",
        none.body
    );
}

#[test]
fn queue_is_found_by_its_encoded_name() {
    let sample = Sample::start();
    let queue = |name: &str| sample.get(&format!("/api/nap/v1/queues/{name}"));
    let known = queue("de%66ault").json();
    assert_eq!(
        (&known["scheduler"], &known["now"]["map"]["maximum"]),
        (&json!("capacity"), &json!(2))
    );
    assert_eq!(
        (&known["users"][0]["user"], &known["users"][0]["map_slots"]),
        (&json!("ada"), &json!(1))
    );
    let absent = queue("a%2Fb");
    assert_eq!(
        (absent.status, &absent.json()["detail"]),
        (404, &json!("no such queue: \"a/b\""))
    );
}

#[test]
fn workers_have_performance_and_failures() {
    let sample = Sample::start();
    let get = |path: &str| sample.get(&format!("/api/nap/v1/workers/{path}")).json();
    // The only attempt of job 1 succeeded; that of job 2 runs.
    let of_hour = "from=1790000000000&until=1790003600000";
    let known = get(&format!("performance?{of_hour}"));
    let worker = &known["items"][0];
    assert_eq!(
        (&worker["worker"], &worker["succeeded"]),
        (&json!("worker_0001"), &json!(1))
    );
    assert_eq!(
        (&worker["failures_per_hour"], &worker["speed"]),
        (&json!(0.0), &Value::Null)
    );
    assert_eq!(
        get(&format!("failures?{of_hour}&worker=worker_0001"))["total"],
        0
    );
}
