//! The run time of a job alone on the cluster, the reference for its slowdown: a list schedule without
//! contention, failures and data locality. Heartbeats are excluded, so that slowdown includes their delay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use napreduce_engine::Span;

use crate::job::SimulatedJob;
use crate::settings::SimulationSettings;

/// Returns the run time of a job alone on the cluster.
pub fn alone(plan: &SimulatedJob, settings: &SimulationSettings) -> Span {
    let slots = settings.total_slots();
    if settings.masters_max.is_some() {
        return with_master(plan, settings, slots.0);
    }
    scheduled(plan, settings, slots)
}

/// With containers the master starts first and holds one of them. Maps and reduces use the rest in sequence:
/// a reduce that starts early takes a container from a map.
fn with_master(plan: &SimulatedJob, settings: &SimulationSettings, containers: u64) -> Span {
    let left = containers.saturating_sub(1);
    let master = settings.overheads.master + settings.overheads.order_latency;
    master + scheduled(plan, settings, (left, left))
}

fn scheduled(plan: &SimulatedJob, settings: &SimulationSettings, slots: (u64, u64)) -> Span {
    let start = (settings.overheads.launch + settings.overheads.order_latency).0;
    let maps: Vec<u64> = plan
        .maps
        .iter()
        .map(|task| task.work.0.saturating_add(start))
        .collect();
    let ends = list_schedule(&maps, slots.0);
    let maps_end = ends.iter().copied().max().unwrap_or(0);
    if plan.reduces.is_empty() {
        return Span(maps_end);
    }
    let open_at = reduces_open_at(plan, ends);
    Span(reduces_end(plan, slots.1, open_at, maps_end, start).max(maps_end))
}

/// Returns when enough maps are done for reduces to start.
fn reduces_open_at(plan: &SimulatedJob, mut ends: Vec<u64>) -> u64 {
    let needed = (ends.len() as u64 * u64::from(plan.slowstart_permille)).div_ceil(1000);
    ends.sort_unstable();
    match usize::try_from(needed) {
        Ok(0) | Err(_) => 0,
        Ok(needed) => ends.get(needed - 1).copied().unwrap_or(0),
    }
}

fn reduces_end(plan: &SimulatedJob, slots: u64, open_at: u64, maps_end: u64, start: u64) -> u64 {
    let maps = plan.maps.len().max(1) as u64;
    let mut free = slots_free_at(plan.reduces.len(), slots, open_at);
    let mut last = 0;
    for task in &plan.reduces {
        let Some(Reverse(begins)) = free.pop() else {
            break;
        };
        // After the last map, a reduce still fetches that map's share.
        let fetched = begins
            .saturating_add(start)
            .saturating_add(task.shuffle.0)
            .max(if begins < maps_end {
                maps_end.saturating_add(task.shuffle.0 / maps)
            } else {
                0
            });
        let end = fetched.saturating_add(task.reduce.0);
        last = last.max(end);
        free.push(Reverse(end));
    }
    last
}

fn slots_free_at(tasks: usize, slots: u64, at: u64) -> BinaryHeap<Reverse<u64>> {
    let used = (tasks as u64).min(slots.max(1));
    (0..used).map(|_| Reverse(at)).collect()
}

/// Returns the end of each task if every free slot takes the next task.
fn list_schedule(tasks: &[u64], slots: u64) -> Vec<u64> {
    let slots = slots.max(1);
    let equal = tasks.windows(2).all(|pair| pair[0] == pair[1]);
    if equal || tasks.len() as u64 <= slots {
        return (0..)
            .zip(tasks)
            .map(|(index, task): (u64, _)| task.saturating_mul(index / slots + 1))
            .collect();
    }
    let mut free = slots_free_at(tasks.len(), slots, 0);
    let mut ends = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some(Reverse(begins)) = free.pop() else {
            break;
        };
        let end = begins.saturating_add(*task);
        ends.push(end);
        free.push(Reverse(end));
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::{Slots, Time};

    fn settings() -> SimulationSettings {
        SimulationSettings::new(1, Slots { map: 2, reduce: 1 })
    }

    #[test]
    fn maps_run_in_waves_before_reduces() {
        let plan = SimulatedJob::new("job", Time(0))
            .with_maps(3, Span(10))
            .with_reduces(2, Span(1), Span(4));
        assert_eq!(alone(&plan, &settings()), Span(20 + 2 * 5));
    }

    #[test]
    fn unequal_maps_take_first_free_slot() {
        let plan = SimulatedJob::new("job", Time(0))
            .with_maps(1, Span(10))
            .with_maps(2, Span(3))
            .with_maps(1, Span(5));
        assert_eq!(alone(&plan, &settings()), Span(11));
    }

    #[test]
    fn early_reduce_fetches_last_share_after_last_map() {
        let mut plan = SimulatedJob::new("job", Time(0))
            .with_maps(4, Span(10))
            .with_reduces(1, Span(8), Span(4));
        plan.slowstart_permille = 0;
        assert_eq!(alone(&plan, &settings()), Span(20 + 2 + 4));
    }
}
