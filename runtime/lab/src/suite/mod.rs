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

use contender::{Reference, Work, formulates};
use data::{SuiteInput, SuiteInputs};
pub use jobs::SuiteJob;
use napreduce_live::ByteSize;
pub use report::{SuiteConditions, SuiteContender, SuiteJobReport, SuiteReport};

use crate::error::LabError;
use crate::input;
use crate::job_result::first_job_counters;
use crate::machine::Machine;
use crate::peers::{self, InstalledPeer, PeerError, PeerSettings};
use crate::program::Resources;
use crate::session::Session;
use crate::workspace::{WorkFolder, WorkSettings, remove};

/// Room for data of each kind, intermediate files and outputs, for each byte of size: sequences alone take
/// twice their text.
const ROOM_PER_BYTE: u64 = 12;

#[derive(Clone, Debug)]
pub struct SuiteSettings {
    /// About how much of each kind of data there is.
    pub size: ByteSize,
    pub jobs: Vec<SuiteJob>,
    /// Measured runs of each contender; one run with one slot says before what is right.
    pub repetitions: u32,
    pub resources: Resources,
    pub peers: PeerSettings,
    pub binaries: PathBuf,
    pub work: WorkSettings,
}

/// Runs the suite.
///
/// # Errors
///
/// When binaries or peers are missing, when data cannot be made, when a first run fails, and on an interrupt.
/// A contender that fails later or gives a wrong output is part of the report and no error here.
pub fn suite(settings: &SuiteSettings, session: &Session) -> Result<SuiteReport, LabError> {
    let binaries = settings
        .jobs
        .iter()
        .map(|job| Ok((*job, job.binary(&settings.binaries)?)))
        .collect::<Result<Vec<_>, LabError>>()?;
    if let Some(&peer) = settings
        .peers
        .chosen
        .iter()
        .flatten()
        .find(|peer| !SuiteJob::ALL.iter().any(|job| formulates(**peer, *job)))
    {
        return Err(PeerError::NoFormulation { peer }.into());
    }
    let room = ByteSize::new(settings.size.bytes().saturating_mul(ROOM_PER_BYTE));
    let folder = WorkFolder::make(&settings.work, room)?;
    if settings.work.keep {
        session.say(format!("keeping everything in {}", folder.path().display()));
    }
    let found = peers::find(&settings.peers, folder.path(), &session.interrupt)?;
    found.remarks.iter().filter(|remark| !remark.starts_with("sort")).for_each(|remark| session.say(remark));
    let make = (settings.binaries.as_path(), settings.resources);
    let inputs = SuiteInputs::make(&settings.jobs, settings.size, make, &folder, session)?;
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
        let output = ByteSize::new(self.reference.lines.bytes());
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
        let work = Work { job, binary, input, centroids, resources: one, reduces: slots };
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
            if !self.settings.work.keep {
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
