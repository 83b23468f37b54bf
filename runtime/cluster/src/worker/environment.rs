//! The environment of a cluster worker's loop, and how it locates other workers' segments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use napreduce_engine::{AttemptId, JobId, MapOutput, WorkerId};
use napreduce_local::process::TaskOutput;
use napreduce_local::worker::{AttemptLogs, Environment, Isolation, Preparing, WatchDisk};
use napreduce_protocol::{DataNetwork, FetchLimits, JobDescription, MapInput, Peer, Place, Secret};
use tokio::sync::Mutex;

use super::configuration::WorkerConfiguration;
use super::disk::{Disk, free_bytes};
use super::logs::LogShelf;
use super::paths::WorkerPaths;
use super::preparation::prepare;
use super::worker_directory::{has_visible_process, is_visible};
use crate::blobs::BlobStore;
use crate::transport::job_token;

/// The environment of a worker of a cluster.
#[derive(Debug)]
pub(super) struct WorkerEnvironment {
    pub(super) paths: WorkerPaths,
    pub(super) name: String,
    /// This host's name, for people.
    pub(super) host: String,
    pub(super) configuration: WorkerConfiguration,
    pub(super) secret: Secret,
    pub(super) blobs: Arc<BlobStore>,
    /// Held while a blob is fetched, so that concurrent requests fetch it once.
    pub(super) fetching: Mutex<()>,
    pub(super) logs: LogShelf,
    pub(super) isolation: Isolation,
}

impl Environment for WorkerEnvironment {
    fn name(&self) -> &str {
        &self.name
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn segment(&self, attempt: AttemptId) -> PathBuf {
        self.paths.segment(attempt)
    }

    fn scratch(&self, attempt: AttemptId) -> PathBuf {
        self.paths.scratch(attempt)
    }

    fn checkpoints(&self, job: JobId) -> PathBuf {
        self.paths.checkpoints(job)
    }

    fn free_disk_bytes(&self) -> u64 {
        free_bytes(self.paths.root())
    }

    fn watch_disk(&self) -> WatchDisk {
        let mut disk = Disk::new(
            self.paths.root().to_owned(),
            self.configuration.disk_reserve,
        );
        Box::new(move || disk.check())
    }

    fn open_logs(&self, attempt: AttemptId) -> io::Result<(Box<dyn AttemptLogs>, TaskOutput)> {
        let (logs, output) =
            self.logs
                .open(&self.paths, attempt, self.configuration.log_bytes_max)?;
        Ok((Box::new(logs), output))
    }

    fn forget(&self, job: JobId) {
        // Leftovers are removed when the worker registers again.
        let _ = fs::remove_dir_all(self.paths.job(job));
        self.logs.add(&self.paths, job);
    }

    fn prepare(self: Arc<Self>, description: Arc<JobDescription>) -> Preparing {
        Box::pin(prepare(self, description))
    }

    fn places(
        &self,
        own: WorkerId,
        outputs: Vec<MapOutput>,
        peers: &BTreeMap<WorkerId, Peer>,
    ) -> Vec<MapInput> {
        let holders: BTreeSet<WorkerId> = outputs.iter().map(|output| output.worker).collect();
        let looked_at = holders
            .into_iter()
            .filter_map(|holder| Some((holder, self.look_at(peers.get(&holder)?))));
        let peers: BTreeMap<WorkerId, (&Peer, Sight)> = looked_at.collect();
        let input = |output: MapOutput| {
            let place = self.place(own, output, &peers)?;
            Some(MapInput {
                attempt: output.attempt,
                place,
            })
        };
        outputs.into_iter().filter_map(input).collect()
    }

    fn data_network(&self, job: JobId) -> DataNetwork {
        let token = job_token(&self.secret, job);
        let encrypt = self.configuration.encrypt_shuffle;
        DataNetwork {
            token,
            encrypt,
            limits: FetchLimits::default(),
        }
    }
}

impl WorkerEnvironment {
    /// Determines how much of another worker is visible from here.
    fn look_at<'a>(&self, peer: &'a Peer) -> (&'a Peer, Sight) {
        let seen =
            !self.configuration.network_shuffle && is_visible(&peer.directory, peer.incarnation);
        let sight = if !seen {
            Sight::Nothing
        } else if has_visible_process(&self.configuration.world, &peer.directory) {
            Sight::Everything
        } else {
            Sight::Disk
        };
        (peer, sight)
    }

    fn place(
        &self,
        own: WorkerId,
        output: MapOutput,
        peers: &BTreeMap<WorkerId, (&Peer, Sight)>,
    ) -> Option<Place> {
        let MapOutput { attempt, worker } = output;
        if worker == own && !self.configuration.network_shuffle {
            return Some(Place::Local(self.paths.segment(attempt)));
        }
        let (peer, sight) = peers.get(&worker)?;
        let path = WorkerPaths::new(&peer.directory).segment(attempt);
        let seen = match sight {
            Sight::Nothing => false,
            // A segment in the memory of a worker on another machine appears as a dangling link.
            Sight::Disk => !path.is_symlink(),
            Sight::Everything => true,
        };
        Some(if seen {
            Place::Local(path)
        } else {
            Place::Remote(peer.address.clone())
        })
    }
}

/// The visible part of another worker.
#[derive(Debug, Clone, Copy)]
enum Sight {
    Nothing,
    /// Its directory, on shared storage.
    Disk,
    /// Its directory and process.
    Everything,
}
