//! Server-sent events over real connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kit;
use crate::kit::Sample;
use napreduce_protocol::Secret;
use napreduce_web::{HistorySource, Revocations, WebRole, WebServer, WebSettings, token};
use serde_json::{Value, json};

const STREAM: &str = "/api/nap/v1/stream";
const DEADLINE: Duration = Duration::from_secs(30);
/// Deadline for what happens at once, with time for a busy machine: half of the pause before a keep-alive.
const PROMPT: Duration = Duration::from_secs(5);

/// An open event stream.
struct Listening {
    reader: BufReader<TcpStream>,
    head: String,
    pending: String,
}

#[derive(Debug, PartialEq)]
struct Told {
    id: String,
    event: String,
    data: Value,
}

impl Listening {
    /// Opens a stream with the role `view`.
    fn open(sample: &Sample, query: &str, last: Option<&str>) -> Listening {
        let mut stream = TcpStream::connect(sample.address()).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let last = last
            .map(|last| format!("Last-Event-ID: {last}\r\n"))
            .unwrap_or_default();
        let address = sample.address();
        let token = sample.token(WebRole::View);
        let request = format!(
            "GET {STREAM}{query} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{last}\r\n"
        );
        stream
            .write_all(request.as_bytes())
            .expect("request is sent");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(
                reader.read_line(&mut head).expect("a head"),
                0,
                "truncated head: {head}"
            );
        }
        Listening {
            reader,
            head,
            pending: String::new(),
        }
    }

    fn status(&self) -> &str {
        &self.head[9..12]
    }

    /// Reads up to the next empty line; `None` at the end of the stream.
    fn frame(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.pending.split_once("\n\n") {
                let frame = frame.to_owned();
                let rest = rest.to_owned();
                self.pending = rest;
                return Some(frame);
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).expect("size of a chunk");
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            if size == 0 {
                return None;
            }
            let mut piece = vec![0; size + 2];
            self.reader.read_exact(&mut piece).expect("a whole chunk");
            self.pending
                .push_str(std::str::from_utf8(&piece[..size]).expect("text"));
        }
    }

    /// Reads the next event.
    fn event(&mut self) -> Told {
        loop {
            let frame = self.frame().expect("stream is open");
            let field = |name: &str| {
                frame
                    .lines()
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                    .map(str::to_owned)
            };
            if let (Some(id), Some(event), Some(data)) =
                (field("id"), field("event"), field("data"))
            {
                return Told {
                    id,
                    event,
                    data: serde_json::from_str(&data).expect("JSON"),
                };
            }
        }
    }
}

fn gauge(sample: &Sample) -> String {
    let metrics = sample.get("/metrics").body;
    let lines = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("napreduce_http_streams "));
    lines.map(str::to_owned).collect()
}

fn until(what: &str, mut come: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !come() {
        assert!(begun.elapsed() < DEADLINE, "{what} has not happened");
        std::thread::yield_now();
    }
}

#[test]
fn submitted_job_is_streamed_at_once() {
    let sample = Sample::start();
    let mut listening = Listening::open(&sample, "?topics=jobs,cluster", None);
    assert_eq!(listening.status(), "200", "{}", listening.head);
    let head = listening.head.to_ascii_lowercase();
    assert!(
        head.contains("content-type: text/event-stream")
            && head.contains("cache-control: no-store"),
        "{head}"
    );
    assert!(
        head.contains("content-security-policy: default-src 'none'") && !head.contains("etag"),
        "{head}"
    );
    let first = listening.frame().expect("a beginning");
    assert!(
        first.starts_with("retry: 1000\nid: ") && first.ends_with("-0"),
        "{first}"
    );
    assert_eq!(listening.event().event, "reset");
    sample.submit();
    let begun = Instant::now();
    let job = listening.event();
    assert!(
        begun.elapsed() < PROMPT,
        "event after {:?}",
        begun.elapsed()
    );
    assert_eq!(
        (job.event.as_str(), &job.data["job"]),
        ("job", &json!("job_0003"))
    );
    let mut rest = sample.get("/api/nap/v1/jobs/job_0003").json();
    // The composition of a job is not part of the event.
    for of_one in ["parts", "settings"] {
        rest.as_object_mut().expect("an object").remove(of_one);
    }
    assert_eq!(job.data, rest);
    let cluster = listening.event();
    assert_eq!(
        (cluster.event.as_str(), &cluster.data["jobs"]["running"]),
        ("cluster", &json!(2))
    );
    let mut glance = sample.get("/api/nap/v1/cluster").json();
    glance.as_object_mut().expect("an object").remove("current");
    assert_eq!(cluster.data, glance);

    // After a reconnect the stream resumes after the last event, without repetition.
    drop(listening);
    let mut back = Listening::open(&sample, "?topics=jobs,cluster", Some(&job.id));
    assert_eq!(back.event(), cluster);
    let mut other = Listening::open(
        &sample,
        &format!("?topics=jobs,cluster&after={}", job.id),
        None,
    );
    assert_eq!(other.event(), cluster);
    let mut lost = Listening::open(&sample, "", Some("0-7"));
    assert_eq!(
        (lost.event().event.as_str(), lost.status()),
        ("reset", "200")
    );
}

#[test]
fn streams_are_counted_and_limited() {
    let sample = Sample::start();
    assert_eq!(gauge(&sample), "0");
    let mut all: Vec<Listening> = (0..32)
        .map(|_| Listening::open(&sample, "", None))
        .collect();
    assert!(all.iter().all(|listening| listening.status() == "200"));
    assert_eq!(gauge(&sample), "32");
    let refused = sample.get(STREAM);
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert_eq!(refused.json()["remedy"], "poll every 3 seconds instead");
    all.pop();
    until("a free stream", || gauge(&sample) == "31");
    assert_eq!(Listening::open(&sample, "", None).status(), "200");
    for (query, detail) in [
        ("?topics=share", "topics=share: unknown topic \"share\""),
        ("?topic=jobs", "unknown query parameter"),
    ] {
        let wrong = sample.get(&format!("{STREAM}{query}"));
        assert_eq!(wrong.status, 400, "{}", wrong.body);
        assert!(
            wrong.json()["detail"]
                .as_str()
                .is_some_and(|said| said.starts_with(detail)),
            "{}",
            wrong.body
        );
    }
}

#[test]
fn stream_outlives_the_response_timeout() {
    let sample = Sample::start();
    let mut listening = Listening::open(&sample, "?topics=workers", None);
    let begun = Instant::now();
    let mut alive = 0;
    while alive < 2 {
        let frame = listening.frame().expect("stream is open");
        alive += u32::from(frame == ": alive");
    }
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(15),
        "two keep-alives within {took:?}"
    );
    assert_eq!(gauge(&sample), "1");
}

#[test]
fn stream_ends_when_its_token_is_revoked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("web.toml");
    let sample = Sample::with(|settings| WebSettings {
        revocations: Some(file.clone()),
        ..settings
    });
    let mut listening = Listening::open(&sample, "", None);
    assert_eq!(listening.event().event, "reset");
    let mut revoked = Revocations::default();
    revoked.revoke(Some("tester"), 4_000_000_000_000);
    revoked.write(&file).expect("written");
    while listening.frame().is_some() {}
    assert_eq!(Listening::open(&sample, "", None).status(), "401");
}

#[test]
fn open_streams_do_not_delay_shutdown() {
    let sample = Sample::start();
    let mut listening: Vec<Listening> =
        (0..3).map(|_| Listening::open(&sample, "", None)).collect();
    let begun = Instant::now();
    drop(sample);
    assert!(
        begun.elapsed() < PROMPT,
        "it ended after {:?}",
        begun.elapsed()
    );
    for stream in &mut listening {
        while stream.frame().is_some() {}
    }
}

#[test]
fn history_refuses_event_streams() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("history")).expect("a folder");
    let source = HistorySource::open(folder.path()).expect("a history");
    let secret = Secret::from_bytes([3; 32]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let settings = WebSettings {
        address,
        ..WebSettings::new(secret.clone())
    };
    let server = WebServer::start(&settings, Arc::new(source)).expect("a server");
    let token = token(&secret, WebRole::View, "tester", 1).expect("a token");
    let ask = |path: &str| {
        let host = server.address();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        kit::asking(host, request.as_bytes())
    };
    assert_eq!(ask("/api/nap/v1/session").json()["capabilities"], json!([]));
    let refused = ask(STREAM);
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(
        Sample::start().get("/api/nap/v1/session").json()["capabilities"],
        json!(["stream", "what-if"])
    );
}
