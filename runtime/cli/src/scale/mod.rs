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

/// Start workers in a batch system's queue when work waits, and let them go when they are idle
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    Slurm(SlurmArguments),
}

/// Submit workers to Slurm, as many as there is work for
///
/// Runs in the foreground, where sbatch, squeue and scancel work and the coordinator is reached. When work
/// has waited for a round workers are submitted, each as a job of its own; what is still pending when nothing
/// waits any more is cancelled, and idle workers are drained. Ending this command ends none of them: scancel
/// does, and each saves what it runs.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap scale slurm --coordinator HEAD:7000 --secret-file ~/nap/secret --max 20 -- -p batch -c 8 -t 4:00:00
  nap scale slurm --dir /shared/nap --min 1 --max 5 --idle 10m -- -p preemptible --signal=B:TERM@90")]
struct SlurmArguments {
    #[command(flatten)]
    bounds: Bounds,

    /// How often to look; work that has waited so long is worth another worker
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10s")]
    every: Duration,

    /// The name of the jobs, by which they are known again; another one for each cluster
    #[arg(long, value_name = "NAME", value_parser = slurm::job_name, default_value = "nap-worker")]
    job_name: String,

    /// The program to run on nodes [default: this one, under the path that it has here]
    #[arg(long, value_name = "PATH")]
    program: Option<std::path::PathBuf>,

    #[command(flatten)]
    leave: LeaveArguments,

    /// What sbatch is told beside: partition, processors (-c), time limit, memory
    #[arg(last = true, value_name = "SBATCH ARGUMENTS")]
    sbatch: Vec<String>,
}

/// Scales until it is interrupted.
pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    let Command::Slurm(arguments) = &arguments.command;
    let bounds = arguments.bounds;
    if bounds.min > bounds.max || bounds.max == 0 {
        return Err(usage(anyhow!(
            "--min {} --max {} leaves no number of workers; give a larger --max",
            bounds.min,
            bounds.max
        )));
    }
    if arguments.every.is_zero() {
        return Err(usage(anyhow!("--every 0s never rests; give 1s or more")));
    }
    // Read here to be refused here, and not by every worker.
    arguments.leave.rules(&cluster.configuration()?.worker).map_err(usage)?;
    let script = WorkerScript {
        program: arguments.program.clone().map_or_else(std::env::current_exe, Ok)?,
        name: arguments.job_name.clone(),
        cluster: slurm::cluster_line(&cluster.place()?, cluster)?,
        leave: arguments.leave.to_line(),
    };
    let slurm = Slurm::new(script, arguments.sbatch.clone())?;
    let mut scale =
        Scale { slurm, bounds, waiting_since: None, idle_since: BTreeMap::new(), said: String::new() };
    let mut client = cluster.connect()?;
    loop {
        let began = Instant::now();
        match scale.look(&mut client, began, arguments.every) {
            Ok(()) => scale.said.clear(),
            Err(error) => {
                // Most of what can be wrong passes: a coordinator that is started again, a queue that takes
                // no more jobs.
                scale.say(&crate::failure::in_words(&error));
                client = cluster.connect()?;
            }
        }
        std::thread::sleep(arguments.every.saturating_sub(began.elapsed()));
    }
}

/// What is remembered from one round to the next.
struct Scale {
    slurm: Slurm,
    bounds: Bounds,
    /// Since when more slots are wanted than are on their way.
    waiting_since: Option<Instant>,
    /// Since when workers run nothing, by name.
    idle_since: BTreeMap<String, Instant>,
    /// What was said last, which is said once.
    said: String,
}

impl Scale {
    /// One round.
    fn look(&mut self, client: &mut ClusterClient, now: Instant, every: Duration) -> Result<()> {
        let wanted = client.ask(ListQueues)?.wanted;
        let wanted = wanted.map.max(wanted.reduce);
        let workers = client.ask(ListWorkers)?;
        let jobs = self.slurm.jobs()?;
        let members = self.members(&workers, &jobs, now);
        self.waiting_since = (wanted > 0).then(|| self.waiting_since.unwrap_or(now));
        let waits = self.waiting_since.is_some_and(|since| now - since >= every);
        let slots_each = self.slots_each(&workers);
        let Plan { submit, cancel, drain } =
            plan(&self.bounds, &Round { wanted, waits, slots_each, jobs: &jobs, members: &members });
        for number in 1..=submit {
            let job = self.slurm.submit()?;
            print_error(format_args!(
                "nap scale: submitted job {job} ({number} of {submit}): {wanted} slots are wanted"
            ));
        }
        if !cancel.is_empty() {
            self.slurm.cancel(&cancel)?;
            print_error(format_args!("nap scale: cancelled {}, since nothing waits", cancel.join(", ")));
        }
        for name in &drain {
            let idle = workers.iter().find(|worker| is_up(worker) && worker.name == *name);
            if let Some(worker) = idle {
                let reason = "idle, says nap scale".to_owned();
                client.ask(DrainWorker { worker: worker.worker, hand_back: false, reason })?;
                print_error(format_args!("nap scale: drained {} ({name}), which is idle", worker.worker));
            }
        }
        Ok(())
    }

    /// The workers of our jobs that are up, and for how long each has been idle.
    fn members(&mut self, workers: &[WorkerSummary], jobs: &[BatchJob], now: Instant) -> Vec<Member> {
        let ours =
            |worker: &&WorkerSummary| is_up(worker) && jobs.iter().any(|job| job.worker == worker.name);
        let ours: Vec<&WorkerSummary> = workers.iter().filter(ours).collect();
        let is_idle = |worker: &WorkerSummary| worker.map_slots.1 + worker.reduce_slots.1 == 0;
        let before = std::mem::take(&mut self.idle_since);
        for worker in ours.iter().filter(|worker| is_idle(worker)) {
            let since = before.get(&worker.name).copied().unwrap_or(now);
            self.idle_since.insert(worker.name.clone(), since);
        }
        let idle_for = |name: &str| self.idle_since.get(name).map(|since| now - *since);
        ours.iter()
            .map(|worker| Member { name: worker.name.clone(), idle_for: idle_for(&worker.name) })
            .collect()
    }

    /// How many slots a worker of ours has: as one of them says, else as many as the processors that are
    /// asked for.
    fn slots_each(&self, workers: &[WorkerSummary]) -> u64 {
        let ours = workers.iter().filter(|worker| is_up(worker) && self.slurm.is_ours(&worker.name));
        let most = ours.map(|worker| worker.map_slots.0.max(worker.reduce_slots.0)).max();
        u64::from(most.unwrap_or_else(|| slurm::processors(&self.slurm.arguments)).max(1))
    }

    fn say(&mut self, line: &str) {
        if self.said != line {
            print_error(format_args!("nap scale: {line}; trying again"));
            line.clone_into(&mut self.said);
        }
    }
}
