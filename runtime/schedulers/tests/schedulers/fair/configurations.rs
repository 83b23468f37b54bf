//! Configurations that cannot be: each is refused with what is wrong and what would be right; and what the
//! page says.
//!
//! Owns the errors and the page. What configurations do is shown by scenarios under the engine.

use napreduce_engine::{JobSpec, Scheduler};
use napreduce_schedulers::fair::{Fair, FairConfiguration};

const PAGE: &str = include_str!("../../../../../docs/schedulers/fair.md");

fn read(text: &str) -> FairConfiguration {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

fn check(text: &str, expected: &str) {
    let error = Fair::new(read(text)).err().expect("it is refused");
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
fn limits_on_running_jobs_leave_room_for_one() {
    check(
        "user-max-running-jobs = 0",
        "user-max-running-jobs is 0, so that no job would ever run; give 1 or more, or leave it out",
    );
    check(
        "[root.pools.a]\nmax-running-jobs = 0",
        "max-running-jobs of pool root.a is 0, so that no job would ever run; give 1 or more, or leave it out",
    );
}

#[test]
fn access_lists_are_refused_with_a_sentence() {
    for key in ["aclSubmitApps", "acl-submit-apps", "acl-administer-jobs"] {
        let text = format!("[root.pools.a]\n{key} = \"ada,bob\"");
        let error = toml::from_str::<FairConfiguration>(&text).expect_err("refused").to_string();
        assert!(error.contains("a cluster has no users") && error.contains(key), "{key}: {error}");
    }
}

#[test]
fn values_out_of_bounds_are_refused() {
    check("[root.pools.a]\nweight = -0.5", "pool root.a has weight -1/2; give 0 or more");
    check(
        "[root.pools.a.pools.b]\nmin-maps = 5\nmax-maps = 4",
        "pool root.a.b has min-maps 5 and max-maps 4; the minimum may not exceed the maximum",
    );
    check(
        "[root.pools.a]\nmin-reduces = 1\nmax-reduces = 0",
        "pool root.a has min-reduces 1 and max-reduces 0; the minimum may not exceed the maximum",
    );
    check("[root]\nfair-share-threshold = 1.5", "pool root has fair-share-threshold 3/2; give 0 to 1");
    check(
        "utilization-gate = -1",
        "utilization-gate is -1; give 0 or more (at 1 and above nothing is ever taken)",
    );
    check("update-interval = \"0s\"", "update-interval is 0; give a span such as 500ms");
}

#[test]
fn trees_that_mean_nothing_are_refused() {
    check(
        "[root]\nweight = 2",
        "the root has a weight, a minimum or a maximum; it is the whole cluster, so give them to pools below it",
    );
    let fifo = "has order fifo but holds pools, not jobs; give fifo to the pools that hold the jobs";
    check("[root]\norder = \"fifo\"", &format!("pool root {fifo}"));
    check("[root.pools.a]\norder = \"fifo\"\n[root.pools.a.pools.b]", &format!("pool root.a {fifo}"));
    check(
        "[root.pools.\"a.b\"]",
        "\"a.b\" is no name of a pool; give one without dots, not empty and not root",
    );
    check(
        "[root.pools.root]",
        "\"root\" is no name of a pool; give one without dots, not empty and not root",
    );
}

#[test]
fn unknown_keys_and_malformed_values_are_refused() {
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
fn a_job_of_an_unknown_pool_can_be_refused() {
    let fair =
        Fair::new(read("unknown-pools = \"refuse\"\n[root.pools.a.pools.b]")).expect("a configuration");
    for known in ["a", "a.b", "root.a.b", "default", ""] {
        assert_eq!(fair.admits(&job(known, "ada")), Ok(()), "{known:?}");
    }
    assert_eq!(
        fair.admits(&job("a.c", "ada")),
        Err("there is no pool a.c; submit to one that is configured, or set unknown-pools to create or default"
            .to_owned())
    );
    let by_user = read("unknown-pools = \"refuse\"\nplacement = \"user\"\n[root.pools.ada_l]");
    let by_user = Fair::new(by_user).expect("a configuration");
    assert_eq!(by_user.admits(&job("whatever", "ada.l")), Ok(()));
    assert!(by_user.admits(&job("ada_l", "bob")).is_err());
}

#[test]
fn the_page_names_every_parameter_and_the_defaults() {
    let values = serde_json::to_value(FairConfiguration::default()).expect("plain data");
    let pool = &values["root"];
    for key in [&values, pool].into_iter().flat_map(|table| table.as_object().expect("a table").keys()) {
        assert!(PAGE.contains(&format!("`{key}`")), "{key}");
    }
    for (key, default) in
        [("kill-wait", "15s"), ("recheck-delay", "10s"), ("update-interval", "500ms"), ("heartbeat", "200ms")]
    {
        assert_eq!(values[key], default);
        assert!(PAGE.contains(&format!("| `{key}` | `\"{default}\"` |")), "{key}");
    }
    assert_eq!(values["primitive"], "kill");
}
