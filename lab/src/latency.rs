//! How long preemption takes on an otherwise idle cluster: from the coordinator's decision to the slot verified free
//! (suspend, checkpoint), to the task running again (resume) and to its first new output (restore). One reduce with
//! many small groups is preempted repeatedly. The coordinator records the times, so polling does not
//! change them.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use napreduce_engine::{AttemptId, AttemptState, JobId, Slots, TaskKind};
use napreduce_protocol::requests::CommandTask;
use napreduce_protocol::{ByteSize, JobDetail, JobPlan, PreemptionEnd, TaskCommand, TaskPhase};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::cluster::{Bench, Cluster, Layout};
use crate::jobs::{RecordFile, TaskBody, TimedTask, TimedTasks};
use crate::machine::Machine;
use crate::outputs::OutputDigest;
use crate::report::{Report, counted, dash, table};
use crate::session::Session;
use crate::statistics::{known_percentile, percentile, samples_needed};
use crate::workspace::remove;

/// Time of one group of the reduce.
const GROUP_MICROS: u64 = 200;
/// Work per sample, and maximum length of a job: several samples see the task at different ages.
const SAMPLE_SECONDS: f64 = 0.15;
const JOB_SECONDS_LEAST: f64 = 3.0;
const JOB_SECONDS_MOST: f64 = 20.0;
/// Between two preemptions: the task works and makes progress.
const PAUSE_MILLIS: std::ops::Range<u64> = 20..60;
/// A job whose reduce has done this share may finish.
const ENOUGH: f64 = 0.9;
const HEARTBEAT: Duration = Duration::from_millis(200);
const LIMIT: Duration = Duration::from_secs(120);
const REASON: &str = "its latency is measured";
const SEED: u64 = 41;

#[derive(Clone, Debug, Args)]
pub struct LatencySettings {
    /// Samples of each kind; a p99 is judged by 100 or more
    #[arg(long, value_name = "N", default_value = "200", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
}

/// Values sampled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    SuspendAndResume,
    CheckpointAndRestore,
}

pub fn latency(settings: &LatencySettings, session: &Session) -> Result<LatencyReport> {
    let mut bench = Bench::new(session, ByteSize::new(64 << 20))?;
    let report = measure(settings.samples, &mut bench)?;
    bench.end()?;
    Ok(report)
}

/// Measures on a new cluster with one reduce slot.
pub fn measure(samples: u32, bench: &mut Bench<'_>) -> Result<LatencyReport> {
    let folder = bench.work.fresh("latency")?;
    let layout = Layout {
        workers: vec![Slots { map: 1, reduce: 1 }],
        heartbeat: HEARTBEAT,
        configuration: "[coordinator]\nspeculation = false\n".to_owned(),
        confinement: None,
    };
    let seconds = (f64::from(samples) * SAMPLE_SECONDS).clamp(JOB_SECONDS_LEAST, JOB_SECONDS_MOST);
    let reduce = TimedTask {
        micros: (seconds * 1e6) as u64,
        ..TimedTask::default()
    };
    let tasks = TimedTasks {
        body: Some(TaskBody::Cpu),
        rounds_per_second: bench.rounds_per_second(),
        fill_mib: 0,
        steps: 1,
        group_micros: GROUP_MICROS,
        maps: vec![TimedTask::default()],
        reduces: vec![reduce],
    };
    let records = RecordFile::write(folder.join("records"), 1, tasks.steps)?;
    let output = folder.join("output");
    let mut measuring = Measuring {
        cluster: bench.start(&folder, &layout)?,
        session: bench.session,
        plan: tasks.plan("latency", &records, output.clone())?,
        output,
        random: Pcg64Mcg::seed_from_u64(SEED),
        report: LatencyReport::new(Machine::describe()),
    };
    measuring.session.log("running the job undisturbed");
    let job = measuring.submit()?;
    measuring.cluster.wait(job, LIMIT)?;
    let reference = OutputDigest::take(&measuring.output)?;
    let wanted = samples as usize;
    for pair in [Pair::SuspendAndResume, Pair::CheckpointAndRestore] {
        while measuring.report.count(pair) < wanted {
            measuring.one_job(pair, wanted, &reference)?;
        }
    }
    measuring.cluster.stop()?;
    remove(&folder)?;
    measuring.report.conclude(wanted);
    Ok(measuring.report)
}

struct Measuring<'s> {
    cluster: Cluster<'s>,
    session: &'s Session,
    plan: JobPlan,
    /// Of the plan; taken away after each job.
    output: PathBuf,
    random: Pcg64Mcg,
    report: LatencyReport,
}

impl Measuring<'_> {
    fn submit(&mut self) -> Result<JobId> {
        self.cluster.submit(self.plan.clone())
    }

    /// Preempts one job until it is nearly done or there are enough samples; its times are taken from its
    /// history.
    fn one_job(&mut self, pair: Pair, wanted: usize, reference: &OutputDigest) -> Result<()> {
        let job = self.submit()?;
        let missing = wanted.saturating_sub(self.report.count(pair));
        for _ in 0..missing {
            let Some(attempt) = self.running(job)? else {
                break;
            };
            self.pause();
            self.preempt(pair, attempt)?;
        }
        let detail = self.cluster.wait(job, LIMIT)?;
        let identical = OutputDigest::take(&self.output)? == *reference;
        self.report.take(pair, &detail, identical);
        self.session.log(format!(
            "{}: {} of {wanted} samples, {}",
            match pair {
                Pair::SuspendAndResume => "suspend and resume",
                Pair::CheckpointAndRestore => "checkpoint and restore",
            },
            self.report.count(pair).min(wanted),
            if identical {
                "output right"
            } else {
                "OUTPUT DIFFERS"
            }
        ));
        Ok(())
    }

    fn pause(&mut self) {
        thread::sleep(Duration::from_millis(
            self.random.random_range(PAUSE_MILLIS),
        ));
    }

    /// The running reduce, once it has reported progress; `None` when the job is nearly done.
    fn running(&mut self, job: JobId) -> Result<Option<AttemptId>> {
        self.cluster
            .until(job, "a running reduce", LIMIT, |cluster| {
                let tasks = cluster.tasks(job)?;
                let reduce = tasks.iter().find(|task| task.task.kind == TaskKind::Reduce);
                let Some(reduce) = reduce.filter(|reduce| reduce.state != TaskPhase::Succeeded)
                else {
                    return Ok(Some(None));
                };
                let live = reduce
                    .live
                    .first()
                    .filter(|live| live.state == AttemptState::Running && live.bytes_done > 0);
                Ok(live.map(|live| {
                    let share = live.bytes_done as f64 / live.bytes_total.max(1) as f64;
                    (share < ENOUGH).then_some(live.attempt)
                }))
            })
    }

    fn preempt(&mut self, pair: Pair, attempt: AttemptId) -> Result<()> {
        if pair == Pair::CheckpointAndRestore {
            self.command(attempt, TaskCommand::Checkpoint)?;
            // The task is restored at once, as another attempt.
            return self.wait_for(attempt.task.job, "the restored attempt", move |detail| {
                detail
                    .restores
                    .iter()
                    .any(|one| one.from == attempt && one.restored_micros.is_some())
                    || !detail.summary.phase.is_active()
            });
        }
        self.command(attempt, TaskCommand::Suspend)?;
        let last = move |detail: &JobDetail| {
            detail
                .preemptions
                .iter()
                .rfind(|one| one.attempt == attempt)
                .map(|last| last.end)
        };
        self.wait_for(attempt.task.job, "the stopped attempt", |detail| {
            last(detail) != Some(None)
        })?;
        if last(&self.cluster.job(attempt.task.job)?) != Some(Some(PreemptionEnd::Suspended)) {
            return Ok(());
        }
        self.pause();
        self.command(attempt, TaskCommand::Resume)?;
        self.wait_for(attempt.task.job, "the resumed attempt", move |detail| {
            let resumes = detail.resumes.iter().filter(|one| one.attempt == attempt);
            resumes.filter(|one| one.resumed_micros.is_some()).count()
                >= detail
                    .preemptions
                    .iter()
                    .filter(|one| one.end == Some(PreemptionEnd::Suspended))
                    .count()
        })
    }

    fn command(&mut self, attempt: AttemptId, command: TaskCommand) -> Result<()> {
        let AttemptId { task, number } = attempt;
        let request = CommandTask {
            task,
            attempt: Some(number),
            command,
            reason: REASON.to_owned(),
        };
        self.cluster.client.ask(request)?;
        Ok(())
    }

    fn wait_for(
        &mut self,
        job: JobId,
        what: &str,
        holds: impl Fn(&JobDetail) -> bool,
    ) -> Result<()> {
        self.cluster.until(job, what, LIMIT, |cluster| {
            Ok(holds(&cluster.job(job)?).then_some(()))
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct LatencyReport {
    pub experiment: &'static str,
    pub machine: Machine,
    /// From the decision to the slot verified free.
    pub suspend: Latencies,
    /// From the decision to the task running again.
    pub resume: Latencies,
    /// From the decision to the slot free, the work saved.
    pub checkpoint: Latencies,
    /// From the launch of an attempt to its first new output.
    pub restore: Latencies,
    /// Whether every preempted job had the output of an undisturbed one.
    pub identical: bool,
    /// Preemptions with another end, and restored attempts that started from scratch.
    pub otherwise: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latencies {
    pub samples: usize,
    pub p50_ms: Option<f64>,
    /// `None` with fewer than a hundred samples.
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub p50_bound_ms: Option<f64>,
    pub p99_bound_ms: Option<f64>,
    /// The p50 of the part that the worker sees, from the order's arrival.
    pub worker_p50_ms: Option<f64>,
    pub every_ms: Vec<f64>,
    #[serde(skip)]
    worker_ms: Vec<f64>,
}

impl Latencies {
    fn bounded(p50: f64, p99: Option<f64>) -> Latencies {
        Latencies {
            p50_bound_ms: Some(p50),
            p99_bound_ms: p99,
            ..Latencies::default()
        }
    }

    fn add(&mut self, from_micros: u64, to_micros: u64, worker_micros: Option<u64>) {
        self.every_ms
            .push(to_micros.saturating_sub(from_micros) as f64 / 1e3);
        self.worker_ms
            .extend(worker_micros.map(|micros| micros as f64 / 1e3));
    }

    fn conclude(&mut self, most: usize) {
        self.every_ms.truncate(most);
        self.worker_ms.truncate(most);
        self.samples = self.every_ms.len();
        self.p50_ms = known_percentile(&self.every_ms, 50.0);
        self.p99_ms = known_percentile(&self.every_ms, 99.0);
        self.max_ms = percentile(&self.every_ms, 100.0);
        self.worker_p50_ms = known_percentile(&self.worker_ms, 50.0);
    }

    /// Whether every bound that can be judged is kept; a percentile of too few samples is not judged.
    fn is_kept(&self) -> bool {
        let kept = |value: Option<f64>, bound: Option<f64>| {
            value.zip(bound).is_none_or(|(value, bound)| value <= bound)
        };
        self.samples > 0
            && kept(self.p50_ms, self.p50_bound_ms)
            && kept(self.p99_ms, self.p99_bound_ms)
    }

    /// How many samples the bounds need, if there are fewer.
    fn lacking(&self) -> Option<usize> {
        let bounds = [(50.0, self.p50_bound_ms), (99.0, self.p99_bound_ms)];
        let needed = bounds.into_iter().filter(|(_, bound)| bound.is_some());
        let needed = needed.map(|(percent, _)| samples_needed(percent)).max();
        needed.filter(|needed| self.samples < *needed)
    }

    fn row(&self, name: &str) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.3}"));
        let bounds = match (self.p50_bound_ms, self.p99_bound_ms) {
            (Some(p50), Some(p99)) => format!("p50 {p50:.0}, p99 {p99:.0}"),
            (Some(p50), None) => format!("p50 {p50:.0}"),
            _ => "-".to_owned(),
        };
        vec![
            name.to_owned(),
            self.samples.to_string(),
            shown(self.p50_ms),
            shown(self.p99_ms),
            shown(self.max_ms),
            shown(self.worker_p50_ms),
            bounds,
            match (self.is_kept(), self.lacking()) {
                (false, _) => "NOT KEPT".to_owned(),
                (true, None) => "kept".to_owned(),
                (true, Some(needed)) if self.p50_ms.is_some() => {
                    format!("p50 kept; p99 needs {needed}")
                }
                (true, Some(needed)) => format!("not judged: needs {needed}"),
            },
        ]
    }
}

impl Report for LatencyReport {
    /// Whether every bound is kept and every output correct.
    fn succeeded(&self) -> bool {
        let all = [&self.suspend, &self.resume, &self.checkpoint, &self.restore];
        self.identical && all.iter().all(|one| one.is_kept())
    }

    fn table(&self) -> String {
        let rows = vec![
            self.suspend.row("suspend: decided to slot free"),
            self.resume.row("resume: decided to running"),
            self.checkpoint.row("checkpoint: decided to slot free"),
            self.restore.row("restore: launched to new output"),
        ];
        let columns = [
            "samples",
            "p50, ms",
            "p99, ms",
            "max, ms",
            "worker's p50",
            "bounds",
            "verdict",
        ];
        let outputs = if self.identical {
            "all outputs right"
        } else {
            "AN OUTPUT DIFFERS"
        };
        let otherwise = match self.otherwise {
            0 => String::new(),
            count => format!(
                "; {} ended otherwise than asked",
                counted(count, "preemption")
            ),
        };
        format!(
            "{}\n\n{}\n\n{outputs}{otherwise}\n",
            self.machine.line(),
            table(&["what"], &columns, rows)
        )
    }
}

impl LatencyReport {
    fn new(machine: Machine) -> LatencyReport {
        LatencyReport {
            experiment: "latency",
            machine,
            suspend: Latencies::bounded(2.0, Some(20.0)),
            resume: Latencies::bounded(2.0, None),
            checkpoint: Latencies::bounded(50.0, None),
            restore: Latencies::bounded(60.0, None),
            identical: true,
            otherwise: 0,
        }
    }

    /// The samples of which there are both kinds.
    fn count(&self, pair: Pair) -> usize {
        let (first, second) = match pair {
            Pair::SuspendAndResume => (&self.suspend, &self.resume),
            Pair::CheckpointAndRestore => (&self.checkpoint, &self.restore),
        };
        first.every_ms.len().min(second.every_ms.len())
    }

    /// Takes the samples of a job that has ended.
    fn take(&mut self, pair: Pair, detail: &JobDetail, identical: bool) {
        self.identical &= identical;
        let (sought, stops) = match pair {
            Pair::SuspendAndResume => (PreemptionEnd::Suspended, &mut self.suspend),
            Pair::CheckpointAndRestore => (PreemptionEnd::Checkpointed, &mut self.checkpoint),
        };
        for one in &detail.preemptions {
            match (one.end, one.freed_micros) {
                (Some(end), Some(freed)) if end == sought => {
                    stops.add(one.requested_micros, freed, one.worker_micros);
                }
                // It ended before it could be stopped, which is not a fault.
                (Some(PreemptionEnd::Finished), _) => {}
                _ => self.otherwise += 1,
            }
        }
        for one in &detail.resumes {
            if let Some(resumed) = one.resumed_micros {
                self.resume
                    .add(one.ordered_micros, resumed, one.worker_micros);
            }
        }
        for one in &detail.restores {
            match (one.restored_micros, &one.refused) {
                (_, Some(_)) => self.otherwise += 1,
                (Some(restored), None) => {
                    self.restore
                        .add(one.ordered_micros, restored, one.worker_micros)
                }
                (None, None) => {}
            }
        }
    }

    fn conclude(&mut self, most: usize) {
        for one in [
            &mut self.suspend,
            &mut self.resume,
            &mut self.checkpoint,
            &mut self.restore,
        ] {
            one.conclude(most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(suspend_ms: &[u64]) -> LatencyReport {
        let mut report = LatencyReport::new(Machine::describe());
        for ms in suspend_ms {
            report
                .suspend
                .add(1_000_000, 1_000_000 + ms * 1_000, Some(500));
        }
        for (latencies, micros) in [
            (&mut report.resume, 900),
            (&mut report.checkpoint, 30_000),
            (&mut report.restore, 59_000),
        ] {
            (0..6).for_each(|_| latencies.add(5, 5 + micros, None));
        }
        report.conclude(200);
        report
    }

    #[test]
    fn percentiles_are_judged_by_their_bounds() {
        let good = report(&[[1; 90].as_slice(), &[3; 10]].concat());
        assert!(
            good.succeeded() && !good.table().contains("needs"),
            "{}",
            good.table()
        );
        assert_eq!(
            (good.suspend.p50_ms, good.suspend.max_ms),
            (Some(1.0), Some(3.0))
        );
        assert_eq!(good.suspend.worker_p50_ms, Some(0.5));
        let slow = report(&[[1; 98].as_slice(), &[21; 2]].concat());
        assert!(
            !slow.succeeded() && slow.table().contains("NOT KEPT"),
            "{}",
            slow.table()
        );
    }

    #[test]
    fn tail_of_ten_samples_is_not_judged() {
        let few = report(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 90]);
        assert_eq!((few.suspend.p50_ms, few.suspend.p99_ms), (Some(1.0), None));
        assert!(
            few.succeeded() && few.table().contains("p50 kept; p99 needs 100"),
            "{}",
            few.table()
        );
        let fewer = report(&[1, 90]);
        assert_eq!(fewer.suspend.p50_ms, None);
        assert!(
            fewer.table().contains("not judged: needs 100"),
            "{}",
            fewer.table()
        );
    }

    #[test]
    fn json_has_the_four_kinds() {
        let json = serde_json::to_value(report(&[1; 100])).unwrap();
        for kind in ["suspend", "resume", "checkpoint", "restore"] {
            for value in ["p50_ms", "max_ms"] {
                assert!(json[kind][value].is_f64(), "{kind} {value}");
            }
        }
    }

    #[test]
    fn report_without_samples_fails() {
        let mut none = LatencyReport::new(Machine::describe());
        none.conclude(200);
        assert!(!none.succeeded());
    }
}
