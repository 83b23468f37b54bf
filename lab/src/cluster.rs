//! A cluster of an experiment's own: a coordinator and its workers as daemons, a client, and jobs of the lab's
//! program that are submitted and followed. All experiments that preempt real tasks run on one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use napreduce_engine::{JobId, Slots};
use napreduce_live::{ClusterClient, ClusterDirectory, ClusterPlace, Patience};
use napreduce_protocol::requests::{GetJob, ListTasks, ListWorkers};
use napreduce_protocol::{ByteSize, JobDetail, JobPhase, JobSummary, TaskSummary, WorkerPhase};
use rustix::process::{Pid, Signal, kill_process};

use crate::confinement::Confinement;
use crate::error::{cannot, usage};
use crate::guard::{Charge, Guard};
use crate::jobs::{JOB_PROGRAM, PARENT_VARIABLE, Work, own_binary};
use crate::process::{CommandLine, last_words, run_and_read, spawn};
use crate::session::Session;
use crate::workspace::{WorkFolder, WorkSettings, write};

/// How long workers may take to come up.
const UP_MAX: Duration = Duration::from_secs(60);
/// How long daemons may take to end; longer than they give their own tasks.
const END_MAX: Duration = Duration::from_secs(40);
/// Between two looks at a job, a task or a daemon.
const LOOK: Duration = Duration::from_millis(5);
/// Below the folder of a report, a folder for each of its clusters.
pub const RECORDINGS: &str = "recordings";

pub fn nap(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("nap");
    if path.is_file() {
        return Ok(path);
    }
    Err(usage(format_args!(
        "no nap binary at {}; build it with `cargo build --release`, or name the folder that holds it with --bin-dir",
        path.display()
    )))
}

/// The folder of an experiment, and a guard that removes it at the end unless it is to be left in place.
pub fn guarded_folder(settings: &WorkSettings, wanted: ByteSize) -> Result<(WorkFolder, Guard)> {
    let work = WorkFolder::make(settings, wanted)?;
    let mut guard = Guard::start()?;
    if !settings.keep {
        guard.take(&Charge::Folder(work.path().to_owned()))?;
    }
    Ok((work, guard))
}

/// A job of the lab's program, with one map and one reduce at most.
#[derive(Clone, Debug)]
pub struct JobOrder {
    pub name: String,
    pub work: Work,
    pub input: PathBuf,
    pub output: PathBuf,
    /// Memory of a task for records.
    pub task_memory: ByteSize,
}

impl JobOrder {
    /// The command that submits it, prints its id and ends.
    fn command(&self, program: &Path, cluster: &Path) -> CommandLine {
        let Work { job, rounds, fill, seed } = &self.work;
        CommandLine::new(program)
            .called(JOB_PROGRAM)
            .env(PARENT_VARIABLE, std::process::id().to_string())
            .arg(&self.input)
            .flag("--output", &self.output)
            .flag("--cluster", cluster)
            .arg("--quiet")
            .flag("--name", &self.name)
            .flag("--reduces", "1")
            .flag("--split-size", "1TiB")
            .flag("--conf", "combine-files=false")
            .flag("--task-memory", self.task_memory.to_string())
            .flag("--job", job)
            .flag("--rounds", rounds.to_string())
            .flag("--fill", fill.to_string())
            .flag("--seed", seed.to_string())
            .arg("--detach")
    }
}

#[derive(Debug)]
pub struct Layout<'a> {
    /// The slots of each worker.
    pub workers: Vec<Slots>,
    pub heartbeat: Duration,
    /// The text of its configuration file.
    pub configuration: String,
    /// What the workers may use.
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
    /// Starts a cluster in `folder`, which exists and is empty, with the binary `nap`.
    pub fn start(
        folder: &Path,
        nap: &Path,
        layout: &Layout<'_>,
        session: &'s Session,
    ) -> Result<Cluster<'s>> {
        let directory = folder.join("cluster");
        ClusterDirectory::resolve(Some(directory.clone()))?.create()?;
        write(&directory.join("napreduce.toml"), &layout.configuration)?;
        let mut daemons = Daemons { folder: folder.to_owned(), running: Vec::new() };
        let heartbeat = format!("{}us", layout.heartbeat.as_micros());
        let daemon = |command: &str| CommandLine::new(nap).arg(command).flag("--dir", &directory);
        daemons.start("coordinator", daemon("coordinator").flag("--heartbeat", heartbeat))?;
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
        // What a daemon has to say explains a failure better.
        daemons.check()?;
        Ok(Cluster { session, folder: folder.to_owned(), daemons, client: client? })
    }

    fn directory(&self) -> PathBuf {
        self.folder.join("cluster")
    }

    pub fn client(&self) -> Result<ClusterClient> {
        let place = ClusterPlace::Directory(ClusterDirectory::resolve(Some(self.directory()))?);
        Ok(ClusterClient::connect(place, Patience::default())?)
    }

    pub fn submit(&mut self, order: &JobOrder) -> Result<JobId> {
        let command = order.command(&own_binary(), &self.directory());
        let printed = run_and_read(&command, &self.folder, &self.session.interrupt)?;
        match printed.trim().strip_prefix("job_").and_then(|number| number.parse().ok()) {
            Some(number) => Ok(JobId(number)),
            None => bail!("a job was submitted and its program printed {printed:?}, which is no id of a job"),
        }
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

    /// Looks again and again until `found` returns something.
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
                bail!("{job} is not where it should be after {limit:?}: {waited_for}");
            }
            thread::sleep(LOOK);
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
            bail!("{name} did not end within {END_MAX:?} and was killed{}", self.daemons.last_words(&name));
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
        JobPhase::Active | JobPhase::Suspended | JobPhase::Stopping => Ok(false),
        phase => {
            let reason = job.reason.as_deref().unwrap_or_default();
            bail!("{} ({}) {}: {reason}", job.job, job.name, phase.in_words())
        }
    }
}

/// Seconds of a job from its submission to its end.
pub fn seconds(detail: &JobDetail) -> f64 {
    let JobSummary { submitted_millis, ended_millis, .. } = detail.summary;
    ended_millis.unwrap_or(submitted_millis).saturating_sub(submitted_millis) as f64 / 1e3
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
            up = workers.iter().filter(|worker| worker.state == WorkerPhase::Up).count();
            if up >= wanted {
                return Ok(connected);
            }
            client = Some(connected);
        } else {
            let patience = Patience { first: LOOK * 20, tell: false, ..Patience::default() };
            match ClusterClient::connect(ClusterPlace::Directory(directory.clone()), patience) {
                Err(error) if is_late => return Err(error.into()),
                connected => client = connected.ok(),
            }
        }
        daemons.check()?;
        session.interrupt.check()?;
        if is_late {
            bail!("of {wanted} workers {up} were up after {UP_MAX:?}");
        }
        thread::sleep(LOOK);
    }
}

/// Daemons that end when this is dropped. They end politely, so that they end what they started; only one that
/// does not is killed.
#[derive(Debug)]
struct Daemons {
    /// What they print goes to files in it.
    folder: PathBuf,
    running: Vec<(String, Child)>,
}

impl Daemons {
    fn start(&mut self, name: &str, command: CommandLine) -> Result<Pid> {
        // A worker that is ended would save what it runs, and wait for a coordinator that is gone, too. The
        // kernel ends it with this process, whatever ends that.
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
                // It has not been waited for, so the number is still its own; it may have ended by now.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
        }
        let until = Instant::now() + END_MAX;
        while self.running.iter_mut().any(|(_, child)| is_running(child)) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        let mut killed = None;
        for (name, mut child) in self.running.drain(..) {
            if is_running(&mut child) {
                // Errors mean that it is gone.
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
        // Who wants to know of one that was killed has called `stop`.
        let _ = self.end();
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(cannot("make", to))?;
    for entry in fs::read_dir(from).map_err(cannot("read", from))? {
        let entry = entry.map_err(cannot("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(cannot("copy", &source))?;
        }
    }
    Ok(())
}

/// A folder of this name that does not exist yet; a name that does gets a number.
pub fn new_place(recordings: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut places = std::iter::once(name.to_owned()).chain(numbered).map(|name| recordings.join(name));
    places.find(|place| !place.exists()).unwrap_or_else(|| recordings.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_job_says_everything() {
        let order = JobOrder {
            name: "high-1".to_owned(),
            work: Work { job: "steps".to_owned(), rounds: 5, fill: 7, seed: 8 },
            input: "in".into(),
            output: "out".into(),
            task_memory: ByteSize::new(64 << 20),
        };
        let typed = order.command("bin/nap".as_ref(), "dir".as_ref()).typed();
        let expected = "bin/nap in --output out --cluster dir --quiet --name high-1 --reduces 1 \
                        --split-size 1TiB --conf combine-files=false --task-memory 64MiB --job steps --rounds 5 --fill 7 --seed 8 \
                        --detach)";
        assert!(typed.ends_with(expected), "{typed}");
    }

    #[test]
    fn a_missing_nap_says_how_to_build_it() {
        let error = nap(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/nap") && error.contains("cargo build --release"), "{error}");
    }

    #[test]
    fn a_daemon_that_ends_early_is_named_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemons = Daemons { folder: folder.path().to_owned(), running: Vec::new() };
        let command = CommandLine::new("/bin/sh").flag("-c", "echo no port >&2; exit 4");
        daemons.start("ends", command).unwrap();
        daemons.running[0].1.wait().unwrap();
        let error = daemons.check().unwrap_err().to_string();
        assert!(error.contains("ends ended by itself") && error.contains("no port"), "{error}");
    }

    #[test]
    fn a_history_is_copied_with_what_is_in_it_and_never_over_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let history = folder.path().join("history");
        fs::create_dir_all(history.join("cluster")).unwrap();
        fs::write(history.join("job_0001.json"), "{}").unwrap();
        fs::write(history.join("cluster/2026-11-27.jsonl.gz"), "x").unwrap();
        let recordings = folder.path().join(RECORDINGS);
        let first = new_place(&recordings, "suspend.1");
        copy(&history, &first).unwrap();
        assert_eq!(fs::read(first.join("cluster/2026-11-27.jsonl.gz")).unwrap(), b"x");
        assert_eq!(fs::read(recordings.join("suspend.1/job_0001.json")).unwrap(), b"{}");
        assert_eq!(new_place(&recordings, "suspend.1"), recordings.join("suspend.1-2"));
        let missing = copy(&folder.path().join("nowhere"), &recordings.join("x")).unwrap_err();
        assert!(missing.to_string().contains("nowhere"), "{missing}");
    }
}
