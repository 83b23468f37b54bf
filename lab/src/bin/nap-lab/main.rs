//! `nap-lab`, which `nap lab` runs: experiments that measure napreduce on this machine. The binary is also the job
//! program, the bare sort and the guard of an experiment, when it is called so.

mod fuzz;
mod paper;
mod place;
mod replay;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use napreduce_lab::error::{is_usage, signal};
use napreduce_lab::latency::{LatencySettings, latency};
use napreduce_lab::memory::{MemorySettings, memory};
use napreduce_lab::preempt::{PreemptSettings, preempt};
use napreduce_lab::speed::{SpeedSettings, speed};
use napreduce_lab::start::{StartSettings, start};
use napreduce_lab::suite::{SuiteSettings, suite};
use napreduce_protocol::printing::{finish, print_error, printed};

use crate::fuzz::FuzzArguments;
use crate::paper::PaperArguments;
use crate::place::{Asked, Saved};
use crate::replay::ReplayArguments;

/// Measure napreduce on this machine
#[derive(Debug, Parser)]
#[command(name = "nap lab", bin_name = "nap lab", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

fn main() -> ExitCode {
    if napreduce_lab::jobs::job_program_requested() {
        return napreduce_lab::jobs::job_program(napreduce::Program::new());
    }
    if napreduce_lab::peers::bare_sort_requested() {
        return napreduce_lab::peers::bare_sort_program();
    }
    if napreduce_lab::guard::guard_requested() {
        return napreduce_lab::guard::guard_program();
    }
    let status = match Arguments::try_parse() {
        Ok(Arguments { experiment }) => run(&experiment),
        Err(refused) => {
            let result = refused.print();
            if !refused.use_stderr() {
                printed(result);
            }
            ExitCode::from(u8::try_from(refused.exit_code()).unwrap_or(1))
        }
    };
    finish("nap lab", status)
}

/// An experiment.
#[derive(Debug, Subcommand)]
enum Experiment {
    /// Compare the speed of wordcount and terasort with other programs
    ///
    /// Every contender does the same work on the same input, in turn, with a warm page cache; the whole
    /// process from start to exit is timed. Every output is checked outside the measured time. A contender
    /// that fails or is wrong is named, and the exit status is 1.
    #[command(after_help = "\
Examples:
  nap lab speed
  nap lab speed --python .venv/bin/python --json speed.json
  nap lab speed --size 1GiB,10GiB --programs terasort --peers sort --work /mnt/fast")]
    Speed(Saved<SpeedSettings>),
    /// Run the job suite, and compare it with other programs
    ///
    /// Every kind of data is made once. A first run with one slot says what is right; every further output
    /// has to be equal byte for byte, and those of DuckDB and Polars, where they have a formulation of the
    /// job, as sets of lines. All take turns, with a warm page cache; ratios are taken within a repetition. A
    /// contender that fails or is wrong is named, and the exit status is 1.
    #[command(after_help = "\
Examples:
  nap lab suite --size 64MiB
  nap lab suite --jobs wordcount,self-join --repetitions 5 --python .venv/bin/python
  nap lab suite --size 1GiB --peers duckdb --format json")]
    Suite(Saved<SuiteSettings>),
    /// Check that tasks keep to their memory budget on a large input
    ///
    /// Runs each program once, checks its output, and compares the anonymous memory of every task process
    /// with the bound. The exit status is 1 when one takes more.
    #[command(after_help = "\
Examples:
  nap lab memory
  nap lab memory --size 2GiB --task-memory 64MiB --programs terasort")]
    Memory(Saved<MemorySettings>),
    /// Measure what starting costs: a tiny job, and one more map task
    #[command(after_help = "\
Examples:
  nap lab start
  nap lab start --runs 200 --slots 1")]
    Start(Saved<StartSettings>),
    /// Compare wait, kill, suspend and checkpoint on real tasks
    ///
    /// Two jobs share one slot: the low one runs, and when it is at some per cent the high one comes, for
    /// which the low one waits no longer, is killed, suspended or checkpointed, on a cluster of their own, which
    /// is gone afterwards; primitives take turns. Every output is compared with an undisturbed one. As root,
    /// memory-hungry tasks get a swap file and a memory limit of their own; which means were there is
    /// printed. The exit status is 1 when an output differs or a bound is not kept.
    #[command(after_help = "\
Examples:
  nap lab preempt                                       everything: about two hours
  nap lab preempt --repetitions 1 --task-time 2s --at 50    a first look: about 5 minutes
  nap lab preempt --tasks light --report light          light-weight tasks")]
    Preempt(Asked<PreemptSettings>),
    /// Measure how long preempting takes
    ///
    /// One reduce with many small groups, on a cluster that does nothing else, is suspended and resumed, then
    /// checkpointed and restored, over and over. Times go from the coordinator's decision to the slot
    /// verified free (suspend, checkpoint), to the task running again (resume) and from the launch to the
    /// first new output (restore). The exit status is 1 when a bound is not kept or an output differs.
    #[command(after_help = "\
Examples:
  nap lab latency
  nap lab latency --samples 200 --format json")]
    Latency(Asked<LatencySettings>),
    Paper(PaperArguments),
    Replay(ReplayArguments),
    FuzzPolicies(FuzzArguments),
}

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
/// What shells add to a signal's number when it ended a program.
const BY_SIGNAL: u8 = 128;

fn run(experiment: &Experiment) -> ExitCode {
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
    match signal(error) {
        Some(signal) => BY_SIGNAL.saturating_add(signal),
        None if is_usage(error) => WRONG_USAGE,
        None => FAILED,
    }
}

/// Whether the experiment found what it should.
fn carry_out(experiment: &Experiment) -> Result<bool> {
    match experiment {
        Experiment::Speed(saved) => saved.run(speed),
        Experiment::Suite(saved) => saved.run(suite),
        Experiment::Memory(saved) => saved.run(memory),
        Experiment::Start(saved) => saved.run(start),
        Experiment::Preempt(asked) => asked.run(preempt),
        Experiment::Latency(asked) => asked.run(latency),
        Experiment::Replay(arguments) => replay::replay(arguments),
        // It has nothing to clean up when it is interrupted.
        Experiment::FuzzPolicies(arguments) => fuzz::run(arguments),
        Experiment::Paper(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Arguments::command().debug_assert();
    }

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
