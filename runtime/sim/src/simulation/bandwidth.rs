//! Bandwidth sharing of a machine's disks and network among its running tasks: max-min fair shares, capped at
//! what each task can use.

use napreduce_engine::TaskKind;

use super::Simulation;
use super::attempts::{Phase, VirtualAttempt};
use super::pace::Pace;
use crate::job::SimulatedJob;

/// A shared resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    Disk,
    Network,
}

/// The share of a resource that a running task could use.
#[derive(Debug, Clone, Copy)]
struct Demand {
    resource: Resource,
    /// At full speed.
    bytes_per_second: u64,
}

impl Demand {
    /// Returns what a task needs that moves `bytes` in `micros` at full speed.
    fn new(resource: Resource, bytes: u64, micros: u64) -> Demand {
        let bytes_per_second = if micros == 0 {
            0
        } else {
            let rate = (u128::from(bytes) * 1_000_000).div_ceil(u128::from(micros));
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        Demand {
            resource,
            bytes_per_second,
        }
    }

    /// Returns what a running attempt needs now. A reduce fetches its input over the network, then reads it
    /// from disk.
    fn of(attempt: &VirtualAttempt, plan: &SimulatedJob) -> Demand {
        let index = attempt.id.task.index as usize;
        match attempt.kind() {
            TaskKind::Map => {
                let map = &plan.maps[index];
                let bytes = map.bytes.saturating_add(map.output_bytes);
                Demand::new(Resource::Disk, bytes, map.work.0)
            }
            TaskKind::Reduce if attempt.is_in_shuffle() => {
                let reduce = &plan.reduces[index];
                Demand::new(Resource::Network, reduce.bytes, reduce.shuffle.0)
            }
            TaskKind::Reduce => {
                let reduce = &plan.reduces[index];
                Demand::new(Resource::Disk, reduce.bytes, reduce.reduce.0)
            }
        }
    }
}

/// A running task that shares the machine's resources.
#[derive(Debug)]
struct Sharer {
    place: u32,
    demand: Demand,
}

/// Divides a bandwidth max-min fairly: equal parts, each capped at what is wanted.
fn max_min(bandwidth: u64, wanted: &[u64]) -> Vec<u64> {
    let mut by_demand: Vec<usize> = (0..wanted.len()).collect();
    by_demand.sort_by_key(|position| wanted[*position]);
    let mut left = bandwidth;
    let mut left_sharers = wanted.len() as u64;
    let mut given = vec![0; wanted.len()];
    for position in by_demand {
        let part = wanted[position].min(left / left_sharers);
        given[position] = part;
        left -= part;
        left_sharers -= 1;
    }
    given
}

impl Simulation {
    /// Recomputes the pace of a machine's tasks after a change.
    pub(super) fn share_bandwidth(&mut self, worker: u32) {
        let Some(bandwidth) = self.settings.overheads.machine_bandwidth else {
            return;
        };
        let mut on_disk: Vec<Sharer> = Vec::new();
        let mut on_network: Vec<Sharer> = Vec::new();
        for position in 0..self.workers.at(worker).attempts.len() {
            let place = self.workers.at(worker).attempts[position];
            if self.attempts.at(place).phase != Phase::Working {
                continue;
            }
            // Its demand depends on its progress.
            self.charge_slot_time(place);
            let attempt = self.attempts.at(place);
            let plan = &self.jobs.at(attempt.id.task.job).plan;
            let demand = Demand::of(attempt, plan);
            let sharer = Sharer { place, demand };
            match demand.resource {
                Resource::Disk => on_disk.push(sharer),
                Resource::Network => on_network.push(sharer),
            }
        }
        self.share_resource(bandwidth.disk, &on_disk);
        self.share_resource(bandwidth.network, &on_network);
    }

    /// Divides the bytes per second of a resource among its tasks; without a limit all have full speed.
    fn share_resource(&mut self, bytes_per_second: Option<u64>, sharers: &[Sharer]) {
        let mut wanted: Vec<u64> = Vec::with_capacity(sharers.len());
        for sharer in sharers {
            wanted.push(sharer.demand.bytes_per_second);
        }
        let given = match bytes_per_second {
            Some(limit) => max_min(limit, &wanted),
            None => wanted.clone(),
        };
        for (position, sharer) in sharers.iter().enumerate() {
            let pace = Pace::new(given[position], wanted[position]);
            self.set_pace(sharer.place, pace);
        }
    }

    /// Changes the pace of an attempt, and with it the end of its work.
    fn set_pace(&mut self, place: u32, pace: Pace) {
        let attempt = self.attempts.at_mut(place);
        if attempt.pace == pace {
            return;
        }
        attempt.pace = pace;
        attempt.renew_stamp();
        self.schedule_end(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_min_shares_are_equal_up_to_demand() {
        assert_eq!(max_min(100, &[200, 200]), [50, 50]);
        assert_eq!(max_min(100, &[10, 200, 60]), [10, 45, 45]);
        assert_eq!(max_min(100, &[10, 20, 30]), [10, 20, 30]);
        assert_eq!(max_min(100, &[0, 300]), [0, 100]);
        assert!(max_min(7, &[]).is_empty());
    }
}
