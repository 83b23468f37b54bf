//! The progress and work time with which a restored attempt starts, so that comparisons with other attempts
//! are fair.

use napreduce_engine::scenarios::check;

/// Four maps of a map-only job; three took 10 s. The last one was half done after 10 s, was checkpointed, and
/// resumed from the checkpoint at 20 s.
const RESTORED: &str = "speculating
    worker 1 3+0
    worker 2 3+0
    job 1 maps 4
        > launch m0.1 on 1; launch m1.1 on 2; launch m2.1 on 1; launch m3.1 on 2
    started m0.1
    started m1.1
    started m2.1
    started m3.1
    at 10000ms
    progress m3.1 50/100
    policy checkpoint m3.1
        > checkpoint m3.1
    hold
    checkpointed m3.1
    commits m0.1
        > commit m0.1
    done m0.1
    commits m1.1
        > commit m1.1
    done m1.1
    commits m2.1
        > commit m2.1
    done m2.1
    at 20000ms
    release
    wake
        > launch m3.2 on 1 from m3.1
    started m3.2
";

#[test]
fn restored_attempt_at_same_rate_is_no_straggler() {
    // 80 of 100 bytes in its own 6 s would look fast; its own 30 bytes in 6 s would look slow. Neither rate
    // is used.
    check(&format!(
        "{RESTORED}\nat 26000ms\nprogress m3.2 80/100\nwake\nat 27000ms\nwake\nat 28000ms\nwake"
    ));
}

#[test]
fn slow_restored_attempt_gets_fresh_duplicate() {
    // 10 s for the first half, then 9 s for one hundredth.
    check(&format!(
        "{RESTORED}
         at 29000ms
         progress m3.2 51/100
         wake
         at 31000ms
         wake
             > launch m3.3 on 2"
    ));
}

#[test]
fn restored_attempt_starts_with_saved_progress() {
    check(&format!(
        "{RESTORED}
         at 21000ms
         wake
         why m3
             > running
             > job_0001_m_0003.2 runs on worker_0001, launched 1.0 s ago, 50 % done in 1.0 s of work"
    ));
}

#[test]
fn better_checkpoint_is_kept_over_duplicate() {
    check(&format!(
        "{RESTORED}
         at 29000ms
         progress m3.2 51/100
         wake
         at 31000ms
         wake
             > launch m3.3 on 2
         started m3.3
         at 32000ms
         policy checkpoint m3.3
             > checkpoint m3.3
         checkpointed m3.3
         kill m3.2: enough
             > kill m3.2
         killed m3.2
             > launch m3.4 on 1 from m3.1"
    ));
}
