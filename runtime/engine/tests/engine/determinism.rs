//! The same events have the same effects, which recovery and the simulator require.

use napreduce_engine::scenarios::InOrder;
use napreduce_engine::{Engine, EngineSettings, Event, JobId, Slots, Time, WorkerId};

use napreduce_engine::scenarios::random::play;
use napreduce_engine::scenarios::spec;

#[test]
fn same_seed_gives_same_effects() {
    for seed in 0..100 {
        let one = play(seed, true);
        let two = play(seed, true);
        assert_eq!(one.effects, two.effects, "seed {seed}");
    }
}

#[test]
fn same_events_give_same_effects() {
    for seed in 0..200 {
        let run = play(seed, seed.is_multiple_of(4));
        let (effects, snapshot) = run.replay();
        assert_eq!(effects, run.effects, "seed {seed}");
        assert_eq!(snapshot, run.snapshot(), "seed {seed}");
    }
}

#[test]
fn time_is_monotonic() {
    let mut engine = Engine::new(Box::new(InOrder), EngineSettings::default());
    engine.handle(
        Time(9),
        Event::WorkerJoined {
            worker: WorkerId(1),
            slots: Slots { map: 1, reduce: 1 },
            host: String::new(),
            rack: String::new(),
        },
    );
    engine.handle(
        Time(3),
        Event::JobSubmitted {
            job: JobId(1),
            spec: spec(1, 1),
        },
    );
    assert_eq!(engine.view().now(), Time(9));
    assert_eq!(
        engine.view().job(JobId(1)).map(|job| job.submitted()),
        Some(Time(9))
    );
}
