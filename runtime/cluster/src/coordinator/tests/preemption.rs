//! Attempts that operators and the engine suspend, resume, checkpoint and kill.

use super::script::check;

/// A job of two maps and a reduce on a worker with one slot; the first map is running.
pub(super) const RUNNING: &str = "
    worker w 1
    submit 1 maps 2 reduces 1       > launch m0.1 on w
    started m0.1
";

pub(super) fn running(then: &str) {
    check(&format!("{RUNNING}\n{then}"));
}

#[test]
fn suspended_attempt_frees_slot_until_resumed() {
    running(
        "suspend m0: ada asked           > m0.1
                                         > suspend m0.1
         suspended m0.1 after 2000ms     > launch m1.1 on w
         started m1.1
         ask tasks 1                     > m0 suspended, m0.1 suspended: suspend by operator: ada asked
                                         > m1 running, m1.1 running
                                         > r0 waiting
         ask progress 1                  > 0/2, 0/20 bytes, 1 suspended
         resume m0: ada asked            > m0.1
         done m1.1                       > resume m0.1
         resumed m0.1 after 300ms
         done m0.1
         finish 1 on w
         ask preemptions 1
             > m0.1 suspend by operator: ada asked; suspended, saved 2000ms, stopped 300ms, took 700us
         ask resumes 1                   > m0.1 stopped 300ms
         ask counters 1 SUSPENDS RESUMES SUSPENDED_MILLIS
             > SUSPENDS 1, RESUMES 1, SUSPENDED_MILLIS 300
         ask counters 1 WORK_SAVED_MILLIS SWAPPED_IN_BYTES WORK_LOST_MILLIS NUM_KILLED_MAPS
             > WORK_SAVED_MILLIS 2000, SWAPPED_IN_BYTES 100, WORK_LOST_MILLIS 0, NUM_KILLED_MAPS 0",
    );
}

/// The second checkpoint contains the work of both attempts.
#[test]
fn checkpointed_task_continues_on_other_worker() {
    running(
        "checkpoint m0: ada asked        > m0.1
                                         > checkpoint m0.1
         checkpointed m0.1 after 5000ms
         worker v 1                      > launch m0.2 on w from m0.1
                                         > launch m1.1 on v
         ask restores 1                  > m0.2 from m0.1, saved 5000ms
         started m0.2
         restored m0.2
         does m1.1
         ask restores 1                  > m0.2 from m0.1, saved 5000ms, is there
         checkpoint m0: ada asked        > m0.2
                                         > checkpoint m0.2
         checkpointed m0.2 after 1500ms  > launch m0.3 on w from m0.2
         ask restores 1                  > m0.2 from m0.1, saved 5000ms, is there
                                         > m0.3 from m0.2, saved 6500ms
         ask counters 1 CHECKPOINTS CHECKPOINT_BYTES CHECKPOINT_MILLIS
             > CHECKPOINTS 2, CHECKPOINT_BYTES 100, CHECKPOINT_MILLIS 2
         ask counters 1 CHECKPOINT_RESTORES WORK_SAVED_MILLIS
             > CHECKPOINT_RESTORES 1, WORK_SAVED_MILLIS 6500",
    );
}

#[test]
fn unusable_checkpoint_is_reported_as_lost_work() {
    running(
        "checkpoint m0.1: ada asked      > checkpoint m0.1
         checkpointed m0.1 after 5000ms  > launch m0.2 on w from m0.1
         started m0.2
         unusable m0.2: it is damaged
         done m0.2
         finish 1 on w
         ask restores 1                  > m0.2 from m0.1, saved 5000ms, unusable: it is damaged
         ask counters 1 WORK_LOST_MILLIS
             > WORK_LOST_MILLIS 5000
         ask events 1                    > ...
                                         > job_0001_m_0000.2 starts from scratch: it is damaged
                                         > ...",
    );
}

#[test]
fn kill_loses_work_but_is_no_failure() {
    running(
        "kill m0.1: ada asked            > kill m0.1
         killed m0.1 after 900ms         > launch m0.2 on w
         ask preemptions 1               > m0.1 kill by operator: ada asked; killed, lost 900ms, took 700us
         ask counters 1 WORK_LOST_MILLIS NUM_FAILED_MAPS
             > WORK_LOST_MILLIS 900, NUM_FAILED_MAPS 0",
    );
}

#[test]
fn refused_suspend_leaves_attempt_running() {
    running(
        "suspend m0.1: ada asked         > suspend m0.1
         refused m0.1: memory is short
         done m0.1                       > launch m1.1 on w
         ask preemptions 1               > m0.1 suspend by operator: ...memory is short...; withdrawn
         ask counters 1 SUSPENDS         > SUSPENDS 0",
    );
}

#[test]
fn suspended_job_starts_nothing_until_resumed() {
    running(
        "suspend 1: at night             > suspend m0.1
         suspended m0.1 after 10ms
         submit 2 maps 1 reduces 1 to other
             > launch 2:m0.1 on w
         ask why 1                       > ...
                                         > it is suspended: at night
                                         > ...
         resume 1: at night
         does 2:m0.1                     > resume m0.1
         resumed m0.1 after 1ms
         done m0.1                       > launch 2:r0.1 on w
                                         > launch m1.1 on w",
    );
}

#[test]
fn impossible_command_is_refused_with_state() {
    running(
        "resume m0: ada asked            > refused: cannot resume job_0001_m_0000.1: it is not suspended
         suspend m1: ada asked
             > refused: no attempt at job_0001_m_0001 is live; see: nap task list job_0001
         suspend r7: ada asked           > refused: job_0001 has no task job_0001_r_0007
         kill 4:m0: ada asked            > refused: there is no job_0004; see: nap job list
         suspend m0.9                    > refused: job_0001_m_0000.9 is not live...
         resume 1: at night              > refused: cannot resume job_0001: it is not suspended
         suspend m0: ada asked           > m0.1
         suspend m0: ada asked           > refused: ...an operator has already suspended it...
                                         > suspend m0.1
         suspended m0.1 after 1ms",
    );
}

#[test]
fn forbidden_primitive_is_refused_with_alternatives() {
    check(&format!(
        "set no-suspend
         set no-checkpoint
         {RUNNING}
         suspend m0: ada asked           > refused: ...maps cannot be suspended here; checkpoint or kill it...
         checkpoint m0: ada asked
             > refused: ...maps cannot be checkpointed here; suspend or kill it..."
    ));
}

#[test]
fn job_without_save_is_refused_or_never_checkpointed() {
    check(
        "set scheduler natjam
         submit 1 maps 1 reduces 1 keeping state
             > refused: ...the reducer of count does not save its state...
         stop coordinator
         set scheduler fifo
         start
         worker w 1
         submit 1 maps 1 reduces 1 keeping state
             > launch m0.1 on w
         started m0.1
         checkpoint m0: ada asked
             > refused: ...the maps of its job do not save their state; suspend or kill it...",
    );
}

#[test]
fn process_sent_sigtstp_is_suspended() {
    running(
        "stopped m0.1                    > suspend m0.1
         suspended m0.1 after 5ms        > launch m1.1 on w
         ask tasks 1                     > m0 suspended, m0.1 suspended: ...sent SIGTSTP on worker_0001...
                                         > ...",
    );
}

/// The worker is lost together with the suspended attempt. The task is still listed and counted as suspended,
/// and resumes with its job.
#[test]
fn held_task_without_attempt_is_listed_and_resumed_with_its_job() {
    check(
        "set liveness 300ms
         worker w 1
         submit 1 maps 2 reduces 1       > launch m0.1 on w
         started m0.1
         suspend m0: ada asked           > m0.1
                                         > suspend m0.1
         suspended m0.1 after 2000ms     > launch m1.1 on w
         started m1.1
         disconnect w
         until workers                   > 1 w lost: ...
         worker v 1                      > launch m1.2 on v
         started m1.2
         ask tasks                       > m0 suspended: ada asked
                                         > m1 running, 2 attempts, m1.2 running
         ask progress 1                  > ...1 suspended
         ask why 1                       > ...
                                         > ...m_0000 is suspended by an operator, and its attempt has ended
                                         > ...
                                         > ...resume it with: nap task resume job_0001_m_0000.1
         resume 1: ada asked
         done m1.2                       > launch m0.2 on v
         ask tasks                       > m0 running, ...
                                         > ...",
    );
}
