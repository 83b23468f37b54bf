//! Checkpointed work and killed work on the timeline, compared with the counters.

use napreduce_tests::{Folder, GatedJob, OwnCluster, counter, run};
use serde_json::json;

use super::driver::Browser;
use super::{ANYWHERE, link, origin};

/// Returns the suspends and checkpoints of the job, its restores, and the number of workers.
const TOLD: &str = "return fetch('/api/nap/v1/jobs/job_0001/timeline').then((told) => told.json()).then(({ naps, restores, lanes }) => \
                    [naps.map((nap) => nap.is_suspended), Object.values(restores), new Set(lanes.map((lane) => lane.worker)).size])";

#[test]
fn checkpoint_and_kill_are_drawn_with_lost_work() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 2, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "moving", 1, 1);
    let first = job.until("m_0000.1", "running")["worker"].clone();
    // The worker drains, so that the task restores on another one.
    run(cluster
        .nap()
        .args(["worker", "drain", first.as_str().expect("a worker")]))
    .succeeded();
    job.command("checkpoint", "m_0000");
    let second = job.until("m_0000.2", "running")["worker"].clone();
    assert_ne!(first, second);

    let page = link(&cluster, &[]);
    browser.open(&page);
    browser.open(&format!("{}/jobs/job_0001", origin(&page)));
    browser.until(
        "both of its stretches",
        "return document.querySelector('canvas[data-stints]')?.dataset.stints === '2'",
    );
    assert_eq!(
        browser.run(TOLD),
        json!([[false], ["job_0001_m_0000.1"], 2]),
        "a nap in files, a restore, two workers"
    );
    browser.click("By task");
    browser.keys("canvas", "n");
    browser.until_says("then checkpointed by operator");
    browser.until_says("continued by job_0001_m_0000.2");
    browser.picture_on_request("checkpointed");
    browser.keys("canvas", "l");
    browser.until_says("continued from job_0001_m_0000.1");
    browser.open(&format!(
        "{}/jobs/job_0001/tasks/job_0001_m_0000",
        origin(&page)
    ));
    browser.until_says("continuing from job_0001_m_0000.1 with");
    browser.until_says("in files");

    job.command("kill", "m_0000");
    job.until("m_0000.3", "running");
    browser.open(&format!("{}/jobs/job_0001", origin(&page)));
    browser.until(
        "three stretches",
        "return document.querySelector('canvas[data-stints]')?.dataset.stints === '3'",
    );
    browser.keys("canvas", "nn");
    browser.until_says("then killed for another job by operator");
    browser.picture_on_request("killed");
    job.ends_as_undisturbed();
    // The page and the counters agree on lost work.
    browser.open(&format!("{}/jobs/job_0001/preemptions", origin(&page)));
    browser.until_says("2 times a slot was wanted back");
    let lost = "return fetch('/api/nap/v1/jobs/job_0001/preemptions').then((told) => told.json())\
                .then(({ items }) => items.reduce((sum, item) => sum + item.work_lost_millis, 0))";
    assert_eq!(
        browser.run(lost),
        counter(&job.output(), "WORK_LOST_MILLIS")
    );
    browser.has_no_complaints();
}
