//! Configurations that cannot be: each is refused with what is wrong and what would be right.
//!
//! Owns the errors. What configurations do is shown by the other files.

use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration, CapacityMonitor};

use napreduce_engine::Ratio;

use crate::capacity::cluster::configuration;

fn error(text: &str) -> String {
    let configuration = configuration(text);
    let monitor = CapacityMonitor::new(&configuration).err().map(|error| error.to_string());
    let policy = Capacity::new(&configuration).err().expect("it is refused").to_string();
    assert_eq!(monitor.as_deref(), Some(policy.as_str()), "the monitor alone refuses it, too");
    policy
}

fn queue(name: &str, rest: &str) -> String {
    let share = if rest.contains("guaranteed") { "" } else { "guaranteed-percent = 10\n" };
    format!("[[queue]]\nname = \"{name}\"\n{share}{rest}\n")
}

fn check(text: &str, expected: &str) {
    assert_eq!(error(text), expected);
}

#[test]
fn queues_must_be_told_apart_and_stand_below_each_other() {
    check(&(queue("a", "") + &queue("a", "")), "there are two queues named \"a\"; give each its own name");
    check(&queue("root", ""), "a queue cannot be named \"root\"; give it a name other than \"root\"");
    check(&queue("", ""), "a queue cannot be named \"\"; give it a name other than \"root\"");
    check(
        &queue("a", "parent = \"b\""),
        "the parent of queue \"a\" is \"b\", which is no queue; there are: a, root",
    );
    let cycle = queue("a", "parent = \"c\"") + &queue("b", "parent = \"a\"") + &queue("c", "parent = \"b\"");
    check(
        &(cycle + &queue("d", "")),
        "these queues are not below root but below each other: a, b, c; give one of them another parent",
    );
}

#[test]
fn shares_must_be_shares() {
    check(
        &(queue("a", "guaranteed-percent = 60") + &queue("b", "guaranteed-percent = 40.5")),
        "the queues below \"root\" are guaranteed 201/2 % of it together; 100 % is the most",
    );
    check(&queue("a", "guaranteed-percent = -1"), "guaranteed-percent of queue \"a\" is -1; give 0 to 100");
    check(&queue("a", "max-percent = 101"), "max-percent of queue \"a\" is 101; give 0 to 100");
    check(&queue("a", "user-limit-percent = 0"), "user-limit-percent of queue \"a\" is 0; give 1 to 100");
    check(
        &queue("a", "max-percent = 5"),
        "queue \"a\" is guaranteed 10 % but may have 5 % at most; raise max-percent",
    );
    let fine = "the shares of queue \"b\" and its like have too many digits together; use simpler numbers";
    let shares = ["1/999983", "1/999979"].map(|share| format!("guaranteed-percent = \"{share}\""));
    check(&(queue("a", &shares[0]) + &queue("b", &shares[1])), fine);
}

#[test]
fn the_default_queue_must_take_jobs() {
    let queues = queue("a", "") + &queue("b", "parent = \"a\"");
    check(
        &format!("default-queue = \"a\"\n{queues}"),
        "default-queue is \"a\", which is no queue that takes jobs; those are: b",
    );
}

#[test]
fn the_monitor_must_be_able_to_work() {
    check(
        "[monitor]\ninterval = \"0s\"",
        "interval of the monitor is 0; give the time from one round to the next, such as \"3s\"",
    );
    check("[monitor]\ntotal-per-round = 1.5", "total-per-round of the monitor is 3/2; give 0 to 1");
    check("[monitor]\ndead-zone = -0.1", "dead-zone of the monitor is -1/10; give 0 to 1000");
    check(
        "[monitor]\nnatural-termination-factor = 0.1234567",
        "natural-termination-factor of the monitor is 1234567/10000000; give at most six digits after the point",
    );
}

#[test]
fn limits_on_running_jobs_leave_room_for_one() {
    check(
        "user-max-running-jobs = 0",
        "user-max-running-jobs is 0, so that no job would ever run; give 1 or more, or leave it out",
    );
    check(
        &queue("a", "max-running-jobs = 0"),
        "max-running-jobs of queue \"a\" is 0, so that no job would ever run; give 1 or more, or leave it out",
    );
}

#[test]
fn access_lists_are_refused_with_a_sentence() {
    for key in
        ["acl-submit-applications", "acl_submit_applications", "acl-administer-queue", "acl_administer_jobs"]
    {
        let text = format!("[[queue]]\nname = \"a\"\nguaranteed-percent = 10\n{key} = \"ada,bob\"");
        let error = toml::from_str::<CapacityConfiguration>(&text).expect_err("refused").to_string();
        assert!(error.contains("a cluster has no users"), "{key}: {error}");
        assert!(error.contains(key), "the line is shown: {error}");
    }
}

#[test]
fn unknown_keys_are_refused() {
    for text in
        ["mood = \"soft-cap\"", "[monitor]\ninterwal = \"3s\"", "[[queue]]\nname = \"a\"\nguarantee = 3"]
    {
        assert!(toml::from_str::<CapacityConfiguration>(text).is_err(), "{text}");
    }
}

#[test]
fn the_page_names_every_parameter_with_its_default() {
    let page = include_str!("../../../../../docs/schedulers/capacity.md");
    let values = serde_json::to_value(CapacityConfiguration::default()).expect("plain data");
    for (key, value) in values.as_object().expect("a table") {
        assert!(page.contains(&format!("`{key}`")), "{key}");
        for (key, value) in value.as_object().into_iter().flatten().filter(|_| key == "monitor") {
            let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{key}`")));
            let row = row.unwrap_or_else(|| panic!("no row for {key}"));
            let ratio = value.as_str().and_then(|text| text.parse::<Ratio>().ok());
            let default = ratio.map_or_else(|| value.to_string(), |ratio| ratio.to_f64().to_string());
            assert!(
                row.contains(&default) || row.contains(&spoken(&default)),
                "{key} is {default} in: {row}"
            );
        }
    }
}

/// A span as the page writes it.
fn spoken(text: &str) -> String {
    text.replace("5m", "300s").replace("1m", "60s")
}
