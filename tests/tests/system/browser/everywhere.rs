//! Every page of a busy cluster: accessible, within a narrow screen, and all of it reached by the keyboard.
//!
//! Pictures of each page in three widths and two colour schemes, in `target/browser`:
//!
//! ```text
//! cargo test -p napreduce-tests --test system -- --ignored pictures_of_every_page
//! ```

use napreduce_tests::{Folder, OwnCluster};
use serde_json::{Value, json};

use super::access::{nameless, tab_reaches_everything};
use super::axe::Axe;
use super::busy::Busy;
use super::driver::Browser;
use super::ledger::NATJAM;
use super::looks::{FAINT, SMALL, TOO_WIDE};
use super::{ANYWHERE, link, origin};

/// Height of the window, in pixels.
const HEIGHT: u64 = 900;
/// Maximum height of a picture.
const HEIGHT_MAX: u64 = 4_000;

/// Addresses of the pages, with a name each.
fn pages(busy: &Busy<'_>) -> Vec<(&'static str, String)> {
    let Busy {
        skewed,
        preempted,
        failed,
        straggling,
        waiting,
    } = busy;
    let running = straggling.id();
    let of = |job: &str, rest: &str| format!("/jobs/{job}{rest}");
    vec![
        ("cluster", "/".to_owned()),
        ("jobs", "/jobs".to_owned()),
        ("jobs-search", "/jobs?text=index".to_owned()),
        ("job-running", of(running, "")),
        ("job-waiting", of(waiting, "")),
        ("job-preempted", of(preempted, "")),
        ("job-skewed", of(skewed, "")),
        ("job-failed", of(failed, "")),
        ("tasks-running", of(running, "/tasks")),
        ("tasks-failed", of(failed, "/tasks?show=failed")),
        ("job-preemptions", of(preempted, "/preemptions")),
        ("counters", of(preempted, "/counters")),
        ("submitted", of(preempted, "/submitted")),
        ("events", of(preempted, "/events")),
        ("task", of(preempted, &format!("/tasks/{preempted}_m_0000"))),
        (
            "compare",
            format!("/compare?left={preempted}&right={skewed}"),
        ),
        ("preemptions", "/preemptions".to_owned()),
        ("queues", "/queues".to_owned()),
        ("queue", "/queues/research".to_owned()),
        ("workers", "/workers".to_owned()),
        ("worker", "/workers/worker_0001".to_owned()),
        ("about", "/about".to_owned()),
        ("not-found", "/jobs/job_9999".to_owned()),
    ]
}

/// Opens the attempts of the first task, if the page lists tasks.
fn open_first_row(browser: &Browser) {
    browser.run("document.querySelector('main td button[aria-expanded=false]')?.click()");
}

pub fn set_size(browser: &Browser, width: u32, height: u64) {
    let screen =
        json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    browser.devtools("Emulation.setDeviceMetricsOverride", &screen);
    browser.until(
        "the size",
        &format!("return innerWidth === {width} && innerHeight === {height}"),
    );
}

/// Emulates features of media queries, such as a colour scheme.
pub fn set_media(browser: &Browser, features: &Value) {
    let media = json!({ "features": features });
    browser.devtools("Emulation.setEmulatedMedia", &media);
}

pub fn set_scheme(browser: &Browser, scheme: &str) {
    let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
    set_media(browser, &features);
}

pub fn is_not_too_wide(browser: &Browser, page: &str) {
    let wide = browser.run(TOO_WIDE).as_i64().expect("a number");
    assert!(wide <= 0, "{page} is {wide} pixels too wide");
}

#[test]
fn pages_of_busy_cluster_are_accessible() {
    let folder = Folder::new();
    let (Some(axe), Some(browser)) = (Axe::find(), Browser::start(&folder)) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 3, "natjam", &format!("{ANYWHERE}{NATJAM}"));
    let busy = Busy::start(&folder, &cluster);
    let page = link(&cluster, &[]);
    browser.open(&page);
    for (name, address) in pages(&busy) {
        set_size(&browser, 1440, HEIGHT);
        browser.open(&format!("{}{address}", origin(&page)));
        open_first_row(&browser);
        axe.finds_nothing(&browser, name);
        assert_eq!(nameless(&browser).1, Vec::<Value>::new(), "{name}");
        tab_reaches_everything(&browser, name);
        for scheme in ["light", "dark"] {
            set_scheme(&browser, scheme);
            assert_eq!(browser.run(FAINT), json!([]), "{name} in {scheme}");
        }
        assert_eq!(browser.run(SMALL), json!([]), "{name}");
        set_size(&browser, 320, HEIGHT);
        is_not_too_wide(&browser, name);
    }
    browser.has_no_complaints_but(&["404"]);
}

#[test]
#[ignore = "takes pictures for people to look at"]
fn pictures_of_every_page() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 3, "natjam", &format!("{ANYWHERE}{NATJAM}"));
    let busy = Busy::start(&folder, &cluster);
    let page = link(&cluster, &[]);
    browser.open(&page);
    for (name, address) in pages(&busy) {
        browser.open(&format!("{}{address}", origin(&page)));
        open_first_row(&browser);
        for scheme in ["light", "dark"] {
            set_scheme(&browser, scheme);
            for width in [1440, 1024, 320] {
                set_size(&browser, width, HEIGHT);
                is_not_too_wide(&browser, name);
                let height = browser.run("return document.documentElement.scrollHeight");
                set_size(
                    &browser,
                    width,
                    height.as_u64().expect("a number").clamp(HEIGHT, HEIGHT_MAX),
                );
                browser.picture(&format!("busy-{width}-{scheme}-{name}"));
            }
        }
    }
    browser.has_no_complaints_but(&["404"]);
}
