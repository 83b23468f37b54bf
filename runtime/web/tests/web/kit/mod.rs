//! A server with fixed jobs, and an HTTP client that sends requests byte by byte.

pub mod simulated;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_engine::{
    AttemptId, JobId, Primitive, Reason, ReasonCode, TaskId, TaskKind, WorkerId,
};
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, KillJob, UndrainWorker,
};
use napreduce_protocol::{
    AttemptSummary, CounterValues, HistoryLine, JobDetail, JobPhase, JobProgress, JobSummary,
    LogStream, PhaseProgress, PreemptionEnd, PreemptionSummary, QueueListing, QueueSlots,
    QueueSummary, Secret, SlotsWanted, TaskSummary, WorkerMemory, WorkerPhase, WorkerSummary,
};
use napreduce_web::{
    PageSource, SourceError, WebRole, WebServer, WebSettings, WhatIfSettings, token,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);
const BASE: u64 = 1_790_000_000_000;

/// Job 1, which has ended, job 2, which is running, and submitted jobs. Records orders.
#[derive(Debug, Default)]
pub struct Jobs {
    orders: Mutex<Vec<String>>,
    submitted: AtomicU32,
    /// Preemptions of job 1.
    preemptions: Vec<PreemptionSummary>,
    /// Whether the cluster has been stopped.
    is_stopped: bool,
    /// Path that is reported as the history.
    history: Option<PathBuf>,
}

pub fn summary(number: u32, phase: JobPhase) -> JobSummary {
    let is_over = phase == JobPhase::Succeeded;
    let map = PhaseProgress {
        tasks: 1,
        done: u32::from(is_over),
        running: u32::from(!is_over),
        ..PhaseProgress::default()
    };
    JobSummary {
        job: JobId(number),
        name: "<img src=x onerror=alert(1)>".to_owned(),
        user: "ada".to_owned(),
        queue: "default".to_owned(),
        priority: 0,
        phase,
        reason: None,
        submitted_millis: BASE,
        ended_millis: is_over.then_some(BASE + 2_000),
        progress: JobProgress {
            map,
            ..JobProgress::default()
        },
        output: "/data/out".into(),
        unrecorded: None,
    }
}

impl Jobs {
    fn all(&self) -> Vec<JobSummary> {
        let active = (2..=2 + self.submitted.load(Ordering::SeqCst)).rev();
        let active = active.map(|number| summary(number, JobPhase::Running));
        active.chain([summary(1, JobPhase::Succeeded)]).collect()
    }
}

impl Jobs {
    fn record(&self, order: String) {
        self.orders.lock().expect("no test panicked").push(order);
    }

    /// Refuses an unknown job with a text only, as a coordinator does.
    fn check_job(&self, job: JobId) -> Result<(), SourceError> {
        if self.job(job).is_err() {
            return Err(SourceError::Refused(format!(
                "there is no {job}; see: nap job list"
            )));
        }
        Ok(())
    }
}

fn check_worker(worker: WorkerId) -> Result<(), SourceError> {
    if worker != WorkerId(1) {
        return Err(SourceError::Refused(format!(
            "there is no {worker}; see: nap worker list"
        )));
    }
    Ok(())
}

impl PageSource for Jobs {
    fn name(&self) -> String {
        "a sample".to_owned()
    }

    fn is_live(&self) -> bool {
        !self.is_stopped
    }

    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
        Ok(Arc::new(self.all()))
    }

    fn job(&self, job: JobId) -> Result<Arc<JobDetail>, SourceError> {
        let summary = self.all().into_iter().find(|known| known.job == job);
        let summary = summary
            .ok_or_else(|| SourceError::Absent(format!("there is no {job}; see: nap job list")))?;
        let task = TaskId {
            job,
            kind: TaskKind::Map,
            index: 0,
        };
        let ended_millis = summary.ended_millis.map(|ended| ended - 100);
        let attempt = AttemptSummary {
            attempt: AttemptId { task, number: 1 },
            worker: WorkerId(1),
            worker_name: "left-hand".to_owned(),
            launched_millis: BASE + 100,
            ended_millis,
            end: ended_millis.map(|_| "succeeded".to_owned()),
            figures: None,
            moments: None,
        };
        let mut counters = CounterValues::default();
        counters.add("MAP_INPUT_RECORDS", 12);
        Ok(Arc::new(JobDetail {
            counters,
            attempts: vec![attempt],
            events: vec![HistoryLine {
                at_millis: BASE,
                text: "submitted".to_owned(),
            }],
            preemptions: if job == JobId(1) {
                self.preemptions.clone()
            } else {
                Vec::new()
            },
            ..JobDetail::new(summary)
        }))
    }

    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
        Ok(Arc::new(vec![WorkerSummary {
            worker: WorkerId(1),
            name: "left-hand".to_owned(),
            host: "ada".to_owned(),
            rack: "/default-rack".to_owned(),
            state: WorkerPhase::Up,
            remarks: Vec::new(),
            failing: None,
            isolation: "none".to_owned(),
            gone_millis: None,
            reason: None,
            map_slots: (2, 1),
            reduce_slots: (1, 0),
            silent_millis: 0,
            memory: WorkerMemory::default(),
        }]))
    }

    fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
        let map = QueueSlots {
            guaranteed_permille: Some(1_500),
            maximum: Some(2),
            used: 1,
            wanted: 0,
        };
        let queue = QueueSummary {
            name: "default".to_owned(),
            parent: None,
            weight_permille: None,
            map,
            reduce: QueueSlots::default(),
            running: 1,
            waiting: 0,
            remark: None,
        };
        Ok(Arc::new(QueueListing {
            scheduler: "capacity".to_owned(),
            queues: Some(vec![queue]),
            wanted: SlotsWanted { map: 3, reduce: 0 },
        }))
    }

    fn tasks(&self, job: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError> {
        self.job(job).map(|_| Arc::default())
    }

    fn explain(&self, job: JobId, _: Option<TaskId>) -> Result<Vec<Reason>, SourceError> {
        self.job(job)
            .map(|_| vec![Reason::new(ReasonCode::State, format!("{job} is running"))])
    }

    fn log(
        &self,
        attempt: AttemptId,
        _: LogStream,
        offset: u64,
        max: u64,
    ) -> Result<Vec<u8>, SourceError> {
        self.job(attempt.task.job)?;
        let log = b"<b>log</b>\n";
        Ok(log
            .iter()
            .skip(offset as usize)
            .take(max as usize)
            .copied()
            .collect())
    }

    fn kill_job(&self, request: KillJob) -> Result<(), SourceError> {
        let KillJob { job, reason } = request;
        self.check_job(job)?;
        if job == JobId(1) {
            return Err(SourceError::Refused("job_0001 has ended".to_owned()));
        }
        self.record(format!("KillJob({job:?}): {reason}"));
        Ok(())
    }

    fn command_job(&self, request: CommandJob) -> Result<(), SourceError> {
        let CommandJob {
            job,
            command,
            reason,
        } = request;
        self.check_job(job)?;
        self.record(format!("Job({job:?}, {command:?}): {reason}"));
        Ok(())
    }

    fn change_job(&self, request: ChangeJob) -> Result<(), SourceError> {
        let ChangeJob {
            job,
            change,
            reason,
        } = request;
        self.check_job(job)?;
        self.record(format!("ChangeJob({job:?}, {change:?}): {reason}"));
        Ok(())
    }

    fn command_task(&self, request: CommandTask) -> Result<Vec<AttemptId>, SourceError> {
        let CommandTask { task, attempt, .. } = request;
        if attempt.is_none() {
            self.check_job(task.job)?;
        }
        if task.index > 0
            || task.kind == TaskKind::Reduce
            || attempt.is_some_and(|number| number > 1)
        {
            return Err(SourceError::Refused(format!(
                "{} has no task {task}",
                task.job
            )));
        }
        self.record(format!("{request:?}"));
        Ok(Vec::new())
    }

    fn drain_worker(&self, request: DrainWorker) -> Result<(), SourceError> {
        check_worker(request.worker)?;
        self.record(format!("{request:?}"));
        Ok(())
    }

    fn undrain_worker(&self, request: UndrainWorker) -> Result<(), SourceError> {
        check_worker(request.worker)?;
        self.record(format!("{request:?}"));
        Ok(())
    }

    fn rerun(&self, job: JobId, output: Option<&Path>, reason: &str) -> Result<JobId, SourceError> {
        self.job(job)
            .map_err(|error| SourceError::Refused(error.to_string()))?;
        self.orders
            .lock()
            .expect("no test panicked")
            .push(format!("rerun {job} {output:?}: {reason}"));
        Ok(JobId(9))
    }

    fn history(&self) -> Option<&Path> {
        self.history.as_deref()
    }
}

/// A server with these jobs.
pub struct Sample {
    jobs: Arc<Jobs>,
    server: WebServer,
    secret: Secret,
    /// Directory of its what-ifs and of their script.
    folder: TempDir,
}

impl Sample {
    pub fn start() -> Sample {
        Sample::with(|settings| settings)
    }

    pub fn with_requests_max(requests_max: u32) -> Sample {
        Sample::with(|settings| WebSettings {
            requests_max,
            ..settings
        })
    }

    pub fn with(change: impl FnOnce(WebSettings) -> WebSettings) -> Sample {
        Sample::over(Jobs::default(), change)
    }

    /// Job 1 was suspended for job 2 after 0.5 s, and killed without a beneficiary after 1 s.
    pub fn preempted() -> Sample {
        Sample::over(
            Jobs {
                preemptions: Sample::preemptions(),
                ..Jobs::default()
            },
            |settings| settings,
        )
    }

    /// The same jobs in a history: their metrics count ended jobs.
    pub fn stopped() -> Sample {
        let jobs = Jobs {
            preemptions: Sample::preemptions(),
            is_stopped: true,
            ..Jobs::default()
        };
        Sample::over(jobs, |settings| settings)
    }

    fn preemptions() -> Vec<PreemptionSummary> {
        let task = TaskId {
            job: JobId(1),
            kind: TaskKind::Map,
            index: 0,
        };
        let asked = |after, primitive, end| {
            let requested = (BASE + after) * 1_000;
            let attempt = AttemptId { task, number: 1 };
            PreemptionSummary {
                by: "natjam".to_owned(),
                freed_micros: Some(requested + 4_000),
                end: Some(end),
                ..PreemptionSummary::wanted(requested, attempt, WorkerId(1), primitive)
            }
        };
        let suspended = asked(500, Primitive::Suspend, PreemptionEnd::Suspended);
        let killed = asked(1_000, Primitive::Kill, PreemptionEnd::Killed);
        vec![
            PreemptionSummary {
                beneficiary: Some(JobId(2)),
                work_saved_millis: 400,
                ..suspended
            },
            PreemptionSummary {
                by: "operator".to_owned(),
                work_lost_millis: 900,
                ..killed
            },
        ]
    }

    /// A server of two histories, `left` and `right`, with the same jobs.
    pub fn recordings() -> Sample {
        let jobs = Arc::new(Jobs::default());
        let secret = Secret::from_bytes([3; 32]);
        let folder = tempfile::tempdir().expect("a folder");
        let address = "127.0.0.1:0".parse().expect("an address");
        let settings = WebSettings {
            address,
            ..WebSettings::new(secret.clone())
        };
        let recordings =
            ["left", "right"].map(|name| (name.to_owned(), jobs.clone() as Arc<dyn PageSource>));
        let server = WebServer::start_recordings(&settings, recordings.to_vec()).expect("a server");
        Sample {
            jobs,
            server,
            secret,
            folder,
        }
    }

    /// A server whose what-ifs run this shell script.
    pub fn simulating(
        script: &str,
        change: impl FnOnce(WhatIfSettings) -> WhatIfSettings,
    ) -> Sample {
        Sample::with(|settings| {
            let what_if = settings.what_if.map(change).expect("what-ifs");
            std::fs::write(&what_if.begin[0], script).expect("a script");
            WebSettings {
                what_if: Some(what_if),
                ..settings
            }
        })
    }

    fn over(jobs: Jobs, change: impl FnOnce(WebSettings) -> WebSettings) -> Sample {
        let folder = simulated::folder();
        let jobs = Jobs {
            history: Some(folder.path().to_owned()),
            ..jobs
        };
        let jobs = Arc::new(jobs);
        let secret = Secret::from_bytes([3; 32]);
        let address = "127.0.0.1:0".parse().expect("an address");
        let requests_max = 10_000;
        let what_if = Some(simulated::settings(folder.path()));
        let usual = WebSettings {
            address,
            requests_max,
            what_if,
            ..WebSettings::new(secret.clone())
        };
        let server = WebServer::start(&change(usual), jobs.clone()).expect("a server");
        Sample {
            jobs,
            server,
            secret,
            folder,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn token(&self, role: WebRole) -> String {
        token(&self.secret, role, "tester", 1).expect("a token")
    }

    pub fn code(&self, role: WebRole) -> String {
        let link = self.server.link(role).expect("a link");
        link.split_once("#code=").expect("a code").1.to_owned()
    }

    /// Directory of the what-ifs and of their script.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn submit(&self) {
        self.jobs.submitted.fetch_add(1, Ordering::SeqCst);
    }

    pub fn orders(&self) -> Vec<String> {
        self.jobs.orders.lock().expect("no test panicked").clone()
    }

    /// Sends a request without credentials except those in `headers`.
    pub fn ask(&self, what: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!(
            "{what} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.address(),
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("Connection: close\r\n\r\n");
        request.push_str(body);
        asking(self.address(), request.as_bytes())
    }

    /// Sends a POST with the role `operate`.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        let token = format!("Bearer {}", self.token(WebRole::Operate));
        let headers = [
            ("Authorization", token.as_str()),
            ("Content-Type", "application/json"),
        ];
        self.ask(&format!("POST {path}"), &headers, body)
    }

    /// Sends a GET with the role `view`.
    pub fn get(&self, path: &str) -> Answer {
        let token = format!("Bearer {}", self.token(WebRole::View));
        self.ask(&format!("GET {path}"), &[("Authorization", &token)], "")
    }
}

/// A browser signed in with a link.
pub struct Browser {
    pub cookie: String,
    pub token: Option<String>,
}

impl Browser {
    pub fn sign_in(sample: &Sample, role: WebRole) -> Browser {
        let body = format!("{{\"code\":\"{}\"}}", sample.code(role));
        let answer = sample.ask(
            "POST /api/nap/v1/sign-in",
            &[("Content-Type", "application/json")],
            &body,
        );
        assert_eq!(answer.status, 200, "{}", answer.body);
        let cookie = answer.header("set-cookie").expect("a cookie");
        let cookie = cookie.split(';').next().expect("a pair").to_owned();
        Browser {
            cookie,
            token: answer.json()["token"].as_str().map(str::to_owned),
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
    /// The body, also if it is not UTF-8.
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends bytes, and reads a response until its content length or the end of the connection.
pub fn asking(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    // A refused connection may already be closed.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("no response: {error}"),
        }
        if let Some(answer) = parse(&bytes) {
            return answer;
        }
    }
    parse(&bytes)
        .unwrap_or_else(|| panic!("truncated response: {}", String::from_utf8_lossy(&bytes)))
}

/// Parses a response; `None` if it is incomplete.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or("0", |(_, value)| value);
    let body = bytes.get(end + 4..end + 4 + length.parse::<usize>().ok()?)?;
    Some(Answer {
        status,
        headers,
        body: String::from_utf8_lossy(body).into_owned(),
        bytes: body.to_vec(),
    })
}

/// Sends a head byte by byte; returns the time until the server closes the connection.
pub fn dribbled(address: SocketAddr) -> Duration {
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a deadline");
    let mut head = b"GET / HTTP/1.1\r\nX-Slow: "
        .iter()
        .chain(std::iter::repeat(&b'x'));
    let mut piece = [0; 64];
    while begin.elapsed() < PATIENCE {
        let sent = stream.write_all(&[*head.next().expect("endless")]);
        match stream.read(&mut piece) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
                    && sent.is_ok() => {}
            _ => break,
        }
    }
    begin.elapsed()
}
