//! Draining workers, and attempts killed by operators.

use napreduce_engine::scenarios::check;

#[test]
fn draining_worker_finishes_attempts_and_leaves() {
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
fn idle_draining_worker_leaves_immediately() {
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
fn draining_worker_stays_for_needed_outputs() {
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
fn hand_back_kills_running_and_converts_held_attempts() {
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
fn drain_can_become_hand_back() {
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
fn committing_attempt_survives_hand_back() {
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
fn suspended_attempt_moves_from_draining_worker() {
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
             > running
             > job_0001_m_0000.1 was resumed to save its work and continue elsewhere, on worker_0001, launched 0.0 s ago: worker_0001 is draining
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

/// An operator suspended the attempt of job 1, which may or may not support checkpoints.
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
fn unsaved_suspended_attempt_is_killed_by_drain_and_retried() {
    suspended_by_hand(
        "job 1 maps 1 unsaved maps attempts 1",
        "drain 1
             > record draining 1; record given up m0.1 kill; kill m0.1
         why m0
             > running
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
fn held_attempt_moves_from_draining_worker() {
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
fn slow_checkpoint_is_killed_by_hand_back() {
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
fn failed_checkpoint_on_draining_worker_is_retried() {
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
fn requested_commit_completes_instead_of_checkpoint() {
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
fn draining_worker_can_be_lost() {
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
fn drain_drops_reservations() {
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
fn operator_kill_is_no_failure() {
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
fn kill_of_ended_attempt_is_refused() {
    check(
        "job 1 maps 1
         kill m0.1: ada says so
             > warn job_0001_m_0000.1 cannot be killed: it is not running; ignored
         tally illegal_events 1",
    );
}

#[test]
fn late_kill_has_no_effect() {
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
fn hold_survives_drain_as_checkpoint() {
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
             > its attempt has ended; it continues from the checkpoint made on worker_0001 when an operator resumes it
         whyjob 1
             > suspended; 0 of 1 map tasks are done; 0 running, 0 suspended, 0 waiting
             > job_0001_m_0000 is suspended by an operator, and its attempt has ended
         lost 2
         worker 3 1+0
         operator resume m0.1: go on
             > launch m0.2 on 3 from m0.1",
    );
}

#[test]
fn hold_survives_kill_by_drain() {
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
             > its attempt has ended; it continues from the beginning when an operator resumes it
         operator resume m0.1: go on
             > launch m0.2 on 2",
    );
}

#[test]
fn hold_survives_loss_of_worker() {
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
             > its attempt has ended; it continues from the beginning when an operator resumes it
         operator resume m0.1: go on
             > launch m0.2 on 2
         operator resume m0.1: again
             > warn job_0001_m_0000.1 cannot be resumed: it is not running; ignored",
    );
}

/// A job waits for a slot that a kill with a grace will free.
const KILL_REQUESTED: &str = "
    worker 1 1+0
    worker 2 1+0
    hold
    job 1 maps 1
    policy launch m0 on 1
        > launch m0.1 on 1
    started m0.1
    job 2 maps 1
    policy kill m0.1 grace 500ms for 2
";

#[test]
fn drain_withdraws_preemption_of_running_task() {
    check(&format!(
        "{KILL_REQUESTED}
         drain 1
         tally requests_cancelled 1
         at 500ms
         wake
         policy kill m0.1 for 2
         tally requests_refused 1"
    ));
}

#[test]
fn shortage_withdraws_preemption_of_running_task() {
    check(&format!(
        "{KILL_REQUESTED}
         short 1: disk full
         tally requests_cancelled 1
         at 500ms
         wake"
    ));
}

#[test]
fn drain_keeps_preemption_by_operator() {
    check(
        "worker 1 1+0
         worker 2 0+1
         job 1 maps 1
             > launch m0.1 on 1
         operator suspend m0.1: let it rest
         drain 1
         tally requests_cancelled 0",
    );
}
