//! Totals, filters, time windows, event order and layout of pages with many jobs.

use std::time::{SystemTime, UNIX_EPOCH};

use napreduce_tests::Folder;
use serde_json::json;

use super::driver::Browser;
use super::{Served, histories, origin};

fn now_millis() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    u64::try_from(since.as_millis()).expect("a moment")
}

/// The Enter key in WebDriver's encoding.
const ENTER: &str = "\u{e007}";

/// Types a text into the search of the header.
fn search(browser: &Browser, text: &str) {
    if browser.run("return document.querySelector('dialog.search') === null") == true {
        browser.keys("body", "/");
    }
    browser.run("document.querySelector('dialog.search input').value = ''");
    browser.keys("dialog.search input", text);
}

/// Types a text into the filter of a list.
fn filter(browser: &Browser, text: &str) {
    browser.run(&format!(
        "const search = document.querySelector('main input[type=search]'); search.value = {}; \
         search.dispatchEvent(new Event('input'))",
        json!(text)
    ));
}

#[test]
fn totals_and_filters_cover_all_jobs() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::preempted(&history, 100_040, now_millis() - 60_000);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    let open = |path: &str| browser.open(&format!("{}{path}", origin(&server.link)));

    open("/preemptions");
    let figure = "return document.querySelector('.card .figure')?.innerText === '3,540'";
    browser.until("the count of all jobs", figure);
    browser.until_says("3,540 were taken");
    browser.picture_on_request("preemptions-of-all-jobs");
    open("/jobs/job_0001/preemptions");
    browser.until_says("3,480 times a slot was wanted back; 58 min 0 s of work was saved");
    browser.until_says("1 in all");
    browser.run("document.querySelector('main td button[aria-expanded]').click()");
    browser.until_says(" of 3,480 are shown");
    open("/queues");
    let queues =
        "return [...document.querySelectorAll('.shares h3')].map((one) => one.innerText).join()";
    browser.until(
        "both queues",
        &format!("{queues} === 'research,production'"),
    );
    assert!(!browser.text().contains("at least"), "{}", browser.text());
    browser.picture_on_request("queues-of-all-jobs");

    // An address of earlier versions.
    open("/jobs/job_0001/attempts?text=machine-39");
    assert_eq!(
        browser.run("return location.pathname"),
        "/jobs/job_0001/tasks"
    );
    browser.until_says("100 of 1,001 are shown");
    filter(&browser, "M_100039");
    browser.until_says("job_0001_m_100039");
    browser.until_says("1 in all");
    browser.picture_on_request("filtered");
    filter(&browser, "launched_millis");
    browser.until_says("No matching tasks.");
    assert!(
        !browser.text().contains("No task was started"),
        "{}",
        browser.text()
    );
    filter(&browser, "");
    browser.until_says("All 100,040");
    // A chip filters on the server, and the address has it.
    browser.click("Slow 0");
    browser.until_says("No matching tasks.");
    assert_eq!(browser.run("return location.search"), "?show=slow");

    search(&browser, "m_9999999");
    browser.until_says("Nothing found.");
    search(&browser, "m_100039");
    browser.until_says("map of job_0001 preempted");
    search(&browser, "job_0001_m_100039.1");
    browser.until_says("map of job_0001 preempted");
    browser.picture_on_request("search");
    browser.keys("dialog.search input", ENTER);
    browser.until(
        "its page",
        "return location.pathname.endsWith('/tasks/job_0001_m_100039')",
    );
    browser.has_no_complaints_but_slow_answers();
}

#[test]
fn time_window_with_skewed_browser_clock_ends_now() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::preempted(&history, 1, now_millis() - 60_000);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    for hours in [1, -1] {
        let skewed = format!(
            "const Real = Date; \
             globalThis.Date = class extends Real {{ \
               static now() {{ return Real.now() + {hours} * 3600000; }} \
               constructor(...given) {{ super(...(given.length ? given : [Real.now() + {hours} * 3600000])); }} \
             }};"
        );
        let kept = browser.devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            &json!({ "source": skewed }),
        );
        browser.open(&format!("{}/preemptions?last=10m", origin(&server.link)));
        let apart =
            browser.run("return Math.round((Date.now() - performance.timeOrigin) / 3600000)");
        assert_eq!(apart, hours, "the clock of the browser is right");
        browser.until(
            "what was wanted a minute ago",
            "return document.querySelector('.card .figure')?.innerText === '3,540'",
        );
        browser.open(&format!("{}/queues?last=10m", origin(&server.link)));
        browser.until_says("research");
        browser.devtools("Page.removeScriptToEvaluateOnNewDocument", &kept);
    }
    browser.has_no_complaints();
}

#[test]
fn task_page_names_worker_and_orders_events() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::causes(&history);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    let task = |index: u32| {
        let path = format!("/jobs/job_0001/tasks/job_0001_m_{index:04}");
        browser.open(&format!("{}{path}", origin(&server.link)));
    };
    task(0);
    browser.until_says("job_0001_m_0000.1 was checkpointed");
    browser.picture_on_request("task-causes");
    let text = browser.text();
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("no {words:?} in {text}"))
    };
    let told = [
        "job_0001_m_0000.1 was launched",
        "natjam wanted its slot",
        "job_0001_m_0000.1 was checkpointed",
        "job_0001_m_0000.1 ended",
        "job_0001_m_0000.2 was launched",
        "job_0001_m_0000.2 ended",
    ];
    assert!(told.is_sorted_by_key(|words| place(words)), "{text}");
    task(1);
    browser.until_says("Done by");
    browser.picture_on_request("task-doer");
    let facts = browser.run("return document.querySelector('dl.facts').innerText");
    let facts = facts.as_str().expect("text");
    assert!(
        facts.contains("job_0001_m_0001.2 on worker_0022 (machine-22)"),
        "{facts}"
    );
    let text = browser.text();
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("no {words:?} in {text}"))
    };
    assert!(
        place("m_0001.2 ended: succeeded") < place("m_0001.1 ended: killed"),
        "{text}"
    );
    browser.has_no_complaints();
}

#[test]
fn missing_page_is_named_and_selected_suspend_scrolls_into_view() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::tall(&history, 200);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    let open = |path: &str| browser.open(&format!("{}{path}", origin(&server.link)));
    for (path, title) in [
        ("/jobs/job_9999", "No such job"),
        ("/jobs/job_9999/attempts", "No such job"),
        ("/jobs/job_0001/tasks/job_0001_r_0000", "No such task"),
        ("/workers/worker_9999", "No such worker"),
    ] {
        open(path);
        assert_eq!(
            browser.run("return document.querySelector('h1').innerText"),
            title,
            "{path}"
        );
        let left = browser
            .run("return document.querySelectorAll('main nav, main canvas, main table').length");
        assert_eq!(left, 0, "{path} shows the skeleton of a page");
    }
    browser.picture_on_request("no-such-worker");
    browser.has_no_complaints_but(&["404"]);

    browser.resize(900, 420);
    open("/jobs/job_0001");
    browser.until(
        "its nap",
        "return document.querySelector('canvas[data-stints]')?.dataset.naps === '1'",
    );
    assert_eq!(browser.run("return scrollY"), 0);
    browser.keys("canvas", "n");
    browser.until_says("then suspended by");
    browser.picture_on_request("nap-below-the-fold");
    let seen = "const view = document.querySelector('.timeline .view'); \
                const words = document.querySelector('.timeline .said').getBoundingClientRect(); \
                return view.scrollTop > 0 && words.top > -1 && words.bottom <= innerHeight";
    assert_eq!(
        browser.run(seen),
        true,
        "the nap or its words are out of sight"
    );

    // Printed pages do not scroll, so all rows must be shown.
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    browser.run("dispatchEvent(new Event('beforeprint'))");
    let canvas = "const canvas = document.querySelector('.timeline canvas'); return canvas.height / devicePixelRatio";
    let high = browser.run(canvas).as_f64().expect("a number");
    assert!(high > 200.0 * 18.0, "{high} pixels");
    let wide = browser.run("return document.documentElement.scrollWidth - innerWidth");
    assert!(
        wide.as_i64().is_some_and(|wide| wide <= 0),
        "{wide} pixels too wide on paper"
    );
    browser.picture_on_request("printed");
    // A picture that fits a page is not split between two.
    let split = "return getComputedStyle(document.querySelector('.timeline')).breakInside";
    assert_eq!(browser.run(split), "avoid");
    browser.run("dispatchEvent(new Event('afterprint'))");
    browser.has_no_complaints();
}

/// Returns elements wider than their box, such as a table that is cut off in print.
const CROPPED: &str = "
return [...document.querySelectorAll('main .scroll, main .timeline .view, main pre')]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.scrollWidth} of ${one.clientWidth}: ${one.innerText.slice(0, 60)}`)";

#[test]
fn pages_of_many_jobs_fit_narrow_screens_and_paper() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::preempted(&history, 3_480, now_millis() - 60_000);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    let pages = [
        "/jobs",
        "/jobs/job_0001",
        "/jobs/job_0001/preemptions",
        "/jobs/job_0001/tasks",
        "/jobs/job_0001/tasks/job_0001_m_0001",
        "/compare?left=job_0001&right=job_0002",
        "/preemptions?from=0&flows=job",
        "/queues",
        "/jobs/job_9999",
    ];
    let too_wide = "return document.documentElement.scrollWidth - innerWidth";
    for (media, width) in [("screen", 320), ("print", 960)] {
        let screen =
            json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        browser.devtools("Emulation.setDeviceMetricsOverride", &screen);
        browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": media }));
        for page in pages {
            browser.open(&format!("{}{page}", origin(&server.link)));
            let wide = browser.run(too_wide).as_i64().expect("a number");
            assert!(wide <= 0, "{page} is {wide} pixels too wide on {media}");
            if media == "print" {
                assert_eq!(browser.run(CROPPED), json!([]), "{page} on paper");
            }
            browser.picture_on_request(&format!(
                "{media}{}",
                page.replace(['/', '?', '=', '&'], "-")
            ));
        }
    }
    browser.has_no_complaints_but(&["404"]);
}
