//! Random operator commands, and the settings of a run, chosen by its seed. Checks that the engine does
//! exactly what its `can_...` functions predict.

use crate::{
    AttemptId, Conversion, Converted, CostRule, EngineSettings, Escalation, Event,
    ExclusionSettings, Instead, JobId, KindPreemption, OperatorRefusal, Pause, PauseKind,
    PreemptionLimits, PreemptionSettings, Primitive, PrimitiveChoice, Span, SpeculationSettings,
    SuspendedMax, TaskKind,
};
use rand::Rng;

use super::RandomRun;

impl RandomRun {
    /// Preempts or resumes an attempt as an operator; the engine's prediction must match its effects.
    pub(super) fn operate_on_an_attempt(&mut self) {
        // Half of the commands concern suspended attempts.
        let only_stopped = self.rng.random_bool(0.5);
        let attempts = self.engine.view().attempts();
        let live: Vec<AttemptId> = attempts
            .filter(|one| !only_stopped || !one.holds_slot())
            .map(|one| one.id())
            .collect();
        if live.is_empty() {
            return;
        }
        let attempt = live[self.rng.random_range(0..live.len())];
        let reason = "an operator's reason".to_owned();
        let primitives = [
            Primitive::Suspend,
            Primitive::Checkpoint,
            Primitive::Checkpoint,
            Primitive::Kill,
        ];
        match self.rng.random_range(0..7) {
            choice @ 0..4 => {
                let primitive = primitives[choice];
                let can = self.engine.can_preempt(attempt, primitive);
                self.expect(
                    can,
                    &format!("{attempt} cannot be preempted by {primitive}"),
                );
                self.handle(Event::AttemptPreemptRequested {
                    attempt,
                    primitive,
                    reason,
                });
            }
            _ => {
                self.expect(
                    self.engine.can_resume(attempt),
                    &format!("{attempt} cannot be resumed"),
                );
                self.handle(Event::AttemptResumeRequested { attempt, reason });
            }
        }
    }

    pub(super) fn operate_on_a_job(&mut self) {
        let job = JobId(self.rng.random_range(1..=self.jobs));
        let reason = "lunch".to_owned();
        if self.rng.random_bool(0.5) {
            self.expect(
                self.engine.can_pause_job(job, PauseKind::Suspend),
                &format!("{job} cannot be suspended"),
            );
            let pause = Pause {
                kind: PauseKind::Suspend,
                reason,
            };
            self.handle(Event::JobPauseRequested { job, pause });
        } else {
            self.expect(
                self.engine.can_resume_job(job),
                &format!("{job} cannot be resumed"),
            );
            self.handle(Event::JobResumeRequested { job, reason });
        }
    }

    /// Reports the beginning or end of a shortage of a worker.
    pub(super) fn change_shortage(&mut self) {
        let Some(worker) = self.any_worker() else {
            return;
        };
        let lacks = self
            .rng
            .random_bool(0.5)
            .then(|| "its disk is full".to_owned());
        self.handle(Event::WorkerShort { worker, lacks });
    }

    /// Ends all shortages.
    pub(super) fn end_shortages(&mut self) {
        let workers: Vec<_> = self.daemons.keys().copied().collect();
        for worker in workers {
            self.handle(Event::WorkerShort {
                worker,
                lacks: None,
            });
        }
    }

    /// Sets the expected warning for an operator if the command is not possible.
    fn expect(&mut self, can: Result<(), OperatorRefusal>, what: &str) {
        self.refusal = can
            .err()
            .map_or_else(String::new, |why| format!("{what}: {why}; ignored"));
    }

    /// Releases all holds of operators.
    pub(super) fn release_everything(&mut self) {
        let view = self.engine.view();
        let jobs: Vec<JobId> = view
            .jobs()
            .filter(|job| job.pause().is_some())
            .map(|job| job.id())
            .collect();
        for job in jobs {
            if self.engine.can_resume_job(job).is_ok() {
                self.handle(Event::JobResumeRequested {
                    job,
                    reason: "enough".to_owned(),
                });
            }
        }
        let held = self
            .engine
            .view()
            .attempts()
            .filter(|attempt| attempt.is_held());
        let mut held: Vec<AttemptId> = held.map(|attempt| attempt.id()).collect();
        for job in self.engine.view().jobs() {
            let tasks = TaskKind::ALL
                .into_iter()
                .flat_map(|kind| job.held_tasks(kind));
            held.extend(tasks.filter_map(|task| job.held_attempt(task)));
        }
        for attempt in held {
            if self.engine.can_resume(attempt).is_ok() {
                self.handle(Event::AttemptResumeRequested {
                    attempt,
                    reason: "enough".to_owned(),
                });
            }
        }
    }
}

pub fn settings(seed: u64, hostile: bool) -> EngineSettings {
    EngineSettings {
        strict: !hostile,
        seed,
        shared_slots: seed.is_multiple_of(7),
        name_outputs: true,
        preemption: PreemptionSettings {
            map: KindPreemption {
                suspend: !seed.is_multiple_of(4),
                ..KindPreemption::default()
            },
            suspended_max: if seed.is_multiple_of(3) {
                SuspendedMax::Unlimited
            } else {
                SuspendedMax::AtMost(seed as u32 % 5)
            },
            when_full: if seed.is_multiple_of(2) {
                Instead::Kill
            } else {
                Instead::Wait
            },
            cost: seed.is_multiple_of(11).then_some(CostRule {
                measured: true,
                ..CostRule::default()
            }),
            limits: PreemptionLimits {
                minimum_run: Span::from_millis(if seed.is_multiple_of(4) { 3 } else { 0 }),
                suspends_max: seed.is_multiple_of(9).then_some(2),
                preemptions_max: seed.is_multiple_of(13).then_some(2),
            },
            escalate: [None, Some(Escalation::Kill), Some(Escalation::Never)][seed as usize % 3],
            preemptions_without_progress_max: if seed.is_multiple_of(6) { 1 } else { 10 },
            primitive: seed.is_multiple_of(5).then_some(PrimitiveChoice::Auto),
            convert: (!seed.is_multiple_of(3)).then_some(Conversion {
                after: Span::from_millis(seed % 4),
                to: if seed.is_multiple_of(8) {
                    Converted::Kill
                } else {
                    Converted::Checkpoint
                },
            }),
            ..PreemptionSettings::default()
        },
        reservation: Span::from_millis(seed % 7),
        exclusion: (!seed.is_multiple_of(3)).then_some(ExclusionSettings {
            failures: if seed.is_multiple_of(7) { 2 } else { 1 },
            tasks: 1,
            span: Span::from_millis(9),
        }),
        shortage_span: Span::from_millis(seed % 4),
        crashes_max: seed as u32 % 3,
        one_host: seed.is_multiple_of(13),
        speculation: (!seed.is_multiple_of(5)).then_some(SpeculationSettings {
            minimum: Span::from_millis(3),
            finished_min: 1,
            slowdown_permille: 500,
            period: Span::from_millis(2),
        }),
    }
}
