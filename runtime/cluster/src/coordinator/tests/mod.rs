//! The coordinator's loop with scripted workers and clients, over its real journal.

mod chains;
mod changes;
mod daemon;
mod history;
mod jobs;
mod kept;
mod outcomes;
mod output_log;
mod outputs;
mod power;
mod preemption;
mod preemption_recovery;
mod recovery;
mod repair;
mod replay;
mod script;
mod workers;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId, Report, Slots, TaskId, TaskKind, WorkerId};
use napreduce_history::open_history;
use napreduce_local::coordinator::{Following, LastHeard, Recording};
use napreduce_local::output::{ClaimRequest, Disk, OutputClaim, Owner, take_output};
use napreduce_protocol::requests::GetJob;
use napreduce_protocol::{
    Answer, Blob, CheckpointSupport, CounterValues, Digest, FromWorker, Hello, JobDetail, JobEnd,
    JobPlan, PartOutput, Split, Submission, TaskError, ToWorker, WorkerMemory, WorkerReport,
};
use napreduce_schedulers::SchedulerConfiguration;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::configuration::CoordinatorConfiguration;
use super::recovery::RecoveryError;
use super::refusal::Refusal;
use super::requests::{LoopRequest, Reply};
use super::{ClusterCoordinator, ClusterInput};
use crate::blobs::BlobStore;
use crate::cluster_directory::ClusterDirectory;
use crate::journal::JournalError;

/// A test that waits longer has failed.
const DEADLINE: Duration = Duration::from_secs(20);

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// The folder and configuration of a test, in which several coordinators may run one after another.
struct Scene {
    folder: TempDir,
    configuration: CoordinatorConfiguration,
}

/// A running coordinator and the channels to it.
struct Running {
    inputs: UnboundedSender<ClusterInput>,
    requests: UnboundedSender<LoopRequest>,
    task: JoinHandle<Result<(), JournalError>>,
    /// Forwards the results of background work to the loop; ends when all background work has ended.
    helper: JoinHandle<()>,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::Builder::new()
            .prefix("napreduce-coordinator-")
            .tempdir()
            .expect("a folder");
        let directory =
            ClusterDirectory::resolve(Some(folder.path().join("cluster"))).expect("a place");
        directory.create().expect("a cluster directory");
        let mut configuration = CoordinatorConfiguration::new(
            directory,
            Arc::new(SchedulerConfiguration::default()),
            SchedulerConfiguration::read,
        );
        configuration.liveness = Duration::from_secs(60);
        Scene {
            folder,
            configuration,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Claims `out` for another owner, with permission to overwrite.
    fn claim(&self, job: u32, submission: u128, owner: Owner) -> Box<dyn OutputClaim> {
        let out = self.path("out");
        let request = ClaimRequest {
            output: &out,
            job: JobId(job),
            extension: "",
            overwrite: true,
            others: &[],
            splits: &[],
            submission,
            owner,
            durable: false,
        };
        take_output(&Disk::default(), &request).expect("nobody holds it")
    }

    /// Returns the work directory of a job, whose name has a random suffix.
    fn work(&self, job: JobId) -> PathBuf {
        let temporary = self.path("out/_temporary");
        let names = fs::read_dir(&temporary)
            .expect("a claim")
            .map(|entry| entry.expect("an entry").file_name());
        let of_job =
            |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&format!("{job}-"));
        temporary.join(names.into_iter().find(of_job).expect("work of the job"))
    }

    fn start(&self) -> Running {
        self.start_recorded(None)
    }

    /// Recovers a coordinator without starting its loop.
    fn recovered(&self) -> Result<ClusterCoordinator, RecoveryError> {
        let (inputs, _) = unbounded_channel();
        let blobs = self.blobs()?;
        ClusterCoordinator::recover(&self.configuration, &blobs, open_history, inputs)
    }

    fn blobs(&self) -> Result<Arc<BlobStore>, RecoveryError> {
        let directory = &self.configuration.directory;
        let place = directory.coordinator_directory().join("blobs");
        Ok(BlobStore::open(
            Arc::clone(directory.disk()),
            place,
            1 << 20,
        )?)
    }

    /// Starts a coordinator that records the effects of every event.
    fn start_recorded(&self, recording: Option<Recording>) -> Running {
        self.start_changed(|coordinator| coordinator.record(recording))
    }

    /// Starts a coordinator after applying a change to it.
    fn start_changed(&self, change: impl FnOnce(&mut ClusterCoordinator)) -> Running {
        self.try_start(change).expect("a coordinator")
    }

    fn try_start(
        &self,
        change: impl FnOnce(&mut ClusterCoordinator),
    ) -> Result<Running, RecoveryError> {
        let (inputs, arriving) = unbounded_channel();
        let (requests, requested) = unbounded_channel();
        let (own, mut results) = unbounded_channel();
        let blobs = self.blobs()?;
        let mut coordinator =
            ClusterCoordinator::recover(&self.configuration, &blobs, open_history, own)?;
        change(&mut coordinator);
        let passed_on = inputs.clone();
        let helper = tokio::spawn(async move {
            while let Some(result) = results.recv().await {
                // Fails if the coordinator was killed.
                let _ = passed_on.send(result);
            }
        });
        let task = tokio::spawn(coordinator.run(requested, arriving));
        Ok(Running {
            inputs,
            requests,
            task,
            helper,
        })
    }

    /// A job of `maps` maps and `reduces` reduces that writes to `out`.
    fn submission(&self, token: u128, maps: u32, reduces: u32) -> Box<Submission> {
        let mut plan = JobPlan::new("count", self.path("out"));
        let split = Split {
            path: self.path("in"),
            offset: 0,
            length: 10,
            file_length: 10,
            version: None,
        };
        plan.splits = vec![split.into(); maps as usize];
        plan.reduces = reduces;
        plan.slowstart_permille = 1000;
        plan.checkpoint = CheckpointSupport {
            map: true,
            reduce: true,
        };
        let program = Blob {
            digest: Digest([7; 32]),
            bytes: 1,
        };
        let architecture = std::env::consts::ARCH.to_owned();
        let user = "ada".to_owned();
        let files = Vec::new();
        let rerun_of = None;
        Box::new(Submission {
            token,
            plan,
            user,
            program,
            architecture,
            files,
            rerun_of,
        })
    }
}

impl Running {
    async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> LoopRequest,
    ) -> Result<T, Refusal> {
        let (reply, answer) = Reply::channel();
        self.requests
            .send(request(reply))
            .expect("the coordinator runs");
        timeout(DEADLINE, answer)
            .await
            .expect("an answer in time")
            .expect("an answer")
    }

    async fn asked<R: napreduce_protocol::Request>(
        &self,
        request: R,
    ) -> Result<R::Answer, Refusal> {
        let answer = self
            .ask(|reply| LoopRequest::Message(request.into(), reply))
            .await?;
        Ok(R::Answer::from_message(answer).unwrap_or_else(|other| panic!("{other:?}")))
    }

    async fn try_submit(&self, submission: Box<Submission>) -> Result<JobId, Refusal> {
        self.asked(*submission).await
    }

    async fn job(&self, job: JobId) -> Result<JobDetail, Refusal> {
        self.asked(GetJob { job }).await
    }

    async fn submit(&self, submission: Box<Submission>) -> JobId {
        self.try_submit(submission).await.expect("an accepted job")
    }

    async fn end_of(&self, job: JobId) -> JobEnd {
        let following = self.follow(job).await;
        self.end_of_followed(following).await
    }

    async fn follow(&self, job: JobId) -> Following {
        self.ask(|reply| LoopRequest::Follow { job, reply })
            .await
            .expect("a known job")
    }

    async fn end_of_followed(&self, following: Following) -> JobEnd {
        let mut end = following.end;
        let ended = timeout(DEADLINE, end.wait_for(Option::is_some))
            .await
            .expect("an end in time");
        ended
            .expect("the coordinator runs")
            .clone()
            .expect("an end")
    }

    /// Aborts the loop without cleanup, like SIGKILL.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("aborted").is_cancelled());
        self.helper.await.expect("no panic");
    }

    async fn stop(self) {
        self.inputs
            .send(ClusterInput::Stop)
            .expect("the coordinator runs");
        self.task.await.expect("no panic").expect("a good end");
        self.helper.await.expect("no panic");
    }
}

/// A worker that sends and receives what a test specifies.
struct Worker {
    hello: Hello,
    inputs: UnboundedSender<ClusterInput>,
    connection: u64,
    messages: UnboundedReceiver<ToWorker>,
    heard: LastHeard,
    id: WorkerId,
    reported: u64,
    /// Messages that arrived while the test waited for another one.
    kept: VecDeque<ToWorker>,
    /// Whether messages to the coordinator may still be in transit.
    is_speaking: bool,
    is_connected: bool,
}

impl Worker {
    /// Connects a new worker of this name.
    async fn join(coordinator: &Running, name: &str, slots: u32) -> Worker {
        let hello = Hello {
            name: name.to_owned(),
            incarnation: 1,
            before: None,
            received: 0,
            slots: Slots {
                map: slots,
                reduce: slots,
            },
            host: "host".to_owned(),
            rack: "/default-rack".to_owned(),
            data_address: "127.0.0.1:1".to_owned(),
            directory: PathBuf::from("/nowhere"),
            architecture: std::env::consts::ARCH.to_owned(),
            isolation: "watchdog".to_owned(),
            memory: 8 << 30,
            process: 1,
        };
        Worker::connect(coordinator, hello, 0).await
    }

    async fn connect(coordinator: &Running, mut hello: Hello, reported: u64) -> Worker {
        let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let (sender, messages) = unbounded_channel();
        let heard = LastHeard::now();
        let hello_box = Box::new(hello.clone());
        let stamp = heard.clone();
        let input = ClusterInput::Connected {
            connection,
            hello: hello_box,
            messages: sender,
            heard: stamp,
        };
        coordinator
            .inputs
            .send(input)
            .expect("the coordinator runs");
        let inputs = coordinator.inputs.clone();
        let kept = VecDeque::new();
        let is_speaking = false;
        let is_connected = true;
        let mut worker = Worker {
            hello: hello.clone(),
            inputs,
            connection,
            messages,
            heard,
            id: WorkerId(0),
            reported,
            kept,
            is_speaking,
            is_connected,
        };
        let ToWorker::Welcome {
            worker: id,
            journal,
            ..
        } = worker.next().await
        else {
            panic!("no welcome")
        };
        let before = Some((journal, id));
        if hello.before != before {
            // A new registration starts its message numbers at zero.
            (hello.before, hello.received, worker.reported) = (before, 0, 0);
        }
        (worker.hello, worker.id) = (hello, id);
        worker
    }

    fn disconnect(&mut self) {
        (self.is_connected, self.is_speaking) = (false, false);
        // Fails if the coordinator has ended.
        let _ = self.inputs.send(ClusterInput::Disconnected {
            connection: self.connection,
        });
    }

    async fn next(&mut self) -> ToWorker {
        self.next_or_end().await.expect("an open connection")
    }

    /// Returns the next message, or `None` if the coordinator has closed the connection. Checks that numbers
    /// have no gaps.
    async fn next_or_end(&mut self) -> Option<ToWorker> {
        let message = match self.kept.pop_front() {
            Some(message) => message,
            None => timeout(DEADLINE, self.messages.recv())
                .await
                .expect("a message in time")?,
        };
        if let Some(number) = message.number() {
            assert_eq!(number, self.hello.received + 1, "{message:?}");
            self.hello.received = number;
        }
        Some(message)
    }

    /// Waits until the coordinator has received all messages of this worker.
    async fn is_heard(&mut self) {
        if !self.is_speaking || self.inputs.is_closed() {
            return;
        }
        self.say(FromWorker::Heartbeat {
            progress: Vec::new(),
            memory: WorkerMemory::default(),
        });
        self.is_speaking = false;
        while let Some(message) = timeout(DEADLINE, self.messages.recv())
            .await
            .expect("an answer in time")
        {
            let all = matches!(message, ToWorker::Received { through } if through >= self.reported);
            self.kept.push_back(message);
            if all {
                return;
            }
        }
    }

    fn say(&mut self, message: FromWorker) {
        self.is_speaking = true;
        self.heard.stamp();
        let waiting = self.heard.free_room();
        let said = ClusterInput::Message {
            connection: self.connection,
            message,
            waiting,
        };
        self.inputs.send(said).expect("the coordinator runs");
    }

    fn report(&mut self, report: WorkerReport) {
        self.reported += 1;
        self.say(FromWorker::Reported {
            number: self.reported,
            age_micros: 0,
            report,
        });
    }

    fn happened(&mut self, attempt: AttemptId, report: Report) {
        self.report(report_of(attempt, report));
    }

    fn started(&mut self, attempt: AttemptId) {
        self.happened(attempt, Report::Started);
    }

    /// Reports that a map is done, or that a task has committed its part.
    fn finished(&mut self, attempt: AttemptId, counters: CounterValues, part: Option<PartOutput>) {
        self.wrote(attempt, counters, part, None);
    }

    /// The same, with the digest of a map's output.
    fn wrote(
        &mut self,
        attempt: AttemptId,
        counters: CounterValues,
        part: Option<PartOutput>,
        output_digest: Option<u64>,
    ) {
        self.report(WorkerReport::Finished {
            attempt,
            counters,
            part,
            output_digest,
        });
    }

    /// Writes the part where the commit of the job expects it.
    fn write_part(&self, scene: &Scene, attempt: AttemptId) {
        let AttemptId {
            task: TaskId { job, kind, index },
            number,
        } = attempt;
        let letter = if kind == TaskKind::Map { 'm' } else { 'r' };
        let part = scene
            .work(job)
            .join("committed")
            .join(format!("part-{letter}-{index:05}.{number}"));
        fs::write(part, "done\n").expect("a promoted part");
    }
}

/// Returns the worker's message about this report.
fn report_of(attempt: AttemptId, report: Report) -> WorkerReport {
    match report {
        Report::Failed {
            class,
            place,
            reason,
            lost_outputs,
            disk_need,
        } => {
            let error = TaskError {
                class,
                lost_inputs: lost_outputs,
                disk_need,
                ..TaskError::task(reason)
            };
            WorkerReport::Failed {
                attempt,
                error: error.at(place),
            }
        }
        report => WorkerReport::Happened { attempt, report },
    }
}
