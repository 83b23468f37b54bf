//! The runs of campaigns: in simulated time on as many cores as there are, rehearsed at the live scale, or live
//! on clusters of this machine, one after another. Times of live runs are given at the paper's scale.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use napreduce_engine::{Fifo, PreemptionSettings, Span, Time};
use napreduce_sim::{
    ClusterShape, Ending, JobResult, Run, SimulatedJob, Simulation, SimulationSettings, Workload,
};
use xxhash_rust::xxh3::xxh3_64;

use super::registry::{Alone, Campaign, Figure, LiveRecipe, Paper, Variant};
use super::rows::{Executor, JobRow, LiveRow, MeasuredRun, RunKey, RunRow};
use super::verdict::live_blocks;
use crate::jobs::TaskBody;
use crate::machine::load_average;
use crate::process::Interrupt;
use crate::replay::{
    Costs, FullPlan, GivenCosts, LiveJob, LivePlan, LiveRun, References, Replayer, measure_costs,
};
use crate::report::{counted, minutes};
use crate::session::Session;

#[derive(Debug, Clone)]
pub struct PlannedRun<'a> {
    pub key: RunKey,
    pub seed: u64,
    pub(super) campaign: &'a Campaign,
    pub(super) variant: &'a Variant,
}

#[derive(Debug, Clone, Copy)]
pub struct Repetitions {
    /// Blocks of each campaign, instead of the number in its entry.
    pub blocks: Option<u32>,
    /// The first block; earlier blocks are in the continued report.
    pub first: u32,
    /// Seed of the first block; the others follow.
    pub seed: u64,
}

/// The runs of an executor that some figures of a paper need, block by block.
pub fn plan<'a>(
    paper: &'a Paper,
    figures: &[&str],
    executor: Executor,
    repetitions: Repetitions,
) -> Vec<PlannedRun<'a>> {
    let simulated = executor.is_simulated();
    let is_live = executor == Executor::Live;
    let figures = figures.iter().filter_map(|id| paper.figures.get(*id));
    let wanted: Vec<_> = figures
        .filter(|figure| !simulated || figure.cannot.is_none())
        .collect();
    let needed: BTreeSet<(String, String)> = wanted
        .iter()
        .flat_map(|figure| paper.needed(figure))
        .collect();
    // As many live blocks as the figure with the most directions needs.
    let blocks_of = |campaign: &str| {
        let uses = |figure: &&&Figure| paper.needed(figure).iter().any(|(of, _)| of == campaign);
        wanted
            .iter()
            .filter(uses)
            .map(|figure| live_blocks(paper, figure))
            .max()
            .unwrap_or(0)
    };
    let mut runs = Vec::new();
    for (campaign_id, campaign) in &paper.campaigns {
        let live = campaign.live.as_ref();
        let has = |id: &str| simulated || live.is_some_and(|recipe| recipe.has(id));
        let is_needed =
            |id: &String| has(id) && needed.contains(&(campaign_id.clone(), id.clone()));
        let variants: Vec<_> = campaign
            .variants
            .iter()
            .filter(|(id, _)| is_needed(id))
            .collect();
        let usual = || {
            if is_live {
                blocks_of(campaign_id)
            } else {
                campaign.blocks
            }
        };
        let blocks = if campaign.deterministic && !is_live {
            1_u32.saturating_sub(repetitions.first)
        } else {
            repetitions.blocks.unwrap_or_else(usual)
        };
        for block in repetitions.first..repetitions.first + blocks {
            // Each live block begins with another variant.
            let first = if is_live { block as usize } else { 0 };
            for turn in 0..variants.len() {
                let (id, variant) = variants[(first + turn) % variants.len()];
                let key = RunKey {
                    paper: paper.name.clone(),
                    campaign: campaign_id.clone(),
                    variant: id.clone(),
                    block,
                    executor,
                };
                let seed = repetitions.seed + u64::from(block);
                runs.push(PlannedRun {
                    key,
                    seed,
                    campaign,
                    variant,
                });
            }
        }
    }
    runs
}

/// Makes runs on all cores and passes each to `take` when it has ended, in any order. An interrupt leaves out further
/// runs.
pub fn simulate(
    runs: &[PlannedRun<'_>],
    interrupt: &Interrupt,
    mut take: impl FnMut(MeasuredRun) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (done, arriving) = channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism()
            .map_or(1, usize::from)
            .min(runs.len())
        {
            let done = done.clone();
            let next = &next;
            scope.spawn(move || {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver is dropped when a run has failed.
                    if interrupt.check().is_err() || done.send(run.make()).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        arriving.into_iter().try_for_each(|made| take(made?))
    })
}

impl PlannedRun<'_> {
    pub fn make(&self) -> Result<MeasuredRun> {
        let made = if self.key.executor.is_simulated() {
            self.try_make()
        } else {
            self.rehearse()
        };
        made.map_err(|what| {
            let RunKey {
                paper,
                campaign,
                variant,
                ..
            } = &self.key;
            anyhow!(
                "{paper}: campaign {campaign}, variant {variant}, seed {}: {what}",
                self.seed
            )
        })
    }

    fn try_make(&self) -> Result<MeasuredRun, String> {
        let file = self.campaign.file(self.variant)?;
        let configuration = self.variant.configuration()?;
        let cluster = file.cluster.ok_or("the workload names no cluster")?;
        let machines = self
            .variant
            .nodes
            .or(self.campaign.nodes)
            .unwrap_or(cluster.machines);
        let mut settings = cluster.settings(machines);
        (settings.overheads, settings.progress) = (file.overheads, file.progress);
        settings.until = self.campaign.until.map(|until| Time(until.0));
        (settings.seed, settings.engine.seed) = (self.seed, self.seed);
        settings.engine.preemption.primitive = self.variant.primitive;
        if let Some(most) = self.variant.suspended_max {
            settings.engine.preemption.suspended_max = most;
        }
        if settings.reads_progress(&configuration) {
            settings.progress_period = Some(Span::from_secs(1));
        }
        let text = format!(
            "{file:?}{:?}{configuration:?}{settings:?}",
            self.variant.jobs
        );
        let policy = configuration.build().map_err(|error| error.to_string())?;
        // All jobs are drawn, so that a job is the same in every variant.
        let jobs = self.wanted(file.workload(self.seed).into_jobs());
        let alone = match self.campaign.alone {
            Alone::Scheduled => BTreeMap::new(),
            Alone::Simulated => alone(&jobs, &settings)?,
        };
        let run = Simulation::new(policy, settings, Workload::of(jobs)).run();
        let run = run.map_err(|error| error.to_string())?;
        Ok(self.rows(&run, &alone, format!("{:016x}", xxh3_64(text.as_bytes()))))
    }

    /// The jobs of the variant.
    pub(super) fn wanted(&self, mut jobs: Vec<SimulatedJob>) -> Vec<SimulatedJob> {
        let wanted = &self.variant.jobs;
        if !wanted.is_empty() {
            jobs.retain(|job| {
                wanted
                    .iter()
                    .any(|wanted| **wanted == *job.class || **wanted == *job.name)
            });
        }
        jobs
    }

    /// `alone` has the simulated times alone, if any.
    pub(super) fn rows(
        &self,
        run: &Run,
        alone: &BTreeMap<Arc<str>, Span>,
        configuration: String,
    ) -> MeasuredRun {
        let of = |job: &JobResult| {
            simulated_row(job, alone.get(&job.name).copied().unwrap_or(job.alone))
        };
        let mut jobs: Vec<JobRow> = run.jobs.iter().map(of).collect();
        jobs.sort_by(|a, b| a.job.cmp(&b.job));
        let first = run
            .jobs
            .iter()
            .map(|job| job.submitted)
            .min()
            .unwrap_or_default();
        let last = run
            .jobs
            .iter()
            .map(|job| job.ended)
            .max()
            .unwrap_or_default();
        let due = run.jobs.iter().filter(|job| job.deadline.is_some()).count() as u64;
        let missed = run.jobs.iter().filter(|job| job.missed()).count() as u64;
        let failed = run
            .jobs
            .iter()
            .filter(|job| job.ending != Ending::Succeeded)
            .count();
        let row = RunRow {
            key: self.key.clone(),
            seed: self.seed,
            configuration,
            makespan: seconds(last.since(first)),
            missed,
            met: due - missed,
            unfinished: (run.unfinished + failed) as u64,
            events: run.events,
            paged_out: run.paged_out,
            local_share: match run.placed_maps {
                0 => 1.0,
                placed => run.local_maps as f64 / placed as f64,
            },
            live: None,
        };
        MeasuredRun { run: row, jobs }
    }
}

fn simulated_row(job: &JobResult, alone: Span) -> JobRow {
    let reduces = job.tasks[1];
    JobRow {
        job: job.name.to_string(),
        class: job.class.to_string(),
        submitted: seconds(Span(job.submitted.0)),
        started: seconds(Span(job.worked.map_or(job.ended, |(first, _)| first).0)),
        ended: seconds(Span(job.ended.0)),
        alone: seconds(alone),
        deadline: job.deadline.map(|deadline| seconds(Span(deadline.0))),
        reduce_wait: (reduces > 0).then(|| seconds(job.reduces_waited) / f64::from(reduces)),
        idle_share: (job.reduces_held.0 > 0)
            .then(|| job.reduces_idle.0 as f64 / job.reduces_held.0 as f64),
        preemptions: job.preemptions.suspend + job.preemptions.checkpoint + job.preemptions.kill,
        wasted: seconds(job.wasted),
        simulated: None,
    }
}

/// The simulated time of each job alone, with all overheads.
pub(super) fn alone(
    jobs: &[SimulatedJob],
    settings: &SimulationSettings,
) -> Result<BTreeMap<Arc<str>, Span>, String> {
    let of = |job: &SimulatedJob| {
        let job = SimulatedJob {
            submit: Time(0),
            ..job.clone()
        };
        let name = job.name.clone();
        let run = Simulation::new(
            Box::new(Fifo::default()),
            settings.clone(),
            Workload::of(vec![job]),
        )
        .run();
        let run = run.map_err(|error| format!("{name} alone: {error}"))?;
        let sojourn = run.jobs.first().map(JobResult::sojourn);
        Ok((name, sojourn.unwrap_or_default()))
    };
    jobs.iter().map(of).collect()
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e6
}

/// Approximate time to start and end a cluster, and to run the undisturbed jobs of a block.
const AROUND: Duration = Duration::from_secs(3);

/// Whether an expectation of the figure can be tested live.
pub fn runs_live(paper: &Paper, figure: &Figure) -> bool {
    figure.cannot.is_none()
        && figure
            .expectations()
            .any(|expected| paper.is_live(figure, expected))
}

/// Makes live runs one after another and passes each to `take`.
pub fn run_live(
    runs: &[PlannedRun<'_>],
    session: &Session,
    mut take: impl FnMut(MeasuredRun) -> Result<()>,
) -> Result<()> {
    session.warn_if_busy();
    let mut replayer = Replayer::new(TaskBody::Sleep, session)?;
    let mut plans = Vec::new();
    for run in runs {
        plans.push(run.live_plan(false)?);
    }
    let costs = measure_costs(&GivenCosts::default(), &plans, &mut replayer)?;
    let mut simulated = Vec::new();
    for plan in &plans {
        simulated.push(plan.simulate(&costs)?);
    }
    let takes = |run: &Run| Duration::from_micros(run.ended.0) + AROUND;
    let mut left: Duration = simulated.iter().map(takes).sum();
    session.log(format!(
        "{} on this machine, about {}",
        counted(runs.len(), "run"),
        minutes(left)
    ));
    let mut references: BTreeMap<u64, References> = BTreeMap::new();
    for (number, ((run, plan), simulated)) in runs.iter().zip(&plans).zip(&simulated).enumerate() {
        let jobs = run.live_plan(true)?;
        let key = xxh3_64(format!("{:?}", jobs.jobs).as_bytes());
        if !references.contains_key(&key) {
            // References of other blocks are not needed again.
            references.clear();
            references.insert(key, replayer.references(&jobs)?);
        }
        let began = Instant::now();
        let expected = Duration::from_micros(simulated.ended.0);
        let mut live = replayer.run(plan, &references[&key], expected)?;
        if !live.counts() {
            session.log("a job was submitted too late or out of order: repeating the run");
            live = replayer.run(plan, &references[&key], expected)?;
        }
        left = left.saturating_sub(takes(simulated));
        let measured = run.live_rows(plan, &live, simulated, &costs)?;
        session.log(format!(
            "{} {} {}, block {}: {:.1} s, {}{}; {} of {}, about {} left",
            run.key.paper,
            run.key.campaign,
            run.key.variant,
            run.key.block + 1,
            began.elapsed().as_secs_f64(),
            if live.jobs.iter().all(|job| job.identical) {
                "outputs right"
            } else {
                "AN OUTPUT DIFFERS"
            },
            if live.counts() {
                ""
            } else {
                ", TOO LATE or out of order: it does not count"
            },
            number + 1,
            counted(runs.len(), "run"),
            minutes(left),
        ));
        take(measured)?;
    }
    replayer.bench.end()
}

impl PlannedRun<'_> {
    fn recipe(&self) -> Result<&LiveRecipe> {
        let live = self.campaign.live.as_ref();
        live.with_context(|| format!("campaign {} has no live recipe", self.key.campaign))
    }

    /// The live plan, with all jobs or with those of the variant.
    fn live_plan(&self, all: bool) -> Result<LivePlan> {
        let wrong = |what: String| anyhow!("{}: {what}", self.key.campaign);
        let recipe = self.recipe()?;
        let file = self.campaign.file(self.variant).map_err(wrong)?;
        let cluster = file.cluster.context("the workload names no cluster")?;
        let usual = self.campaign.nodes.unwrap_or(cluster.machines);
        let shape = ClusterShape {
            machines: self.variant.nodes.unwrap_or(usual),
            ..cluster
        };
        let drawn = file.workload(self.seed).into_jobs();
        let jobs = recipe.jobs(if all { drawn } else { self.wanted(drawn) });
        let mut preemption = PreemptionSettings {
            primitive: self.variant.primitive,
            ..PreemptionSettings::default()
        };
        preemption.suspended_max = self
            .variant
            .suspended_max
            .unwrap_or(preemption.suspended_max);
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

    /// Simulates the live plan without costs.
    pub(super) fn rehearse(&self) -> Result<MeasuredRun, String> {
        let in_words = |error: anyhow::Error| error.to_string();
        let recipe = self.recipe().map_err(in_words)?;
        let plan = self.live_plan(false).map_err(in_words)?;
        let costs = Costs::default();
        let run = plan.simulate(&costs).map_err(in_words)?;
        let alone = self.alone(&plan, &costs)?;
        Ok(self
            .rows(&run, &alone, configuration(&plan))
            .at_full_scale(recipe))
    }

    /// Times of jobs alone at the live scale; empty where the simulator has them.
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
    ) -> Result<MeasuredRun> {
        let recipe = self.recipe()?;
        let alone = self
            .alone(plan, costs)
            .map_err(|what| anyhow!("the plan cannot be simulated at its scale: {what}"))?;
        let row = |job: &LiveJob| live_row(job, simulated, alone.get(&job.job.name).copied());
        let mut jobs: Vec<JobRow> = live.jobs.iter().map(row).collect();
        jobs.sort_by(|a, b| a.job.cmp(&b.job));
        let due = jobs.iter().filter(|job| job.deadline.is_some()).count() as u64;
        let missed = jobs
            .iter()
            .filter(|job| job.deadline.is_some_and(|due| job.ended > due))
            .count() as u64;
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
}

fn live_row(job: &LiveJob, simulated: &Run, alone: Option<Span>) -> JobRow {
    let seconds = |micros: u64| micros as f64 / 1e6;
    let simulated_job = simulated.job(&job.job.name);
    let scheduled = simulated_job.map(|one| one.alone).unwrap_or_default();
    let reduces = job.job.reduces.len().max(1) as f64;
    let times = &job.times;
    JobRow {
        job: job.job.name.to_string(),
        class: job.job.class.to_string(),
        submitted: seconds(job.submitted),
        started: seconds(times.started.unwrap_or(job.ended)),
        ended: seconds(job.ended),
        alone: seconds(alone.unwrap_or(scheduled).0),
        deadline: job
            .job
            .deadline
            .map(|Span(deadline)| seconds(job.submitted + deadline)),
        reduce_wait: times.reduces_waited.map(|waited| seconds(waited) / reduces),
        idle_share: (times.reduces_held > 0)
            .then(|| times.reduces_idle as f64 / times.reduces_held as f64),
        preemptions: times.suspends + times.checkpoints + times.kills,
        wasted: seconds(times.wasted),
        simulated: simulated_job.map(|one| seconds(one.sojourn().0)),
    }
}

impl MeasuredRun {
    /// Converts times and counts of tasks to the paper's scale.
    fn at_full_scale(mut self, recipe: &LiveRecipe) -> MeasuredRun {
        let time = recipe.time_scale;
        let tasks = recipe.task_scale;
        self.run.makespan *= time;
        for job in &mut self.jobs {
            for seconds in [
                &mut job.submitted,
                &mut job.started,
                &mut job.ended,
                &mut job.alone,
            ] {
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

/// xxh3 of cluster, policy and preemption settings, in hexadecimal.
fn configuration(plan: &LivePlan) -> String {
    let text = format!("{:?}{:?}{:?}", plan.cluster, plan.policy, plan.preemption);
    format!("{:016x}", xxh3_64(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::registry::papers;
    use crate::paper::{Executor, Repetitions, plan};

    /// About ten minutes.
    const BUDGET: Duration = Duration::from_secs(11 * 60);

    #[test]
    fn six_blocks_of_every_live_figure_take_ten_minutes() {
        let once = Repetitions {
            blocks: Some(1),
            first: 0,
            seed: 1,
        };
        let mut live = Vec::new();
        for paper in papers().expect("a registry") {
            for id in paper.ids() {
                if !runs_live(&paper, &paper.figures[id]) {
                    continue;
                }
                let mut block = Duration::ZERO;
                for run in plan(&paper, &[id], Executor::Live, once) {
                    let plan = run
                        .live_plan(false)
                        .unwrap_or_else(|error| panic!("{:?}: {error}", run.key));
                    let simulated = plan.simulate(&Costs::default()).expect("it ends");
                    block += Duration::from_micros(simulated.ended.0) + AROUND;
                }
                assert!(
                    block * 6 <= BUDGET,
                    "{} {id}: {block:?} a block",
                    paper.name
                );
                live.push(format!("{} {id}", paper.name));
            }
        }
        for expected in [
            "os 2a", "natjam 4", "natjam 5", "fcs 3", "fcs 8", "hfsp 3", "hfsp 7", "yarn Y1",
        ] {
            assert!(
                live.iter().any(|figure| figure == expected),
                "{expected} is not in {live:?}"
            );
        }
    }

    #[test]
    fn live_blocks_rotate_variants() {
        let all = papers().expect("a registry");
        let paper = all
            .iter()
            .find(|paper| paper.name == "natjam")
            .expect("a paper");
        let runs = plan(
            paper,
            &["10"],
            Executor::Live,
            Repetitions {
                blocks: None,
                first: 2,
                seed: 1,
            },
        );
        let of = |block: u32| -> Vec<&str> {
            let of_it = runs.iter().filter(|run| run.key.block == block);
            of_it.map(|run| run.key.variant.as_str()).collect()
        };
        // None of its claims has several directions: six blocks are enough.
        assert_eq!((runs.len(), runs[0].seed), (3 * 6, 3));
        // In the order of names, starting at the block's number.
        assert_eq!(of(2), ["mlf", "alone", "mdf"]);
        assert_eq!(of(3), ["alone", "mdf", "mlf"]);
        assert_eq!(of(4), ["mdf", "mlf", "alone"]);
    }
}
