//! Workers that are ended from outside and say how long they have: what they run saves its work first.
//!
//! Owns the grace. What such a drain has in common with any other one that hands back is in `drains`; what
//! becomes of the outputs of maps, in `moves`.

use napreduce_engine::scenarios::check;

#[test]
fn what_runs_saves_its_work_at_once_and_goes_on_elsewhere() {
    check(
        "show records
         worker 1 1+1
         job 1 maps 2 reduces 1 slowstart 500
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         done m0.1
             > record done m0.1; record launched m1.1 on 1; launch m1.1 on 1
             > record launched r0.1 on 1; launch r0.1 on 1 reading m0.1
         started m1.1
         started r0.1
         drain 1 within 20ms
             > record draining 1; record wanted checkpoint m1.1; checkpoint m1.1
             > record wanted checkpoint r0.1; checkpoint r0.1; record lost m0
         checkpointed m1.1
             > record checkpointed m1.1
         checkpointed r0.1
             > record checkpointed r0.1; record left 1; leave 1
         worker 2 2+1
             > record launched m0.2 on 2; launch m0.2 on 2; record launched m1.2 on 2; launch m1.2 on 2 from m1.1",
    );
}

#[test]
fn what_cannot_be_saved_has_half_of_the_grace_to_finish_and_is_killed_then() {
    check(
        "show wakes
         worker 1 2+0
         worker 2 1+0
         job 1 maps 3 unsaved maps
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 2
         started m0.1
         started m1.1
         started m2.1
         drain 1 within 20ms
             > wake at 10ms
         at 5ms
         commits m0.1
             > commit m0.1
         done m0.1
         at 10ms
         wake
             > kill m1.1
         killed m1.1
             > leave 1
         commits m2.1
             > commit m2.1
         done m2.1
             > launch m1.2 on 2",
    );
}

#[test]
fn what_takes_too_long_to_save_its_work_is_killed_after_half_of_the_grace() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         started m0.1
         drain 1 within 20ms
             > checkpoint m0.1
         at 9ms
         wake
         at 10ms
         wake
             > kill m0.1
         killed m0.1
             > leave 1
         worker 2 1+0
             > launch m0.2 on 2",
    );
}

#[test]
fn what_commits_may_finish_however_long_that_takes() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         drain 1 within 20ms
         at 15ms
         wake
         done m0.1
             > job 1 succeeded; leave 1",
    );
}

#[test]
fn what_has_not_begun_is_killed_at_once_and_keeps_the_checkpoint_it_was_to_go_on_from() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1
             > launch m0.1 on 1
         started m0.1
         drain 1 within 20ms
             > checkpoint m0.1
         checkpointed m0.1
             > leave 1
         worker 2 1+0
             > launch m0.2 on 2 from m0.1
         drain 2 within 20ms
             > kill m0.2
         killed m0.2
             > leave 2
         worker 3 1+0
             > launch m0.3 on 3 from m0.1",
    );
}

#[test]
fn what_is_suspended_saves_its_work_and_so_does_what_is_just_being_suspended() {
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
         drain 1 within 20ms
             > checkpoint m0.1
         suspended m1.1
             > checkpoint m1.1
         checkpointed m0.1
         at 10ms
         wake
             > kill m1.1
         killed m1.1
             > leave 1",
    );
}

#[test]
fn what_cannot_be_suspended_after_all_saves_its_work_instead() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         drain 1 within 20ms
         refused m0.1: no memory
             > warn job_0001_m_0000.1 cannot be suspended and goes on: worker_0001 says no memory; checkpoint m0.1
         checkpointed m0.1
             > leave 1",
    );
}

#[test]
fn what_is_just_being_resumed_saves_its_work_when_it_runs() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         suspended m0.1
         operator resume m0.1: go on
             > resume m0.1
         drain 1 within 20ms
         resumed m0.1
             > checkpoint m0.1
         checkpointed m0.1
             > leave 1",
    );
}

#[test]
fn no_policy_takes_back_what_the_engine_asked_for() {
    check(
        "lenient
         worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         suspended m0.1
         operator resume m0.1: go on
             > resume m0.1
         drain 1 within 20ms
         policy cancel m0.1
         resumed m0.1
             > checkpoint m0.1",
    );
}

#[test]
fn what_an_operator_holds_stays_held_as_a_checkpoint() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: ada looks at it
             > suspend m0.1
         suspended m0.1
         drain 1 within 20ms
             > checkpoint m0.1
         checkpointed m0.1
             > leave 1
         operator resume m0.1: go on
             > launch m0.2 on 2 from m0.1",
    );
}

#[test]
fn a_map_that_finishes_on_a_worker_that_leaves_is_done_again_when_its_output_goes() {
    check(
        "show records
         worker 1 2+0
         job 1 maps 2 reduces 1 unsaved maps
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
             > record launched m1.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         drain 1 within 20ms
             > record draining 1
         done m0.1
             > record done m0.1
         at 10ms
         wake
             > kill m1.1; record lost m0
         done m1.1
             > record done m1.1; record lost m1; record left 1; leave 1
         worker 2 2+0
             > record launched m0.2 on 2; launch m0.2 on 2; record launched m1.2 on 2; launch m1.2 on 2",
    );
}

#[test]
fn a_failure_where_everything_is_ended_from_outside_counts_as_none() {
    check(
        "worker 1 1+0
         job 1 maps 1 attempts 1 unsaved maps
             > launch m0.1 on 1
         started m0.1
         drain 1 within 20ms
         failed m0.1 task: the command was ended by SIGTERM
             > leave 1
         worker 2 1+0
             > launch m0.2 on 2
         started m0.2
         failed m0.2 task: a bad row
             > job 1 failed: job_0001_m_0000 failed 1 time; last: a bad row",
    );
}

#[test]
fn whoever_asks_again_gets_no_more_time_and_may_give_less() {
    let job = "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         drain 1 within 20ms
             > checkpoint m0.1";
    check(&format!(
        "{job}
         at 5ms
         drain 1 within 40ms
         at 10ms
         wake
             > kill m0.1"
    ));
    check(&format!(
        "{job}
         drain 1 within 8ms
         at 4ms
         wake
             > kill m0.1"
    ));
    check(&format!(
        "{job}
         drain 1 now
             > kill m0.1"
    ));
}

#[test]
fn a_drain_becomes_one_with_a_grace_and_is_none_that_can_be_taken_back() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         drain 1
         drain 1 within 20ms
             > checkpoint m0.1
         checkpointed m0.1
             > leave 1",
    );
}

#[test]
fn a_worker_that_is_lost_within_its_grace_loses_what_it_had_not_saved() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         drain 1 within 20ms
             > checkpoint m0.1; checkpoint m1.1
         checkpointed m0.1
         lost 1
         at 10ms
         wake
         worker 2 2+0
             > launch m0.2 on 2 from m0.1; launch m1.2 on 2",
    );
}

#[test]
fn an_idle_worker_does_not_wait_for_its_grace() {
    check(
        "worker 1 1+0
         drain 1 within 20ms
             > leave 1",
    );
}
