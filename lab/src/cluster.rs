//! Clusters of an experiment: a bench, which is a work folder with its guard, and on it a coordinator, workers and
//! clients. Every experiment that preempts real tasks runs on one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use napreduce_cluster::{ClusterClient, ClusterDirectory, ClusterPlace, Patience, SubmitOptions};
use napreduce_engine::{JobId, Slots};
use napreduce_protocol::requests::{GetJob, ListTasks, ListWorkers};
use napreduce_protocol::{
    ByteSize, JobDetail, JobPhase, JobPlan, JobSummary, TaskSummary, WorkerPhase,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::confinement::Confinement;
use crate::error::{cannot, usage};
use crate::guard::{Charge, Guard};
use crate::jobs::rounds_per_second;
use crate::process::{CommandLine, last_words, spawn};
use crate::session::Session;
use crate::workspace::{WorkFolder, write};

/// How long workers may take to come up.
const UP_MAX: Duration = Duration::from_secs(60);
/// How long daemons may take to end; longer than they give their own tasks.
const END_MAX: Duration = Duration::from_secs(40);
/// Between two polls of a job, a task or a daemon.
const POLL: Duration = Duration::from_millis(5);
/// Folder of a report with a folder for each of its clusters.
pub const RECORDINGS: &str = "recordings";
/// Environment variable with the process whose end ends the daemons of nap.
const PARENT_VARIABLE: &str = "NAPREDUCE_UP_PROCESS";

/// The place where an experiment starts its clusters. The guard removes everything at the end, unless `keep` is set.
#[derive(Debug)]
pub struct Bench<'s> {
    pub session: &'s Session,
    pub work: WorkFolder,
    pub guard: Guard,
    nap: PathBuf,
    rounds_per_second: Option<u64>,
}

impl<'s> Bench<'s> {
    /// Makes the work folder, in which `wanted` bytes must be free.
    pub fn new(session: &'s Session, wanted: ByteSize) -> Result<Bench<'s>> {
        let nap = nap(&session.binaries)?;
        let work = WorkFolder::make(&session.work, wanted)?;
        let mut guard = Guard::start()?;
        if !session.work.keep {
            guard.take(&Charge::Folder(work.path().to_owned()))?;
        }
        Ok(Bench {
            session,
            work,
            guard,
            nap,
            rounds_per_second: None,
        })
    }

    /// Rounds of arithmetic per second on this machine; measured once.
    pub fn rounds_per_second(&mut self) -> u64 {
        *self.rounds_per_second.get_or_insert_with(|| {
            self.session.log("measuring how fast this machine is");
            rounds_per_second() as u64
        })
    }

    /// Starts a cluster in `folder`, which exists and is empty.
    pub fn start(&self, folder: &Path, layout: &Layout<'_>) -> Result<Cluster<'s>> {
        Cluster::start(folder, &self.nap, layout, self.session)
    }

    pub fn end(self) -> Result<()> {
        self.guard.clean_up()
    }
}

fn nap(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("nap");
    if path.is_file() {
        return Ok(path);
    }
    Err(usage(format_args!(
        "no nap binary at {}; build it with `cargo build --release`, or name the folder that holds it with --bin-dir",
        path.display()
    )))
}

#[derive(Debug)]
pub struct Layout<'a> {
    /// The slots of each worker.
    pub workers: Vec<Slots>,
    pub heartbeat: Duration,
    /// The text of its configuration file.
    pub configuration: String,
    pub confinement: Option<&'a Confinement>,
}

/// A running cluster; its daemons end when it is dropped.
#[derive(Debug)]
pub struct Cluster<'s> {
    session: &'s Session,
    folder: PathBuf,
    daemons: Daemons,
    pub client: ClusterClient,
}

impl<'s> Cluster<'s> {
    fn start(
        folder: &Path,
        nap: &Path,
        layout: &Layout<'_>,
        session: &'s Session,
    ) -> Result<Cluster<'s>> {
        let directory = folder.join("cluster");
        ClusterDirectory::resolve(Some(directory.clone()))?.create()?;
        write(&directory.join("napreduce.toml"), &layout.configuration)?;
        let mut daemons = Daemons {
            folder: folder.to_owned(),
            running: Vec::new(),
        };
        let heartbeat = format!("{}us", layout.heartbeat.as_micros());
        let daemon = |command: &str| CommandLine::new(nap).arg(command).flag("--dir", &directory);
        daemons.start(
            "coordinator",
            daemon("coordinator").flag("--heartbeat", heartbeat),
        )?;
        for (number, slots) in (1..).zip(&layout.workers) {
            let name = format!("worker-{number}");
            let mut worker = daemon("worker")
                .flag("--name", name.clone())
                .flag("--map-slots", slots.map.to_string())
                .flag("--reduce-slots", slots.reduce.to_string());
            if let Some(confinement) = layout.confinement {
                worker = confinement.wrap(worker);
            }
            let id = daemons.start(&name, worker)?;
            if let Some(confinement) = layout.confinement {
                confinement.admit(id)?;
            }
        }
        let client = connect(&directory, &mut daemons, layout.workers.len(), session);
        // The error of a daemon explains a failed connection.
        daemons.check()?;
        Ok(Cluster {
            session,
            folder: folder.to_owned(),
            daemons,
            client: client?,
        })
    }

    fn directory(&self) -> PathBuf {
        self.folder.join("cluster")
    }

    pub fn client(&self) -> Result<ClusterClient> {
        let place = ClusterPlace::Directory(ClusterDirectory::resolve(Some(self.directory()))?);
        Ok(ClusterClient::connect(place, Patience::default())?)
    }

    pub fn submit(&mut self, plan: JobPlan) -> Result<JobId> {
        Ok(self.client.submit(plan, &SubmitOptions::default())?)
    }

    pub fn tasks(&mut self, job: JobId) -> Result<Vec<TaskSummary>> {
        Ok(self.client.ask(ListTasks { job: Some(job) })?)
    }

    pub fn job(&mut self, job: JobId) -> Result<JobDetail> {
        Ok(self.client.ask(GetJob { job })?)
    }

    /// Fails when a daemon has ended, and on an interrupt.
    pub fn check(&mut self) -> Result<()> {
        self.daemons.check()?;
        Ok(self.session.interrupt.check()?)
    }

    /// Polls until `found` returns something.
    pub fn until<T>(
        &mut self,
        job: JobId,
        waited_for: &str,
        limit: Duration,
        mut found: impl FnMut(&mut Cluster<'s>) -> Result<Option<T>>,
    ) -> Result<T> {
        let began = Instant::now();
        loop {
            if let Some(found) = found(self)? {
                return Ok(found);
            }
            self.check()?;
            if began.elapsed() > limit {
                bail!("{job}: {waited_for} did not come within {limit:?}");
            }
            thread::sleep(POLL);
        }
    }

    /// Waits until a job has succeeded.
    pub fn wait(&mut self, job: JobId, limit: Duration) -> Result<JobDetail> {
        self.until(job, "its end", limit, |cluster| {
            let detail = cluster.job(job)?;
            Ok(has_succeeded(&detail.summary)?.then_some(detail))
        })
    }

    /// Ends it; fails when a daemon had to be killed or has ended before.
    pub fn stop(mut self) -> Result<()> {
        self.daemons.check()?;
        if let Some(name) = self.daemons.end() {
            bail!(
                "{name} did not end within {END_MAX:?} and was killed{}",
                self.daemons.last_words(&name)
            );
        }
        Ok(())
    }

    /// Ends it, and copies the history of its jobs to a new folder.
    pub fn stop_and_keep(self, recording: &Path) -> Result<()> {
        let directory = self.directory();
        self.stop()?;
        copy(&directory.join("coordinator").join("history"), recording)
    }
}

/// Whether a job has succeeded; fails when it has ended otherwise.
pub fn has_succeeded(job: &JobSummary) -> Result<bool> {
    match job.phase {
        JobPhase::Succeeded => Ok(true),
        phase if !phase.has_ended() => Ok(false),
        phase => {
            let reason = job.reason.as_deref().unwrap_or_default();
            bail!("{} ({}) {}: {reason}", job.job, job.name, phase.in_words())
        }
    }
}

/// Seconds of a job from its submission to its end.
pub fn seconds(detail: &JobDetail) -> f64 {
    let JobSummary {
        submitted_millis,
        ended_millis,
        ..
    } = detail.summary;
    ended_millis
        .unwrap_or(submitted_millis)
        .saturating_sub(submitted_millis) as f64
        / 1e3
}

fn connect(
    directory: &Path,
    daemons: &mut Daemons,
    wanted: usize,
    session: &Session,
) -> Result<ClusterClient> {
    let directory = ClusterDirectory::resolve(Some(directory.to_owned()))?;
    let began = Instant::now();
    let (mut client, mut up): (Option<ClusterClient>, usize) = (None, 0);
    loop {
        let is_late = began.elapsed() > UP_MAX;
        if let Some(mut connected) = client.take() {
            let workers = connected.ask(ListWorkers)?;
            up = workers
                .iter()
                .filter(|worker| worker.state == WorkerPhase::Up)
                .count();
            if up >= wanted {
                return Ok(connected);
            }
            client = Some(connected);
        } else {
            let patience = Patience {
                first: POLL * 20,
                tell: false,
                ..Patience::default()
            };
            match ClusterClient::connect(ClusterPlace::Directory(directory.clone()), patience) {
                Err(error) if is_late => return Err(error.into()),
                connected => client = connected.ok(),
            }
        }
        daemons.check()?;
        session.interrupt.check()?;
        if is_late {
            bail!("only {up} of {wanted} workers registered within {UP_MAX:?}");
        }
        thread::sleep(POLL);
    }
}

/// Daemons. Dropping this sends SIGTERM, so that they end their tasks; a daemon that does not end is killed.
#[derive(Debug)]
struct Daemons {
    /// Contains their logs.
    folder: PathBuf,
    running: Vec<(String, Child)>,
}

impl Daemons {
    fn start(&mut self, name: &str, command: CommandLine) -> Result<Pid> {
        // A terminated worker would save its attempts and wait for a coordinator. The kernel ends daemons with
        // this process.
        let command = command
            .env("NAPREDUCE_ON_TERMINATE", "leave")
            .env(PARENT_VARIABLE, std::process::id().to_string());
        let child = spawn(&command, name, &self.folder)?;
        let id = Pid::from_child(&child);
        self.running.push((name.to_owned(), child));
        Ok(id)
    }

    /// Fails when one of them has ended.
    fn check(&mut self) -> Result<()> {
        for (name, child) in &mut self.running {
            if let Some(status) = child.try_wait()? {
                let last_words = last_words(&self.folder.join(format!("{name}.err")));
                bail!("{name} ended by itself ({status}){last_words}");
            }
        }
        Ok(())
    }

    fn last_words(&self, name: &str) -> String {
        last_words(&self.folder.join(format!("{name}.err")))
    }

    /// Returns the name of one that had to be killed.
    fn end(&mut self) -> Option<String> {
        fn is_running(child: &mut Child) -> bool {
            matches!(child.try_wait(), Ok(None))
        }
        for (_, child) in self.running.iter_mut().rev() {
            if is_running(child) {
                // A child that was not reaped keeps its number; it may have ended.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
        }
        let until = Instant::now() + END_MAX;
        while self.running.iter_mut().any(|(_, child)| is_running(child)) && Instant::now() < until
        {
            thread::sleep(POLL);
        }
        let mut killed = None;
        for (name, mut child) in self.running.drain(..) {
            if is_running(&mut child) {
                // An error means that it has ended.
                let _ = child.kill();
                let _ = child.wait();
                killed = Some(name);
            }
        }
        killed
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        // `stop` reports daemons that had to be killed.
        let _ = self.end();
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(cannot("make", to))?;
    for entry in fs::read_dir(from).map_err(cannot("read", from))? {
        let entry = entry.map_err(cannot("read", from))?;
        let source = entry.path();
        let target = to.join(entry.file_name());
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(cannot("copy", &source))?;
        }
    }
    Ok(())
}

/// The path of a new folder: `name`, or if that exists, with a number.
pub fn new_place(recordings: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut places = std::iter::once(name.to_owned())
        .chain(numbered)
        .map(|name| recordings.join(name));
    places
        .find(|place| !place.exists())
        .unwrap_or_else(|| recordings.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_nap_error_names_the_build_command() {
        let error = nap(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(
            error.contains("/nowhere/nap") && error.contains("cargo build --release"),
            "{error}"
        );
    }

    #[test]
    fn early_end_of_a_daemon_is_reported_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemons = Daemons {
            folder: folder.path().to_owned(),
            running: Vec::new(),
        };
        let command = CommandLine::new("/bin/sh").flag("-c", "echo no port >&2; exit 4");
        daemons.start("ends", command).unwrap();
        daemons.running[0].1.wait().unwrap();
        let error = daemons.check().unwrap_err().to_string();
        assert!(
            error.contains("ends ended by itself") && error.contains("no port"),
            "{error}"
        );
    }

    #[test]
    fn history_is_copied_to_a_new_folder() {
        let folder = tempfile::tempdir().unwrap();
        let history = folder.path().join("history");
        fs::create_dir_all(history.join("cluster")).unwrap();
        fs::write(history.join("job_0001.json"), "{}").unwrap();
        fs::write(history.join("cluster/2026-11-27.jsonl.gz"), "x").unwrap();
        let recordings = folder.path().join(RECORDINGS);
        let first = new_place(&recordings, "suspend.1");
        copy(&history, &first).unwrap();
        assert_eq!(
            fs::read(first.join("cluster/2026-11-27.jsonl.gz")).unwrap(),
            b"x"
        );
        assert_eq!(
            fs::read(recordings.join("suspend.1/job_0001.json")).unwrap(),
            b"{}"
        );
        assert_eq!(
            new_place(&recordings, "suspend.1"),
            recordings.join("suspend.1-2")
        );
        let missing = copy(&folder.path().join("nowhere"), &recordings.join("x")).unwrap_err();
        assert!(missing.to_string().contains("nowhere"), "{missing}");
    }
}
