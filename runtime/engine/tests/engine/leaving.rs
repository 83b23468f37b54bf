//! Workers that end after a grace period: their attempts save their work first. `drains` tests the common
//! rules of all drains, `moves` the map outputs.

use napreduce_engine::scenarios::check;

#[test]
fn running_attempt_checkpoints_and_moves() {
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
fn unsaved_attempt_is_killed_after_half_grace() {
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
fn slow_checkpoint_is_killed_after_half_grace() {
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
fn committing_attempt_ignores_grace() {
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
fn launching_attempt_is_killed_and_keeps_checkpoint() {
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
fn suspended_and_suspending_attempts_checkpoint() {
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
fn refused_suspend_checkpoints_within_grace() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         drain 1 within 20ms
         refused m0.1: no memory
             > warn job_0001_m_0000.1 cannot be suspended and continues: worker_0001 reported: no memory; checkpoint m0.1
         checkpointed m0.1
             > leave 1",
    );
}

#[test]
fn resuming_attempt_checkpoints_when_running() {
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
fn policy_cannot_cancel_request_of_engine() {
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
fn hold_survives_grace_as_checkpoint() {
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
fn map_finished_within_grace_reruns_after_loss() {
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
fn failure_within_grace_is_not_counted() {
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
fn repeated_drain_can_only_shorten_grace() {
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
fn drain_with_grace_cannot_be_undrained() {
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
fn worker_lost_within_grace_loses_unsaved_work() {
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
fn idle_worker_leaves_before_grace_ends() {
    check(
        "worker 1 1+0
         drain 1 within 20ms
             > leave 1",
    );
}
