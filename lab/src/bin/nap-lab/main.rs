//! `nap-lab`, which `nap lab` runs: experiments that measure napreduce on this machine. Started under another name, the
//! binary is the bare sort or the guard of an experiment; started by a worker, it is a task.

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
use napreduce_task::task_process_requested;

use crate::fuzz::FuzzArguments;
use crate::paper::PaperArguments;
use crate::place::ExperimentArguments;
use crate::replay::ReplayArguments;

/// Measure napreduce on this machine
#[derive(Debug, Parser)]
#[command(
    name = "nap lab",
    bin_name = "nap lab",
    version,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

fn main() -> ExitCode {
    if task_process_requested() {
        return napreduce_lab::jobs::job_program();
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
    Speed(ExperimentArguments<SpeedSettings>),
    /// Run the job suite, and compare it with other programs
    ///
    /// Every kind of data is made once. A first run with one slot is the reference: further outputs must equal it
    /// byte for byte, and those of DuckDB and Polars, where they have a formulation of the job, as sets of lines.
    /// Contenders take turns, with a warm page cache; ratios are taken within a repetition. A contender that fails
    /// or is wrong is named, and the exit status is 1.
    #[command(after_help = "\
Examples:
  nap lab suite --size 64MiB
  nap lab suite --jobs wordcount,self-join --repetitions 5 --python .venv/bin/python
  nap lab suite --size 1GiB --peers duckdb --format json")]
    Suite(ExperimentArguments<SuiteSettings>),
    /// Check that tasks keep to their memory budget on a large input
    ///
    /// Runs each program once, checks its output, and compares the anonymous memory of every task process
    /// with the bound. The exit status is 1 when one takes more.
    #[command(after_help = "\
Examples:
  nap lab memory
  nap lab memory --size 2GiB --task-memory 64MiB --programs terasort")]
    Memory(ExperimentArguments<MemorySettings>),
    /// Measure the cost of starting: a tiny job, and one more map task
    #[command(after_help = "\
Examples:
  nap lab start
  nap lab start --runs 200 --slots 1")]
    Start(ExperimentArguments<StartSettings>),
    /// Compare wait, kill, suspend and checkpoint on real tasks
    ///
    /// Two jobs share one slot on a temporary cluster. At a given progress of the low job, the high one is
    /// submitted, and the low one continues or is killed, suspended or checkpointed; primitives take turns. Every output
    /// is compared with that of an undisturbed job. As root, memory-hungry tasks get their own swap file and memory
    /// limit; the available means are printed. The exit status is 1 when an output differs or a bound is
    /// not kept.
    #[command(after_help = "\
Examples:
  nap lab preempt                                       everything: about two hours
  nap lab preempt --repetitions 1 --task-time 2s --at 50    a first look: about 5 minutes
  nap lab preempt --tasks light --report light          light-weight tasks")]
    Preempt(ExperimentArguments<PreemptSettings>),
    /// Measure the latency of preemption
    ///
    /// One reduce with many small groups, on an otherwise idle cluster, is repeatedly suspended and resumed, then
    /// checkpointed and restored. Times are from the coordinator's decision to the slot verified free (suspend,
    /// checkpoint), to the task running again (resume), and from the launch to the first new output (restore). The
    /// exit status is 1 when a bound is not kept or an output differs.
    #[command(after_help = "\
Examples:
  nap lab latency
  nap lab latency --samples 200 --format json")]
    Latency(ExperimentArguments<LatencySettings>),
    Paper(PaperArguments),
    Replay(ReplayArguments),
    FuzzPolicies(FuzzArguments),
}

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
/// Shells report a signal as this plus its number.
const BY_SIGNAL: u8 = 128;

fn run(experiment: &Experiment) -> ExitCode {
    if let Experiment::Paper(arguments) = experiment {
        return paper::run(arguments).unwrap_or_else(|error| {
            print_error(format_args!("nap lab: {}", in_words(&error)));
            // Status 1 means that a claim does not hold.
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

/// An error with those of its causes that its own text does not end with.
fn in_words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn status(error: &anyhow::Error) -> u8 {
    match signal(error) {
        Some(signal) => BY_SIGNAL.saturating_add(signal),
        None if is_usage(error) => WRONG_USAGE,
        None => FAILED,
    }
}

/// Whether the experiment succeeded.
fn carry_out(experiment: &Experiment) -> Result<bool> {
    match experiment {
        Experiment::Speed(asked) => asked.run(speed),
        Experiment::Suite(asked) => asked.run(suite),
        Experiment::Memory(asked) => asked.run(memory),
        Experiment::Start(asked) => asked.run(start),
        Experiment::Preempt(asked) => asked.run(preempt),
        Experiment::Latency(asked) => asked.run(latency),
        Experiment::Replay(arguments) => replay::replay(arguments),
        // An interrupt may end it at once: it has nothing to clean up.
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
    fn command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read a: {0}")]
    struct Unread(#[source] io::Error);

    #[test]
    fn causes_are_not_repeated() {
        let gone = || io::Error::other("it is gone");
        assert_eq!(
            in_words(&Unread(gone()).into()),
            "cannot read a: it is gone"
        );
        let context = anyhow::Error::from(gone()).context("cannot make b");
        assert_eq!(in_words(&context), "cannot make b: it is gone");
    }
}
