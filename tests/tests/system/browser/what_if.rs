//! What-if simulations under another policy, started from the page of a history and of a running cluster.

use napreduce_tests::{Folder, GatedJob, OwnCluster, program, run};

use super::axe::Axe;
use super::driver::Browser;
use super::{ANYWHERE, Served, link, origin};

/// Selects policies and starts their simulation.
pub fn simulate(browser: &Browser, schedulers: &[&str]) {
    browser.until(
        "the form",
        "return document.querySelector('form.what-if-form') !== null",
    );
    for name in schedulers {
        browser.run(&format!(
            "document.querySelector('input[value=\"{name}\"]').click()"
        ));
    }
    browser.click("Simulate");
}

#[test]
fn history_is_simulated_under_other_policy() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let axe = Axe::find();
    let mut record = program("nap");
    record.current_dir(folder.root()).args([
        "sim",
        "--workload",
        "natjam-xl-s",
        "--scheduler",
        "natjam",
    ]);
    run(record.args(["--primitive", "suspend", "--seed", "0", "--record", "runs"])).succeeded();
    let server = Served::start(&folder, &folder.path("runs"));
    browser.open(&server.link);
    browser.click("Recordings");
    browser.until_says("Schedulers to compare with the recorded one");
    if let Some(axe) = &axe {
        axe.finds_nothing(&browser, "what-if-form");
    }
    browser.picture_on_request("what-if-form");

    // The server's error is shown next to the button.
    browser.run("document.querySelector('form.what-if-form details').open = true");
    browser.keys("textarea", "[worker]");
    simulate(&browser, &["fifo"]);
    browser.until_says("in configuration; expected [scheduler.NAME] or [preemption]");
    browser.run("document.querySelector('textarea').value = ''");
    browser.run("document.querySelector('form.what-if-form details').open = false");
    browser.click("Simulate");
    browser.until_says("done after");
    browser.until_says("Mean sojourn is off by");
    browser.until_says("The simulation is within 10 % of the history.");
    browser.until_says(
        "Jobs are submitted at their recorded times, even those that waited for another job to end.",
    );
    browser.run("document.querySelector('article.what-if').scrollIntoView()");
    if let Some(axe) = &axe {
        axe.finds_nothing(&browser, "what-if");
    }
    browser.picture_on_request("what-if");
    browser.run("document.documentElement.dataset.theme = 'dark'");
    browser.picture_on_request("what-if-dark");

    // The fidelity is shown before the results.
    let order = "const all = [...document.querySelector('article.what-if').querySelectorAll('.cards, table')]; \
                 return all.map((one) => one.tagName).join()";
    assert_eq!(browser.run(order), "DIV,TABLE");
    browser.click("Compare with fifo");
    browser.until_says("Jobs that differ most");
    let drawn = "return [...document.querySelectorAll('canvas[data-stints]')].filter(one => Number(one.dataset.stints) > 0).length";
    browser.until("both are drawn", &format!("{drawn} === 2"));
    if let Some(axe) = &axe {
        axe.finds_nothing(&browser, "what-if-compared");
    }
    browser.picture_on_request("what-if-compared");

    // The result fits a narrow screen, and can be removed.
    browser.resize(340, 800);
    browser.open(&format!("{}/recordings", origin(&server.link)));
    browser.until_says("done after");
    let wide = browser.run("return document.documentElement.scrollWidth - innerWidth");
    assert!(
        wide.as_i64().is_some_and(|wide| wide <= 0),
        "it is {wide} pixels too wide"
    );
    browser.picture_on_request("narrow-what-if");
    browser.click("Remove");
    browser.run("document.querySelector('dialog button[type=submit]').click()");
    browser.until(
        "it is gone",
        "return document.querySelector('article.what-if') === null",
    );
    browser.until_says("Results of what-ifs are listed here.");
    browser.has_no_complaints_but(&["400"]);
}

#[test]
fn running_cluster_is_simulated_and_viewer_sees_no_form() {
    let folder = Folder::new();
    let Some(browser) = Browser::start(&folder) else {
        return;
    };
    let cluster = OwnCluster::start(&folder, 1, "fifo", ANYWHERE);
    let job = GatedJob::submit(&folder, &cluster, "gated", "simulated", 1, 1);
    job.ends_as_undisturbed();
    browser.open(&link(&cluster, &[]));
    browser.click("Recordings");
    simulate(&browser, &["fair"]);
    browser.until_says("done after");
    browser.until_says("what-if-1.fair.0");
    browser.click("Compare with fair");
    browser.until_says("Jobs that differ most");

    browser.open(&format!("{}/about", origin(&link(&cluster, &[]))));
    browser.click("Sign out");
    browser.until_says("Sign in by a link");
    browser.run("location.replace('about:blank')");
    browser.open(&link(&cluster, &["--view"]));
    browser.click("Recordings");
    browser.until_says("what-if-1.fair.0");
    let orders =
        "return document.querySelectorAll('form.what-if-form, article.what-if button').length";
    assert_eq!(browser.run(orders), 0);
    // Requests after the sign-out are unauthorized.
    browser.has_no_complaints_but(&["401"]);
}
