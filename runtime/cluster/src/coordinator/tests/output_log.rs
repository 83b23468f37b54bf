//! A worker receives each map output once, however many reduces read it.

use super::script::check;

#[test]
fn reduces_of_one_worker_share_output_log() {
    check(
        "show outputs
         worker w 3
         submit 1 maps 2 reduces 3       > launch m0.1 on w
                                         > launch m1.1 on w
         does m1.1
         does m0.1                       > w: outputs m0.1@1 m1.1@1
                                         > launch r0.1 on w
                                         > launch r1.1 on w
                                         > launch r2.1 on w",
    );
}

/// Recovery reads the outputs once from the journal and once from a snapshot. Then a reduce cannot read an
/// output that its worker has lost.
#[test]
fn waiting_reduces_receive_new_output_together() {
    check(
        "show outputs
         worker w 2
         submit 1 maps 3 reduces 2 slowstart 100
             > launch m0.1 on w
             > launch m1.1 on w
         does m0.1                       > launch m2.1 on w
                                         > w: outputs m0.1@1
                                         > launch r0.1 on w
                                         > launch r1.1 on w
         does m1.1                       > w: outputs m1.1@1
                                         > w: named m1 to r0.1 r1.1
         kill coordinator
         start
         stop coordinator
         set snapshots
         start
         stop coordinator
         start
         reconnect w
         does m2.1                       > w: outputs m2.1@1
                                         > w: named m2 to r0.1 r1.1
         started r0.1
         lacks r0.1 m1.1: gone           > launch m1.2 on w
         does m1.2                       > w: outputs m1.2@1
                                         > w: named m1 to r0.1 r1.1",
    );
}
