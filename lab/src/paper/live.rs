//! The runs of campaigns at the live scale: on real clusters of this machine, or rehearsed in simulated time.
//!
//! Owns which runs there are, one after another, and the rows of each: times are told at the paper's scale.
//! Does not own how a plan runs (`replay`), nor what becomes of rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use napreduce_engine::{PreemptionSettings, Span};
use napreduce_sim::{ClusterShape, Run};
use xxhash_rust::xxh3::xxh3_64;

use super::registry::{Alone, Figure, LiveRecipe, Paper};
use super::rows::{JobRow, LiveRow, MeasuredRun, RunRow};
use super::simulate::{PlannedRun, alone};
use crate::error::{LabError, WorkloadReplayError};
use crate::jobs::TaskBody;
use crate::machine::load_average;
use crate::replay::{
    Bench, Costs, FullPlan, GivenCosts, LiveJob, LivePlan, LiveRun, References, measure_costs,
};
use crate::session::Session;
use crate::words::counted;

/// What starting and ending a cluster takes, about, and the undisturbed jobs of a block.
const AROUND: Duration = Duration::from_secs(3);

/// Whether anything that a figure expects can be run live.
pub fn runs_live(paper: &Paper, figure: &Figure) -> bool {
    figure.cannot.is_none() && figure.expectations().any(|expected| paper.is_live(figure, expected))
}

/// Makes runs one after another and hands each to `take` when it has ended.
///
/// # Errors
/// The first run that cannot be made, what `take` says, and on an interrupt.
pub fn run_live<E: From<LabError>>(
    runs: &[PlannedRun<'_>],
    session: &Session,
    mut take: impl FnMut(MeasuredRun) -> Result<(), E>,
) -> Result<(), E> {
    session.warn_if_busy();
    let mut bench = Bench::new(TaskBody::Sleep, session)?;
    let mut plans = Vec::new();
    for run in runs {
        plans.push(run.live_plan(false).map_err(LabError::from)?);
    }
    let costs = measure_costs(&GivenCosts::default(), &plans, &mut bench, session)?;
    let mut simulated = Vec::new();
    for plan in &plans {
        simulated.push(plan.simulate(&costs).map_err(LabError::from)?);
    }
    let takes = |run: &Run| Duration::from_micros(run.ended.0) + AROUND;
    let mut left: Duration = simulated.iter().map(takes).sum();
    session.say(format!("{} on this machine, about {}", counted(runs.len(), "run"), minutes(left)));
    let mut references: BTreeMap<u64, References> = BTreeMap::new();
    for (number, ((run, plan), simulated)) in runs.iter().zip(&plans).zip(&simulated).enumerate() {
        let jobs = run.live_plan(true).map_err(LabError::from)?;
        let key = xxh3_64(format!("{:?}", jobs.jobs).as_bytes());
        if !references.contains_key(&key) {
            // Those of another block are not needed any more.
            references.clear();
            references.insert(key, bench.references(&jobs)?);
        }
        let began = Instant::now();
        let expected = Duration::from_micros(simulated.ended.0);
        let mut live = bench.run(plan, &references[&key], expected)?;
        if !live.counts() {
            session.say("a job was handed in too late, or out of turn: the run is made once more");
            live = bench.run(plan, &references[&key], expected)?;
        }
        left = left.saturating_sub(takes(simulated));
        let measured = run.live_rows(plan, &live, simulated, &costs).map_err(LabError::from)?;
        session.say(format!(
            "{} {} {}, block {}: {:.1} s, {}{}; {} of {}, about {} left",
            run.key.paper,
            run.key.campaign,
            run.key.variant,
            run.key.block + 1,
            began.elapsed().as_secs_f64(),
            if live.jobs.iter().all(|job| job.identical) { "outputs right" } else { "AN OUTPUT DIFFERS" },
            if live.counts() { "" } else { ", TOO LATE, or out of turn: it does not count" },
            number + 1,
            counted(runs.len(), "run"),
            minutes(left),
        ));
        take(measured)?;
    }
    Ok(bench.end()?)
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 90 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

impl PlannedRun<'_> {
    fn recipe(&self) -> Result<&LiveRecipe, WorkloadReplayError> {
        let none =
            || WorkloadReplayError::Policy(format!("campaign {} has no live recipe", self.key.campaign));
        self.campaign.live.as_ref().ok_or_else(none)
    }

    /// What is run live, or all jobs of it.
    fn live_plan(&self, all: bool) -> Result<LivePlan, WorkloadReplayError> {
        let wrong = |what: String| WorkloadReplayError::Policy(format!("{}: {what}", self.key.campaign));
        let recipe = self.recipe()?;
        let file = self.campaign.file(self.variant).map_err(wrong)?;
        let cluster = file.cluster.ok_or(WorkloadReplayError::NoCluster)?;
        let usual = self.campaign.nodes.unwrap_or(cluster.machines);
        let shape = ClusterShape { machines: self.variant.nodes.unwrap_or(usual), ..cluster };
        let drawn = file.workload(self.seed).into_jobs();
        let jobs = recipe.jobs(if all { drawn } else { self.wanted(drawn) });
        let mut preemption =
            PreemptionSettings { primitive: self.variant.primitive, ..PreemptionSettings::default() };
        preemption.suspended_max = self.variant.suspended_max.unwrap_or(preemption.suspended_max);
        let full = FullPlan {
            jobs: &jobs,
            cluster: recipe.cluster(shape, usual).map_err(wrong)?,
            heartbeat: file.overheads.heartbeat,
            policy: &self.variant.configuration().map_err(wrong)?,
            preemption: &preemption,
            seed: self.seed,
        };
        LivePlan::new(&full, recipe.scale().map_err(wrong)?)
    }

    /// The live plan in simulated time, where everything but work is free.
    pub(super) fn rehearse(&self) -> Result<MeasuredRun, String> {
        let in_words = |error: WorkloadReplayError| error.to_string();
        let recipe = self.recipe().map_err(in_words)?;
        let plan = self.live_plan(false).map_err(in_words)?;
        let costs = Costs::default();
        let run = plan.simulate(&costs).map_err(in_words)?;
        let alone = self.alone(&plan, &costs)?;
        Ok(self.rows(&run, &alone, configuration(&plan)).at_full_scale(recipe))
    }

    /// How long jobs take alone, at the live scale; nothing where the simulator says so by itself.
    fn alone(&self, plan: &LivePlan, costs: &Costs) -> Result<BTreeMap<Arc<str>, Span>, String> {
        match self.campaign.alone {
            Alone::Scheduled => Ok(BTreeMap::new()),
            Alone::Simulated => alone(&plan.jobs, &plan.settings(costs)),
        }
    }

    fn live_rows(
        &self,
        plan: &LivePlan,
        live: &LiveRun,
        simulated: &Run,
        costs: &Costs,
    ) -> Result<MeasuredRun, WorkloadReplayError> {
        let recipe = self.recipe()?;
        let alone = self.alone(plan, costs).map_err(WorkloadReplayError::Simulation)?;
        let row = |job: &LiveJob| self.live_row(job, simulated, alone.get(&job.job.name).copied());
        let mut jobs: Vec<JobRow> = live.jobs.iter().map(row).collect();
        jobs.sort_by(|a, b| a.job.cmp(&b.job));
        let due = jobs.iter().filter(|job| job.deadline.is_some()).count() as u64;
        let missed = jobs.iter().filter(|job| job.deadline.is_some_and(|due| job.ended > due)).count() as u64;
        let fold = |begin: f64, pick: fn(f64, f64) -> f64, of: fn(&JobRow) -> f64| {
            jobs.iter().map(of).fold(begin, pick)
        };
        let first = fold(f64::INFINITY, f64::min, |job| job.submitted);
        let last = fold(0.0, f64::max, |job| job.ended);
        let run = RunRow {
            key: self.key.clone(),
            seed: self.seed,
            configuration: configuration(plan),
            makespan: last - first,
            missed,
            met: due - missed,
            unfinished: 0,
            events: 0,
            paged_out: 0,
            local_share: 0.0,
            live: Some(LiveRow {
                time_scale: recipe.time_scale,
                task_scale: recipe.task_scale,
                workers: plan.cluster.machines,
                late: live.late().0 as f64 / 1e6,
                counts: live.counts(),
                identical: live.jobs.iter().all(|job| job.identical),
                load: load_average(),
            }),
        };
        Ok(MeasuredRun { run, jobs }.at_full_scale(recipe))
    }

    fn live_row(&self, job: &LiveJob, simulated: &Run, alone: Option<Span>) -> JobRow {
        let seconds = |micros: u64| micros as f64 / 1e6;
        let beside = simulated.job(&job.job.name);
        let scheduled = beside.map(|one| one.alone).unwrap_or_default();
        let reduces = job.job.reduces.len().max(1) as f64;
        let times = &job.times;
        JobRow {
            key: self.key.clone(),
            job: job.job.name.to_string(),
            class: job.job.class.to_string(),
            submitted: seconds(job.submitted),
            started: seconds(times.started.unwrap_or(job.ended)),
            ended: seconds(job.ended),
            alone: seconds(alone.unwrap_or(scheduled).0),
            deadline: job.job.deadline.map(|Span(deadline)| seconds(job.submitted + deadline)),
            reduce_wait: times.reduces_waited.map(|waited| seconds(waited) / reduces),
            idle_share: (times.reduces_held > 0)
                .then(|| times.reduces_idle as f64 / times.reduces_held as f64),
            preemptions: times.suspends + times.checkpoints + times.kills,
            wasted: seconds(times.wasted),
            simulated: beside.map(|one| seconds(one.sojourn().0)),
        }
    }
}

impl MeasuredRun {
    /// Times and counts of tasks as they are at the paper's scale.
    fn at_full_scale(mut self, recipe: &LiveRecipe) -> MeasuredRun {
        let (time, tasks) = (recipe.time_scale, recipe.task_scale);
        self.run.makespan *= time;
        for job in &mut self.jobs {
            for seconds in [&mut job.submitted, &mut job.started, &mut job.ended, &mut job.alone] {
                *seconds *= time;
            }
            let optional = [&mut job.deadline, &mut job.reduce_wait, &mut job.simulated];
            for seconds in optional.into_iter().flatten() {
                *seconds *= time;
            }
            job.preemptions = (job.preemptions as f64 * tasks).round() as u64;
            job.wasted *= time * tasks;
        }
        self
    }
}

/// xxh3 of what a plan runs on, in hexadecimal.
fn configuration(plan: &LivePlan) -> String {
    let text = format!("{:?}{:?}{:?}", plan.cluster, plan.policy, plan.preemption);
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::registry::papers;
    use crate::paper::{Executor, Repetitions, plan};

    /// Ten minutes, and what a page says in round numbers.
    const BUDGET: Duration = Duration::from_secs(11 * 60);

    #[test]
    fn every_recipe_makes_a_plan_of_which_six_blocks_end_in_ten_minutes() {
        let once = Repetitions { blocks: Some(1), first: 0, seed: 1 };
        let mut live = Vec::new();
        for paper in papers().expect("a registry") {
            for id in paper.ids() {
                if !runs_live(&paper, &paper.figures[id]) {
                    continue;
                }
                let mut block = Duration::ZERO;
                for run in plan(&paper, &[id], Executor::Live, once) {
                    let plan = run.live_plan(false).unwrap_or_else(|error| panic!("{:?}: {error}", run.key));
                    let simulated = plan.simulate(&Costs::default()).expect("it ends");
                    block += Duration::from_micros(simulated.ended.0) + AROUND;
                }
                assert!(block * 6 <= BUDGET, "{} {id}: {block:?} a block", paper.name);
                live.push(format!("{} {id}", paper.name));
            }
        }
        for expected in ["os 2a", "natjam 4", "natjam 5", "fcs 3", "fcs 8", "hfsp 3", "hfsp 7", "yarn Y1"] {
            assert!(live.iter().any(|figure| figure == expected), "{expected} is not in {live:?}");
        }
    }

    #[test]
    fn a_block_has_every_variant_once_and_begins_with_another_one_each_time() {
        let all = papers().expect("a registry");
        let paper = all.iter().find(|paper| paper.name == "natjam").expect("a paper");
        let runs = plan(paper, &["10"], Executor::Live, Repetitions { blocks: None, first: 2, seed: 1 });
        let of = |block: u32| -> Vec<&str> {
            let of_it = runs.iter().filter(|run| run.key.block == block);
            of_it.map(|run| run.key.variant.as_str()).collect()
        };
        // None of its claims has several directions: six blocks are enough.
        assert_eq!((runs.len(), runs[0].seed), (3 * 6, 3));
        // In the order of names, from that of the block's number on.
        assert_eq!(of(2), ["mlf", "alone", "mdf"]);
        assert_eq!(of(3), ["alone", "mdf", "mlf"]);
        assert_eq!(of(4), ["mdf", "mlf", "alone"]);
    }
}
