//! Owns what starting, suspending and saving a task cost on this machine, measured for the simulator or
//! given. How they are used belongs to the plan.

use std::time::Duration;

use clap::Args;
use napreduce_core::{Span, Time};
use napreduce_live::parse_time;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{Run, SimulatedJob};

use super::bench::Bench;
use super::plan::{Costs, LivePlan};
use crate::error::LabError;
use crate::latency::{Latencies, LatencySettings, latency};
use crate::session::Session;
use crate::workspace::WorkSettings;

/// Waves of tasks on all slots, whose time says what starting one costs.
const WAVES: u64 = 6;
/// Tasks of these waves are about as long as those of the plan.
const PROBE_MIN: Span = Span::from_millis(100);
const PROBE_MAX: Span = Span::from_millis(400);
/// Samples of each kind of preemption.
const SAMPLES: u32 = 10;

/// Costs that were given; what was not is measured.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Costs in the simulator (default: measured here)")]
pub struct GivenCosts {
    /// What a task takes beyond its work
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub launch: Option<Span>,
    /// From the order to suspend to the free slot
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub suspend: Option<Span>,
    /// From the order to resume to the first work
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub resume: Option<Span>,
    /// From the order to checkpoint to the free slot
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub checkpoint_write: Option<Span>,
    /// What a restore takes beyond a launch
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub checkpoint_read: Option<Span>,
}

pub(super) fn span(text: &str) -> Result<Span, String> {
    let time: Duration = parse_time(text)?;
    Ok(Span(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
}

impl GivenCosts {
    fn has_all_of_preemption(&self) -> bool {
        let all = [self.suspend, self.resume, self.checkpoint_write, self.checkpoint_read];
        all.iter().all(Option::is_some)
    }
}

/// Measures what was not given and may matter to one of these plans.
///
/// # Errors
/// When a cluster or a job fails, and on an interrupt.
pub fn measure(
    given: &GivenCosts,
    plans: &[LivePlan],
    bench: &mut Bench<'_>,
    session: &Session,
) -> Result<Costs, LabError> {
    let launched = match (given.launch, plans.first()) {
        (Some(launch), _) => launch,
        (None, Some(plan)) => launch(plan, bench, session)?,
        (None, None) => Span(0),
    };
    let mut costs = Costs { launch: launched, ..Costs::default() };
    if !given.has_all_of_preemption() && preempts(plans, &costs)? {
        session.say("measuring what a suspend and a checkpoint cost");
        let work = WorkSettings { parent: Some(bench.work.path().to_owned()), keep: false };
        let quiet = Session::new(session.interrupt.clone(), work, session.binaries.clone(), |_| {});
        let found = latency(&LatencySettings { samples: SAMPLES, page_pairs: None }, &quiet)?;
        (costs.suspend, costs.resume) = (middle(&found.suspend), middle(&found.resume));
        costs.checkpoint_write = middle(&found.checkpoint);
        costs.checkpoint_read = Span(middle(&found.restore).0.saturating_sub(costs.launch.0));
    }
    costs.suspend = given.suspend.unwrap_or(costs.suspend);
    costs.resume = given.resume.unwrap_or(costs.resume);
    costs.checkpoint_write = given.checkpoint_write.unwrap_or(costs.checkpoint_write);
    costs.checkpoint_read = given.checkpoint_read.unwrap_or(costs.checkpoint_read);
    Ok(costs)
}

/// Whether any of them saves work.
fn preempts(plans: &[LivePlan], costs: &Costs) -> Result<bool, LabError> {
    let saved =
        |run: &Run| run.jobs.iter().any(|job| job.preemptions.suspend + job.preemptions.checkpoint > 0);
    for plan in plans {
        if saved(&plan.simulate(costs)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a task takes beyond its work when every slot is busy.
fn launch(plan: &LivePlan, bench: &mut Bench<'_>, session: &Session) -> Result<Span, LabError> {
    let slots = plan.settings(&Costs::default()).slots_in_all().0;
    let tasks = plan.jobs.iter().map(|job| job.maps.len() + job.reduces.len()).sum::<usize>() as u64;
    let length = Span((plan.work().0 / tasks.max(1)).clamp(PROBE_MIN.0, PROBE_MAX.0));
    session.say(format!("measuring what starting a task costs, on {slots} slots"));
    let mut job = SimulatedJob::new("launches", Time(0)).with_maps((slots * WAVES) as u32, length);
    job.queue = "default".into();
    let probe = LivePlan {
        jobs: vec![job],
        policy: SchedulerConfiguration::named(SchedulerName::Fifo),
        preemption: Default::default(),
        ..plan.clone()
    };
    let expected = Duration::from_micros(length.0 * WAVES);
    let run = bench.run(&probe, &Default::default(), expected)?;
    let took =
        run.jobs.iter().map(|job| job.ended.saturating_sub(job.times.started.unwrap_or(job.submitted)));
    Ok(Span((took.max().unwrap_or(0) / WAVES).saturating_sub(length.0)))
}

fn middle(latencies: &Latencies) -> Span {
    Span((latencies.p50_ms.unwrap_or(0.0) * 1e3).round() as u64)
}
