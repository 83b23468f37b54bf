//! The passes of a round that make room for reservations.
//!
//! Owns reservations of the priority and the reserved selector. Does not own the other passes.

use napreduce_engine::{Ratio, Span, Time};
use napreduce_schedulers::capacity::monitor::{
    Application, Container, Node, Pass, QueueState, QueueTree, Round, RoundSettings,
};

/// A leaf below the root: what it is guaranteed, its priority, what runs where, and what it waits for where.
#[derive(Clone, Default)]
struct Leaf {
    guaranteed: u64,
    priority: i32,
    /// Nodes of its containers, the oldest first.
    live: Vec<u32>,
    /// Sizes and nodes.
    waiting: Vec<(u64, u32)>,
    pending: u64,
}

/// Whom a round chooses: the leaf, the container's place in it, and the pass.
fn round(leaves: &[Leaf], settings: RoundSettings) -> Vec<(usize, u64, Pass)> {
    let used = |leaf: &Leaf| (leaf.live.len() as u64, leaf.waiting.iter().map(|one| one.0).sum::<u64>());
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
    queues.extend(leaves.iter().enumerate().map(|(at, leaf)| state(at.to_string(), Some(0), leaf)));
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
            reserved: (50..).zip(known.waiting.iter().copied()).map(container).collect(),
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
    outcome.victims.iter().map(|one| (name(one.container), one.container % 100, one.pass)).collect()
}

fn priority_aware(delay: u64) -> RoundSettings {
    let priority_delay = Some(Span::from_secs(delay));
    RoundSettings { priority_delay, total_per_round: Ratio::ONE, ..RoundSettings::default() }
}

/// The low queue runs on nodes 1, 1, 2, 1; the high one waits for room for two on node 1.
fn low_and_high() -> [Leaf; 2] {
    let low = Leaf { guaranteed: 4, live: vec![1, 1, 2, 1], ..Leaf::default() };
    let high = Leaf { guaranteed: 4, priority: 1, waiting: vec![(2, 1)], pending: 2, ..Leaf::default() };
    [low, high]
}

#[test]
fn a_more_important_queue_gets_the_room_it_waits_for() {
    let chosen = round(&low_and_high(), priority_aware(60));
    assert_eq!(chosen, [(0, 3, Pass::Priority), (0, 1, Pass::Priority)], "the youngest of that node");
}

#[test]
fn it_must_have_waited_long_enough_be_more_important_and_have_less_than_its_guarantee() {
    assert_eq!(round(&low_and_high(), priority_aware(100)), []);
    let [low, high] = low_and_high();
    assert_eq!(round(&[low.clone(), Leaf { priority: 0, ..high.clone() }], priority_aware(60)), []);
    assert_eq!(round(&[low, Leaf { live: vec![2; 4], ..high }], priority_aware(60)), []);
}

#[test]
fn nothing_is_taken_when_it_would_not_fit_or_fits_already() {
    let [low, high] = low_and_high();
    assert_eq!(round(&[low, Leaf { waiting: vec![(4, 1)], ..high }], priority_aware(60)), []);
    let nodes = vec![Node { id: 1, free: 2 }];
    assert_eq!(round(&low_and_high(), RoundSettings { nodes, ..priority_aware(60) }), []);
}

#[test]
fn with_little_budget_no_part_of_a_room_is_made() {
    let [low, high] = low_and_high();
    let two = [low, Leaf { waiting: vec![(1, 2), (2, 1)], ..high }];
    let counts = [1, 2, 3, 4].map(|eighths| {
        let settings = RoundSettings { total_per_round: Ratio::new(eighths, 8), ..priority_aware(60) };
        round(&two, settings).len()
    });
    assert_eq!(counts, [1, 1, 3, 3], "room for one, and for two more or none");
}

#[test]
fn the_cheapest_reservation_is_served_first_with_what_is_too_much() {
    let all = Ratio::ONE;
    let reserved = RoundSettings { reserved_aware: true, total_per_round: all, ..RoundSettings::default() };
    let over = Leaf { guaranteed: 2, live: vec![1, 1, 1, 2], ..Leaf::default() };
    let waits = Leaf { guaranteed: 6, waiting: vec![(2, 1), (2, 2)], pending: 4, ..Leaf::default() };
    let nodes = vec![Node { id: 1, free: 0 }, Node { id: 2, free: 1 }];
    let chosen = round(&[over, waits], RoundSettings { nodes, ..reserved });
    assert_eq!(chosen[0], (0, 3, Pass::Reserved), "half of the room on node 2 is there already");
    assert!(chosen.len() <= 3, "no more than it has too much: {chosen:?}");
}
