//! Rack awareness: the preferred task of a worker, and how long a job waits for its worker and rack. `delay`
//! tests waiting for a worker alone.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::scenarios::{check_with, spec};
use napreduce_engine::{
    AttemptState, ClusterView, Engine, EngineSettings, Event, Fifo, Job, JobId, MapSpec, Offer,
    Report, Slots, Span, TaskId, TaskKind, Time, WorkerId, WorkerState,
};
use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_schedulers::serving::{Accepts, Delay, DelaySettings};
use proptest::prelude::*;

const BEAT: Span = Span::from_millis(10);

fn joined(worker: u32, rack: &str, map: u32) -> Event {
    let slots = Slots { map, reduce: 0 };
    Event::WorkerJoined {
        worker: WorkerId(worker),
        slots,
        host: String::new(),
        rack: rack.to_owned(),
    }
}

fn submitted(job: u32, inputs: &[&[u32]]) -> Event {
    let map = |on: &&[u32]| MapSpec {
        bytes: 1,
        preferred: on.iter().copied().map(WorkerId).collect(),
    };
    let maps = inputs.iter().map(map).collect();
    Event::JobSubmitted {
        job: JobId(job),
        spec: napreduce_engine::JobSpec { maps, ..spec(0, 1) },
    }
}

#[test]
fn tasks_prefer_worker_then_rack() {
    let script = "
        worker 1 1+0 rack a
        worker 2 0+0 rack a
        worker 3 0+0 rack b
        job 1 maps 3 reduces 1 inputs 3,2,1
            > launch m2.1 on 1
        done m2.1
            > launch m1.1 on 1
        done m1.1
            > launch m0.1 on 1";
    check_with(Fifo::default(), script);
    check_with(
        Fair::new(FairConfiguration::default()).expect("a valid configuration"),
        script,
    );
    check_with(
        Natjam::new(NatjamConfiguration::default()).expect("a valid configuration"),
        script,
    );
}

#[test]
fn single_rack_gives_no_preference() {
    check_with(
        Fifo::default(),
        "
        worker 1 1+0 rack a
        worker 2 0+0 rack a
        job 1 maps 2 inputs -,2
            > launch m0.1 on 1",
    );
}

/// The input is on worker 1 in rack a. The named workers are offered one heartbeat apart.
#[test]
fn delay_accepts_rack_then_anything_after_declines() {
    const NEAR: u32 = 1;
    const RACK: u32 = 2;
    const FAR: u32 = 3;
    use Accepts::{Anything, Nothing, OnRack};
    // Declines, rack declines, offered workers, accepted tasks.
    let table: [(u32, u32, &[u32], &[Accepts]); 9] = [
        (0, 0, &[FAR], &[Anything]),
        (2, 0, &[NEAR], &[Anything]),
        (2, 0, &[FAR, RACK, FAR], &[Nothing, Nothing, Anything]),
        (2, 0, &[RACK, RACK, RACK], &[Nothing, Nothing, Anything]),
        (0, 2, &[RACK], &[OnRack]),
        (0, 2, &[FAR, FAR, FAR], &[Nothing, Nothing, Anything]),
        (1, 2, &[RACK, FAR, RACK], &[Nothing, Nothing, OnRack]),
        (
            1,
            2,
            &[FAR, FAR, FAR, FAR],
            &[Nothing, Nothing, Nothing, Anything],
        ),
        (1, 2, &[FAR, NEAR, RACK], &[Nothing, Anything, OnRack]),
    ];
    let mut engine = Engine::new(Box::new(Fifo::default()), EngineSettings::default());
    let events = [
        joined(1, "a", 0),
        joined(2, "a", 0),
        joined(3, "b", 0),
        submitted(1, &[&[1]]),
    ];
    engine.handle_batch(Time(0), &events);
    for (declines, rack_declines, offers, expected) in table {
        let mut delay = Delay::new(DelaySettings {
            declines,
            rack_declines,
            heartbeat: BEAT,
        });
        let taken = taken(&mut delay, &engine, offers);
        assert_eq!(
            taken, expected,
            "{declines} declines, {rack_declines} more, offers of {offers:?}"
        );
    }
    // With a single rack every worker is near.
    engine.handle(
        Time(0),
        Event::WorkerLost {
            worker: WorkerId(3),
            crashed: false,
        },
    );
    let mut delay = Delay::new(DelaySettings {
        declines: 1,
        rack_declines: 5,
        heartbeat: BEAT,
    });
    assert_eq!(
        taken(&mut delay, &engine, &[RACK, RACK]),
        [Nothing, Anything]
    );
}

fn taken(delay: &mut Delay, engine: &Engine, offers: &[u32]) -> Vec<Accepts> {
    let view = engine.view();
    let job = view.job(JobId(1)).expect("job 1 waits");
    let offer = |worker: &u32| Offer {
        kind: TaskKind::Map,
        worker: WorkerId(*worker),
        reserved_for: None,
    };
    let times = (0..).map(|beat| Time(beat * BEAT.0));
    offers
        .iter()
        .zip(times)
        .map(|(worker, at)| delay.accepts(at, job, offer(worker)))
        .collect()
}

#[test]
fn job_waits_for_worker_then_rack() {
    let delay = DelaySettings {
        declines: 1,
        rack_declines: 2,
        heartbeat: BEAT,
    };
    let fair = || {
        Fair::new(FairConfiguration {
            delay,
            ..FairConfiguration::default()
        })
        .expect("a valid configuration")
    };
    check_with(
        fair(),
        "
        worker 1 0+0 rack a
        worker 3 1+0 rack b
        job 1 maps 2 inputs 1,1
        at 10ms
        worker 2 1+0 rack a
            > launch m0.1 on 2
        at 20ms
        wake
        at 30ms
        wake
        at 40ms
        wake
            > launch m1.1 on 3",
    );
}

#[test]
fn saved_work_migrates_within_rack_first() {
    let delay = DelaySettings {
        declines: 1,
        rack_declines: 100,
        heartbeat: BEAT,
    };
    let fair = FairConfiguration {
        delay,
        ..FairConfiguration::default()
    };
    let natjam = NatjamConfiguration {
        delay,
        ..NatjamConfiguration::default()
    };
    let script = "
        worker 1 0+1 rack a
        job 2 reduces 1 queue research
            > launch 2:r0.1 on 1
        started 2:r0.1
        job 3 reduces 1 queue research priority 5
        operator checkpoint 2:r0.1: make room
            > checkpoint 2:r0.1
        short 1: its disk is full
        checkpointed 2:r0.1
        worker 2 0+2 rack b
            > launch 3:r0.1 on 2
        at 10ms
        wake
        at 20ms
        wake
        worker 3 0+1 rack a
            > launch 2:r0.2 on 3 from 2:r0.1";
    check_with(Fair::new(fair).expect("a valid configuration"), script);
    check_with(Natjam::new(natjam).expect("a valid configuration"), script);
}

/// Returns the racks of live workers.
fn racks<'a>(view: &ClusterView<'a>) -> BTreeMap<WorkerId, &'a str> {
    view.present_workers()
        .map(|(id, worker)| (id, worker.rack()))
        .collect()
}

/// Reference for the next task to launch, by scanning all tasks: with preference for worker and rack, on the
/// rack only, and on the worker only.
fn expected(
    job: &Job,
    worker: WorkerId,
    racks: &BTreeMap<WorkerId, &str>,
) -> (Option<TaskId>, Option<TaskId>) {
    let several = racks.values().collect::<BTreeSet<_>>().len() > 1;
    let on_rack = |task: &TaskId| {
        let holders = &job.spec().maps[task.index as usize].preferred;
        several
            && holders.iter().any(|other| {
                racks
                    .get(other)
                    .is_some_and(|rack| racks.get(&worker) == Some(rack))
            })
    };
    let here = |task: &TaskId| {
        job.spec().maps[task.index as usize]
            .preferred
            .contains(&worker)
    };
    let tasks: Vec<TaskId> = job.eligible_on(TaskKind::Map, worker).collect();
    let first = |near: &dyn Fn(&TaskId) -> bool| tasks.iter().copied().find(near);
    let on_its_rack = first(&on_rack);
    (
        first(&here).or(on_its_rack).or(first(&|_| true)),
        on_its_rack,
    )
}

proptest! {
    #[test]
    fn task_index_matches_scan_of_all_tasks(
        steps in prop::collection::vec((0..5_u32, 0..12_u32, 0..4_u32), 1..60)
    ) {
        let mut engine = Engine::new(Box::new(Fifo::default()), EngineSettings::default());
        let mut workers = 0;
        let mut jobs = 0;
        for (at, (what, which, how)) in (1..).zip(steps) {
            let events = match what {
                0 => {
                    workers += 1;
                    vec![joined(workers, ["a", "b", "c"][which as usize % 3], how % 2)]
                }
                1 => {
                    jobs += 1;
                    // Includes workers that have not joined and an unknown one.
                    let place = |map: u32, copy: u32| 1 + (map * 5 + copy * 3 + jobs) % 9;
                    let holders = |map| (0..how).map(|copy| place(map, copy)).collect::<Vec<u32>>();
                    let on: Vec<Vec<u32>> = (0..=which).map(holders).collect();
                    vec![submitted(jobs, &on.iter().map(Vec::as_slice).collect::<Vec<_>>())]
                }
                2 if workers > 0 => vec![Event::WorkerLost { worker: WorkerId(1 + which % workers), crashed: false }],
                3 if workers > 0 => {
                    vec![Event::WorkerDrainRequested { worker: WorkerId(1 + which % workers), hand_back: how == 0, grace: None }]
                }
                _ => ends(&engine, which as usize),
            };
            engine.handle_batch(Time(at), &events);
            prop_assert_eq!(engine.check(), Ok(()));
            let view = engine.view();
            let racks = racks(&view);
            for job in view.jobs() {
                for (worker, known) in view.present_workers() {
                    prop_assert!(known.state() != WorkerState::Lost);
                    let found = (job.next_task(TaskKind::Map, worker), job.next_on_rack(TaskKind::Map, worker));
                    prop_assert_eq!(found, expected(job, worker, &racks), "{} on {}", job.id(), worker);
                }
            }
        }
    }
}

/// Ends an attempt: success or failure.
fn ends(engine: &Engine, which: usize) -> Vec<Event> {
    let starting = engine
        .view()
        .attempts()
        .filter(|one| one.state() == AttemptState::Launching);
    let all: Vec<_> = starting.map(|one| (one.worker(), one.id())).collect();
    let Some(&(worker, attempt)) = all.get(which % all.len().max(1)) else {
        return vec![Event::Woken];
    };
    let done = Report::Done {
        output_bytes: 1,
        output_digest: None,
    };
    let told = [Report::Started, done];
    told.into_iter()
        .map(|report| Event::Reported {
            worker,
            attempt,
            report,
        })
        .collect()
}
