//! What-if simulations with a shell script in place of `nap sim`: limits, failures, the queue, and cleanup.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::kit;
use crate::kit::Sample;
use crate::kit::simulated::{SIMULATES, said};
use napreduce_web::{WebRole, WhatIfSettings};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

const WHAT_IF: &str = "/api/nap/v1/what-if";
const FAIR: &str = r#"{"schedulers": ["fair"]}"#;
/// Script that starts a child and waits for the signal to end.
const WAITS: &str = r#"
here=$(dirname "$0")
for word; do case $word in --progress-file=*) printf ' 40\n' > "${word#--progress-file=}";; esac; done
sleep 1000 & echo $! > "$here/sleeper.new" && mv "$here/sleeper.new" "$here/sleeper"
until [ -e "$here/go" ]; do sleep 0.02; done
for word; do case $word in --record=*) record=${word#--record=};; esac; done
cp -r "$here/made" "$record" && cat "$here/said"
"#;

fn same(settings: WhatIfSettings) -> WhatIfSettings {
    settings
}

fn ask(sample: &Sample, body: &str) -> String {
    let asked = sample.post(WHAT_IF, body);
    assert_eq!(asked.status, 202, "{}", asked.body);
    asked.json()["what_if"].as_str().expect("a name").to_owned()
}

fn until(sample: &Sample, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} {state}"), || {
        let told = sample.get(&format!("{WHAT_IF}/{name}")).json();
        (told["state"] == state).then_some(told)
    })
}

/// Polls until `found` returns a value.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(there) = look() {
            return there;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{what} has not happened"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The directory of the server without its lock file.
fn kept(sample: &Sample) -> Vec<String> {
    let entries = std::fs::read_dir(sample.folder().join("kept")).expect("a folder");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    });
    let mut names: Vec<String> = names.filter(|name| name != "lock").collect();
    names.sort();
    names
}

/// The process started by the script.
fn sleeper(folder: &Path) -> Pid {
    let text = wait_for("a process", || {
        std::fs::read_to_string(folder.join("sleeper")).ok()
    });
    Pid::from_raw(text.trim().parse().expect("a number")).expect("a process")
}

fn until_gone(process: Pid) {
    wait_for("its end", || {
        test_kill_process(process).is_err().then_some(())
    });
}

#[test]
fn result_is_a_recording_until_removed() {
    let sample = Sample::start();
    let session = sample.get("/api/nap/v1/session").json();
    assert!(
        session["capabilities"]
            .as_array()
            .expect("a list")
            .contains(&json!("what-if")),
        "{session}"
    );
    let name = ask(
        &sample,
        r#"{"schedulers": ["fair", "fair"], "from": 0, "configuration": "[scheduler.fair]"}"#,
    );
    let done = until(&sample, &name, "done");
    assert_eq!(
        done["recordings"],
        json!(["what-if-1.fifo-as-recorded.0", "what-if-1.fair.0"])
    );
    assert_eq!(
        (&done["by"], &done["schedulers"]),
        (&json!("tester"), &json!(["fair"]))
    );
    let error = done["fidelity"]["sojourn_mean_error"]
        .as_f64()
        .expect("a share");
    assert!((error - 0.02).abs() < 1e-9, "{done}");
    assert_eq!(done["fidelity"]["sojourn_largest_error"], 0.3);
    let line = std::fs::read_to_string(sample.folder().join("line")).expect("a line");
    let history = sample.folder().canonicalize().expect("a path");
    assert!(line.starts_with(&format!(
        "--recorded={}@1970-01-01T00:00:00Z.. --scheduler=fair ",
        history.display()
    )));

    let recordings = sample.get("/api/nap/v1/recordings").json();
    assert_eq!(
        (
            &recordings["items"][1]["kind"],
            &recordings["items"][1]["scheduler"]
        ),
        (&json!("what-if"), &json!("fair"))
    );
    let compare = "/api/nap/v1/compare?left=what-if-1.fifo-as-recorded.0&right=what-if-1.fair.0";
    assert_eq!(
        sample.get(compare).json()["jobs"][0]["difference_millis"],
        -500
    );
    assert_eq!(
        sample
            .get("/api/nap/v1/jobs?recording=what-if-1.fair.0")
            .json()["total"],
        1
    );

    assert_eq!(
        sample.post(&format!("{WHAT_IF}/{name}/remove"), "").status,
        202
    );
    assert_eq!(sample.get(&format!("{WHAT_IF}/{name}")).status, 404);
    assert_eq!(sample.get(compare).status, 404);
    assert_eq!(kept(&sample), [""; 0]);
    assert_eq!(sample.post(&format!("{WHAT_IF}/../remove"), "").status, 404);
}

#[test]
fn failed_simulation_reports_why_and_leaves_no_files() {
    for (script, words) in [
        (
            "echo 'nap: the trigger scheduler needs rules' >&2; exit 1",
            "the trigger scheduler needs rules",
        ),
        ("echo nonsense", "cannot parse the output of nap sim"),
        ("kill -9 $$", "the simulation was killed by signal 9"),
        ("exit 3", "the simulation failed (exit status: 3)"),
        (
            "echo 'memory allocation of 9 bytes failed' >&2; kill -6 $$",
            "the simulation needs more than 2 GiB of memory",
        ),
        ("cat \"$(dirname \"$0\")/said\"", "cannot keep the results"),
    ] {
        let sample = Sample::simulating(script, same);
        let name = ask(&sample, FAIR);
        let failed = until(&sample, &name, "failed");
        assert!(
            failed["error"]
                .as_str()
                .is_some_and(|error| error.starts_with(words)),
            "{script}: {failed}"
        );
        wait_for("no file", || kept(&sample).is_empty().then_some(()));
        assert_eq!(
            sample.get("/api/nap/v1/recordings").json()["items"],
            json!([]),
            "{script}"
        );
    }
}

#[test]
fn simulation_runs_limited_in_a_clean_environment() {
    // The limits are set just after the start, perhaps after the script's first line.
    let script = "until [ $(ulimit -v) = 2097152 ]; do :; done; echo \"$(nice) $(ulimit -c) $A ${HOME-none}\" >&2; exit 1";
    let sample = Sample::simulating(script, |settings| WhatIfSettings {
        environment: vec![("A".to_owned(), "b".to_owned())],
        ..settings
    });
    let name = ask(&sample, FAIR);
    assert_eq!(until(&sample, &name, "failed")["error"], "19 0 b none");
}

#[test]
fn overdue_simulation_is_killed_with_its_children() {
    let sample = Sample::simulating(WAITS, |settings| WhatIfSettings {
        time_max: Duration::from_secs(3),
        ..settings
    });
    let name = ask(&sample, FAIR);
    let sleeper = sleeper(sample.folder());
    let failed = until(&sample, &name, "failed");
    assert_eq!(
        failed["error"],
        "the simulation was stopped after 3 s; choose a shorter window or fewer schedulers"
    );
    until_gone(sleeper);
    wait_for("no file", || kept(&sample).is_empty().then_some(()));
}

#[test]
fn one_simulation_runs_and_few_wait() {
    let sample = Sample::simulating(WAITS, same);
    let names: Vec<String> = (0..5)
        .map(|number| {
            let name = ask(&sample, FAIR);
            if number == 0 {
                until(&sample, &name, "running");
            }
            name
        })
        .collect();
    let full = sample.post(WHAT_IF, FAIR);
    assert_eq!(
        (full.status, &full.json()["detail"]),
        (429, &json!("too many what-ifs are queued"))
    );
    let states = || {
        let items = sample.get(WHAT_IF).json()["items"].clone();
        let mut states: Vec<String> = items
            .as_array()
            .expect("items")
            .iter()
            .map(|item| item["state"].as_str().expect("a state").to_owned())
            .collect();
        states.reverse();
        states
    };
    assert_eq!(
        states(),
        ["running", "queued", "queued", "queued", "queued"]
    );
    // Removing a waiting one drops it; removing the running one kills it and starts the next.
    let first = sleeper(sample.folder());
    let percent = |name: &str| sample.get(&format!("{WHAT_IF}/{name}")).json()["percent"].clone();
    assert_eq!(
        (percent(&names[0]), percent(&names[1])),
        (json!(40), Value::Null)
    );
    for name in [&names[1], &names[0]] {
        assert_eq!(
            sample.post(&format!("{WHAT_IF}/{name}/remove"), "").status,
            202
        );
    }
    until_gone(first);
    until(&sample, &names[2], "running");
    assert_eq!(states(), ["running", "queued", "queued"]);
    std::fs::write(sample.folder().join("go"), "").expect("written");
    until(&sample, &names[4], "done");
    assert_eq!(kept(&sample), ["what-if-3", "what-if-4", "what-if-5"]);
}

#[test]
fn jobs_are_selected_by_id() {
    let sample = Sample::start();
    let name = ask(&sample, r#"{"jobs": ["job_0001"]}"#);
    let told = until(&sample, &name, "done");
    assert_eq!(
        (&told["jobs"], &told["percent"]),
        (&json!(["job_0001"]), &Value::Null)
    );
    let line = std::fs::read_to_string(sample.folder().join("line")).expect("a line");
    assert!(line.contains(" --job=job_0001 "), "{line}");
    for (jobs, words) in [
        ("job_0002", "job_0002 was not submitted in this window"),
        ("--plot", "--plot"),
    ] {
        let refused = sample.post(WHAT_IF, &format!(r#"{{"jobs": ["{jobs}"]}}"#));
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(
            refused.json()["detail"]
                .as_str()
                .is_some_and(|said| said.contains(words)),
            "{}",
            refused.body
        );
    }
}

#[test]
fn oldest_results_are_deleted() {
    let sample = Sample::start();
    for _ in 0..9 {
        let name = ask(&sample, "{}");
        until(&sample, &name, "done");
    }
    assert_eq!(
        sample.get(WHAT_IF).json()["items"].as_array().map(Vec::len),
        Some(8)
    );
    assert_eq!(
        (
            kept(&sample).len(),
            sample.get(&format!("{WHAT_IF}/what-if-1")).status
        ),
        (8, 404)
    );
}

#[test]
fn restart_keeps_finished_simulations_only() {
    let place = tempfile::tempdir().expect("a folder");
    let kept = place.path().join("kept");
    let there = |settings| WhatIfSettings {
        folder: kept.clone(),
        ..settings
    };
    let sample = Sample::simulating(SIMULATES, there);
    std::fs::write(sample.folder().join("said"), said(1.5, &["mean sojourn"])).expect("written");
    let name = ask(&sample, FAIR);
    let done = until(&sample, &name, "done");
    // A second server of the same directory has no what-ifs.
    let other = Sample::simulating(SIMULATES, there);
    let refused = other.post(WHAT_IF, FAIR);
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(
        refused.body.contains("in use by another server"),
        "{}",
        refused.body
    );
    drop((sample, other));

    let sample = Sample::simulating(WAITS, there);
    assert_eq!(sample.get(&format!("{WHAT_IF}/{name}")).json(), done);
    assert_eq!(done["fidelity"]["doubtful"], json!(["mean sojourn"]));
    assert_eq!(
        sample.get("/api/nap/v1/recordings").json()["items"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(ask(&sample, FAIR), "what-if-2");
    let sleeper = sleeper(sample.folder());
    drop(sample);
    until_gone(sleeper);
    let left: Vec<_> = std::fs::read_dir(&kept)
        .expect("a folder")
        .map(|entry| entry.expect("one").file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn invalid_or_unauthorized_requests_start_nothing() {
    let sample = Sample::start();
    for (body, status) in [
        (r#"{"schedulers": ["--plot=x"]}"#, 400),
        (r#"{"schedulers": ["fare"]}"#, 400),
        (r#"{"from": 5, "until": 5}"#, 400),
        (r#"{"until": 18446744073709551615}"#, 400),
        (r#"{"configuration": "[worker]"}"#, 400),
        (r#"{"configuration": "="}"#, 400),
        (r#"{"program": "/bin/sh"}"#, 400),
        (r#"{"until": 5}"#, 409),
        (r#"{"recording": "left"}"#, 404),
    ] {
        let refused = sample.post(WHAT_IF, body);
        assert_eq!(refused.status, status, "{body}: {}", refused.body);
    }
    let json = ("Content-Type", "application/json");
    let viewer = format!("Bearer {}", sample.token(WebRole::View));
    let ask =
        |headers: &[(&str, &str)]| sample.ask(&format!("POST {WHAT_IF}"), headers, FAIR).status;
    assert_eq!(
        (ask(&[json]), ask(&[json, ("Authorization", &viewer)])),
        (401, 403)
    );
    let cookie = kit::Browser::sign_in(&sample, WebRole::Operate).cookie;
    assert_eq!(ask(&[json, ("Cookie", &cookie)]), 403);
    assert_eq!(sample.get(WHAT_IF).json()["items"], json!([]));
    assert!(!sample.folder().join("line").exists());

    let none = Sample::recordings().post(WHAT_IF, FAIR);
    assert_eq!(none.status, 409, "{}", none.body);
    assert!(none.body.contains("nap web serve"), "{}", none.body);
}
