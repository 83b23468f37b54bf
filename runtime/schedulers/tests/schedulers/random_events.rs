//! Every policy under random events with random configurations: legal actions only, invariants hold, every
//! job ends, and a restored policy behaves like the original. The runs are those of the engine's tests.

use std::sync::Arc;

use napreduce_engine::{Fifo, Primitive, Ratio, Scheduler, Span, TaskEviction};
use napreduce_schedulers::fair::{Fair, FairConfiguration, Timeout};
use napreduce_schedulers::fcs::{Fcs, FcsConfiguration};
use napreduce_schedulers::hfsp::ranking::RankingOrder;
use napreduce_schedulers::hfsp::size::Confidence;
use napreduce_schedulers::hfsp::size_error::SizeError;
use napreduce_schedulers::hfsp::{Hfsp, HfspConfiguration, LateOrder};
use napreduce_schedulers::natjam::{
    DeadlineEviction, JobEviction, Natjam, NatjamConfiguration, NatjamR, NatjamRConfiguration,
};
use napreduce_schedulers::{
    Composed, SchedulerConfiguration, SchedulerName, serving::DelaySettings,
};

use napreduce_engine::scenarios::random::{RandomRun, play_out};

const SEEDS: u64 = 300;
const PRIMITIVES: [Primitive; 4] = [
    Primitive::Suspend,
    Primitive::Checkpoint,
    Primitive::Kill,
    Primitive::Wait,
];

/// Plays all seeds with one policy per seed; returns the number of preempted slots.
fn play<P: Scheduler + 'static>(make: impl Fn(u64) -> P + Copy + Send + Sync + 'static) -> u64 {
    let freed = (0..SEEDS).map(|seed| {
        let run = play_out(RandomRun::under(
            seed,
            false,
            Arc::new(move |_| Box::new(make(seed))),
        ));
        let tally = run.tally();
        tally.requests_satisfied + tally.requests_forced
    });
    freed.sum()
}

fn primitive(seed: u64) -> Primitive {
    PRIMITIVES[seed as usize % PRIMITIVES.len()]
}

fn delay(seed: u64) -> DelaySettings {
    DelaySettings {
        declines: (seed % 3) as u32,
        rack_declines: (seed % 2) as u32,
        heartbeat: Span::from_millis(2),
    }
}

#[test]
fn every_policy_survives_random_events() {
    for name in SchedulerName::ALL {
        let make = move || {
            SchedulerConfiguration::named(name)
                .build()
                .expect("published values")
        };
        for seed in 0..SEEDS / 10 {
            play_out(RandomRun::under(seed, false, Arc::new(move |_| make())));
        }
    }
}

#[test]
fn fair_survives_random_events() {
    let fair = |seed: u64| {
        let mut configuration = FairConfiguration {
            preemption: true,
            primitive: primitive(seed),
            utilization_gate: Ratio::ZERO,
            kill_wait: Span::from_millis(seed % 5),
            recheck_delay: Span(0),
            heartbeat: Span::from_millis(1),
            update_interval: Span::from_millis(2),
            size_based_weight: seed.is_multiple_of(3),
            priority_weight: seed.is_multiple_of(5),
            cap_by_demand: seed.is_multiple_of(7),
            delay: delay(seed),
            ..FairConfiguration::default()
        };
        configuration.root.fair_share_timeout = Some(Timeout(Some(Span::from_millis(seed % 4))));
        configuration.root.fair_share_threshold = Some(Ratio::ONE);
        Fair::new(configuration).expect("a valid configuration")
    };
    assert!(play(fair) > 0, "at least one preemption");
}

#[test]
fn natjam_survives_random_events() {
    let choices = [
        JobEviction::MostResources,
        JobEviction::LeastResources,
        JobEviction::Probabilistic,
    ];
    let orders = [
        TaskEviction::ShortestRemaining,
        TaskEviction::LongestRemaining,
        TaskEviction::Random,
    ];
    let natjam = move |seed: u64| {
        let configuration = NatjamConfiguration {
            job_eviction: choices[seed as usize % 3],
            task_eviction: orders[seed as usize / 3 % 3],
            primitive: primitive(seed),
            preempt_maps: true,
            preemptor_interval: Span::from_millis(2),
            kill_timeout: Span::from_millis(6),
            expired_time: Span::from_millis(3),
            delay: delay(seed),
            seed,
            ..NatjamConfiguration::default()
        };
        Natjam::new(configuration).expect("a valid configuration")
    };
    assert!(play(natjam) > 0, "at least one preemption");
}

#[test]
fn natjam_r_survives_random_events() {
    let natjam_r = |seed: u64| {
        let by_laxity = seed.is_multiple_of(2);
        let eviction = if by_laxity {
            DeadlineEviction::MaximumLaxityFirst
        } else {
            DeadlineEviction::MaximumDeadlineFirst
        };
        let configuration = NatjamRConfiguration {
            eviction,
            laxity_margin: Span::from_millis(if by_laxity { seed % 3 } else { 0 }),
            primitive: primitive(seed / 2),
            preempt_maps: true,
            interval: Span::from_millis(2),
            per_run: 1 + (seed % 3) as u32,
            kill_timeout: (!seed.is_multiple_of(5)).then_some(Span::from_millis(6)),
            delay: delay(seed),
            ..NatjamRConfiguration::default()
        };
        NatjamR::new(configuration).expect("a valid configuration")
    };
    assert!(play(natjam_r) > 0, "at least one preemption");
}

#[test]
fn hfsp_survives_random_events() {
    let hfsp = |seed: u64| {
        let configuration = HfspConfiguration {
            order: if seed.is_multiple_of(5) {
                RankingOrder::RemainingSize
            } else {
                RankingOrder::ProjectedFinish
            },
            late: if seed.is_multiple_of(3) {
                LateOrder::Share
            } else {
                LateOrder::Fifo
            },
            sample_maps: 1 + (seed % 3) as u32,
            sample_reduces: 1 + (seed % 2) as u32,
            delta: Span::from_millis(3),
            confidence: if seed.is_multiple_of(7) {
                Confidence::Infinite
            } else {
                Confidence::Factor(Ratio::ONE)
            },
            assumed_task_time: Span::from_millis(1 + seed % 20),
            training_maps_max: (seed.is_multiple_of(4)).then_some(1),
            primitive: primitive(seed),
            suspended_high: (seed.is_multiple_of(2)).then_some(1 + (seed % 4) as u32),
            suspended_low: (seed.is_multiple_of(2)).then_some(0),
            cluster_suspended_high: (seed.is_multiple_of(6)).then_some(3),
            update_interval: Span::from_millis(2),
            delay: delay(seed),
            size_error: SizeError::Uniform {
                alpha: Ratio::new(1, 2),
            },
            seed,
            ..HfspConfiguration::default()
        };
        Hfsp::new(configuration).expect("a valid configuration")
    };
    assert!(play(hfsp) > 0, "at least one preemption");
}

#[test]
fn fcs_survives_random_events() {
    let fcs = |seed: u64| {
        let configuration = FcsConfiguration {
            service_min: Span::from_millis(seed % 3),
            declines: (seed % 4) as u32,
            locality: (seed.is_multiple_of(5)).then_some(Ratio::new(1, 2)),
            heartbeat: Span::from_millis(seed % 3),
            primitive: primitive(seed),
            ..FcsConfiguration::default()
        };
        let reduces = Fcs::new(configuration).expect("a valid configuration");
        Composed::new(Box::new(Fifo::default()), Box::new(reduces), None)
    };
    assert!(play(fcs) > 0, "at least one preemption");
}
