//! Random clusters, workloads and policies from a seed, to find policies that do not terminate.
//!
//! A case is the text of the two files that `nap sim` reads plus its flags, so a failure can be reproduced
//! there. It checks that a finite workload ends without the livelock guard, that no job preempts itself, and
//! that no policy requests a wakeup in the past.

mod draw;
mod jobs;
mod policies;
mod queues;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce_engine::{Job, PreemptionSettings, Requester, Span};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};
use serde::Deserialize;

use self::draw::Draw;
pub use self::queues::{LeafQueue, QueueRanges, QueueWorkload};
use crate::run::Run;
use crate::settings::Failures;
use crate::simulation::Simulation;
use crate::workload::WorkloadFile;

/// Instants between two checks of all invariants.
const STRIDE: u64 = 61;

/// A random simulation.
///
/// ```
/// use napreduce_sim::fuzz::Case;
///
/// let case = Case::draw(7);
/// assert_eq!(case, Case::draw(7));
/// let run = case.run()?;
/// assert_eq!(run.unfinished, 0);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The seed of the case and of its run.
    pub seed: u64,
    pub scheduler: SchedulerName,
    pub configuration: String,
    pub workload: String,
    pub failures: Failures,
}

/// The scheduler and preemption tables of a configuration file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tables {
    scheduler: SchedulerTables,
    preemption: PreemptionSettings,
}

impl Case {
    pub fn draw(seed: u64) -> Case {
        let mut draw = Draw::by(seed);
        let scheduler = policies::name(&mut draw);
        let failing = draw.chance(20);
        let failures = Failures {
            attempt: if failing { 0.03 } else { 0.0 },
            // With more frequent losses, a large job on one machine would lose its outputs again and again.
            machine_mean: (failing && draw.chance(60)).then_some(Span::from_secs(1000)),
            machine_return: Some(Span::from_secs(30)),
        };
        let workload = jobs::file(&mut draw);
        Case {
            seed,
            scheduler,
            configuration: policies::file(&mut draw),
            workload,
            failures,
        }
    }

    /// Draws a case with containers and with limits that may delay or reject jobs.
    pub fn draw_containers(seed: u64) -> Case {
        let case = Case::draw(seed);
        let mut draw = Draw::by(!seed);
        let workload = jobs::file_in_containers(&mut draw);
        let mut configuration = case.configuration.clone();
        // Each update of fair scans all machines, and these runs are long.
        configuration =
            configuration.replace("update-interval = \"1ms\"", "update-interval = \"100ms\"");
        for (table, line) in [
            ("[scheduler.natjam-deadline]", "admission = \"refuse\""),
            ("[scheduler.fair]", "user-max-running-jobs = 2"),
            ("[scheduler.capacity]", "user-max-running-jobs = 1"),
        ] {
            if draw.chance(30) {
                configuration = configuration.replace(table, &format!("{table}\n{line}"));
            }
        }
        Case {
            workload,
            configuration,
            ..case
        }
    }

    /// Returns the flags of `nap sim` for this case.
    pub fn flags(&self) -> String {
        let mut flags = format!("--scheduler {} --seed {}", self.scheduler, self.seed);
        if self.failures.attempt > 0.0 {
            flags += &format!(" --failure-probability {}", self.failures.attempt);
        }
        let lost = self.failures.machine_mean.zip(self.failures.machine_return);
        if let Some((mean, back)) = lost {
            flags += &format!(
                " --worker-mean {} --worker-return {}",
                mean.to_text(),
                back.to_text()
            );
        }
        flags
    }

    /// Runs the case until it ends or is rejected as invalid input.
    ///
    /// # Errors
    /// Describes the violated property.
    pub fn run(&self) -> Result<Run, String> {
        catch_unwind(AssertUnwindSafe(|| self.run_checked()))
            .unwrap_or_else(|panic| Err(panic_message(&*panic)))
    }

    fn run_checked(&self) -> Result<Run, String> {
        let tables: Tables = toml::from_str(&self.configuration)
            .map_err(|error| format!("the configuration: {error}"))?;
        let file = WorkloadFile::read("the workload", &self.workload)
            .map_err(|error| error.to_string())?;
        let shape = file.cluster.ok_or("the workload has no cluster")?;
        let configuration = SchedulerConfiguration {
            scheduler: self.scheduler,
            tables: tables.scheduler,
        };
        let policy = configuration.build().map_err(|error| error.to_string())?;
        let mut settings = shape.settings(shape.machines);
        settings.overheads = file.overheads;
        settings.failures = self.failures;
        settings.progress_period = Some(Span::from_secs(1));
        settings.seed = self.seed;
        settings.engine.seed = self.seed;
        settings.engine.preemption = tables.preemption;
        let mut simulation = Simulation::new(policy, settings, file.workload(self.seed));
        let mut instants = 0_u64;
        loop {
            match simulation.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.is_input_error() => return Ok(simulation.so_far().clone()),
                Err(error) => return Err(format!("{error}{}", explained(&simulation))),
            }
            instants += 1;
            check_requests(&simulation)?;
            if instants.is_multiple_of(STRIDE) {
                simulation.check()?;
            }
        }
        simulation.check()?;
        let run = simulation.run().map_err(|error| error.to_string())?;
        match (run.unfinished, run.tally.illegal_reports) {
            (0, 0) => Ok(run),
            (0, some) => Err(format!(
                "{some} invalid reports: {}",
                run.last_warning.unwrap_or_default()
            )),
            (left, _) => Err(format!("{left} jobs did not end")),
        }
    }
}

/// Checks that no job preempts itself.
fn check_requests(simulation: &Simulation) -> Result<(), String> {
    let view = simulation.view();
    for request in view.requests() {
        let victim = request.attempt.task;
        // The engine itself may free a slot of a job's reduce for its maps.
        if request.by == Requester::Policy && request.beneficiary == Some(victim.job) {
            return Err(format!(
                "at {}: {victim} is preempted for its own job",
                simulation.now()
            ));
        }
    }
    match view.tally().requests_refused {
        0 => Ok(()),
        some => Err(format!(
            "at {}: {some} requests to preempt a job for itself",
            simulation.now()
        )),
    }
}

/// Explains what the first unfinished jobs wait for.
fn explained(simulation: &Simulation) -> String {
    let view = simulation.view();
    let explain = |job: &Job| {
        let reasons: Vec<String> = view
            .explain_job(job.id())
            .reasons
            .into_iter()
            .map(|reason| reason.text)
            .collect();
        format!("\n  {}: {}", job.id(), reasons.join("; "))
    };
    view.jobs().take(3).map(explain).collect()
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without message".to_owned())
}
