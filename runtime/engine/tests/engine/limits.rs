//! Limits on preemptions per task, and the measured costs of saving work. `choices` tests fixed costs.

use napreduce_engine::scenarios::InOrder;
use napreduce_engine::{
    CostRule, EngineSettings, Escalation, PreemptionLimits, PreemptionSettings, Primitive, Span,
};

use napreduce_engine::scenarios::check_settings;

fn check(preemption: PreemptionSettings, script: &str) {
    check_settings(
        InOrder,
        EngineSettings {
            preemption,
            ..EngineSettings::default()
        },
        script,
    );
}

fn limited(limits: PreemptionLimits, script: &str) {
    check(
        PreemptionSettings {
            limits,
            ..PreemptionSettings::default()
        },
        script,
    );
}

fn after_a_run_of(millis: u64, script: &str) {
    let minimum_run = Span::from_millis(millis);
    limited(
        PreemptionLimits {
            minimum_run,
            ..PreemptionLimits::default()
        },
        script,
    );
}

/// An attempt that was suspended for 5 ms and resumed at 10 ms.
const RESUMED: &str = "
    worker 1 1+0
    job 1 maps 1
        > launch m0.1 on 1
    started m0.1
    policy suspend m0.1
        > suspend m0.1
    hold
    at 5ms
    suspended m0.1
    at 10ms
    release
    wake
        > resume m0.1
    resumed m0.1
";

#[test]
fn preempted_task_runs_minimum_before_next_preemption() {
    after_a_run_of(
        20,
        &format!(
            "{RESUMED}
             at 12ms
             job 2 maps 1
             show wakes
             policy suspend m0.1 for 2
                 > wake at 30ms
             why m0
                 > running
                 > job_0001_m_0000.1 runs on worker_0001, launched 0.0 s ago; it is being preempted for job_0002 (suspend): the script says so (after another 18ms: it was preempted recently)
             at 29ms
             wake
                 > wake at 30ms
             at 30ms
             wake
                 > suspend m0.1
             suspended m0.1
                 > launch 2:m0.1 on 1"
        ),
    );
}

#[test]
fn grace_starts_after_minimum_run() {
    after_a_run_of(
        20,
        &format!(
            "{RESUMED}
             at 12ms
             policy suspend m0.1 grace 7ms
             at 30ms
             wake
                 > suspend m0.1
             at 36ms
             wake
             at 37ms
             wake
                 > kill m0.1"
        ),
    );
}

#[test]
fn kill_waits_for_minimum_run_and_can_be_cancelled() {
    after_a_run_of(
        20,
        &format!(
            "{RESUMED}
             at 12ms
             policy kill m0.1
             policy cancel m0.1
             at 30ms
             wake
             policy kill m0.1
                 > kill m0.1"
        ),
    );
}

#[test]
fn minimum_run_spares_operators_and_first_preemption() {
    after_a_run_of(
        20,
        &format!(
            "{RESUMED}
             at 12ms
             operator suspend m0.1: now
                 > suspend m0.1"
        ),
    );
}

#[test]
fn suspends_max_lets_attempt_finish() {
    limited(
        PreemptionLimits {
            suspends_max: Some(1),
            ..PreemptionLimits::default()
        },
        &format!(
            "{RESUMED}
             show records
             policy suspend m0.1
                 > record wanted wait m0.1
             policy cancel m0.1
                 > record withdrawn m0.1: the scheduler withdrew the request
             policy checkpoint m0.1
                 > record wanted checkpoint m0.1; checkpoint m0.1"
        ),
    );
}

fn measured(rule: CostRule, script: &str) {
    let cost = Some(CostRule {
        measured: true,
        ..rule
    });
    check(
        PreemptionSettings {
            cost,
            ..PreemptionSettings::default()
        },
        script,
    );
}

/// Suspending took 4 ms and resuming 6 ms. The attempt resumed at 20 ms and had worked for 10 ms before.
const MEASURED: &str = "
    worker 1 2+0
    job 1 maps 2
        > launch m0.1 on 1; launch m1.1 on 1
    started m0.1
    at 10ms
    hold
    policy suspend m0.1
        > suspend m0.1
    at 14ms
    suspended m0.1
    release
    wake
        > resume m0.1
    at 20ms
    resumed m0.1
    show records
";

#[test]
fn attempt_ending_before_measured_suspend_finishes() {
    let both = CostRule::default();
    let script = |rest: &str| {
        format!("{MEASURED}\nprogress m0.1 {rest}\npolicy suspend m0.1\n> record wanted ")
    };
    // 14 ms of work so far.
    measured(
        both,
        &script("80/100").replace("wanted ", "wanted wait m0.1"),
    );
    measured(
        both,
        &script("70/100").replace("wanted ", "wanted suspend m0.1; suspend m0.1"),
    );
    let only_fresh = CostRule {
        let_finish: false,
        ..both
    };
    measured(
        only_fresh,
        &script("80/100").replace("wanted ", "wanted suspend m0.1; suspend m0.1"),
    );
}

#[test]
fn attempt_with_less_work_than_cost_is_killed() {
    let both = CostRule::default();
    let at = |millis: u64, then: &str| {
        format!(
            "{MEASURED}\nstarted m1.1\nat {millis}ms\npolicy suspend m1.1\n> record wanted {then}"
        )
    };
    measured(both, &at(29, "kill m1.1; kill m1.1"));
    measured(both, &at(30, "suspend m1.1; suspend m1.1"));
    let only_old = CostRule {
        kill_fresh: false,
        ..both
    };
    measured(only_old, &at(29, "suspend m1.1; suspend m1.1"));
}

#[test]
fn costs_are_measured_per_primitive() {
    // Suspending and resuming took 10 ms.
    let fixed = CostRule {
        suspend: Span::from_millis(8),
        ..CostRule::default()
    };
    let at =
        |millis: u64, then: &str| format!("{MEASURED}\nstarted m1.1\nat {millis}ms\npolicy {then}");
    measured(
        fixed,
        &at(29, "suspend m1.1\n> record wanted kill m1.1; kill m1.1"),
    );
    measured(
        fixed,
        &at(
            28,
            "checkpoint m1.1\n> record wanted checkpoint m1.1; checkpoint m1.1",
        ),
    );
    measured(
        fixed,
        &at(27, "checkpoint m1.1\n> record wanted kill m1.1; kill m1.1"),
    );
}

/// Kills the map's attempt of this number for another job, which has a slot meanwhile.
fn killed(number: u32) -> String {
    let next = number + 1;
    format!(
        "started m0.{number}
         policy kill m0.{number}
             > kill m0.{number}
         killed m0.{number}
             > launch m0.{next} on 1
        "
    )
}

#[test]
fn preemptions_max_counts_every_primitive() {
    let script = format!(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         {}{}
         started m0.3
         policy kill m0.3
         why m0
             > running; job_0001_m_0000.3 runs on worker_0001, launched 0.0 s ago; it is being preempted (wait): the script says so (wait instead of kill: its slot was taken 2 times (preemptions-max))",
        killed(1),
        killed(2),
    );
    limited(
        PreemptionLimits {
            preemptions_max: Some(2),
            ..PreemptionLimits::default()
        },
        &script,
    );
}

#[test]
fn fruitless_preemptions_extend_minimum_run() {
    let preemptions_without_progress_max = 2;
    let settings = PreemptionSettings {
        preemptions_without_progress_max,
        ..PreemptionSettings::default()
    };
    let script = format!(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         {}{}
         policy kill m0.3
         at 100ms
         started m0.3
         why m0
             > running; job_0001_m_0000.3 runs on worker_0001, launched 0.1 s ago; it is being preempted (kill): the script says so (after another 1s: it was preempted 2 times without progress and may run for 1s)
         at 1099ms
         wake
         at 1100ms
         wake
             > kill m0.3
         killed m0.3
             > launch m0.4 on 1
         started m0.4
         why m0
             > running; job_0001_m_0000.4 runs on worker_0001, launched 0.0 s ago; it was preempted 3 times without progress and is exempt until it has run for 2s
         at 3099ms
         policy kill m0.4
         wake
         at 3100ms
         wake
             > kill m0.4
         killed m0.4
             > launch m0.5 on 1",
        killed(1),
        killed(2),
    );
    check(settings, &script);
}

#[test]
fn preserved_work_counts_as_progress() {
    let preemptions_without_progress_max = 0;
    let settings = PreemptionSettings {
        preemptions_without_progress_max,
        ..PreemptionSettings::default()
    };
    check(
        settings,
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         started m0.1
         at 1000ms
         hold
         policy suspend m0.1
             > suspend m0.1
         suspended m0.1
         release
         wake
             > resume m0.1
         resumed m0.1
         policy suspend m0.1
         why m0
             > running; job_0001_m_0000.1 runs on worker_0001, launched 1.0 s ago; it is being preempted (suspend): the script says so (after another 1s: it was preempted 0 times without progress and may run for 1s)",
    );
}

#[test]
fn operator_request_is_not_delayed() {
    let preemptions_without_progress_max = 1;
    let settings = PreemptionSettings {
        preemptions_without_progress_max,
        ..PreemptionSettings::default()
    };
    let script = format!(
        "worker 1 1+0
         job 1 maps 1
             > launch m0.1 on 1
         {}
         started m0.2
         operator suspend m0.2: at once
             > suspend m0.2",
        killed(1),
    );
    check(settings, &script);
}

/// A request for a map whose grace of 10 ms has expired.
fn when_grace_is_over(settings: PreemptionSettings, asked: &str, ordered: &str, then: &str) {
    check(
        settings,
        &format!(
            "worker 1 1+0
             job 1 maps 1
                 > launch m0.1 on 1
             started m0.1
             job 2 maps 1
             policy {asked} m0.1 grace 10ms for 2
                 > {ordered}
             at 20ms
             wake
                 > {then}"
        ),
    );
}

#[test]
fn primitive_wait_never_kills() {
    let plain = PreemptionSettings::default();
    when_grace_is_over(plain, "wait", "", "");
    let everywhere = PreemptionSettings {
        primitive: Some(Primitive::Wait.into()),
        ..plain
    };
    for asked in ["wait", "kill", "suspend", "checkpoint"] {
        when_grace_is_over(everywhere, asked, "", "");
    }
    let switched_on = PreemptionSettings {
        escalate: Some(Escalation::Kill),
        ..plain
    };
    when_grace_is_over(switched_on, "wait", "", "kill m0.1");
}

#[test]
fn escalation_is_independent() {
    let plain = PreemptionSettings::default();
    when_grace_is_over(plain, "suspend", "suspend m0.1", "kill m0.1");
    let never = PreemptionSettings {
        escalate: Some(Escalation::Never),
        ..plain
    };
    when_grace_is_over(never, "suspend", "suspend m0.1", "");
    when_grace_is_over(never, "kill", "", "kill m0.1");
}
