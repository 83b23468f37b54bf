//! Metrics per worker.

use std::sync::atomic::AtomicU64;

use napreduce_protocol::{SuspendedMemory, WorkerSummary};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::labels::{Labels, label};
use crate::tally::OTHERS;

/// Further workers share one series.
const WORKERS_MAX: usize = 200;

type OfWorkers = Family<Labels, Gauge<f64, AtomicU64>>;

/// Registers three families for the present workers.
pub fn register(registry: &mut Registry, workers: &[WorkerSummary]) {
    let present: Vec<&WorkerSummary> = workers
        .iter()
        .filter(|worker| worker.gone_millis.is_none())
        .collect();
    let sum = |values: &[f64]| values.iter().sum();
    let resident = family(
        &present,
        |worker| held(worker, |held| held.resident_bytes),
        sum,
    );
    registry.register_with_unit(
        "suspended_resident",
        "Resident memory of suspended attempts",
        Unit::Bytes,
        resident,
    );
    let swapped = family(
        &present,
        |worker| held(worker, |held| held.swapped_bytes),
        sum,
    );
    registry.register_with_unit(
        "suspended_swapped",
        "Swapped memory of suspended attempts",
        Unit::Bytes,
        swapped,
    );
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let silence = family(&present, |worker| worker.silent_millis as f64 / 1e3, most);
    registry.register_with_unit(
        "worker_silence",
        "Time since the last heartbeat of a worker",
        Unit::Seconds,
        silence,
    );
}

fn held(worker: &WorkerSummary, bytes: fn(&SuspendedMemory) -> u64) -> f64 {
    worker.memory.suspended.iter().map(bytes).sum::<u64>() as f64
}

/// One series per worker, and one for all beyond the limit.
fn family(
    workers: &[&WorkerSummary],
    of: impl Fn(&WorkerSummary) -> f64,
    of_others: impl Fn(&[f64]) -> f64,
) -> OfWorkers {
    let family = OfWorkers::default();
    let put = |worker: &str, value| {
        family.get_or_create(&label("worker", worker)).set(value);
    };
    let (named, others) = workers.split_at(workers.len().min(WORKERS_MAX));
    for worker in named {
        put(&worker.name, of(worker));
    }
    if !others.is_empty() {
        put(
            OTHERS,
            of_others(&others.iter().map(|worker| of(worker)).collect::<Vec<_>>()),
        );
    }
    family
}

#[cfg(test)]
mod tests {
    use napreduce_answers::samples::worker;
    use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
    use napreduce_protocol::WorkerPhase;
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn surplus_workers_share_one_series() {
        let mut workers: Vec<_> = (1..=203)
            .map(|number| worker(number, WorkerPhase::Up, 0))
            .collect();
        for (at, silent_millis) in [(0, 2_500), (200, 7_000), (201, 1_000)] {
            let task = TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index: at as u32,
            };
            workers[at].silent_millis = silent_millis;
            workers[at].memory.suspended = vec![SuspendedMemory {
                attempt: AttemptId { task, number: 1 },
                resident_bytes: silent_millis * 2,
                swapped_bytes: 0,
            }];
        }
        workers[202].gone_millis = Some(1);
        workers[202].silent_millis = 99_000;
        let mut registry = Registry::default();
        register(&mut registry, &workers);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        for line in [
            "worker_silence_seconds{worker=\"w1\"} 2.5",
            "worker_silence_seconds{worker=\"other\"} 7.0",
            "suspended_resident_bytes{worker=\"w1\"} 5000.0",
            "suspended_resident_bytes{worker=\"other\"} 16000.0",
        ] {
            assert!(
                text.lines().any(|known| known == line),
                "{line} is missing in\n{text}"
            );
        }
        assert_eq!(text.matches("worker_silence_seconds{").count(), 201);
    }
}
