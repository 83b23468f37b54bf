//! The trigger scheduler: rules fire when their conditions hold, and what they stop stays stopped.
//!
//! Owns its scenarios. Its grammar is tested where it is read; its timing in simulated runs.

use napreduce_schedulers::trigger::{Trigger, TriggerSettings};

use napreduce_engine::scenarios::check_with;

fn rules(rules: &str) -> Trigger {
    Trigger::new(&TriggerSettings { rules: rules.to_owned() }).expect("rules")
}

#[test]
fn a_suspended_task_stays_so_until_a_rule_resumes_it() {
    check_with(
        rules("when progress(low) >= 1/2 do submit(high), suspend(low)\nwhen finished(high) do resume(low)"),
        "worker 1 1+0
         job 1 maps 1 name low
             > launch m0.1 on 1
         started m0.1
         progress m0.1 4/10
         progress m0.1 5/10
             > submit high; suspend m0.1
         job 2 maps 1 name high
         suspended m0.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; resume m0.1
         resumed m0.1
         progress m0.1 9/10",
    );
}

#[test]
fn a_killed_task_waits_for_a_rule_to_launch_it_on_the_worker_it_names() {
    check_with(
        rules("when started(low/m0) do kill(low)\nwhen finished(high) do launch(low on worker_0002)"),
        "worker 1 1+0
         job 1 maps 1 name low
             > launch m0.1 on 1
         started m0.1
             > kill m0.1
         killed m0.1
         worker 2 1+0
         job 2 maps 1 name high
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; launch m0.2 on 2",
    );
}

#[test]
fn what_is_not_possible_yet_is_told_once_and_tried_again() {
    check_with(
        rules("when submitted(low) do suspend(low)\nwhen time >= 20ms do release(low)"),
        "worker 1 1+0
         job 1 maps 2 name low
             > warn suspend(low) is not possible yet; tried again
         job 2 maps 1 name other
             > launch 2:m0.1 on 1
         worker 2 1+0
         at 20ms
         wake
             > launch m0.1 on 2",
    );
}

#[test]
fn held_jobs_let_others_pass_and_repeating_rules_fire_again() {
    check_with(
        rules("when submitted(a) do hold(a/m0)\nrepeat when finished(b) do release(a)"),
        "worker 1 2+0
         job 1 maps 2 name a
             > launch m1.1 on 1
         job 2 maps 1 name b
             > launch 2:m0.1 on 1
         started 2:m0.1
         commits 2:m0.1
             > commit 2:m0.1
         done 2:m0.1
             > job 2 succeeded; launch m0.1 on 1",
    );
}
