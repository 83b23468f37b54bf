//! Workers that join, and workers that are lost in every state of their attempts.

use napreduce_engine::scenarios::check;

#[test]
fn joining_worker_gets_work_freest_first() {
    check(
        "job 1 maps 4
         worker 1 1+0
             > launch m0.1 on 1
         worker 2 2+0
             > launch m1.1 on 2; launch m2.1 on 2
         job 2 maps 3
         worker 3 3+0
             > launch m3.1 on 3; launch 2:m0.1 on 3; launch 2:m1.1 on 3",
    );
}

#[test]
fn work_spreads_over_workers() {
    check(
        "worker 1 2+0
         worker 2 2+0
         job 1 maps 3
             > launch m0.1 on 1; launch m1.1 on 2; launch m2.1 on 1",
    );
}

#[test]
fn attempts_of_lost_worker_rerun_uncounted() {
    check(
        "show records
         worker 1 1+0
         worker 2 0+0
         job 1 maps 1 attempts 1
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
         started m0.1
         lost 1
             > record ended m0.1: worker_0001 was lost
         done m0.1
         worker 3 1+0
             > record launched m0.2 on 3; launch m0.2 on 3
         tally stale_reports 1",
    );
}

#[test]
fn needed_outputs_of_lost_worker_are_rebuilt() {
    check(
        "worker 1 2+0
         worker 2 1+1
         job 1 maps 3 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 2
         done m0.1
         done m1.1
         done m2.1
             > launch r0.1 on 2 reading m0.1 m1.1 m2.1
         started r0.1
         lost 1
             > launch m0.2 on 2
         failed r0.1 retryable losing m0.1: no route
         done m0.2
             > launch m1.2 on 2
         done m1.2
             > launch r0.2 on 2 reading m0.2 m1.2 m2.1",
    );
}

#[test]
fn committed_map_outputs_survive_worker() {
    check(
        "worker 1 1+0
         worker 2 0+0
         job 1 maps 2
             > launch m0.1 on 1
         started m0.1
         commits m0.1
             > commit m0.1
         done m0.1
             > launch m1.1 on 1
         lost 1
         worker 3 2+0
             > launch m1.2 on 3",
    );
}

#[test]
fn worker_loss_in_every_pending_state_is_handled() {
    check(
        "worker 1 6+0
         worker 2 0+0
         job 1 maps 6 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1; launch m4.1 on 1
             > launch m5.1 on 1
         started m1.1
         started m2.1
         started m3.1
         started m4.1
         policy suspend m1.1
             > suspend m1.1
         policy checkpoint m2.1
             > checkpoint m2.1
         policy kill m3.1
             > kill m3.1
         policy suspend m4.1
             > suspend m4.1
         suspended m4.1
             > resume m4.1
         lost 1
         tally requests_cancelled 3
         worker 3 6+0
             > launch m0.2 on 3; launch m1.2 on 3; launch m2.2 on 3; launch m3.2 on 3; launch m4.2 on 3
             > launch m5.2 on 3",
    );
}

#[test]
fn suspended_attempt_is_lost_with_worker() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy suspend m0.1 for 2
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         lost 1
         worker 2 2+0
             > launch m0.2 on 2; launch 2:m0.2 on 2",
    );
}

#[test]
fn checkpoint_survives_worker() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         job 2 maps 1
         started m0.1
         policy checkpoint m0.1 for 2
             > checkpoint m0.1
         checkpointed m0.1
             > launch 2:m0.1 on 1
         lost 1
         worker 2 2+0
             > launch m0.2 on 2 from m0.1; launch 2:m0.2 on 2",
    );
}

#[test]
fn stopping_job_ends_with_last_worker() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         stop 1: enough
             > kill m0.1; kill m1.1
         lost 1
             > job 1 killed: enough",
    );
}

#[test]
fn worker_number_is_never_reused() {
    check(
        "worker 1 1+0
         worker 1 1+0
             > warn worker_0001: worker is Up and cannot take Joined; ignored
         lost 1
         lost 1
             > warn worker_0001: worker is Lost and cannot take Lost; ignored
         worker 1 1+0
             > warn worker_0001: worker is Lost and cannot take Joined; ignored
         lost 7
             > warn worker_0007: worker is Unknown and cannot take Lost; ignored
         tally illegal_events 4",
    );
}
