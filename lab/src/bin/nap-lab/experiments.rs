//! The commands of `nap-lab`.
//!
//! Owns which end of an experiment means which exit status. Measuring belongs to the lab; the command line is
//! a module of its own.

use std::process::ExitCode;

use anyhow::Result;
use napreduce_lab::{
    LabError, LatencyReport, MemoryReport, PreemptReport, SpeedReport, StartReport, SuiteReport, latency,
    memory, preempt, speed, start, suite,
};
use napreduce_live::printing::print_error;

use crate::arguments::Experiment;
use crate::place::Saved;
use crate::{fuzz, paper, replay};

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
/// What shells add to a signal's number when it ended a program.
const BY_SIGNAL: u8 = 128;

pub fn run(experiment: &Experiment) -> ExitCode {
    if let Experiment::Paper(arguments) = experiment {
        return paper::run(arguments).unwrap_or_else(|error| {
            print_error(format_args!("nap lab: {}", in_words(&error)));
            // 1 says that something does not hold, and an error says nothing of it.
            ExitCode::from(WRONG_USAGE)
        });
    }
    match carry_out(experiment) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            print_error(format_args!("nap lab: {}", in_words(&error)));
            ExitCode::from(status(&error))
        }
    }
}

/// An error with its causes; most of ours say theirs themselves.
fn in_words(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.ends_with(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
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
fn carry_out(experiment: &Experiment) -> Result<bool> {
    match experiment {
        Experiment::Speed(Saved { asked, json }) => {
            asked.run(json, speed, SpeedReport::table, SpeedReport::succeeded)
        }
        Experiment::Suite(Saved { asked, json }) => {
            asked.run(json, suite, SuiteReport::table, SuiteReport::succeeded)
        }
        Experiment::Memory(Saved { asked, json }) => {
            asked.run(json, memory, MemoryReport::table, MemoryReport::succeeded)
        }
        Experiment::Start(Saved { asked, json }) => asked.run(json, start, StartReport::table, |_| true),
        Experiment::Preempt(asked) => {
            asked.run(&None, preempt, PreemptReport::table, PreemptReport::succeeded)
        }
        Experiment::Latency(asked) => {
            asked.run(&None, latency, LatencyReport::table, LatencyReport::succeeded)
        }
        Experiment::Replay(arguments) => replay::replay(arguments),
        // It has nothing to clean up when it is interrupted.
        Experiment::FuzzPolicies(arguments) => fuzz::run(arguments),
        Experiment::Paper(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read a: {0}")]
    struct Unread(#[source] io::Error);

    #[test]
    fn a_cause_is_said_once() {
        let gone = || io::Error::other("it is gone");
        assert_eq!(in_words(&Unread(gone()).into()), "cannot read a: it is gone");
        let context = anyhow::Error::from(gone()).context("cannot make b");
        assert_eq!(in_words(&context), "cannot make b: it is gone");
    }
}
