//! Scenarios of HFSP: order by size, sampling and preemption.

use std::collections::BTreeMap;

use napreduce_engine::{Primitive, Span};
use napreduce_schedulers::hfsp::size::Confidence;
use napreduce_schedulers::hfsp::{Hfsp, HfspConfiguration, KnownTime, KnownTimes, LateOrder};

use napreduce_engine::scenarios::check_with;

/// HFSP with known map times by job name.
fn knowing(change: impl FnOnce(&mut HfspConfiguration)) -> Hfsp {
    let times = |seconds: u64| KnownTimes {
        map: vec![KnownTime(Span::from_secs(seconds))],
        reduce: vec![],
    };
    let known = [("long", 100), ("short", 10), ("tiny", 1)];
    let known_times = known
        .into_iter()
        .map(|(name, seconds)| (name.to_owned(), times(seconds)));
    let mut configuration = HfspConfiguration {
        known_times: known_times.collect(),
        ..HfspConfiguration::default()
    };
    change(&mut configuration);
    Hfsp::new(configuration).expect("a valid configuration")
}

#[test]
fn small_job_suspends_youngest_task_of_large_job() {
    check_with(
        knowing(|_| ()),
        "worker 1 2+0
         job 1 maps 3 name long
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         at 1000ms
         job 2 maps 1 name short
             > suspend m1.1
         suspended m1.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; resume m1.1",
    );
}

#[test]
fn victim_near_input_precedes_younger_one() {
    let jobs = "worker 1 1+0
         job 1 maps 2 name long
             > launch m0.1 on 1
         started m0.1
         at 500ms
         worker 2 1+0
             > launch m1.1 on 2
         started m1.1
         at 1000ms
         job 2 maps 1 name short local 1";
    check_with(
        knowing(|_| ()),
        &format!("{jobs}\n             > suspend m0.1"),
    );
    // With kill, the lost work counts more than locality.
    check_with(
        knowing(|it| it.primitive = Primitive::Kill),
        &format!("{jobs}\n             > kill m1.1"),
    );
}

#[test]
fn smaller_jobs_are_not_preempted_and_wait_disables() {
    check_with(
        knowing(|_| ()),
        "worker 1 2+0
         job 1 maps 3 name short
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 name long",
    );
    check_with(
        knowing(|it| it.primitive = Primitive::Wait),
        "worker 1 2+0
         job 1 maps 3 name long
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 name short
         commits m0.1
             > commit m0.1
         done m0.1
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn killed_victim_restarts() {
    check_with(
        knowing(|it| it.primitive = Primitive::Kill),
        "worker 1 2+0
         job 1 maps 2 name long
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 name short
             > kill m1.1
         killed m1.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; launch m1.2 on 1",
    );
}

#[test]
fn suspension_limit_has_hysteresis() {
    check_with(
        knowing(|it| (it.suspended_high, it.suspended_low) = (Some(1), Some(0))),
        "worker 1 2+0
         job 1 maps 3 name long
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 name short
             > suspend m1.1
         suspended m1.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         job 3 maps 1 name tiny
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; launch 3:m0.1 on 1
         started 3:m0.1
         commits 3:m0.1
             > commit 3:m0.1
         done 3:m0.1
             > job 3 succeeded; resume m1.1
         resumed m1.1
         job 4 maps 1 name tiny
             > suspend m1.1",
    );
}

#[test]
fn samples_start_first_and_are_not_preempted() {
    let policy = Hfsp::new(HfspConfiguration {
        sample_maps: 2,
        ..HfspConfiguration::default()
    });
    check_with(
        policy.expect("a valid configuration"),
        "worker 1 2+0
         job 1 maps 4
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1
         at 100000ms
         commits m0.1
             > commit m0.1
         done m0.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits m1.1
             > commit m1.1
         done m1.1
             > launch m2.1 on 1",
    );
}

#[test]
fn infinite_confidence_limits_job_to_its_sample() {
    let configuration = HfspConfiguration {
        sample_maps: 1,
        confidence: Confidence::Infinite,
        ..HfspConfiguration::default()
    };
    check_with(
        Hfsp::new(configuration).expect("a valid configuration"),
        "worker 1 3+0
         job 1 maps 3
             > launch m0.1 on 1
         declined 1: every job waits for another worker or for its size to be measured
         started m0.1
         at 10000ms
         commits m0.1
             > commit m0.1
         done m0.1
             > launch m1.1 on 1; launch m2.1 on 1",
    );
}

#[test]
fn training_slots_are_limited_under_demand() {
    check_with(
        knowing(|it| it.training_maps_max = Some(1)),
        "worker 1 3+0
         hold
         job 1 maps 5
         job 2 maps 1 name tiny
         release
         wake
             > launch m0.1 on 1; launch 2:m0.1 on 1; launch m1.1 on 1",
    );
}

#[test]
fn reduce_time_is_estimated_from_progress() {
    let configuration = HfspConfiguration {
        sample_reduces: 1,
        known_times: BTreeMap::from([(
            "short".to_owned(),
            KnownTimes {
                map: vec![],
                reduce: vec![KnownTime(Span::from_secs(150))],
            },
        )]),
        ..HfspConfiguration::default()
    };
    check_with(
        Hfsp::new(configuration).expect("a valid configuration"),
        "worker 1 0+1
         job 1 reduces 2
             > launch r0.1 on 1
         started r0.1
         progress r0.1 0/100
         job 2 reduces 1 name short
         at 30000ms
         progress r0.1 10/100
         at 60000ms
         progress r0.1 20/100
             > suspend r0.1
         suspended r0.1
             > launch 2:r0.1 on 1",
    );
}

#[test]
fn suspended_tasks_preempt_larger_jobs_on_their_worker() {
    check_with(
        knowing(|_| ()),
        "worker 1 2+0
         job 1 maps 3 name short
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         at 1ms
         job 2 maps 2 name tiny
             > suspend m1.1; suspend m0.1
         suspended m1.1
             > launch 2:m0.1 on 1
         suspended m0.1
             > launch 2:m1.1 on 1
         started 2:m0.1
         started 2:m1.1
         job 3 maps 4 name long
         worker 2 2+0
             > launch m2.1 on 2; launch 3:m0.1 on 2
         started m2.1
         started 3:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > resume m0.1",
    );
}

#[test]
fn late_jobs_run_in_sequence_or_share() {
    let script = |next: &str| {
        format!(
            "worker 1 4+0
             job 1 maps 6 name tiny
                 > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1
             started m0.1
             started m1.1
             started m2.1
             started m3.1
             job 2 maps 6 name tiny
             at 900000ms
             commits m0.1
                 > commit m0.1
             done m0.1
                 > {next}"
        )
    };
    check_with(knowing(|_| ()), &script("launch m4.1 on 1"));
    check_with(
        knowing(|it| it.late = LateOrder::Share),
        &script("launch 2:m0.1 on 1"),
    );
}

#[test]
fn page_documents_every_parameter() {
    let page = include_str!("../../../../../docs/schedulers/hfsp.md");
    let values = serde_json::to_value(HfspConfiguration::default()).expect("plain data serializes");
    for key in values.as_object().expect("a table").keys() {
        assert!(
            page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}.")),
            "{key}"
        );
    }
}
