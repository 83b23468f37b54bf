//! Speed of the page with a job of 100,000 attempts, as in docs/dashboard.md. Measurements are printed next to
//! their budgets and not asserted, since the machine may be busy.
//!
//! ```text
//! cargo test -p napreduce-tests --release --test system -- --ignored --nocapture browser::budgets
//! ```

use napreduce_tests::Folder;
use serde_json::{Value, json};

use super::driver::Browser;
use super::{Served, histories, origin};

/// Records when rows and bars first appear, and what blocked the page for long.
const WATCH: &str = "
window.seen = {}; window.long = [];
new MutationObserver(() => {
  if (!seen.rows && document.querySelector('tbody tr')) seen.rows = performance.now();
  if (!seen.drawn && Number(document.querySelector('canvas[data-stints]')?.dataset.stints) > 0) seen.drawn = performance.now();
}).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-stints'] });
new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: 'longtask', buffered: true });
";

const FIRST_PAINT: &str =
    "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
const FETCHED_AND_DRAWN: &str = "return seen.drawn - performance.getEntriesByType('resource').find((one) => one.name.includes('/job_0001/timeline')).startTime";
/// The time from the request of a list to its first row.
const TASKS_SHOWN: &str = "return seen.rows - performance.getEntriesByType('resource').find((one) => one.name.includes('/job_0001/tasks')).startTime";
const JOBS_SHOWN: &str = "return seen.rows - performance.getEntriesByType('resource').find((one) => one.name.includes('/v1/jobs?')).startTime";
const ANSWERED: &str = "const asked = performance.getEntriesByType('resource').find((one) => one.name.includes('/job_0001/timeline')); \
                        return asked.responseEnd - asked.startTime";
/// The median of nine redraws, after the first drawing.
const DRAWN: &str = "
const canvas = document.querySelector('canvas[data-stints]');
const times = Array.from({ length: 9 }, () => {
  document.querySelector('.timeline .view').dispatchEvent(new Event('scroll'));
  return Number(canvas.dataset.drawMillis);
});
return times.sort((one, other) => one - other)[4];
";
/// The time from a jump until a row there is visible.
const JUMP: &str = "
const box = document.querySelector('.timeline .long');
const begin = performance.now();
box.scrollTop = box.scrollHeight * 0.7;
return new Promise((resolve) => {
  const look = () => {
    const row = document.querySelector('.timeline tbody tr:last-child');
    if (Number(row?.getAttribute('aria-rowindex')) > 60000) resolve(performance.now() - begin);
    else requestAnimationFrame(look);
  };
  look();
});
";

fn say(what: &str, measured: Value, aimed_at: &str) {
    let shown = measured
        .as_f64()
        .map_or_else(|| measured.to_string(), |number| format!("{number:.1}"));
    println!("{what:<52}{shown:>9}   {aimed_at}");
}

fn measure(stints: u32, lanes: u32) {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::large(&history, stints, lanes);
    histories::small(&history, 300);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({ "source": WATCH }),
    );
    println!("{stints} stretches in {lanes} lanes");
    let rows = || {
        browser.open(&format!("{}/jobs", origin(&server.link)));
        browser.until("rows", "return seen.rows");
    };
    // The first load fills the caches of the browser.
    rows();
    rows();
    say("page visible, ms", browser.run(FIRST_PAINT), "200");
    say("first rows, ms", browser.run("return seen.rows"), "500");
    let tasks = |filter: &str| {
        browser.open(&format!(
            "{}/jobs/job_0001/tasks{filter}",
            origin(&server.link)
        ));
        browser.until("rows", "return seen.rows");
    };
    say("jobs fetched and shown, ms", browser.run(JOBS_SHOWN), "50");
    for (filter, name) in [
        ("", "all"),
        ("?sort=-took", "sorted"),
        ("?text=m_999", "filtered"),
    ] {
        tasks(filter);
        say(
            &format!("tasks fetched and shown, {name}, ms"),
            browser.run(TASKS_SHOWN),
            "400",
        );
    }
    let job = || {
        browser.open(&format!("{}/jobs/job_0001", origin(&server.link)));
        browser.until("its bars", "return seen.drawn");
    };
    job();
    job();
    say(
        "timeline fetched and drawn, ms",
        browser.run(FETCHED_AND_DRAWN),
        "400",
    );
    say(
        "of that, until the answer is here, ms",
        browser.run(ANSWERED),
        "",
    );
    say(
        "longest task of the page while it loads, ms",
        browser.run("return Math.max(0, ...long)"),
        "",
    );
    say(
        "draw() of what fits the screen, ms",
        browser.run(DRAWN),
        "3",
    );
    browser.resize(1280, lanes * 30 + 1_000);
    browser.until(
        "all lanes are in view",
        &format!(
            "return document.querySelector('canvas').height >= {}",
            lanes * 18
        ),
    );
    say("draw() of everything, ms", browser.run(DRAWN), "8");
    browser.devtools("Emulation.setCPUThrottlingRate", &json!({ "rate": 4 }));
    say("the same, four times slower, ms", browser.run(DRAWN), "32");
    browser.devtools("Emulation.setCPUThrottlingRate", &json!({ "rate": 1 }));
    browser.resize(1280, 900);
    browser.run("long.length = 0");
    browser.keys("canvas", "t");
    browser.until(
        "the table",
        "return document.querySelector('.timeline tbody tr') !== null",
    );
    say(
        "rows in the document",
        browser.run("return document.querySelectorAll('.timeline tbody tr').length"),
        "60",
    );
    say("a row far away, ms", browser.run(JUMP), "50");
    say(
        "longest task of the page since, ms",
        browser.run("return Math.max(0, ...long)"),
        "50",
    );
    browser.devtools("HeapProfiler.collectGarbage", &json!({}));
    let used = browser.run("return performance.memory.usedJSHeapSize / 1048576");
    say("memory of the tab's objects, MiB", used, "200");
    browser.has_no_complaints();
}

#[test]
#[ignore = "a measurement, which wants a machine of its own"]
fn budgets_of_the_page() {
    measure(100_000, 300);
    measure(1_000_000, 300);
}
