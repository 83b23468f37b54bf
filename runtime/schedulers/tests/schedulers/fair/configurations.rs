//! Invalid configurations of Fair, and the page about it.

use napreduce_engine::{JobSpec, PolicyRefusal, Scheduler};
use napreduce_schedulers::fair::{Fair, FairConfiguration};

const PAGE: &str = include_str!("../../../../../docs/schedulers/fair.md");

fn read(text: &str) -> FairConfiguration {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

fn check(text: &str, expected: &str) {
    let error = Fair::new(read(text))
        .err()
        .expect("the configuration is invalid");
    assert_eq!(error.to_string(), expected);
}

fn job(queue: &str, user: &str) -> JobSpec {
    JobSpec {
        name: "job".to_owned(),
        user: user.to_owned(),
        queue: queue.to_owned(),
        priority: 0,
        deadline: None,
        maps: Vec::new(),
        reduces: 1,
        attempts_max: 4,
        slowstart_permille: 1000,
        unsaved: Vec::new(),
        memory: 0,
        outputs_move: false,
    }
}

#[test]
fn running_job_limits_must_be_positive() {
    check(
        "user-max-running-jobs = 0",
        "user-max-running-jobs is 0, so no job could run; give 1 or more, or remove it",
    );
    check(
        "[root.pools.a]\nmax-running-jobs = 0",
        "max-running-jobs of pool root.a is 0, so no job could run; give 1 or more, or remove it",
    );
}

#[test]
fn access_lists_are_rejected_with_reason() {
    for key in ["aclSubmitApps", "acl-submit-apps", "acl-administer-jobs"] {
        let text = format!("[root.pools.a]\n{key} = \"ada,bob\"");
        let error = toml::from_str::<FairConfiguration>(&text)
            .expect_err("access lists are rejected")
            .to_string();
        assert!(
            error.contains("a cluster has no users") && error.contains(key),
            "{key}: {error}"
        );
    }
}

#[test]
fn values_out_of_range_are_rejected() {
    check(
        "[root.pools.a]\nweight = -0.5",
        "pool root.a: weight -1/2 is negative; give 0 or more",
    );
    check(
        "[root.pools.a.pools.b]\nmin-maps = 5\nmax-maps = 4",
        "pool root.a.b: min-maps 5 exceeds max-maps 4; lower the minimum",
    );
    check(
        "[root.pools.a]\nmin-reduces = 1\nmax-reduces = 0",
        "pool root.a: min-reduces 1 exceeds max-reduces 0; lower the minimum",
    );
    check(
        "[root]\nfair-share-threshold = 1.5",
        "pool root: invalid fair-share-threshold 3/2; give 0 to 1",
    );
    check(
        "utilization-gate = -1",
        "utilization-gate -1 is negative; give 0 or more (1 or more disables preemption)",
    );
    check(
        "update-interval = \"0s\"",
        "update-interval must be positive; give a span such as 500ms",
    );
}

#[test]
fn invalid_trees_are_rejected() {
    check(
        "[root]\nweight = 2",
        "pool root: weight, minimum and maximum do not apply to the whole cluster; set them on child pools",
    );
    let fifo =
        "order fifo requires a pool of jobs, but it holds pools; set fifo on its child pools";
    check("[root]\norder = \"fifo\"", &format!("pool root: {fifo}"));
    check(
        "[root.pools.a]\norder = \"fifo\"\n[root.pools.a.pools.b]",
        &format!("pool root.a: {fifo}"),
    );
    check(
        "[root.pools.\"a.b\"]",
        "invalid pool name \"a.b\": it must not be empty, contain dots or be root",
    );
    check(
        "[root.pools.root]",
        "invalid pool name \"root\": it must not be empty, contain dots or be root",
    );
}

#[test]
fn unknown_keys_and_malformed_values_are_rejected() {
    for text in [
        "preempt = true",
        "[root.pools.a]\nmax = 4",
        "kill-wait = \"15\"",
        "kill-wait = 15",
        "placement = \"any\"",
    ] {
        assert!(toml::from_str::<FairConfiguration>(text).is_err(), "{text}");
    }
}

#[test]
fn unknown_pool_can_be_rejected() {
    let fair = Fair::new(read("unknown-pools = \"refuse\"\n[root.pools.a.pools.b]"))
        .expect("the configuration is valid");
    for known in ["a", "a.b", "root.a.b", "default", ""] {
        assert_eq!(fair.admits(&job(known, "ada")), Ok(()), "{known:?}");
    }
    assert_eq!(
        fair.admits(&job("a.c", "ada")),
        Err(PolicyRefusal::Queue(
            "there is no pool a.c; submit to a configured pool, or set unknown-pools to create or default"
                .to_owned()
        ))
    );
    let by_user = read("unknown-pools = \"refuse\"\nplacement = \"user\"\n[root.pools.ada_l]");
    let by_user = Fair::new(by_user).expect("the configuration is valid");
    assert_eq!(by_user.admits(&job("whatever", "ada.l")), Ok(()));
    assert!(by_user.admits(&job("ada_l", "bob")).is_err());
}

#[test]
fn page_documents_every_parameter_with_default() {
    let values = serde_json::to_value(FairConfiguration::default()).expect("plain data serializes");
    let pool = &values["root"];
    for key in [&values, pool]
        .into_iter()
        .flat_map(|table| table.as_object().expect("a table").keys())
    {
        assert!(PAGE.contains(&format!("`{key}`")), "{key}");
    }
    for (key, default) in [
        ("kill-wait", "15s"),
        ("recheck-delay", "10s"),
        ("update-interval", "500ms"),
        ("heartbeat", "200ms"),
    ] {
        assert_eq!(values[key], default);
        assert!(
            PAGE.contains(&format!("| `{key}` | `\"{default}\"` |")),
            "{key}"
        );
    }
    assert_eq!(values["primitive"], "kill");
}
