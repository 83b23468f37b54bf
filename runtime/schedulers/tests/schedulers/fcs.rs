//! FCS: reduces of jobs with much work make room for those of jobs with little, and go on where they were.
//!
//! Owns its scenarios. Jobs have reduces alone, so that what is left of them is how many of those are.

use napreduce_engine::{Primitive, Span};
use napreduce_schedulers::fcs::{Fcs, FcsConfiguration};

use napreduce_engine::scenarios::check_with;

fn fcs() -> Fcs {
    fcs_with(|_| ())
}

fn fcs_with(change: impl FnOnce(&mut FcsConfiguration)) -> Fcs {
    let mut configuration = FcsConfiguration { heartbeat: Span(0), ..FcsConfiguration::default() };
    change(&mut configuration);
    Fcs::new(configuration).expect("a configuration that makes sense")
}

#[test]
fn a_small_job_takes_the_slot_of_a_large_one_which_goes_on_there_later() {
    check_with(
        fcs(),
        "worker 1 0+2
         job 1 reduces 4
             > launch r0.1 on 1; launch r1.1 on 1
         started r0.1
         started r1.1
         at 20000ms
         progress r1.1 5/10
         job 2 reduces 1
             > checkpoint r0.1
         checkpointed r0.1
             > launch 2:r0.1 on 1
         started 2:r0.1
         commits 2:r0.1
             > commit 2:r0.1
         done 2:r0.1
             > job 2 succeeded; launch r0.2 on 1 from r0.1",
    );
}

#[test]
fn a_job_with_no_more_work_gives_nothing() {
    check_with(
        fcs(),
        "worker 1 0+2
         job 1 reduces 2
             > launch r0.1 on 1; launch r1.1 on 1
         started r0.1
         started r1.1
         at 20000ms
         job 2 reduces 2
         job 3 reduces 3
         job 4 reduces 1
             > checkpoint r1.1",
    );
}

#[test]
fn new_reduces_and_those_nearly_done_keep_their_slots() {
    check_with(
        fcs(),
        "worker 1 0+2
         job 1 reduces 3
             > launch r0.1 on 1; launch r1.1 on 1
         started r0.1
         at 15000ms
         started r1.1
         progress r0.1 8/10
         at 20000ms
         job 2 reduces 1
         at 24999ms
         wake
         at 26000ms
         wake
             > checkpoint r1.1",
    );
}

#[test]
fn a_reduce_that_became_too_slack_is_left_alone() {
    check_with(
        fcs(),
        "worker 1 0+1
         job 1 reduces 2
             > launch r0.1 on 1
         started r0.1
         at 20000ms
         progress r0.1 5/10
         job 2 reduces 1
             > checkpoint r0.1
         checkpointed r0.1
             > launch 2:r0.1 on 1
         started 2:r0.1
         at 180000ms
         commits 2:r0.1
             > commit 2:r0.1
         done 2:r0.1
             > job 2 succeeded; launch r0.2 on 1 from r0.1
         started r0.2
         progress r0.2 6/10
         at 200000ms
         progress r0.2 6/10
         job 3 reduces 1
             > checkpoint r0.2
         checkpointed r0.2
             > launch 3:r0.1 on 1
         started 3:r0.1
         at 500000ms
         commits 3:r0.1
             > commit 3:r0.1
         done 3:r0.1
             > job 3 succeeded; launch r0.3 on 1 from r0.2
         started r0.3
         progress r0.3 7/10
         at 520000ms
         job 4 reduces 1",
    );
}

#[test]
fn a_preempted_reduce_waits_for_its_worker_and_goes_elsewhere_in_the_end() {
    check_with(
        fcs_with(|it| it.declines = 1),
        "worker 1 0+1
         job 1 reduces 2
             > launch r0.1 on 1
         started r0.1
         worker 2 0+1
             > launch r1.1 on 2
         started r1.1
         at 20000ms
         progress r1.1 5/10
         job 2 reduces 1
             > checkpoint r0.1
         checkpointed r0.1
             > launch 2:r0.1 on 1
         started 2:r0.1
         worker 3 0+1
         wake
         wake
             > launch r0.2 on 3 from r0.1",
    );
}

#[test]
fn a_worker_is_one_opportunity_in_a_heartbeat_and_is_offered_again() {
    check_with(
        fcs_with(|it| (it.declines, it.heartbeat) = (1, Span::from_secs(3))),
        "worker 1 0+1
         job 1 reduces 2
             > launch r0.1 on 1
         started r0.1
         worker 2 0+1
             > launch r1.1 on 2
         started r1.1
         at 20000ms
         progress r1.1 5/10
         job 2 reduces 1
             > checkpoint r0.1
         checkpointed r0.1
             > launch 2:r0.1 on 1
         started 2:r0.1
         worker 3 0+1
         wake
         wake
         show wakes
         at 23000ms
         wake
             > wake at 26000ms
         at 26000ms
         wake
             > launch r0.2 on 3 from r0.1",
    );
}

#[test]
fn suspended_reduces_go_on_where_they_are_once_there_is_room() {
    check_with(
        fcs_with(|it| it.primitive = Primitive::Suspend),
        "worker 1 0+1
         job 1 reduces 3
             > launch r0.1 on 1
         started r0.1
         at 20000ms
         job 2 reduces 1
             > suspend r0.1
         suspended r0.1
             > launch 2:r0.1 on 1
         started 2:r0.1
         commits 2:r0.1
             > commit 2:r0.1
         done 2:r0.1
             > job 2 succeeded; resume r0.1",
    );
}

#[test]
fn a_job_takes_back_the_slot_where_its_reduce_was_from_a_larger_one() {
    check_with(
        fcs(),
        "worker 1 0+1
         job 1 reduces 2
             > launch r0.1 on 1
         started r0.1
         at 20000ms
         job 2 reduces 1
             > checkpoint r0.1
         checkpointed r0.1
             > launch 2:r0.1 on 1
         started 2:r0.1
         job 3 reduces 9
         worker 2 0+1
             > launch r1.1 on 2
         started r1.1
         commits 2:r0.1
             > commit 2:r0.1
         done 2:r0.1
             > job 2 succeeded; launch r0.2 on 1 from r0.1",
    );
}

#[test]
fn map_slots_belong_to_somebody_else() {
    check_with(
        fcs(),
        "worker 1 1+1
         job 1 maps 1 reduces 1
         declined 1: FCS gives reduce slots only; compose it with a policy for maps",
    );
}

#[test]
fn the_page_names_every_parameter_and_its_example_makes_sense() {
    let page = include_str!("../../../../docs/schedulers/fcs.md");
    let values = serde_json::to_value(FcsConfiguration::default()).expect("plain data");
    for key in values.as_object().expect("a table").keys() {
        assert!(page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}.")), "{key}");
    }
}
