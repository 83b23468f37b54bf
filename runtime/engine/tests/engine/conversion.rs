//! Conversion of suspended attempts, whose tasks then continue on another worker, and refused suspends.

use napreduce_engine::scenarios::InOrder;
use napreduce_engine::{Conversion, Converted, EngineSettings, Instead, PreemptionSettings, Span};

use napreduce_engine::scenarios::check_settings;

fn converting(to: Converted, script: &str) {
    let convert = Some(Conversion {
        after: Span::from_millis(10),
        to,
    });
    let preemption = PreemptionSettings {
        convert,
        ..PreemptionSettings::default()
    };
    check_settings(
        InOrder,
        EngineSettings {
            preemption,
            ..EngineSettings::default()
        },
        script,
    );
}

/// Two workers; the attempt of job 1 was suspended at 0 ms for job 2, and job 3 holds the other worker.
const SUSPENDED: &str = "
    worker 1 1+0
    job 1 maps 1
        > launch m0.1 on 1
    worker 2 1+0
    job 3 maps 1
        > launch 3:m0.1 on 2
    job 2 maps 1
    started m0.1
    started 3:m0.1
    policy suspend m0.1 for 2
        > suspend m0.1
    suspended m0.1
        > launch 2:m0.1 on 1
    started 2:m0.1
";

#[test]
fn suspended_attempt_converts_when_other_worker_is_idle() {
    converting(
        Converted::Checkpoint,
        &format!(
            "{SUSPENDED}
             at 12ms
             show records
             wake
             failed 3:m0.1 fatal: no
                 > record ended 3:m0.1: no
                 > record decided 3 failed: job_0003_m_0000 is not retried: no
                 > record ended 3 failed: job_0003_m_0000 is not retried: no
                 > job 3 failed: job_0003_m_0000 is not retried: no
                 > record given up m0.1 checkpoint; checkpoint m0.1
             why m0
                 > running
                 > job_0001_m_0000.1 was resumed to save its work and continue elsewhere, on worker_0001, launched 0.0 s ago: worker_0001 had no slot for it for 10ms, and worker_0002 has one
             checkpointed m0.1
                 > record checkpointed m0.1; record launched m0.2 on 2; launch m0.2 on 2 from m0.1"
        ),
    );
}

#[test]
fn suspended_attempt_converts_when_wait_ends() {
    converting(
        Converted::Checkpoint,
        &format!(
            "{SUSPENDED}
             at 3ms
             show wakes
             failed 3:m0.1 fatal: no
                 > job 3 failed: job_0003_m_0000 is not retried: no
             at 10ms
             wake
                 > checkpoint m0.1"
        ),
    );
}

#[test]
fn conversion_can_kill() {
    converting(
        Converted::Kill,
        &format!(
            "{SUSPENDED}
             failed 3:m0.1 fatal: no
                 > job 3 failed: job_0003_m_0000 is not retried: no
             at 10ms
             wake
                 > kill m0.1
             killed m0.1
                 > launch m0.2 on 2"
        ),
    );
}

#[test]
fn resumable_or_held_attempt_is_not_converted() {
    converting(
        Converted::Checkpoint,
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         worker 2 1+0
         started m0.1
         operator suspend m0.1: for now
             > suspend m0.1
         suspended m0.1
         at 30ms
         wake
         hold
         operator resume m0.1: go on
             > resume m0.1",
    );
}

#[test]
fn one_free_slot_converts_one_attempt() {
    converting(
        Converted::Checkpoint,
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         worker 2 1+0
         job 3 maps 1
             > launch 3:m0.1 on 2
         started m0.1
         started m1.1
         job 2 maps 2
         policy suspend m0.1 for 2
             > suspend m0.1
         policy suspend m1.1 for 2
             > suspend m1.1
         suspended m0.1
             > launch 2:m0.1 on 1
         suspended m1.1
             > launch 2:m1.1 on 1
         at 20ms
         failed 3:m0.1 fatal: no
             > job 3 failed: job_0003_m_0000 is not retried: no
             > checkpoint m0.1
         wake
         checkpointed m0.1
             > launch m0.2 on 2 from m0.1
         wake",
    );
}

#[test]
fn attempt_failing_during_conversion_is_retried() {
    converting(
        Converted::Checkpoint,
        &format!(
            "{SUSPENDED}
             at 12ms
             failed 3:m0.1 fatal: no
                 > job 3 failed: job_0003_m_0000 is not retried: no
                 > checkpoint m0.1
             failed m0.1 retryable: the disk is full
                 > launch m0.2 on 2"
        ),
    );
}

fn refusing(when_full: Instead, script: &str) {
    let preemption = PreemptionSettings {
        when_full,
        ..PreemptionSettings::default()
    };
    check_settings(
        InOrder,
        EngineSettings {
            preemption,
            ..EngineSettings::default()
        },
        script,
    );
}

const ASKED: &str = "
    worker 1 1+0
    job 1 maps 1
        > launch m0.1 on 1
    job 2 maps 1
    started m0.1
    show records
    policy suspend m0.1 for 2
        > record wanted suspend m0.1; suspend m0.1
";

#[test]
fn refused_suspend_becomes_wait() {
    refusing(
        Instead::Wait,
        &format!(
            "{ASKED}
             refused m0.1: no memory
                 > record refused m0.1 so wait; record wanted wait m0.1
             policy suspend m0.1 for 2
             commits m0.1
                 > record granted m0.1; commit m0.1
             done m0.1
                 > record done m0.1; record decided 1 succeeded; record ended 1 succeeded; job 1 succeeded
                 > record launched 2:m0.1 on 1; record slot of m0.1 to 2:m0.1; launch 2:m0.1 on 1"
        ),
    );
}

#[test]
fn refused_suspend_becomes_kill() {
    refusing(
        Instead::Kill,
        &format!(
            "{ASKED}
             refused m0.1: no memory
                 > record refused m0.1 so kill; record wanted kill m0.1; kill m0.1
             killed m0.1
                 > record ended m0.1: preempted: the script says so (kill instead of suspend: no memory)
                 > record launched 2:m0.1 on 1; record slot of m0.1 to 2:m0.1; launch 2:m0.1 on 1"
        ),
    );
}

#[test]
fn requested_commit_precedes_kill() {
    refusing(
        Instead::Kill,
        &format!(
            "{ASKED}
             commits m0.1
             refused m0.1: no memory
                 > record refused m0.1 so kill; record granted m0.1; commit m0.1; record wanted kill m0.1
             done m0.1
                 > record done m0.1; record decided 1 succeeded; record ended 1 succeeded; job 1 succeeded
                 > record launched 2:m0.1 on 1; record slot of m0.1 to 2:m0.1; launch 2:m0.1 on 1"
        ),
    );
}

/// `SUSPENDED`, with a task that must finish a record or a group before it can save its work.
fn suspended_at_work() -> String {
    SUSPENDED.replace("\n    suspended m0.1", "\n    suspended-at-work m0.1")
}

#[test]
fn attempt_suspended_at_work_is_not_converted() {
    let suspended = suspended_at_work();
    assert_ne!(suspended, SUSPENDED);
    converting(
        Converted::Checkpoint,
        &format!(
            "{suspended}
             at 12ms
             wake
             failed 3:m0.1 fatal: no
                 > job 3 failed: job_0003_m_0000 is not retried: no
             commits 2:m0.1
                 > commit 2:m0.1
             done 2:m0.1
                 > job 2 succeeded; resume m0.1
             resumed m0.1"
        ),
    );
}

#[test]
fn checkpoint_of_attempt_suspended_at_work_waits_for_a_slot() {
    let suspended = suspended_at_work();
    converting(
        Converted::Checkpoint,
        &format!(
            "{suspended}
             operator checkpoint m0.1: elsewhere
             operator checkpoint m0.1: again
                 > warn job_0001_m_0000.1 cannot be preempted by checkpoint: already being checkpointed; ignored
             commits 2:m0.1
                 > commit 2:m0.1
             done 2:m0.1
                 > job 2 succeeded; resume m0.1
             resumed m0.1
                 > checkpoint m0.1
             checkpointed m0.1
                 > launch m0.2 on 1 from m0.1"
        ),
    );
}

#[test]
fn attempt_suspended_at_work_leaves_draining_worker_in_a_free_slot() {
    let suspended = suspended_at_work();
    converting(
        Converted::Checkpoint,
        &format!(
            "{suspended}
             drain 1
             commits 2:m0.1
                 > commit 2:m0.1
             done 2:m0.1
                 > job 2 succeeded; resume m0.1
             resumed m0.1
                 > checkpoint m0.1
             checkpointed m0.1
                 > leave 1"
        ),
    );
}

#[test]
fn attempt_suspended_at_work_is_killed_without_a_slot() {
    let suspended = suspended_at_work();
    converting(
        Converted::Kill,
        &format!(
            "{suspended}
             at 12ms
             wake
             failed 3:m0.1 fatal: no
                 > job 3 failed: job_0003_m_0000 is not retried: no
                 > kill m0.1
             killed m0.1
                 > launch m0.2 on 2"
        ),
    );
}
