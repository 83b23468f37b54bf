//! Keys of the page, pressed where a reader's focus is: keys of the timeline need no focus on it, and Escape leaves a
//! filter. `Browser::keys` would move the focus to its element first.

use napreduce_tests::Folder;

use super::access::press;
use super::{origin, served_hostile};

/// Presses a letter or a sign.
fn letter(browser: &super::driver::Browser, key: &str) {
    let code = key.to_uppercase().bytes().next().expect("a key");
    press(browser, key, u32::from(code));
}

#[test]
fn timeline_keys_work_without_its_focus() {
    let folder = Folder::new();
    let Some((browser, server)) = served_hostile(&folder) else {
        return;
    };
    browser.open(&format!("{}/jobs/job_0001", origin(&server.link)));
    browser.until(
        "its bars",
        "return Number(document.querySelector('canvas[data-stints]')?.dataset.stints) > 0",
    );
    assert_eq!(browser.run("return document.activeElement.tagName"), "BODY");
    letter(&browser, "l");
    browser.until_says("job_0001_m_0000.1 on");
    let focus = "return document.activeElement.tagName";
    assert_eq!(
        browser.run(focus),
        "CANVAS",
        "arrows move the timeline from now on"
    );
    letter(&browser, "t");
    browser.until(
        "the table",
        "return document.querySelector('.timeline tbody tr') !== null",
    );
    letter(&browser, "t");
    browser.until(
        "the picture",
        "return document.querySelector('.timeline canvas').checkVisibility()",
    );
    // Two keys of the page are not taken for keys of the timeline, with and without its focus.
    letter(&browser, "l");
    for _ in 0..2 {
        letter(&browser, "g");
        letter(&browser, "j");
        browser.until("the list of jobs", "return location.pathname === '/jobs'");
        browser.open(&format!("{}/jobs/job_0001", origin(&server.link)));
        browser.until(
            "its bars",
            "return Number(document.querySelector('canvas[data-stints]')?.dataset.stints) > 0",
        );
    }
    // A dialog keeps its keys.
    letter(&browser, "/");
    browser.until(
        "the search",
        "return document.querySelector('dialog.search[open]') !== null",
    );
    letter(&browser, "t");
    assert_eq!(
        browser.run("return document.querySelector('.timeline canvas').checkVisibility()"),
        true
    );
    browser.has_no_complaints();
}

#[test]
fn escape_leaves_a_filter_and_keeps_its_text() {
    let folder = Folder::new();
    let Some((browser, server)) = served_hostile(&folder) else {
        return;
    };
    for page in [
        "/jobs",
        "/jobs/job_0001/tasks",
        "/preemptions?from=0",
        "/compare",
    ] {
        browser.open(&format!("{}{page}", origin(&server.link)));
        letter(&browser, "f");
        assert_eq!(
            browser.run("return document.activeElement.type"),
            "search",
            "{page}"
        );
        browser.run("document.activeElement.value = 'job_0001'");
        press(&browser, "Escape", 27);
        let left = "return [document.activeElement.id, document.querySelector('main input[type=search]').value].join()";
        assert_eq!(browser.run(left), "main,job_0001", "{page}");
        // Keys work again.
        letter(&browser, "g");
        letter(&browser, "q");
        browser.until("the queues", "return location.pathname === '/queues'");
    }
    browser.has_no_complaints();
}
