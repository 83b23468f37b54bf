//! Assignment of slots against a reference that scans every queue and job.

use napreduce_engine::{JobId, Ratio, TaskKind};
use napreduce_schedulers::capacity::{ApplicationOrder, QueueStanding, Queues};
use rand::{Rng, SeedableRng};

use crate::capacity::caps::cluster;
use crate::capacity::cluster::{Ask, Cluster, configuration, maps};

const SLOTS: u32 = 11;

const TEXT: &str = "
    mode = \"soft-cap\"
    [[queue]]
    name = \"company\"
    guaranteed-percent = 60
    max-percent = 90
    priority = 1
    [[queue]]
    name = \"day\"
    parent = \"company\"
    guaranteed-percent = \"100/3\"
    [[queue]]
    name = \"night\"
    parent = \"company\"
    guaranteed-percent = \"200/3\"
    max-percent = 80
    app-order = \"fair\"
    [[queue]]
    name = \"guests\"
    guaranteed-percent = 40
    max-percent = 70
    [[queue]]
    name = \"idle\"
    guaranteed-percent = 0
    priority = 7";

const LEAVES: [&str; 4] = ["day", "night", "guests", "idle"];

/// A job in the reference.
struct Seen {
    job: JobId,
    leaf: usize,
    priority: i32,
    used: u32,
    pending: u32,
}

/// The queues and jobs of the reference.
struct Walk<'a> {
    queues: &'a Queues,
    jobs: Vec<Seen>,
}

impl Walk<'_> {
    fn is_in(&self, mut queue: usize, above: usize) -> bool {
        while queue != above {
            let Some(parent) = self.queues.queue(queue).parent else {
                return false;
            };
            queue = parent;
        }
        true
    }

    fn used(&self, queue: usize) -> u32 {
        self.jobs
            .iter()
            .filter(|seen| self.is_in(seen.leaf, queue))
            .map(|seen| seen.used)
            .sum()
    }

    fn first(&self, queue: usize) -> Option<JobId> {
        if self.used(queue) + 1 > self.queues.maximum(queue, SLOTS) {
            return None;
        }
        let known = self.queues.queue(queue);
        if known.children.is_empty() {
            let wanting = self
                .jobs
                .iter()
                .filter(|seen| seen.leaf == queue && seen.pending > 0);
            let key = |seen: &&Seen| match known.order {
                ApplicationOrder::Fifo => (-i64::from(seen.priority), seen.job),
                ApplicationOrder::Fair => (i64::from(seen.used), seen.job),
            };
            return wanting.min_by_key(key).map(|seen| seen.job);
        }
        let standing = |&child: &usize| QueueStanding {
            name: &self.queues.queue(child).name,
            used: Ratio::whole(u64::from(self.used(child))),
            guaranteed: self.queues.guaranteed(child, SLOTS),
            priority: self.queues.queue(child).priority,
        };
        let mut children = known.children.clone();
        children.sort_by(|one, other| standing(one).compare(&standing(other)));
        children.into_iter().find_map(|child| self.first(child))
    }
}

#[test]
fn assignment_matches_reference_scan() {
    let queues = Queues::new(&configuration(TEXT)).expect("the queues are valid");
    let mut given = [0; LEAVES.len()];
    for seed in 0..40 {
        let mut random = rand_pcg::Pcg32::seed_from_u64(seed);
        let mut cluster = cluster(TEXT, SLOTS);
        let mut jobs: Vec<(JobId, usize, i32)> = Vec::new();
        for _ in 0..60 {
            if random.random_bool(0.3) {
                let leaf = random.random_range(0..LEAVES.len());
                let priority = random.random_range(0..2);
                let ask = Ask {
                    priority,
                    ..maps(LEAVES[leaf], random.random_range(1..15))
                };
                jobs.push((cluster.submit(ask), leaf, priority));
            }
            let running: Vec<JobId> = jobs
                .iter()
                .map(|job| job.0)
                .filter(|job| cluster.running(*job) > 0)
                .collect();
            if running.is_empty() {
                continue;
            }
            let ending = running[random.random_range(0..running.len())];
            let winner = check_one_end(&mut cluster, &queues, &jobs, ending, seed);
            if let Some(&(_, leaf, _)) = jobs.iter().find(|job| Some(job.0) == winner) {
                given[leaf] += 1;
            }
        }
    }
    assert!(
        given.iter().all(|&count| count > 10),
        "every queue got slots: {given:?}"
    );
}

/// Ends one task of a job and checks that the reference assigns its slot to the same job.
fn check_one_end(
    cluster: &mut Cluster,
    queues: &Queues,
    jobs: &[(JobId, usize, i32)],
    ending: JobId,
    seed: u64,
) -> Option<JobId> {
    let seen = |&(job, leaf, priority): &(JobId, usize, i32)| {
        let pending = cluster
            .engine
            .view()
            .job(job)
            .map_or(0, |job| job.demand(TaskKind::Map));
        let held = cluster.holds(job);
        let leaf = queues.leaf_of(LEAVES[leaf]);
        Seen {
            job,
            leaf,
            priority,
            used: held - u32::from(job == ending),
            pending: pending - held,
        }
    };
    let walk = Walk {
        queues,
        jobs: jobs.iter().map(seen).collect(),
    };
    let before: u32 = walk.jobs.iter().map(|seen| seen.used).sum();
    let expected = if before < SLOTS { walk.first(0) } else { None };
    cluster.finish(ending, 1);
    for seen in &walk.jobs {
        let held = seen.used + u32::from(Some(seen.job) == expected);
        assert_eq!(
            cluster.holds(seen.job),
            held,
            "seed {seed}: {} after a task of {ending}",
            seen.job
        );
    }
    expected
}
