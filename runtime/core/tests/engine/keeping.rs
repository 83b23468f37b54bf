//! How many suspended attempts each worker keeps, found from what was reported and ordered alone.
//!
//! Owns the rule as somebody outside would state it: never more than the limit, and after that none until half of it is left;
//! and a worker on which that is all that happens. The random runs hold the engine to it, too. Does not own the engine's own
//! count, which `Engine::check` goes over.

use std::collections::{BTreeMap, BTreeSet};

use napreduce_core::{
    AttemptId, AttemptState, Effect, Engine, EngineSettings, Event, JobId, Order, PreemptionSettings,
    Primitive, Report, Slots, SuspendedMax, Time, WorkerId,
};
use napreduce_schedulers::Fifo;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use crate::script::spec;

/// What the engine has told to stop, and what it has not told to go on since.
#[derive(Debug)]
pub struct Keeping {
    most: SuspendedMax,
    stopped: BTreeMap<WorkerId, BTreeSet<AttemptId>>,
    full: BTreeSet<WorkerId>,
}

impl Keeping {
    pub fn new(most: SuspendedMax) -> Keeping {
        Keeping { most, stopped: BTreeMap::new(), full: BTreeSet::new() }
    }

    /// Takes in an event and what was ordered because of it; `is_live` knows the attempts that have not ended.
    pub fn follow(&mut self, event: &Event, effects: &[Effect], is_live: impl Fn(AttemptId) -> bool) {
        let refused = match event {
            Event::Reported { attempt, report: Report::SuspendRefused { .. }, .. } => Some(*attempt),
            _ => None,
        };
        let stopped = self.stopped.values().flatten().copied();
        let over: Vec<AttemptId> = stopped.filter(|id| Some(*id) == refused || !is_live(*id)).collect();
        over.into_iter().for_each(|id| self.goes_on(id));
        for effect in effects {
            match effect {
                Effect::Send { worker, order: Order::Suspend { attempt } } => self.stops(*worker, *attempt),
                Effect::Send { order: Order::Resume { attempt }, .. }
                | Effect::Send { order: Order::Checkpoint { attempt }, .. }
                | Effect::Send { order: Order::Kill { attempt }, .. } => self.goes_on(*attempt),
                _ => {}
            }
        }
    }

    fn stops(&mut self, worker: WorkerId, attempt: AttemptId) {
        let SuspendedMax::AtMost(most) = self.most else { return };
        let stopped = self.stopped.entry(worker).or_default();
        assert!(
            !self.full.contains(&worker),
            "{attempt} is suspended on {worker}, which is full: {stopped:?}"
        );
        stopped.insert(attempt);
        assert!(stopped.len() <= most as usize, "{worker} keeps {stopped:?}, and may keep {most}");
        if stopped.len() == most as usize {
            self.full.insert(worker);
        }
    }

    fn goes_on(&mut self, attempt: AttemptId) {
        let SuspendedMax::AtMost(most) = self.most else { return };
        for (worker, stopped) in &mut self.stopped {
            if stopped.remove(&attempt) && stopped.len() <= (most / 2) as usize {
                self.full.remove(worker);
            }
        }
    }
}

const WORKER: WorkerId = WorkerId(1);

/// Attempts on one worker that operators suspend and resume, each of them again and again.
struct Operated {
    engine: Engine,
    keeping: Keeping,
    /// How often an operator was told that a worker is full, and that it was.
    full: u32,
    was_full: u32,
}

impl Operated {
    fn new(most: SuspendedMax) -> Operated {
        let preemption = PreemptionSettings { suspended_max: most, ..PreemptionSettings::default() };
        let settings = EngineSettings { preemption, ..EngineSettings::default() };
        let engine = Engine::new(Box::new(Fifo::default()), settings);
        let mut operated = Operated { engine, keeping: Keeping::new(most), full: 0, was_full: 0 };
        operated.handle(Event::WorkerJoined {
            worker: WORKER,
            slots: Slots { map: 8, reduce: 0 },
            host: String::new(),
        });
        operated.handle(Event::JobSubmitted { job: JobId(1), spec: spec(8, 0) });
        operated
    }

    fn handle(&mut self, event: Event) {
        let effects = self.engine.handle(Time(0), event.clone());
        let engine = &self.engine;
        self.keeping.follow(&event, &effects, |id| engine.view().attempt(id).is_some());
        self.engine.check().expect("nothing is miscounted");
    }

    /// Its worker does as it is told, or else an operator wants it to stop or to go on.
    fn move_on(&mut self, attempt: AttemptId) {
        let reason = String::new();
        let state = self.engine.view().attempt(attempt).expect("it never ends").state();
        let report = |report| Event::Reported { worker: WORKER, attempt, report };
        let event = match state {
            AttemptState::Launching => report(Report::Started),
            AttemptState::Suspending => report(Report::Suspended),
            AttemptState::Resuming => report(Report::Resumed),
            AttemptState::Suspended => Event::AttemptResumeRequested { attempt, reason },
            _ => {
                if let Err(why) = self.engine.can_preempt(attempt, Primitive::Suspend) {
                    self.full += u32::from(why.contains("worker_0001 keeps"));
                    self.was_full += u32::from(why.contains("worker_0001 kept"));
                    assert!(self.keeping.full.contains(&WORKER), "{attempt}: {why}");
                }
                Event::AttemptPreemptRequested { attempt, primitive: Primitive::Suspend, reason }
            }
        };
        self.handle(event);
    }
}

#[test]
fn a_worker_fills_up_and_is_half_emptied_again_and_again() {
    for most in 1..=6 {
        let mut operated = Operated::new(SuspendedMax::AtMost(most));
        let mut rng = Pcg32::seed_from_u64(u64::from(most));
        let attempts: Vec<AttemptId> = operated.engine.view().attempts().map(|one| one.id()).collect();
        for _ in 0..2000 {
            operated.move_on(attempts[rng.random_range(0..attempts.len())]);
        }
        let (full, was_full) = (operated.full, operated.was_full);
        assert!(full > 10, "{most}: {full}");
        // Half of one or two is what is left when one has gone.
        assert_eq!(was_full > 10, most > 2, "{most}: {was_full}");
    }
}
