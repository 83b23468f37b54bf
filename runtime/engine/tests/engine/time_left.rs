//! The estimated time left of jobs between events, under the order of a policy, and without progress.

use napreduce_engine::scenarios::spec;
use napreduce_engine::{
    AttemptId, Effect, Engine, EngineSettings, Event, Fifo, JobId, JobSpec, Order, Report, Slots,
    Span, TaskKind, Time, TimeLeft, WorkerId,
};

/// A cluster of one worker under FIFO, and the attempts that it was ordered to launch.
struct Cluster {
    engine: Engine,
    running: Vec<AttemptId>,
}

fn at(tenths: u64) -> Time {
    Time(tenths * 100_000)
}

impl Cluster {
    fn new(slots: u32) -> Cluster {
        let engine = Engine::new(Box::new(Fifo::default()), EngineSettings::default());
        let mut cluster = Cluster {
            engine,
            running: Vec::new(),
        };
        let slots = Slots {
            map: slots,
            reduce: 1,
        };
        let worker = WorkerId(1);
        let host = "ada".to_owned();
        let rack = "/default-rack".to_owned();
        cluster.handle(
            0,
            Event::WorkerJoined {
                worker,
                slots,
                host,
                rack,
            },
        );
        cluster
    }

    /// Handles an event at a time in tenths of a second, and starts what it launches.
    fn handle(&mut self, tenths: u64, event: Event) {
        let mut effects = self.engine.handle(at(tenths), event);
        while !effects.is_empty() {
            let mut launched = Vec::new();
            for effect in effects {
                if let Effect::Send {
                    order: Order::Launch { attempt, .. },
                    ..
                } = effect
                {
                    launched.push(attempt);
                }
            }
            effects = Vec::new();
            for attempt in launched {
                self.running.push(attempt);
                effects.extend(
                    self.engine
                        .handle(at(tenths), reported(attempt, Report::Started)),
                );
            }
        }
    }

    fn submit(&mut self, tenths: u64, job: u32, maps: u32) {
        self.handle(
            tenths,
            Event::JobSubmitted {
                job: JobId(job),
                spec: spec(maps, 0),
            },
        );
    }

    /// Completes a map of job 1.
    fn done(&mut self, tenths: u64, index: u32) {
        let of_index = |attempt: &AttemptId| {
            let task = attempt.task;
            task.job == JobId(1) && task.kind == TaskKind::Map && task.index == index
        };
        let position = self.running.iter().position(of_index).expect("it runs");
        let attempt = self.running.remove(position);
        self.handle(tenths, reported(attempt, Report::CommitRequested));
        self.handle(
            tenths,
            reported(
                attempt,
                Report::Done {
                    output_bytes: 0,
                    output_digest: None,
                },
            ),
        );
    }

    fn progressed(&mut self, tenths: u64, index: u32, bytes_done: u64) {
        self.task_progressed(tenths, TaskKind::Map, index, bytes_done);
    }

    fn task_progressed(&mut self, tenths: u64, kind: TaskKind, index: u32, bytes_done: u64) {
        let task = napreduce_engine::TaskId {
            job: JobId(1),
            kind,
            index,
        };
        let report = Report::Progressed {
            bytes_done,
            bytes_total: 1_000,
        };
        self.handle(tenths, reported(AttemptId { task, number: 1 }, report));
    }

    fn left(&self, tenths: u64) -> Option<TimeLeft> {
        self.engine.time_left(JobId(1), at(tenths))
    }

    fn likely_seconds(&self, tenths: u64) -> f64 {
        self.left(tenths).expect("an estimate").likely.0 as f64 / 1e6
    }
}

fn reported(attempt: AttemptId, report: Report) -> Event {
    Event::Reported {
        worker: WorkerId(1),
        attempt,
        report,
    }
}

/// Asserts that the estimate falls in each tenth of a second without events, is never zero, and stays unknown
/// once it is.
fn assert_falls(cluster: &Cluster, from: u64, until: u64) {
    let mut before = cluster.left(from).expect("an estimate");
    let mut is_known = true;
    for tenths in from + 1..until {
        let Some(left) = cluster.left(tenths) else {
            is_known = false;
            continue;
        };
        assert!(is_known, "known again after {tenths} tenths: {left:?}");
        assert!(
            left.likely <= before.likely,
            "at {tenths} tenths: {before:?} and then {left:?}"
        );
        assert!(
            left.most <= before.most,
            "at {tenths} tenths: {before:?} and then {left:?}"
        );
        assert!(
            left.likely > Span(0) && left.least > Span(0),
            "at {tenths} tenths: {left:?}"
        );
        before = left;
    }
}

#[test]
fn estimate_falls_with_the_clock_between_events() {
    let mut cluster = Cluster::new(2);
    cluster.submit(0, 1, 6);
    assert_eq!(cluster.left(50), None, "nothing is known about its tasks");
    cluster.done(100, 0);
    cluster.done(101, 1);
    let likely = cluster.likely_seconds(101);
    assert!((17.0..25.0).contains(&likely), "{likely}");
    let later = cluster.likely_seconds(151);
    assert!(
        (3.5..6.0).contains(&(likely - later)),
        "{likely} and 5 s later {later}"
    );
    assert_falls(&cluster, 101, 1_000);
}

#[test]
fn straggler_without_progress_has_unknown_time_left() {
    let mut cluster = Cluster::new(10);
    cluster.submit(0, 1, 10);
    for index in 0..9 {
        cluster.done(20 + u64::from(index), index);
    }
    assert!(cluster.likely_seconds(29) < 3.0);
    assert_falls(&cluster, 29, 400);
    assert_eq!(cluster.left(400), None);
}

#[test]
fn straggler_with_progress_is_estimated_by_its_rate() {
    let mut cluster = Cluster::new(10);
    cluster.submit(0, 1, 10);
    for index in 0..9 {
        cluster.done(20 + u64::from(index), index);
    }
    for second in 1..=30 {
        cluster.progressed(10 * second, 9, 20 * second);
    }
    let likely = cluster.likely_seconds(300);
    assert!((15.0..25.0).contains(&likely), "{likely}");
}

#[test]
fn unchanged_bytes_are_not_a_rate() {
    let mut cluster = Cluster::new(1);
    cluster.submit(0, 1, 1);
    cluster.progressed(10, 0, 640);
    cluster.progressed(20, 0, 640);
    assert!((0..600).all(|tenths| cluster.left(tenths).is_none()));
    let view = cluster.engine.view();
    let attempt = view.attempt(cluster.running[0]).expect("it runs");
    assert_eq!(
        (
            attempt.remaining(at(300)),
            attempt.smoothed_remaining(at(300))
        ),
        (None, None)
    );
}

#[test]
fn commands_are_bounded_by_finished_siblings() {
    let mut cluster = Cluster::new(4);
    cluster.submit(0, 1, 8);
    for index in 0..4 {
        cluster.progressed(5, index, 1);
    }
    for index in 0..4 {
        cluster.done(200 + u64::from(index), index);
    }
    for index in 4..8 {
        cluster.progressed(210, index, 1);
    }
    let likely = cluster.likely_seconds(250);
    assert!((13.0..21.0).contains(&likely), "{likely}");
}

#[test]
fn first_job_of_a_queue_gets_every_slot() {
    let mut cluster = Cluster::new(4);
    cluster.submit(0, 1, 20);
    cluster.submit(1, 2, 100);
    cluster.submit(1, 3, 100);
    for index in 0..4 {
        cluster.done(100, index);
    }
    let likely = cluster.likely_seconds(100);
    assert!((36.0..46.0).contains(&likely), "{likely}");
    let behind = cluster.engine.time_left(JobId(2), at(100));
    assert_eq!(behind, None, "it has no slot");
}

#[test]
fn jobs_behind_the_last_tasks_of_another_wait_for_those() {
    let mut cluster = Cluster::new(4);
    cluster.submit(0, 1, 6);
    cluster.submit(1, 2, 4);
    for index in 0..4 {
        cluster.done(100, index);
    }
    // Two slots are left to the second job, whose tasks are as unknown as its name.
    let left = cluster.engine.time_left(JobId(2), at(100));
    assert_eq!(left, None);
    let likely = cluster.likely_seconds(100);
    assert!((8.0..13.0).contains(&likely), "{likely}");
}

#[test]
fn wait_for_maps_is_no_part_of_the_rate() {
    let mut cluster = Cluster::new(2);
    let spec = JobSpec {
        slowstart_permille: 0,
        ..spec(2, 1)
    };
    cluster.handle(
        0,
        Event::JobSubmitted {
            job: JobId(1),
            spec,
        },
    );
    // Half of the maps are done early, so the reduce fetches a tenth of its input and waits for the rest.
    cluster.done(10, 0);
    cluster.task_progressed(20, TaskKind::Reduce, 0, 50);
    cluster.task_progressed(30, TaskKind::Reduce, 0, 100);
    cluster.done(1_000, 1);
    for second in 1..=6 {
        cluster.task_progressed(1_000 + 10 * second, TaskKind::Reduce, 0, 100 + 50 * second);
    }
    let likely = cluster.likely_seconds(1_060);
    assert!((9.0..16.0).contains(&likely), "{likely}");
}
