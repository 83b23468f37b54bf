//! Accessibility: every control has a name and can be reached with the keyboard, and selections are
//! announced.

use std::collections::BTreeSet;

use napreduce_tests::{Folder, GatedJob, OwnCluster};
use serde_json::{Value, json};

use super::driver::Browser;
use super::{ANYWHERE, link, origin, served_hostile};

/// The pages of a history with one job.
pub const PAGES: [&str; 14] = [
    "/",
    "/jobs",
    "/jobs/job_0001",
    "/jobs/job_0001/tasks",
    "/jobs/job_0001/preemptions",
    "/jobs/job_0001/counters",
    "/jobs/job_0001/submitted",
    "/jobs/job_0001/tasks?show=failed",
    "/jobs/job_0001/events",
    "/jobs/job_0001/tasks/job_0001_m_0000",
    "/preemptions?from=0",
    "/queues",
    "/workers",
    "/about",
];

/// Roles of controls.
const CONTROLS: [&str; 9] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "radio",
    "application",
    "DisclosureTriangle",
];

/// Presses a key, wherever the focus is.
pub fn press(browser: &Browser, key: &str, code: u32) {
    for kind in ["rawKeyDown", "keyUp"] {
        let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
        browser.devtools("Input.dispatchKeyEvent", &event);
    }
}

/// Returns the number of controls in the accessibility tree, and those without a name.
pub fn nameless(browser: &Browser) -> (usize, Vec<Value>) {
    let tree = browser.devtools("Accessibility.getFullAXTree", &json!({}));
    let nodes = tree["nodes"].as_array().expect("nodes").iter();
    let seen = nodes.filter(|node| node["ignored"] != true);
    let controls = seen.filter(|node| CONTROLS.iter().any(|role| node["role"]["value"] == *role));
    let all: Vec<&Value> = controls.collect();
    let name = |node: &&&Value| {
        node["name"]["value"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .is_empty()
    };
    (
        all.len(),
        all.iter()
            .filter(name)
            .map(|node| (**node).clone())
            .collect(),
    )
}

/// Marks the focusable elements, and records which of them had the focus and whether they were visible.
const WATCH: &str = "
window.reached = new Set(); window.unseen = [];
const isSeen = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled;
window.reachable = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')].filter(isSeen);
document.addEventListener('focusin', ({ target }) => {
  reached.add(target);
  const { outlineStyle, outlineWidth } = getComputedStyle(target);
  if (target !== document.body && (outlineStyle === 'none' || outlineWidth === '0px')) unseen.push(target.outerHTML.slice(0, 90));
});
document.activeElement?.blur();
return reachable.length";

/// Fails if the Tab key misses a control of the page, or the focus is not visible.
pub fn tab_reaches_everything(browser: &Browser, page: &str) {
    let reachable = browser.run(WATCH).as_u64().expect("a number");
    // The focus moves when the key goes down. Hundreds of keys are pressed, and each event takes a request.
    let tab =
        json!({ "type": "rawKeyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
    for _ in 0..reachable + 2 {
        browser.devtools("Input.dispatchKeyEvent", &tab);
    }
    let missed = browser
        .run("return reachable.filter((one) => !reached.has(one)).map((one) => one.outerHTML.slice(0, 90))");
    assert_eq!(missed, json!([]), "{page}: {reachable} can be reached");
    assert_eq!(browser.run("return unseen"), json!([]), "{page}");
}

#[test]
fn tab_names_job_and_page_names_time_zone() {
    let folder = Folder::new();
    let Some((browser, server)) = served_hostile(&folder) else {
        return;
    };
    browser.open(&format!("{}/jobs/job_0001", origin(&server.link)));
    let title = browser.run("return document.title");
    assert!(
        title
            .as_str()
            .is_some_and(|title| title.starts_with("job_0001 <img src=x")),
        "{title}"
    );
    let zone = browser.run("return Intl.DateTimeFormat().resolvedOptions().timeZone");
    let zone = zone.as_str().expect("a name");
    assert!(
        browser
            .text()
            .contains(&format!("Times are in the time zone {zone};")),
        "{}",
        browser.text()
    );
}

#[test]
fn suspend_by_keyboard_is_announced_to_screen_reader() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "napping", 1, 1);
    job.until("m_0000.1", "running");
    browser.open(&link(&cluster, &[]));
    browser.keys("body", "gj");
    browser.until("the list of jobs", "return location.pathname === '/jobs'");
    browser.until_says("napping");
    let to = |selector: &str, key: &str| {
        browser.until(
            selector,
            &format!(
                "return document.querySelector({}) !== null",
                json!(selector)
            ),
        );
        browser.keys(selector, key);
    };
    // The Enter key in WebDriver's encoding.
    let enter = "\u{e007}";
    to("td a[href='/jobs/job_0001']", enter);
    to("nav.tabs a[href$='tasks']", enter);
    to("td a[href$='job_0001_m_0000']", enter);
    browser.until(
        "its task",
        "return location.pathname.endsWith('/tasks/job_0001_m_0000')",
    );
    browser.until_says("Suspend");
    let (_, nameless) = nameless(&browser);
    assert!(nameless.is_empty(), "{nameless:#?}");
    to("main .bar button", enter);
    to("#reason", "by keys alone");
    to("dialog button[type=submit]", enter);
    job.until("m_0000.1", "suspended");
    browser.until(
        "its nap",
        "return document.querySelector('canvas[data-stints]').dataset.naps === '1'",
    );
    to("canvas", "n");
    let spoken = browser.until(
        "it is spoken",
        "return document.getElementById('spoken').textContent",
    );
    let spoken: BTreeSet<&str> = spoken.as_str().expect("words").split(", ").collect();
    assert!(
        spoken
            .iter()
            .any(|words| words.starts_with("then suspended by operator (by keys alone")),
        "{spoken:?}"
    );
    assert!(
        spoken.iter().any(|words| words.ends_with("kept in memory")),
        "{spoken:?}"
    );
    to("canvas", "t");
    browser.until_says("1 of 1 stretches are in view");
    to("body", "?");
    browser.until("the keys", "return location.pathname === '/about'");
    browser.has_no_complaints();
    job.command("resume", "m_0000");
    job.ends_as_undisturbed();
}
