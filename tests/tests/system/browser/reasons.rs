//! The reasons why a job makes no progress, as printed by `nap job explain`, and the stderr of failed
//! attempts.

use napreduce_tests::{Folder, GatedJob, OwnCluster, program, run, wait_until};
use serde_json::Value;

use super::driver::Browser;
use super::{ANYWHERE, link, origin};

/// Returns the lines of the panel.
const WHY: &str =
    "return [...document.querySelectorAll('.panel.why p')].map((line) => line.textContent)";

/// Waits until the page of a job shows the same reason of this kind as the command line; returns the
/// suggested command.
fn until_as_explained(
    browser: &Browser,
    cluster: &OwnCluster,
    page: &str,
    job: &str,
    code: &str,
) -> Option<String> {
    browser.open(&format!("{}/jobs/{job}", origin(page)));
    // Times differ between the two.
    let plain = |text: &str| {
        text.chars()
            .filter(|letter| !letter.is_ascii_digit())
            .collect::<String>()
    };
    wait_until(&format!("{job} waits for {code}"), || {
        let told = cluster.json(&["job", "explain", job]);
        let reasons = told[0]["reasons"].as_array().expect("reasons");
        let said: Vec<String> = reasons
            .iter()
            .map(|one| plain(one["text"].as_str().expect("text")))
            .collect();
        let shown = browser.run(WHY);
        let shown: Vec<String> = shown
            .as_array()
            .expect("lines")
            .iter()
            .map(|line| plain(line.as_str().expect("text")))
            .collect();
        reasons.iter().any(|one| one["code"] == code) && shown == said
    });
    let command =
        browser.run("return document.querySelector('.panel.why code')?.textContent ?? null");
    command.as_str().map(str::to_owned)
}

/// Runs the command that the page shows.
fn obey(cluster: &OwnCluster, command: &str) {
    let words = command.strip_prefix("nap ").expect("a command").split(' ');
    run(cluster.nap().args(words)).succeeded();
}

#[test]
fn shown_reason_matches_command_line_and_its_command_works() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let page = link(&cluster, &[]);
    browser.open(&page);
    let first = GatedJob::submit(&folder, &cluster, "gated", "first", 1, 1);
    first.until("m_0000.1", "running");
    let second = GatedJob::submit(&folder, &cluster, "gated", "second", 2, 1);
    until_as_explained(&browser, &cluster, &page, "job_0002", "all-slots-taken");

    run(cluster.nap().args(["job", "suspend", "job_0001"])).succeeded();
    let command = until_as_explained(&browser, &cluster, &page, "job_0001", "held-by-operator");
    browser.picture_on_request("held");
    first.until("m_0000.1", "suspended");
    second.until("m_0000.1", "running");
    obey(&cluster, &command.expect("something to do"));
    // It resumes after the map of the other job.
    second.open("m_0000");
    first.until("m_0000.1", "running");
    until_as_explained(&browser, &cluster, &page, "job_0001", "progress");

    // The only worker drains, so no worker is left for the reduce.
    run(cluster.nap().args(["worker", "drain", "worker_0001"])).succeeded();
    first.open("m_0000");
    until_as_explained(&browser, &cluster, &page, "job_0001", "no-worker");
    browser.picture_on_request("no-worker");
    run(cluster.nap().args(["worker", "undrain", "worker_0001"])).succeeded();
    second.open("r_0000");
    for job in [&first, &second] {
        job.ends_as_undisturbed();
    }
    browser.has_no_complaints();
}

#[test]
fn stderr_of_failed_attempt_outlives_worker() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    folder.write("in/1", "good\nbad\n");
    let job = cluster.submit(
        &folder,
        &[
            "in",
            "--job",
            "panic-in-map",
            "--output",
            "out",
            "--name",
            "panics",
        ],
    );
    assert!(!cluster.wait(&[&job]).status.success());
    let name = cluster.json(&["worker", "list"])[0]["worker"]
        .as_str()
        .expect("a worker")
        .to_owned();
    run(cluster
        .nap()
        .args(["worker", "drain", &name, "--hand-back", "--wait"]))
    .succeeded();
    let gone = |worker: &Value| worker["worker"] == name.as_str() && worker["state"] == "left";
    let all = cluster.json(&["worker", "list", "--all"]);
    assert!(all.as_array().expect("workers").iter().any(gone), "{all}");
    let page = link(&cluster, &[]);
    browser.open(&page);
    browser.open(&format!("{}/jobs/{job}/attempts", origin(&page)));
    browser.until_says("bad row");
    browser.click("stderr");
    browser.until(
        "its log",
        "return document.querySelector('dialog pre')?.textContent.includes('bad row')",
    );
    browser.picture_on_request("stderr-of-one-that-failed");
    browser.has_no_complaints();
    drop(cluster);
    // The history shows the same without a cluster.
    let mut command = program("nap");
    command
        .args(["history", "serve", "--web", "127.0.0.1:0"])
        .arg(folder.path("cluster"));
    let server = super::Served::by(&folder, command);
    browser.open(&server.link);
    browser.open(&format!("{}/jobs/{job}/attempts", origin(&server.link)));
    browser.click("stderr");
    browser.until(
        "its log",
        "return document.querySelector('dialog pre')?.textContent.includes('bad row')",
    );
    browser.has_no_complaints();
}
