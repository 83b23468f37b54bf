//! Requests that the server refuses: foreign hosts and origins, missing rights, invalid tokens, slow heads,
//! oversized bodies.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::kit;
use crate::kit::{Browser, Sample, asking};
use napreduce_web::WebRole;

const JOBS: &str = "/api/nap/v1/jobs";
const KILL: &str = "/api/nap/v1/jobs/job_0002/kill";

#[test]
fn requests_without_credentials_are_refused() {
    let sample = Sample::start();
    for path in [
        JOBS,
        "/metrics",
        "/api/nap/v1/session",
        "/api/nap/v1/jobs/job_0001/trace.json",
    ] {
        let answer = sample.ask(&format!("GET {path}"), &[], "");
        assert_eq!(answer.status, 401, "{path}: {}", answer.body);
        assert!(answer.body.contains("nap web link"), "{}", answer.body);
    }
    for path in ["/healthz", "/api/openapi.json", "/", "/jobs/job_0001"] {
        assert_eq!(
            sample.ask(&format!("GET {path}"), &[], "").status,
            200,
            "{path}"
        );
    }
}

#[test]
fn foreign_host_header_is_refused_first() {
    let sample = Sample::start();
    let token = sample.token(WebRole::Operate);
    for host in ["evil.example", "127.0.0.1", "localhost:1"] {
        for path in [JOBS, "/", "/healthz", "/assets/x"] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            let answer = asking(sample.address(), request.as_bytes());
            assert_eq!(answer.status, 421, "{host}{path}: {}", answer.body);
        }
    }
    let none = asking(sample.address(), b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(none.status, 421, "{}", none.body);
}

#[test]
fn cross_site_request_with_cookie_is_refused() {
    let sample = Sample::start();
    let browser = Browser::sign_in(&sample, WebRole::Operate);
    for (name, value) in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let answer = sample.ask(
            &format!("GET {JOBS}"),
            &[("Cookie", &browser.cookie), (name, value)],
            "",
        );
        assert_eq!(answer.status, 403, "{name}: {value}: {}", answer.body);
    }
    assert_eq!(
        sample
            .ask(&format!("GET {JOBS}"), &[("Cookie", &browser.cookie)], "")
            .status,
        200
    );
    let answer = sample.ask(&format!("GET {JOBS}"), &[("Cookie", &browser.cookie)], "");
    assert!(answer.header("access-control-allow-origin").is_none());
}

#[test]
fn orders_require_the_operate_token() {
    let sample = Sample::start();
    let browser = Browser::sign_in(&sample, WebRole::Operate);
    let json = ("Content-Type", "application/json");
    let by_cookie = sample.ask(
        &format!("POST {KILL}"),
        &[("Cookie", &browser.cookie), json],
        "{}",
    );
    assert_eq!(by_cookie.status, 403, "{}", by_cookie.body);
    let viewer = format!("Bearer {}", sample.token(WebRole::View));
    assert_eq!(
        sample
            .ask(
                &format!("POST {KILL}"),
                &[("Authorization", &viewer), json],
                "{}"
            )
            .status,
        403
    );
    assert_eq!(
        sample.ask(&format!("POST {KILL}"), &[json], "{}").status,
        401
    );
    assert!(sample.orders().is_empty(), "{:?}", sample.orders());

    let operator = format!(
        "Bearer {}",
        browser.token.as_deref().expect("an operator's")
    );
    let reason = r#"{"reason": "it is in the way"}"#;
    let answer = sample.ask(
        &format!("POST {KILL}"),
        &[("Authorization", &operator), json],
        reason,
    );
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(
        sample.orders(),
        ["KillJob(JobId(2)): it is in the way: requested on the dashboard by browser"]
    );
}

#[test]
fn no_order_is_authorized_by_cookie_or_viewer() {
    let sample = Sample::start();
    let browser = Browser::sign_in(&sample, WebRole::Operate);
    let viewer = format!("Bearer {}", sample.token(WebRole::View));
    let json = ("Content-Type", "application/json");
    let operator = format!("Bearer {}", sample.token(WebRole::Operate));
    let orders = [
        ("jobs/job_0002/hold", "{}"),
        ("jobs/job_0002/release", "{}"),
        ("jobs/job_0002/set", r#"{"priority": 1}"#),
        ("jobs/job_0002/rerun", "{}"),
        ("jobs/job_0002/rerun", r#"{"output": "/data/again"}"#),
        ("links", r#"{"name": "for-ada", "minutes": 5}"#),
        ("links/for-ada/revoke", "{}"),
    ];
    for (path, body) in orders {
        let order = |headers: &[(&str, &str)]| {
            sample
                .ask(&format!("POST /api/nap/v1/{path}"), headers, body)
                .status
        };
        assert_eq!(order(&[("Cookie", &browser.cookie), json]), 403, "{path}");
        assert_eq!(order(&[("Authorization", &viewer), json]), 403, "{path}");
        assert_eq!(order(&[json]), 401, "{path}");
        for foreign in [
            ("Origin", "http://evil.example"),
            ("Sec-Fetch-Site", "cross-site"),
        ] {
            assert_eq!(
                order(&[("Authorization", &operator), json, foreign]),
                403,
                "{path}: {foreign:?}"
            );
        }
    }
    let links = |name, value: &str| {
        sample
            .ask("GET /api/nap/v1/links", &[(name, value)], "")
            .status
    };
    assert_eq!(
        [
            links("Cookie", &browser.cookie),
            links("Authorization", &viewer)
        ],
        [403, 403]
    );
    assert!(sample.orders().is_empty(), "{:?}", sample.orders());

    for (path, body) in orders {
        let given = sample.post(&format!("/api/nap/v1/{path}"), body);
        assert_eq!(given.status, 202, "{path}: {}", given.body);
    }
    let by = "requested on the dashboard by tester";
    let expected = [
        format!("Job(JobId(2), Hold): {by}"),
        format!("Job(JobId(2), Release): {by}"),
        format!("ChangeJob(JobId(2), JobChange {{ priority: Some(1), queue: None }}): {by}"),
        format!("rerun job_0002 None: {by}"),
        format!("rerun job_0002 Some(\"/data/again\"): {by}"),
    ];
    assert_eq!(sample.orders(), expected);
}

#[test]
fn shared_link_permits_viewing_until_revoked() {
    let sample = Sample::start();
    let shared = sample.post(
        "/api/nap/v1/links",
        r#"{"name": "ada", "minutes": 60, "address": "/jobs?state=failed"}"#,
    );
    let shared = shared.json();
    let (address, code) = shared["path"]
        .as_str()
        .expect("a path")
        .split_once("#code=")
        .expect("a code");
    assert_eq!(address, "/jobs?state=failed");
    let sign_in = |cookie: &str| {
        let headers = [("Content-Type", "application/json"), ("Cookie", cookie)];
        sample.ask(
            "POST /api/nap/v1/sign-in",
            &headers,
            &format!("{{\"code\":\"{code}\"}}"),
        )
    };
    for _ in 0..2 {
        let answer = sign_in("");
        assert_eq!(
            (answer.status, &answer.json()["token"]),
            (200, &serde_json::Value::Null)
        );
    }
    let cookie = sign_in("")
        .header("set-cookie")
        .expect("a cookie")
        .split(';')
        .next()
        .expect("a pair")
        .to_owned();
    let get = |path: &str| sample.ask(&format!("GET {path}"), &[("Cookie", &cookie)], "");
    assert_eq!(get("/api/nap/v1/session").json()["name"], "ada");
    assert_eq!(
        (get(JOBS).status, get("/api/nap/v1/links").status),
        (200, 403)
    );
    let own = Browser::sign_in(&sample, WebRole::Operate);
    assert_eq!(
        sign_in(&own.cookie).header("set-cookie"),
        None,
        "it replaces the operator's session"
    );

    let links = |sample: &Sample| {
        let operator = format!("Bearer {}", sample.token(WebRole::Operate));
        sample
            .ask("GET /api/nap/v1/links", &[("Authorization", &operator)], "")
            .json()
    };
    let listed = links(&sample);
    assert_eq!(
        (&listed["total"], &listed["items"][0]["address"]),
        (&1.into(), &"/jobs?state=failed".into())
    );
    assert!(
        !listed.to_string().contains("nap1."),
        "the list contains a code: {listed}"
    );
    assert_eq!(
        sample
            .post("/api/nap/v1/links", r#"{"name": "ada", "minutes": 60}"#)
            .status,
        409
    );
    for invalid in [
        r#"{"name": "a b", "minutes": 60}"#,
        r#"{"name": "browser", "minutes": 60}"#,
        r#"{"name": "eve", "minutes": 4}"#,
        r#"{"name": "eve", "minutes": 43201}"#,
        r#"{"name": "eve", "minutes": 60, "address": "//evil.example"}"#,
        r#"{"name": "eve", "minutes": 60, "address": "/#code=x"}"#,
    ] {
        assert_eq!(
            sample.post("/api/nap/v1/links", invalid).status,
            400,
            "{invalid}"
        );
    }
    assert_eq!(
        sample.post("/api/nap/v1/links/ada/revoke", "{}").status,
        202
    );
    assert_eq!(
        (
            get(JOBS).status,
            sign_in("").status,
            links(&sample)["total"].as_u64()
        ),
        (401, 401, Some(0))
    );
    assert_eq!(
        sample.post("/api/nap/v1/links/ada/revoke", "{}").status,
        404
    );
}

#[test]
fn invalid_token_is_reported_as_such() {
    let sample = Sample::start();
    let token = sample.token(WebRole::View);
    for wrong in [
        format!("Bearer {token}x"),
        "Bearer".to_owned(),
        format!("Basic {token}"),
        "Bearer nap1.x".to_owned(),
    ] {
        let answer = sample.ask("GET /", &[("Authorization", &wrong)], "");
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(answer.body.contains("invalid token"), "{}", answer.body);
    }
}

#[test]
fn link_works_once_and_guessing_is_throttled() {
    let sample = Sample::start();
    let sign_in = |code: &str| {
        let body = format!("{{\"code\":\"{code}\"}}");
        sample.ask(
            "POST /api/nap/v1/sign-in",
            &[("Content-Type", "application/json")],
            &body,
        )
    };
    let code = sample.code(WebRole::View);
    let first = sign_in(&code);
    assert_eq!(first.status, 200, "{}", first.body);
    let cookie = first.header("set-cookie").expect("a cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(first.body.contains("\"token\":null"), "{}", first.body);
    for _ in 0..5 {
        let again = sign_in(&code);
        assert_eq!(again.status, 401, "{}", again.body);
        assert!(
            again.body.contains("this link was used before") && again.body.contains("nap web link")
        );
    }
    assert_eq!(sign_in(&code).status, 429);
}

#[test]
fn invalid_orders_are_refused() {
    let sample = Sample::start();
    let operator = format!("Bearer {}", sample.token(WebRole::Operate));
    let order = |path: &str, kind: &str, body: &str| {
        sample
            .ask(
                &format!("POST {path}"),
                &[("Authorization", &operator), ("Content-Type", kind)],
                body,
            )
            .status
    };
    assert_eq!(order(KILL, "text/plain", "{}"), 415);
    assert_eq!(order(KILL, "application/json", "{"), 400);
    assert_eq!(order(KILL, "application/json", r#"{"raeson": "x"}"#), 400);
    assert_eq!(
        order(
            KILL,
            "application/json",
            &format!(r#"{{"reason": "{}"}}"#, "x".repeat(501))
        ),
        400
    );
    assert_eq!(order(KILL, "application/json", &" ".repeat(70_000)), 413);
    assert_eq!(
        order("/api/nap/v1/jobs/7/kill", "application/json", "{}"),
        400
    );
    assert_eq!(
        order("/api/nap/v1/jobs/job_0002/set", "application/json", "{}"),
        400
    );
    assert_eq!(order(JOBS, "application/json", "{}"), 405);
    let deleted = sample.ask(
        "DELETE /api/nap/v1/jobs/job_0002",
        &[("Authorization", &operator)],
        "",
    );
    assert_eq!(
        (deleted.status, deleted.json()["status"].as_u64()),
        (405, Some(405)),
        "{}",
        deleted.body
    );
    assert_eq!(
        order(
            "/api/nap/v1/jobs/job_0002/explode",
            "application/json",
            "{}"
        ),
        404
    );
    assert!(sample.orders().is_empty(), "{:?}", sample.orders());
}

#[test]
fn order_for_unknown_object_is_not_found() {
    let sample = Sample::start();
    let order = |path: &str, body: &str| sample.post(&format!("/api/nap/v1/{path}"), body);
    for path in ["kill", "suspend", "resume", "hold", "release", "rerun"] {
        let answer = order(&format!("jobs/job_9999/{path}"), "{}");
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
        let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
        assert!(detail.contains("job_9999"), "{path}: {detail}");
    }
    assert_eq!(order("jobs/job_9999/set", r#"{"priority": 1}"#).status, 404);
    for task in [
        "job_9999_m_0000",
        "job_0002_m_0001",
        "job_0002_r_0000",
        "job_0002_m_0000.2",
    ] {
        for command in ["suspend", "resume", "checkpoint", "kill"] {
            let answer = order(&format!("tasks/{task}/{command}"), "{}");
            assert_eq!(
                (answer.status, answer.json()["status"].as_u64()),
                (404, Some(404)),
                "{task}: {}",
                answer.body
            );
        }
    }
    assert_eq!(order("workers/worker_0009/drain", "{}").status, 404);
    assert_eq!(order("workers/worker_0009/undrain", "{}").status, 404);
    // A known object that refuses is a conflict.
    assert_eq!(order("jobs/job_0001/kill", "{}").status, 409);
    assert_eq!(order("tasks/job_0002_m_0000.1/suspend", "{}").status, 202);
    assert_eq!(sample.orders().len(), 1, "{:?}", sample.orders());
}

#[test]
fn wrong_method_names_the_allowed_ones() {
    let sample = Sample::start();
    let operator = format!("Bearer {}", sample.token(WebRole::Operate));
    for (request, allowed) in [
        ("DELETE /api/nap/v1/jobs/job_0002", "GET,HEAD"),
        ("POST /api/nap/v1/jobs", "GET,HEAD"),
        ("PUT /metrics", "GET,HEAD"),
        ("GET /api/nap/v1/jobs/job_0002/kill", "POST"),
        ("GET /api/nap/v1/sign-in", "POST"),
        ("DELETE /api/nap/v1/links", "GET,HEAD,POST"),
    ] {
        let answer = sample.ask(request, &[("Authorization", &operator)], "");
        assert_eq!(answer.status, 405, "{request}: {}", answer.body);
        assert_eq!(answer.header("allow"), Some(allowed), "{request}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{request}"
        );
    }
}

#[test]
fn slow_and_oversized_heads_are_cut_off() {
    let sample = Sample::start();
    let dribbled = kit::dribbled(sample.address());
    assert!(
        dribbled.as_secs() >= 4 && dribbled.as_secs() < 30,
        "cut off after {dribbled:?}"
    );
    let long = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n",
        sample.address(),
        "x".repeat(32_000)
    );
    assert_eq!(asking(sample.address(), long.as_bytes()).status, 431);
    // Other connections are served meanwhile.
    assert_eq!(sample.ask("GET /healthz", &[], "").status, 200);
}

/// Opens connections that send no request.
const HELD: usize = 500;

fn hold(sample: &Sample, begun: &[u8]) -> Vec<TcpStream> {
    (0..HELD)
        .map(|_| {
            let mut stream = TcpStream::connect(sample.address()).expect("a connection");
            // A connection that was displaced by a later one may already be closed.
            let _ = stream.write_all(begun);
            stream
        })
        .collect()
}

#[test]
fn held_connections_do_not_delay_health() {
    let sample = Sample::start();
    let host = sample.address();
    let half_head = "GET / HTTP/1.1\r\nX-Slow: x".to_owned();
    let then_idle = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let half_body = format!(
        "POST /api/nap/v1/sign-in HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: 99\r\n\r\n{{"
    );
    for begun in [String::new(), half_head, then_idle, half_body] {
        let held = hold(&sample, begun.as_bytes());
        let asked = Instant::now();
        let health = sample.ask("GET /healthz", &[], "");
        assert_eq!(
            (health.status, health.body.as_str()),
            (200, "ok\n"),
            "after {begun:?}"
        );
        assert!(
            asked.elapsed() < Duration::from_secs(3),
            "{:?} after {begun:?}",
            asked.elapsed()
        );
        drop(held);
    }
}

#[test]
fn health_answers_under_overload() {
    let sample = Sample::with_requests_max(1);
    let statuses: Vec<u16> = (0..20)
        .map(|_| sample.ask("GET /healthz", &[], "").status)
        .collect();
    assert_eq!(statuses, [200; 20]);
}

#[test]
fn too_many_requests_get_429() {
    let sample = Sample::with_requests_max(5);
    let told: Vec<u16> = (0..8)
        .map(|_| sample.ask("GET /", &[], "").status)
        .collect();
    assert!(
        told.starts_with(&[200; 5]) && told.contains(&429),
        "{told:?}"
    );
}

#[test]
fn every_response_has_security_headers() {
    let sample = Sample::start();
    let browser = Browser::sign_in(&sample, WebRole::View);
    for path in [
        "/",
        JOBS,
        "/nowhere",
        "/api/nap/v1/nowhere",
        "/assets/0/x.js",
    ] {
        let answer = sample.ask(&format!("GET {path}"), &[("Cookie", &browser.cookie)], "");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{path}: {policy}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            answer.header("cross-origin-resource-policy"),
            Some("same-origin"),
            "{path}"
        );
    }
    let log = sample.ask(
        "GET /api/nap/v1/attempts/job_0002_m_0000.1/log/stderr",
        &[("Cookie", &browser.cookie)],
        "",
    );
    assert_eq!(
        log.header("content-security-policy"),
        Some("sandbox; default-src 'none'")
    );
    assert_eq!(
        (log.header("content-type"), log.body.as_str()),
        (Some("text/plain; charset=utf-8"), "<b>log</b>\n")
    );
}
