//! Jobs that get another priority or queue while they are there, under every policy that makes a difference
//! of it.
//!
//! Owns who is served first afterwards, and what is refused. That nothing else of an engine or a policy is
//! out of step is checked after each event by the scenario itself.

use napreduce_engine::scenarios::check_with;
use napreduce_engine::{Fifo, JobChange, Scheduler};
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration};
use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName, SchedulerTables};

/// Two jobs that wait behind a third; the later one is changed and goes first.
fn goes_first(policy: impl Scheduler + 'static, queue: &str, change: &str) {
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
fn a_job_of_higher_priority_goes_first() {
    goes_first(Fifo::default(), "default", "priority 5");
    goes_first(natjam(), "research", "priority 5");
    goes_first(capacity(), "etl", "priority 5");
}

fn natjam() -> Natjam {
    Natjam::new(NatjamConfiguration::default()).expect("its published values")
}

/// Two queues, each with half of the slots, and the other half while nobody else wants it.
fn capacity() -> Capacity {
    let text = "
        mode = \"soft-cap\"
        [[queue]]
        name = \"etl\"
        guaranteed-percent = 50
        [[queue]]
        name = \"adhoc\"
        guaranteed-percent = 50";
    let configuration: CapacityConfiguration = toml::from_str(text).expect("a configuration");
    Capacity::new(&configuration).expect("a policy")
}

#[test]
fn a_job_that_moves_to_production_goes_before_research() {
    goes_first(natjam(), "research", "queue production");
}

#[test]
fn a_job_that_runs_takes_its_slots_along_to_another_pool() {
    check_with(
        Fair::new(FairConfiguration::default()).expect("its published values"),
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

/// What a policy says to a change.
fn said(tables: &str, scheduler: SchedulerName, change: &JobChange) -> String {
    let tables: SchedulerTables = toml::from_str(tables).expect("tables");
    let policy = SchedulerConfiguration { scheduler, tables }.build().expect("a policy");
    policy.can_change(change).err().unwrap_or_default()
}

#[test]
fn what_makes_no_difference_is_refused_with_why() {
    let priority = JobChange { priority: Some(5), queue: None };
    let queue = JobChange { priority: None, queue: Some("etl".to_owned()) };
    assert_eq!(said("", SchedulerName::Fifo, &queue), "fifo has no queues");
    assert_eq!(
        said("[fifo]\nignore-priority = true", SchedulerName::Fifo, &priority),
        "fifo goes by no priority ([scheduler.fifo] ignore-priority)"
    );
    assert_eq!(
        said("", SchedulerName::Hfsp, &priority),
        "hfsp goes by the size of a job, and gives it the weight of its queue when it is submitted"
    );
    for name in [SchedulerName::Fcs, SchedulerName::NatjamDeadline, SchedulerName::Trigger] {
        assert_eq!(
            said("", name, &priority),
            "it settles the place of a job when that is submitted",
            "{name}"
        );
    }
    assert_eq!(
        said("[fair]\nplacement = \"user\"", SchedulerName::Fair, &queue),
        "its pools go by the user of a job, not by its queue ([scheduler.fair] placement)"
    );
    let unknown = JobChange { priority: None, queue: Some("elt".to_owned()) };
    assert_eq!(capacity().can_change(&unknown), Ok(()), "the coordinator has looked at the name");
    assert_eq!(said("", SchedulerName::Composed, &priority), "", "both of its parts are fifo");
    assert_eq!(said("", SchedulerName::Composed, &queue), "fifo has no queues");
}
