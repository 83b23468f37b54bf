//! The commands of `nap-lab`.
//!
//! Owns turning arguments into settings, where reports go, and which end of an experiment means which exit status.
//! Measuring belongs to the lab; names and defaults of the arguments are a module of their own.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use napreduce_lab::{
    ClusterSettings, Interrupt, LabError, MemorySettings, PeerSettings, Resources, Session, SpeedSettings,
    StartSettings, WorkSettings, cpus,
};
use serde::Serialize;

use crate::arguments::{Common, Experiment, Format, binaries};
use crate::{fuzz, preemption};

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
/// What shells add to a signal's number when it ended a program.
const BY_SIGNAL: u8 = 128;

/// Runs the experiment that was asked for.
pub fn run(experiment: &Experiment) -> ExitCode {
    let found = match experiment {
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
                resources: resources(&arguments.common),
                peers: PeerSettings { chosen: arguments.peers.clone(), python: arguments.python.clone() },
                binaries: binaries(arguments.common.bin_dir.as_deref())?,
                work: work(&arguments.common),
            };
            let report = napreduce_lab::speed(&settings, &session)?;
            print(&arguments.common, &report, || report.table())?;
            Ok(report.succeeded())
        }
        Experiment::Memory(arguments) => {
            let settings = MemorySettings {
                size: arguments.size,
                programs: arguments.programs.clone(),
                resources: resources(&arguments.common),
                factor: arguments.factor,
                binaries: binaries(arguments.common.bin_dir.as_deref())?,
                work: work(&arguments.common),
            };
            let report = napreduce_lab::memory(&settings, &session)?;
            print(&arguments.common, &report, || report.table())?;
            Ok(report.succeeded())
        }
        Experiment::Start(arguments) => {
            let settings = StartSettings {
                runs: arguments.runs,
                resources: resources(&arguments.common),
                binaries: binaries(arguments.common.bin_dir.as_deref())?,
                work: work(&arguments.common),
            };
            let report = napreduce_lab::start(&settings, &session)?;
            print(&arguments.common, &report, || report.table())?;
            Ok(true)
        }
        Experiment::Cluster(arguments) => {
            let settings = ClusterSettings {
                size: arguments.size,
                split_size: arguments.split_size,
                runs: arguments.runs,
                workers: arguments.workers,
                encrypted: arguments.encrypted,
                resources: resources(&arguments.common),
                binaries: binaries(arguments.common.bin_dir.as_deref())?,
                work: work(&arguments.common),
            };
            let report = napreduce_lab::cluster(&settings, &session)?;
            print(&arguments.common, &report, || report.table())?;
            Ok(report.succeeded())
        }
        Experiment::FuzzPolicies(arguments) => fuzz::run(arguments),
        Experiment::Preempt(arguments) => preemption::preempt(arguments, &session),
        Experiment::Latency(arguments) => preemption::latency(arguments, &session),
        Experiment::Identity(arguments) => preemption::identity(arguments, &session),
    }
}

fn resources(common: &Common) -> Resources {
    let slots = common.slots.unwrap_or_else(|| u32::try_from(cpus()).unwrap_or(u32::MAX));
    Resources { slots, task_memory: common.task_memory }
}

fn work(common: &Common) -> WorkSettings {
    WorkSettings { parent: common.work.clone(), keep: common.keep }
}

/// Prints the report to standard output and, if asked for, writes it to a file as JSON. Neither is left out because the
/// other fails: the figures may have taken an hour.
fn print<R: Serialize>(common: &Common, report: &R, table: impl Fn() -> String) -> Result<()> {
    let json = serde_json::to_string_pretty(report).context("cannot write the report as JSON")? + "\n";
    let written = match &common.json {
        Some(path) => fs::write(path, &json).with_context(|| format!("cannot write {}", path.display())),
        None => Ok(()),
    };
    let text = match common.format {
        Format::Table => table(),
        Format::Json => json,
    };
    io::stdout().write_all(text.as_bytes()).context("cannot print the report")?;
    written
}
