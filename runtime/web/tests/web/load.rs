//! Many jobs, and a job of 100,000 attempts: whole tables, and a benchmark of response times. It prints the figures next
//! to their budgets but never fails, since the machine may be busy. Run it with `cargo test -p napreduce-web
//! --release --test web -- --ignored --nocapture load::`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kit::{asking, summary};
use napreduce_engine::{
    AttemptId, AttemptState, JobId, Primitive, Reason, ReasonCode, TaskId, TaskKind, WorkerId,
};
use napreduce_protocol::{
    AttemptSummary, JobDetail, JobPhase, JobSummary, LiveAttempt, LogStream, PreemptionSummary,
    QueueListing, Secret, SlotsWanted, TaskPhase, TaskSummary, WorkerSummary,
};
use napreduce_web::{PageSource, SourceError, WebRole, WebServer, WebSettings, token};

const BASE: u64 = 1_790_000_000_000;
const JOBS: u32 = 10_000;
/// Running jobs.
const RUNNING: u32 = 50;
const ATTEMPTS: u32 = 100_000;
const ROUNDS: usize = 100;

/// Many jobs; each of them has the details of the large one.
#[derive(Debug)]
struct Large {
    jobs: Arc<Vec<JobSummary>>,
    running: Arc<JobDetail>,
    ended: Arc<JobDetail>,
    tasks: Arc<Vec<TaskSummary>>,
}

fn task(index: u32) -> TaskId {
    TaskId {
        job: JobId(1),
        kind: TaskKind::Map,
        index,
    }
}

impl Large {
    fn new() -> Large {
        let attempt = |index: u32| AttemptSummary {
            attempt: AttemptId {
                task: task(index),
                number: 1,
            },
            worker: WorkerId(index % 75 + 1),
            worker_name: format!("worker-{}", index % 75 + 1),
            launched_millis: BASE + u64::from(index / 300) * 1_000,
            ended_millis: Some(
                BASE + u64::from(index / 300) * 1_000 + 500 + u64::from(index % 499),
            ),
            end: Some("succeeded".to_owned()),
            figures: None,
            moments: None,
        };
        let live = |index: u32| LiveAttempt {
            attempt: AttemptId {
                task: task(index),
                number: 1,
            },
            worker: WorkerId(index % 75 + 1),
            state: AttemptState::Running,
            launched_millis: 1_790_000_000_000,
            reason: None,
            bytes_done: u64::from(index % 97),
            bytes_total: 97,
        };
        let preempted = |index: u32| {
            let victim = AttemptId {
                task: task(index),
                number: 1,
            };
            let asked_micros = (BASE + u64::from(index / 300) * 1_000 + 100) * 1_000;
            PreemptionSummary::wanted(
                asked_micros,
                victim,
                WorkerId(index % 75 + 1),
                Primitive::Suspend,
            )
        };
        let task = |index: u32| TaskSummary {
            task: task(index),
            state: TaskPhase::Running,
            reason: None,
            attempts: 1,
            live: vec![live(index)],
        };
        let running = (1..=RUNNING).map(|number| summary(number, JobPhase::Running));
        let ended = (RUNNING + 1..=JOBS)
            .rev()
            .map(|number| summary(number, JobPhase::Succeeded));
        let job = |summary, attempts: u32, preemptions: u32| {
            Arc::new(JobDetail {
                attempts: (0..attempts).map(attempt).collect(),
                preemptions: (0..attempts)
                    .step_by((attempts / preemptions) as usize)
                    .map(preempted)
                    .collect(),
                ..JobDetail::new(summary)
            })
        };
        Large {
            jobs: Arc::new(running.chain(ended).collect()),
            running: job(summary(1, JobPhase::Running), ATTEMPTS, 100),
            ended: job(summary(JOBS, JobPhase::Succeeded), 100, 5),
            tasks: Arc::new((0..ATTEMPTS).map(task).collect()),
        }
    }
}

impl PageSource for Large {
    fn name(&self) -> String {
        "a large sample".to_owned()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
        Ok(self.jobs.clone())
    }

    fn job(&self, job: JobId) -> Result<Arc<JobDetail>, SourceError> {
        Ok(if job.0 <= RUNNING {
            self.running.clone()
        } else {
            self.ended.clone()
        })
    }

    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
        Ok(Arc::default())
    }

    fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
        Ok(Arc::new(QueueListing {
            scheduler: "fifo".to_owned(),
            queues: None,
            wanted: SlotsWanted::default(),
        }))
    }

    fn tasks(&self, _: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError> {
        Ok(self.tasks.clone())
    }

    fn explain(&self, job: JobId, _: Option<TaskId>) -> Result<Vec<Reason>, SourceError> {
        Ok(vec![Reason::new(
            ReasonCode::State,
            format!("{job} is running"),
        )])
    }

    fn log(
        &self,
        attempt: AttemptId,
        _: LogStream,
        _: u64,
        _: u64,
    ) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::Absent(format!("{attempt} has no log")))
    }
}

const COLUMNS: &str = "columns of 100,000";
/// Responses and their budgets at the 99th percentile, in milliseconds.
const ASKED: [(&str, &str, u64); 17] = [
    ("list", "/api/nap/v1/jobs", 20),
    ("list, sorted", "/api/nap/v1/jobs?sort=-took", 20),
    (
        "list, thinned",
        "/api/nap/v1/jobs?limit=1000&fields=job,state",
        20,
    ),
    ("tasks, 100,000", "/api/nap/v1/jobs/job_0001/tasks", 100),
    (
        "tasks, sorted",
        "/api/nap/v1/jobs/job_0001/tasks?sort=-took",
        100,
    ),
    (
        "tasks, slow ones",
        "/api/nap/v1/jobs/job_0001/tasks?slow=true",
        100,
    ),
    ("search", "/api/nap/v1/search?text=count", 50),
    ("search", "/api/nap/v1/search?text=job_0001_m_99999.1", 50),
    (
        "list of 100,000, sorted",
        "/api/nap/v1/jobs/job_0001/attempts?sort=-took",
        20,
    ),
    (
        "tasks, filtered",
        "/api/nap/v1/jobs/job_0001/tasks?text=m_99999",
        150,
    ),
    ("summary", "/api/nap/v1/jobs/job_0001", 20),
    ("summary", "/api/nap/v1/cluster", 20),
    (
        "reasons and findings",
        "/api/nap/v1/jobs/job_0001/explain",
        150,
    ),
    (
        "quantiles of 100,000",
        "/api/nap/v1/jobs/job_0001/quantiles",
        150,
    ),
    ("ledger", "/api/nap/v1/preemptions/totals?from=0", 20),
    (COLUMNS, "/api/nap/v1/jobs/job_0001/timeline", 150),
    (
        "the same as JSON",
        "/api/nap/v1/jobs/job_0001/timeline",
        300,
    ),
];

#[test]
fn csv_of_a_long_list_has_every_row() {
    let secret = Secret::from_bytes([3; 32]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let settings = WebSettings::new(secret.clone());
    let settings = WebSettings {
        address,
        ..settings
    };
    let server = WebServer::start(&settings, Arc::new(Large::new())).expect("a server");
    let token = token(&secret, WebRole::View, "load", 1).expect("a token");
    // The attempts of maps 1000 to 1999 and 10000 to 19999.
    for (query, rows, last) in [("", 11_000, 19_999), ("&limit=1000", 1_000, 1_999)] {
        let request = format!(
            "GET /api/nap/v1/jobs/job_0001/attempts?format=csv&sort=attempt&text=m_1{query} HTTP/1.1\r\n\
             Host: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
            server.address()
        );
        let answer = asking(server.address(), request.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
        let lines: Vec<&str> = answer.body.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), rows + 1);
        assert!(lines[0].starts_with("attempt,"), "{}", lines[0]);
        let expected = format!("job_0001_m_{last}.1,");
        assert!(lines[rows].starts_with(&expected), "{}", lines[rows]);
    }
}

#[test]
#[ignore = "benchmark: prints response times"]
fn measure_response_times() {
    let secret = Secret::from_bytes([3; 32]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let settings = WebSettings {
        address,
        requests_max: 100_000,
        ..WebSettings::new(secret.clone())
    };
    let server = WebServer::start(&settings, Arc::new(Large::new())).expect("a server");
    let token = token(&secret, WebRole::View, "load", 1).expect("a token");
    println!(
        "{:<24} {:>9} {:>9} {:>9} {:>10}  address",
        "answer", "p50 ms", "p99 ms", "budget", "bytes"
    );
    for (kind, path, budget) in ASKED {
        let accept = if kind == COLUMNS {
            "application/vnd.napreduce.timeline"
        } else {
            "application/json"
        };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\
             Connection: close\r\n\r\n",
            server.address()
        );
        let mut took = Vec::new();
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let answer = asking(server.address(), request.as_bytes());
            took.push(begun.elapsed());
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            bytes = answer.bytes.len();
        }
        took.sort_unstable();
        let millis = |at: usize| Duration::as_secs_f64(&took[at]) * 1e3;
        let median = millis(ROUNDS / 2);
        let last = millis(ROUNDS * 99 / 100);
        println!("{kind:<24} {median:>9.1} {last:>9.1} {budget:>9} {bytes:>10}  {path}");
    }
}
