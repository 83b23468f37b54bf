//! Recorded runs: the job histories agree with the run's slot time.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use napreduce_engine::{PrimitiveChoice, TaskId, TaskKind};
use napreduce_history::{EndedJob, HistoryFolder, RecordedCluster, Timeline, write_simulated};
use napreduce_protocol::{JobDetail, JobEnd, PreemptionEnd};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{Recording, Run, Simulation, SimulationSettings, published};

/// Runs the published workload in which a small job preempts a large one, and records its history.
fn record(primitive: PrimitiveChoice) -> (Run, Vec<EndedJob>) {
    let file = published("natjam-xl-s")
        .expect("the mix is published")
        .expect("the mix is valid");
    let shape = file.cluster.expect("the mix has a cluster");
    let mut settings = SimulationSettings::new(shape.machines, shape.slots());
    settings.overheads = file.overheads;
    settings.engine.preemption.primitive = Some(primitive);
    let policy = SchedulerConfiguration {
        scheduler: "natjam".parse().expect("natjam is a policy"),
        ..Default::default()
    };
    let ended: Rc<RefCell<Vec<EndedJob>>> = Rc::default();
    let kept = Rc::clone(&ended);
    let recording = Recording {
        cluster: RecordedCluster {
            scheduler: "natjam".to_owned(),
            ..RecordedCluster::default()
        },
        keep: Box::new(move |job| {
            kept.borrow_mut().push(job);
            Ok(())
        }),
    };
    let simulation = Simulation::new(
        policy.build().expect("published values are valid"),
        settings,
        file.workload(0),
    );
    let run = simulation
        .with_recording(recording)
        .run()
        .expect("the run ends");
    (run, ended.take())
}

#[test]
fn recorded_stints_match_slot_time() {
    for primitive in [
        PrimitiveChoice::Kill,
        PrimitiveChoice::Suspend,
        PrimitiveChoice::Checkpoint,
    ] {
        let (run, jobs) = record(primitive);
        assert_eq!(jobs.len(), run.jobs.len());
        let timelines: Vec<Timeline> = jobs
            .iter()
            .map(|job| Timeline::new(&job.detail, run.ended.0))
            .collect();
        let stints = || timelines.iter().flat_map(|timeline| &timeline.stints);
        let held: u64 = stints()
            .map(|stint| stint.until_micros - stint.from_micros)
            .sum();
        let busy: u64 = run.slot_time.busy.iter().sum();
        // Launches and ends are truncated to milliseconds.
        let unknown = 2_000 * stints().count() as u64;
        assert!(
            held.abs_diff(busy) <= unknown,
            "{primitive:?}: {held} differs from {busy} by more than {unknown}"
        );
    }
}

#[test]
fn ledger_contains_every_preemption() {
    let cases = [
        (PrimitiveChoice::Kill, PreemptionEnd::Killed),
        (PrimitiveChoice::Suspend, PreemptionEnd::Suspended),
        (PrimitiveChoice::Checkpoint, PreemptionEnd::Checkpointed),
    ];
    for (primitive, expected) in cases {
        let (run, jobs) = record(primitive);
        let happened: u64 = run
            .jobs
            .iter()
            .map(|job| job.preemptions.suspend + job.preemptions.checkpoint + job.preemptions.kill)
            .sum();
        let ledger: Vec<_> = jobs
            .iter()
            .flat_map(|job| &job.detail.preemptions)
            .filter(|preemption| preemption.end == Some(expected))
            .collect();
        assert!(happened > 0, "{primitive:?}: no preemption");
        assert_eq!(ledger.len() as u64, happened, "{primitive:?}");
        assert!(
            ledger
                .iter()
                .all(|one| one.by == "natjam" && one.beneficiary.is_some())
        );
        assert!(
            ledger.iter().any(|one| one.used_by.is_some()),
            "{primitive:?}: no slot was reused"
        );
        let lost: u64 = ledger.iter().map(|one| one.work_lost_millis).sum();
        let saved: u64 = ledger.iter().map(|one| one.work_saved_millis).sum();
        let expects_loss = primitive == PrimitiveChoice::Kill;
        let expects_gain = primitive != PrimitiveChoice::Kill;
        assert_eq!(
            (lost > 0, saved > 0),
            (expects_loss, expects_gain),
            "{primitive:?}: {lost} lost, {saved} saved"
        );
    }
}

#[test]
fn written_history_matches_run() {
    let (run, jobs) = record(PrimitiveChoice::Suspend);
    let folder = tempfile::tempdir().expect("a temporary directory");
    for job in &jobs {
        write_simulated(folder.path(), job).expect("the history is written");
    }
    let read = HistoryFolder::open(folder.path()).expect("the directory is a history");
    assert_eq!(read.jobs().len(), run.jobs.len());
    for result in &run.jobs {
        let job = read
            .read(result.job)
            .expect("the history is readable")
            .expect("the job is stored");
        let written = jobs
            .iter()
            .find(|job| job.detail.summary.job == result.job)
            .expect("the job was recorded");
        // The head names the scheduler once, for the cluster.
        let scheduler = written.cluster.as_ref().map(RecordedCluster::in_force);
        assert_eq!(
            job.detail,
            JobDetail {
                scheduler,
                ..written.detail.clone()
            }
        );
        let JobEnd::Succeeded(report) = &job.end else {
            panic!("{:?}", job.end)
        };
        assert_eq!(
            report.wall.as_micros(),
            u128::from(result.sojourn().0),
            "{}",
            result.name
        );
        let [maps, reduces] = result.tasks;
        let moved = job
            .detail
            .attempts
            .iter()
            .filter(|attempt| attempt.figures.is_some());
        let tasks: BTreeSet<TaskId> = moved.map(|attempt| attempt.attempt.task).collect();
        let done = |kind| tasks.iter().filter(|task| task.kind == kind).count() as u32;
        assert_eq!(
            (done(TaskKind::Map), done(TaskKind::Reduce)),
            (maps, reduces)
        );
        assert_eq!(job.detail.summary.name, *result.name);
    }
}
