//! Bandwidth sharing of a machine's disks and network among its running tasks: max-min fair shares, capped at
//! what each task can use.

use napreduce_engine::TaskKind;

use super::Simulation;
use super::attempts::{Phase, VirtualAttempt};
use super::jobs::RunningJob;
use super::pace::Pace;

/// A shared resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    Disk,
    Network,
}

/// Returns the resource that a running task uses, and its bytes per second at full speed.
fn demand(attempt: &VirtualAttempt, job: &RunningJob) -> (Resource, u64) {
    let each_second = |bytes: u64, time: u64| match time {
        0 => 0,
        time => u64::try_from((u128::from(bytes) * 1_000_000).div_ceil(u128::from(time)))
            .unwrap_or(u64::MAX),
    };
    let index = attempt.id.task.index as usize;
    match attempt.kind() {
        TaskKind::Map => {
            let map = &job.plan.maps[index];
            (
                Resource::Disk,
                each_second(map.bytes.saturating_add(map.output_bytes), map.work.0),
            )
        }
        TaskKind::Reduce => {
            let reduce = &job.plan.reduces[index];
            if attempt.done < attempt.shuffle {
                (
                    Resource::Network,
                    each_second(reduce.bytes, reduce.shuffle.0),
                )
            } else {
                (Resource::Disk, each_second(reduce.bytes, reduce.reduce.0))
            }
        }
    }
}

/// Divides a bandwidth max-min fairly: equal parts, each capped at what is wanted.
fn max_min(bandwidth: u64, wanted: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|one| wanted[*one]);
    let mut left = bandwidth;
    let mut given = vec![0; wanted.len()];
    for (before, one) in order.iter().enumerate() {
        given[*one] = wanted[*one].min(left / (wanted.len() - before) as u64);
        left -= given[*one];
    }
    given
}

impl Simulation {
    /// Recomputes the pace of a machine's tasks after a change.
    pub(super) fn share_bandwidth(&mut self, worker: u32) {
        let Some(bandwidth) = self.settings.overheads.machine_bandwidth else {
            return;
        };
        let mut running: Vec<(u32, Resource, u64)> = Vec::new();
        for position in 0..self.workers.at(worker).attempts.len() {
            let place = self.workers.at(worker).attempts[position];
            if self.attempts.at(place).phase == Phase::Working {
                // Its resource depends on its progress.
                self.charge_slot_time(place);
                let attempt = self.attempts.at(place);
                let (resource, wanted) = demand(attempt, self.jobs.at_mut(attempt.id.task.job));
                running.push((place, resource, wanted));
            }
        }
        for (resource, limit) in [
            (Resource::Disk, bandwidth.disk),
            (Resource::Network, bandwidth.network),
        ] {
            let moving: Vec<(u32, u64)> = running
                .iter()
                .filter(|one| one.1 == resource)
                .map(|one| (one.0, one.2))
                .collect();
            let wanted: Vec<u64> = moving.iter().map(|(_, wanted)| *wanted).collect();
            let given = limit.map_or_else(|| wanted.clone(), |limit| max_min(limit, &wanted));
            for ((place, wanted), given) in moving.into_iter().zip(given) {
                let pace = if wanted == 0 {
                    Pace::FULL
                } else {
                    Pace::new(given, wanted)
                };
                self.set_pace(place, pace);
            }
        }
    }

    fn set_pace(&mut self, place: u32, pace: Pace) {
        if self.attempts.at(place).pace == pace {
            return;
        }
        let attempt = self.attempts.at_mut(place);
        attempt.pace = pace;
        attempt.stamp = attempt.stamp.wrapping_add(1);
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
