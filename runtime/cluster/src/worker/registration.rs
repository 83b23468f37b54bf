//! One life of a worker: from a welcome under one number until another number is given, or the end.
//!
//! Owns that lives do not overlap: what an earlier one ran is gone and what it made is removed before the
//! first order of the next is followed. Does not own the connection that orders come from (`link`).
//!
//! A life has a thread of its own, where directories and files of attempts are made. The link, with its
//! heartbeat, never waits for a disk: a worker whose disk is slow is slow, not gone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use napreduce_engine::WorkerId;
use napreduce_local::worker::{SegmentMemory, Worker, WorkerSettings};
use napreduce_protocol::{ToWorker, WorkerNews};
use napreduce_task::{Spawner, run_soon_when_woken};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::environment::WorkerEnvironment;
use super::worker_directory::{clear_jobs, keep_logs_of};

/// What all lives of a worker have in common.
pub(super) struct Resources {
    pub(super) environment: Arc<WorkerEnvironment>,
    pub(super) spawner: Arc<Spawner>,
    pub(super) segment_memory: Arc<SegmentMemory>,
}

/// A running loop and its channels.
pub(super) struct Registration {
    orders: UnboundedSender<ToWorker>,
    news: UnboundedReceiver<WorkerNews>,
    /// Tells when the life has ended.
    ended: oneshot::Receiver<()>,
    running: Arc<AtomicUsize>,
}

impl Registration {
    /// Begins a life as soon as the one before it has ended; orders wait until then.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub(super) fn begin(
        resources: &Resources,
        worker: WorkerId,
        journal: u64,
        heartbeat: Duration,
        before: Option<Registration>,
    ) -> io::Result<Registration> {
        let (orders, followed) = unbounded_channel();
        let (told, news) = unbounded_channel();
        let environment = Arc::clone(&resources.environment);
        let settings = WorkerSettings {
            heartbeat,
            task_silence_max: environment.configuration.task_silence_max,
            environment: Some((Arc::clone(&environment) as _, worker)),
            segment_memory: Arc::clone(&resources.segment_memory),
            suspend: environment.configuration.suspend,
            running: Arc::default(),
        };
        let running = Arc::clone(&settings.running);
        let spawner = Arc::clone(&resources.spawner);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (living, ended) = oneshot::channel();
        std::thread::Builder::new().name("attempts".into()).spawn(move || {
            run_soon_when_woken();
            // Dropped at the end, also by a panic.
            let _living: oneshot::Sender<()> = living;
            runtime.block_on(async move {
                if let Some(before) = before {
                    before.end().await;
                }
                clear(environment, journal).await;
                Worker::run(settings, spawner, followed, told).await;
            });
        })?;
        Ok(Registration { orders, news, ended, running })
    }

    /// Whether there is work that could be saved.
    pub(super) fn runs_something(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Hands an order on.
    pub(super) fn order(&self, order: ToWorker) {
        // Its loop listens until this end is dropped.
        let _ = self.orders.send(order);
    }

    /// What it tells next.
    pub(super) async fn news(&mut self) -> Option<WorkerNews> {
        self.news.recv().await
    }

    /// What it has told and nobody has heard yet.
    pub(super) fn more_news(&mut self) -> Option<WorkerNews> {
        self.news.try_recv().ok()
    }

    /// Ends every attempt, and waits until all of them are gone.
    pub(super) async fn end(self) {
        let Registration { orders, news, ended, .. } = self;
        drop((orders, news));
        // Nothing is ever sent. A panic has been printed; its attempts died with it.
        let _ = ended.await;
    }
}

/// Beside the loop, since there may be much to remove.
async fn clear(environment: Arc<WorkerEnvironment>, journal: u64) {
    let cleared = spawn_blocking(move || {
        let name = environment.name.clone();
        let logs = keep_logs_of(&environment.paths, journal).map(|removed| {
            if removed {
                environment.logs.clear();
            }
        });
        for error in [clear_jobs(&environment.paths), logs].into_iter().filter_map(Result::err) {
            // Old files are in nobody's way: attempts are numbered anew and make what they need.
            tracing::warn!(target: "worker", worker = %name, "{error}");
        }
    });
    // Only a panic ends it early; that was printed.
    let _ = cleared.await;
}
