//! Pages served by other servers: for a coordinator at another address, for a growing or damaged history,
//! from a file.

use std::fs;

use napreduce_tests::{Folder, GatedJob, OwnCluster, program, run, wait_until};
use serde_json::Value;

use super::driver::Browser;
use super::{ANYWHERE, Served, histories, link, origin};

/// Returns the jobs on a page.
const JOBS: &str =
    "return fetch('/api/nap/v1/jobs').then((told) => told.json()).then(({ items }) => items)";

/// Returns the events of the first worker's registration.
const CAME: &str = "return fetch('/api/nap/v1/workers/changes?from=0').then((told) => told.json()).then(({ items }) => items.at(-1))";

#[test]
fn page_served_elsewhere_shows_same_numbers() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "far-away", 1, 1);
    job.until("m_0000.1", "running");
    let published =
        fs::read(cluster.directory().join("coordinator.json")).expect("it is published");
    let published: Value = serde_json::from_slice(&published).expect("JSON");
    let address = published["address"].as_str().expect("an address");
    // A machine with only a copy of the secret.
    let secret = folder.path("copied-secret");
    fs::copy(cluster.directory().join("secret"), &secret).expect("a copy");
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_DIR")
        .env_remove("NAPREDUCE_CLUSTER")
        .current_dir(folder.root());
    command.args([
        "web",
        "serve",
        "--web",
        "127.0.0.1:0",
        "--coordinator",
        address,
        "--secret-file",
    ]);
    command.arg(&secret);
    let there = Served::by(&folder, command);
    browser.open(&there.link);
    browser.until_says("far-away");
    browser.click("job_0001");
    browser.until(
        "its bars",
        "return Number(document.querySelector('canvas[data-stints]')?.dataset.stints) === 1",
    );
    browser.picture_on_request("served-elsewhere");
    // A session on that server may issue commands.
    browser.click("Suspend");
    browser.until(
        "a question is asked",
        "return document.querySelector('dialog[open]') !== null",
    );
    browser.keys("#reason", "asked from afar");
    browser.run("document.querySelector('dialog button[type=submit]').click()");
    browser.until_says("suspended");
    wait_until("it is suspended", || {
        cluster.json(&["job", "status", "job_0001"])[0]["state"] == "suspended"
    });
    run(cluster.nap().args(["job", "resume", "job_0001"])).succeeded();
    job.ends_as_undisturbed();
    browser.until_says("succeeded");
    let far = browser.run(JOBS);
    // Samples of every ten seconds are also served there.
    browser.open(&format!("{}/workers", origin(&there.link)));
    browser.until(
        "it came",
        "return document.querySelectorAll('h2 + div tbody tr').length > 0",
    );
    let came = browser.run(CAME);
    browser.has_no_complaints();
    browser.open(&link(&cluster, &[]));
    assert_eq!(browser.run(JOBS), far);
    assert_eq!(browser.run(CAME), came);
    assert_eq!(far, cluster.json(&["job", "list"]), "what nap says");
}

#[test]
fn served_history_follows_writes_and_reports_damage() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", "[web]\nbind = \"off\"\n");
    let first = GatedJob::submit(&folder, &cluster, "gated", "first", 1, 1);
    first.ends_as_undisturbed();
    let server = Served::start(&folder, cluster.directory());
    browser.open(&server.link);
    browser.open(&format!("{}/jobs", origin(&server.link)));
    browser.until_says("job_0001");
    let second = GatedJob::submit(&folder, &cluster, "gated", "second", 2, 1);
    second.ends_as_undisturbed();
    browser.until_says("job_0002");
    browser.has_no_complaints();
    // A copy with a truncated file and an invalid head.
    let history = cluster.directory().join("coordinator/history");
    let copy = folder.path("copy");
    fs::create_dir(&copy).expect("a folder");
    for entry in fs::read_dir(&history)
        .expect("a folder")
        .flatten()
        .filter(|entry| entry.path().is_file())
    {
        fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
    }
    let recording = fs::read(copy.join("job_0002.jsonl.gz")).expect("a recording");
    fs::write(
        copy.join("job_0002.jsonl.gz"),
        &recording[..recording.len() / 2],
    )
    .expect("cut");
    fs::write(copy.join("job_0003.json"), "{").expect("written");
    let damaged = Served::start(&folder, &copy);
    browser.open(&damaged.link);
    browser.open(&format!("{}/jobs", origin(&damaged.link)));
    browser.until_says("job_0002");
    browser.until_says("job_0003.json");
    browser.picture_on_request("damaged");
    browser.open(&format!("{}/jobs/job_0001", origin(&damaged.link)));
    browser.until(
        "whole",
        "return Number(document.querySelector('canvas[data-stints]')?.dataset.stints) === 2",
    );
    browser.open(&format!("{}/jobs/job_0002/events", origin(&damaged.link)));
    browser.until_says("job_0002.jsonl.gz");
    browser.has_no_complaints();
}

#[test]
fn report_opened_from_disk_escapes_markup() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    let report = folder.path("report.html");
    histories::hostile(&history);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    let told = "return fetch('/api/nap/v1/jobs/job_0001/report.html').then((told) => told.text())";
    fs::write(&report, browser.run(told).as_str().expect("a page")).expect("written");
    browser.show(&format!("file://{}", report.display()));
    browser.until_says("<img src=x onerror=alert(1)>");
    assert_eq!(
        browser.run("return document.querySelectorAll('img, script').length"),
        0
    );
    assert_eq!(
        browser.run("return document.querySelectorAll('svg').length > 0"),
        true
    );
    browser.picture_on_request("report");
    browser.run("document.documentElement.style.width = '320px'");
    browser.has_no_complaints();
}
