//! The commands of `nap-lab`.
//!
//! Owns turning arguments into settings, and which end of an experiment means which exit status.
//! Measuring belongs to the lab; names and defaults of the arguments are a module of their own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use napreduce_lab::{
    ClusterSettings, Interrupt, LabError, MemorySettings, PeerSettings, Resources, Session, SpeedSettings,
    StartSettings, SuiteJob, SuiteSettings, cpus,
};
use serde::Serialize;

use crate::arguments::{Conditions, Experiment, SuiteArguments};
use crate::{fuzz, load, paper, preemption, replay};

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
/// What shells add to a signal's number when it ended a program.
const BY_SIGNAL: u8 = 128;

pub fn run(experiment: &Experiment) -> ExitCode {
    let found = match experiment {
        Experiment::Paper(arguments) => {
            return paper::run(arguments).unwrap_or_else(|error| {
                eprintln!("nap lab: {error:#}");
                // 1 says that something does not hold, and an error says nothing of it.
                ExitCode::from(WRONG_USAGE)
            });
        }
        // It has nothing to clean up when it is interrupted.
        Experiment::FuzzPolicies(arguments) => fuzz::run(arguments),
        measured => measure(measured),
    };
    match found {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            eprintln!("nap lab: {error:#}");
            ExitCode::from(status(&error))
        }
    }
}

fn status(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<LabError>() {
        Some(error) => match error.signal() {
            Some(signal) => BY_SIGNAL.saturating_add(signal),
            None if error.is_usage() => WRONG_USAGE,
            None => FAILED,
        },
        None => FAILED,
    }
}

/// Whether the experiment found what it should.
fn measure(experiment: &Experiment) -> Result<bool> {
    let interrupt = Interrupt::listen().context("cannot catch signals")?;
    let session = Session::new(interrupt, |line| eprintln!("{line}"));
    match experiment {
        Experiment::Speed(arguments) => {
            let settings = SpeedSettings {
                sizes: arguments.size.clone(),
                programs: arguments.programs.clone(),
                runs: arguments.runs,
                resources: arguments.conditions.resources(),
                peers: PeerSettings { chosen: arguments.peers.clone(), python: arguments.python.clone() },
                binaries: arguments.conditions.place.binaries()?,
                work: arguments.conditions.place.work(),
            };
            let report = napreduce_lab::speed(&settings, &session)?;
            arguments.conditions.print(&report, || report.table())?;
            Ok(report.succeeded())
        }
        Experiment::Suite(arguments) => suite(arguments, &session),
        Experiment::Memory(arguments) => {
            let settings = MemorySettings {
                size: arguments.size,
                programs: arguments.programs.clone(),
                resources: arguments.conditions.resources(),
                factor: arguments.factor,
                binaries: arguments.conditions.place.binaries()?,
                work: arguments.conditions.place.work(),
            };
            let report = napreduce_lab::memory(&settings, &session)?;
            arguments.conditions.print(&report, || report.table())?;
            Ok(report.succeeded())
        }
        Experiment::Start(arguments) => {
            let settings = StartSettings {
                runs: arguments.runs,
                resources: arguments.conditions.resources(),
                binaries: arguments.conditions.place.binaries()?,
                work: arguments.conditions.place.work(),
            };
            let report = napreduce_lab::start(&settings, &session)?;
            arguments.conditions.print(&report, || report.table())?;
            Ok(true)
        }
        Experiment::Cluster(arguments) => {
            let settings = ClusterSettings {
                size: arguments.size,
                split_size: arguments.split_size,
                runs: arguments.runs,
                workers: arguments.workers,
                encrypted: arguments.encrypted,
                resources: arguments.conditions.resources(),
                binaries: arguments.conditions.place.binaries()?,
                work: arguments.conditions.place.work(),
            };
            let report = napreduce_lab::cluster(&settings, &session)?;
            arguments.conditions.print(&report, || report.table())?;
            Ok(report.succeeded())
        }
        Experiment::FuzzPolicies(arguments) => fuzz::run(arguments),
        Experiment::Paper(_) => Ok(true),
        Experiment::Preempt(arguments) => preemption::preempt(arguments, &session),
        Experiment::Latency(arguments) => preemption::latency(arguments, &session),
        Experiment::Identity(arguments) => preemption::identity(arguments, &session),
        Experiment::Load(arguments) => load::load(arguments, &session),
        Experiment::Replay(arguments) => replay::replay(arguments, &session),
    }
}

fn suite(arguments: &SuiteArguments, session: &Session) -> Result<bool> {
    let mut jobs = arguments.jobs.clone().unwrap_or_else(|| SuiteJob::ALL.to_vec());
    jobs.sort_unstable();
    jobs.dedup();
    let python = arguments.python.clone().or_else(python_of_the_path);
    let settings = SuiteSettings {
        size: arguments.size,
        jobs,
        repetitions: arguments.repetitions,
        resources: arguments.conditions.resources(),
        peers: PeerSettings { chosen: arguments.peers.clone(), python },
        binaries: arguments.conditions.place.binaries()?,
        work: arguments.conditions.place.work(),
    };
    let report = napreduce_lab::suite(&settings, session)?;
    arguments.conditions.print(&report, || report.table())?;
    Ok(report.succeeded())
}

fn python_of_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|program| program.is_file())
}

impl Conditions {
    fn resources(&self) -> Resources {
        let slots = self.slots.unwrap_or_else(|| u32::try_from(cpus()).unwrap_or(u32::MAX));
        Resources { slots, task_memory: self.task_memory }
    }

    fn print<R: Serialize>(&self, report: &R, table: impl Fn() -> String) -> Result<()> {
        self.place.print(report, table, self.json.as_deref())
    }
}
