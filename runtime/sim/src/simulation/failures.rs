//! Random failures: attempts that fail, and machines that are lost and return. Every draw is a function of
//! the seed and its subject, so that the same attempts fail under every policy.

use napreduce_engine::{AttemptId, Event, Span, TaskKind};

use super::Simulation;
use super::attempts::Phase;
use super::clock::TimedEvent;
use super::reports::Group;
use super::workers::VirtualWorker;

/// Returns the work after which an attempt fails, if it does.
pub(super) fn fails_after(seed: u64, id: AttemptId, probability: f64, work: u64) -> Option<u64> {
    if probability <= 0.0 {
        return None;
    }
    let drawn = draw(seed, 1, &words_of(id));
    (uniform(drawn) < probability).then(|| (uniform(scramble(drawn)) * work as f64) as u64)
}

/// Returns the draw for the error of an attempt's reported progress, in [0, 1).
pub(super) fn factor_of(seed: u64, id: AttemptId) -> f64 {
    uniform(draw(seed, 3, &words_of(id)))
}

/// The seed words of an attempt.
fn words_of(id: AttemptId) -> [u64; 4] {
    let kind = u64::from(id.task.kind == TaskKind::Reduce);
    [
        u64::from(id.task.job.0),
        kind,
        u64::from(id.task.index),
        u64::from(id.number),
    ]
}

/// Returns the lifetime of a machine's `life`-th incarnation.
fn lifetime(seed: u64, machine: u32, life: u64, mean: Span) -> Span {
    let drawn = uniform(draw(seed, 2, &[u64::from(machine), life]));
    Span((((-(1.0 - drawn).ln()) * mean.0 as f64) as u64).saturating_add(1))
}

/// Hashes the arguments to a pseudo-random number.
fn draw(seed: u64, purpose: u64, words: &[u64]) -> u64 {
    words
        .iter()
        .fold(scramble(seed ^ scramble(purpose)), |state, word| {
            scramble(state ^ scramble(*word))
        })
}

/// The finalizer of splitmix64.
fn scramble(word: u64) -> u64 {
    let mut mixed = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Uniform in [0, 1).
fn uniform(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

impl Simulation {
    /// A machine joins, or rejoins, as a new worker.
    pub(super) fn join(&mut self, machine: u32) {
        let index = u32::try_from(self.workers.len()).expect("worker numbers fit 32 bits");
        let id = napreduce_engine::WorkerId(index + 1);
        let slots = self.settings.slots_of(machine);
        let shared = self.settings.engine.shared_slots;
        self.workers
            .push(VirtualWorker::new(id, machine, slots, shared));
        self.on_machine[machine as usize] = index;
        self.run
            .slot_time
            .slots_added(slots.map, slots.reduce, shared);
        let host = String::new();
        let rack = self.settings.rack_name(machine);
        self.batch.push(
            Group::Joined,
            index,
            None,
            Event::WorkerJoined {
                worker: id,
                slots,
                host,
                rack,
            },
        );
        if let Some(memory) = self.settings.overheads.machine_memory {
            let bytes = memory.ram.saturating_sub(memory.base);
            self.batch.push(
                Group::Joined,
                index,
                None,
                Event::WorkerMemory { worker: id, bytes },
            );
        }
        if let Some(mean) = self.settings.failures.machine_mean {
            let life = lifetime(self.settings.seed, machine, u64::from(index), mean);
            self.clock
                .schedule_after(life, TimedEvent::WorkerLost { worker: index });
        }
    }

    /// Removes a worker with its attempts.
    pub(super) fn lose(&mut self, worker: u32) {
        let known = &mut self.workers[worker as usize];
        known.up = false;
        known.beat = None;
        known.reports.clear();
        known.orders.clear();
        let id = known.id;
        let machine = known.machine;
        let attempts = std::mem::take(&mut known.attempts);
        for place in attempts {
            self.charge_slot_time(place);
            let attempt = self.attempts.at_mut(place);
            // The rest of its exit has no effect.
            attempt.phase = Phase::Gone;
            let task = attempt.id;
            let lost = attempt.executed();
            let held = attempt.holds_slot;
            let position = attempt.place;
            self.run.slot_time.wasted += lost;
            self.jobs.at_mut(task.task.job).result.wasted.0 += lost;
            if held {
                self.slot_freed(task);
            }
            self.remove_attempt(place, task, worker, position);
        }
        let slots = self.settings.slots_of(machine);
        self.run.slot_time.slots_removed(slots.map, slots.reduce);
        self.run.machines_lost += 1;
        // Simulated machines fail at random, never because of their tasks.
        let lost = Event::WorkerLost {
            worker: id,
            crashed: false,
        };
        self.batch.push(Group::Failure, worker, None, lost);
        if let Some(after) = self.settings.failures.machine_return {
            self.clock
                .schedule_after(after, TimedEvent::MachineReturns { machine });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::{JobId, TaskId};

    fn attempt(index: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index,
            },
            number: 1,
        }
    }

    #[test]
    fn failure_rate_matches_probability() {
        let failed: Vec<u64> = (0..10_000)
            .filter_map(|index| fails_after(7, attempt(index), 0.25, 1_000))
            .collect();
        assert!(
            (2_350..2_650).contains(&failed.len()),
            "{} of 10000",
            failed.len()
        );
        let mean = failed.iter().sum::<u64>() / failed.len() as u64;
        assert!(
            (480..520).contains(&mean) && failed.iter().all(|at| *at < 1_000),
            "{mean}"
        );
        assert_eq!(fails_after(7, attempt(3), 0.0, 1_000), None);
    }

    #[test]
    fn mean_lifetime_matches_setting() {
        let mean = Span::from_secs(100);
        let total: u64 = (0..10_000).map(|life| lifetime(1, 3, life, mean).0).sum();
        assert!((97..103).contains(&(total / 10_000 / 1_000_000)), "{total}");
    }
}
