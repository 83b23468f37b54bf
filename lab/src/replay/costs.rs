//! The costs of starting, suspending and checkpointing a task on this machine for the simulator, measured or given.

use anyhow::Result;
use std::time::Duration;

use clap::Args;
use napreduce_engine::{Span, Time};
use napreduce_protocol::{parse_time, whole_micros};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use napreduce_sim::{Run, SimulatedJob};

use super::bench::Replayer;
use super::plan::{Costs, LivePlan};
use crate::latency::{self, Latencies};

/// Tasks per slot of the run that measures the cost of a start.
const WAVES: u64 = 20;
/// Tasks of these waves are about as long as those of the plan.
const PROBE_MIN: Span = Span::from_millis(100);
const PROBE_MAX: Span = Span::from_millis(400);
/// Samples of each kind of preemption.
const SAMPLES: u32 = 10;

/// Costs that the command line gives; the others are measured.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Costs in the simulator (default: measured here)")]
pub struct GivenCosts {
    /// Time of a task beyond its work
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
    /// Time of a restore beyond a launch
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub checkpoint_read: Option<Span>,
}

pub(super) fn span(text: &str) -> Result<Span, String> {
    let time: Duration = parse_time(text)?;
    Ok(Span(whole_micros(time)))
}

impl GivenCosts {
    fn has_all_of_preemption(&self) -> bool {
        let all = [
            self.suspend,
            self.resume,
            self.checkpoint_write,
            self.checkpoint_read,
        ];
        all.iter().all(Option::is_some)
    }
}

/// Measures the costs that were not given and that one of these plans may need.
pub fn measure(
    given: &GivenCosts,
    plans: &[LivePlan],
    replayer: &mut Replayer<'_>,
) -> Result<Costs> {
    let launched = match (given.launch, plans.first()) {
        (Some(launch), _) => launch,
        (None, Some(plan)) => launch(plan, replayer)?,
        (None, None) => Span(0),
    };
    let mut costs = Costs {
        launch: launched,
        ..Costs::default()
    };
    if !given.has_all_of_preemption() && preempts(plans, &costs)? {
        replayer
            .bench
            .session
            .log("measuring the costs of a suspend and a checkpoint");
        let found = latency::measure(SAMPLES, &mut replayer.bench)?;
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

/// Whether any of them suspends or checkpoints a task.
fn preempts(plans: &[LivePlan], costs: &Costs) -> Result<bool> {
    let saved = |run: &Run| {
        run.jobs
            .iter()
            .any(|job| job.preemptions.suspend + job.preemptions.checkpoint > 0)
    };
    for plan in plans {
        if saved(&plan.simulate(costs)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The time of a task beyond its work when every slot is busy.
fn launch(plan: &LivePlan, replayer: &mut Replayer<'_>) -> Result<Span> {
    let probe = probe(plan);
    let slots = probe.settings(&Costs::default()).total_slots().0;
    replayer.bench.session.log(format!(
        "measuring what starting a task costs, on {slots} slots"
    ));
    let expected = Duration::from_micros(probe.work().0 / slots.max(1));
    let run = replayer.run(&probe, &Default::default(), expected)?;
    let took = run.jobs.iter().map(|job| {
        job.ended
            .saturating_sub(job.times.started.unwrap_or(job.submitted))
    });
    launch_of(&probe, Span(took.max().unwrap_or(0)))
}

/// Tasks of differing lengths, as in a workload: equal tasks would end at once, and their successors would wait for
/// each other to start.
fn probe(plan: &LivePlan) -> LivePlan {
    let tasks = plan
        .jobs
        .iter()
        .map(|job| job.maps.len() + job.reduces.len())
        .sum::<usize>() as u64;
    let length = Span((plan.work().0 / tasks.max(1)).clamp(PROBE_MIN.0, PROBE_MAX.0));
    let slots = plan.settings(&Costs::default()).total_slots().0;
    let mut job = SimulatedJob::new("launches", Time(0)).with_maps((slots * WAVES) as u32, length);
    for (number, task) in (0..).zip(&mut job.maps) {
        // From 80 to 120 % of the length, not in order.
        task.work = Span(length.0 * (80 + number * 17 % 41) / 100);
    }
    job.queue = "default".into();
    LivePlan {
        jobs: vec![job],
        policy: SchedulerConfiguration::named(SchedulerName::Fifo),
        preemption: Default::default(),
        ..plan.clone()
    }
}

/// The cost with which the simulator takes as long for this plan as the cluster did.
fn launch_of(probe: &LivePlan, took: Span) -> Result<Span> {
    let mut least = 0;
    let mut most = took.0;
    while least < most {
        let launch = Span((least + most).div_ceil(2));
        let ended = probe
            .simulate(&Costs {
                launch,
                ..Costs::default()
            })?
            .ended;
        if ended.0 <= took.0 {
            least = launch.0
        } else {
            most = launch.0 - 1
        }
    }
    Ok(Span(least))
}

fn middle(latencies: &Latencies) -> Span {
    Span((latencies.p50_ms.unwrap_or(0.0) * 1e3).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::PreemptionSettings;
    use napreduce_sim::ClusterShape;
    use proptest::prelude::*;

    use super::super::plan::FullPlan;
    use super::super::plan::Scale;

    proptest! {
        #[test]
        fn launch_cost_follows_from_the_time_of_all_tasks(micros in 0_u64..60_000, maps in 1_u32..5) {
            let job = SimulatedJob::new("job", Time(0)).with_maps(9, Span::from_millis(150));
            let full = FullPlan {
                jobs: &[job],
                cluster: ClusterShape::with_slots(3, maps, 1),
                heartbeat: Span::from_secs(1),
                policy: &SchedulerConfiguration::named(SchedulerName::Fair),
                preemption: &PreemptionSettings::default(),
                seed: 1,
            };
            let probe = probe(&LivePlan::new(&full, Scale::new(1.0, 1.0).unwrap()).unwrap());
            let lengths: Vec<u64> = probe.jobs[0].maps.iter().map(|task| task.work.0).collect();
            prop_assert_eq!(
                (lengths.iter().min(), lengths.iter().max(), lengths.len() as u32),
                (Some(&120_000), Some(&180_000), 60 * maps)
            );
            let launch = Span(micros);
            let took = Span(probe.simulate(&Costs { launch, ..Costs::default() }).unwrap().ended.0);
            let found = launch_of(&probe, took).unwrap();
            prop_assert!(found.0.abs_diff(micros) <= 500, "{found:?}");
        }
    }
}
