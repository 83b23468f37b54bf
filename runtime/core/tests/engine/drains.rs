//! Workers that are to leave, and attempts that an operator kills.
//!
//! Owns what is finished, what is handed back, and when a worker may go.

use crate::script::check;

#[test]
fn a_draining_worker_finishes_what_it_runs_and_leaves() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 2
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         drain 1
             > record draining 1
         commits m0.1
             > record granted m0.1; commit m0.1
         done m0.1
             > record done m0.1; record left 1; leave 1
         lost 1
         worker 2 1+0
             > record launched m1.1 on 2; launch m1.1 on 2",
    );
}

#[test]
fn an_idle_worker_leaves_at_once() {
    check(
        "worker 1 1+0
         drain 1
             > leave 1
         drain 1
             > warn worker_0001: worker is Lost and cannot take DrainRequested; ignored
         drain 9
             > warn worker_0009: worker is Unknown and cannot take DrainRequested; ignored
         tally illegal_events 2",
    );
}

#[test]
fn a_draining_worker_stays_while_its_map_outputs_are_needed() {
    check(
        "worker 1 1+0
         worker 2 0+1
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         drain 1
         started r0.1
         commits r0.1
             > commit r0.1
         done r0.1
             > job 1 succeeded; leave 1",
    );
}

#[test]
fn handing_back_kills_what_runs_and_gives_up_what_is_held() {
    check(
        "show records
         worker 1 1+1
         job 1 maps 2 reduces 1 slowstart 500 attempts 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         done m0.1
             > record done m0.1; record launched m1.1 on 1; launch m1.1 on 1
             > record launched r0.1 on 1; launch r0.1 on 1 reading m0.1
         started r0.1
         drain 1 now
             > record draining 1; kill m1.1; kill r0.1; record lost m0
         killed m1.1
             > record ended m1.1: killed: worker_0001 is draining
         killed r0.1
             > record ended r0.1: killed: worker_0001 is draining; record left 1; leave 1
         worker 2 2+1
             > record launched m0.2 on 2; launch m0.2 on 2; record launched m1.2 on 2; launch m1.2 on 2",
    );
}

#[test]
fn a_drain_can_become_one_that_hands_back() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         drain 1
         drain 1 now
             > kill m0.1
         killed m0.1
             > leave 1",
    );
}

#[test]
fn what_commits_may_finish_even_when_work_is_handed_back() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         drain 1 now
         done m0.1
             > job 1 succeeded; leave 1",
    );
}

#[test]
fn what_is_suspended_on_a_draining_worker_runs_elsewhere() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         hold
         policy suspend m0.1
             > suspend m0.1
         suspended m0.1
         policy suspend m1.1
             > suspend m1.1
         release
         drain 1
             > kill m0.1
         suspended m1.1
             > kill m1.1
         killed m0.1
         killed m1.1
             > leave 1
         worker 2 2+0
             > launch m0.2 on 2; launch m1.2 on 2",
    );
}

#[test]
fn a_draining_worker_can_be_lost() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         drain 1
         lost 1
         worker 2 1+0
             > launch m0.2 on 2",
    );
}

#[test]
fn slots_kept_on_a_draining_worker_are_given_up() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         hold
         policy checkpoint m0.1 for 2
             > checkpoint m0.1
         checkpointed m0.1
         drain 1
             > leave 1
         release
         worker 2 2+0
             > launch m0.2 on 2 from m0.1; launch 2:m0.1 on 2",
    );
}

#[test]
fn a_kill_by_an_operator_is_no_failure_and_says_why() {
    check(
        "show records
         worker 1 1+0
         job 1 maps 1 attempts 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         kill m0.1: ada says it hangs
             > kill m0.1
         kill m0.1: twice
         killed m0.1
             > record ended m0.1: killed: ada says it hangs
             > record launched m0.2 on 1; launch m0.2 on 1",
    );
}

#[test]
fn a_kill_of_what_does_not_run_is_told() {
    check(
        "job 1 maps 1
         kill m0.1: ada says so
             > warn job_0001_m_0000.1 cannot be killed: it is not running; ignored
         tally illegal_events 1",
    );
}

#[test]
fn a_kill_may_come_too_late() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         kill m0.1: it hangs
             > kill m0.1
         done m0.1
             > job 1 succeeded",
    );
}
