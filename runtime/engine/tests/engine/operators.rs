//! Commands of operators: suspending, checkpointing and resuming attempts, pausing jobs, and refusals.

use napreduce_engine::scenarios::InOrder;
use napreduce_engine::{EngineSettings, Instead, KindPreemption, PreemptionSettings};

use napreduce_engine::scenarios::{check, check_settings};

/// One slot: job 1 runs in it, and job 2 waits for it.
const CONTEST: &str = "
    worker 1 1+0
    job 1 maps 1
        > launch m0.1 on 1
    job 2 maps 1
    started m0.1
";

fn contest(then: &str) {
    check(&format!("{CONTEST}\n{then}"));
}

#[test]
fn held_attempt_stays_suspended_until_resumed() {
    contest(
        "show records
         operator suspend m0.1: ada needs the machine
             > record held m0.1; record wanted suspend m0.1; suspend m0.1
         suspended m0.1
             > record suspended m0.1; record launched 2:m0.1 on 1; launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > record granted 2:m0.1; commit 2:m0.1
         done 2:m0.1
             > record done 2:m0.1; record decided 2 succeeded; record ended 2 succeeded; job 2 succeeded
         why m0
             > suspended; job_0001_m_0000.1 is suspended by an operator on worker_0001, launched 0.0 s ago
             > suspended 0.0 s ago by an operator: ada needs the machine; it continues when an operator resumes it
         operator resume m0.1: ada is done
             > record released m0.1; resume m0.1
         resumed m0.1
             > record resumed m0.1",
    );
}

#[test]
fn recalled_attempt_gets_next_slot_of_worker() {
    contest(
        "operator suspend m0.1: for now
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         job 3 maps 1 priority 9
         operator resume m0.1: now
         why m0
             > suspended; job_0001_m_0000.1 is suspended and gets the next free slot on worker_0001, launched 0.0 s ago
             > suspended 0.0 s ago by an operator: for now; it continues in the next free map slot of worker_0001
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded
             > resume m0.1",
    );
}

#[test]
fn resume_withdraws_unordered_suspend() {
    check(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         operator suspend m0.1: oops
         operator resume m0.1: not that one
         started m0.1
         tally requests_cancelled 1",
    );
}

#[test]
fn attempt_suspended_by_policy_can_be_held_and_resumed() {
    contest(
        "policy suspend m0.1 for 2
             > suspend m0.1
         operator suspend m0.1: stay there
         suspended m0.1
             > launch 2:m0.1 on 1
         failed 2:m0.1 fatal: no
             > job 2 failed: job_0002_m_0000 is not retried: no
         operator resume m0.1: go on
             > resume m0.1",
    );
}

#[test]
fn operator_suspend_replaces_wait_of_policy() {
    contest(
        "policy wait m0.1 for 2
         operator suspend m0.1: at once
             > suspend m0.1
         suspended m0.1
             > launch 2:m0.1 on 1
         tally requests_cancelled 1",
    );
}

#[test]
fn operator_checkpoint_requeues_task() {
    contest(
        "operator checkpoint m0.1: move along
             > checkpoint m0.1
         checkpointed m0.1
             > launch m0.2 on 1 from m0.1",
    );
}

#[test]
fn suspended_attempt_checkpoints_without_slot() {
    contest(
        "show records
         operator suspend m0.1: for now
             > record held m0.1; record wanted suspend m0.1; suspend m0.1
         suspended m0.1
             > record suspended m0.1; record launched 2:m0.1 on 1; launch 2:m0.1 on 1
         operator checkpoint m0.1: elsewhere, please
             > record given up m0.1 checkpoint; checkpoint m0.1
         worker 2 1+0
         checkpointed m0.1
             > record checkpointed m0.1; record launched m0.2 on 2; launch m0.2 on 2 from m0.1",
    );
}

#[test]
fn impossible_command_is_refused_with_reason() {
    contest(
        "
         operator suspend m7.1: no such
             > warn job_0001_m_0007.1 cannot be preempted by suspend: it is not running; ignored
         operator resume m0.1: why
             > warn job_0001_m_0000.1 cannot be resumed: it is not suspended; ignored
         operator suspend m0.1: yes
             > suspend m0.1
         operator suspend m0.1: again
             > warn job_0001_m_0000.1 cannot be preempted by suspend: an operator has already suspended it; ignored
         operator checkpoint m0.1: too early
             > warn job_0001_m_0000.1 cannot be preempted by checkpoint: it is being suspended; try again when it is suspended; ignored
         operator resume m0.1: sorry
         operator resume m0.1: really
             > warn job_0001_m_0000.1 cannot be resumed: already resumed; it gets the next free slot of its worker; ignored
         kill m0.1: enough
             > kill m0.1
         operator resume m0.1: no
             > warn job_0001_m_0000.1 cannot be resumed: it is being killed; ignored
         continue 1: no
             > warn job_0001 cannot be resumed: it is not suspended; ignored
         pause 9: no
             > warn job_0009 cannot be suspended: no such job; ignored
         tally illegal_events 8",
    );
}

#[test]
fn operator_command_has_no_fallback() {
    let map = KindPreemption {
        suspend: false,
        checkpoint: false,
        otherwise: Instead::Kill,
    };
    let preemption = PreemptionSettings {
        map,
        ..PreemptionSettings::default()
    };
    let settings = EngineSettings {
        preemption,
        ..EngineSettings::default()
    };
    let script = format!(
        "{CONTEST}
         operator suspend m0.1: please
             > warn job_0001_m_0000.1 cannot be preempted by suspend: maps cannot be suspended here; checkpoint or kill it; ignored
         operator checkpoint m0.1: please
             > warn job_0001_m_0000.1 cannot be preempted by checkpoint: maps cannot be checkpointed here; suspend or kill it; ignored"
    );
    check_settings(InOrder, settings, &script);
}

#[test]
fn refused_operator_suspend_is_warned() {
    contest(
        "show records
         operator suspend m0.1: please
             > record held m0.1; record wanted suspend m0.1; suspend m0.1
         refused m0.1: no memory
             > record refused m0.1
             > warn job_0001_m_0000.1 cannot be suspended and continues: worker_0001 reported: no memory
         operator suspend m0.1: again
             > record held m0.1; record wanted suspend m0.1; suspend m0.1",
    );
}

#[test]
fn paused_job_is_suspended_and_not_scheduled() {
    check(
        "worker 1 2+0
         job 1 maps 3
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         pause 1: lunch
             > suspend m0.1
         started m1.1
             > suspend m1.1
         suspended m0.1
         suspended m1.1
         whyjob 1
             > suspended
             > it is suspended: lunch
             > 0 of 3 map tasks are done; 0 running, 2 suspended, 1 waiting
         operator resume m0.1: that one
             > warn job_0001_m_0000.1 cannot be resumed: job_0001 is suspended; resume the job; ignored
         continue 1: back
             > resume m0.1; resume m1.1",
    );
}

#[test]
fn unsuspendable_attempt_of_paused_job_finishes() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         commits m0.1
             > commit m0.1
         pause 1: lunch
             > suspend m1.1
         done m0.1
         refused m1.1: no memory
             > warn job_0001_m_0001.1 cannot be suspended and continues: worker_0001 reported: no memory
         commits m1.1
             > commit m1.1
         done m1.1
             > job 1 succeeded",
    );
}

#[test]
fn held_attempt_stays_held_when_job_resumes() {
    check(
        "worker 1 2+0
         job 1 maps 2
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         operator suspend m0.1: slow disk
             > suspend m0.1
         suspended m0.1
         pause 1: lunch
             > suspend m1.1
         suspended m1.1
         continue 1: back
             > resume m1.1
         operator resume m0.1: fixed
             > resume m0.1",
    );
}

#[test]
fn paused_beneficiary_gets_no_slot() {
    contest(
        "policy suspend m0.1 for 2
             > suspend m0.1
         pause 2: later
         suspended m0.1
             > resume m0.1
         resumed m0.1
         stop 2: never
             > job 2 killed: never",
    );
}

#[test]
fn paused_job_restarts_after_loss_of_worker() {
    check(
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         pause 1: lunch
             > suspend m0.1
         suspended m0.1
         lost 1
         continue 1: back
             > launch m0.2 on 2",
    );
}
