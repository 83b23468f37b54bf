//! Chaos tests. Jobs run on a real cluster while faults are injected: tasks, workers, the coordinator and
//! connections are killed, stopped, cut and delayed, tasks are suspended and checkpointed, disks fill up, and
//! outputs become unreachable. Each run is determined by its seed, injects every kind of fault, and compares
//! the outputs with an undisturbed run. `workload` runs the jobs, `daemons` the cluster, and `faults`,
//! `preemptions`, `reachability` and `storage_faults` contain the faults.
//!
//! ```text
//! cargo test -p napreduce-tests --test chaos -- --runs 100 --seed 7
//! cargo test -p napreduce-tests --test chaos -- --hours 8
//! ```

mod daemons;
mod faults;
mod mounts;
mod preemptions;
mod processes;
mod proxy;
mod reachability;
mod storage_faults;
mod workload;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use daemons::Daemons;
use faults::{Fault, Injected};
use napreduce_tests::Folder;
use workload::{Reference, Workload};

/// Give up on a fault if there was nothing to inject it into for this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Inject faults into a cluster and compare outputs
#[derive(Debug, Parser)]
struct Arguments {
    /// How many runs, each with the next seed
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run after run for so many hours instead, until one fails
    #[arg(long, value_name = "N", conflicts_with = "runs", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    hours: Option<u64>,
    /// How often each kind of fault happens in a run
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Filters of a test runner; ignored
    #[arg(hide = true)]
    filter: Vec<String>,
    /// As above
    #[arg(long, short, hide = true)]
    quiet: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    mounts::enter();
    let folder = Folder::new();
    let reference = Reference::make(&folder);
    let started = Instant::now();
    let goes_on = |seed: u64| match arguments.hours {
        Some(hours) => started.elapsed() < Duration::from_secs(hours * 3600),
        None => seed < arguments.seed.saturating_add(arguments.runs),
    };
    for seed in (arguments.seed..).take_while(|seed| goes_on(*seed)) {
        println!("chaos with seed {seed}");
        let began = Instant::now();
        match run(seed, &arguments, &reference) {
            Ok(said) => println!(
                "chaos with seed {seed}: {said} in {:.1} s",
                began.elapsed().as_secs_f64()
            ),
            Err(error) => {
                println!("chaos with seed {seed} FAILED: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Runs once; returns a summary.
fn run(seed: u64, arguments: &Arguments, reference: &Reference) -> Result<String, String> {
    let mut random = Pcg64::seed_from_u64(seed);
    let folder = Folder::new();
    // Segments that are read in place need no data server.
    let network = random.random();
    let mut daemons = Daemons::start(&folder, network);
    let workload = Workload::start(reference, &folder, daemons.directory(), seed);
    let injected = inject_all(&mut random, arguments.rounds, &mut daemons, &workload);
    daemons.heal();
    let ended = workload.finish(|| daemons.explain());
    let left = daemons.stop();
    let result = injected
        .and_then(|counts| ended.map(|jobs| (counts, jobs)))
        .and_then(|both| left.map(|()| both));
    match result {
        Ok((counts, jobs)) => Ok(format!("{jobs} jobs, {}", counts.join(", "))),
        Err(error) => Err(format!("{error}\n{}", daemons.logs())),
    }
}

/// Injects every kind of fault, `rounds` times each, in random order and at random times. Each must have its
/// effect.
fn inject_all(
    random: &mut Pcg64,
    rounds: u32,
    daemons: &mut Daemons,
    workload: &Workload,
) -> Result<Vec<String>, String> {
    let mut left_out = Vec::new();
    for _ in 0..rounds {
        let mut order = Fault::ALL;
        order.shuffle(random);
        for fault in order {
            let began = Instant::now();
            loop {
                match fault.inject(random, daemons, workload)? {
                    Injected::Fired => break,
                    Injected::CannotBeHad => {
                        left_out.push(fault);
                        break;
                    }
                    Injected::NothingToHit => {}
                }
                if began.elapsed() > PATIENCE {
                    return Err(format!("{fault:?} found nothing to hit for {PATIENCE:?}"));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            daemons.check()?;
            if let Some(error) = workload.failure() {
                return Err(format!("after {fault:?}: {error}"));
            }
            std::thread::sleep(Duration::from_millis(random.random_range(0..300)));
        }
    }
    let injected = Fault::ALL.iter().filter(|fault| !left_out.contains(fault));
    Ok(injected
        .map(|fault| format!("{rounds} x {fault:?}"))
        .collect())
}
