//! Scenarios of the trigger scheduler. The parser is tested in `text`, the timing in simulated runs.

use napreduce_schedulers::trigger::{Trigger, TriggerSettings};

use napreduce_engine::scenarios::check_with;

fn rules(rules: &str) -> Trigger {
    Trigger::new(&TriggerSettings {
        rules: rules.to_owned(),
    })
    .expect("the rules are valid")
}

#[test]
fn suspended_task_stays_until_rule_resumes_it() {
    check_with(
        rules(
            "when progress(low) >= 1/2 do submit(high), suspend(low)\nwhen finished(high) do resume(low)",
        ),
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
fn killed_task_launches_on_worker_of_rule() {
    check_with(
        rules(
            "when started(low/m0) do kill(low)\nwhen finished(high) do launch(low on worker_0002)",
        ),
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
fn impossible_action_warns_once_and_retries() {
    check_with(
        rules("when submitted(low) do suspend(low)\nwhen time >= 20ms do release(low)"),
        "worker 1 1+0
         job 1 maps 2 name low
             > warn suspend(low) is not possible yet; retrying
         job 2 maps 1 name other
             > launch 2:m0.1 on 1
         worker 2 1+0
         at 20ms
         wake
             > launch m0.1 on 2",
    );
}

#[test]
fn held_jobs_are_skipped_and_rules_repeat() {
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
