//! `nap lab fuzz-policies`: random workloads under random policies, to find one that does not end.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, thread};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;
use napreduce_protocol::printing::{print, print_error};
use napreduce_sim::fuzz::Case;

use crate::place;

/// Look for schedulers that never end, in simulated time
///
/// Every seed draws a small cluster, jobs, a scheduler with random settings, and settings of preemption. The run must
/// end, no job may be preempted for itself, and no scheduler may stop the clock. Each run prints a line. A failed run
/// is written as two files for nap sim, whose command is printed, and the exit status is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab fuzz-policies
  nap lab fuzz-policies --runs 100 --seed 4711 --keep failing
  nap lab fuzz-policies --containers --runs 2000")]
pub struct FuzzArguments {
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,

    /// Seed of the first run; the others follow
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,

    /// Use clusters with containers instead of slots, where each job has a master
    #[arg(long)]
    pub containers: bool,

    /// Folder for the files of failed runs
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub keep: PathBuf,
}

/// Returns whether every run passed.
#[expect(clippy::disallowed_methods, reason = "the program does nothing else")]
pub fn run(arguments: &FuzzArguments) -> Result<bool> {
    let bar = place::bar(arguments.runs, "{bar:30} {pos}/{len} runs, {eta} left");
    let next = AtomicU64::new(0);
    let failed: Mutex<Vec<(Case, String)>> = Mutex::default();
    // The line of a case reports its panic.
    std::panic::set_hook(Box::new(|_| {}));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.runs {
                return;
            }
            let seed = arguments.seed.wrapping_add(number);
            let case = if arguments.containers {
                Case::draw_containers(seed)
            } else {
                Case::draw(seed)
            };
            if let Err(why) = run_case(&case, &bar) {
                failed
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .push((case, why));
            }
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    drop(std::panic::take_hook());
    bar.finish_and_clear();
    let mut failed = failed
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    failed.sort_by_key(|(case, _)| case.seed);
    for (case, why) in &failed {
        print_error(format_args!(
            "seed {} under {}: {why}\n  {}",
            case.seed,
            case.scheduler,
            keep(case, &arguments.keep)?
        ));
    }
    print(format_args!(
        "{} runs, {} failed\n",
        arguments.runs,
        failed.len()
    ));
    Ok(failed.is_empty())
}

/// Runs a case and prints its line.
fn run_case(case: &Case, bar: &ProgressBar) -> Result<(), String> {
    let result = case.run();
    let line = match &result {
        Ok(run) => {
            let preempted = run.jobs.iter().map(|job| job.preemptions);
            let preempted: u64 = preempted
                .map(|one| one.suspend + one.checkpoint + one.kill)
                .sum();
            let jobs = run.jobs.len();
            let ended = run.ended.0 as f64 / 1e6;
            format!(
                "{jobs} jobs, {} events, {preempted} preemptions, ended at {ended:.1} s",
                run.events
            )
        }
        Err(why) => format!("FAILED: {}", why.lines().next().unwrap_or_default()),
    };
    bar.suspend(|| {
        print(format_args!(
            "seed {:>8}  {:<16} {line}\n",
            case.seed,
            case.scheduler.in_words()
        ));
    });
    result.map(drop)
}

/// Writes the files of a case; returns the command that runs it again.
fn keep(case: &Case, folder: &Path) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = |what: &str| folder.join(format!("fuzz-{}.{what}.toml", case.seed));
    let workload = path("workload");
    let configuration = path("configuration");
    for (path, text) in [
        (&workload, &case.workload),
        (&configuration, &case.configuration),
    ] {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let workload = workload.display();
    let configuration = configuration.display();
    Ok(format!(
        "nap sim --workload {workload} --configuration {configuration} {}",
        case.flags()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_case_is_kept_with_its_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let case = Case::draw(3);
        let command = keep(&case, folder.path()).expect("writable");
        let read = |what: &str| {
            fs::read_to_string(folder.path().join(format!("fuzz-3.{what}.toml")))
                .expect("just written")
        };
        assert_eq!(
            (read("workload"), read("configuration")),
            (case.workload, case.configuration)
        );
        assert!(
            command.starts_with("nap sim --workload ") && command.contains(" --seed 3"),
            "{command}"
        );
    }
}
