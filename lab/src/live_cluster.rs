//! Owns a cluster of an experiment's own: one coordinator and its workers as daemons, a client, and jobs of
//! the lab's program handed in and followed. What the jobs are for belongs to the experiments, what becomes
//! of all this to the guard.

mod order;
mod recording;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use napreduce_engine::{JobId, Slots};
use napreduce_live::{
    ByteSize, ClusterClient, ClusterDirectory, ClusterPlace, JobDetail, JobPhase, JobSummary, Patience,
    TaskSummary,
};
pub use order::JobOrder;
pub use recording::{RECORDINGS, new_place};

use crate::confinement::Confinement;
use crate::daemons::Daemons;
use crate::error::{LabError, LiveClusterError};
use crate::guard::{Charge, Guard};
use crate::jobs::PARENT_VARIABLE;
use crate::jobs::own_binary;
use crate::process::{CommandLine, run_and_read};
use crate::session::Session;
use crate::workspace::{WorkFolder, WorkSettings, write};

/// How long workers may take to come up.
const UP_MAX: Duration = Duration::from_secs(60);
/// What each worker adds to that.
const UP_EACH: Duration = Duration::from_millis(200);
/// Between two looks at a job or a task.
const LOOK: Duration = Duration::from_millis(5);

/// What a cluster consists of.
#[derive(Debug)]
pub struct Layout<'a> {
    /// The slots of each worker.
    pub workers: Vec<Slots>,
    /// How often workers report.
    pub heartbeat: Duration,
    pub configuration: String,
    /// What the workers may use.
    pub confinement: Option<&'a Confinement>,
}

/// A running cluster; its daemons end when it is dropped.
#[derive(Debug)]
pub struct LiveCluster<'s> {
    session: &'s Session,
    folder: PathBuf,
    daemons: Daemons,
    /// For what an experiment does to its jobs.
    pub client: ClusterClient,
}

impl<'s> LiveCluster<'s> {
    /// Starts a cluster in `folder`, which exists and is empty, with the binary `nap`.
    ///
    /// # Errors
    /// When a daemon fails or does not come up.
    pub fn start(
        folder: &Path,
        nap: &Path,
        layout: &Layout<'_>,
        guard: &mut Guard,
        session: &'s Session,
    ) -> Result<LiveCluster<'s>, LabError> {
        let directory = folder.join("cluster");
        ClusterDirectory::resolve(Some(directory.clone()))
            .and_then(|directory| directory.create())
            .map_err(LiveClusterError::from)?;
        write(&directory.join("napreduce.toml"), &layout.configuration)?;
        let mut daemons = Daemons::none(folder);
        let coordinator = daemons.start("coordinator", &coordinator(nap, &directory, layout))?;
        guard.take_process(coordinator)?;
        for (number, slots) in (1..).zip(&layout.workers) {
            let name = format!("worker-{number}");
            let worker = daemon(nap, "worker", &directory)
                .flag("--name", name.clone())
                .flag("--map-slots", slots.map.to_string())
                .flag("--reduce-slots", slots.reduce.to_string());
            let worker = layout.confinement.map_or(worker.clone(), |confinement| confinement.wrap(worker));
            let id = daemons.start(&name, &worker)?;
            guard.take_process(id)?;
            if let Some(confinement) = layout.confinement {
                confinement.admit(id).map_err(LiveClusterError::Confinement)?;
            }
        }
        let connected = connect(&directory, &mut daemons, layout.workers.len(), session);
        // What a daemon has to say explains a failure better.
        daemons.check()?;
        let (folder, client) = (folder.to_owned(), connected?);
        Ok(LiveCluster { session, folder, daemons, client })
    }

    /// One more connection.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn client(&self) -> Result<ClusterClient, LabError> {
        let directory = ClusterDirectory::resolve(Some(self.folder.join("cluster")));
        let place = ClusterPlace::Directory(directory.map_err(LiveClusterError::from)?);
        Ok(ClusterClient::connect(place, Patience::default()).map_err(LiveClusterError::from)?)
    }

    /// Waits until a job has ended, by following it: looking at a job of many tasks again and again would be
    /// a load of its own.
    ///
    /// # Errors
    /// When it does not succeed, or not in time.
    pub fn wait_for_end(&mut self, job: JobId, limit: Duration) -> Result<(), LabError> {
        self.until(job, "its end", limit, |cluster| {
            let summaries = cluster.client.jobs(1).map_err(LiveClusterError::from)?;
            let Some(summary) = summaries.into_iter().find(|summary| summary.job == job) else {
                return Ok(None);
            };
            if has_succeeded(&summary)? {
                return Ok(Some(()));
            }
            thread::sleep(LOOK * 10);
            Ok(None)
        })
    }

    /// Hands in a job.
    ///
    /// # Errors
    /// When its program fails.
    pub fn submit(&mut self, order: &JobOrder) -> Result<JobId, LabError> {
        let command = order.command(&own_binary(), &self.folder.join("cluster"));
        let said = run_and_read(&command, &self.folder, &self.session.interrupt)?;
        let number = said.trim().strip_prefix("job_").and_then(|number| number.parse().ok());
        number.map(JobId).ok_or_else(|| LiveClusterError::NoJob { said }.into())
    }

    /// The tasks of a job.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn tasks(&mut self, job: JobId) -> Result<Vec<TaskSummary>, LabError> {
        Ok(self.client.tasks(Some(job)).map_err(LiveClusterError::from)?)
    }

    /// Everything about a job.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn job(&mut self, job: JobId) -> Result<JobDetail, LabError> {
        Ok(self.client.job(job).map_err(LiveClusterError::from)?)
    }

    /// An error when one of its daemons has ended.
    ///
    /// # Errors
    /// The same.
    pub fn check(&mut self) -> Result<(), LabError> {
        Ok(self.daemons.check()?)
    }

    /// Looks again and again until `found` gives something.
    ///
    /// # Errors
    /// When a daemon ends, on an interrupt, and when it takes longer than `limit`.
    pub fn until<T>(
        &mut self,
        job: JobId,
        waited_for: &str,
        limit: Duration,
        mut found: impl FnMut(&mut LiveCluster<'s>) -> Result<Option<T>, LabError>,
    ) -> Result<T, LabError> {
        let began = Instant::now();
        loop {
            if let Some(found) = found(self)? {
                return Ok(found);
            }
            self.daemons.check()?;
            self.session.interrupt.check()?;
            if began.elapsed() > limit {
                let waited_for = waited_for.to_owned();
                return Err(LiveClusterError::Late { job, limit, waited_for }.into());
            }
            thread::sleep(LOOK);
        }
    }

    /// Waits until a job has succeeded.
    ///
    /// # Errors
    /// When it does not, or not in time.
    pub fn wait(&mut self, job: JobId, limit: Duration) -> Result<JobDetail, LabError> {
        self.until(job, "its end", limit, |cluster| {
            let detail = cluster.job(job)?;
            Ok(has_succeeded(&detail.summary)?.then_some(detail))
        })
    }

    /// Ends it.
    ///
    /// # Errors
    /// When a daemon had to be killed or has ended before.
    pub fn stop(mut self) -> Result<(), LabError> {
        self.daemons.check()?;
        Ok(self.daemons.stop()?)
    }

    /// Ends it, and keeps the history of its jobs in a new folder.
    ///
    /// # Errors
    /// The same, and when that cannot be written.
    pub fn stop_and_keep(self, recording: &Path) -> Result<(), LabError> {
        let directory = self.folder.join("cluster");
        self.stop()?;
        Ok(recording::keep(&directory, recording)?)
    }
}

/// The folder of an experiment, and a guard that removes it at the end unless it is to be left in place.
///
/// # Errors
/// When the folder cannot be made, or the guard cannot be started.
pub fn guarded_folder(settings: &WorkSettings, wanted: ByteSize) -> Result<(WorkFolder, Guard), LabError> {
    let work = WorkFolder::make(settings, wanted)?;
    let mut guard = Guard::start()?;
    if !settings.keep {
        guard.take(&Charge::Folder(work.path().to_owned()))?;
    }
    Ok((work, guard))
}

/// Whether a job is over, and not otherwise than well.
///
/// # Errors
/// When it has failed or was killed.
pub fn has_succeeded(job: &JobSummary) -> Result<bool, LiveClusterError> {
    match job.phase {
        JobPhase::Succeeded => Ok(true),
        JobPhase::Active | JobPhase::Suspended | JobPhase::Stopping => Ok(false),
        phase => Err(LiveClusterError::Job {
            job: job.job,
            name: job.name.clone(),
            phase: phase.in_words(),
            reason: job.reason.clone().unwrap_or_default(),
        }),
    }
}

fn coordinator(nap: &Path, directory: &Path, layout: &Layout<'_>) -> CommandLine {
    daemon(nap, "coordinator", directory).flag("--heartbeat", format!("{}us", layout.heartbeat.as_micros()))
}

fn daemon(nap: &Path, command: &str, directory: &Path) -> CommandLine {
    // It ends with this process, whatever ends that.
    let line = CommandLine::new(nap).env(PARENT_VARIABLE, std::process::id().to_string());
    line.arg(command).flag("--dir", directory)
}

fn connect(
    directory: &Path,
    daemons: &mut Daemons,
    wanted: usize,
    session: &Session,
) -> Result<ClusterClient, LabError> {
    let directory = ClusterDirectory::resolve(Some(directory.to_owned())).map_err(LiveClusterError::from)?;
    let began = Instant::now();
    let (mut client, mut up): (Option<ClusterClient>, _) = (None, 0);
    loop {
        client = match client {
            None => {
                let patience = Patience { first: LOOK * 20, tell: false, ..Patience::default() };
                match ClusterClient::connect(ClusterPlace::Directory(directory.clone()), patience) {
                    Ok(client) => Some(client),
                    Err(error) if began.elapsed() > UP_MAX => {
                        return Err(LiveClusterError::from(error).into());
                    }
                    Err(_) => None,
                }
            }
            Some(mut client) => {
                let workers = client.workers().map_err(LiveClusterError::from)?;
                up = workers.iter().filter(|worker| worker.state == napreduce_live::WorkerPhase::Up).count();
                if up >= wanted {
                    return Ok(client);
                }
                Some(client)
            }
        };
        daemons.check()?;
        session.interrupt.check()?;
        let limit = UP_MAX + UP_EACH * u32::try_from(wanted).unwrap_or(u32::MAX);
        if began.elapsed() > limit {
            return Err(LiveClusterError::Workers { wanted, up, limit }.into());
        }
        thread::sleep(LOOK);
    }
}
