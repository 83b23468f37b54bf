//! Map outputs that are copied to storage that outlives their worker: which ones, in which order, and which
//! reports about them the engine accepts.

use napreduce_engine::scenarios::check;

#[test]
fn moved_output_is_read_after_loss_of_worker() {
    check(
        "show records
         worker 1 2+0
         job 1 maps 2 reduces 1 outputs move slowstart 500
             > record accepted 1; record launched m0.1 on 1; launch m0.1 on 1
             > record launched m1.1 on 1; launch m1.1 on 1
         started m1.1
         done m0.1
             > record done m0.1
         worker 2 1+1
             > record launched r0.1 on 2; launch r0.1 on 2 reading m0.1
         drain 1 within 20ms
             > record draining 1; record wanted checkpoint m1.1; checkpoint m1.1; move m0.1
         done m1.1
             > record done m1.1; tell r0.1 of m1.1; move m1.1
         moved m0.1
             > record moved m0.1; tell r0.1 of m0.1
         moved m1.1
             > record moved m1.1; tell r0.1 of m1.1; record left 1; leave 1
         started r0.1
         commits r0.1
             > record granted r0.1; commit r0.1
         done r0.1
             > record done r0.1; record decided 1 succeeded; record ended 1 succeeded; job 1 succeeded",
    );
}

#[test]
fn reduce_retries_moved_output_once() {
    check(
        "worker 1 1+0
         worker 2 1+1
         job 1 maps 1 reduces 1 outputs move
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 2 reading m0.1
         started r0.1
         drain 1 within 20ms
             > move m0.1
         moved m0.1
             > leave 1
         misses r0.1 m0.1: no route
             > tell r0.1 of m0.1
         lacks r0.1 m0.1: no such file
             > launch m0.2 on 2
         done m0.2
             > tell r0.1 of m0.2",
    );
}

#[test]
fn outputs_of_nearly_finished_job_move_first() {
    check(
        "worker 1 3+0
         job 1 maps 1 reduces 3 outputs move
             > launch m0.1 on 1
         job 2 maps 1 reduces 2 outputs move
             > launch 2:m0.1 on 1
         job 3 maps 1 reduces 1
             > launch 3:m0.1 on 1
         done m0.1
         done 2:m0.1
         done 3:m0.1
         drain 1 within 20ms
             > move 2:m0.1; move m0.1
         moved 2:m0.1
         at 10ms
         wake
             > leave 1
         moved m0.1
         tally stale_reports 1
         worker 2 3+0
             > launch m0.2 on 2; launch 3:m0.2 on 2",
    );
}

#[test]
fn only_moved_outputs_survive_worker() {
    check(
        "worker 1 2+0
         job 1 maps 2 reduces 1 outputs move
             > launch m0.1 on 1; launch m1.1 on 1
         done m0.1
         done m1.1
         drain 1 within 20ms
             > move m0.1; move m1.1
         moved m0.1
         lost 1
         worker 2 2+1
             > launch m1.2 on 2
         done m1.2
             > launch r0.1 on 2 reading m0.1 m1.2",
    );
}
