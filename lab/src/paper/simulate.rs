//! The runs of campaigns in simulated time.
//!
//! Owns which runs there are, on as many cores as there are, and the rows of each. Does not own the
//! simulator, nor what becomes of rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use napreduce_engine::{Fifo, Span, Time};
use napreduce_sim::{Ending, JobResult, Run, SimulatedJob, Simulation, SimulationSettings, Workload};
use xxhash_rust::xxh3::xxh3_64;

use super::registry::{Alone, Campaign, Figure, Paper, Variant};
use super::rows::{Executor, JobRow, MeasuredRun, RunKey, RunRow};
use super::verdict::live_blocks;
use crate::process::Interrupt;

/// A run that is to be made.
#[derive(Debug, Clone)]
pub struct PlannedRun<'a> {
    pub key: RunKey,
    pub seed: u64,
    pub(super) campaign: &'a Campaign,
    pub(super) variant: &'a Variant,
}

/// Which figures, how often.
#[derive(Debug, Clone, Copy)]
pub struct Repetitions {
    /// Blocks of each campaign; what its entry says, without.
    pub blocks: Option<u32>,
    /// The first block: those before are in a report that is continued.
    pub first: u32,
    /// Of the first block; the others follow.
    pub seed: u64,
}

/// A run could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{paper}: campaign {campaign}, variant {variant}, seed {seed}: {what}")]
pub struct SimulateError {
    paper: String,
    campaign: String,
    variant: String,
    seed: u64,
    what: String,
}

/// The runs of an executor that some figures of a paper need, block by block.
pub fn plan<'a>(
    paper: &'a Paper,
    figures: &[&str],
    executor: Executor,
    repetitions: Repetitions,
) -> Vec<PlannedRun<'a>> {
    let (simulated, is_live) = (executor.is_simulated(), executor == Executor::Live);
    let figures = figures.iter().filter_map(|id| paper.figures.get(*id));
    let wanted: Vec<_> = figures.filter(|figure| !simulated || figure.cannot.is_none()).collect();
    let needed: BTreeSet<(String, String)> = wanted.iter().flat_map(|figure| paper.needed(figure)).collect();
    // Live, as many as the figure that claims most at once needs.
    let blocks_of = |campaign: &str| {
        let uses = |figure: &&&Figure| paper.needed(figure).iter().any(|(of, _)| of == campaign);
        wanted.iter().filter(uses).map(|figure| live_blocks(paper, figure)).max().unwrap_or(0)
    };
    let mut runs = Vec::new();
    for (campaign_id, campaign) in &paper.campaigns {
        let live = campaign.live.as_ref();
        let has = |id: &str| simulated || live.is_some_and(|recipe| recipe.has(id));
        let is_needed = |id: &String| has(id) && needed.contains(&(campaign_id.clone(), id.clone()));
        let variants: Vec<_> = campaign.variants.iter().filter(|(id, _)| is_needed(id)).collect();
        let usual = || if is_live { blocks_of(campaign_id) } else { campaign.blocks };
        let blocks = match campaign.deterministic && !is_live {
            true => 1_u32.saturating_sub(repetitions.first),
            false => repetitions.blocks.unwrap_or_else(usual),
        };
        for block in repetitions.first..repetitions.first + blocks {
            // Live, none is the first of every block.
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
                runs.push(PlannedRun { key, seed, campaign, variant });
            }
        }
    }
    runs
}

/// Makes runs on all cores and hands each to `take` when it has ended, in any order; those that had not begun
/// when the interrupt came are left out.
///
/// # Errors
/// The first run that cannot be made, or what `take` says.
pub fn simulate<E: From<SimulateError>>(
    runs: &[PlannedRun<'_>],
    interrupt: &Interrupt,
    mut take: impl FnMut(MeasuredRun) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (done, arriving) = channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(runs.len()) {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Nobody waits for more once a run has failed.
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
    /// Simulates it.
    ///
    /// # Errors
    /// When the policy cannot be set up, or the run has no end.
    pub fn make(&self) -> Result<MeasuredRun, SimulateError> {
        let made = if self.key.executor.is_simulated() { self.try_make() } else { self.rehearse() };
        made.map_err(|what| SimulateError {
            paper: self.key.paper.clone(),
            campaign: self.key.campaign.clone(),
            variant: self.key.variant.clone(),
            seed: self.seed,
            what,
        })
    }

    fn try_make(&self) -> Result<MeasuredRun, String> {
        let file = self.campaign.file(self.variant)?;
        let configuration = self.variant.configuration()?;
        let cluster = file.cluster.ok_or("the workload names no cluster")?;
        let machines = self.variant.nodes.or(self.campaign.nodes).unwrap_or(cluster.machines);
        let mut settings = cluster.settings(machines);
        (settings.overheads, settings.progress) = (file.overheads, file.progress);
        settings.progress_period = Some(Span::from_secs(1));
        settings.until = self.campaign.until.map(|until| Time(until.0));
        (settings.seed, settings.engine.seed) = (self.seed, self.seed);
        settings.engine.preemption.primitive = self.variant.primitive;
        if let Some(most) = self.variant.suspended_max {
            settings.engine.preemption.suspended_max = most;
        }
        let text = format!("{file:?}{:?}{configuration:?}{settings:?}", self.variant.jobs);
        let policy = configuration.build().map_err(|error| error.to_string())?;
        // All are drawn, so that those that are wanted are the same as in other variants.
        let jobs = self.wanted(file.workload(self.seed).into_jobs());
        let alone = match self.campaign.alone {
            Alone::Scheduled => BTreeMap::new(),
            Alone::Simulated => alone(&jobs, &settings)?,
        };
        let run = Simulation::new(policy, settings, Workload::of(jobs)).run();
        let run = run.map_err(|error| error.to_string())?;
        Ok(self.rows(&run, &alone, format!("{:016x}", xxh3_64(text.as_bytes()))))
    }

    /// Of all jobs those that the variant has.
    pub(super) fn wanted(&self, mut jobs: Vec<SimulatedJob>) -> Vec<SimulatedJob> {
        let wanted = &self.variant.jobs;
        if !wanted.is_empty() {
            jobs.retain(|job| wanted.iter().any(|wanted| **wanted == *job.class || **wanted == *job.name));
        }
        jobs
    }

    /// With the times alone of the jobs that have one of their own.
    pub(super) fn rows(
        &self,
        run: &Run,
        alone: &BTreeMap<Arc<str>, Span>,
        configuration: String,
    ) -> MeasuredRun {
        let of = |job: &JobResult| self.row(job, alone.get(&job.name).copied().unwrap_or(job.alone));
        let mut jobs: Vec<JobRow> = run.jobs.iter().map(of).collect();
        jobs.sort_by(|a, b| a.job.cmp(&b.job));
        let first = run.jobs.iter().map(|job| job.submitted).min().unwrap_or_default();
        let last = run.jobs.iter().map(|job| job.ended).max().unwrap_or_default();
        let due = run.jobs.iter().filter(|job| job.deadline.is_some()).count() as u64;
        let missed = run.jobs.iter().filter(|job| job.missed()).count() as u64;
        let failed = run.jobs.iter().filter(|job| job.ending != Ending::Succeeded).count();
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

    fn row(&self, job: &JobResult, alone: Span) -> JobRow {
        let reduces = job.tasks[1];
        JobRow {
            key: self.key.clone(),
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
}

/// How long each job takes alone, with all that takes time besides work.
pub(super) fn alone(
    jobs: &[SimulatedJob],
    settings: &SimulationSettings,
) -> Result<BTreeMap<Arc<str>, Span>, String> {
    let of = |job: &SimulatedJob| {
        let job = SimulatedJob { submit: Time(0), ..job.clone() };
        let name = job.name.clone();
        let run = Simulation::new(Box::new(Fifo::default()), settings.clone(), Workload::of(vec![job])).run();
        let run = run.map_err(|error| format!("{name} alone: {error}"))?;
        let sojourn = run.jobs.first().map(JobResult::sojourn);
        Ok((name, sojourn.unwrap_or_default()))
    };
    jobs.iter().map(of).collect()
}

fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e6
}
