//! Changes of a job's priority or queue under every policy that uses them. The scenario checks the invariants
//! of engine and policy after each event.

use napreduce_engine::scenarios::check_with;
use napreduce_engine::{Fifo, JobChange, Scheduler};
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration};
use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};

/// Two jobs wait behind a third; the later one is changed and served first.
fn is_served_first_after(policy: impl Scheduler + 'static, queue: &str, change: &str) {
    check_with(
        policy,
        &format!(
            "worker 1 1+0
             job 1 maps 1 queue {queue}
                 > launch m0.1 on 1
             job 2 maps 1 queue {queue}
             job 3 maps 1 queue {queue}
             started m0.1
             change 3 {change}: ada waits
             commits m0.1
                 > commit m0.1
             done m0.1
                 > job 1 succeeded; launch 3:m0.1 on 1"
        ),
    );
}

#[test]
fn raised_priority_is_served_first() {
    is_served_first_after(Fifo::default(), "default", "priority 5");
    is_served_first_after(natjam(), "research", "priority 5");
    is_served_first_after(capacity(), "etl", "priority 5");
}

fn natjam() -> Natjam {
    Natjam::new(NatjamConfiguration::default()).expect("published values are valid")
}

/// Two queues with half of the slots each, which may grow into the idle half.
fn capacity() -> Capacity {
    let text = "
        mode = \"soft-cap\"
        [[queue]]
        name = \"etl\"
        guaranteed-percent = 50
        [[queue]]
        name = \"adhoc\"
        guaranteed-percent = 50";
    let configuration: CapacityConfiguration =
        toml::from_str(text).expect("the configuration is valid");
    Capacity::new(&configuration).expect("the configuration is valid")
}

#[test]
fn job_moved_to_production_precedes_research() {
    is_served_first_after(natjam(), "research", "queue production");
}

#[test]
fn running_job_keeps_slots_in_new_pool() {
    check_with(
        Fair::new(FairConfiguration::default()).expect("published values are valid"),
        "worker 1 3+0
         job 1 maps 4 queue etl
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         job 2 maps 4 queue adhoc
         started m0.1
         change 1 queue adhoc: it is no etl
         commits m0.1
             > commit m0.1
         done m0.1
             > launch 2:m0.1 on 1",
    );
}

/// Returns the error of a policy for a change.
fn change_error(tables: &str, scheduler: SchedulerName, change: &JobChange) -> String {
    let tables: SchedulerTables = toml::from_str(tables).expect("tables");
    let policy = SchedulerConfiguration { scheduler, tables }
        .build()
        .expect("the configuration is valid");
    policy
        .can_change(change)
        .err()
        .map_or_else(String::new, |why| why.to_string())
}

#[test]
fn ignored_change_is_rejected_with_reason() {
    let priority = JobChange {
        priority: Some(5),
        queue: None,
    };
    let queue = JobChange {
        priority: None,
        queue: Some("etl".to_owned()),
    };
    assert_eq!(
        change_error("", SchedulerName::Fifo, &queue),
        "fifo has no queues"
    );
    assert_eq!(
        change_error(
            "[fifo]\nignore-priority = true",
            SchedulerName::Fifo,
            &priority
        ),
        "fifo ignores priorities ([scheduler.fifo] ignore-priority)"
    );
    assert_eq!(
        change_error("", SchedulerName::Hfsp, &priority),
        "hfsp orders jobs by size and sets the queue weight of a job at submission"
    );
    for name in [
        SchedulerName::Fcs,
        SchedulerName::NatjamDeadline,
        SchedulerName::Trigger,
    ] {
        assert_eq!(
            change_error("", name, &priority),
            "the scheduler sets the place of a job at submission",
            "{name}"
        );
    }
    assert_eq!(
        change_error("[fair]\nplacement = \"user\"", SchedulerName::Fair, &queue),
        "pools are assigned by user, not by queue ([scheduler.fair] placement)"
    );
    let unknown = JobChange {
        priority: None,
        queue: Some("elt".to_owned()),
    };
    assert_eq!(
        capacity().can_change(&unknown),
        Ok(()),
        "the coordinator checks the name"
    );
    assert_eq!(
        change_error("", SchedulerName::Composed, &priority),
        "",
        "both parts are fifo"
    );
    assert_eq!(
        change_error("", SchedulerName::Composed, &queue),
        "fifo has no queues"
    );
}
