//! Live events in a browser with many tabs: they share one stream, show events at once, and miss none.

use napreduce_tests::{Folder, GatedJob, OwnCluster};
use serde_json::json;

use super::driver::Browser;
use super::{ANYWHERE, link, origin};

/// The polling interval of a page without a stream; a page with a stream polls less often.
const POLLED_MILLIS: u64 = 3_000;

/// Waits until this many streams are open, according to the server.
fn until_streams(browser: &Browser, count: u32) {
    let metric = format!("napreduce_http_streams {count}\n");
    let script = format!(
        "return fetch('/metrics').then((answer) => answer.text()).then((text) => text.includes({}))",
        json!(metric)
    );
    browser.until(&format!("{count} streams are open"), &script);
}

/// Makes the page record when these words appear; the record would be lost by a reload.
fn look_for(browser: &Browser, words: &str) {
    browser.run(&format!(
        "window.seen = null; \
         const look = () => {{ if (window.seen === null && document.body.innerText.includes({words})) window.seen = Date.now(); }}; \
         new MutationObserver(look).observe(document.body, {{ childList: true, subtree: true, characterData: true }}); \
         look()",
        words = json!(words)
    ));
}

/// Returns the time at which they appeared, in milliseconds since 1970.
fn seen(browser: &Browser, words: &str) -> u64 {
    let seen = browser.until(
        &format!("{words} appears without a reload"),
        "return window.seen ?? false",
    );
    seen.as_u64().expect("a moment")
}

#[test]
fn job_appears_before_next_poll() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    browser.open(&link(&cluster, &[]));
    until_streams(&browser, 1);
    let mut fastest = u64::MAX;
    // Machines are shared: the best of three must beat the polling interval.
    for (number, name) in [(1, "first"), (2, "second"), (3, "third")] {
        let id = format!("job_000{number}");
        look_for(&browser, &id);
        let job = GatedJob::submit(&folder, &cluster, "gated", name, number, 1);
        let appeared = seen(&browser, &id);
        let status = cluster.json(&["job", "status", job.id()]);
        let submitted = status[0]["submitted_millis"].as_u64().expect("a moment");
        fastest = fastest.min(appeared.saturating_sub(submitted));
    }
    eprintln!("a job appears after {fastest} ms");
    assert!(
        fastest < POLLED_MILLIS,
        "the fastest of three jobs appeared after {fastest} ms"
    );
    browser.has_no_complaints();
}

#[test]
fn tabs_share_one_stream_after_leader_closes() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let link = link(&cluster, &[]);
    browser.open(&link);
    let mut tabs = vec![browser.this_tab()];
    for page in ["/", "/jobs", "/workers", "/", "/jobs", "/queues", "/"] {
        tabs.push(browser.tab(&format!("{}{page}", origin(&link))));
    }
    until_streams(&browser, 1);
    let lists: Vec<_> = [0, 1, 2, 4, 5, 7].map(|at| tabs[at].clone()).to_vec();
    let all_see = |lists: &[fantoccini::wd::WindowHandle], name: &'static str, number| {
        let id = format!("job_000{number}");
        for tab in lists {
            browser.turn_to(tab);
            look_for(&browser, &id);
        }
        let job = GatedJob::submit(&folder, &cluster, "gated", name, number, 1);
        let times: Vec<u64> = lists
            .iter()
            .map(|tab| {
                browser.turn_to(tab);
                seen(&browser, &id)
            })
            .collect();
        let apart = times.iter().max().expect("tabs") - times.iter().min().expect("tabs");
        eprintln!("{name}: the tabs are {apart} ms apart");
        job
    };
    let first = all_see(&lists, "first", 1);
    until_streams(&browser, 1);
    // The first tab is the one that listens.
    browser.turn_to(&lists[0]);
    browser.close_tab();
    browser.turn_to(&lists[1]);
    until_streams(&browser, 1);
    let second = all_see(&lists[1..], "second", 2);
    until_streams(&browser, 1);
    for job in [&first, &second] {
        ["m_0000", "r_0000"].iter().for_each(|task| job.open(task));
    }
    cluster.wait(&[first.id(), second.id()]).succeeded();
    for tab in &lists[1..] {
        browser.turn_to(tab);
        let all_over = "return [...document.querySelectorAll('td .state')].every((one) => one.textContent === 'succeeded')";
        browser.until("no tab shows that it runs", all_over);
        browser.has_no_complaints();
    }
}

#[test]
fn events_during_coordinator_outage_are_shown() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "survivor", 1, 1);
    job.until("m_0000.1", "running");
    browser.open(&link(&cluster, &[]));
    browser.click("job_0001");
    browser.until_says("1 running, 0 suspended");
    until_streams(&browser, 1);
    look_for(&browser, "succeeded");
    let coordinator = cluster.coordinator();
    coordinator.signal(rustix::process::Signal::STOP);
    browser.until_says("no coordinator answers");
    job.open("m_0000");
    job.open("r_0000");
    coordinator.signal(rustix::process::Signal::KILL);
    coordinator.signal(rustix::process::Signal::CONT);
    browser.until(
        "it is back",
        "return document.getElementById('notice').hidden",
    );
    cluster.wait(&[job.id()]).succeeded();
    seen(&browser, "succeeded");
    browser.has_no_complaints_but(&["503"]);
}

#[test]
fn hidden_tab_stops_polling_and_catches_up() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    browser.open(&link(&cluster, &[]));
    until_streams(&browser, 1);
    // Makes a minute pass quickly.
    browser.run(
        "const slow = window.setTimeout; window.setTimeout = (act, millis) => slow(act, Math.min(millis, 100)); \
         let hidden = true; window.reveal = () => { hidden = false; document.dispatchEvent(new Event('visibilitychange')); }; \
         Object.defineProperty(document, 'hidden', { get: () => hidden }); \
         document.dispatchEvent(new Event('visibilitychange')); window.setTimeout = slow",
    );
    until_streams(&browser, 0);
    look_for(&browser, "job_0001");
    let asked = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/cluster')).length";
    let before = browser.run(asked);
    let job = GatedJob::submit(&folder, &cluster, "gated", "unseen", 1, 1);
    job.until("m_0000.1", "running");
    assert_eq!(
        (browser.run(asked), browser.run("return window.seen")),
        (before, json!(null)),
        "it asks unseen"
    );
    browser.run("window.reveal()");
    seen(&browser, "job_0001");
    until_streams(&browser, 1);
    browser.has_no_complaints();
}
