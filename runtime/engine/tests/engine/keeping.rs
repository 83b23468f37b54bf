//! Random runs in which operators fill a worker with suspended attempts. `Engine::check` compares the counts.

use napreduce_engine::scenarios::random::Keeping;
use napreduce_engine::scenarios::{InOrder, spec};
use napreduce_engine::{
    AttemptId, AttemptState, Engine, EngineSettings, Event, JobId, OperatorRefusal,
    PreemptionSettings, Primitive, Report, Slots, SuspendedMax, Time, WorkerId,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

const WORKER: WorkerId = WorkerId(1);

/// Attempts on one worker that operators suspend and resume repeatedly.
struct Operated {
    engine: Engine,
    keeping: Keeping,
    /// The number of commands refused because the worker was full, which it was.
    full: u32,
    was_full: u32,
}

impl Operated {
    fn new(most: SuspendedMax) -> Operated {
        let preemption = PreemptionSettings {
            suspended_max: most,
            ..PreemptionSettings::default()
        };
        let settings = EngineSettings {
            preemption,
            ..EngineSettings::default()
        };
        let engine = Engine::new(Box::new(InOrder), settings);
        let mut operated = Operated {
            engine,
            keeping: Keeping::new(most),
            full: 0,
            was_full: 0,
        };
        operated.handle(Event::WorkerJoined {
            worker: WORKER,
            slots: Slots { map: 8, reduce: 0 },
            host: String::new(),
            rack: String::new(),
        });
        operated.handle(Event::JobSubmitted {
            job: JobId(1),
            spec: spec(8, 0),
        });
        operated
    }

    fn handle(&mut self, event: Event) {
        let effects = self.engine.handle(Time(0), event.clone());
        let engine = &self.engine;
        self.keeping
            .follow(&event, &effects, |id| engine.view().attempt(id).is_some());
        self.engine.check().expect("nothing is miscounted");
    }

    /// Reports the outcome of a pending order, or else suspends or resumes the attempt as an operator.
    fn move_on(&mut self, attempt: AttemptId) {
        let reason = String::new();
        let state = self
            .engine
            .view()
            .attempt(attempt)
            .expect("it never ends")
            .state();
        let report = |report| Event::Reported {
            worker: WORKER,
            attempt,
            report,
        };
        let event = match state {
            AttemptState::Launching => report(Report::Started),
            AttemptState::Suspending => report(Report::Suspended),
            AttemptState::Resuming => report(Report::Resumed),
            AttemptState::Suspended => Event::AttemptResumeRequested { attempt, reason },
            _ => {
                if let Err(why) = self.engine.can_preempt(attempt, Primitive::Suspend) {
                    self.full += u32::from(
                        matches!(&why, OperatorRefusal::WorkerFull(full) if full.starts_with("worker_0001 keeps")),
                    );
                    self.was_full += u32::from(
                        matches!(&why, OperatorRefusal::WorkerFull(full) if full.starts_with("worker_0001 kept")),
                    );
                    assert!(self.keeping.is_full(WORKER), "{attempt}: {why}");
                }
                Event::AttemptPreemptRequested {
                    attempt,
                    primitive: Primitive::Suspend,
                    reason,
                }
            }
        };
        self.handle(event);
    }
}

#[test]
fn suspended_max_holds_in_random_runs() {
    for most in 1..=6 {
        let mut operated = Operated::new(SuspendedMax::AtMost(most));
        let mut rng = Pcg32::seed_from_u64(u64::from(most));
        let attempts: Vec<AttemptId> = operated
            .engine
            .view()
            .attempts()
            .map(|one| one.id())
            .collect();
        for _ in 0..2000 {
            operated.move_on(attempts[rng.random_range(0..attempts.len())]);
        }
        let full = operated.full;
        let was_full = operated.was_full;
        assert!(full > 10, "{most}: {full}");
        // With a limit of one or two, half of it is left after one resume.
        assert_eq!(was_full > 10, most > 2, "{most}: {was_full}");
    }
}
