//! Jobs on a cluster.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use napreduce_cluster::{ClusterClient, ClusterPlace, Patience, SubmitOptions, start_job};
use napreduce_local::Chain;
use napreduce_protocol::requests::ListWorkers;
use napreduce_protocol::{JobError, WorkerPhase};

use super::handle::JobHandle;
use super::target::Start;
use super::{JobRequest, lasting_path};
use crate::limits;
use crate::program::dataset::Files;
use crate::program::plan::{Planned, PlannedJob, Surroundings};
use crate::program::typed_paths::TypedPaths;
use crate::program::{Error, check_initialised};

/// A cluster, by its directory or by the address of its coordinator.
///
/// ```
/// use napreduce::run::Cluster;
///
/// let mine = Cluster::at("~/.local/state/napreduce");
/// let theirs = Cluster::at("10.0.0.1:7000").secret_file("cluster.secret").temporary_directory("/shared/tmp");
/// # let _ = (mine, theirs);
/// ```
#[derive(Debug, Clone)]
pub struct Cluster {
    place: OsString,
    secret_file: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    directory: Option<PathBuf>,
}

impl Cluster {
    /// Names a cluster by its directory, which may begin with `~/`, or by `HOST:PORT`.
    pub fn at(place: impl AsRef<OsStr>) -> Cluster {
        let place = below_home(place.as_ref()).unwrap_or_else(|| place.as_ref().to_owned());
        Cluster {
            place,
            secret_file: None,
            connect_timeout: None,
            directory: None,
        }
    }

    /// Sets the copy of the cluster's secret, for `HOST:PORT`.
    pub fn secret_file(mut self, path: impl Into<PathBuf>) -> Cluster {
        self.secret_file = Some(path.into());
        self
    }

    /// Sets how long to wait for an unreachable coordinator. Default: one minute.
    pub fn connect_timeout(mut self, timeout: Duration) -> Cluster {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Sets the directory for outputs of jobs without an output directory. All workers and this program must see it.
    pub fn temporary_directory(mut self, directory: impl Into<PathBuf>) -> Cluster {
        self.directory = Some(directory.into());
        self
    }

    fn found(&self) -> Result<FoundCluster, Error> {
        let place = ClusterPlace::parse(&self.place, self.secret_file.as_deref())
            .map_err(JobError::from)?;
        if let Some(timeout) = self.connect_timeout {
            limits::check_time("connect timeout", timeout).map_err(Error::Usage)?;
        }
        let default = Patience {
            tell: false,
            ..Patience::default()
        };
        let patience = Patience {
            first: self.connect_timeout.unwrap_or(default.first),
            ..default
        };
        Ok(FoundCluster { place, patience })
    }

    /// Creates a directory for the output of one job, which the coordinator removes if this program does not.
    fn temporary_output(&self, found: &FoundCluster) -> Result<Chain, Error> {
        let directory = self.directory.as_ref().ok_or_else(|| {
            Error::Usage(
                "the output of a job on a cluster needs a directory that all workers see; name it with \
                 `JobRequest::output`, or for temporary outputs with `Cluster::temporary_directory`"
                    .to_owned(),
            )
        })?;
        let mut chain = Chain::next_to(&directory.join("napreduce"))?;
        chain.begin(Some(&|chain, root| {
            Ok(found.place.keep_chain(chain, root)?)
        }))?;
        Ok(chain)
    }
}

/// Replaces `~/` at the beginning of a path by the home directory.
fn below_home(place: &OsStr) -> Option<OsString> {
    let rest = Path::new(place).strip_prefix("~").ok()?;
    Some(Path::new(&env::var_os("HOME")?).join(rest).into_os_string())
}

/// A cluster whose place is known.
struct FoundCluster {
    place: ClusterPlace,
    patience: Patience,
}

impl Surroundings for FoundCluster {
    fn default_reduces(&mut self) -> Result<u32, Error> {
        // A client has a runtime of its own, which cannot block a thread of another one.
        let listed = thread::scope(|threads| {
            let asking =
                || ClusterClient::connect(self.place.clone(), self.patience)?.ask(ListWorkers);
            threads.spawn(asking).join()
        });
        let workers = listed
            .map_err(|_| JobError::Internal("listing the workers panicked".to_owned()))?
            .map_err(JobError::from)?;
        let up = workers
            .iter()
            .filter(|worker| worker.state == WorkerPhase::Up);
        Ok(up.map(|worker| worker.reduce_slots.0).sum::<u32>().max(1))
    }

    fn readable_path(&mut self, path: PathBuf) -> Result<PathBuf, Error> {
        lasting_path(path)
    }
}

impl Start for Cluster {
    fn start(&self, job: JobRequest<()>) -> Result<JobHandle<()>, Error> {
        check_initialised()?;
        let mut found = self.found()?;
        let output = match &job.output {
            Some(directory) => Files::named(directory.clone()),
            None => Files::temporary(self.temporary_output(&found)?),
        };
        let Planned { mut plan, warnings } =
            job.plan(&PlannedJob::of(job.definition), &output, false, &mut found)?;
        plan.chain = output.chain();
        TypedPaths::from_here()?.make_absolute(&mut plan);
        let submit = SubmitOptions {
            files: job.arguments.cluster.files.concat(),
            file_bytes_max: job.settings.side_file_max,
            ..SubmitOptions::default()
        };
        let started = start_job(&found.place, found.patience, plan, &submit)?;
        Ok(JobHandle::new(
            started,
            Arc::new(output),
            job.described.files,
            warnings,
        ))
    }
}
