//! Scenarios of FCS. Jobs have reduces only, so the remaining work is their number.

use napreduce_engine::{Primitive, Span};
use napreduce_schedulers::fcs::{Fcs, FcsConfiguration};

use napreduce_engine::scenarios::check_with;

fn fcs() -> Fcs {
    fcs_with(|_| ())
}

fn fcs_with(change: impl FnOnce(&mut FcsConfiguration)) -> Fcs {
    let mut configuration = FcsConfiguration {
        heartbeat: Span(0),
        ..FcsConfiguration::default()
    };
    change(&mut configuration);
    Fcs::new(configuration).expect("a valid configuration")
}

#[test]
fn small_job_preempts_large_job_that_returns_later() {
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
fn job_with_equal_work_is_not_preempted() {
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
fn new_and_nearly_done_reduces_keep_slots() {
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
fn reduce_above_slackness_bound_is_not_preempted() {
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
fn preempted_reduce_waits_for_worker_then_migrates() {
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
fn worker_counts_once_per_heartbeat() {
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
fn suspended_reduces_resume_on_their_worker() {
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
fn job_reclaims_slot_of_its_reduce_from_larger_job() {
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
fn fcs_declines_map_slots() {
    check_with(
        fcs(),
        "worker 1 1+1
         job 1 maps 1 reduces 1
         declined 1: fcs assigns reduce slots only; compose it with a policy for maps",
    );
}

#[test]
fn page_documents_every_parameter() {
    let page = include_str!("../../../../docs/schedulers/fcs.md");
    let values = serde_json::to_value(FcsConfiguration::default()).expect("plain data serializes");
    for key in values.as_object().expect("a table").keys() {
        assert!(
            page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}.")),
            "{key}"
        );
    }
}
