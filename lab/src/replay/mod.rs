//! Replays: a workload runs live on a cluster of this machine, and the same plan in the simulator, at the same scale.
//!
//! `plan` scales jobs down, `costs` measures what the simulator needs, `bench` runs plans, `report` compares. The live
//! figures of the papers are replays, too.

mod bench;
mod costs;
mod plan;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use napreduce_engine::{PreemptionSettings, Span};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{ClusterShape, Run};

pub(crate) use self::bench::{LiveJob, LiveRun, References, Replayer};
pub use self::costs::GivenCosts;
pub(crate) use self::costs::measure as measure_costs;
use self::costs::span;
pub use self::plan::{Costs, ReplaySource, Scale};
pub(crate) use self::plan::{FullPlan, LivePlan};
pub use self::report::{Agreement, BAND, MeanRatio, ReplayReport, ReplayRun};
use self::report::{ReplayLine, RunName};
use crate::cluster::RECORDINGS;
use crate::error::{cannot, signal, usage};
use crate::jobs::TaskBody;
use crate::machine::Machine;
use crate::report::Report;
use crate::session::Session;
use crate::workspace::RawFile;

#[derive(Debug)]
pub struct ReplaySettings {
    pub source: ReplaySource,
    pub scale: Scale,
    pub policies: Vec<SchedulerConfiguration>,
    pub preemption: PreemptionSettings,
    pub runs: ReplayRuns,
}

#[derive(Clone, Debug, Args)]
pub struct ReplayRuns {
    /// Workers [default: the scaled machines of the workload]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub workers: Option<u32>,
    /// Map slots of each worker [default: the scaled slots of the workload]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub map_slots: Option<u32>,
    /// Reduce slots of each worker [default: likewise]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub reduce_slots: Option<u32>,
    /// Interval of worker reports, before scaling [default: that of the workload, else 1s]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub heartbeat: Option<Span>,
    /// How the time of a task passes
    #[arg(long, value_name = "BODY", default_value = "sleep")]
    pub body: TaskBody,
    /// Random seed [default: that of the workload, else 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Runs under each scheduler, with consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Folder for the report, the rows of all jobs (jobs.jsonl, jobs.csv) and the histories of the runs
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub costs: GivenCosts,
}

/// Runs everything and writes the report. After an interrupt the report has the finished runs.
pub fn replay(settings: &ReplaySettings, session: &Session) -> Result<ReplayReport> {
    let plans = plans(settings)?;
    let mut files = settings
        .runs
        .report
        .as_deref()
        .map(ReplayFiles::create)
        .transpose()?;
    let mut replayer = Replayer::new(settings.runs.body, session)?;
    replayer.recordings = files.as_ref().map(|files| files.folder.join(RECORDINGS));
    let first: Vec<LivePlan> = plans
        .iter()
        .filter_map(|of_one| of_one.first().cloned())
        .collect();
    let costs = measure_costs(&settings.runs.costs, &first, &mut replayer)?;
    let mut replaying = Replaying {
        settings,
        session,
        costs,
        runs: Vec::new(),
        lines: Vec::new(),
    };
    let ended = replaying.all(&plans, &mut replayer, files.as_mut());
    let interrupted = ended.as_ref().is_err_and(|error| signal(error).is_some());
    if let Err(error) = ended
        && (!interrupted || replaying.runs.is_empty())
    {
        return Err(error);
    }
    replayer.bench.end()?;
    let report = replaying.report(&first, !interrupted);
    if let Some(files) = files {
        files.write(&report, &replaying.lines)?;
    }
    Ok(report)
}

/// For each policy, a plan for each repetition.
fn plans(settings: &ReplaySettings) -> Result<Vec<Vec<LivePlan>>> {
    let ReplaySettings {
        source,
        scale,
        runs,
        ..
    } = settings;
    let shape = shape(settings)?;
    let blind = settings
        .policies
        .iter()
        .find(|policy| policy.uses_output_bytes());
    if let Some(blind) = blind.filter(|_| !source.has_output_bytes()) {
        let scheduler = blind.scheduler.to_string();
        let workload = source.name().to_owned();
        return Err(usage(format_args!(
            "{scheduler} orders reduces by the output bytes of maps, and no job of {workload} has any; add output-bytes to the \
             maps of its jobs"
        )));
    }
    let first = runs.seed.unwrap_or(source.seed());
    let of_policy = |policy: &SchedulerConfiguration| {
        let repetitions = (0..runs.repetitions).map(|number| {
            let seed = first + u64::from(number);
            let full = FullPlan {
                jobs: &source.jobs(seed),
                cluster: shape,
                heartbeat: runs.heartbeat.unwrap_or(source.heartbeat()),
                policy,
                preemption: &settings.preemption,
                seed,
            };
            LivePlan::new(&full, *scale)
        });
        repetitions.collect::<Result<Vec<LivePlan>>>()
    };
    settings.policies.iter().map(of_policy).collect()
}

fn shape(settings: &ReplaySettings) -> Result<ClusterShape> {
    let ReplayRuns {
        workers,
        map_slots,
        reduce_slots,
        ..
    } = &settings.runs;
    let scaled = settings
        .source
        .cluster()
        .map(|shape| settings.scale.cluster(shape, *workers));
    let mut shape = match (scaled, workers, map_slots, reduce_slots) {
        (Some(shape), ..) => shape,
        (None, Some(workers), Some(map), Some(reduce)) => {
            ClusterShape::with_slots(*workers, *map, *reduce)
        }
        (None, ..) => {
            return Err(usage(
                "the workload has no cluster; give --workers, --map-slots and --reduce-slots",
            ));
        }
    };
    shape.map_slots = map_slots.unwrap_or(shape.map_slots);
    shape.reduce_slots = reduce_slots.unwrap_or(shape.reduce_slots);
    Ok(shape)
}

struct ReplayFiles {
    folder: PathBuf,
    raw: RawFile,
}

impl ReplayFiles {
    fn create(folder: &Path) -> Result<ReplayFiles> {
        let failed = cannot("make", folder);
        fs::create_dir_all(folder).map_err(failed)?;
        let raw = folder.join("jobs.jsonl");
        if raw.exists() {
            return Err(usage(format_args!(
                "{} has a report already; name another folder with --report",
                folder.display()
            )));
        }
        Ok(ReplayFiles {
            folder: folder.to_owned(),
            raw: RawFile::create(&raw)?,
        })
    }

    fn write(self, report: &ReplayReport, lines: &[ReplayLine]) -> Result<()> {
        report::write_csv(&self.folder.join("jobs.csv"), lines)?;
        report.write(&self.folder)
    }
}

struct Replaying<'a> {
    settings: &'a ReplaySettings,
    session: &'a Session,
    costs: Costs,
    /// With their simulations.
    runs: Vec<(RunName, LiveRun, Run)>,
    lines: Vec<ReplayLine>,
}

impl Replaying<'_> {
    /// Runs all policies in each repetition, starting with another one each time.
    fn all(
        &mut self,
        plans: &[Vec<LivePlan>],
        replayer: &mut Replayer<'_>,
        mut files: Option<&mut ReplayFiles>,
    ) -> Result<()> {
        for repetition in 0..self.settings.runs.repetitions as usize {
            let mut references: Option<References> = None;
            for turn in 0..plans.len() {
                let plan = &plans[(repetition + turn) % plans.len()][repetition];
                if references.is_none() {
                    references = Some(replayer.references(plan)?);
                }
                let simulated = plan.simulate(&self.costs)?;
                let name = RunName {
                    scheduler: plan.policy.scheduler,
                    seed: plan.seed,
                    repetition: repetition as u32 + 1,
                };
                let expected = Duration::from_micros(simulated.ended.0);
                let RunName {
                    scheduler,
                    repetition,
                    ..
                } = name;
                let all = self.settings.runs.repetitions;
                let seconds = expected.as_secs_f64();
                self.session.log(format!(
                    "{scheduler} {repetition}/{all}: {seconds:.1} s in simulated time"
                ));
                let live = replayer.run(
                    plan,
                    references.as_ref().unwrap_or(&References::new()),
                    expected,
                )?;
                self.take(name, live, simulated, files.as_deref_mut())?;
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        name: RunName,
        live: LiveRun,
        simulated: Run,
        files: Option<&mut ReplayFiles>,
    ) -> Result<()> {
        let lines: Vec<ReplayLine> = live
            .jobs
            .iter()
            .map(|job| ReplayLine::of(job, name, &simulated))
            .collect();
        if let Some(files) = files {
            lines.iter().try_for_each(|line| files.raw.add(line))?;
        }
        self.lines.extend(lines);
        let run = figures(name, &live, &simulated);
        self.session.log(format!(
            "{} {}: mean sojourn {:.3} s, simulated {:.3} s, {}{}",
            run.scheduler,
            run.repetition,
            run.mean_sojourn,
            run.simulated_mean_sojourn,
            if run.identical {
                "outputs right"
            } else {
                "AN OUTPUT DIFFERS"
            },
            if run.counts {
                ""
            } else {
                "; a job was submitted TOO LATE or out of order: the run does not count"
            },
        ));
        self.runs.push((name, live, simulated));
        Ok(())
    }

    fn report(&self, plans: &[LivePlan], complete: bool) -> ReplayReport {
        let agreements = plans.iter().filter_map(|plan| {
            let scheduler = plan.policy.scheduler;
            let of_it = self
                .runs
                .iter()
                .filter(|(name, live, _)| name.scheduler == scheduler && live.counts());
            let pairs: Vec<(&LiveRun, &Run)> = of_it
                .map(|(_, live, simulated)| (live, simulated))
                .collect();
            Some((scheduler, Agreement::of(&pairs)?))
        });
        let cluster = plans.first().map(|plan| plan.cluster);
        ReplayReport {
            experiment: "replay",
            machine: Machine::describe(),
            workload: self.settings.source.name().to_owned(),
            scale: self.settings.scale,
            cluster: cluster.unwrap_or(ClusterShape::with_slots(0, 0, 0)),
            body: self.settings.runs.body,
            intervals: plans
                .iter()
                .map(|plan| (plan.policy.scheduler, plan.intervals.clone()))
                .collect(),
            costs: self.costs,
            runs: self
                .runs
                .iter()
                .map(|(name, live, simulated)| figures(*name, live, simulated))
                .collect(),
            agreements: agreements.collect(),
            complete,
        }
    }
}

fn figures(name: RunName, live: &LiveRun, simulated: &Run) -> ReplayRun {
    let mean = |sum: u64, count: usize| sum as f64 / 1e6 / count.max(1) as f64;
    let sojourns = live
        .jobs
        .iter()
        .map(|job| job.ended.saturating_sub(job.submitted))
        .sum();
    let first = live.jobs.iter().map(|job| job.submitted).min().unwrap_or(0);
    let last = live.jobs.iter().map(|job| job.ended).max().unwrap_or(0);
    let preempted = live.jobs.iter().map(|job| &job.times);
    ReplayRun {
        scheduler: name.scheduler,
        repetition: name.repetition,
        seed: name.seed,
        jobs: live.jobs.len(),
        mean_sojourn: mean(sojourns, live.jobs.len()),
        simulated_mean_sojourn: mean(
            simulated.jobs.iter().map(|job| job.sojourn().0).sum(),
            simulated.jobs.len(),
        ),
        makespan: last.saturating_sub(first) as f64 / 1e6,
        preemptions: preempted
            .map(|times| times.suspends + times.checkpoints + times.kills)
            .sum(),
        late: live.late().0 as f64 / 1e6,
        late_max: live.late_max.0 as f64 / 1e6,
        counts: live.counts(),
        identical: live.jobs.iter().all(|job| job.identical),
    }
}
