//! The command line of `nap lab`.
//!
//! Owns which experiments there are, with their help texts. What each of them is asked for is the lab's.
//! Does not own what they cause.

use clap::Subcommand;
use napreduce_lab::{
    LatencySettings, MemorySettings, PreemptSettings, SpeedSettings, StartSettings, SuiteSettings,
};

use crate::fuzz::FuzzArguments;
use crate::paper::PaperArguments;
use crate::place::{Asked, Saved};
use crate::replay::ReplayArguments;

/// An experiment.
#[derive(Debug, Subcommand)]
pub enum Experiment {
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
    /// which the low one waits no longer, is killed, suspended or checkpointed. Then Natjam's experiment: a
    /// production job comes while a research job fills a cluster. Both on a cluster of their own, which is
    /// gone afterwards; primitives take turns. Every output is compared with an undisturbed one. As root,
    /// memory-hungry tasks get a swap file and a memory limit of their own; which means were there is
    /// printed. The exit status is 1 when an output differs or a bound is not kept.
    #[command(after_help = "\
Examples:
  nap lab preempt                                       everything: more than two hours
  nap lab preempt --repetitions 1 --task-time 2s --at 50    a first look: about 5 minutes
  nap lab preempt --tasks light --ways '' --report light    two jobs, light-weight tasks
  nap lab preempt --tasks '' --scale 0.2                Natjam's ways only, at a fifth of the paper's times")]
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
