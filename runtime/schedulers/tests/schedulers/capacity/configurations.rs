//! Invalid configurations: errors and their texts.

use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration, CapacityMonitor};

use napreduce_engine::Ratio;

use crate::capacity::cluster::configuration;

fn error(text: &str) -> String {
    let configuration = configuration(text);
    let monitor = CapacityMonitor::new(&configuration)
        .err()
        .map(|error| error.to_string());
    let policy = Capacity::new(&configuration)
        .err()
        .expect("the configuration is invalid")
        .to_string();
    assert_eq!(
        monitor.as_deref(),
        Some(policy.as_str()),
        "the monitor alone reports the same error"
    );
    policy
}

fn queue(name: &str, rest: &str) -> String {
    let share = if rest.contains("guaranteed") {
        ""
    } else {
        "guaranteed-percent = 10\n"
    };
    format!("[[queue]]\nname = \"{name}\"\n{share}{rest}\n")
}

fn check(text: &str, expected: &str) {
    assert_eq!(error(text), expected);
}

#[test]
fn queue_names_and_parents_are_validated() {
    check(
        &(queue("a", "") + &queue("a", "")),
        "duplicate queue name \"a\"; give each queue its own name",
    );
    check(
        &queue("root", ""),
        "invalid queue name \"root\"; it must not be empty or \"root\"",
    );
    check(
        &queue("", ""),
        "invalid queue name \"\"; it must not be empty or \"root\"",
    );
    check(
        &queue("a", "parent = \"b\""),
        "queue \"a\": unknown parent \"b\"; expected one of: a, root",
    );
    let cycle = queue("a", "parent = \"c\"")
        + &queue("b", "parent = \"a\"")
        + &queue("c", "parent = \"b\"");
    check(
        &(cycle + &queue("d", "")),
        "these queues form a cycle: a, b, c; move one of them below root",
    );
}

#[test]
fn percentages_are_validated() {
    check(
        &(queue("a", "guaranteed-percent = 60") + &queue("b", "guaranteed-percent = 40.5")),
        "the guarantees of the queues below \"root\" add up to 201/2 % (limit 100 %)",
    );
    check(
        &queue("a", "guaranteed-percent = -1"),
        "queue \"a\": invalid guaranteed-percent -1; give 0 to 100",
    );
    check(
        &queue("a", "max-percent = 101"),
        "queue \"a\": invalid max-percent 101; give 0 to 100",
    );
    check(
        &queue("a", "user-limit-percent = 0"),
        "queue \"a\": invalid user-limit-percent 0; give 1 to 100",
    );
    check(
        &queue("a", "max-percent = 5"),
        "queue \"a\": guaranteed-percent 10 exceeds max-percent 5; raise max-percent",
    );
    let fine = "queue \"b\": its shares and those of other queues have too many digits; round them";
    let shares = ["1/999983", "1/999979"].map(|share| format!("guaranteed-percent = \"{share}\""));
    check(&(queue("a", &shares[0]) + &queue("b", &shares[1])), fine);
}

#[test]
fn default_queue_must_be_a_leaf() {
    let queues = queue("a", "") + &queue("b", "parent = \"a\"");
    check(
        &format!("default-queue = \"a\"\n{queues}"),
        "default-queue \"a\" is not a leaf queue; expected one of: b",
    );
}

#[test]
fn monitor_values_are_validated() {
    check(
        "[monitor]\ninterval = \"0s\"",
        "monitor: interval must be positive; give a span such as \"3s\"",
    );
    check(
        "[monitor]\ntotal-per-round = 1.5",
        "monitor: invalid total-per-round 3/2; give 0 to 1",
    );
    check(
        "[monitor]\ndead-zone = -0.1",
        "monitor: invalid dead-zone -1/10; give 0 to 1000",
    );
    check(
        "[monitor]\nnatural-termination-factor = 0.1234567",
        "monitor: natural-termination-factor 1234567/10000000 has too many digits; give at most six after the point",
    );
}

#[test]
fn running_job_limits_must_be_positive() {
    check(
        "user-max-running-jobs = 0",
        "user-max-running-jobs is 0, so no job could run; give 1 or more, or remove it",
    );
    check(
        &queue("a", "max-running-jobs = 0"),
        "max-running-jobs of queue \"a\" is 0, so no job could run; give 1 or more, or remove it",
    );
}

#[test]
fn access_lists_are_rejected_with_reason() {
    for key in [
        "acl-submit-applications",
        "acl_submit_applications",
        "acl-administer-queue",
        "acl_administer_jobs",
    ] {
        let text = format!("[[queue]]\nname = \"a\"\nguaranteed-percent = 10\n{key} = \"ada,bob\"");
        let error = toml::from_str::<CapacityConfiguration>(&text)
            .expect_err("access lists are rejected")
            .to_string();
        assert!(error.contains("a cluster has no users"), "{key}: {error}");
        assert!(error.contains(key), "the error shows the line: {error}");
    }
}

#[test]
fn unknown_keys_are_rejected() {
    for text in [
        "mood = \"soft-cap\"",
        "[monitor]\ninterwal = \"3s\"",
        "[[queue]]\nname = \"a\"\nguarantee = 3",
    ] {
        assert!(
            toml::from_str::<CapacityConfiguration>(text).is_err(),
            "{text}"
        );
    }
}

#[test]
fn page_documents_every_parameter_with_default() {
    let page = include_str!("../../../../../docs/schedulers/capacity.md");
    let values =
        serde_json::to_value(CapacityConfiguration::default()).expect("plain data serializes");
    for (key, value) in values.as_object().expect("a table") {
        assert!(page.contains(&format!("`{key}`")), "{key}");
        for (key, value) in value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|_| key == "monitor")
        {
            let row = page
                .lines()
                .find(|line| line.starts_with('|') && line.contains(&format!("`{key}`")));
            let row = row.unwrap_or_else(|| panic!("no row for {key}"));
            let ratio = value.as_str().and_then(|text| text.parse::<Ratio>().ok());
            let default =
                ratio.map_or_else(|| value.to_string(), |ratio| ratio.to_f64().to_string());
            assert!(
                row.contains(&default) || row.contains(&spoken(&default)),
                "{key} is {default} in: {row}"
            );
        }
    }
}

/// Formats a span as the page does.
fn spoken(text: &str) -> String {
    text.replace("5m", "300s").replace("1m", "60s")
}
