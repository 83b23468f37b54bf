//! The first page of a busy cluster: what runs first, equal reasons together, nothing cut off, nothing that moves while
//! a page loads.

use napreduce_tests::{Folder, GatedJob, OwnCluster};
use serde_json::json;

use super::access::PAGES;
use super::driver::Browser;
use super::everywhere::set_size;
use super::{ANYWHERE, link, origin, served_hostile};

/// Sums the layout shifts of a page, except those that follow an input.
const WATCH: &str = "
window.shifts = [];
new PerformanceObserver((list) => shifts.push(...list.getEntries().filter((one) => !one.hadRecentInput)
  .map(({ value, sources }) => [value, sources.map(({ node }) => node?.outerHTML?.slice(0, 80)).join(' | ')])))
  .observe({ type: 'layout-shift', buffered: true });
";
const SHIFTED: &str = "return window.shifts.reduce((sum, [value]) => sum + value, 0)";
/// Google calls a page good below this cumulative layout shift.
const SHIFT_MAX: f64 = 0.1;
/// Returns the number of pixels by which the cells of a column are cut off at the right.
const CUT: &str = "
const at = [...document.querySelectorAll('main thead th')].findIndex((one) => one.innerText.startsWith(NAME)) + 1;
const cells = [...document.querySelectorAll(`main tbody tr:not(.alike) > td:nth-child(${at})`)];
return Math.max(...cells.map((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return Math.max(range.getBoundingClientRect().right, ...[...range.getClientRects()].map((box) => box.right)) - innerWidth;
}))";

/// Fails if a column is not in view, or there is none.
fn is_in_view(browser: &Browser, column: &str, page: &str, width: u32) {
    let cut = browser.run(&CUT.replace("NAME", &json!(column).to_string()));
    let cut = cut
        .as_f64()
        .unwrap_or_else(|| panic!("{page} has no cells in {column:?}"));
    assert!(
        cut <= 0.0,
        "{page}: {column:?} is cut by {cut} pixels at {width}"
    );
}

fn stays_in_place(browser: &Browser, page: &str) {
    // The next frame has all shifts before it.
    browser.run(
        "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))",
    );
    let shifted = browser.run(SHIFTED).as_f64().expect("a number");
    let shifts = browser.run("return window.shifts");
    assert!(
        shifted < SHIFT_MAX,
        "{page} has a layout shift of {shifted}: {shifts}"
    );
}

#[test]
fn waiting_jobs_are_grouped_by_reason_below_running_ones() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let first = GatedJob::submit(
        &folder,
        &cluster,
        "gated",
        "a job with a long name that runs",
        1,
        1,
    );
    first.until("m_0000.1", "running");
    let waiting: Vec<GatedJob<'_>> = ["second", "third", "fourth", "fifth", "sixth"]
        .into_iter()
        .zip(2..)
        .map(|(name, number)| GatedJob::submit(&folder, &cluster, "gated", name, number, 1))
        .collect();
    let page = link(&cluster, &[]);
    browser.open(&page);
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({ "source": WATCH }),
    );
    browser.until_says("2 more for the same reason: job_0003 job_0002");
    let rows = "return [...document.querySelectorAll('main tbody tr > td:first-child')].map((one) => one.innerText.slice(0, 8)).join()";
    assert_eq!(
        browser.run(rows),
        "job_0001,job_0006,job_0005,job_0004,2 more f"
    );
    // The cards lead to what they count.
    let cards = "return [...document.querySelectorAll('a.card')].map((one) => one.pathname + one.search).join(' ')";
    assert_eq!(
        browser.run(cards),
        "/queues /queues /jobs?state=waiting,running,held,suspended,stopping /preemptions /workers /jobs?state=succeeded,failed,killed"
    );
    for address in [
        "/",
        "/jobs",
        "/jobs/job_0001",
        "/jobs/job_0006",
        "/queues",
        "/workers",
    ] {
        browser.open(&format!("{}{address}", origin(&page)));
        stays_in_place(&browser, address);
    }
    for (width, column) in [(1024, "Why"), (390, "State")] {
        set_size(&browser, width, 900);
        browser.open(&format!("{}/", origin(&page)));
        is_in_view(&browser, column, "/", width);
        browser.picture_on_request(&format!("first-page-{width}"));
        browser.run("document.documentElement.dataset.theme = 'dark'");
        browser.picture_on_request(&format!("first-page-{width}-dark"));
        browser.open(&format!("{}/jobs", origin(&page)));
        is_in_view(&browser, "State", "/jobs", width);
    }
    let height =
        browser.run("return document.querySelector('header').getBoundingClientRect().height");
    assert!(
        height.as_f64().is_some_and(|height| height < 110.0),
        "the header is {height} pixels high at 390"
    );
    browser.has_no_complaints();
    for job in waiting.iter().chain([&first]) {
        job.open("m_0000");
        job.open("r_0000");
    }
    cluster.wait(&["all"]).succeeded();
}

/// Two queues with a slot each.
const SHARED: &str = "[[scheduler.capacity.queue]]\nname = \"default\"\nguaranteed-percent = 50\n\
                      [[scheduler.capacity.queue]]\nname = \"research\"\nguaranteed-percent = 50\n";

#[test]
fn queue_above_its_guarantee_is_marked_and_sorted() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 2, "capacity", &format!("{ANYWHERE}{SHARED}"));
    let job = GatedJob::submit(&folder, &cluster, "gated", "spread", 1, 2);
    job.until("m_0000.1", "running");
    job.until("m_0001.1", "running");
    let page = link(&cluster, &[]);
    browser.open(&page);
    browser.open(&format!("{}/queues", origin(&page)));
    let over = "return document.querySelector('td .over')?.innerText ?? null";
    assert_eq!(browser.until("the queue is marked", over), "+1");
    browser.picture_on_request("queue-above-its-guarantee");
    let names = "return [...document.querySelectorAll('main tbody td:first-child')].map((one) => one.innerText.trim()).join()";
    browser.click("Above its guarantee");
    browser.until(
        "sorted",
        "return document.querySelector('th[aria-sort=descending]') !== null",
    );
    assert_eq!(browser.run("return location.search"), "?sort=-over");
    assert_eq!(browser.run(names), "default,research");
    browser.run("document.querySelector('th[aria-sort=descending] button').click()");
    browser.until("the other way", &format!("{names} === 'research,default'"));
    let saved = "return fetch(document.querySelector('main a[download]').href).then((answer) => answer.text())";
    let saved = browser.run(saved);
    let saved = saved.as_str().expect("a text");
    assert!(
        saved.starts_with("queue,map.guaranteed,") && saved.contains("\r\nresearch,"),
        "{saved}"
    );
    browser.has_no_complaints();
    for task in ["m_0000", "m_0001", "r_0000"] {
        job.open(task);
    }
    cluster.wait(&[job.id()]).succeeded();
}

#[test]
fn pages_of_history_stay_in_place_while_they_load() {
    let folder = Folder::new();
    let Some((browser, server)) = served_hostile(&folder) else {
        return;
    };
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({ "source": WATCH }),
    );
    for width in [1440, 390] {
        set_size(&browser, width, 900);
        for page in PAGES {
            browser.open(&format!("{}{page}", origin(&server.link)));
            stays_in_place(&browser, page);
        }
    }
    browser.has_no_complaints();
}
