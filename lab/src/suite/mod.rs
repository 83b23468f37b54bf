//! Owns the suite as an experiment: every job by our program and by the peers that can say it, in turn,
//! repetition after repetition, on data that are made once. An output that differs takes its contender out
//! and is named. Jobs, data and the report are modules of their own.

mod contender;
mod data;
mod jobs;
mod lines;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use contender::{Reference, Work, formulates};
use data::{SuiteInput, SuiteInputs};
pub use jobs::SuiteJob;
use napreduce_live::{ByteSize, parse_time};
pub use report::{SuiteConditions, SuiteContender, SuiteJobReport, SuiteReport};

use crate::error::LabError;
use crate::input;
use crate::job_result::first_job_counters;
use crate::machine::Machine;
use crate::peers::{self, InstalledPeer, PeerError, PeerTool};
use crate::program::Resources;
use crate::session::Session;
use crate::workspace::{WorkFolder, remove};

/// Room for data of each kind, intermediate files and outputs, for each byte of size: sequences alone take
/// twice their text.
const ROOM_PER_BYTE: u64 = 12;

#[derive(Clone, Debug, Args)]
pub struct SuiteSettings {
    /// About how much of each kind of data
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub size: ByteSize,
    /// Jobs [default: all thirteen]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub jobs: Option<Vec<SuiteJob>>,
    /// Measured runs of each contender
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Exactly these peers: duckdb, polars [default: those that are found]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub peers: Option<Vec<PeerTool>>,
    /// A Python that has DuckDB or Polars installed [default: python3, if there is one]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// A contender that takes longer for one job is ended, and named
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_time)]
    pub time_max: Duration,
    #[command(flatten)]
    pub resources: Resources,
}

/// Runs the suite.
///
/// # Errors
///
/// When binaries or peers are missing, when data cannot be made, when a first run fails, and on an interrupt.
/// A contender that fails later or gives a wrong output is part of the report and no error here.
pub fn suite(settings: &SuiteSettings, session: &Session) -> Result<SuiteReport, LabError> {
    let mut jobs = settings.jobs.clone().unwrap_or_else(|| SuiteJob::ALL.to_vec());
    jobs.sort_unstable();
    jobs.dedup();
    let binaries = jobs
        .iter()
        .map(|job| Ok((*job, job.binary(&session.binaries)?)))
        .collect::<Result<Vec<_>, LabError>>()?;
    if let Some(&peer) =
        settings.peers.iter().flatten().find(|peer| !SuiteJob::ALL.iter().any(|job| formulates(**peer, *job)))
    {
        return Err(PeerError::NoFormulation { peer }.into());
    }
    let room = ByteSize::new(settings.size.bytes().saturating_mul(ROOM_PER_BYTE));
    let folder = WorkFolder::make(&session.work, room)?;
    if session.work.keep {
        session.say(format!("keeping everything in {}", folder.path().display()));
    }
    let python = settings.python.clone().or_else(python_of_the_path);
    let wanted = (settings.peers.as_deref(), python.as_deref());
    let found = peers::find(wanted, folder.path(), &session.interrupt)?;
    found.remarks.iter().filter(|remark| !remark.starts_with("sort")).for_each(|remark| session.say(remark));
    let inputs = SuiteInputs::make(&jobs, settings.size, settings.resources, &folder, session)?;
    let run = Run { settings, session, folder: &folder };
    let mut bouts = Vec::new();
    for (job, binary) in &binaries {
        if let Some(input) = inputs.of(*job) {
            bouts.push(run.first(*job, binary, (input, &inputs.centroids), &found.installed)?);
        }
    }
    for repetition in 1..=settings.repetitions {
        for bout in &mut bouts {
            run.repeat(bout, repetition)?;
        }
    }
    Ok(SuiteReport {
        experiment: "suite",
        machine: Machine::describe(),
        conditions: SuiteConditions {
            size: settings.size,
            repetitions: settings.repetitions,
            resources: settings.resources,
        },
        jobs: bouts.into_iter().map(Bout::report).collect(),
    })
}

fn python_of_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|program| program.is_file())
}

/// One job with those who do it.
struct Bout<'a> {
    work: Work<'a>,
    reference: Reference,
    counters: BTreeMap<String, u64>,
    /// We first.
    contenders: Vec<Contender<'a>>,
}

struct Contender<'a> {
    /// `None` is our program.
    peer: Option<&'a InstalledPeer>,
    /// Seconds of each repetition so far.
    seconds: Vec<f64>,
    failure: Option<String>,
}

impl Bout<'_> {
    fn report(self) -> SuiteJobReport {
        let ours: Vec<f64> = self.contenders.first().map_or_else(Vec::new, |ours| ours.seconds.clone());
        let contenders = self.contenders.into_iter().map(|contender| {
            let (name, version) = match contender.peer {
                Some(peer) => (peer.peer.in_words(), peer.version.clone()),
                None => ("napreduce", format!("napreduce {}", env!("CARGO_PKG_VERSION"))),
            };
            SuiteContender::new(name, version, contender.seconds, contender.failure, &ours)
        });
        let contenders = contenders.collect();
        let output = ByteSize::new(self.reference.lines.bytes);
        SuiteJobReport::new(self.work.job, (self.work.input.bytes, output), &self.counters, contenders)
    }
}

struct Run<'a> {
    settings: &'a SuiteSettings,
    session: &'a Session,
    folder: &'a WorkFolder,
}

impl<'a> Run<'a> {
    /// Says what is right: one slot, and undisturbed.
    fn first(
        &self,
        job: SuiteJob,
        binary: &'a Path,
        (input, centroids): (&'a SuiteInput, &'a Path),
        installed: &'a [InstalledPeer],
    ) -> Result<Bout<'a>, LabError> {
        let Resources { slots, task_memory } = self.settings.resources;
        let one = Resources { slots: 1, task_memory };
        let time_max = self.settings.time_max;
        let work = Work { job, binary, input, centroids, resources: one, reduces: slots, time_max };
        let folder = self.folder.fresh("run")?;
        let seconds = work.run(&folder, &self.session.interrupt)?;
        self.session.say(format!("{job} with one slot: {seconds:.3} s"));
        let reference = Reference::read(&folder.join("out"))?;
        let counters = first_job_counters(&folder.join(format!("{job}.out")))?;
        let peers = installed.iter().filter(|found| formulates(found.peer, job)).map(Some);
        let contenders = std::iter::once(None).chain(peers);
        Ok(Bout {
            work: Work { resources: self.settings.resources, ..work },
            reference,
            counters,
            contenders: contenders
                .map(|peer| Contender { peer, seconds: Vec::new(), failure: None })
                .collect(),
        })
    }

    /// One run of everyone who is still in.
    fn repeat(&self, bout: &mut Bout<'_>, repetition: u32) -> Result<(), LabError> {
        let Bout { work, reference, contenders, .. } = bout;
        for contender in contenders.iter_mut().filter(|contender| contender.failure.is_none()) {
            let folder = self.folder.fresh("run")?;
            input::warm(&work.input.folder, &self.session.interrupt)?;
            self.folder.settle()?;
            let interrupt = &self.session.interrupt;
            let outcome = match contender.peer {
                Some(peer) => work
                    .run_peer(peer, &folder, interrupt)
                    .and_then(|seconds| Ok((seconds, work.judge_peer(&folder, reference)?))),
                None => work
                    .run(&folder, interrupt)
                    .and_then(|seconds| Ok((seconds, work.judge(&folder, reference)?))),
            };
            // An interrupt ends the experiment; it is no failure of whoever was running.
            interrupt.check()?;
            let line = match outcome {
                Ok((seconds, None)) => {
                    contender.seconds.push(seconds);
                    format!("{seconds:.3} s, output right")
                }
                Ok((_, Some(wrong))) => contender.drop_out(wrong),
                Err(error) => contender.drop_out(error.to_string()),
            };
            let name = contender.peer.map_or("napreduce", |peer: &InstalledPeer| peer.peer.in_words());
            let of = self.settings.repetitions;
            self.session.say(format!("{} {repetition}/{of} {name}: {line}", work.job));
            if !self.session.work.keep {
                remove(&folder)?;
            }
        }
        Ok(())
    }
}

impl Contender<'_> {
    fn drop_out(&mut self, failure: String) -> String {
        let line = format!("out: {failure}");
        self.failure = Some(failure);
        line
    }
}
