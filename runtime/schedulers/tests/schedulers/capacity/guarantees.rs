//! Guarantees on small clusters, compared with an exhaustive search: every queue with demand reaches its
//! guarantee, with the fewest victims possible, and nothing is taken afterwards.

use napreduce_engine::{JobId, Primitive};
use napreduce_schedulers::capacity::Capacity;

use crate::capacity::cluster::{Cluster, configuration, maps};

/// Leaves in percent of the cluster, each in a group of its own or with others.
struct Shape {
    queues: &'static [(&'static str, &'static str, u32)],
    leaves: &'static [(&'static str, u32)],
}

const SHAPES: &[Shape] = &[
    Shape {
        queues: &[("a", "root", 80), ("b", "root", 20)],
        leaves: &[("a", 80), ("b", 20)],
    },
    Shape {
        queues: &[("a", "root", 70), ("b", "root", 30)],
        leaves: &[("a", 70), ("b", 30)],
    },
    Shape {
        queues: &[("a", "root", 50), ("b", "root", 50)],
        leaves: &[("a", 50), ("b", 50)],
    },
    Shape {
        queues: &[("a", "root", 34), ("b", "root", 33), ("c", "root", 33)],
        leaves: &[("a", 34), ("b", 33), ("c", 33)],
    },
    Shape {
        queues: &[("a", "root", 60), ("b", "root", 25), ("c", "root", 15)],
        leaves: &[("a", 60), ("b", 25), ("c", 15)],
    },
    Shape {
        queues: &[
            ("a", "root", 50),
            ("group", "root", 50),
            ("b", "group", 60),
            ("c", "group", 40),
        ],
        leaves: &[("a", 50), ("b", 30), ("c", 20)],
    },
    Shape {
        queues: &[
            ("a", "root", 20),
            ("group", "root", 80),
            ("b", "group", 50),
            ("c", "group", 50),
        ],
        leaves: &[("a", 20), ("b", 40), ("c", 40)],
    },
];

impl Shape {
    fn text(&self, monitor: &str) -> String {
        let mut text = "mode = \"preemptive\"\n".to_owned();
        for (name, parent, percent) in self.queues {
            text += &format!(
                "[[queue]]\nname = \"{name}\"\nparent = \"{parent}\"\nguaranteed-percent = {percent}\n"
            );
        }
        format!("{text}[monitor]\n{monitor}")
    }

    /// Returns the whole slots that each leaf is guaranteed.
    fn guaranteed(&self, slots: u32) -> Vec<u32> {
        self.leaves
            .iter()
            .map(|(_, percent)| percent * slots / 100)
            .collect()
    }
}

/// Returns the fewest slots that must change hands until every queue has its guarantee as far as it wants it,
/// by trying all allocations.
fn fewest_victims(slots: u32, held: &[u32], wanted: &[u32], guaranteed: &[u32]) -> Option<u32> {
    let mut allocations: Vec<Vec<u32>> = vec![Vec::new()];
    for most in wanted {
        let longer = allocations.iter().flat_map(|first| {
            (0..=*most.min(&slots)).map(move |next| [first.as_slice(), &[next]].concat())
        });
        allocations = longer.collect();
    }
    let is_due = |allocation: &&Vec<u32>| {
        let due = |queue: usize| allocation[queue] >= guaranteed[queue].min(wanted[queue]);
        allocation.iter().sum::<u32>() <= slots && (0..wanted.len()).all(due)
    };
    let victims = |allocation: &Vec<u32>| {
        allocation
            .iter()
            .zip(held)
            .map(|(after, before)| before.saturating_sub(*after))
            .sum::<u32>()
    };
    allocations.iter().filter(is_due).map(victims).min()
}

struct Trial<'a> {
    shape: &'a Shape,
    primitive: Primitive,
    workers: u32,
    slots_each: u32,
    /// The queue that holds the cluster first.
    first: usize,
    /// The demand of the others.
    demand: u32,
}

impl Trial<'_> {
    fn run(&self) {
        let slots = self.workers * self.slots_each;
        let text = self.shape.text(&format!(
            "primitive = \"{}\"\ndead-zone = 0",
            self.primitive
        ));
        let policy = Capacity::new(&configuration(&text)).expect("the configuration is valid");
        let mut cluster = Cluster::new(Box::new(policy), self.slots_each, 0);
        for _ in 1..self.workers {
            cluster.join();
        }
        let guaranteed = self.shape.guaranteed(slots);
        let mut jobs: Vec<Option<JobId>> = vec![None; guaranteed.len()];
        let mut wanted = vec![self.demand; guaranteed.len()];
        wanted[self.first] = 2 * slots;
        jobs[self.first] = Some(cluster.submit(maps(self.shape.leaves[self.first].0, 2 * slots)));
        for (queue, job) in jobs.iter_mut().enumerate() {
            if queue != self.first {
                *job = Some(cluster.submit(maps(self.shape.leaves[queue].0, self.demand)));
            }
        }
        let held = |cluster: &Cluster| -> Vec<u32> {
            jobs.iter()
                .map(|job| job.map_or(0, |job| cluster.holds(job)))
                .collect()
        };
        let before = held(&cluster);
        let fewest = fewest_victims(slots, &before, &wanted, &guaranteed).expect("guarantees fit");
        let rounds = u64::from(fewest) + 1;
        // A round lasts 3 s; a victim that is killed runs for 15 s until the round after that.
        cluster.pass(if self.primitive == Primitive::Kill {
            rounds * 21
        } else {
            rounds * 3
        });
        let name = || {
            let names: Vec<&str> = self.shape.leaves.iter().map(|leaf| leaf.0).collect();
            format!(
                "{names:?} guaranteed {guaranteed:?} on {}x{}, {} first, {} wanted, {}",
                self.workers, self.slots_each, self.first, self.demand, self.primitive
            )
        };
        let after = held(&cluster);
        for queue in 0..after.len() {
            let due = guaranteed[queue].min(wanted[queue]);
            assert!(
                after[queue] >= due,
                "queue {queue} holds {after:?}: {}",
                name()
            );
        }
        assert_eq!(cluster.asked.len() as u32, fewest, "victims: {}", name());
        cluster.pass(200);
        assert_eq!(
            cluster.asked.len() as u32,
            fewest,
            "later victims: {}",
            name()
        );
        assert_eq!(cluster.engine.view().tally().slots_unused, 0, "{}", name());
    }
}

#[test]
fn guarantees_hold_on_every_small_cluster() {
    for shape in SHAPES {
        for slots in 1..=6 {
            for first in 0..shape.leaves.len() {
                for primitive in [Primitive::Suspend, Primitive::Kill, Primitive::Checkpoint] {
                    for demand in [1, 20] {
                        for (workers, slots_each) in [(1, slots), (slots, 1)] {
                            let trial = Trial {
                                shape,
                                primitive,
                                workers,
                                slots_each,
                                first,
                                demand,
                            };
                            trial.run();
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn guarantee_is_whole_on_large_cluster() {
    for (percents, slots) in [
        ([90, 10], 100),
        ([80, 20], 10),
        ([70, 30], 10),
        ([99, 1], 100),
        ([87, 13], 97),
    ] {
        let text = format!(
            "mode = \"preemptive\"
             [[queue]]\nname = \"a\"\nguaranteed-percent = {}
             [[queue]]\nname = \"b\"\nguaranteed-percent = {}
             [monitor]\nprimitive = \"suspend\"\ndead-zone = 0",
            percents[0], percents[1]
        );
        let policy = Capacity::new(&configuration(&text)).expect("the configuration is valid");
        let mut cluster = Cluster::new(Box::new(policy), slots, 0);
        let first = cluster.submit(maps("a", 200));
        let second = cluster.submit(maps("b", 200));
        let guaranteed = percents[1] * slots / 100;
        cluster.pass(u64::from(guaranteed + 1) * 3);
        let held = (cluster.holds(first), cluster.holds(second));
        assert_eq!(
            held,
            (slots - guaranteed, guaranteed),
            "{percents:?} of {slots}"
        );
    }
}

#[test]
fn dead_zone_costs_at_most_its_part_of_guarantee() {
    let text = "mode = \"preemptive\"
        [[queue]]\nname = \"a\"\nguaranteed-percent = 90
        [[queue]]\nname = \"b\"\nguaranteed-percent = 10
        [monitor]\nprimitive = \"suspend\"\ndead-zone = 0.1";
    let policy = Capacity::new(&configuration(text)).expect("the configuration is valid");
    let mut cluster = Cluster::new(Box::new(policy), 100, 0);
    cluster.submit(maps("a", 200));
    let second = cluster.submit(maps("b", 200));
    cluster.pass(100);
    assert_eq!(
        cluster.holds(second),
        9,
        "a tenth of ten slots may be missing"
    );
}
