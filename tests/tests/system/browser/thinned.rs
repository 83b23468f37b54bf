//! A timeline with more bars than a page can hold: merged by columns, with counts, and complete after zooming
//! in.

use napreduce_tests::Folder;

use super::driver::Browser;
use super::{Served, histories, origin};

const BARS: &str = "return Number(document.querySelector('canvas[data-stints]')?.dataset.stints)";

#[test]
fn long_timeline_is_thinned_and_zooms_to_each_bar() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let history = folder.path("history");
    histories::large(&history, 200_000, 300);
    let server = Served::start(&folder, &history);
    browser.open(&server.link);
    browser.open(&format!("{}/jobs/job_0001", origin(&server.link)));
    browser.until_says("200,000 stretches of work are drawn as");
    let bars = browser.run(BARS).as_u64().expect("a number");
    assert!((50_000..=250_000).contains(&bars), "{bars}");
    // Merged bars have no row per task.
    let by_task = "return [...document.querySelectorAll('button')].find((one) => one.innerText === 'By task').disabled";
    assert_eq!(browser.run(by_task), true);
    let top = |what: &str| format!("document.querySelector('.timeline .view').{what}");
    browser.run(&top("scrollTop = 200"));
    browser.keys("canvas", "l");
    browser.until_says("stretches of work on worker-1 in");
    browser.picture_on_request("thinned");
    // From 670 seconds to three.
    browser.keys("canvas", "++++++++");
    browser.until_says("Each stretch of work is drawn, of 200,000 in all");
    let close = browser.run(BARS).as_u64().expect("a number");
    assert!((300..20_000).contains(&close), "{close}");
    let rows = "return document.querySelector('.timeline .view').scrollHeight > 300 * 18";
    assert_eq!(browser.run(rows), true, "rows stay where they are");
    browser.keys("canvas", "t");
    browser.until_says("stretches are in view");
    let last = "const cells = [...document.querySelectorAll('.timeline tbody tr')][0]; return cells.innerText.includes('job_0001_m_')";
    assert_eq!(browser.run(last), true);
    browser.picture_on_request("thinned-closely");
    browser.click("Table");
    browser.click("All");
    browser.until_says("200,000 stretches of work are drawn as");
    assert_eq!(browser.run(BARS).as_u64(), Some(bars));
    browser.has_no_complaints_but_slow_answers();
}
