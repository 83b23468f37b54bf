//! Simulates plans on a simple model of a cluster, with failures, suspensions and checkpoints, and replays
//! the recorded history. Also replays recordings of earlier versions.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use napreduce_engine::{AttemptId, PreemptionSettings, Primitive, TaskId, WorkerId};
use napreduce_engine::{TaskKind, Time};
use napreduce_history::{History, HistoryLimits, HistoryStore, RecordedCluster, WorkerGroup};
use napreduce_protocol::{
    AttemptFigures, AttemptSummary, CheckpointSupport, CounterValues, JobDetail, JobEnd, JobPhase,
    JobPlan, JobProgress, JobReport, JobSettings, JobSummary, PreemptionEnd, PreemptionSummary,
    RestoreSummary, ResumeSummary,
};
use napreduce_sim::{SimulatedMap, SimulatedReduce};
use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// The flags of `nap sim`.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    arguments: Arguments,
}

const EPOCH: u64 = 1_790_000_000_000;

/// The disturbances of a task, in milliseconds.
#[derive(Debug, Clone)]
struct Luck {
    waits: u64,
    fails_after: Option<u64>,
    /// The point of its work at which it is suspended, in percent, and the duration.
    naps: Option<(u64, u64)>,
    /// The point of its work at which a checkpoint is written, in percent.
    saved_at: Option<u64>,
    /// How long before the end of the last map a reduce starts.
    early: u64,
}

prop_compose! {
    fn any_luck()(
        waits in 0..5_000_u64, fails_after in prop::option::of(1..2_000_u64),
        naps in prop::option::of((0..=100_u64, 1..9_000_u64)), saved_at in prop::option::of(0..=100_u64),
        early in 0..3_000_u64,
    ) -> Luck {
        Luck { waits, fails_after, naps, saved_at, early }
    }
}

prop_compose! {
    fn any_plan()(
        submit in 0..60_000_u64, maps in vec((1..9_000_u64, 0..9_000_u64, 0..9_000_u64), 1..6),
        reduces in vec((1..9_000_u64, 0..9_000_u64), 0..4), queue in "[a-c]", priority in -2..3_i32,
        deadline in prop::option::of(1..9_000_u64), slowstart_permille in 0..=1000_u32, saved: bool,
    ) -> SimulatedJob {
        let millis = Span::from_millis;
        let mut plan = SimulatedJob::new("count", Time(0) + millis(submit));
        plan.queue = queue.as_str().into();
        plan.class = plan.queue.clone();
        plan.user = "ada".into();
        (plan.priority, plan.slowstart_permille, plan.memory) = (priority, slowstart_permille, 64 << 20);
        plan.deadline = deadline.map(millis);
        plan.maps = maps.into_iter().map(|(work, bytes, output_bytes)| {
            SimulatedMap { work: millis(work), bytes, output_bytes, preferred: Vec::new() }
        }).collect();
        plan.reduces = reduces.into_iter().map(|(work, bytes)| {
            SimulatedReduce { shuffle: Span(0), reduce: millis(work), bytes }
        }).collect();
        if !saved {
            plan.unsaved = TaskKind::ALL.into_iter().filter(|kind| plan.tasks(*kind) > 0).collect();
        }
        plan
    }
}

/// The recorded history of one job.
struct Diary {
    job: JobId,
    detail: JobDetail,
}

impl Diary {
    fn new(job: JobId, plan: &SimulatedJob) -> Diary {
        let mut progress = JobProgress::default();
        (progress.map.tasks, progress.reduce.tasks) =
            (plan.maps.len() as u32, plan.reduces.len() as u32);
        let summary = JobSummary {
            job,
            name: plan.name.to_string(),
            user: plan.user.to_string(),
            queue: plan.queue.to_string(),
            priority: plan.priority,
            phase: JobPhase::Succeeded,
            reason: None,
            submitted_millis: EPOCH + plan.submit.0 / 1_000,
            ended_millis: None,
            progress,
            output: PathBuf::from("out"),
            unrecorded: None,
        };
        Diary {
            job,
            detail: JobDetail::new(summary),
        }
    }

    fn attempt(&mut self, attempt: AttemptId, launched_millis: u64, ended: u64, end: &str) {
        self.detail.attempts.push(AttemptSummary {
            attempt,
            worker: WorkerId(1),
            worker_name: "w".to_owned(),
            launched_millis,
            ended_millis: Some(ended),
            end: Some(end.to_owned()),
            figures: None,
            moments: None,
        });
    }

    fn nap(&mut self, attempt: AttemptId, from: u64, until: u64) {
        let wanted =
            PreemptionSummary::wanted(from * 1_000 - 9, attempt, WorkerId(1), Primitive::Suspend);
        let freed_micros = Some(from * 1_000);
        let end = Some(PreemptionEnd::Suspended);
        self.detail.preemptions.push(PreemptionSummary {
            freed_micros,
            end,
            ..wanted
        });
        self.detail.resumes.push(ResumeSummary {
            attempt,
            worker: WorkerId(1),
            ordered_micros: until * 1_000 - 5,
            resumed_micros: Some(until * 1_000),
            worker_micros: None,
            suspended_millis: until - from,
            swapped_bytes: 0,
            swapped_in_bytes: 0,
        });
    }

    /// Runs a task of this much work from a given time; returns its end.
    fn task(
        &mut self,
        kind: TaskKind,
        index: usize,
        work: u64,
        (from, early): (u64, u64),
        luck: &Luck,
    ) -> u64 {
        let task = TaskId {
            job: self.job,
            kind,
            index: index as u32,
        };
        let mut number = 1;
        let mut now = from + luck.waits;
        let mut left = work;
        if let Some(after) = luck.fails_after {
            self.attempt(
                AttemptId { task, number },
                now,
                now + after,
                "failed: no luck",
            );
            (number, now) = (2, now + after);
        }
        // A reduce that starts early is idle until the maps are done.
        let mut launched = if number == 1 && luck.waits == 0 {
            now.saturating_sub(early)
        } else {
            now
        };
        if let Some(percent) = luck.saved_at {
            let first = AttemptId { task, number };
            let second = AttemptId {
                task,
                number: number + 1,
            };
            let saved = work * percent / 100;
            self.attempt(first, launched, now + saved, "checkpointed");
            let restore = RestoreSummary {
                attempt: second,
                from: first,
                worker: WorkerId(1),
                from_worker: None,
                ordered_micros: 0,
                restored_micros: None,
                worker_micros: None,
                work_saved_millis: saved,
                refused: None,
            };
            self.detail.restores.push(restore);
            (number, now, left) = (number + 1, now + saved + 70, work - saved);
            launched = now;
        }
        let attempt = AttemptId { task, number };
        let mut end = now + left;
        if let Some((percent, lasts)) = luck.naps {
            let asleep = now + left * percent / 100;
            self.nap(attempt, asleep, asleep + lasts);
            end += lasts;
        }
        self.attempt(attempt, launched, end, "succeeded");
        end
    }

    fn moved(&mut self, kind: TaskKind, index: usize, input_bytes: u64, output_bytes: u64) {
        let task = TaskId {
            job: self.job,
            kind,
            index: index as u32,
        };
        let done = self
            .detail
            .attempts
            .iter_mut()
            .rfind(|one| one.attempt.task == task)
            .expect("it was done");
        done.figures = Some(AttemptFigures {
            input_bytes,
            output_bytes,
            ..AttemptFigures::default()
        });
    }

    /// Runs a job with these disturbances; returns it with its history.
    fn run(job: JobId, plan: &SimulatedJob, luck: &[Luck]) -> EndedJob {
        let mut diary = Diary::new(job, plan);
        let begin = diary.detail.summary.submitted_millis;
        let mut luck = luck.iter().cycle();
        let mut maps_end = begin;
        for (index, map) in plan.maps.iter().enumerate() {
            let end = diary.task(
                TaskKind::Map,
                index,
                map.work.0 / 1_000,
                (begin, 0),
                luck.next().expect("some"),
            );
            maps_end = maps_end.max(end);
            diary.moved(TaskKind::Map, index, map.bytes, map.output_bytes);
        }
        let mut end = maps_end;
        for (index, reduce) in plan.reduces.iter().enumerate() {
            let lucky = luck.next().expect("some");
            let work = reduce.reduce.0 / 1_000;
            end = end.max(diary.task(
                TaskKind::Reduce,
                index,
                work,
                (maps_end, lucky.early),
                lucky,
            ));
            diary.moved(TaskKind::Reduce, index, reduce.bytes, 5);
        }
        diary.detail.summary.ended_millis = Some(end);
        diary.finish(plan)
    }

    fn finish(self, plan: &SimulatedJob) -> EndedJob {
        let Diary { mut detail, .. } = self;
        let JobSummary {
            job,
            ref name,
            ref output,
            ..
        } = detail.summary;
        let name = name.clone();
        let output = output.clone();
        let counters = CounterValues::default();
        let wall = Duration::ZERO;
        let parts = Vec::new();
        let mut settings = JobPlan::new("count", "out");
        settings.reduces = plan.reduces.len() as u32;
        settings.deadline = plan
            .deadline
            .map(|deadline| Duration::from_micros(deadline.0));
        (settings.slowstart_permille, settings.task_memory) =
            (plan.slowstart_permille, plan.memory);
        let saved = plan.unsaved.is_empty();
        settings.checkpoint = CheckpointSupport {
            map: saved,
            reduce: saved,
        };
        let end = JobEnd::Succeeded(JobReport {
            job,
            name,
            counters,
            wall,
            parts,
            output,
        });
        detail.settings = Some(JobSettings::from_plan(&settings));
        EndedJob {
            token: u128::from(job.0),
            end,
            detail,
            cluster: Some(cluster()),
            logs: Vec::new(),
        }
    }
}

fn cluster() -> RecordedCluster {
    let group = |workers, map_slots| WorkerGroup {
        workers,
        map_slots,
        reduce_slots: 1,
    };
    RecordedCluster {
        scheduler: "hfsp".to_owned(),
        tables: Some(serde_json::json!({})),
        preemption: serde_json::json!({ "primitive": "suspend" }),
        workers: vec![group(2, 3), group(1, 1)],
    }
}

fn history(jobs: &[EndedJob]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = HistoryLimits {
        jobs_max: usize::MAX,
        bytes_max: u64::MAX,
    };
    let (history, _) = History::open(folder.path(), limits).expect("a history");
    for job in jobs {
        history.add(job).expect("written");
    }
    folder
}

fn read(folder: &TempDir) -> Recorded {
    Recorded::read(folder.path().to_str().expect("text"), &[]).expect("readable")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn recorded_plan_is_rebuilt(
        plans in vec(any_plan(), 1..6), luck in vec(any_luck(), 1..12),
    ) {
        let numbered = (1..).map(JobId).zip(&plans);
        let jobs: Vec<EndedJob> = numbered.map(|(job, plan)| Diary::run(job, plan, &luck)).collect();
        let rebuilt = read(&history(&jobs));
        let mut expected = plans;
        expected.sort_by_key(|plan| plan.submit);
        let first = expected[0].submit;
        expected.iter_mut().for_each(|plan| plan.submit = Time(plan.submit.0 - first.0));
        prop_assert_eq!(rebuilt.jobs, &expected[..]);
    }
}

fn plan() -> SimulatedJob {
    SimulatedJob::new("count", Time(0))
        .with_maps(3, Span::from_secs(4))
        .with_reduces(1, Span(0), Span::from_secs(2))
}

const NO_LUCK: Luck = Luck {
    waits: 0,
    fails_after: None,
    naps: None,
    saved_at: None,
    early: 0,
};

#[test]
fn policy_and_workers_are_those_of_most_jobs() {
    let run = |job| Diary::run(JobId(job), &plan(), &[NO_LUCK]);
    let mut odd = run(3);
    let other = odd.cluster.as_mut().expect("a cluster");
    (other.scheduler, other.workers[0].workers) = ("fifo".to_owned(), 9);
    let recorded = read(&history(&[run(1), run(2), odd]));
    let variant = recorded.variant().expect("a policy");
    assert_eq!(variant.label, "hfsp as recorded");
    let slots = |map| Slots { map, reduce: 1 };
    assert_eq!(
        variant.settings.unlike_slots,
        [slots(3), slots(3), slots(1)]
    );
    let remarks = recorded.remarks.join("\n");
    assert!(
        remarks.contains(
            "1 of 3 jobs ended under another policy or other parameters than the compared hfsp"
        ),
        "{remarks}"
    );
    assert!(
        remarks.contains("1 of 3 jobs ended with other workers"),
        "{remarks}"
    );
}

#[test]
fn variant_with_other_settings_than_the_recording_is_noted() {
    let mut with_tables = Diary::run(JobId(1), &plan(), &[NO_LUCK]);
    let cluster = with_tables.cluster.as_mut().expect("a cluster");
    cluster.tables = Some(serde_json::json!({ "fair": { "preemption": true } }));
    let recorded = read(&history(&[with_tables]));
    let own = recorded.variant().expect("a policy");
    let variant = |scheduler: &str, preemption: PreemptionSettings, file: Option<&str>| {
        let policy = SchedulerConfiguration::named(scheduler.parse().expect("a scheduler"));
        let mut settings = own.settings.clone();
        settings.engine.preemption = preemption;
        Variant {
            label: scheduler.to_owned(),
            configuration: file.map(str::to_owned),
            primitive: None,
            subject: Subject::Policy(Box::new(policy)),
            settings,
        }
    };
    let notes = |variant: Variant| {
        let Flags { arguments } = Flags::parse_from(["sim"]);
        recorded
            .notes_on_other_settings(&[variant], &arguments)
            .join("; ")
    };
    let same = own.settings.engine.preemption;
    let other = PreemptionSettings::default();
    assert_eq!(notes(variant("hfsp", same, None)), "");
    assert_eq!(
        notes(variant("natjam", same, None)),
        "",
        "its recorded table is the default"
    );
    assert!(
        notes(variant("fair", same, None))
            .contains("fair does not use [scheduler.fair] of the recording")
    );
    assert!(
        notes(variant("hfsp", other, None))
            .contains("hfsp does not use [preemption] of the recording")
    );
    let both = notes(variant("fair", other, None));
    assert!(
        both.contains("[scheduler.fair] and [preemption]") && both.contains("--configuration"),
        "{both}"
    );
    assert!(
        notes(variant("composed", same, None)).contains("[scheduler.composed]"),
        "it reads fair's table"
    );
    assert_eq!(notes(variant("fair", other, Some("own.toml"))), "");
}

#[test]
fn recording_of_earlier_version_has_guessed_slots() {
    let mut early = Diary::run(JobId(1), &plan(), &[NO_LUCK]);
    (early.cluster, early.detail.settings) = (None, None);
    early
        .detail
        .attempts
        .iter_mut()
        .for_each(|attempt| attempt.figures = None);
    let recorded = read(&history(&[early]));
    assert!(recorded.variant().is_none(), "no policy is known");
    assert_eq!(recorded.shape().slots(), Slots { map: 3, reduce: 1 });
    let remarks = recorded.remarks.join("\n");
    assert!(
        remarks.contains("1 of 1 jobs were recorded by an earlier version, without policy"),
        "{remarks}"
    );
    assert!(remarks.contains("assuming the maximum in use"), "{remarks}");
}

#[test]
fn window_remarks_jobs_that_still_ran() {
    let later = SimulatedJob {
        submit: Time(5_000_000),
        ..plan()
    };
    let folder = history(&[
        Diary::run(JobId(1), &plan(), &[NO_LUCK]),
        Diary::run(JobId(2), &later, &[NO_LUCK]),
    ]);
    let read = |window: &str| {
        Recorded::read(&format!("{}@{window}", folder.path().display()), &[]).expect("readable")
    };
    let remark = "1 job is missing, submitted before FROM but still running";
    let cut = read("1s..");
    assert_eq!((cut.jobs.len(), cut.jobs[0].submit), (1, Time(0)));
    assert!(
        cut.remarks.iter().any(|one| one.starts_with(remark)),
        "{:?}",
        cut.remarks
    );
    let first = read("..1s");
    assert_eq!(first.jobs.len(), 1);
    assert!(
        !first.remarks.iter().any(|one| one.starts_with(remark)),
        "{:?}",
        first.remarks
    );
}

#[test]
fn chosen_jobs_are_read_and_others_are_remarked() {
    let run = |job| Diary::run(JobId(job), &plan(), &[NO_LUCK]);
    let folder = history(&[run(1), run(2), run(3)]);
    let read = |chosen: &[JobId]| Recorded::read(folder.path().to_str().expect("text"), chosen);
    let two = read(&[JobId(3), JobId(1)]).expect("readable");
    assert_eq!(two.jobs.len(), 2);
    let remark = "1 job is missing, not chosen but running at the same time";
    assert!(
        two.remarks.iter().any(|one| one.starts_with(remark)),
        "{:?}",
        two.remarks
    );
    let error = read(&[JobId(2), JobId(9)])
        .err()
        .expect("refused")
        .to_string();
    assert!(
        error.starts_with("job_0009: not among the jobs of this window in "),
        "{error}"
    );
}

#[test]
fn unknown_policy_is_remarked() {
    let mut later = Diary::run(JobId(1), &plan(), &[NO_LUCK]);
    later.cluster.as_mut().expect("a cluster").scheduler = "psychic".to_owned();
    let recorded = read(&history(&[later]));
    assert!(recorded.variant().is_none());
    let remarks = recorded.remarks.join("\n");
    assert!(
        remarks.contains("the recorded policy psychic cannot be simulated: "),
        "{remarks}"
    );
}

#[test]
fn measured_costs_are_medians() {
    let naps = Luck {
        naps: Some((50, 700)),
        ..NO_LUCK
    };
    let mut job = Diary::run(JobId(1), &plan(), &[naps]);
    for (one, took) in job
        .detail
        .preemptions
        .iter_mut()
        .zip([4_000, 90_000, 5_000, 6_000])
    {
        one.ordered_micros = one.freed_micros.map(|freed| freed - took);
    }
    job.detail.preemptions[0].by = "operator".to_owned();
    let recorded = read(&history(&[job]));
    assert_eq!(recorded.overheads.suspend.fixed, Span(5_500));
    assert_eq!(recorded.overheads.resume.fixed, Span(5));
    let remarks = recorded.remarks.join("\n");
    assert!(remarks.contains("suspend 5.5 ms (4)"), "{remarks}");
    assert!(
        remarks.contains("--checkpoint-write, --checkpoint-read, --kill-cleanup"),
        "{remarks}"
    );
    assert!(
        remarks.contains("1 request of an operator is not repeated"),
        "{remarks}"
    );
}

#[test]
fn implausible_recordings_are_rejected() {
    let mut long = Diary::run(JobId(1), &plan(), &[NO_LUCK]);
    long.detail.attempts[0].ended_millis = Some(u64::MAX);
    let folder = history(&[long]);
    let error = Recorded::read(folder.path().to_str().expect("text"), &[])
        .err()
        .expect("refused");
    assert!(
        error
            .to_string()
            .contains("job_0001: the job or a task takes more than a year"),
        "{error}"
    );
    let mut many = Diary::run(JobId(1), &plan(), &[NO_LUCK]);
    many.cluster.as_mut().expect("a cluster").workers[0].workers = u32::MAX;
    let folder = history(&[many]);
    let error = Recorded::read(folder.path().to_str().expect("text"), &[])
        .err()
        .expect("refused");
    assert!(
        error.to_string().contains("has 4294967296 workers"),
        "{error}"
    );
}
