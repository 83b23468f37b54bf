//! Random queues of Capacity and jobs for them, to check that every queue with demand gets what it is guaranteed.

use napreduce_engine::{Span, Time};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use crate::job::SimulatedJob;

/// The ranges of a random workload for queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRanges {
    /// The least and the most slots of a machine.
    pub slots_each: [u32; 2],
    pub machines_min: u32,
    /// The most slots of all machines.
    pub slots_max: u32,
    /// The least and the most jobs.
    pub jobs: [u32; 2],
    /// Jobs are submitted within this many seconds.
    pub submit_within: u64,
    /// Lengths of tasks, in seconds.
    pub lengths: [u64; 3],
}

impl QueueRanges {
    /// Up to 100 slots and 12 jobs, for simulations.
    pub const SIMULATED: QueueRanges = QueueRanges {
        slots_each: [1, 10],
        machines_min: 1,
        slots_max: 100,
        jobs: [3, 12],
        submit_within: 120,
        lengths: [3, 20, 200],
    };

    /// Eight to 16 slots on two to four machines, and short jobs, for real clusters.
    pub const LIVE: QueueRanges = QueueRanges {
        slots_each: [4, 4],
        machines_min: 2,
        slots_max: 16,
        jobs: [3, 5],
        submit_within: 15,
        lengths: [1, 4, 10],
    };
}

/// The interval of the monitor, and the wait before a kill, in seconds.
const INTERVAL: u64 = 1;
const MAX_WAIT: u64 = 4;

/// A queue without children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafQueue {
    pub name: String,
    /// The part of the cluster that it is guaranteed, in ten-thousandths.
    pub share: u64,
}

/// Random queues, a cluster, and jobs of maps.
///
/// ```
/// use napreduce_sim::fuzz::{QueueRanges, QueueWorkload};
///
/// let workload = QueueWorkload::draw(7, QueueRanges::LIVE);
/// assert!((8..=16).contains(&workload.slots()));
/// assert_eq!(workload.leaves.iter().map(|leaf| leaf.share).sum::<u64>(), 10_000);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct QueueWorkload {
    pub seed: u64,
    /// The table of `capacity`.
    pub configuration: String,
    pub leaves: Vec<LeafQueue>,
    pub machines: u32,
    pub slots_each: u32,
    /// Whether victims are killed.
    pub kills: bool,
    /// In order of submission.
    pub jobs: Vec<SimulatedJob>,
}

impl QueueWorkload {
    pub fn draw(seed: u64, ranges: QueueRanges) -> QueueWorkload {
        let mut random = Pcg32::seed_from_u64(seed);
        let [least, most] = ranges.slots_each;
        let slots_each = random.random_range(least..=most);
        let machines_min = if slots_each == 1 {
            2
        } else {
            ranges.machines_min
        };
        let machines = random
            .random_range(1..=ranges.slots_max / slots_each)
            .max(machines_min);
        let primitive = ["suspend", "kill", "checkpoint"][seed as usize % 3];
        let (queues, leaves) = draw_queues(&mut random);
        let prompt = random.random_bool(0.5);
        let budget = if prompt {
            "total-per-round = 1\nnatural-termination-factor = 1"
        } else {
            ""
        };
        let configuration = format!(
            "mode = \"preemptive\"\n{queues}[monitor]\nprimitive = \"{primitive}\"\ndead-zone = 0\n\
             interval = \"{INTERVAL}s\"\nmax-wait-before-kill = \"{MAX_WAIT}s\"\n{budget}\n"
        );
        let slots = machines * slots_each;
        let [least, most] = ranges.jobs;
        let count = random.random_range(least..=most);
        let mut jobs = Vec::new();
        for number in 0..count {
            let queue = &leaves[random.random_range(0..leaves.len())].name;
            let submit = if number == 0 {
                0
            } else {
                random.random_range(0..ranges.submit_within)
            };
            let maps = random.random_range(1..=2 * slots);
            let length = ranges.lengths[random.random_range(0..ranges.lengths.len())];
            let job = SimulatedJob::new(format!("job{number}"), Time(submit * 1_000_000))
                .with_maps(maps, Span::from_secs(length));
            jobs.push(SimulatedJob {
                queue: queue.as_str().into(),
                ..job
            });
        }
        jobs.sort_by_key(|job| job.submit);
        let kills = primitive == "kill";
        QueueWorkload {
            seed,
            configuration,
            leaves,
            machines,
            slots_each,
            kills,
            jobs,
        }
    }

    pub fn slots(&self) -> u64 {
        u64::from(self.machines * self.slots_each)
    }

    /// Returns the whole slots that a queue is guaranteed.
    pub fn guaranteed(&self, leaf: &LeafQueue) -> u64 {
        leaf.share * self.slots() / 10_000
    }

    /// Returns the longest time that a queue with demand may be below its guarantee if stopping a victim takes no
    /// time: a round for each slot that queues may lack, and one before the first; if victims are killed, the wait and
    /// a round after it.
    pub fn bound(&self) -> Span {
        let round = if self.kills {
            MAX_WAIT + 2 * INTERVAL
        } else {
            INTERVAL
        };
        let lacked: u64 = self
            .leaves
            .iter()
            .map(|leaf| leaf.share * self.slots() / 10_000)
            .sum();
        Span::from_secs((lacked + 1) * round)
    }

    /// Describes the cluster and the configuration.
    pub fn describe(&self) -> String {
        let shape = format!("{} machines of {} slots", self.machines, self.slots_each);
        format!("seed {}: {shape}\n{}", self.seed, self.configuration)
    }
}

/// Draws two to five leaves, in one or two levels, with guarantees of 100 percent together.
fn draw_queues(random: &mut Pcg32) -> (String, Vec<LeafQueue>) {
    let count = random.random_range(2..=5);
    let grouped = if count > 2 && random.random_bool(0.5) {
        random.random_range(2..count)
    } else {
        0
    };
    let above = count - grouped + usize::from(grouped > 0);
    let parts = draw_parts(random, above);
    let mut text = String::new();
    let mut leaves = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        text += &format!("[[queue]]\nname = \"q{number}\"\nguaranteed-percent = {part}\n");
        if number > 0 || grouped == 0 {
            leaves.push(LeafQueue {
                name: format!("q{number}"),
                share: part * 100,
            });
            continue;
        }
        for (below, inner) in draw_parts(random, grouped).into_iter().enumerate() {
            let name = format!("q0-{below}");
            text += &format!(
                "[[queue]]\nname = \"{name}\"\nparent = \"q0\"\nguaranteed-percent = {inner}\n"
            );
            leaves.push(LeafQueue {
                name,
                share: part * inner,
            });
        }
    }
    (text, leaves)
}

/// Draws positive percentages whose sum is 100.
fn draw_parts(random: &mut Pcg32, count: usize) -> Vec<u64> {
    let mut left = 100;
    let mut parts = Vec::new();
    for rest in (0..count as u64).rev() {
        let part = if rest == 0 {
            left
        } else {
            random.random_range(1..=left - rest)
        };
        parts.push(part);
        left -= part;
    }
    parts
}
