//! `nap scale`: scales the workers with the load through a batch system.

mod plan;
mod slurm;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use napreduce_cluster::ClusterClient;
use napreduce_protocol::requests::{DrainWorker, ListQueues, ListWorkers};
use napreduce_protocol::{WorkerSummary, parse_time, printing::print_error};

use crate::cluster::ClusterArguments;
use crate::failure::usage;
use crate::worker::{LeaveArguments, is_up};
use plan::{BatchJob, Bounds, Member, Plan, Round, plan};
use slurm::{Slurm, WorkerScript};

/// Start workers as batch jobs when tasks wait, and drain idle ones
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    Slurm(SlurmArguments),
}

/// Submit workers to Slurm according to demand
///
/// Runs in the foreground on a host with sbatch, squeue and scancel. Submits workers, each as one batch job,
/// when tasks have waited for an interval; cancels pending ones when no task waits, and drains idle ones.
/// Workers outlive this command; use scancel to end them, after they checkpoint their tasks.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap scale slurm --coordinator HEAD:7000 --secret-file ~/nap/secret --max 20 -- -p batch -c 8 -t 4:00:00
  nap scale slurm --dir /shared/nap --min 1 --max 5 --idle 10m -- -p preemptible --signal=B:TERM@90")]
struct SlurmArguments {
    #[command(flatten)]
    bounds: Bounds,

    /// Interval of checks, and time that tasks wait before workers are added
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10s")]
    every: Duration,

    /// Name of the batch jobs; use another one for each cluster
    #[arg(long, value_name = "NAME", value_parser = slurm::job_name, default_value = "nap-worker")]
    job_name: String,

    /// Program to run on nodes [default: this one, under its path here]
    #[arg(long, value_name = "PATH")]
    program: Option<std::path::PathBuf>,

    #[command(flatten)]
    leave: LeaveArguments,

    /// Arguments of sbatch: partition, processors (-c), time limit, memory
    #[arg(last = true, value_name = "SBATCH ARGUMENTS")]
    sbatch: Vec<String>,
}

/// Scales until it is interrupted.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let Command::Slurm(arguments) = &arguments.command;
    let bounds = arguments.bounds;
    if bounds.min > bounds.max || bounds.max == 0 {
        return Err(usage(anyhow!(
            "--max {}: must be at least 1 and --min ({})",
            bounds.max,
            bounds.min
        )));
    }
    if arguments.every.is_zero() {
        return Err(usage(anyhow!("--every 0s: must be positive (default 10s)")));
    }
    // Report wrong flags here rather than in every worker.
    arguments
        .leave
        .rules(&cluster.configuration()?.worker)
        .map_err(usage)?;
    let script = WorkerScript {
        program: arguments
            .program
            .clone()
            .map_or_else(std::env::current_exe, Ok)?,
        name: arguments.job_name.clone(),
        cluster: slurm::cluster_line(&cluster.place()?, cluster)?,
        leave: arguments.leave.to_line(),
    };
    let slurm = Slurm::new(script, arguments.sbatch.clone())?;
    let mut scale = Scale {
        slurm,
        bounds,
        waiting_since: None,
        idle_since: BTreeMap::new(),
        last_error: String::new(),
    };
    let mut client = cluster.connect()?;
    loop {
        let began = Instant::now();
        match scale.run_round(&mut client, began, arguments.every) {
            Ok(()) => scale.last_error.clear(),
            Err(error) => {
                // Most errors are temporary: a coordinator that restarts, a full batch queue.
                scale.print_once(&crate::failure::in_words(&error));
                client = cluster.connect()?;
            }
        }
        std::thread::sleep(arguments.every.saturating_sub(began.elapsed()));
    }
}

/// The state between rounds.
struct Scale {
    slurm: Slurm,
    bounds: Bounds,
    /// Start of the time in which more slots are wanted than are pending.
    waiting_since: Option<Instant>,
    /// Start of the idle time of workers, by name.
    idle_since: BTreeMap<String, Instant>,
    /// The last error, which is printed once.
    last_error: String,
}

impl Scale {
    /// Runs one round.
    fn run_round(
        &mut self,
        client: &mut ClusterClient,
        now: Instant,
        every: Duration,
    ) -> Result<()> {
        let wanted = client.ask(ListQueues)?.wanted;
        let wanted = wanted.map.max(wanted.reduce);
        let workers = client.ask(ListWorkers)?;
        let jobs = self.slurm.jobs()?;
        let members = self.members(&workers, &jobs, now);
        self.waiting_since = (wanted > 0).then(|| self.waiting_since.unwrap_or(now));
        let waits = self.waiting_since.is_some_and(|since| now - since >= every);
        let slots_each = self.slots_each(&workers);
        let Plan {
            submit,
            cancel,
            drain,
        } = plan(
            &self.bounds,
            &Round {
                wanted,
                waits,
                slots_each,
                jobs: &jobs,
                members: &members,
            },
        );
        for number in 1..=submit {
            let job = self.slurm.submit()?;
            print_error(format_args!(
                "nap scale: submitted job {job} ({number} of {submit}): {wanted} slots are wanted"
            ));
        }
        if !cancel.is_empty() {
            self.slurm.cancel(&cancel)?;
            print_error(format_args!(
                "nap scale: cancelled {}, since nothing waits",
                cancel.join(", ")
            ));
        }
        for name in &drain {
            let idle = workers
                .iter()
                .find(|worker| is_up(worker) && worker.name == *name);
            if let Some(worker) = idle {
                let reason = "idle: drained by nap scale".to_owned();
                client.ask(DrainWorker {
                    worker: worker.worker,
                    hand_back: false,
                    reason,
                })?;
                print_error(format_args!(
                    "nap scale: drained {} ({name}), which is idle",
                    worker.worker
                ));
            }
        }
        Ok(())
    }

    /// Returns the workers of our jobs that are up, with their idle times.
    fn members(
        &mut self,
        workers: &[WorkerSummary],
        jobs: &[BatchJob],
        now: Instant,
    ) -> Vec<Member> {
        let ours = |worker: &&WorkerSummary| {
            is_up(worker) && jobs.iter().any(|job| job.worker == worker.name)
        };
        let ours: Vec<&WorkerSummary> = workers.iter().filter(ours).collect();
        let is_idle = |worker: &WorkerSummary| worker.map_slots.1 + worker.reduce_slots.1 == 0;
        let before = std::mem::take(&mut self.idle_since);
        for worker in ours.iter().filter(|worker| is_idle(worker)) {
            let since = before.get(&worker.name).copied().unwrap_or(now);
            self.idle_since.insert(worker.name.clone(), since);
        }
        let idle_for = |name: &str| self.idle_since.get(name).map(|since| now - *since);
        ours.iter()
            .map(|worker| Member {
                name: worker.name.clone(),
                idle_for: idle_for(&worker.name),
            })
            .collect()
    }

    /// Returns the slots of one of our workers: those of one that is up, else the requested processors.
    fn slots_each(&self, workers: &[WorkerSummary]) -> u64 {
        let ours = workers
            .iter()
            .filter(|worker| is_up(worker) && self.slurm.is_ours(&worker.name));
        let most = ours
            .map(|worker| worker.map_slots.0.max(worker.reduce_slots.0))
            .max();
        u64::from(
            most.unwrap_or_else(|| slurm::processors(&self.slurm.arguments))
                .max(1),
        )
    }

    fn print_once(&mut self, line: &str) {
        if self.last_error != line {
            print_error(format_args!("nap scale: {line}; trying again"));
            line.clone_into(&mut self.last_error);
        }
    }
}
