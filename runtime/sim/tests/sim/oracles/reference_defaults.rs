//! Family `reference-defaults`: our defaults equal the published ones. It has a table per policy instead of
//! cases.

use napreduce_engine::{Primitive, Ratio, TaskEviction};
use napreduce_schedulers::capacity::{IntraQueueOrder, Mode, MonitorConfiguration};
use napreduce_schedulers::fair::{FairConfiguration, PoolConfiguration};
use napreduce_schedulers::fcs::FcsConfiguration;
use napreduce_schedulers::hfsp::size::Confidence;
use napreduce_schedulers::hfsp::{Hfsp, HfspConfiguration};
use napreduce_schedulers::natjam::{
    DeadlineEviction, JobEviction, NatjamConfiguration, NatjamRConfiguration,
};
use serde_json::Value;

use crate::oracles::cases::{self, exact};

/// A check of one table, by name.
type Check = (&'static str, fn(&Table<'_>));

const CHECKS: [Check; 6] = [
    ("capacity", capacity),
    ("fair", fair),
    ("natjam", natjam),
    ("fcs", fcs),
    ("hfsp_paper", hfsp_paper),
    ("hfsp_source", hfsp_source),
];

#[test]
fn oracle_reference_defaults() {
    for file in cases::files()
        .into_iter()
        .filter(|file| file.family == "reference-defaults")
    {
        let mut tables = 0;
        for (name, check) in CHECKS {
            if let Some(table) = file.content.get(name) {
                check(&Table {
                    name,
                    values: table,
                });
                tables += 1;
            }
        }
        println!("reference-defaults: {tables} tables");
    }
}

/// A table of published values.
struct Table<'a> {
    name: &'a str,
    values: &'a Value,
}

impl Table<'_> {
    /// Checks our value against the published one, if there is one.
    fn expect(&self, name: &str, ours: impl Into<Value>) {
        let ours = ours.into();
        if let Some(published) = self.values.get(name) {
            assert_eq!(*published, ours, "{} of {}", name, self.name);
        }
    }

    /// Checks an exact number.
    fn number(&self, name: &str, ours: Ratio) {
        if let Some(published) = self.values.get(name) {
            assert_eq!(exact(published), ours, "{} of {}", name, self.name);
        }
    }
}

fn capacity(table: &Table<'_>) {
    let ours = MonitorConfiguration::default();
    table.expect("monitor.enable", Mode::default() == Mode::Preemptive);
    table.expect("observe_only", ours.observe_only);
    table.expect("monitoring_interval_ms", ours.interval.0 / 1000);
    table.expect(
        "max_wait_before_kill_ms",
        ours.max_wait_before_kill.0 / 1000,
    );
    table.number("total_preemption_per_round", ours.total_per_round);
    table.number("max_ignored_over_capacity", ours.dead_zone);
    table.number(
        "natural_termination_factor",
        ours.natural_termination_factor,
    );
    table.expect("select_based_on_reserved_containers", ours.reserved_aware);
    table.expect(
        "additional_res_balance_based_on_reserved_containers",
        ours.reserved_aware,
    );
    table.expect("lazy_preemption_enabled", ours.lazy);
    table.expect("intra_queue.enabled", ours.intra_queue);
    table.number(
        "intra_queue.minimum_threshold",
        ours.intra_queue_minimum_threshold,
    );
    table.number(
        "intra_queue.max_allowable_limit",
        ours.intra_queue_max_allowable_limit,
    );
    let order = match ours.intra_queue_order {
        IntraQueueOrder::UserLimitFirst => "userlimit_first",
        IntraQueueOrder::PriorityFirst => "priority_first",
    };
    table.expect("intra_queue.preemption_order_policy", order);
    table.expect(
        "balance_after_satisfied.enabled",
        ours.balance_beyond_guaranteed,
    );
    table.expect(
        "balance_after_satisfied.max_wait_before_kill_ms",
        ours.balance_max_wait_before_kill.0 / 1000,
    );
    table.expect(
        "priority_utilization.underutilized_preemption.enabled",
        ours.priority_aware,
    );
    table.expect(
        "priority_utilization.reserved_container_delay_ms",
        ours.priority_delay.0 / 1000,
    );
}

fn fcs(table: &Table<'_>) {
    let ours = FcsConfiguration::default();
    table.number("slackness_bound", ours.slackness_bound);
    table.number("max_progress", ours.progress_max);
    table.expect("D", ours.declines);
}

fn hfsp_paper(table: &Table<'_>) {
    let ours = HfspConfiguration::default();
    table.expect("sample_set_map", ours.sample_maps);
    table.expect("sample_set_reduce", ours.sample_reduces);
    table.expect("delta_s", ours.delta.0 / 1_000_000);
    if let Confidence::Factor(factor) = ours.confidence {
        table.number("confidence", factor);
    }
    let all = (ours.training_maps_max, ours.training_reduces_max) == (None, None);
    table.expect(
        "max_training_slots",
        if all {
            "all slots of the cluster"
        } else {
            "some"
        },
    );
    table.expect("delay_scheduling", ours.delay.declines > 0);
    table.expect("eager_preemption", ours.primitive == Primitive::Suspend);
}

/// Where the source differs from the paper, our defaults follow the paper, and the source's values can be
/// configured.
fn hfsp_source(table: &Table<'_>) {
    let ours = HfspConfiguration::default();
    table.expect("initial_map_duration_ms", ours.assumed_task_time.0 / 1000);
    table.expect(
        "initial_reduce_duration_ms",
        ours.assumed_task_time.0 / 1000,
    );
    if let Confidence::Factor(factor) = ours.confidence {
        table.number("duration_modifier", factor);
    }
    table.expect("update_interval_ms", ours.update_interval.0 / 1000);
    let count = |name: &str, paper: u32| {
        let published = table.values.get(name).and_then(Value::as_u64);
        published.map_or(paper, |count| u32::try_from(count).unwrap())
    };
    let source = HfspConfiguration {
        sample_maps: count("trainer_min_maps", ours.sample_maps),
        sample_reduces: count("trainer_min_reduces", ours.sample_reduces),
        training_maps_max: Some(count("train_map_slots", 0)),
        training_reduces_max: Some(count("train_reduce_slots", 0)),
        primitive: Primitive::Wait,
        ..ours
    };
    assert!(
        Hfsp::new(source).is_ok(),
        "the values of the source are valid"
    );
}

fn fair(table: &Table<'_>) {
    const NEVER: &str = "never (max long)";
    let ours = FairConfiguration::default();
    let pool = PoolConfiguration::default();
    table.expect("preemption", ours.preemption);
    table.number("cluster_utilization_threshold", ours.utilization_gate);
    table.expect("wait_time_before_kill_ms", ours.kill_wait.0 / 1000);
    table.expect(
        "wait_time_before_next_starvation_check_ms",
        ours.recheck_delay.0 / 1000,
    );
    table.expect("update_interval_ms", ours.update_interval.0 / 1000);
    // An empty pool inherits the values of the root.
    assert_eq!(
        (pool.min_share_timeout, pool.fair_share_timeout),
        (None, None)
    );
    let above_all = ours.patience();
    assert_eq!(
        (above_all.min_share_timeout, above_all.fair_share_timeout),
        (None, None)
    );
    table.expect("min_share_preemption_timeout", NEVER);
    table.expect("fair_share_preemption_timeout", NEVER);
    table.number(
        "fair_share_preemption_threshold",
        above_all.fair_share_threshold,
    );
    table.expect(
        "allow_preemption_from",
        pool.allow_preemption_from.unwrap_or(true),
    );
    // Without delay scheduling a job takes the first slot anywhere. Slots are offered one by one, and no
    // attempt is a master.
    let no_delay = if ours.delay.declines == 0 {
        Ratio::new(-1, 1)
    } else {
        Ratio::ZERO
    };
    table.number("locality_threshold_node", no_delay);
    table.number("locality_threshold_rack", no_delay);
    table.expect("assign_multiple", false);
    table.expect("size_based_weight", ours.size_based_weight);
}

fn natjam(table: &Table<'_>) {
    let ours = NatjamConfiguration::default();
    let by_deadline = NatjamRConfiguration::default();
    table.expect(
        "preemptor_interval_s",
        ours.preemptor_interval.0 / 1_000_000,
    );
    table.expect("kill_timeout_s", ours.kill_timeout.0 / 1_000_000);
    table.expect("expired_list_s", ours.expired_time.0 / 1_000_000);
    let recommended = (ours.job_eviction, ours.task_eviction, by_deadline.eviction);
    assert_eq!(
        recommended,
        (
            JobEviction::MostResources,
            TaskEviction::ShortestRemaining,
            DeadlineEviction::MaximumDeadlineFirst
        )
    );
}
