//! The coordinator's loop with scripted workers and clients, over its real journal.
//!
//! Owns the scene: a directory, coordinators that follow one another in it, and workers that say what a test
//! tells them. Does not own connections: their messages are handed over in this process.

mod chains;
mod changes;
mod history;
mod jobs;
mod outcomes;
mod output_log;
mod outputs;
mod preemption;
mod preemption_recovery;
mod recovery;
mod replay;
mod workers;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use napreduce_core::{AttemptId, JobId, Order, Report, Slots, TaskId, TaskKind, WorkerId};
use napreduce_protocol::{
    Blob, CheckpointSupport, CounterValues, Digest, FromCoordinator, FromWorker, Hello, JobDetail, JobEnd,
    JobPlan, PartOutput, Split, Submission, TaskCommand, TaskSummary, ToCoordinator, ToWorker, WorkerReport,
    WorkerSummary,
};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::configuration::CoordinatorConfiguration;
use super::daemon::{Coordinator, Input};
use super::last_heard::LastHeard;
use super::recovery::RecoveryError;
use super::replay::Recording;
use super::requests::{Following, Refusal, Reply, Request};
use crate::blobs::BlobStore;
use crate::cluster_directory::ClusterDirectory;
use crate::journal::JournalError;
use crate::output::{ClaimRequest, Disk, OutputClaim, Owner};

/// Nothing here takes long; a test that waits so long has failed.
const DEADLINE: Duration = Duration::from_secs(20);

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// A directory in which coordinators follow one another.
struct Scene {
    folder: TempDir,
    configuration: CoordinatorConfiguration,
}

/// A coordinator that runs.
struct Running {
    inputs: UnboundedSender<Input>,
    requests: UnboundedSender<Request>,
    task: JoinHandle<Result<(), JournalError>>,
    /// What the loop begins beside itself says its result here; it ends when all of that has ended.
    beside: JoinHandle<()>,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::Builder::new().prefix("napreduce-coordinator-").tempdir().expect("a folder");
        let directory = ClusterDirectory::resolve(Some(folder.path().join("cluster"))).expect("a place");
        directory.create().expect("a cluster directory");
        let mut configuration = CoordinatorConfiguration::new(directory);
        configuration.liveness = Duration::from_secs(60);
        Scene { folder, configuration }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Somebody else claims `out`, with leave to overwrite.
    fn claim(&self, job: u32, submission: u128, owner: Owner) -> OutputClaim {
        let out = self.path("out");
        let request = ClaimRequest {
            output: &out,
            job: JobId(job),
            extension: "",
            overwrite: true,
            submission,
            owner,
            durable: false,
        };
        OutputClaim::take(&Disk::default(), &request).expect("nobody holds it")
    }

    /// Where the work of a job is whose claim is named at random.
    fn work(&self, job: JobId) -> PathBuf {
        let temporary = self.path("out/_temporary");
        let names =
            fs::read_dir(&temporary).expect("a claim").map(|entry| entry.expect("an entry").file_name());
        let of_job = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&format!("{job}-"));
        temporary.join(names.into_iter().find(of_job).expect("work of the job"))
    }

    fn start(&self) -> Running {
        self.start_recorded(None)
    }

    /// A coordinator that does not run yet, or why there is none.
    fn recovered(&self) -> Result<Coordinator, RecoveryError> {
        let (inputs, _) = unbounded_channel();
        Coordinator::recover(&self.configuration, &self.blobs(), inputs)
    }

    fn blobs(&self) -> Arc<BlobStore> {
        let place = self.configuration.directory.coordinator_directory().join("blobs");
        BlobStore::open(place, 1 << 20).expect("a store")
    }

    /// A coordinator that keeps what its engine made of every event.
    fn start_recorded(&self, recording: Option<Recording>) -> Running {
        self.start_changed(|coordinator| coordinator.record(recording))
    }

    /// A coordinator to which something is done before it runs.
    fn start_changed(&self, change: impl FnOnce(&mut Coordinator)) -> Running {
        let (inputs, arriving) = unbounded_channel();
        let (requests, requested) = unbounded_channel();
        let (own, mut results) = unbounded_channel();
        let mut coordinator =
            Coordinator::recover(&self.configuration, &self.blobs(), own).expect("a coordinator");
        change(&mut coordinator);
        let passed_on = inputs.clone();
        let beside = tokio::spawn(async move {
            while let Some(result) = results.recv().await {
                // A coordinator that was killed hears nothing more.
                let _ = passed_on.send(result);
            }
        });
        let task = tokio::spawn(coordinator.run(requested, arriving));
        Running { inputs, requests, task, beside }
    }

    /// A job of `maps` maps and `reduces` reduces that writes to `out`.
    fn submission(&self, token: u128, maps: u32, reduces: u32) -> Box<Submission> {
        let mut plan = JobPlan::new("count", self.path("out"));
        let split = Split { path: self.path("in"), offset: 0, length: 10, file_length: 10, version: None };
        plan.splits = vec![split.into(); maps as usize];
        plan.reduces = reduces;
        plan.slowstart_permille = 1000;
        plan.checkpoint = CheckpointSupport { map: true, reduce: true };
        let program = Blob { digest: Digest([7; 32]), bytes: 1 };
        let architecture = std::env::consts::ARCH.to_owned();
        let (user, files, rerun_of) = ("ada".to_owned(), Vec::new(), None);
        Box::new(Submission { token, plan, user, program, architecture, files, rerun_of })
    }
}

impl Running {
    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).expect("the coordinator runs");
        timeout(DEADLINE, answer).await.expect("an answer in time").expect("an answer")
    }

    async fn asked(&self, message: ToCoordinator) -> Result<FromCoordinator, Refusal> {
        self.ask(|reply| Request::Asked(message, reply)).await
    }

    /// The answer to a message that is answered by `Done`.
    async fn done(&self, message: ToCoordinator) -> Result<(), Refusal> {
        self.asked(message).await.map(|answer| assert!(matches!(answer, FromCoordinator::Done), "{answer:?}"))
    }

    async fn try_submit(&self, submission: Box<Submission>) -> Result<JobId, Refusal> {
        let answer = self.asked(ToCoordinator::Submit(submission)).await?;
        let FromCoordinator::Submitted { job } = answer else { panic!("{answer:?}") };
        Ok(job)
    }

    async fn job(&self, job: JobId) -> Result<Box<JobDetail>, Refusal> {
        let answer = self.asked(ToCoordinator::Job { job }).await?;
        let FromCoordinator::Job(detail) = answer else { panic!("{answer:?}") };
        Ok(detail)
    }

    async fn tasks(&self, job: Option<JobId>) -> Result<Vec<TaskSummary>, Refusal> {
        let answer = self.asked(ToCoordinator::Tasks { job }).await?;
        let FromCoordinator::Tasks(tasks) = answer else { panic!("{answer:?}") };
        Ok(tasks)
    }

    async fn workers(&self) -> Result<Vec<WorkerSummary>, Refusal> {
        let answer = self.asked(ToCoordinator::Workers).await?;
        let FromCoordinator::Workers(workers) = answer else { panic!("{answer:?}") };
        Ok(workers)
    }

    async fn explain(&self, job: JobId, task: Option<TaskId>) -> Result<Vec<String>, Refusal> {
        let answer = self.asked(ToCoordinator::Explain { job, task }).await?;
        let FromCoordinator::Explained { reasons } = answer else { panic!("{answer:?}") };
        Ok(reasons.into_iter().map(|reason| reason.text).collect())
    }

    async fn kill_job(&self, job: JobId, reason: String) -> Result<(), Refusal> {
        self.done(ToCoordinator::KillJob { job, reason }).await
    }

    async fn command_task(
        &self,
        task: TaskId,
        attempt: Option<u32>,
        command: TaskCommand,
        reason: String,
    ) -> Result<Vec<AttemptId>, Refusal> {
        let answer = self.asked(ToCoordinator::CommandTask { task, attempt, command, reason }).await?;
        let FromCoordinator::Commanded { attempts } = answer else { panic!("{answer:?}") };
        Ok(attempts)
    }

    async fn submit(&self, submission: Box<Submission>) -> JobId {
        self.try_submit(submission).await.expect("an accepted job")
    }

    async fn end_of(&self, job: JobId) -> JobEnd {
        let following: Following =
            self.ask(|reply| Request::Follow { job, reply }).await.expect("a known job");
        let mut end = following.end;
        let ended = timeout(DEADLINE, end.wait_for(Option::is_some)).await.expect("an end in time");
        ended.expect("the coordinator runs").clone().expect("an end")
    }

    /// Without a word, as by SIGKILL.
    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("aborted").is_cancelled());
        self.beside.await.expect("no panic");
    }

    async fn stop(self) {
        self.inputs.send(Input::Stop).expect("the coordinator runs");
        self.task.await.expect("no panic").expect("a good end");
        self.beside.await.expect("no panic");
    }
}

/// A worker that does what a test says.
struct Worker {
    hello: Hello,
    inputs: UnboundedSender<Input>,
    connection: u64,
    messages: UnboundedReceiver<ToWorker>,
    heard: LastHeard,
    id: WorkerId,
    reported: u64,
}

impl Worker {
    /// A worker of that name, new and welcomed.
    async fn join(coordinator: &Running, name: &str, slots: u32) -> Worker {
        let hello = Hello {
            name: name.to_owned(),
            incarnation: 1,
            before: None,
            received: 0,
            slots: Slots { map: slots, reduce: slots },
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
        let (hello_box, stamp) = (Box::new(hello.clone()), heard.clone());
        let input = Input::Connected { connection, hello: hello_box, messages: sender, heard: stamp };
        coordinator.inputs.send(input).expect("the coordinator runs");
        let inputs = coordinator.inputs.clone();
        let mut worker =
            Worker { hello: hello.clone(), inputs, connection, messages, heard, id: WorkerId(0), reported };
        let ToWorker::Welcome { worker: id, journal, .. } = worker.next().await else { panic!("no welcome") };
        hello.before = Some((journal, id));
        (worker.hello, worker.id) = (hello, id);
        worker
    }

    /// Comes back to this or the next coordinator, as what it was.
    async fn reconnect(self, coordinator: &Running) -> Worker {
        self.disconnect();
        Worker::connect(coordinator, self.hello, self.reported).await
    }

    fn disconnect(&self) {
        // The coordinator may be gone, too.
        let _ = self.inputs.send(Input::Disconnected { connection: self.connection });
    }

    async fn next(&mut self) -> ToWorker {
        timeout(DEADLINE, self.messages.recv()).await.expect("a message in time").expect("an open connection")
    }

    /// The next numbered message; what is said beside is passed over.
    async fn numbered(&mut self) -> (u64, ToWorker) {
        loop {
            let message = self.next().await;
            if let Some(number) = message.number() {
                self.hello.received = self.hello.received.max(number);
                return (number, message);
            }
        }
    }

    /// The next order; descriptions and map outputs are passed over.
    async fn order(&mut self) -> Order {
        loop {
            match self.numbered().await.1 {
                ToWorker::Ordered { order, .. } => return order,
                ToWorker::Define { .. } | ToWorker::Outputs { .. } => {}
                other => panic!("an order was expected, not {other:?}"),
            }
        }
    }

    /// The next attempt to launch.
    async fn launched(&mut self) -> AttemptId {
        match self.order().await {
            Order::Launch { attempt, .. } => attempt,
            other => panic!("a launch was expected, not {other:?}"),
        }
    }

    fn say(&self, message: FromWorker) {
        self.heard.stamp();
        let waiting = self.heard.free_room();
        let said = Input::Said { connection: self.connection, message, waiting };
        self.inputs.send(said).expect("the coordinator runs");
    }

    fn report(&mut self, report: WorkerReport) {
        self.reported += 1;
        self.say(FromWorker::Reported { number: self.reported, report });
    }

    fn happened(&mut self, attempt: AttemptId, report: Report) {
        self.report(WorkerReport::Happened { attempt, report });
    }

    fn started(&mut self, attempt: AttemptId) {
        self.happened(attempt, Report::Started);
    }

    /// A map that did its work, or a reduce that has committed.
    fn finished(&mut self, attempt: AttemptId, part: Option<PartOutput>) {
        self.report(WorkerReport::Finished { attempt, counters: CounterValues::default(), part });
    }

    /// Does a map.
    fn do_map(&mut self, attempt: AttemptId) {
        self.started(attempt);
        self.finished(attempt, None);
    }

    /// Does a reduce: its part is promoted where the job's commit looks for it.
    async fn do_reduce(&mut self, scene: &Scene, attempt: AttemptId) {
        self.started(attempt);
        self.happened(attempt, Report::CommitRequested);
        assert_eq!(self.order().await, Order::Commit { attempt });
        self.promote(scene, attempt);
    }

    fn promote(&mut self, scene: &Scene, attempt: AttemptId) {
        self.write_part(scene, attempt);
        self.finish_part(attempt);
    }

    fn write_part(&self, scene: &Scene, attempt: AttemptId) {
        let AttemptId { task: TaskId { job, index, .. }, number } = attempt;
        let committed = scene.work(job).join("committed");
        fs::write(committed.join(format!("part-r-{index:05}.{number}")), "done\n").expect("a promoted part");
    }

    fn finish_part(&mut self, attempt: AttemptId) {
        self.finished(attempt, Some(PartOutput { records: 1, bytes: 5, digest: 1, ..PartOutput::default() }));
    }
}

fn attempt(job: u32, kind: TaskKind, index: u32, number: u32) -> AttemptId {
    AttemptId { task: TaskId { job: JobId(job), kind, index }, number }
}
