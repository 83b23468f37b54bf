//! Workers that are to leave, and attempts that an operator kills.
//!
//! Owns what is finished, what is handed back, and when a worker may go.

use napreduce_engine::scenarios::check;

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
fn what_is_suspended_on_a_draining_worker_saves_its_work_and_goes_on_elsewhere() {
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
         show records
         drain 1
             > record draining 1; record given up m0.1 checkpoint; checkpoint m0.1
         why m0
             > active
             > job_0001_m_0000.1 was woken to save its work, to go on elsewhere, on worker_0001, launched 0.0 s ago: worker_0001 is draining
         suspended m1.1
             > record suspended m1.1; record given up m1.1 checkpoint; checkpoint m1.1
         checkpointed m0.1
             > record checkpointed m0.1
         checkpointed m1.1
             > record checkpointed m1.1; record left 1; leave 1
         worker 2 2+0
             > record launched m0.2 on 2; launch m0.2 on 2 from m0.1; record launched m1.2 on 2; launch m1.2 on 2 from m1.1",
    );
}

/// An operator suspended the attempt of job 1, which can be saved or not.
fn suspended_by_hand(job: &str, then: &str) {
    check(&format!(
        "worker 1 1+0
         {job}
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         suspended m0.1
         show records
         {then}"
    ));
}

#[test]
fn what_is_suspended_and_cannot_be_saved_is_killed_and_tried_again_elsewhere_when_it_is_resumed() {
    suspended_by_hand(
        "job 1 maps 1 unsaved maps attempts 1",
        "drain 1
             > record draining 1; record given up m0.1 kill; kill m0.1
         why m0
             > active
             > job_0001_m_0000.1 is being killed on worker_0001, launched 0.0 s ago; worker_0001 is draining, and maps of job_0001 cannot be checkpointed
         killed m0.1
             > record ended m0.1: killed: worker_0001 is draining, and maps of job_0001 cannot be checkpointed
             > record left 1; leave 1
         worker 2 1+0
         operator resume m0.1: go on
             > record released m0.1; record launched m0.2 on 2; launch m0.2 on 2",
    );
}

#[test]
fn what_an_operator_holds_is_moved_away_too_and_so_when_work_is_handed_back() {
    for drain in ["drain 1", "drain 1 now"] {
        suspended_by_hand(
            "job 1 maps 1",
            &format!(
                "{drain}
                     > record draining 1; record given up m0.1 checkpoint; checkpoint m0.1
                 checkpointed m0.1
                     > record checkpointed m0.1; record left 1; leave 1
                 worker 2 1+0
                 operator resume m0.1: go on
                     > record released m0.1; record launched m0.2 on 2; launch m0.2 on 2 from m0.1"
            ),
        );
    }
}

#[test]
fn what_takes_too_long_to_save_its_work_is_killed_when_the_work_is_to_be_handed_back() {
    suspended_by_hand(
        "job 1 maps 1",
        "drain 1
             > record draining 1; record given up m0.1 checkpoint; checkpoint m0.1
         drain 1 now
             > kill m0.1
         killed m0.1
             > record ended m0.1: killed: worker_0001 is draining; record left 1; leave 1",
    );
}

#[test]
fn what_cannot_save_its_work_after_all_is_tried_again() {
    suspended_by_hand(
        "job 1 maps 1",
        "drain 1
             > record draining 1; record given up m0.1 checkpoint; checkpoint m0.1
         failed m0.1 retryable: the disk is full
             > record ended m0.1: the disk is full; record left 1; leave 1
         worker 2 1+0
         operator resume m0.1: go on
             > record released m0.1; record launched m0.2 on 2; launch m0.2 on 2",
    );
}

#[test]
fn what_asked_to_commit_before_it_was_stopped_is_done_instead() {
    check(
        "worker 1 1+0
         worker 2 0+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         commits m0.1
         suspended m0.1
         drain 1
             > checkpoint m0.1; commit m0.1
         done m0.1
             > job 1 succeeded; leave 1",
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

#[test]
fn what_an_operator_suspended_stays_suspended_over_a_drain_as_a_checkpoint() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: ada looks at it
             > suspend m0.1
         suspended m0.1
         drain 1
             > checkpoint m0.1
         checkpointed m0.1
             > leave 1
         why m0
             > suspended; it is suspended by an operator: ada looks at it
             > its attempt is gone; it goes on from the checkpoint made on worker_0001 when an operator resumes it
         whyjob 1
             > suspended; 0 of 1 map tasks are done; 0 attempts run, 0 are suspended, 0 tasks wait
             > job_0001_m_0000 is suspended by an operator, and its attempt is gone
         lost 2
         worker 3 1+0
         operator resume m0.1: go on
             > launch m0.2 on 3 from m0.1",
    );
}

#[test]
fn what_cannot_be_saved_is_killed_by_a_drain_and_stays_suspended() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1 unsaved maps
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: ada looks at it
             > suspend m0.1
         suspended m0.1
         drain 1
             > kill m0.1
         killed m0.1
             > leave 1
         why m0
             > suspended; it is suspended by an operator: ada looks at it
             > its attempt is gone; it goes on from the beginning when an operator resumes it
         operator resume m0.1: go on
             > launch m0.2 on 2",
    );
}

#[test]
fn what_an_operator_suspended_stays_suspended_when_its_worker_is_lost() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: ada looks at it
             > suspend m0.1
         suspended m0.1
         lost 1
         why m0
             > suspended; it is suspended by an operator: ada looks at it
             > its attempt is gone; it goes on from the beginning when an operator resumes it
         operator resume m0.1: go on
             > launch m0.2 on 2
         operator resume m0.1: again
             > warn job_0001_m_0000.1 cannot be resumed: it is not running; ignored",
    );
}
