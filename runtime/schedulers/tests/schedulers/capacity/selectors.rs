//! The passes of a round that make room for reservations.

use napreduce_engine::{Ratio, Span, Time};
use napreduce_schedulers::capacity::monitor::{
    Application, Container, Node, Pass, QueueState, QueueTree, Round, RoundSettings,
};

/// A leaf below the root: guarantee, priority, running containers and reservations by node.
#[derive(Clone, Default)]
struct Leaf {
    guaranteed: u64,
    priority: i32,
    /// Nodes of its containers, oldest first.
    live: Vec<u32>,
    /// Sizes and nodes of its reservations.
    waiting: Vec<(u64, u32)>,
    pending: u64,
}

/// Runs a round; returns leaf, container index and pass of each victim.
fn round(leaves: &[Leaf], settings: RoundSettings) -> Vec<(usize, u64, Pass)> {
    let used = |leaf: &Leaf| {
        (
            leaf.live.len() as u64,
            leaf.waiting.iter().map(|one| one.0).sum::<u64>(),
        )
    };
    let cluster: u64 = leaves.iter().map(|leaf| leaf.guaranteed).sum();
    let state = |name: String, parent, leaf: &Leaf| QueueState {
        name,
        parent,
        guaranteed: Ratio::whole(leaf.guaranteed),
        maximum: Ratio::whole(cluster),
        used: used(leaf).0 + used(leaf).1,
        reserved: used(leaf).1,
        killable: 0,
        pending: leaf.pending,
        priority: leaf.priority,
        preemption_disabled: false,
    };
    let all = Leaf {
        guaranteed: cluster,
        live: leaves.iter().flat_map(|leaf| leaf.live.clone()).collect(),
        ..Leaf::default()
    };
    let mut queues = vec![state("root".to_owned(), None, &all)];
    queues.extend(
        leaves
            .iter()
            .enumerate()
            .map(|(at, leaf)| state(at.to_string(), Some(0), leaf)),
    );
    let tree = QueueTree::new(queues);
    let applications = |leaf: usize| {
        let known = &leaves[leaf - 1];
        let first = leaf as u64 * 100;
        let container = |(at, (size, node)): (u64, (u64, u32))| Container {
            id: first + at,
            size,
            importance: 1,
            since: Time(at),
            node: Some(node),
            is_master: false,
            is_killable: false,
        };
        let live = known.live.iter().map(|&node| (1, node));
        vec![Application {
            id: leaf as u64,
            user: String::new(),
            priority: 0,
            age: 0,
            pending: known.pending,
            reserved: (50..)
                .zip(known.waiting.iter().copied())
                .map(container)
                .collect(),
            live: (0..).zip(live).map(container).collect(),
        }]
    };
    let settings = RoundSettings {
        cluster,
        natural_termination_factor: Ratio::ZERO,
        now: Time(100_000_000),
        ..settings
    };
    let outcome = Round::run(&tree, &settings, &mut { applications });
    let name = |container: u64| (container / 100 - 1) as usize;
    outcome
        .victims
        .iter()
        .map(|one| (name(one.container), one.container % 100, one.pass))
        .collect()
}

fn priority_aware(delay: u64) -> RoundSettings {
    let priority_delay = Some(Span::from_secs(delay));
    RoundSettings {
        priority_delay,
        total_per_round: Ratio::ONE,
        ..RoundSettings::default()
    }
}

/// The low queue runs on nodes 1, 1, 2, 1; the high one waits for room for two on node 1.
fn low_and_high() -> [Leaf; 2] {
    let low = Leaf {
        guaranteed: 4,
        live: vec![1, 1, 2, 1],
        ..Leaf::default()
    };
    let high = Leaf {
        guaranteed: 4,
        priority: 1,
        waiting: vec![(2, 1)],
        pending: 2,
        ..Leaf::default()
    };
    [low, high]
}

#[test]
fn priority_pass_makes_room_for_reservation() {
    let chosen = round(&low_and_high(), priority_aware(60));
    assert_eq!(
        chosen,
        [(0, 3, Pass::Priority), (0, 1, Pass::Priority)],
        "the youngest on that node"
    );
}

#[test]
fn priority_pass_requires_delay_priority_and_deficit() {
    assert_eq!(round(&low_and_high(), priority_aware(100)), []);
    let [low, high] = low_and_high();
    assert_eq!(
        round(
            &[
                low.clone(),
                Leaf {
                    priority: 0,
                    ..high.clone()
                }
            ],
            priority_aware(60)
        ),
        []
    );
    assert_eq!(
        round(
            &[
                low,
                Leaf {
                    live: vec![2; 4],
                    ..high
                }
            ],
            priority_aware(60)
        ),
        []
    );
}

#[test]
fn priority_pass_skips_unfit_and_satisfied_reservations() {
    let [low, high] = low_and_high();
    assert_eq!(
        round(
            &[
                low,
                Leaf {
                    waiting: vec![(4, 1)],
                    ..high
                }
            ],
            priority_aware(60)
        ),
        []
    );
    let nodes = vec![Node { id: 1, free: 2 }];
    assert_eq!(
        round(
            &low_and_high(),
            RoundSettings {
                nodes,
                ..priority_aware(60)
            }
        ),
        []
    );
}

#[test]
fn priority_pass_makes_no_partial_room() {
    let [low, high] = low_and_high();
    let two = [
        low,
        Leaf {
            waiting: vec![(1, 2), (2, 1)],
            ..high
        },
    ];
    let counts = [1, 2, 3, 4].map(|eighths| {
        let settings = RoundSettings {
            total_per_round: Ratio::new(eighths, 8),
            ..priority_aware(60)
        };
        round(&two, settings).len()
    });
    assert_eq!(
        counts,
        [1, 1, 3, 3],
        "room for one, then for two more or none"
    );
}

#[test]
fn reserved_pass_serves_cheapest_reservation_first() {
    let all = Ratio::ONE;
    let reserved = RoundSettings {
        reserved_aware: true,
        total_per_round: all,
        ..RoundSettings::default()
    };
    let over = Leaf {
        guaranteed: 2,
        live: vec![1, 1, 1, 2],
        ..Leaf::default()
    };
    let waits = Leaf {
        guaranteed: 6,
        waiting: vec![(2, 1), (2, 2)],
        pending: 4,
        ..Leaf::default()
    };
    let nodes = vec![Node { id: 1, free: 0 }, Node { id: 2, free: 1 }];
    let chosen = round(&[over, waits], RoundSettings { nodes, ..reserved });
    assert_eq!(
        chosen[0],
        (0, 3, Pass::Reserved),
        "half of the room on node 2 is free"
    );
    assert!(chosen.len() <= 3, "no more than the excess: {chosen:?}");
}
