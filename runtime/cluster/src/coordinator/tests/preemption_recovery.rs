//! Suspended and checkpointed attempts when coordinators are killed and workers are lost.

use super::preemption::RUNNING;
use super::script::{check, check_also_with_snapshots};

#[test]
fn preempted_attempts_survive_coordinator_kill_at_every_step() {
    check_also_with_snapshots(&format!(
        "{RUNNING}
         heard
         restart
         suspend m0: ada asked           > m0.1
         restart                         > suspend m0.1
         suspended m0.1 after 40ms       > launch m1.1 on w
         started m1.1
         heard
         restart
         ask tasks 1                     > m0 suspended, m0.1 suspended: suspend by operator: ada asked
                                         > m1 running, m1.1 running
                                         > r0 waiting
         resume m0: ada asked            > m0.1
         done m1.1                       > resume m0.1
         resumed m0.1 after 5ms
         heard
         restart
         checkpoint m0: ada asked        > m0.1
                                         > checkpoint m0.1
         checkpointed m0.1 after 70ms
         heard
         restart                         > launch m0.2 on w from m0.1
         ask preemptions 1               > m0.1 suspend by operator: ada asked; suspended, ...
                                         > m0.1 checkpoint by operator: ada asked; checkpointed, ...
         ask resumes 1                   > m0.1 stopped 5ms
         ask restores 1                  > m0.2 from m0.1, saved 70ms"
    ));
}

/// A checkpoint survives the loss of a worker, even if an attempt restored from it is lost as well. A task
/// that an operator suspended waits for an operator, although its work is lost. Its suspension lasts as long as the
/// script takes, usually under a millisecond: the dots.
#[test]
fn checkpoint_outlives_worker_unlike_suspended_attempt() {
    check(
        "worker w 2
         submit 1 maps 2 reduces 1       > launch m0.1 on w
                                         > launch m1.1 on w
         started m0.1
         started m1.1
         suspend m0.1: ada asked         > suspend m0.1
         suspended m0.1 after 800ms
         checkpoint m1.1: ada asked      > checkpoint m1.1
         checkpointed m1.1 after 500ms   > launch m1.2 on w from m1.1
         disconnect w
         worker w 2 again                > w is worker 2 now
                                         > launch m1.3 on w from m1.1
         resume m0: ada asked            > m0.1
                                         > launch m0.2 on w
         ask preemptions 1
             > m0.1 suspend by operator: ada asked; suspended, lost 800ms, ...took 700us
             > m1.1 checkpoint by operator: ada asked; checkpointed, saved 500ms, took 700us
         ask counters 1 WORK_LOST_MILLIS
             > WORK_LOST_MILLIS 800",
    );
}

#[test]
fn withdrawn_request_stays_closed_with_its_reason() {
    check_also_with_snapshots(
        "worker w 1
         submit 1 maps 2 reduces 1       > launch m0.1 on w
         suspend m0: ada asked           > m0.1
         resume m0: ada errs             > m0.1
         ask preemptions 1
             > m0.1 suspend by operator: ada asked (but an operator resumed it); withdrawn
         heard
         restart
         started m0.1
         ask preemptions 1
             > m0.1 suspend by operator: ada asked (but an operator resumed it); withdrawn",
    );
}
