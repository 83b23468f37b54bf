//! Owns the lab's own job program: work of a known length in small steps, run by any
//! worker. It is the binary of whoever links the lab, called by another name; what is done with the
//! jobs belongs to the experiments.

mod ballast;
mod pace;
mod replayed;
mod steps;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use napreduce::program::Error;
use napreduce::{Driver, Program};
use napreduce_live::printing::print_error;
use napreduce_live::task_process_requested;
pub use replayed::{
    RECORD_BYTES, RECORDS, REPLAYED, REPLAYED_MAPS, ReplayedTask, ReplayedTasks, TaskBody, records,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
pub use steps::{lines, rounds_per_second};

/// The name that makes a program the job program.
pub const JOB_PROGRAM: &str = "nap-lab-jobs";

/// Holds the number of the process that a daemon or a submitter ends with.
pub const PARENT_VARIABLE: &str = "NAPREDUCE_UP_PROCESS";

/// What a job of the lab does; every job takes from it what it needs.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct Work {
    /// Which job
    #[arg(long)]
    pub job: String,

    /// Rounds of arithmetic in one step
    #[arg(long, default_value_t = 0)]
    pub rounds: u64,

    /// Microseconds of sleep in one step
    #[arg(long, default_value_t = 0)]
    pub pause: u64,

    /// MiB of memory that is filled before the first step and read back after the last
    #[arg(long, default_value_t = 0)]
    pub fill: u64,

    /// What the memory is filled with
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Whether this process is to be the job program: by its name, or as a task of one of its jobs.
pub fn job_program_requested() -> bool {
    task_process_requested() || called(JOB_PROGRAM)
}

/// The binary of this process, which becomes the job program or a guard when it is called so.
pub(crate) fn own_binary() -> PathBuf {
    // Without /proc nothing of this would run.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Whether this process was called by `name`.
pub(crate) fn called(name: &str) -> bool {
    let own = std::env::args_os().next().unwrap_or_default();
    Path::new(&own).file_name() == Some(OsStr::new(name))
}

/// The main function of the job program, which may have other jobs as well.
pub fn job_program(program: Program) -> ExitCode {
    if !task_process_requested() && !ends_with_parent() {
        print_error(format_args!("{JOB_PROGRAM}: the experiment that started this has ended"));
        return ExitCode::FAILURE;
    }
    let program = program
        .about("Jobs of nap lab")
        .job("steps", steps::by_map)
        .job("steps-of-reduces", steps::by_reduces);
    replayed::add_to(program).drive(drive)
}

fn drive(driver: &mut Driver<'_>, work: &Work) -> Result<(), Error> {
    driver.job(&work.job).parameters(work).run().map(drop)
}

/// Has the kernel end this process when the experiment that started it ends; false when that has happened
/// already.
fn ends_with_parent() -> bool {
    let Some(parent) = std::env::var_os(PARENT_VARIABLE) else { return true };
    let parent = parent.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    // A kernel that refuses leaves a submitter that ends by itself, later.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    parent.is_some() && getppid() == parent
}
