//! One life of a worker: the period under one worker number. Lives do not overlap: attempts and files of one
//! are removed before the next follows its first order.
//!
//! A life has a thread of its own, which creates directories and files. The link with its heartbeat never
//! waits for a disk, so a worker with a slow disk is not lost.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use napreduce_engine::WorkerId;
use napreduce_local::process::Processes;
use napreduce_local::worker::{Environment, Membership, SegmentMemory, Worker, WorkerSettings};
use napreduce_local::world::Tasks;
use napreduce_protocol::{ToWorker, WorkerNews};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::environment::WorkerEnvironment;
use super::worker_directory::{clear_jobs, remove_logs_of_other_journals};

/// Resources shared by all lives of a worker.
pub(super) struct Resources {
    pub(super) environment: Arc<WorkerEnvironment>,
    pub(super) processes: Arc<dyn Processes>,
    pub(super) segment_memory: Arc<SegmentMemory>,
}

/// A running loop and its channels.
pub(super) struct Registration {
    orders: UnboundedSender<ToWorker>,
    news: UnboundedReceiver<WorkerNews>,
    /// Resolves when the life has ended.
    ended: oneshot::Receiver<()>,
    /// Number of running attempts.
    running: Arc<AtomicUsize>,
}

impl Registration {
    /// Begins a life once the previous one has ended; orders wait until then.
    ///
    /// # Errors
    /// Fails if its thread cannot be started.
    pub(super) fn begin(
        resources: &Resources,
        worker: WorkerId,
        journal: u64,
        heartbeat: Duration,
        previous: Option<Registration>,
    ) -> io::Result<Registration> {
        let (orders, orders_of_loop) = unbounded_channel();
        let (news_of_loop, news) = unbounded_channel();
        let environment = Arc::clone(&resources.environment);
        let world = environment.configuration.world.clone();
        let settings = WorkerSettings {
            world: world.clone(),
            heartbeat,
            processes: Arc::clone(&resources.processes),
            task_silence_max: environment.configuration.task_silence_max,
            membership: Some(Membership {
                environment: Arc::clone(&environment) as Arc<dyn Environment>,
                worker,
            }),
            segment_memory: Arc::clone(&resources.segment_memory),
            suspend: environment.configuration.suspend,
            running: Arc::default(),
        };
        let running = Arc::clone(&settings.running);
        let tasks = world.tasks.clone();
        let life = async move {
            if let Some(previous) = previous {
                previous.end().await;
            }
            clear(&tasks, environment, journal).await;
            Worker::run(settings, orders_of_loop, news_of_loop).await;
        };
        let ended = world.tasks.spawn_on_thread("attempts", life)?;
        Ok(Registration {
            orders,
            news,
            ended,
            running,
        })
    }

    /// Returns whether there is work to save.
    pub(super) fn runs_something(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Forwards an order.
    pub(super) fn order(&self, order: ToWorker) {
        // The loop receives until the sender is dropped.
        let _ = self.orders.send(order);
    }

    /// Returns the next news.
    pub(super) async fn news(&mut self) -> Option<WorkerNews> {
        self.news.recv().await
    }

    /// Returns pending news, if any.
    pub(super) fn more_news(&mut self) -> Option<WorkerNews> {
        self.news.try_recv().ok()
    }

    /// Ends every attempt and waits until all have ended.
    pub(super) async fn end(self) {
        // The loop ends when its orders are closed.
        drop(self.orders);
        drop(self.news);
        // A panic has been printed; its attempts died with it.
        let _ = self.ended.await;
    }
}

/// Removes data of earlier jobs on a blocking thread, since there may be much of it.
async fn clear(tasks: &Tasks, environment: Arc<WorkerEnvironment>, journal: u64) {
    let cleared = tasks.blocking(move || {
        let logs_removed = remove_logs_of_other_journals(&environment.paths, journal);
        if matches!(logs_removed, Ok(true)) {
            environment.logs.clear();
        }
        let jobs_cleared = clear_jobs(&environment.paths);
        for error in [jobs_cleared.err(), logs_removed.err()]
            .into_iter()
            .flatten()
        {
            // Old files are harmless: attempts are renumbered and create what they need.
            tracing::warn!(target: "worker", worker = %environment.name, "{error}");
        }
    });
    // Fails only after a panic, which was printed.
    let _ = cleared.await;
}
