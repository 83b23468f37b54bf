//! Demand of queues and changes of workers over time: on a running cluster, after a coordinator restart, and
//! in a copy of the history.

use std::fs;

use napreduce_tests::{Folder, GatedJob, OwnCluster};

use super::driver::Browser;
use super::{ANYWHERE, Served, link, origin};

#[test]
fn demand_and_workers_over_time_survive_kill_and_copy() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 2, "fair", ANYWHERE);
    // More maps than there are slots.
    let job = GatedJob::submit(&folder, &cluster, "gated", "waiting", 1, 9);
    job.until("m_0000.1", "running");
    let page = link(&cluster, &[]);
    browser.open(&page);
    let open = |path: &str| browser.open(&format!("{}{path}", origin(&page)));
    open("/workers");
    // The second sample of the cluster, ten seconds after the first.
    let both_came = "return [...document.querySelectorAll('h2 + div tbody tr')].filter(row => row.innerText.includes('up')).length >= 2";
    browser.until("both workers came", both_came);
    browser.picture_on_request("workers-over-time");
    let wanted = "return fetch('/api/nap/v1/shares').then(told => told.json()).then(({ queues }) => \
                  queues.some(({ map }) => map.wanted.some(slots => slots > 0)))";
    browser.until("slots that were wanted", wanted);
    open("/queues");
    browser.until_says("wanted at most");
    // Two slots are held and seven more are wanted: the axis covers the held slots, and the number is next to
    // the clipped line. The words below the chart have the same number.
    let axis = "const chart = document.querySelector('.shares figure.map'); \
                const [most, beyond] = ['.most', '.beyond'].map((name) => chart?.querySelector(name)?.innerText ?? ''); \
                return /^[2-4]$/.test(most) && /^[5-9] wanted at most$/.test(beyond) \
                  && chart.querySelector('figcaption').innerText.includes(`, ${beyond}`)";
    browser.until("what is wanted is clipped", axis);
    browser.picture_on_request("queues-over-time");
    browser.has_no_complaints();
    cluster.kill_coordinator();
    open("/workers");
    browser.until("both are known still", both_came);
    open("/queues");
    browser.until_says("wanted at most");

    // A copy, without the cluster.
    job.ends_as_undisturbed();
    let history = cluster.directory().join("coordinator/history");
    fs::create_dir_all(folder.path("copy/cluster")).expect("a folder");
    for folder_name in ["", "cluster"] {
        for entry in fs::read_dir(history.join(folder_name))
            .expect("a folder")
            .flatten()
        {
            if entry.path().is_file() {
                let to = folder
                    .path("copy")
                    .join(folder_name)
                    .join(entry.file_name());
                fs::copy(entry.path(), to).expect("copied");
            }
        }
    }
    drop(cluster);
    let server = Served::start(&folder, &folder.path("copy"));
    browser.open(&server.link);
    browser.open(&format!("{}/workers", origin(&server.link)));
    browser.until("the same of a copy", both_came);
    browser.open(&format!("{}/queues", origin(&server.link)));
    browser.until_says("wanted at most");
}
