//! Properties of monitor rounds over generated trees.

use napreduce_engine::{Ratio, Time};
use napreduce_schedulers::capacity::monitor::{
    Application, Container, IntraQueue, QueueSettings, QueueState, QueueTree, Round, RoundChoice,
    RoundSettings,
};
use napreduce_schedulers::capacity::{ApplicationOrder, IntraQueueOrder};
use proptest::prelude::*;

/// A generated leaf: weight, applications (containers and demand), and protection from preemption.
#[derive(Debug, Clone)]
struct Leaf {
    weight: u64,
    applications: Vec<(u64, u64, i32, bool)>,
    priority: i32,
    protected: bool,
}

/// Two levels: groups of leaves.
#[derive(Debug, Clone)]
struct Case {
    groups: Vec<Vec<Leaf>>,
    idle: u64,
    settings: RoundSettings,
}

fn leaf() -> impl Strategy<Value = Leaf> {
    let application = (
        0..12_u64,
        prop_oneof![Just(0), 0..20_u64],
        0..3,
        any::<bool>(),
    );
    let applications = prop::collection::vec(application, 0..4);
    let weight = prop_oneof![1 => Just(0), 5 => 1..9_u64];
    (weight, applications, 0..2, prop::bool::weighted(0.15)).prop_map(
        |(weight, applications, priority, protected)| Leaf {
            weight,
            applications,
            priority,
            protected,
        },
    )
}

fn settings() -> impl Strategy<Value = RoundSettings> {
    let tenths = |most: i128| (0..=most).prop_map(|tenths| Ratio::new(tenths, 10));
    let intra = (any::<bool>(), any::<bool>()).prop_map(|(enabled, users)| {
        enabled.then_some(IntraQueue {
            order: if users {
                IntraQueueOrder::UserLimitFirst
            } else {
                IntraQueueOrder::PriorityFirst
            },
            minimum_threshold: Ratio::new(1, 2),
            max_allowable_limit: Ratio::new(1, 2),
            minimum_allocation: 1,
        })
    });
    (
        tenths(10),
        tenths(3),
        tenths(10),
        0..2_u64,
        any::<bool>(),
        intra,
    )
        .prop_map(
            |(total, dead_zone, factor, least, balance, intra_queue)| RoundSettings {
                total_per_round: total,
                dead_zone,
                natural_termination_factor: factor,
                least,
                balance_beyond_guaranteed: balance,
                intra_queue,
                ..RoundSettings::default()
            },
        )
}

fn case() -> impl Strategy<Value = Case> {
    let group = prop::collection::vec(leaf(), 1..4);
    (
        prop::collection::vec(group, 1..4),
        prop_oneof![Just(0), 0..10_u64],
        settings(),
    )
        .prop_map(|(groups, idle, settings)| Case {
            groups,
            idle,
            settings,
        })
}

/// Builds the tree of a case. Guarantees are proportional to the weights of the queues.
struct Built {
    tree: QueueTree,
    applications: Vec<Vec<Application>>,
    settings: RoundSettings,
}

fn build(case: &Case) -> Built {
    let used = |leaf: &Leaf| leaf.applications.iter().map(|one| one.0).sum::<u64>();
    let leaves = || case.groups.iter().flatten();
    let cluster = leaves().map(used).sum::<u64>() + case.idle;
    let weights = leaves().map(|leaf| leaf.weight).sum::<u64>().max(1);
    let state = |parent, used, weight: u64, priority, protected| QueueState {
        name: "queue".to_owned(),
        parent,
        guaranteed: Ratio::new(i128::from(cluster * weight), i128::from(weights)),
        maximum: Ratio::whole(cluster),
        used,
        reserved: 0,
        killable: 0,
        pending: 0,
        priority,
        preemption_disabled: protected,
    };
    let mut queues = vec![state(None, cluster - case.idle, weights, 0, false)];
    let mut applications = vec![Vec::new()];
    let mut containers = 0;
    for group in &case.groups {
        let parent = queues.len();
        let weight = group.iter().map(|leaf| leaf.weight).sum();
        queues.push(state(
            Some(0),
            group.iter().map(used).sum(),
            weight,
            0,
            false,
        ));
        applications.push(Vec::new());
        for leaf in group {
            let pending = leaf.applications.iter().map(|one| one.1).sum();
            let own = state(
                Some(parent),
                used(leaf),
                leaf.weight,
                leaf.priority,
                leaf.protected,
            );
            queues.push(QueueState { pending, ..own });
            let application =
                |(age, &(live, pending, priority, first)): (u64, &(u64, u64, i32, bool))| {
                    let start = containers;
                    containers += live;
                    Application {
                        id: start * 100 + age,
                        user: if first { "ada" } else { "bob" }.to_owned(),
                        priority,
                        age,
                        pending,
                        reserved: Vec::new(),
                        live: (start..containers).map(container).collect(),
                    }
                };
            applications.push((0..).zip(&leaf.applications).map(application).collect());
        }
    }
    let order = ApplicationOrder::Fifo;
    let queue = QueueSettings {
        order,
        minimum_user_limit_percent: None,
    };
    let settings = RoundSettings {
        cluster,
        queues: vec![queue; queues.len()],
        ..case.settings.clone()
    };
    Built {
        tree: QueueTree::new(queues),
        applications,
        settings,
    }
}

fn container(id: u64) -> Container {
    Container {
        id,
        size: 1,
        importance: 1,
        since: Time(id),
        node: None,
        is_master: false,
        is_killable: false,
    }
}

fn run(built: &Built) -> RoundChoice {
    Round::run(&built.tree, &built.settings, &mut |leaf| {
        built.applications[leaf].clone()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_keeps_budget_and_takes_each_victim_once(case in case()) {
        let built = build(&case);
        let outcome = run(&built);
        let mut containers: Vec<u64> = outcome.victims.iter().map(|victim| victim.container).collect();
        prop_assert!(containers.len() as u64 <= built.settings.allowed());
        containers.sort_unstable();
        containers.dedup();
        prop_assert_eq!(containers.len(), outcome.victims.len());
    }

    #[test]
    fn round_respects_ideal_share_and_protection(case in case()) {
        let case = Case { settings: RoundSettings { intra_queue: None, ..case.settings }, ..case };
        let built = build(&case);
        let outcome = run(&built);
        // Each pass takes down to its own ideal share, and the second pass may raise the ideal of a leaf.
        let settings = RoundSettings { balance_beyond_guaranteed: false, ..built.settings.clone() };
        let first = run(&Built { settings, ..build(&case) });
        for leaf in built.tree.leaves() {
            let state = built.tree.queue(leaf);
            let taken = outcome.victims.iter().filter(|victim| victim.queue == leaf).count() as u64;
            if taken > 0 {
                prop_assert!(!state.preemption_disabled);
                let left = Ratio::whole(state.used - taken);
                // The balancing pass leaves one more container.
                let spare = Ratio::whole(u64::from(built.settings.balance_beyond_guaranteed));
                let ideal = outcome.ideal[leaf].min(first.ideal[leaf]);
                prop_assert!(left + spare >= ideal, "{left} of {ideal}");
            }
        }
    }

    #[test]
    fn round_without_demand_takes_nothing(case in case()) {
        let mut case = case;
        for leaf in case.groups.iter_mut().flatten() {
            leaf.applications.iter_mut().for_each(|application| application.1 = 0);
        }
        let outcome = run(&build(&case));
        prop_assert_eq!(outcome.victims, []);
    }

    #[test]
    fn ideal_shares_add_up_within_parent(case in case()) {
        let mut case = case;
        case.groups.iter_mut().flatten().for_each(|leaf| leaf.protected = false);
        let built = build(&case);
        let outcome = run(&built);
        for parent in (0..built.tree.len()).filter(|&number| !built.tree.is_leaf(number)) {
            let children = built.tree.children(parent).iter();
            let sum = children.map(|&child| outcome.ideal[child]).fold(Ratio::ZERO, |sum, ideal| sum + ideal);
            prop_assert!(sum <= outcome.ideal[parent], "{sum} of {}", outcome.ideal[parent]);
        }
    }

    #[test]
    fn equal_priorities_get_their_guarantees(case in case()) {
        let mut case = case;
        for leaf in case.groups.iter_mut().flatten() {
            (leaf.protected, leaf.priority) = (false, 0);
        }
        let built = build(&case);
        let outcome = run(&built);
        // Offers are whole, so less than one per sibling remains at each level.
        let rounding = Ratio::whole(built.tree.len() as u64);
        for leaf in built.tree.leaves() {
            let state = built.tree.queue(leaf);
            let due = Ratio::whole(state.used + state.pending).min(state.guaranteed);
            prop_assert!(outcome.ideal[leaf] + rounding >= due, "{} of {due}", outcome.ideal[leaf]);
        }
    }
}

/// With priorities the guarantee of a lower-priority queue is not reserved: the first queue is offered its
/// part of the whole remainder, not only its deficit.
#[test]
fn higher_priority_is_offered_remainder_beyond_guarantee() {
    let leaf = |weight, running, pending, priority| Leaf {
        weight,
        applications: vec![(running, pending, 0, false)],
        priority,
        protected: false,
    };
    let group = |priority| {
        vec![
            leaf(0, 14, 0, 0),
            leaf(5, 17, 6, priority),
            leaf(7, 10, 14, 0),
        ]
    };
    let ideal = |priority| {
        let case = Case {
            groups: vec![group(priority)],
            idle: 0,
            settings: RoundSettings::default(),
        };
        run(&build(&Case {
            settings: RoundSettings {
                balance_beyond_guaranteed: true,
                ..case.settings
            },
            ..case
        }))
        .ideal
        .split_off(2)
    };
    // 41 slots, guarantees of 0, 17 1/12 and 23 11/12. 14 remain once each queue has its usage within the
    // guarantee.
    let whole = |slots: [u64; 3]| slots.map(Ratio::whole).to_vec();
    assert_eq!(
        ideal(1),
        whole([0, 23, 18]),
        "5/12 of 14 are 6 for the first"
    );
    assert_eq!(
        ideal(0),
        whole([0, 17, 24]),
        "7/12 of 14 are 8 for the neediest, then 4, 1 and 1"
    );
}
